"""Rows and batches that a user has as Python objects → a reader: lists of mappings, generators of batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_schema, to_arrow_type
from paimon_py.codec.python_values import python_array
from paimon_py.codec.variant.arrays import of_encoded, of_value
from paimon_py.errors import SchemaError, UsageError
from paimon_py.expr.literal import is_na
from paimon_py.spec.layout import check_text
from paimon_py.spec.type_text import sql_type
from paimon_py.spec.types import Atomic, Field, Root
from paimon_py.write.convert import plan
from paimon_py.write.misfits import WIDEN, place_of
from paimon_py.write.steps import Refusal

Opener = Callable[[object], pa.RecordBatchReader]


_NOTHING = object()
_ERRORS = (pa.ArrowException, TypeError, ValueError, OverflowError)
"""What Arrow and `python_array` raise for values that a type cannot hold."""


def open_list(items: Sequence[object], fields: Sequence[Field], opener: Opener) -> pa.RecordBatchReader:
    """A reader over mappings from column names to values, or over things with an Arrow stream.

    Raises: UsageError, SchemaError as `rows_of` and `open_items`.
    """
    if items and isinstance(items[0], Mapping):
        return rows_of(items, fields).to_reader()
    return open_items(iter(items), fields, opener)


def rows_of(items: Sequence[object], fields: Sequence[Field]) -> pa.Table:
    """A table of mappings; a name that a mapping lacks is NULL there.

    Columns of the table that is written to are made in their type, where their values have one; what Arrow makes of
    the values else.

    Raises:
        UsageError: something is not a mapping from names.
        SchemaError: a column cannot take a value; the first one of each such column is named.
    """
    names: dict[str, None] = {}
    for at, item in enumerate(items):
        if not isinstance(item, Mapping) or not all(isinstance(name, str) for name in item):
            raise UsageError(f"rows are mappings from column names to values; row {at} is {item!r:.200}")
        names |= dict.fromkeys(item)
    if not names:
        raise UsageError("rows are mappings from column names to values; there is none with a value")
    for name in names:
        check_text("the name of a column", name)
    known = {field.name: field for field in fields}
    columns: dict[str, pa.Array] = {}
    problems: list[SchemaError] = []
    for name in names:
        values = [item.get(name) for item in items]  # type: ignore[attr-defined]
        try:
            columns[name] = column_of(name, [None if is_na(value) else value for value in values], known.get(name))
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
    """A reader over an iterator of things with an Arrow stream, such as batches; items are taken one after the other.

    Raises:
        UsageError: an item is not Arrow data, or has another schema than the first (then when the item is read).
    """
    first = next(items, _NOTHING)
    if first is _NOTHING:
        if not fields:
            raise UsageError("there is no item, so that nobody can say which columns there are")
        return to_arrow_schema(fields).empty_table().to_reader()
    if isinstance(first, Mapping):
        raise UsageError("rows as mappings are taken as a list: list(rows), or parts of the rows one after the other")
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
    """Values in the type of their column; or in the one that Arrow finds, so that others say what does not fit.

    Raises: SchemaError with the first value that the column cannot take, if Arrow finds no type either.
    """
    if field is None:
        try:
            return pa.array(values)
        except _ERRORS as error:
            raise SchemaError(f"column {name}: the values do not go together: {error}", fields=(name,)) from error
    kind = to_arrow_type(field.type)
    if isinstance(field.type, Atomic) and field.type.root is Root.VARIANT:
        return _variants(name, values)
    try:
        return python_array(values, kind)
    except _ERRORS as error:
        found = _infer(values)
        if found is not None:
            fits = not isinstance(plan(found.type, field.type, place_of(name)), Refusal)
            if fits or not pa.types.is_nested(kind):
                return found
        row, reason = _first_misfit(values, kind)
        way = "" if reason.startswith("pass ") else f"; {WIDEN}"
        raise SchemaError(
            f"column {name}: {values[row]!r:.200} (row {row}) does not fit {sql_type(field.type)}: {reason}{way}",
            fields=(name,),
        ) from error


def _variants(name: str, values: Sequence[object]) -> pa.Array:
    """Values of a VARIANT column: texts are JSON, anything else is what it is.

    Raises: SchemaError for the first one that no variant holds.
    """
    found = []
    for row, value in enumerate(values):
        try:
            found.append(of_value(value))
        except SchemaError as error:
            message = f"column {name}: {value!r:.200} (row {row}) is not a variant: {error}; texts are JSON here"
            raise SchemaError(message, fields=(name,)) from error
    return of_encoded(found)


def _infer(values: list[object]) -> pa.Array | None:
    """What Arrow makes of the values; None if that is nothing, or if it would cut off the nanoseconds of pandas."""
    try:
        return None if any(map(_has_nanoseconds, values)) else pa.array(values)
    except _ERRORS:
        return None


def _has_nanoseconds(value: object) -> bool:
    """Whether a time of pandas, alone or in lists and mappings, has digits that Python's times do not have."""
    if isinstance(value, Mapping):
        return any(map(_has_nanoseconds, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(_has_nanoseconds, value))
    return bool(getattr(value, "nanosecond", 0))


def _first_misfit(values: Sequence[object], kind: pa.DataType) -> tuple[int, str]:
    """The first row that does not fit, and why, of values that do not."""
    first, count, reason = 0, len(values), ""
    while count > 1:
        half = count // 2
        try:
            python_array(values[first : first + half], kind)
        except _ERRORS:
            count = half
        else:
            first, count = first + half, count - half
    try:
        python_array(values[first : first + 1], kind)
    except _ERRORS as error:
        reason = str(error)
    return first, reason
