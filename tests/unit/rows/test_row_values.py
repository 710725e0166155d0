"""Values by row id that do not fit into memory: `update_rows` sorts them on local disk, and leaves nothing there."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from unit.commit.support import Clock

from paimon_py import Catalog, StorageError, UsageError
from paimon_py.env import Env, SerialPool
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.fault_store import FaultStore
from paimon_py.testing.store_spill import StoreSpill

COLUMNS = pa.schema([("k", pa.int64()), ("v", pa.string()), ("e", pa.list_(pa.int32()))])
OPTIONS = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "write-buffer-size": "4 kb", "bucket": "-1"}
ROWS = 300


def made(spill, per_file=70, store=None):
    env = Env(Clock(), None, SerialPool(), StoreSpill(spill))
    catalog = Catalog(store or MemoryStore(), "/w", env=env)
    catalog.create_database("d")
    table = catalog.create_table("d.t", COLUMNS, options=OPTIONS)
    for start in range(0, ROWS, per_file):
        some = range(start, min(ROWS, start + per_file))
        table.write_arrow(pa.table({"k": some, "v": [f"old {n}" for n in some], "e": [[n] for n in some]}, schema=COLUMNS))
    return table


def values(ids, rng):
    """New values in random order, in small batches."""
    ids = rng.sample(ids, len(ids))
    data = pa.table({"e": pa.array([[n, -n] * 9 for n in ids], pa.list_(pa.int32())), "_ROW_ID": ids, "v": [f"new {n}" for n in ids]})
    return data.to_batches(max_chunksize=50)


def found(table):
    rows = table.scan(columns=["_ROW_ID", "k", "v", "e"]).to_arrow().to_pylist()
    return {row["_ROW_ID"]: (row["k"], row["v"], row["e"]) for row in rows}


def expected(ids):
    return {n: (n, f"new {n}", [n, -n] * 9) if n in ids else (n, f"old {n}", [n]) for n in range(ROWS)}


@pytest.mark.parametrize("share", [1, 0.5, 0.9])
def test_values_that_went_to_disk_reach_their_rows(share):
    rng, spill = random.Random(str(share)), MemoryStore()
    table = made(spill)
    ids = sorted(rng.sample(range(ROWS), int(ROWS * share)))
    made_before = len(StoreSpill(spill).paths())
    assert table.update_rows(iter(values(ids, rng))).updated == len(ids)
    assert found(table) == expected(set(ids))
    assert len(StoreSpill(spill).paths()) == made_before == 0
    assert table._root.env.spill._numbers.__next__() > 3


def test_values_for_a_missing_row_leave_nothing_on_disk():
    rng, spill = random.Random(1), MemoryStore()
    table = made(spill)
    for ids, message in ((range(1, ROWS + 1), "no row has the ids 300"), ([*range(ROWS), 7], "_ROW_ID 7 is given twice")):
        with pytest.raises(UsageError, match=message):
            table.update_rows(iter(values(list(ids), rng)))
        assert StoreSpill(spill).paths() == [] and found(table) == expected(())


@pytest.mark.parametrize("mode", ["before", "after"])
def test_a_disk_that_fails_at_any_call_changes_nothing_or_everything(mode):
    calls, number = 1, 0
    while number < calls:
        number += 1 + number // 4  # every call at first, fewer later: the many blocks are alike
        spill = FaultStore(MemoryStore(), fail_at=number, mode=mode)
        table = made(spill, per_file=150)
        try:
            table.update_rows(iter(values(list(range(ROWS)), random.Random(2))))
        except StorageError as error:
            assert "TMPDIR" in str(error)
            assert found(table) == expected(())
        else:
            assert found(table) == expected(range(ROWS))
        calls = max(calls, spill.count)
    assert calls > 20
