"""Rows of every type, made from a seed."""

from __future__ import annotations

import datetime
import decimal
import io
import random

import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.formats.base import ReadSettings, WriteSettings
from paimon_py.formats.registry import format_of
from paimon_py.spec.file_rules import PACKAGED_FORMATS, packaged_problem
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import ArrayType, Field, MapType, MultisetType, RowType

ATOMIC = (
    "INT NOT NULL",
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "CHAR(8)",
    "VARCHAR(20)",
    "STRING",
    "BINARY(3)",
    "BYTES",
    "DECIMAL(1, 0)",
    "DECIMAL(9, 2)",
    "DECIMAL(18, 4)",
    "DECIMAL(20, 3)",
    "DECIMAL(38, 10)",
    "DATE",
    "TIME(0)",
    "TIME(3)",
)
NESTED = (
    "ARRAY<INT>",
    "ARRAY<STRING NOT NULL>",
    "MAP<STRING, INT>",
    "MAP<INT, STRING>",
    "MAP<BIGINT, ARRAY<DECIMAL(30, 5)>>",
    "MAP<DATE, MAP<STRING, DOUBLE>>",
    "ARRAY<MAP<STRING, ARRAY<INT>>>",
    "MULTISET<STRING>",
)
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def fields_of(*types: str) -> list[Field]:
    return [Field(number, f"c{number}", parse_type(text)) for number, text in enumerate(types)]


def every_type(format_name: str) -> list[Field]:
    """One column of every type that the format holds."""
    digits = 6 if format_name == "avro" else 9
    stamps = [f"TIMESTAMP({p})" for p in range(digits + 1)]
    zoned = [f"TIMESTAMP({p}) WITH LOCAL TIME ZONE" for p in range(digits + 1)]
    others = () if format_name == "avro" else ("MULTISET<INT>",)
    others += () if format_name == "orc" else ("VECTOR<FLOAT, 3>", "VECTOR<BOOLEAN, 1>", "VECTOR<BIGINT NOT NULL, 2>")
    fields = fields_of(*ATOMIC, *stamps, *zoned, f"ARRAY<TIMESTAMP({digits})>", *NESTED, *others)
    fields = [field for field in fields if holds(format_name, field)]
    n = len(fields)
    inner = RowType((Field(n + 3, "z", parse_type("STRING")), Field(n + 4, "w", parse_type("DECIMAL(5, 1)"))))
    row = RowType((Field(n + 1, "x", parse_type(f"TIMESTAMP({digits})")), Field(n + 2, "y", ArrayType(inner))))
    day = RowType((Field(n + 8, "day", parse_type("DATE")),))
    deep = RowType(
        (Field(n + 6, "u", parse_type("INT")), Field(n + 7, "v", MapType(parse_type("STRING NOT NULL"), day)))
    )
    nested = [Field(n, "row", row), Field(n + 5, "deep", ArrayType(deep))]
    return [*fields, *(field for field in nested if holds(format_name, field))]


def holds(format_name: str, field: Field) -> bool:
    return format_name not in PACKAGED_FORMATS or packaged_problem(format_name, field.type) is None


