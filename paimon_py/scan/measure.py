"""Converts counters to the values of `scan.explain()`."""

from __future__ import annotations

from collections.abc import Iterable

from paimon_py.files.meter import Meter
from paimon_py.scan.explain import Analysis, RowGroups
from paimon_py.scan.read_estimate import ReadEstimate


class ScanMeter(Meter):
    """Counters of a scan. `files_by_order`: files that cannot contain one of the first rows."""

    def __init__(self) -> None:
        super().__init__()
        self.files_by_order = 0

    def analysis(self, *, files: int, rows_returned: int) -> Analysis:
        """The counters of a finished scan of `files` planned files; unreached files count for the limit."""
        known = self.files_opened + self.files_by_index + self.files_by_key + self.files_by_metadata
        return Analysis(
            files_opened=self.files_opened,
            files_by_index=self.files_by_index,
            files_by_key=self.files_by_key,
            files_by_order=self.files_by_order,
            files_by_limit=files - known - self.files_by_order,
            files_by_metadata=self.files_by_metadata,
            row_groups=RowGroups(all=self.groups, statistics=self.groups_by_statistics, index=self.groups_by_index),
            row_groups_read=self.groups_read,
            rows_read=self.rows_read,
            rows_merged=self.rows_merged,
            rows_returned=rows_returned,
            bytes_read=self.bytes_read,
        )


def row_groups_of(estimates: Iterable[ReadEstimate]) -> RowGroups:
    """The row groups of all files that will be opened."""
    parts = [part for each in estimates for part in each.parts]
    return RowGroups(
        all=sum(len(part.row_counts) for part in parts),
        statistics=sum(part.left_by_statistics for part in parts),
        index=sum(part.left_by_positions for part in parts),
    )
