"""Files of tables with `data-evolution.enabled`, by the rows whose columns they contain.

Every file contains some columns of the rows with consecutive ids from its first one on. Files of the same rows have the
same range of ids, and together they contain the rows.

    file    rows     columns    newest file of: a, b   c
    f1      0 – 99   a, b, c                    f1     f3
    f3      0 – 99   c
    f2    100 – 149  a, b, c                    f2     f2

Source: format.md §24; Java `DataEvolutionSplitGenerator`, `RangeHelper`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.columns import Ints, Mask, numpy_values
from paimon_py.codec.manifest.columns import ABSENT, EntryColumns
from paimon_py.errors import CorruptionError
from paimon_py.files.physical import DATA_EVOLUTION
from paimon_py.spec.schema import TableSchema

SchemaOf = Callable[[int], TableSchema]
_NONE = np.iinfo(np.int64).min


class RowRanges(msgspec.Struct, frozen=True):
    """Entries grouped by range: ordered by partition, then by first id.

    `order`: numbers of entries; within a range the oldest file comes first, and of files of the same age the one that
    comes last among the entries. `starts`: the start of each range in `order`. `counts`: the number of files of each.
    """

    order: Ints
    starts: Ints
    counts: Ints

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def first_entries(self) -> Ints:
        """One entry of each range."""
        found: Ints = self.order[self.starts]
        return found

    def files(self) -> list[list[int]]:
        """The entries of each range."""
        return [part.tolist() for part in np.split(self.order, self.starts[1:])] if len(self) else []

    def of_entries(self, keep: Mask) -> Mask:
        """A mask of the entries in the ranges to keep."""
        found: Mask = np.zeros(len(self.order), np.bool_)
        found[self.order] = np.repeat(keep, self.counts)
        return found


def row_ranges(entries: EntryColumns) -> RowRanges:
    """The ranges of live entries. Files with separate columns come last in the range that they belong to.

    Raises: CorruptionError for an entry without first row id, for ranges that overlap without being equal, and for
        separate columns of rows that no other file contains.
    """
    first, last = entries.first_row_id, entries.first_row_id + entries.row_count - 1
    lacking = np.flatnonzero(first == ABSENT)
    if len(lacking):
        raise CorruptionError(
            f"data file {_name(entries, int(lacking[0]))} of a table with {DATA_EVOLUTION} has no first row id"
        )
    if not len(entries):
        return RowRanges(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))
    partition, apart = entries.distinct("partition")[0], files_apart(entries)
    whole = np.flatnonzero(~apart)
    keys = np.stack([partition, first, last])
    order = whole[np.lexsort((-whole, entries.max_sequence[whole], last[whole], first[whole], partition[whole]))]
    starts = np.flatnonzero((np.diff(keys[:, order], axis=1, prepend=_NONE) != 0).any(axis=0))
    ranges = keys[:, order[starts]]
    wrong = np.flatnonzero((ranges[0, 1:] == ranges[0, :-1]) & (ranges[1, 1:] <= ranges[2, :-1]))
    if len(wrong):
        one, other = (int(order[starts[int(wrong[0]) + at]]) for at in (0, 1))
        raise CorruptionError(
            "files of the same rows must have equal row id ranges: "
            f"{_name(entries, one)} has rows {first[one]} to {last[one]}, "
            f"{_name(entries, other)} has rows {first[other]} to {last[other]}"
        )
    counts = np.diff(np.append(starts, len(order)))
    if len(whole) == len(entries):
        return RowRanges(order, starts, counts)
    beside = np.flatnonzero(apart)
    places = _places_in(ranges, keys[:, beside])
    if len(lost := np.flatnonzero(places < 0)):
        at = int(beside[lost[0]])
        raise CorruptionError(
            f"{_name(entries, at)} has columns of the rows {first[at]} to {last[at]}, which no other file holds"
        )
    owners = np.concatenate([np.repeat(np.arange(len(starts)), counts), places])
    every = np.concatenate([order, beside])
    age = np.concatenate([np.zeros(len(order), np.int64), entries.max_sequence[beside]])
    sides = np.concatenate([np.zeros(len(order), np.int64), np.ones(len(beside), np.int64)])
    found = np.lexsort((age, sides, owners))
    sizes = np.bincount(owners, minlength=len(starts))
    return RowRanges(every[found], np.cumsum(sizes) - sizes, sizes)


def files_apart(entries: EntryColumns) -> Mask:
    """A mask of the files with separate columns."""
    names = entries.names()
    found = pc.match_substring_regex(names, r"\.blob$|\.vector\.[^.]+$")
    apart: Mask = numpy_values(found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found)
    return apart


def rows_of_files(entries: EntryColumns) -> Ints:
    """The number of rows of each file; 0 if a file contains columns of rows that another one of the files contains.

    Of files with the same row ids, the first one counts. Files with separate columns do not count.
    """
    counts: Ints = entries.row_count.copy()
    tracked = np.flatnonzero(entries.first_row_id != ABSENT)
    if not len(tracked):
        return counts
    whole = tracked[~files_apart(entries)[tracked]]
    ranges = np.stack([entries.first_row_id, entries.row_count])[:, whole]
    counts[tracked] = 0
    first = whole[np.unique(ranges, axis=1, return_index=True)[1]]
    counts[first] = entries.row_count[first]
    return counts


def distinct_ids(entries: EntryColumns) -> int:
    """The number of row ids in files that all have a first row id."""
    if not len(entries):
        return 0
    order = np.argsort(entries.first_row_id, kind="stable")
    first = entries.first_row_id[order]
    ends = np.maximum.accumulate(first + entries.row_count[order])
    known = np.append(_NONE, ends[:-1])
    return int(np.clip(ends - np.maximum(first, known), 0, None).sum())


def _places_in(ranges: Ints, keys: Ints) -> Ints:
    """The range that contains each of some parts of ranges: rows of partition, first and last id; −1 for none."""
    first = np.lexsort((ranges[1], ranges[0]))
    found: Ints = np.full(keys.shape[1], -1, np.int64)
    for partition in np.unique(keys[0]).tolist():
        own = first[ranges[0, first] == partition]
        rows = np.flatnonzero(keys[0] == partition)
        at = np.searchsorted(ranges[1, own], keys[1, rows], side="right") - 1
        inside = (at >= 0) & (keys[2, rows] <= ranges[2, own[at]]) if len(own) else np.zeros(len(rows), np.bool_)
        found[rows[inside]] = own[at[inside]]
    return found


def holders(entries: EntryColumns, field_ids: Iterable[int], schema_of: SchemaOf) -> dict[int, Mask]:
    """Masks of the files that contain each of some columns.

    Cost: one pass per distinct (schema, list of columns).
    Raises: KeyError if a file names a column that its schema does not have.
    """
    codes, lists = entries.lists("write_columns")
    shapes = np.stack([entries.schema_id, codes])
    found = {field_id: np.zeros(len(entries), np.bool_) for field_id in field_ids}
    for number, code in np.unique(shapes, axis=1).T.tolist():
        written = schema_of(number)
        names = lists[code]
        ids = {field.id for field in written.fields if names is None or field.name in names}
        rows = (shapes[0] == number) & (shapes[1] == code)
        for field_id, mask in found.items():
            if field_id in ids:
                mask[rows] = True
    return found


def newest(entries: EntryColumns, ranges: RowRanges, holds: Mask) -> tuple[Ints, Mask]:
    """The newest entry of each range that contains a column, −1 for none; and a mask of the ranges where it is unknown,
    because several are equally new, or the column is stored separately.
    """
    if not len(ranges):
        return np.zeros(0, np.int64), np.zeros(0, np.bool_)
    held = holds[ranges.order]
    places = np.maximum.reduceat(np.where(held, np.arange(len(held)), -1), ranges.starts)
    ages = np.where(held, entries.max_sequence[ranges.order], _NONE)
    youngest = np.repeat(np.maximum.reduceat(ages, ranges.starts), ranges.counts)
    tied: Mask = np.add.reduceat((held & (ages == youngest)).astype(np.int64), ranges.starts) > 1
    found: Ints = np.where(places >= 0, ranges.order[places], -1)
    if held.any() and (apart := files_apart(entries)).any():
        tied |= np.add.reduceat((held & apart[ranges.order]).astype(np.int64), ranges.starts) > 0
    return found, tied


def _name(entries: EntryColumns, at: int) -> str:
    return str(entries.take(np.array([at], np.int64)).names()[0])
