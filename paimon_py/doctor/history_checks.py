"""Findings of the history of a table: whether it is whole, and who stands in it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from paimon_py.doctor.facts import Facts
from paimon_py.doctor.finding import NOTE, PROBLEM, WARNING, Finding

_EXAMPLES = 10


def cut_history(facts: Facts) -> Iterator[Finding]:
    """Check that no rollback or fast-forward was left in the middle."""
    if facts.history.cut is not None:
        yield Finding(
            code="history-is-cut", severity=PROBLEM, mend=facts.history.cut,
            message="a rollback or fast-forward is at work, or its process ended in the middle: until it is finished"
            " the table cannot be changed",
        )  # fmt: skip


def whole_history(facts: Facts) -> Iterator[Finding]:
    """Check that snapshots follow each other, by their ids and by what each says of the one before."""
    runs, seams = facts.history.runs, facts.history.seams
    if len(runs) > 1:
        yield Finding(
            code="history-has-a-gap", severity=PROBLEM, figure=len(runs) - 1,
            message="ids of snapshots are missing between others, as a rollback by Java leaves them that died: commits"
            " are refused when they come to the ids behind the gap",
            mend="table.rollback_to(table.snapshot().id), which deletes what is on the other side of the gap",
            places=tuple(f"snapshots {first} to {last}" for first, last in runs[:_EXAMPLES]),
        )  # fmt: skip
    if seams:
        yield Finding(
            code="history-has-a-seam", severity=PROBLEM, figure=len(seams),
            message=f"snapshot {seams[0]} was built on another one than snapshot {seams[0] - 1}, which has its place:"
            " streams and changes across the two are refused",
            mend=f"table.rollback_to({seams[0] - 1}), or expire the snapshots before {seams[0]}",
            places=tuple(f"snapshot {number}" for number in seams[:_EXAMPLES]),
        )  # fmt: skip


def half_branches(facts: Facts) -> Iterator[Finding]:
    """Check that no branch is half made or half deleted."""
    found = facts.history.half_branches
    if found:
        yield Finding(
            code="half-branches", severity=WARNING, figure=len(found), mend=f"table.delete_branch({found[0]!r})",
            message="branches are half made or half deleted, and keep files; create_branch and delete_branch can be"
            " repeated",
            places=found[:_EXAMPLES],
        )  # fmt: skip


def astray_consumers(facts: Facts) -> Iterator[Finding]:
    """Check that consumers have read snapshots of this history."""
    found = facts.history.astray
    if found:
        first = found[0]
        yield Finding(
            code="consumers-astray", severity=PROBLEM, figure=len(found),
            message=f"consumer {first.name!r} has read snapshot {first.read_id}, which is not in the history any more:"
            " its streams are refused",
            mend=f"table.reset_consumer({first.name!r}, the first snapshot that it has not read)",
            places=tuple(f"{one.name}: read up to {one.read_id}" for one in found[:_EXAMPLES]),
        )  # fmt: skip


def idle_users(facts: Facts) -> Iterator[Finding]:
    """Check for users that are idle and that nothing names."""
    if facts.orphans is not None and facts.orphans.users:
        found = facts.orphans.users
        yield Finding(
            code="idle-users", severity=NOTE, figure=len(found), option="commit.user-retention",
            message="the last numbers of users are kept that have not committed for long and that nothing names",
            mend="table.remove_orphans(dry_run=False)", places=found[:_EXAMPLES],
        )  # fmt: skip


HISTORY_CHECKS = (cut_history, whole_history, half_branches, astray_consumers, idle_users)
"""All checks of the history."""
