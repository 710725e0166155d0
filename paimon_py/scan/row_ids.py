"""Reads rows by their ids, in the requested order.

Source: Java `ReadBuilder.withRowRanges`, which returns rows in file order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from paimon_py.codec.bitmaps import bitmap_of
from paimon_py.codec.columns import Ints, from_numpy, numpy_values
from paimon_py.errors import UsageError
from paimon_py.expr.arrow import Filter
from paimon_py.expr.column import col
from paimon_py.expr.predicate import Predicate
from paimon_py.expr.references import columns_of
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.schema import ROW_ID, SEQUENCE_NUMBER

RowIdList = Sequence[int] | range
_PIECE = 1 << 20
_WAY = "row_ids takes a list of whole numbers from 0, or a range"


def row_ids_of(ids: object, order_by: object = None) -> Ints:
    """The ids from a caller, in their order.

    Raises: UsageError for values other than integers from 0, and if another order is given.
    """
    if order_by is not None:
        raise UsageError("rows come in the order of row_ids: leave order_by out")
    if isinstance(ids, range):
        found = np.arange(ids.start, ids.stop, ids.step, dtype=np.int64)
    else:
        found = np.array(_as_ids(ids), np.int64)
    if len(found) and int(found.min()) < 0:
        raise UsageError(f"{_WAY}, not {int(found.min())}")
    return found


def _as_ids(ids: Any) -> list[int]:
    if isinstance(ids, (str, bytes)) or not hasattr(ids, "__iter__"):
        raise UsageError(f"{_WAY}, not {ids!r:.100}")
    values = [value.as_py() if isinstance(value, pa.Scalar) else value for value in ids]
    for value in values:
        if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= int(value) < 2**63:
            raise UsageError(f"{_WAY}, not {value!r:.100}")
    return [int(value) for value in values]


def names_row_ids(columns: Iterable[str] | None, where: Predicate | None) -> bool:
    """Whether columns or a condition use row-tracking columns; no ordinary column has these names."""
    named = {*(columns or ()), *(() if where is None else columns_of(where))}
    return bool({ROW_ID, SEQUENCE_NUMBER} & named)


def with_row_id(where: Predicate | None, ids: Ints) -> Predicate:
    """The condition combined with a test for the ids."""
    found = _has_row_id(ids)
    return found if where is None else where & found


def _has_row_id(ids: Ints) -> Predicate:
    if not len(ids):
        return col(ROW_ID) < 0
    is_run = len(ids) > 1 and int(ids.max()) - int(ids.min()) == len(ids) - 1 and len(np.unique(ids)) == len(ids)
    return col(ROW_ID).between(int(ids.min()), int(ids.max())) if is_run else col(ROW_ID).isin(ids.tolist())


def ids_from(file: DataFile) -> int | None:
    """The id of a file's first row, from which the others follow; None if ids are stored, or unknown."""
    return None if ROW_ID in (file.write_columns or ()) else file.first_row_id


def rows_with_ids(mask: Filter, first: int, count: int) -> BitMap:
    """The positions of rows with matching ids; ids are consecutive from `first`. `mask` uses only `_ROW_ID`.

    Cost: 10 ns per row.
    """
    found = BitMap()
    for start in range(0, count, _PIECE):
        ids = np.arange(first + start, first + min(start + _PIECE, count), dtype=np.int64)
        flags = numpy_values(mask(pa.RecordBatch.from_arrays([from_numpy(ids, pa.int64())], names=[ROW_ID])))
        if flags.all():
            found.add_range(start, start + len(ids))
        else:
            found |= bitmap_of(np.flatnonzero(flags) + start)
    return found


def in_order_of(ids: Ints, rows: pa.Table, names: Sequence[str], limit: int | None) -> Iterator[pa.RecordBatch]:
    """Rows in the order of the requested ids, with repetitions; ids without a row are skipped.

    Shapes: `rows` — `_ROW_ID` among the columns; out — the columns `names`.
    """
    found = numpy_values(rows.column(ROW_ID).combine_chunks())
    order = np.argsort(found, kind="stable")
    places = np.searchsorted(found[order], ids)
    there = places < len(found)
    there[there] = found[order][places[there]] == ids[there]
    chosen = from_numpy(order[places[there]][:limit], pa.int64())
    yield from rows.take(chosen).select(list(names)).to_batches()
