"""Converts the ordered changes of one table to one Arrow table with its columns and `_row_kind`; reports misfits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.cdc.columns import MISFITS, build
from paimon_py.cdc.computed import compute
from paimon_py.cdc.event import Change, SourceColumn
from paimon_py.cdc.fitting import BRINGS_BEFORE, Fitting
from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.codec.columns import Mask
from paimon_py.files.casts.cast import cast
from paimon_py.spec.cast_rules import is_text
from paimon_py.spec.schema import ROW_KIND_COLUMN
from paimon_py.spec.types import DataType, Field


class ChangedRows(NamedTuple):
    """Rows of changes.

    Attributes:
        data: the rows, in the order of the changes.
        bad: reasons by the number of a change, which brings no row then.
        by_key: which rows of `data` bring too little beside their key: `fill_deletes` says what stands for them.
    """

    data: pa.Table
    bad: dict[int, str]
    by_key: Mask


def rows_of(fields: Sequence[Field], changes: Sequence[Change]) -> ChangedRows:
    """The rows of changes; the table has all their columns, in types that can hold them.

    A change with a value that does not fit, or with NULL in a NOT NULL column, contributes no rows.
    """
    return rows_for(fields, changes, None)


def rows_for(fields: Sequence[Field], changes: Sequence[Change], asks: Fitting | None) -> ChangedRows:
    """The rows as in `rows_of`, without changes that contain a row which the table would lose."""
    schema = to_arrow_schema(fields)
    schema = schema.append(pa.field(ROW_KIND_COLUMN, pa.string()))
    shapes: dict[tuple[SourceColumn, ...], list[int]] = {}
    for number, change in enumerate(changes):
        shapes.setdefault(change.columns, []).append(number)
    bad = {number: next(iter(change.lacking.values())) for number, change in enumerate(changes) if change.lacking}
    tables, orders, lacking = [], [], []
    for columns, numbers in shapes.items():
        owners = [number for number in numbers for _ in changes[number].rows]
        kinds, rows = zip(*[row for number in numbers for row in changes[number].rows], strict=True)
        values = _Values(columns, kinds, rows, owners, bad)
        tables.append(_part(values, {field.name: field.type for field in fields}, schema, asks))
        orders.extend(owners)
        lacking.append(values.by_key)
    joined = pa.concat_tables(tables) if tables else schema.empty_table()
    order = _in_order(np.array(orders, dtype=np.int64), bad)
    by_key = np.concatenate(lacking)[order] if lacking else np.zeros(0, dtype=bool)
    return ChangedRows(joined.take(pa.array(order)), bad, by_key)


class _Values:
    """The columns of rows of one shape; a value that does not fit becomes NULL and marks its change as bad."""

    def __init__(
        self, columns: tuple[SourceColumn, ...], kinds: Sequence[str], rows: Sequence[dict[str, Any]],
        owners: list[int], bad: dict[int, str],
    ) -> None:  # fmt: skip
        self.columns = {column.name: column for column in columns}
        self.kinds, self.rows, self._owners, self._bad = kinds, rows, owners, bad
        self._built: dict[str, pa.Array] = {}
        self.by_key: Mask = np.zeros(len(rows), dtype=bool)

    def of(self, name: str) -> pa.Array:
        """The values in the column's type in the event."""
        if name not in self._built:
            column = self.columns[name]
            self._built[name] = self._compute(column) if column.computed else self._raw(column)
        return self._built[name]

    def fit(self, name: str, kind: DataType, arrow: pa.DataType) -> pa.Array:
        """The values in the column's type in the table."""
        given, values = self.columns[name].type, self.of(name)
        if values.type == arrow:
            return values
        if is_text(kind) and not is_text(given):
            return self._each(lambda part: cast(part, given, kind, column=name), values, name)
        return self._each(lambda part: part.cast(arrow), values, name)

    def refuse(self, place: int, reason: str) -> None:
        """Mark the change of the row as bad."""
        self._bad.setdefault(self._owners[place], reason)

    def _raw(self, column: SourceColumn) -> pa.Array:
        name = column.name
        raw = [row.get(name) for row in self.rows]
        return self._each(lambda part: build(column, part), raw, column.name)

    def _compute(self, column: SourceColumn) -> pa.Array:
        how = column.computed
        assert how is not None
        if not how.field:
            return compute(how, pa.nulls(len(self.rows)), column.type)[0]
        source = self.columns[how.field].type
        return self._each(lambda part: compute(how, part, source)[0], self.of(how.field), column.name)

    def _each(self, make: Callable[[Any], pa.Array], values: Any, name: str) -> pa.Array:
        try:
            return make(values)
        except MISFITS:
            pass
        fits = np.ones(len(values), dtype=bool)
        for place, error in _misfits(make, values):
            shown = repr(values[place].as_py() if isinstance(values, pa.Array) else values[place])
            cut = shown if len(shown) <= 60 else shown[:57] + "..."
            self.refuse(place, f"column {name!r}: {cut} is not a value of its type: {error}")
            fits[place] = False
        if isinstance(values, pa.Array):
            return make(pc.if_else(pa.array(fits), values, pa.scalar(None, values.type)))
        return make([value if fit else None for value, fit in zip(values, fits, strict=True)])


def _misfits(make: Callable[[Any], pa.Array], values: Any) -> Iterator[tuple[int, Exception]]:
    """The values that do not fit, by position, with the errors. Cost: a part of values is tried again in halves."""
    parts = [(0, len(values))]
    while parts:
        start, end = parts.pop()
        try:
            make(values[start:end])
        except MISFITS as error:
            if end - start == 1:
                yield start, error
                continue
            middle = (start + end) // 2
            parts += [(middle, end), (start, middle)]


def _part(values: _Values, types: dict[str, DataType], schema: pa.Schema, asks: Fitting | None) -> pa.Table:
    arrays = []
    kinds = values.kinds
    for field in schema:
        if field.name == ROW_KIND_COLUMN:
            arrays.append(pa.array(kinds, pa.string()))
            continue
        if field.name in values.columns:
            array = values.fit(field.name, types[field.name], field.type)
        else:
            array = pa.nulls(len(values.rows), field.type)
        if not field.nullable and array.null_count:
            for place in np.flatnonzero(np.asarray(array.is_null())).tolist():
                if asks is not None and asks.may_complete(kinds[place], field.name):
                    values.by_key[place] = True
                    continue
                way = f"; {BRINGS_BEFORE}" if kinds[place] in ("-D", "-U") else ""
                values.refuse(place, f"column {field.name!r} is NOT NULL and the event has no value for it{way}")
        arrays.append(array)
    if asks is not None:
        for place, reason in asks.find_lost(kinds, dict(zip(schema.names, arrays, strict=True))).items():
            if asks.may_complete(kinds[place]):
                values.by_key[place] = True
            else:
                values.refuse(place, reason)
    loose = pa.schema([field.with_nullable(True) for field in schema])
    return pa.Table.from_arrays(arrays, schema=loose)


def _in_order(owners: Any, bad: dict[int, str]) -> Any:
    """Rows by the number of their change (rows of one change keep their order), without those of bad changes."""
    order = np.argsort(owners, kind="stable")
    return order[~np.isin(owners[order], list(bad))] if bad else order
