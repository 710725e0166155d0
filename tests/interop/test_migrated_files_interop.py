"""Files of other systems hold no partition columns (Java's `migrate_table` takes them over as they are): both sides agree."""

from __future__ import annotations

import pytest
from pair import Kind, Pair
from regressions.test_files_without_partition_columns import without

pytestmark = pytest.mark.java

COLUMNS = [["p", "INT"], ["q", "STRING"], ["k", "BIGINT"], ["v", "STRING"]]
ROWS = [
    {"p": 1, "q": "a", "k": 1, "v": "a"},
    {"p": 1, "q": "b b", "k": 2, "v": "b"},
    {"p": 2, "q": "x/y=z", "k": 3, "v": None},
    {"p": None, "q": None, "k": 4, "v": "d"},
]
VALUES = [[row["p"], row["q"], row["k"], row["v"]] for row in ROWS]


@pytest.mark.parametrize("by", ["o", "j"])
@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_both_sides_fill_partition_columns_in(file_format, by, java, tmp_path):
    pair = Pair(java("2.0.0"), tmp_path)
    pair.create(Kind(COLUMNS, partition_by=["p", "q"], options={"file.format": file_format}), by)
    pair.act(("write", ROWS), by)
    without(pair.table(), ["p", "q"])
    assert sorted(pair.agree(), key=lambda row: row[2]) == VALUES
