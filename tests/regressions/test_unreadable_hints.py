"""A hint that cannot be read is not a hint: reads and commits go on by listing."""

from __future__ import annotations

import pyarrow as pa
import pytest

from paimon_py import Catalog
from paimon_py.env import Env
from paimon_py.errors import StorageError
from paimon_py.metadata.root import TableRoot
from paimon_py.storage.local_store import LocalStore
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.table import Table

HINTS = ("LATEST", "EARLIEST")
ROWS = pa.table({"a": [1]})


def filled(store, warehouse):
    """A table with three snapshots of one row each, and its path."""
    catalog = Catalog(store, warehouse)
    catalog.create_database("db")
    table = catalog.create_table("db.t", pa.schema([("a", pa.int64())]))
    for _ in range(3):
        table.write_arrow(ROWS)
    return f"{warehouse}/db.db/t"


def check(store, path):
    """Reads of every kind and a commit work, as with good hints."""
    root = TableRoot(store, path, Env())
    table = Table(root, root.schemas.latest(), "db.t")
    assert table.scan().to_arrow().num_rows == 3
    assert root.snapshots.latest_id() == 3
    assert root.snapshots.earliest_id() == 1
    assert root.snapshots.by_time(root.snapshots.get(2).time_millis).id in (1, 2, 3)
    table.write_arrow(ROWS)
    assert table.snapshot().id == 4
    assert table.scan().to_arrow().num_rows == 4


@pytest.mark.parametrize("name", HINTS)
@pytest.mark.parametrize("kind", ["local", "memory"])
def test_directories_of_their_names(tmp_path, kind, name):
    store, warehouse = (LocalStore(), str(tmp_path)) if kind == "local" else (MemoryStore(), "/wh")
    path = filled(store, warehouse)
    store.delete(f"{path}/snapshot/{name}")
    store.make_directory(f"{path}/snapshot/{name}/x")
    check(store, path)


@pytest.mark.parametrize("name", HINTS)
@pytest.mark.parametrize("kind", [LocalStore, MemoryStore])
def test_stores_that_refuse_to_read_them(tmp_path, kind, name):
    class Refusing(kind):
        refused = 0

        def get(self, path):
            if path.endswith(f"/snapshot/{name}"):
                self.refused += 1
                raise StorageError("permission denied", path=path, operation="get")
            return super().get(path)

    store = Refusing()
    path = filled(store, str(tmp_path) if kind is LocalStore else "/wh")
    check(store, path)
    assert store.refused > 0
