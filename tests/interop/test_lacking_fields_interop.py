"""Data files of other writers that lack a field inside a ROW: NULL there. Java reads them in ORC, and refuses Parquet files."""

from __future__ import annotations

import oracle
import pytest
from pair import Kind, Pair
from regressions.test_files_without_partition_columns import without
from unit.formats.test_columns_of_strangers import without_field

pytestmark = pytest.mark.java

COLUMNS = [["k", "BIGINT"], ["r", "ROW<a INT, b STRING>"], ["l", "ARRAY<ROW<a INT, b STRING>>"]]
ROWS = [
    {"k": 1, "r": {"a": 1, "b": "x"}, "l": [{"a": 3, "b": "y"}, None]},
    {"k": 2, "r": None, "l": None},
    {"k": 3, "r": {"a": None, "b": "z"}, "l": []},
]


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_a_field_that_a_file_lacks_is_null(file_format, java, tmp_path):
    pair = Pair(java("2.0.0"), tmp_path)
    pair.create(Kind(COLUMNS, options={"file.format": file_format, "bucket": "-1"}), "o")
    pair.act(("write", ROWS), "o")
    without(without_field(pair.table(), "b"), [])  # the sizes of the new files go into the manifests
    assert pair.table().to_arrow()["r"].to_pylist() == [{"a": 1, "b": None}, None, {"a": None, "b": None}]
    if file_format == "orc":
        assert len(pair.agree()) == 3
    else:
        with pytest.raises(oracle.OracleError, match="field b is missing"):
            pair.java_rows()
