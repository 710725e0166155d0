"""Tables that write Iceberg metadata, in memory, with a clock of their own."""

from __future__ import annotations

import pyarrow as pa
from unit.commit.support import Clock
from unit.iceberg.reader import PLAIN

from paimon_py import Catalog
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.root import TableRoot
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.table import Table

PATH = "/w/d.db/t"
DIRECTORY = f"{PATH}/metadata"
COLUMNS = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.string())])
ON = {"metadata.iceberg.storage": "table-location", "write-only": "true", **PLAIN}
VECTORS = {
    "metadata.iceberg.format-version": "3", "deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": "true",
}  # fmt: skip


def data(*keys, v="a"):
    return pa.table({"k": list(keys), "v": [v] * len(keys)}, schema=COLUMNS)


class World:
    """A catalog in memory with one table, `.table`."""

    def __init__(self, columns=COLUMNS, *, key=(), partition_by=(), **options):
        self.clock = Clock(1_700_000_000_000)
        self.store = MemoryStore(clock=self.clock)
        self.catalog = Catalog(self.store, "/w", env=Env(self.clock, None, SerialPool()))
        self.catalog.create_database("d")
        given = {**ON, **({"bucket": "1"} if key else {}), **options}
        given = {name: value for name, value in given.items() if value is not None}
        self.table = self.catalog.create_table(
            "d.t", columns, primary_key=list(key), partition_by=list(partition_by), options=given
        )

    def opened(self, store=None) -> Table:
        return opened(store or self.store, self.clock)


def opened(store, clock=None) -> Table:
    root = TableRoot(store, PATH, Env(clock or Clock(1_700_000_000_000), None, SerialPool()))
    return Table(root, root.schemas.latest(), "d.t")


def stored(table, **how):
    """The rows of the table as the reader gives them."""
    return sorted(([row["k"], row["v"]] for row in table.scan(**how).to_arrow().to_pylist()), key=repr)
