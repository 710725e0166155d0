"""`scan.to_torch` gives a DataLoader every row once, whatever the number of workers and processes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader  # noqa: E402

from paimon_py import Catalog, Schema, col  # noqa: E402
from paimon_py.errors import UsageError  # noqa: E402

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    catalog = Catalog.open(tmp_path_factory.mktemp("lake"))
    catalog.create_database("d")
    schema = Schema([("p", "INT"), ("k", "BIGINT"), ("x", "FLOAT"), ("ok", "BOOLEAN"), ("t", "STRING"), ("v", "VECTOR<FLOAT, 3>")])
    table = catalog.create_table("d.t", schema, partition_by=["p"], options={"bucket": "-1"})
    for start in range(0, 300, 100):
        keys = range(start, start + 100)
        table.write_arrow(pa.table({
            "p": pa.array([key % 4 for key in keys], pa.int32()), "k": keys, "x": pa.array([key / 2 for key in keys], pa.float32()),
            "ok": [key % 3 == 0 for key in keys], "t": [None if key == 7 else str(key) for key in keys],
            "v": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(300, dtype=np.float32)), 3),
        }))  # fmt: skip
    return table


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.parametrize("workers", [0, 1, 3])
def test_workers_read_each_row_once(table, workers, start):
    rows = table.scan(columns=["k", "x"]).to_torch(batch_size=16)
    context = start if workers else None
    batches = list(DataLoader(rows, batch_size=None, num_workers=workers, multiprocessing_context=context))
    assert sorted(torch.cat([batch["k"] for batch in batches]).tolist()) == list(range(300))
    assert all(batch["x"].dtype == torch.float32 for batch in batches)
    assert sum(len(batch["k"]) < 16 for batch in batches) <= max(1, workers)


def test_rows_are_collated_by_the_loader(table):
    rows = table.scan(where=col("k") < 10).to_torch(columns=["k", "x"])
    (batch,) = DataLoader(rows, batch_size=32)
    assert sorted(batch["k"].tolist()) == list(range(10)) and batch["x"].shape == (10,)


@pytest.mark.parametrize("world", [2, 5])
def test_processes_share_the_rows(table, world):
    found = [
        [row["k"] for row in table.scan().to_torch(columns=["k"], rank=rank, world_size=world, shuffle=True, seed=3)]
        for rank in range(world)
    ]
    assert sorted(key for keys in found for key in keys) == list(range(300))
    assert sum(bool(keys) for keys in found) > 1


def test_each_epoch_has_an_order_of_its_own(table):
    rows = table.scan().to_torch(columns=["k"], shuffle=True, seed=1)
    orders = []
    for epoch in range(6):
        rows.set_epoch(epoch)
        orders.append([row["k"] for row in rows])
        assert orders[-1] == [row["k"] for row in rows]
    assert len({tuple(order) for order in orders}) > 1
    assert all(sorted(order) == list(range(300)) for order in orders)


def test_tensors_and_lists(table):
    (batch,) = table.scan(where=col("k").between(4, 6)).to_torch(batch_size=10)
    assert batch["v"].shape == (3, 3) and batch["v"].dtype == torch.float32
    assert batch["ok"].dtype == torch.bool and batch["k"].dtype == torch.int64
    assert sorted(batch["t"]) == ["4", "5", "6"]
    batch["v"][0, 0] = 1.0


def test_null_in_a_tensor_is_refused(table, tmp_path):
    catalog = Catalog.open(tmp_path)
    catalog.create_database("d")
    other = catalog.create_table("d.t", pa.schema([("a", pa.int64())]), options={"bucket": "-1"})
    other.write_arrow(pa.table({"a": [1, None]}))
    with pytest.raises(UsageError, match=r"'a' contains NULL.*is_not_null"):
        list(other.scan().to_torch(batch_size=2))
    assert [row["a"] for row in other.scan().to_torch()] == [1, None]


def test_limits_and_orders_are_read_as_a_whole(table):
    rows = table.scan(order_by="k", limit=5).to_torch(columns=["k"])
    assert [row["k"] for row in DataLoader(rows, batch_size=None, num_workers=2)] == [0, 1, 2, 3, 4]


def test_a_dataset_keeps_its_snapshot(table):
    rows = table.scan(snapshot_id=1).to_torch(columns=["k"])
    assert len(list(rows)) == 100


def test_system_tables_too(table):
    assert [row["snapshot_id"] for row in table.system("snapshots").scan().to_torch()] == [1, 2, 3]


@pytest.mark.parametrize("wrong", [
    {"batch_size": 0}, {"batch_size": True}, {"rank": 1}, {"rank": 2, "world_size": 2}, {"shuffle": True, "seed": -1}, {"columns": ["no"]},
])  # fmt: skip
def test_wrong_arguments_are_refused(table, wrong):
    with pytest.raises(UsageError):
        table.scan().to_torch(**wrong)
