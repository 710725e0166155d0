"""`scan.to_ray` gives Ray every row once."""

from __future__ import annotations

import pyarrow as pa
import pytest

ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")

from paimon_py import Catalog, col  # noqa: E402

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    catalog = Catalog.open(tmp_path_factory.mktemp("lake"))
    catalog.create_database("d")
    columns = pa.schema([pa.field("k", pa.int64(), nullable=False), ("t", pa.string())])
    table = catalog.create_table("d.t", columns, primary_key=["k"], options={"bucket": "5"})
    for start in (0, 50, 100):
        table.write_arrow(pa.table({"k": range(start, start + 100), "t": [f"{start}"] * 100}, columns))
    return table


def rows(dataset):
    return sorted((row["k"], row["t"]) for row in dataset.take_all())


def test_ray_reads_the_rows(table):
    expected = sorted((row["k"], row["t"]) for row in table.to_arrow().to_pylist())
    assert rows(table.scan().to_ray()) == expected and len(expected) == 200
    assert rows(table.scan(where=col("k") < 70).to_ray()) == expected[:70]
    assert table.scan().to_ray().count() == 200


def test_columns_limits_and_nothing(table):
    dataset = table.scan().to_ray(columns=["t"])
    assert dataset.schema().names == ["t"]
    assert table.scan(limit=7).to_ray().count() == 7
    assert [row["k"] for row in table.scan(order_by=("k", "descending"), limit=3).to_ray().take_all()] == [199, 198, 197]
    nothing = table.scan(where=col("k") < 0).to_ray()
    assert nothing.count() == 0


def test_a_dataset_keeps_its_snapshot(table):
    dataset = table.scan(snapshot_id=1).to_ray()
    assert dataset.count() == 100


def test_system_tables_too(table):
    assert [row["snapshot_id"] for row in table.system("snapshots").scan().to_ray().take_all()][:3] == [1, 2, 3]
