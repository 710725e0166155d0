"""Commits that are refused since others compacted or replaced partitions after the last safe snapshot."""

from __future__ import annotations

import pyarrow as pa
import pytest

from paimon_py import Catalog, CommitConflictError, RemoveOption, SetOption
from paimon_py.storage.memory_store import MemoryStore

SAFE = "commit.strict-mode.last-safe-snapshot"


@pytest.fixture
def table():
    catalog = Catalog(MemoryStore(), "/w")
    catalog.create_database("d")
    schema = pa.schema([pa.field("k", pa.int32(), nullable=False), pa.field("p", pa.string(), nullable=False)])
    return catalog.create_table("d.t", schema, primary_key=["p", "k"], partition_by=["p"], options={"bucket": "1"})


def rows(partition, *keys):
    return pa.table({"k": pa.array(keys, pa.int32()), "p": [partition] * len(keys)})


def conflicts(table, safe, call, match="changed the same partition"):
    table.alter(SetOption(SAFE, str(safe)))
    before = table.snapshot()
    with pytest.raises(CommitConflictError, match=match):
        call()
    assert table.snapshot() == before
    table.alter(RemoveOption(SAFE))


def test_compactions_and_overwrites_of_others_stop_commits_to_the_same_partition(table):
    table.write_arrow(rows("a", 1), user="x", identifier=1)
    table.compact(full=True)
    conflicts(table, 1, lambda: table.write_arrow(rows("a", 2), user="x", identifier=2), r"snapshot 2 \(COMPACT\)")
    conflicts(table, 0, lambda: table.delete("k = 1", user="x", identifier=2))
    table.alter(SetOption(SAFE, "1"))
    table.write_arrow(rows("b", 2), user="x", identifier=2)
    table.alter(SetOption(SAFE, "2"))
    table.write_arrow(rows("a", 3), user="y", identifier=2)
    table.write_arrow(rows("a", 4), user="x", identifier=3)
    conflicts(table, 2, lambda: table.write_arrow(rows("a", 5), overwrite={"p": "a"}), r"snapshot 5 \(APPEND\) of 'x'")
    table.write_arrow(rows("b", 5), overwrite={"p": "b"}, user="x", identifier=4)
    conflicts(table, 5, lambda: table.truncate(user="z", identifier=1), r"snapshot 6 \(OVERWRITE\) of 'x'")
    table.alter(SetOption(SAFE, "6"))
    assert table.truncate(user="z", identifier=1).snapshot_id == 7
    table.alter(SetOption(SAFE, "100"))
    table.write_arrow(rows("a", 6), user="x", identifier=5)


def test_snapshots_that_expired_may_have_been_anything(table):
    for number in range(4):
        table.write_arrow(rows("a", number), user="x", identifier=number)
    table.expire_snapshots(retain_min=1, retain_max=2)
    first = table.snapshots()[0].id
    assert first > 2
    conflicts(table, 1, lambda: table.write_arrow(rows("a", 9), user="x", identifier=9), f"snapshot {first - 1}, .* no longer")
    table.alter(SetOption(SAFE, str(first - 1)))
    table.write_arrow(rows("a", 9), user="x", identifier=9)


