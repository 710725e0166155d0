"""The results of maintenance rounds, as values."""

from __future__ import annotations

import msgspec

from paimon_py.html import AsPage


class CareEntry(AsPage, msgspec.Struct, frozen=True, kw_only=True):
    """The result of one round for one table.

    Attributes:
        table: `database.table`.
        compacted_files, compacted_bytes: files that were merged, and their size.
        waiting_files: files that a compaction would merge, left for a later round because of the budget.
        expired_snapshots: snapshots that expired.
        expired_others: changelogs, tags, partitions and consumers that expired.
        orphans: orphan files that were deleted.
        error: why the rest of the maintenance of this table was skipped; None: no error.
    """

    table: str
    compacted_files: int = 0
    compacted_bytes: int = 0
    waiting_files: int = 0
    expired_snapshots: int = 0
    expired_others: int = 0
    orphans: int = 0
    error: str | None = None

    @property
    def did_something(self) -> bool:
        """Whether anything changed."""
        return bool(self.compacted_files or self.expired_snapshots or self.expired_others or self.orphans)


class CareRound(AsPage, msgspec.Struct, frozen=True, kw_only=True):
    """One round over all tables.

    Attributes:
        began_millis: the start of the round, in epoch milliseconds.
        seconds: the duration of the round.
        entries: the results for each table, in the order of urgency.
        out_of_time: tables that were skipped because the time was over.
        stopped: the runner was stopped during the round.
    """

    began_millis: int
    seconds: float = 0.0
    entries: tuple[CareEntry, ...] = ()
    out_of_time: tuple[str, ...] = ()
    stopped: bool = False

    @property
    def compacted_bytes(self) -> int:
        """Bytes of files that were merged."""
        return sum(entry.compacted_bytes for entry in self.entries)

    @property
    def errors(self) -> tuple[str, ...]:
        """The errors, one string per table."""
        return tuple(f"{entry.table}: {entry.error}" for entry in self.entries if entry.error is not None)
