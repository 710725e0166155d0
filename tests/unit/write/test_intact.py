"""Arrays whose values are none of their Arrow type: every writer refuses them, and nothing is left behind."""

from __future__ import annotations

import datetime
import struct

import pyarrow as pa
import pytest

from paimon_py import Catalog, Schema, SchemaError


def raw(kind, *buffers, count=3):
    return pa.Array.from_buffers(kind, count, [None, *map(pa.py_buffer, buffers)])


def numbers(code, *values):
    return struct.pack(f"<{len(values)}{code}", *values)


def array(kind):
    return {"type": "ARRAY", "element": kind}


def row(kind):
    return {"type": "ROW", "fields": [{"id": 9, "name": "x", "type": kind}]}


TEXTS = raw(pa.string(), numbers("i", 0, 1, 3, 4), b"ab\xffz")
LATE = raw(pa.time32("ms"), numbers("i", 0, 86_400_000, -1))
WIDE = raw(pa.decimal128(5, 2), numbers("q", 1, 0, 99_999_999, 0, 1, 0))
ONES = pa.array(["x", "y", "z"])
BROKEN = {
    "texts": ("STRING", TEXTS),
    "large texts": ("STRING", raw(pa.large_string(), numbers("q", 0, 1, 3, 4), b"ab\xffz")),
    "texts in lists": (array("STRING"), pa.ListArray.from_arrays([0, 1, 2, 3], TEXTS)),
    "texts in rows": (row("STRING"), pa.StructArray.from_arrays([TEXTS], names=["x"])),
    "texts in maps": ({"type": "MAP", "key": "STRING NOT NULL", "value": "STRING"}, pa.MapArray.from_arrays([0, 1, 2, 3], ONES, TEXTS)),
    "texts of a dictionary": ("STRING", pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), TEXTS)),
    "places beyond a dictionary": ("STRING", pa.DictionaryArray.from_arrays(pa.array([0, 7, 0]), ONES, safe=False)),
    "places beyond the texts": ("STRING", raw(pa.string(), numbers("i", 0, 1_000_000, 1, 1), b"ab")),
    "places beyond the items": (
        array("INT"),
        pa.Array.from_buffers(pa.list_(pa.int32()), 3, [None, pa.py_buffer(numbers("i", 0, 1_000_000, 1, 1))], children=[pa.array([1], pa.int32())]),
    ),
    "times": ("TIME(3)", LATE),
    "times in lists": (array("TIME(3)"), pa.FixedSizeListArray.from_arrays(LATE, 1)),
    "decimals": ("DECIMAL(5, 2)", WIDE),
    "decimals of a wider column": ("DECIMAL(20, 2)", WIDE),
    "days": ("DATE", raw(pa.date64(), numbers("q", 0, 1, 0))),
}  # fmt: skip
DOORS = {
    "append": ({}, lambda table, data: table.write_arrow(data)),
    "avro": ({"options": {"file.format": "avro"}}, lambda table, data: table.write_arrow(data)),
    "orc": ({"options": {"file.format": "orc"}}, lambda table, data: table.write_arrow(data)),
    "keyed": ({"primary_key": ["k"], "options": {"bucket": "1"}}, lambda table, data: table.write_arrow(data)),
    "upsert": ({"primary_key": ["k"], "options": {"bucket": "1"}}, lambda table, data: table.upsert(data)),
    "merge": ({}, lambda table, data: table.merge(data, on=["k"], when_not_matched_insert=True)),
}  # fmt: skip


@pytest.fixture
def catalog(tmp_path):
    made = Catalog.open(str(tmp_path))
    made.create_database("db")
    return made


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("what", BROKEN)
def test_values_outside_their_type_are_refused(catalog, what, door):
    kind, values = BROKEN[what]
    more, write = DOORS[door]
    table = catalog.create_table("db.t", Schema([("k", "INT NOT NULL"), ("c", kind)]), **more)
    with pytest.raises(SchemaError, match="column c (is not valid as|contains bytes that are not UTF-8)") as error:
        write(table, pa.table({"k": pa.array(range(3), pa.int32()), "c": values}))
    assert error.value.fields == ("c",)
    assert table.refresh().snapshot() is None
    assert table.remove_orphans(older_than=0, dry_run=True).files == 0


def test_the_row_is_named(catalog):
    table = catalog.create_table("db.t", Schema([("c", "STRING")]))
    good = pa.array([str(number) for number in range(1000)])
    with pytest.raises(SchemaError, match=r"row 1001\)"):
        table.write_arrow(pa.table({"c": pa.chunked_array([good, TEXTS])}))


def test_values_below_null_do_not_count(catalog):
    table = catalog.create_table("db.t", Schema([("c", row("TIME(3)"))]))
    table.write_arrow(pa.table({"c": pa.StructArray.from_arrays([LATE], names=["x"], mask=pa.array([False, True, True]))}))
    assert table.to_arrow()["c"].to_pylist() == [{"x": datetime.time(0)}, None, None]


def test_lists_without_places_are_taken(catalog):
    """As the JVM sends lists that are all empty: the inner list has no offsets at all."""
    inner = pa.Array.from_buffers(pa.list_(pa.string()), 0, [None, pa.py_buffer(b"")], children=[pa.array([], pa.string())])
    outer = pa.Array.from_buffers(pa.list_(inner.type), 2, [None, pa.py_buffer(numbers("i", 0, 0, 0))], children=[inner])
    table = catalog.create_table("db.t", Schema([("c", array(array("STRING")))]))
    table.write_arrow(pa.table({"c": outer}))
    assert table.to_arrow()["c"].to_pylist() == [[], []]


@pytest.mark.parametrize(("kind", "value"), [("TIME(3)", datetime.time(1, tzinfo=datetime.timezone.utc)), (array("TIME(3)"), [datetime.time(1, tzinfo=datetime.timezone.utc)])])
def test_a_time_with_a_zone_is_refused_in_rows(catalog, kind, value):
    table = catalog.create_table("db.t", Schema([("c", kind)]))
    with pytest.raises(SchemaError, match="without a time zone"):
        table.write_arrow([{"c": value}])


def test_pandas_periods_are_not_numbers(catalog):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"c": pandas.period_range("2024", periods=1, freq="M")})
    table = catalog.create_table("db.t", Schema([("c", "BIGINT")]))
    with pytest.raises(SchemaError, match="to_timestamp"):
        table.write_arrow(frame)
    with pytest.raises(SchemaError, match="no type"):
        catalog.create_table("db.u", frame)


def test_runs_are_a_schema_as_dictionaries_are(catalog):
    data = pa.table({"c": pa.RunEndEncodedArray.from_arrays(pa.array([2]), ["a"])})
    table = catalog.create_table("db.t", data)
    table.write_arrow(data)
    assert table.to_arrow()["c"].to_pylist() == ["a", "a"]
