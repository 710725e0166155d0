"""Statistics files: JSON that stores the minimum and maximum of each column as strings.

Source: format.md §4.2; Java `Statistics`, `ColStats`, `TimestampSerializer`, `DecimalSerializer`, `DoubleSerializer`.
"""

from __future__ import annotations

import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from paimon_py.arguments import decoding_metadata
from paimon_py.codec.columns import numpy_values
from paimon_py.codec.date_pattern import DEFAULT_PATTERN
from paimon_py.codec.json import decode_object, pretty
from paimon_py.codec.partition_text import padded_timestamp, partition_texts, unit_nanos
from paimon_py.errors import CorruptionError
from paimon_py.spec.bounds import is_long
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.statistics import ColumnStatistics, Statistics
from paimon_py.spec.types import Atomic, DataType, Root

_EPOCH = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - TIMESTAMP has no zone
_TIMESTAMPS = frozenset({Root.TIMESTAMP, Root.TIMESTAMP_LTZ})
_NUMBERS = {
    "distinctCount": "distinct_count", "nullCount": "null_count", "avgLen": "avg_len", "maxLen": "max_len",
}  # fmt: skip


def bound_text(value: pa.Scalar, kind: DataType) -> str | None:
    """A bound of a column in Java's format; None for NULL."""
    if not value.is_valid:
        return None
    array = pa.array([value], value.type)
    if isinstance(kind, Atomic) and kind.root in _TIMESTAMPS:
        nanos = int(numpy_values(array)[0]) * unit_nanos(value.type)
        return padded_timestamp(nanos, kind.precision or 0)
    text: str | None = partition_texts(array, kind, legacy=True)[0].as_py()
    return text


def bound_value(text: str, kind: DataType) -> object:
    """The Python value of a bound; the string itself if Python has no such value.

    Raises: ValueError if the string is not valid for the type.
    """
    root = kind.root if isinstance(kind, Atomic) else None
    if root is Root.DECIMAL:
        return Decimal(text)
    if root in (Root.FLOAT, Root.DOUBLE):
        return float(text)
    if root in (Root.TINYINT, Root.SMALLINT, Root.INT, Root.BIGINT):
        return int(text)
    if root is Root.BOOLEAN:
        return text == "true"
    try:
        if root is Root.DATE:
            return (_EPOCH + datetime.timedelta(days=int(text))).date()
        if root is Root.TIME:
            return (_EPOCH + datetime.timedelta(milliseconds=int(text))).time()
        if root in _TIMESTAMPS:
            return _moment(text, zoned=root is Root.TIMESTAMP_LTZ)
    except OverflowError:
        pass
    return text


def _moment(text: str, *, zoned: bool) -> object:
    nanos = DEFAULT_PATTERN.nanos(text.replace("T", " "))
    if nanos is None:
        raise ValueError(f"{text!r} is not a time")
    if nanos % 1000:
        return text
    moment = _EPOCH + datetime.timedelta(microseconds=nanos // 1000)
    return moment.replace(tzinfo=datetime.timezone.utc) if zoned else moment


def statistics_to_json(statistics: Statistics) -> bytes:
    """The bytes of a statistics file, in Java's layout; bounds are given as strings (`bound_text`)."""
    columns: dict[str, dict[str, Any]] = {}
    for name, column in statistics.columns.items():
        parts = {
            "colId": column.column_id, "distinctCount": column.distinct_count, "min": column.min, "max": column.max,
            "nullCount": column.null_count, "avgLen": column.avg_len, "maxLen": column.max_len,
        }  # fmt: skip
        columns[name] = {key: value for key, value in parts.items() if value is not None}
    whole = {
        "snapshotId": statistics.snapshot_id,
        "schemaId": statistics.schema_id,
        "mergedRecordCount": statistics.merged_record_count,
        "mergedRecordSize": statistics.merged_record_size,
        "colStats": columns,
    }
    return pretty({key: value for key, value in whole.items() if value is not None})


def schema_id_of(data: bytes, path: str) -> int:
    """The id of the schema that a statistics file refers to. Raises: CorruptionError"""
    with decoding_metadata(path):
        return _number(decode_object(data, path), "schemaId", path)


def statistics_from_json(data: bytes, path: str, schema: TableSchema) -> Statistics:
    """The statistics in a file; `schema` is the schema that they refer to.

    Raises: CorruptionError: the file is not valid, or refers to columns that the schema does not have.
    """
    with decoding_metadata(path):
        whole = decode_object(data, path)
        found = whole.get("colStats") or {}
        if not isinstance(found, dict):
            raise CorruptionError(f"{path}: 'colStats' holds no columns", path=path)
        return Statistics(
            snapshot_id=_number(whole, "snapshotId", path),
            schema_id=_number(whole, "schemaId", path),
            merged_record_count=_find_number(whole, "mergedRecordCount", path),
            merged_record_size=_find_number(whole, "mergedRecordSize", path),
            columns={name: _column(name, column, path, schema) for name, column in found.items()},
        )


def _column(name: str, column: object, path: str, schema: TableSchema) -> ColumnStatistics:
    if not isinstance(column, dict) or name not in schema.names:
        message = f"{path}: {name!r} is not a column of schema {schema.id}, or has no statistics"
        raise CorruptionError(message, path=path)
    kind = schema.field(name).type
    return ColumnStatistics(
        column_id=_number(column, "colId", path),
        min=_parse_bound(column.get("min"), kind, path),
        max=_parse_bound(column.get("max"), kind, path),
        **{ours: _find_number(column, key, path) for key, ours in _NUMBERS.items()},
    )


def _parse_bound(text: object, kind: DataType, path: str) -> object:
    try:
        if text is None or isinstance(text, str):
            return None if text is None else bound_value(text, kind)
    except (ValueError, InvalidOperation) as error:
        raise CorruptionError(f"{path}: {text!r} is not a bound: {error}", path=path) from error
    raise CorruptionError(f"{path}: {text!r} is not a bound", path=path)


def _find_number(value: dict[str, Any], key: str, path: str) -> int | None:
    return None if value.get(key) is None else _number(value, key, path)


def _number(value: dict[str, Any], key: str, path: str) -> int:
    number = value.get(key)
    if isinstance(number, bool) or not isinstance(number, int) or not is_long(number):
        raise CorruptionError(f"{path}: {key!r} is {number!r}, not a number", path=path)
    return number
