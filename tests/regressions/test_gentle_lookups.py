"""A gentle lookup compaction on request picks twice, as Java's does: with an interval of two it happens at once."""

from __future__ import annotations

import pyarrow as pa

from paimon_py import Catalog


def test_a_requested_compaction_counts_as_two_tries(tmp_path):
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("d")
    options = {"bucket": "1", "write-only": "true", "deletion-vectors.enabled": "true"}
    gentle = {"lookup-compact": "gentle", "num-sorted-run.compaction-trigger": "2", "lookup-compact.max-interval": "2"}
    schema = pa.schema([pa.field("k", pa.int32(), nullable=False), pa.field("v", pa.int32())])
    table = catalog.create_table("d.t", schema, primary_key=["k"], options={**options, **gentle})
    table.write_arrow(pa.table({"k": [1], "v": [2]}, schema=schema))
    assert table.scan().to_arrow().num_rows == 0
    table.compact()
    assert table.scan().to_arrow().to_pylist() == [{"k": 1, "v": 2}]
