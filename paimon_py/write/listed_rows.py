"""Rows and batches that a user has as Python objects → a reader: lists of mappings, generators of batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.codec.python_values import python_array
from paimon_py.errors import SchemaError, UsageError
from paimon_py.expr.literal import is_na
from paimon_py.spec.layout import check_text
from paimon_py.spec.types import Field

Opener = Callable[[object], pa.RecordBatchReader]


_NOTHING = object()


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
        UsageError: something is no mapping from names.
        SchemaError: values of a column are of types that do not go together.
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
    kinds = {field.name: field.type for field in to_arrow_schema(fields)} if fields else {}
    columns = {name: _column(name, [item.get(name) for item in items], kinds) for name in names}  # type: ignore[attr-defined]
    return pa.table(columns)


def open_items(items: Iterator[object], fields: Sequence[Field], opener: Opener) -> pa.RecordBatchReader:
    """A reader over an iterator of things with an Arrow stream, such as batches; items are taken one after the other.

    Raises:
        UsageError: an item is no Arrow data, or has another schema than the first (then when the item is read).
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
                f"item {number} has the columns {_shown(reader.schema)}, those before had {_shown(first.schema)}; give "
                "all items one schema"
            )
        yield from reader


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)


def _column(name: str, values: list[object], kinds: Mapping[str, pa.DataType]) -> pa.Array:
    """Values in the type of their column; or in the one that Arrow finds, so that others say what does not fit."""
    kind = kinds.get(name)
    values = [None if is_na(value) else value for value in values]
    if kind is not None:
        try:
            return python_array(values, kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            kind = None
    try:
        return pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise SchemaError(f"column {name!r}: the values do not go together: {error}", fields=(name,)) from error
