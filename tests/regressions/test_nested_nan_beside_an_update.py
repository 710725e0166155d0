"""Updates were refused where another column held NaN inside a list or row, and a sequence or partial update was checked."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from paimon_py import Catalog, Schema, UsageError, sql

COLUMNS = Schema({"k": "INT NOT NULL", "v": "STRING", "s": "INT", "l": "ARRAY<DOUBLE>", "r": "ROW<x FLOAT>", "m": "MAP<STRING, DOUBLE>"})
NAN = float("nan")


@pytest.mark.parametrize("options", [{"sequence.field": "s"}, {"merge-engine": "partial-update"}], ids=str)
def test_nan_in_nested_columns_hinders_no_update(options):
    catalog = Catalog.open("memory://nested-nan")
    catalog.drop_database("d", missing_ok=True, cascade=True)
    catalog.create_database("d")
    table = catalog.create_table("d.t", COLUMNS, primary_key=["k"], options={"bucket": "1", **options})
    table.write_arrow([{"k": 1, "v": "a", "s": 1, "l": [NAN, 0.0], "r": {"x": NAN}, "m": {"a": NAN}}])
    assert table.update("k = 1", {"v": "b", "s": sql("s + 1")}).updated == 1
    zeros = lambda rows: pa.array([[-0.0]] * rows.num_rows, pa.list_(pa.float64()))  # noqa: E731
    table.merge([{"k": 1, "v": "c"}], ["k"], when_matched_update={"v": "source.v", "l": zeros, "s": sql("target.s + 1")})
    (row,) = table.to_arrow().to_pylist()
    assert (row["v"], row["s"], math.copysign(1, row["l"][0])) == ("c", 3, -1) and math.isnan(row["r"]["x"])
    refused = {"l": zeros, "s": 0} if "sequence.field" in options else {"l": lambda rows: pa.nulls(rows.num_rows, pa.list_(pa.float64()))}
    with pytest.raises(UsageError, match="would not have the value that is set"):
        table.update("k = 1", refused)
