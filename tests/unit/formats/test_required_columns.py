"""Parquet files whose columns are REQUIRED though their table allows NULL, as the official SDK and others write them."""

from __future__ import annotations

import datetime
import decimal
import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon_py import Catalog, CorruptionError, Table, col
from paimon_py.formats.parquet import thrift
from paimon_py.formats.parquet.footer import split_tail, tail
from paimon_py.formats.parquet.levels import levels_before

INNER = pa.struct([pa.field("x", pa.int32(), nullable=False), pa.field("y", pa.string(), nullable=False)])
KINDS = {
    "i": pa.int32(), "s": pa.string(), "b": pa.binary(), "f": pa.float64(), "d": pa.decimal128(10, 2), "o": pa.bool_(),
    "t": pa.timestamp("us"), "w": pa.date32(), "l": pa.list_(pa.field("element", pa.int32(), nullable=False)), "r": INNER,
    "m": pa.map_(pa.string(), pa.field("value", pa.int32(), nullable=False)),
    "a": pa.list_(pa.field("element", INNER, nullable=False)),
}  # fmt: skip
ROWS = 3000


def values(name, n):
    inner = {"x": n, "y": f"y{n}"}
    return {
        "i": n, "s": f"text {n % 7}", "b": bytes([n % 256]), "f": n / 3, "d": decimal.Decimal(n), "o": n % 3 == 0,
        "t": datetime.datetime(2024, 1, 1) + datetime.timedelta(seconds=n), "w": datetime.date(2024, 1, 1),
        "l": [n] * (n % 3), "r": inner, "m": [(str(i), n) for i in range(n % 3)], "a": [inner] * (n % 3),
    }[name]  # fmt: skip


def required(kind):
    return pa.schema([pa.field("k", pa.int64(), nullable=False), *(pa.field(n, kind[n], nullable=False) for n in kind)])


