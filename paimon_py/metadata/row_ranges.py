"""Files of tables with `data-evolution.enabled` by the rows whose columns they hold.

Every file holds some columns of the rows with the ids from its first one on. Files of the same rows have the same range
of ids, and together they hold the rows.

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

from paimon_py.codec.columns import Ints, Mask
from paimon_py.codec.manifest.columns import ABSENT, EntryColumns
from paimon_py.errors import CorruptionError
from paimon_py.files.physical import DATA_EVOLUTION
from paimon_py.spec.schema import TableSchema

SchemaOf = Callable[[int], TableSchema]
_NONE = np.iinfo(np.int64).min


class RowRanges(msgspec.Struct, frozen=True):
    """Entries range by range: by partition, then by first id.

    `order`: numbers of entries; within a range the oldest file comes first, and of files of the same age that which
    comes last among the entries. `starts`: where each range begins in `order`. `counts`: how many files it has.
    """

    order: Ints
    starts: Ints
    counts: Ints

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def first_entries(self) -> Ints:
        """An entry of each range."""
        found: Ints = self.order[self.starts]
        return found

    def files(self) -> list[list[int]]:
        """The entries of each range."""
        return [part.tolist() for part in np.split(self.order, self.starts[1:])] if len(self) else []

    def of_entries(self, keep: Mask) -> Mask:
        """Which entries lie in ranges that are kept."""
        found: Mask = np.zeros(len(self.order), np.bool_)
        found[self.order] = np.repeat(keep, self.counts)
        return found


def row_ranges(entries: EntryColumns) -> RowRanges:
    """The ranges of live entries.

    Raises: CorruptionError for an entry without first row id, and for ranges that overlap without being the same.
    """
    first, last = entries.first_row_id, entries.first_row_id + entries.row_count - 1
    lacking = np.flatnonzero(first == ABSENT)
    if len(lacking):
        raise CorruptionError(
            f"data file {_name(entries, int(lacking[0]))} of a table with {DATA_EVOLUTION} has no first row id"
        )
    partition = entries.distinct("partition")[0]
    order = np.lexsort((-np.arange(len(entries)), entries.max_sequence, last, first, partition))
    keys = np.stack([partition, first, last])[:, order] if len(entries) else np.zeros((3, 0), np.int64)
    starts = np.flatnonzero((np.diff(keys, axis=1, prepend=_NONE) != 0).any(axis=0))
    ranges = keys[:, starts]
    wrong = np.flatnonzero((ranges[0, 1:] == ranges[0, :-1]) & (ranges[1, 1:] <= ranges[2, :-1]))
    if len(wrong):
        one, other = (int(order[starts[int(wrong[0]) + at]]) for at in (0, 1))
        raise CorruptionError(
            "files of the same rows must have row id ranges that are the same: "
            f"{_name(entries, one)} has rows {first[one]} to {last[one]}, "
            f"{_name(entries, other)} has rows {first[other]} to {last[other]}"
        )
    return RowRanges(order, starts, np.diff(np.append(starts, len(order))))


def holders(entries: EntryColumns, field_ids: Iterable[int], schema_of: SchemaOf) -> dict[int, Mask]:
    """Which files hold each of some columns.

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
    """The newest entry of each range that holds a column, −1 for none; and where several are equally new."""
    if not len(ranges):
        return np.zeros(0, np.int64), np.zeros(0, np.bool_)
    held = holds[ranges.order]
    places = np.maximum.reduceat(np.where(held, np.arange(len(held)), -1), ranges.starts)
    ages = np.where(held, entries.max_sequence[ranges.order], _NONE)
    youngest = np.repeat(np.maximum.reduceat(ages, ranges.starts), ranges.counts)
    tied: Mask = np.add.reduceat((held & (ages == youngest)).astype(np.int64), ranges.starts) > 1
    found: Ints = np.where(places >= 0, ranges.order[places], -1)
    return found, tied


def _name(entries: EntryColumns, at: int) -> str:
    return str(entries.take(np.array([at], np.int64)).names()[0])
