"""Parquet files whose columns are REQUIRED though their table allows NULL, as the official SDK and others write them."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_py import Catalog, CorruptionError, Table, col

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
    [{}, {"store_schema": False}, {"use_dictionary": False, "row_group_size": 700}, {"store_schema": False, "data_page_version": "2.0"}],
    ids=str,
)
def test_their_rows_are_read_filtered_looked_up_and_compacted(table, how):
    before = table.to_arrow().sort_by("k")
    for path in data_files(table):
        written = pq.read_schema(path)
        own = [f for f in written if f.name not in ("k", *KINDS)]
        schema = pa.schema([pa.field("k", pa.int64(), nullable=False), *required(KINDS).remove(0), *own])
        rewritten(path, pa.schema([schema.field(name) for name in written.names]), **how)
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


def test_of_a_file_of_ours_it_is_damage(table):
    """Ids of fields and no Arrow schema: Paimon's own writers always leave room for NULL."""
    for path in data_files(table):
        written = pq.read_schema(path)
        rewritten(path, pa.schema([f.with_nullable(False) for f in written]), store_schema=False)
    with pytest.raises(CorruptionError, match="has no nulls by the file"):
        Table.open(table.location).to_arrow()
