"""Findings about the Iceberg metadata of a table: differences between the table and what Iceberg readers see. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from paimon_py.doctor.facts import Facts
from paimon_py.doctor.finding import NOTE, PROBLEM, WARNING, Finding
from paimon_py.spec.iceberg import STORAGE

_PUBLISH = "table.publish_iceberg()"


def right_iceberg(facts: Facts) -> Iterator[Finding]:
    """Check that Iceberg readers find a version, that it is of this table, and that its catalog shows it."""
    state = facts.iceberg
    if state is not None and state.problems:
        yield Finding(
            code="iceberg-metadata-wrong", severity=PROBLEM, figure=len(state.problems), option=STORAGE, mend=_PUBLISH,
            message="Iceberg readers see nothing, or not the rows of the table: the metadata is broken, missing, from"
            " another writer or from a history that was rolled back, or their catalog shows another snapshot",
            places=state.problems,
        )  # fmt: skip


def fresh_iceberg(facts: Facts) -> Iterator[Finding]:
    """Check that Iceberg readers see the latest snapshot."""
    state = facts.iceberg
    if state is not None and state.lag:
        yield Finding(
            code="iceberg-lags", severity=WARNING, figure=state.lag, option=STORAGE, mend=_PUBLISH,
            message=f"Iceberg readers are {state.lag:,} snapshots behind: others commit without the option, or"
            " publications failed",
        )  # fmt: skip


def whole_iceberg(facts: Facts) -> Iterator[Finding]:
    """Check that Iceberg readers see all rows, and no deleted ones."""
    state = facts.iceberg
    if state is None or state.lag or not state.not_seen:
        return
    deleted = any("deleted rows" in text for text in state.not_seen)
    mend = "table.compact(full=True)" if state.hidden_rows else "table.alter with the options that the places name"
    yield Finding(
        code="iceberg-readers-see-less", severity=WARNING if deleted else NOTE, figure=state.hidden_rows,
        option=STORAGE, mend=mend, places=state.not_seen,
        message="Iceberg readers do not see all rows of the latest snapshot, or see deleted ones",
    )  # fmt: skip
