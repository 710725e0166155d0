"""Three updates of a key in one flush are three changes: the official Python SDK writes the rows after folding them into one."""

import pyarrow as pa
import pytest

from paimon_py import Catalog


@pytest.mark.parametrize("buffer", ["256 mb", "1 mb"], ids=["in memory", "by way of the disk"])
def test_every_update_of_a_key_is_told(tmp_path, buffer):
    columns = pa.schema([pa.field("k", pa.int32(), nullable=False), ("v", pa.string()), ("pad", pa.string())])
    catalog = Catalog.open(tmp_path)
    catalog.create_database("db")
    options = {"bucket": "1", "changelog-producer": "input", "write-buffer-size": buffer}
    table = catalog.create_table("db.t", columns, primary_key=["k"], options=options)
    with table.writer() as writer:
        for mark in "abc":
            writer.write_arrow(
                pa.table({"k": pa.array([7, 8], pa.int32()), "v": [mark, mark], "pad": ["x" * 400_000] * 2})
            )
    table.commit(writer.changes())
    told = table.changes(0, 1, columns=["k", "v"], mode="changelog").to_arrow().to_pylist()
    assert [(row["v"], row["_row_kind"]) for row in told if row["k"] == 7] == [("a", "+I"), ("b", "+I"), ("c", "+I")]
    assert len(told) == 6
    assert table.scan(columns=["k", "v"]).to_arrow().to_pylist() == [{"k": 7, "v": "c"}, {"k": 8, "v": "c"}]
    assert table.snapshot().value.changelog_record_count == 6
