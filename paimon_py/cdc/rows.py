"""Changes of one table, in order → one Arrow table with the table's columns and `_row_kind`, and what does not fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from paimon_py.cdc.columns import MISFITS, build, misfits
from paimon_py.cdc.event import Change, SourceColumn
from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.spec.schema import ROW_KIND_COLUMN
from paimon_py.spec.types import Field


class ChangedRows(NamedTuple):
    """`data`: rows in the order of the changes. `bad`: reasons by the number of a change, which brings no row then."""

    data: pa.Table
    bad: dict[int, str]


def rows_of(fields: Sequence[Field], changes: Sequence[Change]) -> ChangedRows:
    """The rows of changes, whose columns the table has in types that hold theirs.

    A change with a value that does not fit, or with NULL in a NOT NULL column, brings none of its rows.
    """
    schema = to_arrow_schema(fields)
    schema = schema.append(pa.field(ROW_KIND_COLUMN, pa.string()))
    shapes: dict[tuple[SourceColumn, ...], list[int]] = {}
    for number, change in enumerate(changes):
        shapes.setdefault(change.columns, []).append(number)
    bad: dict[int, str] = {}
    tables, orders = [], []
    for columns, numbers in shapes.items():
        owners = [number for number in numbers for _ in changes[number].rows]
        rows = [row for number in numbers for row in changes[number].rows]
        part = _part(columns, rows, owners, schema, bad)
        tables.append(part)
        orders.extend(owners)
    joined = pa.concat_tables(tables) if tables else schema.empty_table()
    return ChangedRows(_in_order(joined, np.array(orders, dtype=np.int64), bad), bad)


def _part(
    columns: tuple[SourceColumn, ...], rows: list[tuple[str, dict[str, Any]]], owners: list[int], schema: pa.Schema,
    bad: dict[int, str],
) -> pa.Table:  # fmt: skip
    by_name = {column.name: column for column in columns}
    arrays = []
    for field in schema:
        if field.name == ROW_KIND_COLUMN:
            arrays.append(pa.array([kind for kind, _ in rows], pa.string()))
            continue
        column = by_name.get(field.name)
        if column is None:
            array = pa.nulls(len(rows), field.type)
        else:
            array = _array(column, [row.get(column.name) for _, row in rows], field.type, owners, bad)
        if not field.nullable and array.null_count:
            for place in np.flatnonzero(np.asarray(array.is_null())).tolist():
                bad.setdefault(owners[place], f"column {field.name!r} is NOT NULL and the event has no value for it")
        arrays.append(array)
    loose = pa.schema([field.with_nullable(True) for field in schema])
    return pa.Table.from_arrays(arrays, schema=loose)


def _array(
    column: SourceColumn, raw: list[Any], arrow: pa.DataType, owners: list[int], bad: dict[int, str]
) -> pa.Array:  # fmt: skip
    try:
        return build(column, raw).cast(arrow)
    except MISFITS:
        pass
    for place, reason in misfits(column, raw, arrow).items():
        bad.setdefault(owners[place], reason)
        raw[place] = None
    return build(column, raw).cast(arrow)


def _in_order(joined: pa.Table, owners: Any, bad: dict[int, str]) -> pa.Table:
    """ChangedRows by the number of their change (rows of one change keep their order), without those of bad changes."""
    order = np.argsort(owners, kind="stable")
    if bad:
        order = order[~np.isin(owners[order], list(bad))]
    return joined.take(pa.array(order))
