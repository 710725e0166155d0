"""Indexes find every matching row, and no other where they are exact; damaged ones are refused."""

from __future__ import annotations

import datetime
import decimal
import random
import struct

import pyarrow as pa
import pytest

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.columns import slices_of
from paimon_py.codec.file_index import container
from paimon_py.codec.file_index.answer import Indexed, matching_rows, writer_of
from paimon_py.codec.file_index.xxhash import xxhash64
from paimon_py.errors import CorruptionError
from paimon_py.expr.arrow import evaluate
from paimon_py.expr.bind import bind
from paimon_py.expr.column import col
from paimon_py.spec.file_indexes import KINDS, allows
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Field

INTS = pa.array([1, 1, None, 5, -3], pa.int32())
POOLS = {
    "BOOLEAN": [True, False],
    "TINYINT": [-128, -1, 0, 1, 127],
    "SMALLINT": [-32768, -5, 0, 3, 32767],
    "INT": [-(2**31), -7, 0, 7, 2**31 - 1],
    "BIGINT": [-(2**63) + 1, -9, 0, 9, 2**63 - 1],
    "FLOAT": [float("nan"), float("inf"), -float("inf"), -0.0, 0.0, 1.5, -1.5],
    "DOUBLE": [float("nan"), float("inf"), -float("inf"), -0.0, 0.0, 1e300, -1e-300],
    "DECIMAL(9, 2)": [decimal.Decimal(n).scaleb(-2) for n in (-999999999, -1, 0, 1, 999999999)],
    "DATE": [datetime.date(1, 1, 1), datetime.date(1969, 12, 31), datetime.date(1970, 1, 1), datetime.date(9999, 12, 31)],
    "TIME(3)": [datetime.time(0), datetime.time(12, 30, 0, 5000), datetime.time(23, 59, 59, 999000)],
    "STRING": ["", "a", "ab", "b", "é", "水" * 12, "😀" * 40],
    "BYTES": [b"", b"\0", b"\xff", b"x" * 33],
    "TIMESTAMP(0)": [datetime.datetime(1901, 1, 1), datetime.datetime(1970, 1, 1), datetime.datetime(2024, 2, 29, 1, 2, 3)],
    "TIMESTAMP(6)": [datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), datetime.datetime(2024, 2, 29, 1, 2, 3, 4)],
    "TIMESTAMP(9)": [-1_000, -999, 0, 1, 999, 1_000, 5_000_000_001],
    "TIMESTAMP(3) WITH LOCAL TIME ZONE": [datetime.datetime(2024, 2, 29, 1, tzinfo=datetime.timezone.utc)],
}


class Memory:
    """Indexes of column c in memory."""

    path = "memory"

    def __init__(self, indexes):
        self.indexes = indexes

    def kinds(self, column):
        return list(self.indexes) if column == "c" else []

    def load(self, column, kind):
        return self.indexes[kind]


def made(kind, type_text, column, **options):
    writer = writer_of(kind, parse_type(type_text), {name.replace("_", "-"): text for name, text in options.items()})
    half = len(column) // 2
    writer.add(column.slice(0, half))
    writer.add(column.slice(half))
    return writer.finish()


def asked(indexes, type_text, column, predicate):
    field = Field(0, "c", parse_type(type_text))
    return matching_rows(bind(predicate, [field]), Indexed(Memory(indexes), {"c": field}, len(column)))


def literal(type_text, value):
    return pa.scalar(value, pa.timestamp("ns")) if type_text == "TIMESTAMP(9)" else value


def predicates(type_text, pool, dice):
    a, b = (literal(type_text, dice.choice(pool)) for _ in range(2))
    c = col("c")
    leaves = [c == a, c != a, c < a, c <= a, c > a, c >= a, c.isin([a, b]), c.not_in([a, b]), c.is_null(), c.is_not_null()]
    pairs = [(dice.choice(leaves), dice.choice(leaves)) for _ in range(2)]
    return [*leaves, *(x & y for x, y in pairs), *(x | y for x, y in pairs), ~(leaves[0] | leaves[2])]


@pytest.mark.parametrize("type_text", POOLS)
@pytest.mark.parametrize("seed", range(2))
def test_indexes_never_lose_a_row_and_exact_ones_find_no_other(type_text, seed):
    dice = random.Random(seed)
    type_ = parse_type(type_text)
    pool = POOLS[type_text]
    column = pa.array([dice.choice([*pool[seed:], None]) for _ in range(dice.choice([1, 40]))], to_arrow_type(type_))
    field = Field(0, "c", type_)
    indexes = {kind: made(kind, type_text, column) for kind in KINDS if allows(kind, type_)}
    assert indexes
    for predicate in predicates(type_text, pool, dice):
        bound = bind(predicate, [field])
        want = {row for row, hit in enumerate(evaluate(bound, {"c": column}).to_pylist()) if hit}
        for kind, data in indexes.items():
            rows = asked({kind: data}, type_text, column, predicate)
            assert rows is None or want <= set(rows), (kind, predicate)
            if kind != "bloom-filter" and type_text != "TIMESTAMP(9)":
                assert set(rows) == want, (kind, predicate)
        both = asked(indexes, type_text, column, predicate)
        assert both is None or want <= set(both)


