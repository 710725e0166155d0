"""Deletes by key alone: the row of the key as it is then stands for them, from the table or from earlier events.

Such a delete cannot be written where columns are NOT NULL, and is older than every row where the table has a sequence
field. Where its key has no row there is nothing to delete. A row before an update that brings too little is left out:
the row after it stands for both.

Source: format.md §12.2; Java loses such deletes (`UserDefinedSeqComparator`), or refuses them (`NOT NULL` columns).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_py.cdc.rows import ChangedRows
from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.codec.columns import Ints, Mask, from_numpy
from paimon_py.lookup.keys import RequestedKeys
from paimon_py.lookup.lookups import Lookups
from paimon_py.lsm.order import dense_ranks
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.options import Options
from paimon_py.spec.schema import ROW_KIND_COLUMN, TableSchema


def fill_deletes(table: OpenTable, changed: ChangedRows) -> pa.Table:
    """The rows, with whole rows in the place of deletes that bring too little.

    Cost: one lookup of the distinct keys of such deletes; their old rows are in memory.
    Raises: as `Table.lookup`.
    """
    data, schema = changed.data, table.schema
    if not changed.by_key.any():
        return data
    kinds = np.array(data.column(ROW_KIND_COLUMN).to_pylist(), dtype=object)
    if (changed.by_key & (kinds == "-U")).any():
        stays = ~changed.by_key | (kinds != "-U")
        data, kinds, wanted = data.filter(pa.array(stays)), kinds[stays], changed.by_key[stays]
    else:
        wanted = changed.by_key
    if not wanted.any():
        return data
    numbers = RequestedKeys(schema, data.select(list(schema.primary_keys))).numbers
    concerned = np.flatnonzero(np.isin(numbers, numbers[wanted]))
    old = _rows_of_table(table, data.select(list(schema.primary_keys)).take(from_numpy(concerned, pa.int64())))
    loose = pa.schema([field.with_nullable(True) for field in to_arrow_schema(schema.fields)])
    rows = pa.concat_tables([part.select(schema.names).cast(loose) for part in (old, data)]).combine_chunks()
    keys = RequestedKeys(schema, rows.select(list(schema.primary_keys))).numbers
    found = _find_rows(_Versions(keys, _ranks(schema, rows), kinds, wanted, old.num_rows))
    picked = np.arange(old.num_rows, rows.num_rows)
    picked[wanted] = found
    kept = picked >= 0
    filled = rows.take(from_numpy(picked[kept], pa.int64()))
    return filled.append_column(ROW_KIND_COLUMN, pa.array(kinds[kept].tolist(), pa.string()))


class _Versions(NamedTuple):
    """Rows of the table, so many, and then those of changes, in their order.

    Attributes:
        keys: the number of each row's key.
        ranks: how new each row is by its sequence; of equal ones the later is newer.
        kinds, wanted: of the rows of changes alone.
    """

    keys: Ints
    ranks: Ints
    kinds: npt.NDArray[np.object_]
    wanted: Mask
    old: int


def _find_rows(versions: _Versions) -> Ints:
    """The row that stands for each wanted one: the newest before it that is there; −1 where none is."""
    newest: dict[int, int] = {int(key): place for place, key in enumerate(versions.keys[: versions.old])}
    is_there = dict.fromkeys(newest, True)
    asked = set(versions.keys[versions.old :][versions.wanted].tolist())
    found = []
    for number in np.flatnonzero(np.isin(versions.keys[versions.old :], list(asked))).tolist():
        place = versions.old + number
        key = int(versions.keys[place])
        last = newest.get(key)
        if versions.wanted[number]:
            found.append(last if last is not None and is_there[key] else -1)
            is_there[key] = False
        elif last is None or versions.ranks[place] >= versions.ranks[last]:
            newest[key], is_there[key] = place, versions.kinds[number] in ("+I", "+U")
    return np.array(found, np.int64)


def _ranks(schema: TableSchema, rows: pa.Table) -> Ints:
    """The ranks of rows by the sequence fields, oldest first; NULL is the oldest."""
    options = Options(schema.options)
    is_descending = options.get_enum("sequence.field.sort-order") == "descending"
    columns = [_rank(rows.column(name), is_descending) for name in options.get_list("sequence.field")]
    return dense_ranks(columns) if columns and rows.num_rows else np.zeros(rows.num_rows, np.int64)


def _rank(column: pa.ChunkedArray, is_descending: bool) -> pa.Array:
    ranks = dense_ranks([column])
    if is_descending:
        ranks = np.where(np.asarray(column.is_null()), 0, ranks.max() + 1 - ranks)
    return pa.array(ranks)


def _rows_of_table(table: OpenTable, keys: pa.Table) -> pa.Table:
    """The rows of the latest snapshot with some keys, of every level."""
    snapshot = table.root.snapshots.latest()
    if snapshot is None:
        return to_arrow_schema(table.schema.fields).empty_table()
    return Lookups(table.root, every_level=True).rows_at(snapshot, table.schema, keys)
