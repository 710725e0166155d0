"""Values of columns in the forms of Iceberg metadata: plain values of Avro records, and bounds as bytes.

Source: docs/format.md §25.5; Java `IcebergConversions`; Apache Iceberg table specification, "Binary single-value
serialization".
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa

from paimon_py.codec.binary_row import decode
from paimon_py.formats.decimal_bytes import to_bytes
from paimon_py.iceberg.values import PartitionRange, PartitionValues
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.types import Atomic, Field, Root

_FORMATS = {Root.BOOLEAN: "<?", Root.BIGINT: "<q", Root.FLOAT: "<f", Root.DOUBLE: "<d"}
_FLOATS = frozenset((Root.FLOAT, Root.DOUBLE))
_STAMPS = frozenset((Root.TIMESTAMP, Root.TIMESTAMP_LTZ))
_TEXTS = frozenset((Root.CHAR, Root.VARCHAR))
_RAW = frozenset((Root.BINARY, Root.VARBINARY, Root.DECIMAL))


class FileBounds(msgspec.Struct, frozen=True):
    """The statistics of the columns of a file, by field id."""

    null_counts: dict[int, int]
    lower: dict[int, bytes]
    upper: dict[int, bytes]


def plain_values(column: pa.Array, kind: Atomic) -> list[Any]:
    """Values in Avro's form: integers for times and dates, the unscaled bytes of decimals; None for NULL."""
    if kind.root is Root.DECIMAL:
        column = to_bytes(column)
    elif kind.root in (Root.DATE, Root.TIME):
        column = column.cast(pa.int32())
    elif kind.root in _STAMPS:
        column = column.cast(pa.int64())
    found: list[Any] = column.to_pylist()
    return found


def partition_values(schema: TableSchema, partition: bytes) -> PartitionValues:
    """The values of a partition, a serialized BinaryRow."""
    fields = schema.partition_fields
    if not fields:
        return ()
    columns = decode([partition], [field.type for field in fields])
    return tuple(plain_values(column, _atomic(field))[0] for column, field in zip(columns, fields, strict=True))


def encode_bound(kind: Atomic, value: Any) -> bytes:
    """A plain value in Iceberg's binary form."""
    root = kind.root
    if root in _TEXTS:
        return str(value).encode()
    if root in _RAW:
        return bytes(value)
    if root in _FORMATS:
        return struct.pack(_FORMATS[root], value)
    if root is Root.TIME:
        return struct.pack("<q", value * 1000)
    if root in _STAMPS:
        return struct.pack("<q", value * 1000 if (kind.precision or 0) <= 3 else value)
    return struct.pack("<i", value)


def partition_ranges(schema: TableSchema, partitions: Sequence[PartitionValues]) -> tuple[PartitionRange, ...]:
    """The ranges of the partitions of a manifest for a manifest list, key by key."""
    return tuple(
        _range(_atomic(field), [values[place] for values in partitions])
        for place, field in enumerate(schema.partition_fields)
    )


def may_hold(ranges: Sequence[PartitionRange] | None, schema: TableSchema, partition: PartitionValues) -> bool:
    """Whether a manifest may contain files of a partition, by the ranges in the list."""
    fields = schema.partition_fields
    if ranges is None or len(ranges) != len(fields):
        return True
    found = zip(ranges, fields, partition, strict=True)
    return all(_may_hold(one, _atomic(field), value) for one, field, value in found)


def file_bounds(file: DataFile, schema: TableSchema) -> FileBounds:
    """The bounds of a file's columns; `schema`: the one that the file was written with.

    NaN, and what is not known, has no bounds; neither have columns with parts.
    """
    names = file.bounded_columns
    fields = schema.fields if names is None else tuple(schema.field(name) for name in names if name in schema.names)
    if names is not None and len(fields) < len(names):  # columns of the system are among them
        return FileBounds({}, {}, {})
    stats = file.value_stats
    counts = dict(zip((field.id for field in fields), stats.null_counts or (), strict=False))
    lower, upper = {}, {}
    if fields and int.from_bytes(stats.min_values[:4], "big") == len(fields):
        for field, low, high in _decode(fields, stats.min_values, stats.max_values):
            if low is not None and high is not None and not (_is_nan(low) or _is_nan(high)):
                lower[field.id], upper[field.id] = encode_bound(_atomic(field), low), encode_bound(_atomic(field), high)
    return FileBounds({number: count for number, count in counts.items() if count is not None}, lower, upper)


def _decode(fields: Sequence[Field], low: bytes, high: bytes) -> list[tuple[Field, Any, Any]]:
    places = [place for place, field in enumerate(fields) if isinstance(field.type, Atomic)]
    columns = decode([low, high], [field.type for field in fields], places)
    return [
        (fields[place], *plain_values(column, _atomic(fields[place])))
        for place, column in zip(places, columns, strict=True)
    ]


def _range(kind: Atomic, values: Sequence[Any]) -> PartitionRange:
    known = [value for value in values if value is not None]
    numbers = [value for value in known if not _is_nan(value)]
    ordered = sorted(numbers, key=lambda value: _order(kind, value))
    return PartitionRange(
        contains_null=len(known) < len(values),
        contains_nan=len(numbers) < len(known),
        lower=encode_bound(kind, ordered[0]) if ordered else None,
        upper=encode_bound(kind, ordered[-1]) if ordered else None,
    )


def _may_hold(found: PartitionRange, kind: Atomic, value: Any) -> bool:
    if value is None:
        return found.contains_null
    if _is_nan(value):
        return found.contains_nan is not False
    if found.lower is None or found.upper is None:
        return kind.root in _FLOATS and found.contains_nan is not False
    if kind.root in _FLOATS:
        return True
    place = _of_bound(kind, encode_bound(kind, value))
    return bool(_of_bound(kind, found.lower) <= place <= _of_bound(kind, found.upper))


def _order(kind: Atomic, value: Any) -> Any:
    """A key that sorts like the value."""
    if kind.root in _TEXTS:
        return str(value).encode()
    return int.from_bytes(value, "big", signed=True) if kind.root is Root.DECIMAL else value


def _of_bound(kind: Atomic, raw: bytes) -> Any:
    """A key that sorts like the value of a bound."""
    if kind.root in _TEXTS or kind.root in (Root.BINARY, Root.VARBINARY):
        return raw
    return int.from_bytes(raw, "big" if kind.root is Root.DECIMAL else "little", signed=kind.root is not Root.BOOLEAN)


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _atomic(field: Field) -> Atomic:
    assert isinstance(field.type, Atomic)
    return field.type
