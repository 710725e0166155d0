"""Deletes of tables that combine rows wrote −D rows with all values, and an engine begins a deleted key anew with what
its −D tells: until a compaction had seen the delete, the old values came back with the next row of the key. Found by
random script 67 of tests/interop, where Java had compacted at another time."""

from __future__ import annotations

import pyarrow as pa
import pytest
from unit.public import new_catalog

SCHEMA = pa.schema([pa.field("k", pa.int32(), nullable=False), ("n", pa.int64()), ("v", pa.string()), ("s", pa.int32())])
TABLES = {
    "sums": {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "aggregation.remove-record-on-delete": "true"},
    "sums in order": {
        "merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "aggregation.remove-record-on-delete": "true", "sequence.field": "s",
    },
    "partial updates": {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    "groups": {
        "merge-engine": "partial-update", "fields.s.sequence-group": "v", "partial-update.remove-record-on-sequence-group": "s",
    },
}  # fmt: skip


@pytest.mark.parametrize("compacts", [False, True], ids=["merged on read", "compacted"])
@pytest.mark.parametrize("kind", TABLES)
def test_a_deleted_key_begins_anew(kind, compacts, tmp_path):
    options = {"bucket": "1", "write-only": "true", **TABLES[kind]}
    table = new_catalog(tmp_path).create_table("d.t", SCHEMA, primary_key=["k"], options=options)
    table.write_arrow(pa.table([[1, 2], [35, 1], ["old", "x"], [1, 1]], SCHEMA))
    assert table.delete("k = 1").deleted == 1
    assert table.scan().to_arrow()["k"].to_pylist() == [2]
    if compacts:
        table.compact(full=True)
    table.write_arrow(pa.table([[1], [26], [None], [2]], SCHEMA))
    assert table.scan(where="k = 1").to_arrow().to_pylist() == [{"k": 1, "n": 26, "v": None, "s": 2}]
