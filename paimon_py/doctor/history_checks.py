"""Findings about the history of a table: its completeness, and consumers that are not on it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from paimon_py.doctor.facts import Facts
from paimon_py.doctor.finding import NOTE, PROBLEM, WARNING, Finding

_EXAMPLES = 10


def cut_history(facts: Facts) -> Iterator[Finding]:
    """Check that no rollback or fast-forward was left unfinished."""
    if facts.history.cut is not None:
        yield Finding(
            code="history-is-cut", severity=PROBLEM, mend=facts.history.cut,
            message="a rollback or fast-forward is running, or its process ended early: until it is finished"
            " the table cannot be changed",
        )  # fmt: skip


def whole_history(facts: Facts) -> Iterator[Finding]:
    """Check that the snapshots are consecutive, by their ids and by their parents."""
    runs, seams = facts.history.runs, facts.history.seams
    if len(runs) > 1:
        yield Finding(
            code="history-has-a-gap", severity=PROBLEM, figure=len(runs) - 1,
            message="snapshot ids are missing between others, as after an interrupted rollback by Java: commits"
            " are refused when they reach the ids after the gap",
            mend="table.rollback_to(table.snapshot().id), which deletes the snapshots on the other side of the gap",
            places=tuple(f"snapshots {first} to {last}" for first, last in runs[:_EXAMPLES]),
        )  # fmt: skip
    if seams:
        yield Finding(
            code="history-has-a-seam", severity=PROBLEM, figure=len(seams),
            message=f"snapshot {seams[0]} was not built on snapshot {seams[0] - 1} but on one that it replaced:"
            " streams and changes across the two are refused",
            mend=f"table.rollback_to({seams[0] - 1}), or expire the snapshots before {seams[0]}",
            places=tuple(f"snapshot {number}" for number in seams[:_EXAMPLES]),
        )  # fmt: skip


def half_branches(facts: Facts) -> Iterator[Finding]:
    """Check that no branch was created or deleted only partly."""
    found = facts.history.half_branches
    if found:
        yield Finding(
            code="half-branches", severity=WARNING, figure=len(found), mend=f"table.delete_branch({found[0]!r})",
            message="branches were created or deleted only partly, and keep files; create_branch and delete_branch can"
            " be repeated",
            places=found[:_EXAMPLES],
        )  # fmt: skip


def astray_consumers(facts: Facts) -> Iterator[Finding]:
    """Check that consumers have read snapshots of this history."""
    found = facts.history.astray
    if found:
        first = found[0]
        yield Finding(
            code="consumers-astray", severity=PROBLEM, figure=len(found),
            message=f"consumer {first.name!r} has read snapshot {first.read_id}, which is no longer in the history:"
            " its streams are refused",
            mend=f"table.reset_consumer({first.name!r}, the first snapshot that it has not read)",
            places=tuple(f"{one.name}: read up to {one.read_id}" for one in found[:_EXAMPLES]),
        )  # fmt: skip


def idle_users(facts: Facts) -> Iterator[Finding]:
    """Check for idle users that nothing references."""
    if facts.orphans is not None and facts.orphans.users:
        found = facts.orphans.users
        yield Finding(
            code="idle-users", severity=NOTE, figure=len(found), option="commit.user-retention",
            message="the last identifiers of users are kept that have not committed for long and that nothing"
            " references",
            mend="table.remove_orphans(dry_run=False)", places=found[:_EXAMPLES],
        )  # fmt: skip


HISTORY_CHECKS = (cut_history, whole_history, half_branches, astray_consumers, idle_users)
"""All checks of the history."""
