"""Partition values as the strings that name their directories, before escaping.

Source: format.md §1.2; Java `InternalRowPartitionComputer`, `DateTimeUtils`, `LocalDateTime.toString`.
"""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable

import pyarrow as pa

from paimon_py.codec.binary_row import decode_one
from paimon_py.codec.columns import numpy_values, text_array
from paimon_py.errors import UnsupportedError
from paimon_py.spec.layout import partition_path
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.type_text import sql_type
from paimon_py.spec.types import Atomic, DataType, Field, Root

__all__ = [
    "civil", "iso_local", "may_partition", "padded_timestamp", "partition_directory", "partition_texts", "unit_nanos",
]  # fmt: skip

_EPOCH_ORDINAL = datetime.date(1970, 1, 1).toordinal()
_DAYS_OF_400_YEARS = 146_097
_DAY_NANOS = 86_400_000_000_000
_UNIT_NANOS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_INTEGERS = frozenset({Root.TINYINT, Root.SMALLINT, Root.INT, Root.BIGINT})
_BITS = {Root.FLOAT: pa.int32(), Root.DOUBLE: pa.int64()}
"""Types by which floating-point values are compared bit by bit: −0.0 and 0.0 are two partitions."""
_CHARACTERS = frozenset({Root.CHAR, Root.VARCHAR})


def partition_texts(column: pa.Array, kind: DataType, *, legacy: bool) -> pa.StringArray:
    """The directory name of each value, null for null; `legacy` is the option `partition.legacy-name`.

    Cost: one conversion per distinct value.
    Raises:
        UnsupportedError: a type without a usable string form in Java (binary, nested), or whose form depends on the
            time zone of the Java process (TIMESTAMP WITH LOCAL TIME ZONE without legacy names).
    """
    if not isinstance(kind, Atomic):
        raise UnsupportedError(f"partitions by {sql_type(kind)}", feature="nested partition keys")
    if kind.root in _CHARACTERS:
        return column.cast(pa.string())
    bits = _BITS.get(kind.root)
    distinct = (column.view(bits) if bits else column).dictionary_encode()
    values = distinct.dictionary.view(column.type) if bits else distinct.dictionary
    texts = _texts(values, kind, legacy)
    return text_array(texts).take(distinct.indices)


def may_partition(kind: DataType) -> bool:
    """Whether values of a type have names of directories: not those of nested types, and not bytes."""
    return isinstance(kind, Atomic) and kind.root not in (Root.BINARY, Root.VARBINARY)


def partition_directory(schema: TableSchema, partition: bytes) -> str:
    """The directory of a partition (a serialized BinaryRow) relative to the table; "" without partition keys."""
    fields = schema.partition_fields
    if not fields:
        return ""
    options = Options(schema.options)
    legacy, default_name = options.get_bool("partition.legacy-name"), options.get_str("partition.default-name")
    return _directory(partition, fields, legacy, default_name)


@functools.lru_cache(maxsize=16_384)
def _directory(partition: bytes, fields: tuple[Field, ...], legacy: bool, default_name: str) -> str:
    columns = decode_one(partition, [field.type for field in fields])
    texts = [_text(column, field.type, legacy) for column, field in zip(columns, fields, strict=True)]
    return partition_path([field.name for field in fields], texts, default_name)


def _text(column: pa.Array, kind: DataType, legacy: bool) -> str | None:
    """See `partition_texts`: of the only value, which numbers, booleans and times need not be encoded for."""
    if isinstance(kind, Atomic) and kind.root not in _CHARACTERS and not column.null_count:
        return _texts(column, kind, legacy)[0]
    text: str | None = partition_texts(column, kind, legacy=legacy)[0].as_py()
    return text


def _texts(values: pa.Array, kind: Atomic, legacy: bool) -> list[str]:
    root = kind.root
    if root is Root.DECIMAL:
        return [format(value, "f") for value in values.to_pylist()]
    render = _renderer(values.type, kind, legacy)
    return [render(value) for value in numpy_values(values).tolist()]


def _renderer(arrow_type: pa.DataType, kind: Atomic, legacy: bool) -> Callable[..., str]:
    root, precision = kind.root, kind.precision or 0
    if root in _INTEGERS:
        return str
    if root is Root.BOOLEAN:
        return lambda value: "true" if value else "false"
    if root in (Root.FLOAT, Root.DOUBLE):
        from paimon_py.codec.java_float import java_float

        return lambda value: java_float(value, single=root is Root.FLOAT)
    if root is Root.DATE:
        return str if legacy else lambda days: _plain_date(*civil(days))
    if root is Root.TIME:
        return str if legacy else lambda millis: _time_text(millis, precision)
    if root is Root.TIMESTAMP or (root is Root.TIMESTAMP_LTZ and legacy):
        nanos = unit_nanos(arrow_type)
        if legacy:
            return lambda value: iso_local(value * nanos)
        return lambda value: padded_timestamp(value * nanos, precision)
    if root is Root.TIMESTAMP_LTZ:
        raise UnsupportedError(
            "partitions by TIMESTAMP WITH LOCAL TIME ZONE with 'partition.legacy-name' = 'false': their names depend "
            "on the time zone of each Java process",
            feature="local time zone partition names",
        )
    raise UnsupportedError(f"partitions by {root.value}", feature=f"{root.value} partition keys")


def iso_local(nanos: int) -> str:
    """`LocalDateTime.toString` of nanoseconds since 1970: seconds and fraction only if needed."""
    days, clock = divmod(nanos, _DAY_NANOS)
    year, month, day = civil(days)
    seconds, fraction = divmod(clock, 1_000_000_000)
    text = f"{_iso_year(year)}-{month:02d}-{day:02d}T{seconds // 3600:02d}:{seconds // 60 % 60:02d}"
    if seconds % 60 or fraction:
        text += f":{seconds % 60:02d}"
    if fraction:
        digits = f"{fraction:09d}"
        while digits.endswith("000"):
            digits = digits[:-3]
        text += f".{digits}"
    return text


def unit_nanos(kind: pa.DataType) -> int:
    """The nanoseconds per unit of a timestamp type."""
    return _UNIT_NANOS[kind.unit]


def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of a number of days since 1970 in the proleptic Gregorian calendar, for any year."""
    cycles, rest = divmod(days + _EPOCH_ORDINAL - 1, _DAYS_OF_400_YEARS)
    date = datetime.date.fromordinal(rest + 1)
    return date.year + 400 * cycles, date.month, date.day


def _iso_year(year: int) -> str:
    if year > 9999:
        return f"+{year}"
    return f"{year:04d}" if year >= 0 else f"-{-year:04d}"


def _plain_date(year: int, month: int, day: int) -> str:
    return f"{year % 10_000:04d}-{month:02d}-{day:02d}"


def _time_text(millis: int, precision: int) -> str:
    seconds, fraction = divmod(millis % 86_400_000, 1_000)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    if precision == 0:
        return text
    digits = f"{fraction:03d}".rstrip("0") or "0"
    return f"{text}.{digits[:precision]}"


def padded_timestamp(nanos: int, precision: int) -> str:
    """Nanoseconds since 1970 as `2024-01-02 03:04:05.678`, with at least `precision` digits after the point."""
    days, clock = divmod(nanos, _DAY_NANOS)
    seconds, fraction = divmod(clock, 1_000_000_000)
    digits = f"{fraction:09d}"
    while len(digits) > precision and digits.endswith("0"):
        digits = digits[:-1]
    text = f"{_plain_date(*civil(days))} {seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{digits}" if digits else text
