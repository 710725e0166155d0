"""Scans whose conditions compare a column with a column: every format, evolved files, partitions, files left out."""

from __future__ import annotations

import pyarrow as pa
import pytest
from unit.public import new_catalog, reopened

from paimon_py import RenameColumn, UpdateColumnType, col

SCHEMA = pa.schema([("p", pa.int32()), ("a", pa.int32()), ("b", pa.int64()), ("x", pa.float64()), ("s", pa.string())])
CONDITIONS = {
    "a < b": lambda r: r["a"] < r["b"],
    "a >= x": lambda r: r["a"] >= r["x"],
    "b != p AND NOT a = p": lambda r: r["b"] != r["p"] and r["a"] != r["p"],
    "p = a OR b BETWEEN p AND a": lambda r: r["p"] == r["a"] or r["p"] <= r["b"] <= r["a"],
    "a IS NOT DISTINCT FROM b": lambda r: r["a"] == r["b"],
}


def rows(start):
    return [{"p": n % 2, "a": n * 7 % 11, "b": n * 5 % 13, "x": n * 3 % 7 - 0.5, "s": str(n)} for n in range(start, start + 20)]


@pytest.mark.parametrize("options", [
    {"file.format": "parquet", "parquet.block.size": "1000"}, {"file.format": "orc"}, {"file.format": "avro"},
    {"bucket": "1"}, {"bucket": "1", "deletion-vectors.enabled": "true"},
], ids=str)  # fmt: skip
def test_conditions_on_two_columns_read_what_they_say(tmp_path, options):
    keyed = "bucket" in options
    table = new_catalog(tmp_path / "w").create_table(
        "d.t", SCHEMA, partition_by=["p"], options=options, primary_key=["p", "s"] if keyed else []
    )
    for start in (0, 20):
        table.write_arrow(pa.Table.from_pylist(rows(start), SCHEMA))
    table.alter(UpdateColumnType("a", "BIGINT"), RenameColumn("b", "c"))
    table = reopened(table)
    later = pa.schema([SCHEMA.field("p"), ("a", pa.int64()), ("c", pa.int64()), *list(SCHEMA)[3:]])
    table.write_arrow(pa.Table.from_pylist([{**row, "c": row["b"]} for row in rows(40)], later))
    for text, holds in CONDITIONS.items():
        found = table.scan(where=text.replace("b", "c")).to_arrow()
        assert sorted(found["s"].to_pylist()) == sorted(r["s"] for r in rows(0) + rows(20) + rows(40) if holds(r))


def test_files_whose_ranges_lie_apart_are_not_read(tmp_path):
    table = new_catalog(tmp_path / "w").create_table("d.t", SCHEMA)
    for low in (0, 100):
        table.write_arrow(pa.table({"a": pa.array(range(low, low + 10), pa.int32()), "b": range(50, 60)}).cast(pa.schema(list(SCHEMA)[1:3])))
    assert table.scan(where=col("a") < col("b")).explain().file_count == 1
    assert table.scan(where="b < a").explain().file_count == 1
    assert table.scan(where="a = b").explain().file_count == 0
    assert table.scan(where="a < b").count() == 10
