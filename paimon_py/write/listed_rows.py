"""Converts rows and batches that are Python objects to a reader: lists of mappings, generators of batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal

import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_schema, to_arrow_type
from paimon_py.codec.python_values import python_array, shown_value
from paimon_py.codec.variant.arrays import of_encoded, of_value
from paimon_py.errors import SchemaError, UsageError
from paimon_py.expr.literal import is_na
from paimon_py.spec.layout import check_text
from paimon_py.spec.type_text import contains, sql_type
from paimon_py.spec.types import Atomic, DataType, Field, Root
from paimon_py.write.convert import plan
from paimon_py.write.misfits import WIDEN, place_of
from paimon_py.write.steps import Refusal

Opener = Callable[[object], pa.RecordBatchReader]


_NOTHING = object()
VALUE_ERRORS = (pa.ArrowException, TypeError, ValueError, OverflowError)
"""The exceptions of Arrow and `python_array` for values that a type cannot hold."""


def open_list(items: Sequence[object], fields: Sequence[Field], opener: Opener) -> pa.RecordBatchReader:
    """A reader over mappings from column names to values, or over objects with an Arrow stream.

    Raises: UsageError, SchemaError as `rows_of` and `open_items`.
    """
    if items and isinstance(items[0], Mapping):
        return rows_of(items, fields).to_reader()
    return open_items(iter(items), fields, opener)


def rows_of(items: Sequence[object], fields: Sequence[Field]) -> pa.Table:
    """A table of mappings; a missing name is NULL.

    Columns of the target table get their type there if their values fit; others get the type that Arrow infers.

    Raises:
        UsageError: an item is not a mapping from names.
        SchemaError: a column cannot hold a value; the first one of each such column is named.
    """
    names: dict[str, None] = {}
    for at, item in enumerate(items):
        if not isinstance(item, Mapping) or not all(isinstance(name, str) for name in item):
            raise UsageError(f"rows are mappings from column names to values; row {at} is {item!r:.200}")
        names |= dict.fromkeys(item)
    if not names:
        raise UsageError("rows are mappings from column names to values, and none of these rows has a value")
    for name in names:
        check_text("the name of a column", name)
    given = {name: [item.get(name) for item in items] for name in names}  # type: ignore[attr-defined]
    return columns_of({name: [None if is_na(value) else value for value in given[name]] for name in names}, fields)


def columns_of(given: Mapping[str, list[object] | pa.Array | pa.ChunkedArray], fields: Sequence[Field]) -> pa.Table:
    """A table of columns: Arrow's as they are, and lists of Python values as in `rows_of`.

    Raises: SchemaError: a column cannot hold a value; the first one of each such column is named.
    """
    known = {field.name: field for field in fields}
    columns: dict[str, pa.Array | pa.ChunkedArray] = {}
    problems: list[SchemaError] = []
    for name, values in given.items():
        try:
            columns[name] = column_of(name, values, known.get(name)) if isinstance(values, list) else values
        except SchemaError as error:
            problems.append(error)
    if len(problems) > 1:
        lines = "".join(f"\n  {error}" for error in problems)
        fields_of = tuple(name for error in problems for name in error.fields)
        raise SchemaError(f"values do not fit the table:{lines}", fields=fields_of)
    if problems:
        raise problems[0]
    return pa.table(columns)


def open_items(items: Iterator[object], fields: Sequence[Field], opener: Opener) -> pa.RecordBatchReader:
    """A reader over an iterator of objects with an Arrow stream, such as batches; items are consumed one by one.

    Raises:
        UsageError: an item is not Arrow data, or has a different schema from the first (when the item is read).
    """
    first = next(items, _NOTHING)
    if first is _NOTHING:
        if not fields:
            raise UsageError("there are no items, so the columns are unknown")
        return to_arrow_schema(fields).empty_table().to_reader()
    if isinstance(first, Mapping):
        raise UsageError("pass rows that are mappings as a list: list(rows), or in several lists")
    if first is None or isinstance(first, (str, bytes, bool, int, float, tuple, list)):
        raise UsageError(
            f"rows are mappings from column names to values, such as {{'id': 1}}, or Arrow data; the first item is "
            f"{first!r:.200}"
        )
    reader = opener(first)
    return pa.RecordBatchReader.from_batches(reader.schema, _batches(reader, items, opener))


def _batches(first: pa.RecordBatchReader, items: Iterator[object], opener: Opener) -> Iterator[pa.RecordBatch]:
    yield from first
    for number, item in enumerate(items, 1):
        reader = opener(item)
        if not reader.schema.equals(first.schema):
            raise UsageError(
                f"item {number} has the columns {_schema_text(reader.schema)}, those before had "
                f"{_schema_text(first.schema)}; give "
                "all items one schema"
            )
        yield from reader


def _schema_text(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)


def column_of(name: str, values: list[object], field: Field | None) -> pa.Array:
    """Values in the type of their column; or in the type that Arrow infers, so that later steps report misfits.

    Raises: SchemaError with the first value that does not fit the column, if Arrow infers no type either.
    """
    if field is None:
        try:
            return pa.array(values)
        except VALUE_ERRORS as error:
            raise SchemaError(f"column {name}: the values have incompatible types: {error}", fields=(name,)) from error
    kind = to_arrow_type(field.type)
    if isinstance(field.type, Atomic) and field.type.root is Root.VARIANT:
        return _variants(name, values)
    try:
        return python_array(values, kind)
    except VALUE_ERRORS as error:
        found = infer_column(values, field)
        if found is not None and (_fits(found, field) or not pa.types.is_nested(kind)):
            return found
        row, reason = _first_misfit(values, kind)
        way = "" if reason.startswith("pass ") else f"; {WIDEN}"
        raise SchemaError(
            f"column {name}: {shown_value(values[row])} (row {row}) does not fit {sql_type(field.type)}: {reason}{way}",
            fields=(name,),
        ) from error


def convert_values(values: Sequence[object], field: Field) -> pa.Array | None:
    """Values that `python_array` refuses, in a type whose columns the field accepts; None if there is none."""
    found = infer_column(values, field)
    return found if found is not None and _fits(found, field) else None


def infer_column(values: Sequence[object], field: Field) -> pa.Array | None:
    """The array that Arrow infers from the values of a column; None if it cannot, or would lose something."""
    if _has_times(field.type):  # Arrow drops the zone of a time
        return None
    if pa.types.is_floating(to_arrow_type(field.type)) and Decimal in map(type, values):  # columns cast no decimal
        return None
    return _infer(values)


def _fits(array: pa.Array, field: Field) -> bool:
    return not isinstance(plan(array.type, field.type, place_of(field.name)), Refusal)


def _has_times(kind: DataType) -> bool:
    return contains(kind, lambda part: isinstance(part, Atomic) and part.root is Root.TIME)


def _variants(name: str, values: Sequence[object]) -> pa.Array:
    """The values of a VARIANT column: strings are JSON; other values are used directly.

    Raises: SchemaError for the first value that a variant cannot hold.
    """
    found = []
    for row, value in enumerate(values):
        try:
            found.append(of_value(value))
        except SchemaError as error:
            message = f"column {name}: {value!r:.200} (row {row}) is not a variant: {error}; strings are parsed as JSON"
            raise SchemaError(message, fields=(name,)) from error
    return of_encoded(found)


def _infer(values: Sequence[object]) -> pa.Array | None:
    """The array that Arrow infers from the values; None if it cannot, or if it would lose something.

    Arrow truncates pandas nanoseconds, and takes times with and without a zone together for times in UTC.
    """
    try:
        if any(map(_has_nanoseconds, values)) or len(set(_zones(values))) > 1:
            return None
        return pa.array(values)
    except VALUE_ERRORS:
        return None


def _zones(values: Iterable[object]) -> Iterator[bool]:
    """Whether each time has a zone, also within lists and mappings."""
    for value in values:
        if isinstance(value, Mapping):
            yield from _zones(value.values())
        elif isinstance(value, (list, tuple)):
            yield from _zones(value)
        elif isinstance(value, datetime) and value == value:  # pandas.NaT is a datetime that differs from itself
            yield value.tzinfo is not None


def _has_nanoseconds(value: object) -> bool:
    """Whether a pandas time, alone or in lists and mappings, has digits that Python's times cannot represent."""
    if isinstance(value, Mapping):
        return any(map(_has_nanoseconds, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(_has_nanoseconds, value))
    return bool(getattr(value, "nanosecond", 0))


def _first_misfit(values: Sequence[object], kind: pa.DataType) -> tuple[int, str]:
    """The first row that does not fit, and the reason, for values that contain one."""
    first, count, reason = 0, len(values), ""
    while count > 1:
        half = count // 2
        try:
            python_array(values[first : first + half], kind)
        except VALUE_ERRORS:
            count = half
        else:
            first, count = first + half, count - half
    try:
        python_array(values[first : first + 1], kind)
    except VALUE_ERRORS as error:
        reason = str(error)
    return first, reason
