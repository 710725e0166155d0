"""Converts the ordered changes of one table to one Arrow table with its columns and `_row_kind`; reports misfits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.cdc.columns import MISFITS, build
from paimon_py.cdc.computed import compute
from paimon_py.cdc.event import Change, SourceColumn
from paimon_py.cdc.fitting import BRINGS_BEFORE, Fitting
from paimon_py.cdc.opening import KindedRows
from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.codec.columns import Ints, Mask
from paimon_py.files.casts.cast import cast
from paimon_py.spec.cast_rules import is_text
from paimon_py.spec.schema import ROW_KIND_COLUMN
from paimon_py.spec.types import DataType, Field


class ChangedRows(NamedTuple):
    """Rows of changes.

    Attributes:
        data: the rows, in the order of the changes.
        bad: reasons by the number of a change, which brings no row then.
        by_key: rows of `data` with too few values besides their key; `fill_deletes` replaces them.
    """

    data: pa.Table
    bad: dict[int, str]
    by_key: Mask


def rows_of(fields: Sequence[Field], changes: Sequence[Change]) -> ChangedRows:
    """The rows of changes; the table has all their columns, in types that can hold them.

    A change with a value that does not fit, or with NULL in a NOT NULL column, contributes no rows.
    """
    shapes: dict[tuple[SourceColumn, ...], ShapedRows] = {}
    for number, change in enumerate(changes):
        if change.columns not in shapes:
            shapes[change.columns] = ShapedRows(change.columns)
        shapes[change.columns].add(number, change)
    return rows_for(fields, list(shapes.values()), {}, None)


def rows_for(
    fields: Sequence[Field], parts: Sequence[ShapedRows], bad: dict[int, str], asks: Fitting | None
) -> ChangedRows:  # fmt: skip
    """The rows as in `rows_of`, in the order of their changes, without changes with a row that the table would lose.

    `bad`: reasons by the number of a change that brings no row; those of others are added.
    """
    schema = to_arrow_schema(fields)
    schema = schema.append(pa.field(ROW_KIND_COLUMN, pa.string()))
    types = {field.name: field.type for field in fields}
    for part in parts:
        for number, reason in part.lacking.items():
            bad.setdefault(number, reason)
    tables, lacking = [], []
    for part in parts:
        table, by_key = _part(part, types, schema, asks, bad)
        tables.append(table)
        lacking.append(by_key)
    joined = pa.concat_tables(tables).combine_chunks() if tables else schema.empty_table()
    order = _in_order(np.concatenate([part.owners for part in parts] or [[]]).astype(np.int64), bad)
    by_key = np.concatenate(lacking) if lacking else np.zeros(0, dtype=bool)
    if order is None:
        return ChangedRows(joined, bad, by_key)
    return ChangedRows(joined.take(pa.array(order)), bad, by_key[order])


class ShapedRows:
    """Rows of changes that have the same columns. A value that does not fit becomes NULL, and is remembered.

    Attributes:
        columns: the columns of the changes, and by their names.
        kinds: the kind of each row.
        owners: the number of each row's change.
        alike: the numbers of changes with the same table, key and kinds of rows, with a change that is such, without
            values.
        lacking: the reason why a change has no value for some columns, by its number.
    """

    def __init__(self, columns: tuple[SourceColumn, ...]) -> None:
        self.columns, self.named = columns, {column.name: column for column in columns}
        self.kinds: list[str] = []
        self.owners: list[int] = []
        self.alike: dict[tuple[object, ...], tuple[Change, list[int]]] = {}
        self.lacking: dict[int, str] = {}
        self._rows: list[dict[str, Any]] = []
        self._built: dict[str, pa.Array] = {}
        self._misfits: dict[str, list[tuple[int, str]]] = {}

    def __len__(self) -> int:
        return len(self.kinds)

    def add(self, number: int, change: Change) -> None:
        """Add the rows of a change, which `columns` describe."""
        kinds = [kind for kind, _ in change.rows]
        self._rows += [row for _, row in change.rows]
        self.kinds += kinds
        self.owners += [number] * len(kinds)
        alike = (change.table, tuple(change.keys), *kinds)
        if alike not in self.alike:
            rows: KindedRows = tuple((kind, {}) for kind in kinds)
            self.alike[alike] = msgspec.structs.replace(change, rows=rows, origin={}, lacking={}), []
        self.alike[alike][1].append(number)
        if change.lacking:
            self.lacking[number] = next(iter(change.lacking.values()))

    def build(self) -> None:
        """Convert all values, and drop those of the events; no rows can be added then."""
        for name in self.named:
            self.of(name)
        self._rows = []

    def of(self, name: str) -> pa.Array:
        """The values in the column's type in the event."""
        if name not in self._built:
            column = self.named[name]
            misfits = self._misfits[name] = []
            self._built[name] = self._compute(column, misfits) if column.computed else self._raw(column, misfits)
        return self._built[name]

    def misfits_of(self, name: str) -> list[tuple[int, str]]:
        """The rows whose event has no value of the column's type, by position, with the reasons."""
        self.of(name)
        how = self.named[name].computed
        return [*(self.misfits_of(how.field) if how is not None and how.field else ()), *self._misfits[name]]

    def fit(self, name: str, kind: DataType, arrow: pa.DataType) -> tuple[pa.Array, list[tuple[int, str]]]:
        """The values in the column's type in the table, and the rows whose value does not fit, with the reasons."""
        given, values = self.named[name].type, self.of(name)
        misfits = self.misfits_of(name)
        if values.type == arrow:
            return values, misfits
        if is_text(kind) and not is_text(given):
            return _each(lambda part: cast(part, given, kind, column=name), values, name, misfits), misfits
        return _each(lambda part: part.cast(arrow), values, name, misfits), misfits

    def _raw(self, column: SourceColumn, misfits: list[tuple[int, str]]) -> pa.Array:
        name = column.name
        raw = [row.get(name) for row in self._rows]
        return _each(lambda part: build(column, part), raw, name, misfits)

    def _compute(self, column: SourceColumn, misfits: list[tuple[int, str]]) -> pa.Array:
        how = column.computed
        assert how is not None
        if not how.field:
            return compute(how, pa.nulls(len(self.kinds)), column.type)[0]
        source = self.named[how.field].type
        return _each(lambda part: compute(how, part, source)[0], self.of(how.field), column.name, misfits)


