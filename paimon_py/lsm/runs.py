"""Sorted runs: files of one bucket that are ordered by key and do not overlap, and their order by age.

Source: format.md §12.1, §13.1; Java `SortedRun`, `Levels`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import msgspec

from paimon_py.spec.data_file import DataFile


class SortedRun(msgspec.Struct, frozen=True):
    """Files in key order that do not overlap; every key is in at most one of them, once."""

    files: tuple[DataFile, ...]

    @property
    def row_count(self) -> int:
        """Rows in all files, deletes included."""
        return sum(file.row_count for file in self.files)

    @property
    def size_bytes(self) -> int:
        """The size of all files in bytes."""
        return sum(file.size_bytes for file in self.files)

    @property
    def min_sequence(self) -> int:
        """The smallest sequence number."""
        return min(file.min_sequence for file in self.files)

    @property
    def max_sequence(self) -> int:
        """The largest sequence number."""
        return max(file.max_sequence for file in self.files)

    @property
    def may_delete(self) -> bool:
        """Whether a row may be −U or −D (also if the count is unknown)."""
        return any(file.delete_row_count != 0 for file in self.files)


def oldest_first(runs: Iterable[SortedRun]) -> tuple[SortedRun, ...]:
    """Runs by age, which decides between rows that are otherwise equal in order."""
    return tuple(sorted(runs, key=lambda run: age_of(run.files)))


def ages_are_disjoint(runs: Sequence[SortedRun]) -> bool:
    """Whether every row of a run is older than every row of the next one; runs are ordered oldest first.

    If so, the order of runs is the order of sequence numbers, which need not be read.
    """
    return all(older.max_sequence < newer.min_sequence for older, newer in itertools.pairwise(runs))


def age_of(files: Sequence[DataFile]) -> tuple[int, int, int, int, str]:
    """The sort key of a run by age (larger is newer): sequence, level (smaller is newer), creation time, name as in
    `Levels`.
    """
    first = files[0]
    if len(files) == 1:
        return first.max_sequence, first.min_sequence, -first.level, first.creation_time_millis or 0, first.name
    run = SortedRun(tuple(files))
    level = max(file.level for file in files)
    created = max(file.creation_time_millis or 0 for file in files)
    return run.max_sequence, run.min_sequence, -level, created, first.name