def make_batch(fields: list[Field], format_name: str, seed: int, rows: int) -> pa.RecordBatch:
    source = random.Random(seed)
    schema = to_arrow_schema(fields)
    columns = []
    for field, arrow in zip(fields, schema, strict=True):
        values = [_value(arrow.type, source, format_name, arrow.nullable) for _ in range(rows)]
        if isinstance(field.type, MultisetType):
            values = [v if v is None else [(key, abs(count or 0) % 5 + 1) for key, count in v] for v in values]
        columns.append(pa.array(values, arrow.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def write(format_name, fields, batches, **settings):
    """The bytes of a file and the bounds of its columns."""
    sink = io.BytesIO()
    writer = format_of(format_name).create(sink, fields, WriteSettings(**settings))
    for batch in batches:
        writer.write(batch)
    bounds = writer.close()
    return sink.getvalue(), bounds


def open_bytes(format_name, data, fields, path="/t/f", settings=None):
    return format_of(format_name).open(io.BytesIO(data), path, fields, len(data), settings or ReadSettings())


def batches_of(opened, columns, **options):
    """The rows of an open file in batches, without their positions."""
    return (batch for _, batch in opened.positioned_batches(columns, **options))


def read(format_name, data, fields, columns=None, **options):
    names = [field.name for field in fields] if columns is None else columns
    opened = open_bytes(format_name, data, fields)
    batches = list(batches_of(opened, names, batch_rows=options.pop("batch_rows", 1000), **options))
    opened.close()
    return pa.Table.from_batches(batches) if batches else None


def rows_of(table):
    """Rows as text, so that NaN equals itself and nanoseconds survive."""
    return [repr(row) for row in zip(*map(list, table.columns), strict=True)]


def _value(kind, source, format_name, nullable):
    if nullable and source.random() < 0.2:
        return None
    if pa.types.is_list(kind):
        count = source.choice((0, 1, 3))
        return [_value(kind.value_type, source, format_name, kind.value_field.nullable) for _ in range(count)]
    if pa.types.is_fixed_size_list(kind):
        return [_value(kind.value_type, source, format_name, False) for _ in range(kind.list_size)]
    if pa.types.is_struct(kind):
        return {field.name: _value(field.type, source, format_name, field.nullable) for field in kind}
    if pa.types.is_map(kind):
        keys = {_key(kind.key_type, source, format_name): None for _ in range(source.choice((0, 1, 3)))}
        return [(key, _value(kind.item_type, source, format_name, kind.item_field.nullable)) for key in keys]
    return _atomic(kind, source, format_name)


def _key(kind, source, format_name):
    return _atomic(kind, source, format_name)


def _atomic(kind, source, format_name):
    if pa.types.is_boolean(kind):
        return source.random() < 0.5
    if pa.types.is_integer(kind):
        bits = kind.bit_width - 1
        return source.choice((-(2**bits), 2**bits - 1, 0, source.randint(-100, 100)))
    if pa.types.is_floating(kind):
        return source.choice((float("nan"), float("inf"), float("-inf"), 0.0, -0.0, source.randint(-1000, 1000) / 4))
    if pa.types.is_string(kind):
        return source.choice(("", "a", "日本語😀", "x" * 7, "abc\0d", f"word{source.randint(0, 9)}"))
    if pa.types.is_binary(kind):
        return source.choice((b"", b"\x00\xff", b"abc"))
    if pa.types.is_decimal(kind):
        most = 10**kind.precision - 1
        value = source.choice((most, -most, 0, -1, -128, 127, 128, -129, 255, 256, source.randint(-most, most)))
        return decimal.Decimal(f"{max(-most, min(most, value))}E-{kind.scale}")
    if pa.types.is_date(kind):
        return source.choice((datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(1969, 12, 31)))
    if pa.types.is_time(kind):
        return source.choice((datetime.time(0), datetime.time(23, 59, 59, 999_000), datetime.time(12, 34, 56)))
    return _timestamp(kind, source, format_name)


def _timestamp(kind, source, format_name):
    per_second = _PER_SECOND[kind.unit]
    first, last = -62_135_596_800, 253_402_300_799
    if format_name == "orc":
        if source.random() < 0.3:
            return pa.scalar(-source.randint(1, 10**9) * per_second, pa.int64()).cast(kind)
        first, last = 0, 2**62 // 10**9
    if kind.unit == "ns":
        first, last = max(first, -9 * 10**9), min(last, 9 * 10**9)
    seconds = source.choice((first, last, 0, source.randint(first, last)))
    return pa.scalar(seconds * per_second + source.randint(0, per_second - 1), pa.int64()).cast(kind)