def _each(make: Callable[[Any], pa.Array], values: Any, name: str, misfits: list[tuple[int, str]]) -> pa.Array:
    """The converted values, NULL for those that do not fit, whose positions and reasons are added to `misfits`."""
    try:
        return make(values)
    except MISFITS:
        pass
    fits = np.ones(len(values), dtype=bool)
    for place, error in _misfits(make, values):
        shown = repr(values[place].as_py() if isinstance(values, pa.Array) else values[place])
        cut = shown if len(shown) <= 60 else shown[:57] + "..."
        misfits.append((place, f"column {name!r}: {cut} is not a value of its type: {error}"))
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


def _part(
    values: ShapedRows, types: dict[str, DataType], schema: pa.Schema, asks: Fitting | None, bad: dict[int, str]
) -> tuple[pa.Table, Mask]:
    """The rows in the types of the table, and a mask of those that have too few values besides their key."""
    arrays = []
    kinds, by_key = values.kinds, np.zeros(len(values), dtype=bool)

    def refuse(place: int, reason: str) -> None:
        bad.setdefault(values.owners[place], reason)

    for field in schema:
        if field.name == ROW_KIND_COLUMN:
            arrays.append(pa.array(kinds, pa.string()))
            continue
        if field.name in values.named:
            array, misfits = values.fit(field.name, types[field.name], field.type)
            for place, reason in misfits:
                refuse(place, reason)
        else:
            array = pa.nulls(len(values), field.type)
        if not field.nullable and array.null_count:
            for place in np.flatnonzero(np.asarray(array.is_null())).tolist():
                if asks is not None and asks.may_complete(kinds[place], field.name):
                    by_key[place] = True
                    continue
                way = f"; {BRINGS_BEFORE}" if kinds[place] in ("-D", "-U") else ""
                refuse(place, f"column {field.name!r} is NOT NULL and the event has no value for it{way}")
        arrays.append(array)
    if asks is not None:
        for place, reason in asks.find_lost(kinds, dict(zip(schema.names, arrays, strict=True))).items():
            if asks.may_complete(kinds[place]):
                by_key[place] = True
            else:
                refuse(place, reason)
    loose = pa.schema([field.with_nullable(True) for field in schema])
    return pa.Table.from_arrays(arrays, schema=loose), by_key


def _in_order(owners: Ints, bad: dict[int, str]) -> Ints | None:
    """Rows by the number of their change (rows of one change keep their order), without those of bad changes.

    None if that are all rows as they are.
    """
    if not bad and bool((owners[1:] >= owners[:-1]).all()):
        return None
    order = np.argsort(owners, kind="stable")
    return order[~np.isin(owners[order], list(bad))] if bad else order
