"""Types that do not keep every value: refused with what would happen, unless asked for."""

from __future__ import annotations

import decimal
import uuid

import pyarrow as pa
import pytest

from paimon_py import Catalog, Schema, SchemaError, UpdateColumnType
from paimon_py.spec.cast_rules import supports_cast, what_is_lost
from paimon_py.spec.type_text import parse_type

D = decimal.Decimal

KEPT = [
    ("TINYINT", "SMALLINT"), ("INT", "BIGINT"), ("INT", "DOUBLE"), ("BIGINT", "DOUBLE"), ("FLOAT", "DOUBLE"), ("INT", "STRING"),
    ("BIGINT", "DECIMAL(19, 0)"), ("INT", "DECIMAL(12, 2)"), ("DECIMAL(9, 2)", "DECIMAL(10, 3)"), ("DECIMAL(9, 2)", "DOUBLE"),
    ("BOOLEAN", "INT"), ("BOOLEAN", "STRING"), ("VARCHAR(3)", "VARCHAR(4)"), ("CHAR(3)", "STRING"), ("BINARY(2)", "BYTES"),
    ("VARCHAR(3)", "CHAR(3)"), ("DATE", "TIMESTAMP(3)"), ("TIMESTAMP(3)", "TIMESTAMP(6)"), ("TIMESTAMP(3)", "STRING"),
    ("TIMESTAMP(6)", "TIMESTAMP(6) WITH LOCAL TIME ZONE"), ("INT", "TIMESTAMP(3)"), ("DATE", "STRING"),
]  # fmt: skip

LOST = [
    ("BIGINT", "SMALLINT", pa.array([100000]), -31072, "wrap around"),
    ("INT", "TINYINT", pa.array([300], pa.int32()), 44, "wrap around"),
    ("DOUBLE", "INT", pa.array([1e10]), 2**31 - 1, "nearest"),
    ("DOUBLE", "FLOAT", pa.array([1e300]), float("inf"), "infinite"),
    ("DECIMAL(6, 3)", "DECIMAL(4, 2)", pa.array([D("123.456")]), None, "NULL"),
    ("DECIMAL(4, 3)", "DECIMAL(4, 2)", pa.array([D("1.456")]), D("1.46"), "rounded"),
    ("BIGINT", "DECIMAL(4, 2)", pa.array([12345]), None, "NULL"),
    ("DECIMAL(6, 1)", "TINYINT", pa.array([D("99999.9")]), -97, "wrap around"),
    ("STRING", "VARCHAR(3)", pa.array(["abcd"]), "abc", "longer values are truncated"),
    ("BYTES", "BINARY(3)", pa.array([b"abcd"]), b"abc", "longer values are truncated"),
    ("BIGINT", "VARCHAR(3)", pa.array([12345]), "123", "longer strings are truncated"),
    ("BIGINT", "BOOLEAN", pa.array([7]), True, "become true"),
    ("TIMESTAMP(6)", "BIGINT", pa.array([1234567], pa.timestamp("us")), 1, "whole seconds"),
    ("TIMESTAMP(6)", "TIMESTAMP(0)", pa.array([1234567], pa.timestamp("us")), None, "fractions of seconds are truncated"),
    ("TIMESTAMP(6)", "DATE", pa.array([5], pa.timestamp("us")), None, "the rest"),
    ("STRING", "INT", pa.array(["7"]), 7, "reads fail"),
]


@pytest.mark.parametrize(("source", "target"), KEPT)
def test_types_that_keep_every_value_need_no_leave(source, target):
    assert supports_cast(parse_type(source), parse_type(target), True)
    assert what_is_lost(parse_type(source), parse_type(target)) is None


@pytest.mark.parametrize(("source", "target", "values", "then", "words"), LOST, ids=[f"{a}-{b}" for a, b, *_ in LOST])
def test_types_that_lose_values_are_refused_with_what_would_happen(source, target, values, then, words):
    catalog = Catalog.open(f"memory://narrow-{uuid.uuid4()}")
    catalog.create_database("d")
    table = catalog.create_table("d.t", Schema([("v", source)]))
    table.write_arrow(pa.table({"v": values}))
    with pytest.raises(SchemaError, match=rf"(?s){words}.*allow_narrowing=True") as caught:
        table.alter(UpdateColumnType("v", target))
    assert caught.value.fields == ("v",)
    assert table.schema.id == 0 and table.to_arrow()["v"].to_pylist() == values.to_pylist()
    table.alter(UpdateColumnType("v", target, allow_narrowing=True))
    found = table.to_arrow()["v"].to_pylist()
    assert found == [then] if then is not None or "NULL" in words else found != values.to_pylist()


def test_texts_that_cannot_be_read_are_named_with_the_way_out():
    catalog = Catalog.open(f"memory://narrow-{uuid.uuid4()}")
    catalog.create_database("d")
    table = catalog.create_table("d.t", pa.schema([("v", pa.string())]))
    table.write_arrow(pa.table({"v": ["7", "abc"]}))
    table.alter(UpdateColumnType("v", "INT", allow_narrowing=True))
    with pytest.raises(SchemaError, match=r"'abc' cannot be read as INT.*UpdateColumnType"):
        table.to_arrow()
    table.alter(UpdateColumnType("v", "STRING"))
    assert table.to_arrow()["v"].to_pylist() == ["7", "abc"]
