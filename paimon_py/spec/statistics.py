"""Statistics of a table, as ANALYZE computes them: values.

Source: format.md §4.2; Java `Statistics`, `ColStats`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from paimon_py.html import facts, grid, note, page
from paimon_py.spec.types import Atomic, DataType, Root

_SIZES = {
    Root.TINYINT: 1, Root.BOOLEAN: 1, Root.SMALLINT: 2, Root.INT: 4, Root.FLOAT: 4, Root.DATE: 4, Root.TIME: 4,
    Root.BIGINT: 8, Root.DOUBLE: 8, Root.TIMESTAMP: 8, Root.TIMESTAMP_LTZ: 8, Root.DECIMAL: 16,
}  # fmt: skip
_LONG_DECIMAL = 18
_TEXTS = frozenset({Root.CHAR, Root.VARCHAR, Root.BINARY, Root.VARBINARY})


class ColumnStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of a column; None is unknown.

    Attributes:
        column_id: the column's field id.
        distinct_count: number of distinct values without NULL, estimated if there are many.
        min, max: bounds; a string if Python has no such value. paimon_py and Spark write none for strings and binaries.
        null_count: number of rows with NULL.
        avg_len, max_len: length of values in bytes, of strings in characters.
    """

    column_id: int
    distinct_count: int | None = None
    min: object = None
    max: object = None
    null_count: int | None = None
    avg_len: int | None = None
    max_len: int | None = None


class Statistics(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of a table at the time of its analysis; None is unknown.

    Attributes:
        snapshot_id: the snapshot that was analyzed.
        schema_id: the schema that the columns belong to.
        merged_record_count: the number of rows, as readers see them.
        merged_record_size: the size of the files in bytes, less the share of rows that later ones replace or delete.
        columns: column statistics by name.
    """

    snapshot_id: int
    schema_id: int
    merged_record_count: int | None = None
    merged_record_size: int | None = None
    columns: Mapping[str, ColumnStatistics] = msgspec.field(default_factory=dict)

    def _repr_html_(self) -> str:
        names = [name for name in ColumnStatistics.__struct_fields__ if name != "column_id"]
        rows = [
            (column, *(_text_or_empty(getattr(found, name)) for name in names))
            for column, found in self.columns.items()
        ]
        known = {name: getattr(self, name) for name in Statistics.__struct_fields__ if name != "columns"}
        return page("Statistics", facts(known), grid(("column", *names), rows) if rows else note("no column"))


def _text_or_empty(value: object) -> object:
    return "" if value is None else value


def can_be_analyzed(kind: DataType) -> bool:
    """Whether columns of a type have statistics: all except nested, VARIANT and BLOB types."""
    return isinstance(kind, Atomic) and (kind.root in _SIZES or kind.root in _TEXTS)


def has_bounds(kind: DataType) -> bool:
    """Whether statistics have bounds for columns of a type, as in Spark."""
    return isinstance(kind, Atomic) and kind.root in _SIZES


def size_of(kind: Atomic) -> int:
    """The size of a value of a fixed-size type in bytes, as Spark counts it."""
    if kind.root is Root.DECIMAL and (kind.precision or 0) <= _LONG_DECIMAL:
        return 8
    return _SIZES[kind.root]
