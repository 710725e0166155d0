"""A writer that meets an empty bucket first still knows the deletion vectors of the next one."""

from __future__ import annotations

import pyarrow as pa

from paimon_py import Catalog

SCHEMA = pa.schema([pa.field("k", pa.int32(), nullable=False), pa.field("v", pa.int32())])


def test_rows_of_a_bucket_with_vectors_are_seen_beside_those_of_a_new_bucket(tmp_path):
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("d")
    options = {"bucket": "2", "bucket-function.type": "mod", "deletion-vectors.enabled": "true"}
    table = catalog.create_table("d.t", SCHEMA, primary_key=["k"], options=options)
    for rows in ({"k": [1, 3], "v": [1, 1]}, {"k": [1], "v": [2]}, {"k": [0, 1], "v": [3, 3]}):
        table.write_arrow(pa.table(rows, schema=SCHEMA))
    found = table.scan().to_arrow().sort_by("k").to_pylist()
    assert found == [{"k": 0, "v": 3}, {"k": 1, "v": 3}, {"k": 3, "v": 1}]


def test_rows_of_a_bucket_that_lost_all_its_files_are_seen(tmp_path):
    """Its index file stays, without any vector."""
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("d")
    table = catalog.create_table("d.t", SCHEMA, primary_key=["k"], options={"bucket": "1", "deletion-vectors.enabled": "true"})
    for keys in ([1, 2], [1]):
        table.write_arrow(pa.table({"k": keys, "v": keys}, schema=SCHEMA))
    table.delete("true")
    table.compact(full=True)
    assert table.scan().splits() == []
    table.write_arrow(pa.table({"k": [5], "v": [5]}, schema=SCHEMA))
    assert table.scan().to_arrow().to_pylist() == [{"k": 5, "v": 5}]
