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
