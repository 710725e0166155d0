"""Checks of files that add columns to existing rows, in tables with `data-evolution.enabled`. Pure.

Files of the same rows must have the same range of ids. A range that others have compacted no longer exists: a file with
columns of its rows would make the table unreadable. Writers check concurrent changes to the same rows and columns
themselves (`rows.evaluation`); the rules here keep the table readable.

Source: format.md §24; Java `ConflictDetection.checkRowIdExistence`, `checkRowIdRangeConflicts`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from paimon_py.commit.conflicts import Conflict
from paimon_py.commit.snapshot_delta import SnapshotDelta
from paimon_py.spec.data_file import DataFile, ManifestEntry
from paimon_py.spec.manifest import IndexEntry
from paimon_py.spec.schema import TableSchema

_Range = tuple[bytes, int, int]


def column_conflict(
    schema: TableSchema, part: SnapshotDelta, live: Iterable[ManifestEntry], index: Sequence[IndexEntry]
) -> Conflict | None:
    """A conflict if files that add columns to existing rows do not fit the table's files and indexes.

    `live`: the live files of the buckets that are written to; `index`: the index files of the table.
    """
    added = [entry for entry in part.adds if entry.file.first_row_id is not None]
    if not added:
        return None
    ranges = {_range(entry) for entry in live if not entry.file.is_apart}
    indexed = {(one.partition, one.global_index.field_id) for one in index if one.global_index is not None}
    columns: dict[_Range, set[str]] = {}
    for entry in added:
        name, names = entry.file.name, set(entry.file.write_columns or schema.names)
        apart = entry.file.is_apart
        if not (_lies_inside(_range(entry), ranges) if apart else _range(entry) in ranges):
            return Conflict(f"the rows of file {name}, which adds columns, are no longer a range of the table")
        others = columns.setdefault(_range(entry), set())
        if others & names:
            return Conflict(f"column {min(others & names)} of the rows of file {name} would be written twice")
        others |= names
        found = sorted(one for one in names if (entry.partition, schema.field(one).id) in indexed)
        if found:
            return Conflict(
                f"column {found[0]} has an index over row ids, which would return its old values: drop the index first "
                "(option 'global-index.column-update-action' of Java)"
            )
    return None


def compaction_conflict(part: SnapshotDelta, after: Iterable[ManifestEntry]) -> Conflict | None:
    """A conflict if a compaction joins files to which others have added columns, or outputs other rows than its input.

    `after`: the files of the bucket after publication.
    """
    if not any(entry.file.first_row_id is not None for entry in part.adds):
        return None
    if _spans(part.adds) != _spans(part.deletes):
        return Conflict("the compaction outputs other rows than its files contain")
    plain = (entry for entry in after if entry.file.first_row_id is not None and not entry.file.is_apart)
    ranges = sorted({_range(entry) for entry in plain})
    for one, other in itertools.pairwise(ranges):
        if one[0] == other[0] and other[1] < one[1] + one[2]:
            first, last = other[1], other[1] + other[2] - 1
            return Conflict(f"others wrote columns of the rows {first} to {last} before their compaction was committed")
    return None


def _spans(entries: Iterable[ManifestEntry]) -> list[tuple[bytes, int, int]]:
    """The row ids of files in the fewest ranges: partition, first id, and the id after the last."""
    found: list[tuple[bytes, int, int]] = []
    for partition, first, count in sorted({_range(entry) for entry in entries}):
        if found and found[-1][0] == partition and first <= found[-1][2]:
            found[-1] = (partition, found[-1][1], max(found[-1][2], first + count))
        else:
            found.append((partition, first, first + count))
    return found


def _lies_inside(part: _Range, ranges: Iterable[_Range]) -> bool:
    """Whether one range contains all rows of a part."""
    partition, first, count = part
    return any(one[0] == partition and one[1] <= first and first + count <= one[1] + one[2] for one in ranges)


def _range(entry: ManifestEntry) -> _Range:
    """Partition, first row id and number of rows."""
    file: DataFile = entry.file
    return entry.partition, -1 if file.first_row_id is None else file.first_row_id, file.row_count