def test_equal_values_of_a_bitmap_are_exact_in_both_versions_and_over_many_blocks():
    column = pa.array([f"v{number % 700:03}" for number in range(2000)] + [None])
    for options in ({"version": "1"}, {"version": "2"}, {"index_block_size": "64 b"}):
        data = made("bitmap", "STRING", column, **options)
        for number in (0, 1, 349, 699):
            rows = asked({"bitmap": data}, "STRING", column, col("c") == f"v{number:03}")
            assert set(rows) == set(range(number, 2000, 700)), options
        assert not asked({"bitmap": data}, "STRING", column, col("c") == "v7000")
        assert not asked({"bitmap": data}, "STRING", column, col("c") == "")
        assert set(asked({"bitmap": data}, "STRING", column, col("c").is_null())) == {2000}


def test_bytes_are_those_of_the_format_page():
    assert made("bloom-filter", "INT", INTS, items="10").hex() == "00000003800101214005"
    assert made("bloom-filter", "STRING", pa.array(["a", "b"]), items="10").hex() == "00000003082000700200"
    texts = pa.array(["a", "b", None, "a"])
    one = made("bitmap", "STRING", texts, version="1")
    assert one.hex().startswith("010000000400000002" "01fffffffd" "000000016100000000" "0000000162fffffffe")
    two = made("bitmap", "STRING", texts)
    assert two.hex().startswith("020000000400000002" "01fffffffd00000012" "00000001" "000000016100000000" "0000001e")
    assert made("range-bitmap", "INT", INTS).hex().startswith("00000015010000000500000003fffffffd0000000500000036")


def test_xxhash_of_known_texts():
    texts = pa.array(["", "a", "abc", "Nobody inspects the spammish repetition"])
    known = [0xEF46DB3751D8E999, 0xD24EC4F1A98C6E5B, 0x44BC2CF5AD770999, 0xFBCEA83C8A378BF1]
    assert xxhash64(slices_of(texts)).tolist() == known


def test_a_bloom_filter_without_nulls_only_excludes_values():
    column = pa.array(list(range(100)), pa.int64())
    data = made("bloom-filter", "BIGINT", column, items="100", fpp="0.001")
    assert asked({"bloom-filter": data}, "BIGINT", column, col("c") == 7) is None
    assert asked({"bloom-filter": data}, "BIGINT", column, col("c") < 7) is None
    missing = [asked({"bloom-filter": data}, "BIGINT", column, col("c") == number) for number in range(1000, 2000)]
    assert sum(rows is not None for rows in missing) > 950


def test_numbers_that_bit_slices_cannot_hold_leave_the_index_out():
    assert made("bsi", "BIGINT", pa.array([1, -(2**63)], pa.int64())) is None
    wide = pa.array([decimal.Decimal(10) ** 30, None], pa.decimal128(38, 0))
    assert made("bsi", "DECIMAL(38, 0)", wide) is None
    small = pa.array([decimal.Decimal(5), None, decimal.Decimal(-7)], pa.decimal128(38, 0))
    rows = asked({"bsi": made("bsi", "DECIMAL(38, 0)", small)}, "DECIMAL(38, 0)", small, col("c") < 6)
    assert set(rows) == {0, 2}


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_index_is_refused_or_still_an_index(kind):
    type_text = "INT" if kind == "bsi" else "STRING"
    dice = random.Random(7)
    values = [dice.randrange(40) for _ in range(300)]
    column = pa.array(values, pa.int32()) if kind == "bsi" else pa.array([f"s{value}" for value in values])
    data = made(kind, type_text, column, items="100")
    predicate = col("c") == (3 if kind == "bsi" else "s3")
    refused = 0
    for cut in range(0, len(data), max(1, len(data) // 150)):
        broken = bytearray(data)
        broken[cut] ^= 1 << dice.randrange(8)
        for damaged in (data[:cut], bytes(broken)):
            try:
                rows = asked({kind: damaged}, type_text, column, predicate)
            except CorruptionError as error:
                assert "memory" in str(error)
                refused += 1
            else:
                assert rows is None or not rows or rows.max() < 300
    assert refused > 20 or kind == "bloom-filter"


def test_an_index_of_other_rows_is_refused():
    data = made("bsi", "INT", INTS)
    with pytest.raises(CorruptionError, match="5 rows, the file has 4"):
        asked({"bsi": data}, "INT", INTS.slice(0, 4), col("c") == 1)


def test_a_container_keeps_every_name_and_index():
    indexes = {"a": {"bsi": b"12", "bitmap": b""}, "m[k]": {"bitmap": None}, "\0水😀": {"x": b"3"}}
    data = container.encode(indexes)
    assert container.decode(data, "here") == indexes
    assert data.startswith(bytes.fromhex("00054e4ed01a35ae00000001"))
    for cut in range(len(data)):
        with pytest.raises(CorruptionError):
            container.decode(data[:cut], "here")
    with pytest.raises(CorruptionError, match="version 2"):
        container.decode(data[:8] + struct.pack(">i", 2) + data[12:], "here")