def nullable(kind):
    """The same columns with NULL allowed everywhere but in keys."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, nullable(f.type)) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, nullable(kind.item_type))
    return pa.list_(nullable(kind.value_type)) if pa.types.is_list(kind) else kind


def rewritten(path, schema, **how):
    """Write a data file anew as another writer would; the file of the table has its size in the manifest."""
    data = pq.read_table(path).select(schema.names)
    pq.write_table(pa.Table.from_pylist(data.to_pylist(), schema=schema), path, **how)


@pytest.fixture(params=["append", "keyed"])
def table(request, tmp_path):
    """A table of two data files, all of whose columns allow NULL."""
    catalog = Catalog.open(tmp_path)
    catalog.create_database("d")
    schema = pa.schema([pa.field("k", pa.int64(), nullable=False), *((n, nullable(KINDS[n])) for n in KINDS)])
    keys = ["k"] if request.param == "keyed" else []
    table = catalog.create_table("d.t", schema, primary_key=keys, options={"bucket": "1" if keys else "-1", "write-only": "true"})
    for half in range(2):
        rows = [{"k": n, **{name: values(name, n) for name in KINDS}} for n in range(half * ROWS, (half + 1) * ROWS)]
        table.write_arrow(pa.Table.from_pylist(rows, schema=schema))
    return table


def data_files(table):
    return sorted(Path(table.location).glob("bucket-0/data-*.parquet"))


@pytest.mark.parametrize(
    "how",
    [
        {}, {"store_schema": False}, {"use_dictionary": False, "row_group_size": 700}, {"store_schema": False, "data_page_version": "2.0"},
        {"store_schema": False, "compression": "none", "use_dictionary": False}, {"store_schema": False, "compression": "lz4"},
    ],
    ids=str,
)
@pytest.mark.parametrize("has_ids", [False, True], ids=["no_ids", "field_ids"])
def test_their_rows_are_read_filtered_looked_up_and_compacted(table, how, has_ids):
    before = table.to_arrow().sort_by("k")
    for path in data_files(table):
        written = pq.read_schema(path)
        own = [f for f in written if f.name not in ("k", *KINDS)]
        schema = pa.schema([pa.field("k", pa.int64(), nullable=False), *required(KINDS).remove(0), *own])
        schema = pa.schema([schema.field(name) for name in written.names])
        if has_ids:
            schema = pa.schema([field.with_metadata(of.metadata) for field, of in zip(schema, written, strict=True)])
        rewritten(path, schema, **how)
    again = Table.open(table.location)
    assert again.to_arrow().sort_by("k") == before
    for where in (col("k") == 17, col("s") == "text 3", col("i") > 5990, "o AND f < 100"):
        wanted = [row for row in table_rows(before) if holds(row, where)]
        assert table_rows(again.scan(where=where).to_arrow().sort_by("k")) == wanted
    if again.schema.primary_keys:
        assert table_rows(again.lookup([{"k": 17}, {"k": 4000}])) == [row for row in table_rows(before) if row["k"] in (17, 4000)]
        again.delete("k = 17")
        again.compact(full=True)
        assert again.count() == before.num_rows - 1


def table_rows(found):
    return found.to_pylist()


def holds(row, where):
    """The conditions of the test above by Python."""
    told = {
        str(col("k") == 17): row["k"] == 17, str(col("s") == "text 3"): row["s"] == "text 3",
        str(col("i") > 5990): row["i"] > 5990, "o AND f < 100": row["o"] and row["f"] < 100,
    }  # fmt: skip
    return told[str(where)]


ATOMIC = [name for name in KINDS if name not in "lrma"]


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "brotli", "lz4", "zstd"])
def test_a_footer_that_denies_the_levels_of_its_pages_is_damaged(codec, tmp_path):
    """One bit of a footer makes a column REQUIRED: its levels would be read as values."""
    schema = pa.schema([("k", pa.int64()), *((name, KINDS[name]) for name in ATOMIC)])
    catalog = Catalog.open(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", schema)
    table.write_arrow([{"k": n, **{name: values(name, n) for name in ATOMIC}} for n in range(200)])
    (path,) = data_files(table)
    complete = pq.read_table(path)
    for is_null, version, dictionary in itertools.product((False, True), ("1.0", "2.0"), (False, True)):
        data = with_nulls(complete) if is_null else complete
        how = {"compression": codec, "data_page_version": version, "use_dictionary": dictionary, "store_schema": False}
        pq.write_table(data, path, **how)
        whole = path.read_bytes()
        assert Table.open(table.location).to_arrow().num_rows == 200
        for name in ATOMIC:
            path.write_bytes(denied(whole, name))
            with pytest.raises(CorruptionError, match=f"column {name} has no nulls by the file"):
                table.scan(columns=["k", name]).to_arrow()


def with_nulls(data):
    """Every third value of the columns that allow it is NULL."""
    keep = pa.array([n % 3 != 1 for n in range(len(data))])
    for place, field in enumerate(data.schema):
        if field.name in ATOMIC:
            data = data.set_column(place, field, pa.compute.if_else(keep, data[place], None))
    return data


def denied(whole, name):
    """The bytes of a file with a footer in which one column is REQUIRED, over the same pages."""
    before, footer = split_tail(whole)
    file = thrift.Reader(footer).struct()
    (element,) = [e for e in thrift.items(file, 2) if e[4][1] == name.encode()]
    assert element[3] == (thrift.I32, 1 << 1)
    element[3] = (thrift.I32, 0)
    return before + tail(thrift.encode(file))


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        (pa.int32(), [2, 4]), (pa.int32(), [2, 6, 7]), (pa.int32(), [2, 256 + 4]), (pa.int32(), [2, 256 + 2 * 3, 9]),
        (pa.int64(), [2 + (4 << 32), 9]), (pa.binary(), [b"\4\1", b"abcd"]), (pa.string(), ["\4\1", "\0" * 8]),
        (pa.string(), ["\3\3", "x" * 40]), (pa.decimal128(20, 0), [decimal.Decimal(0x0200_0000_0401 << 8), decimal.Decimal(7)]),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_values_that_begin_like_levels_are_values(kind, rows, codec, tmp_path):
    """The INTs 2 and 4 have the bytes of two levels 0 and two zeros."""
    catalog = Catalog.open(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", pa.schema([("v", kind)]))
    table.write_arrow([{"v": n} for n in rows])
    (path,) = data_files(table)
    stored = pa.schema([pa.field("v", kind, nullable=False, metadata={"PARQUET:field_id": "0"})])
    how = {"compression": codec, "use_dictionary": False, "store_schema": False}
    pq.write_table(pa.table({"v": rows}, stored), path, **how)
    assert table.scan().to_arrow()["v"].to_pylist() == rows


@settings(max_examples=300)
@given(st.lists(st.booleans(), min_size=1, max_size=300), st.binary(max_size=40))
def test_levels_are_recognised_however_they_are_packed(levels, rest):
    """As runs, as groups of eight, and mixed."""
    for body in (runs(levels), groups(levels), runs(levels[:8]) + groups(levels[8:])):
        page = len(body).to_bytes(4, "little") + body + rest
        assert levels_before(page, len(levels)) == (len(page) - len(rest), sum(levels))
        assert levels_before(page, len(levels) + 8) is None


@pytest.mark.parametrize("count", [1, 7, 8, 9, 16, 17])
def test_levels_are_those_of_exactly_so_many_values(count):
    for first in (False, True):
        levels = [first, *[True] * (count - 1)]
        packed = -(-count // 8) * 8
        for body, fits in ((runs(levels), [count]), (groups(levels), range(packed - 7, packed + 1))):
            page = len(body).to_bytes(4, "little") + body
            assert [values for values in range(count + 20) if levels_before(page, values) is not None] == list(fits)
            longer = body + runs([True])  # goes on where all values have their levels
            page = len(longer).to_bytes(4, "little") + longer
            assert levels_before(page, count) is None


@pytest.mark.parametrize("body", [b"\2\2", b"\2\xff", b"\0\1", b"\0\1\2\1", b"\1\2\1", b"\2", b"", b"\x80", b"\3", b"\2\1\2"], ids=bytes.hex)
def test_other_levels_and_empty_or_torn_runs_are_no_levels(body):
    for rest in (b"", b"\1" * 9):
        assert levels_before(len(body).to_bytes(4, "little") + body + rest, 1) is None
    torn = groups([True] * 9)
    assert levels_before((len(torn) + 1).to_bytes(4, "little") + torn, 9) is None


def runs(levels):
    """Levels as runs of equal ones."""
    out = bytearray()
    for level, run in itertools.groupby(levels):
        thrift.write_varint(out, len(list(run)) << 1)
        out.append(level)
    return bytes(out)


def groups(levels):
    """Levels as bits, eight to a byte, the last byte padded."""
    out = bytearray()
    if levels:
        packed = np.packbits(levels, bitorder="little").tobytes()
        thrift.write_varint(out, len(packed) << 1 | 1)
        out += packed
    return bytes(out)
