"""Small tables in memory whose requests are counted."""

from __future__ import annotations

from paimon_py.env import Env, SerialPool
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.new_schema import Schema, TableSpec, new_table_schema
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.table import Table
from paimon_py.testing.counting_store import CountingStore


def table(fields, *, primary_key=(), partition_by=(), options=None):
    """A new table; `table(...)._root.store` counts its requests."""
    root = TableRoot(CountingStore(MemoryStore()), "/warehouse/db.db/t", Env(pool=SerialPool()))
    spec = TableSpec(primary_keys=tuple(primary_key), partition_keys=tuple(partition_by), options=options or {})
    schema = new_table_schema(Schema(fields), spec, time_millis=0)
    assert root.schemas.add(schema)
    return Table(root, schema, "db.t")


def rows(scan):
    """The rows as tuples, sorted."""
    return sorted((tuple(row.values()) for row in scan.to_arrow().to_pylist()), key=repr)


def opened(table):
    """Names of data files opened since the counter was reset."""
    return [path.rsplit("/", 1)[1] for verb, path in table._root.store.paths if verb == "open_read"]
