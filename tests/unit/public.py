"""Tables made through the public verbs, and the promise that a refused call leaves them as they were."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pyarrow as pa
import pytest
from unit.commit.support import Clock

from paimon_py import Catalog, Schema, Table
from paimon_py.env import Env, SerialPool

QUICK = {"fs.local.fsync": "false"}
KEYED = pa.schema(
    [pa.field("p", pa.int32(), nullable=False), pa.field("k", pa.int64(), nullable=False), ("v", pa.string())]
)
WIDE = [
    ("i", "INT"), ("s", "VARCHAR(3)"), ("c", "CHAR(2)"), ("b", "BINARY(2)"), ("vb", "VARBINARY(2)"),
    ("n", "DECIMAL(4, 2)"), ("r", "ROW<x INT NOT NULL, y STRING>"), ("a", "ARRAY<INT NOT NULL>"),
    ("m", "MAP<STRING, INT NOT NULL>"), ("t", "TIMESTAMP(3)"), ("d", "DATE"), ("q", "INT NOT NULL", None, "7"),
]  # fmt: skip
ROWS = pa.table({"p": pa.array([1, 2], pa.int32()), "k": [1, 2], "v": ["x", "y"]})


def env(ids=None):
    """An environment in which nothing waits and nothing runs at once."""
    return Env(Clock(), ids, SerialPool())


def new_catalog(path, ids=None):
    catalog = Catalog.open(path, QUICK, env=env(ids))
    catalog.create_database("d")
    return catalog


def keyed_table(catalog, name="d.keyed", **options):
    """Two partitions of two buckets, two snapshots, one tag."""
    table = catalog.create_table(
        name, KEYED, primary_key=["p", "k"], partition_by=["p"], options={"bucket": "2", **options}
    )
    table.write_arrow(ROWS, watermark=5)
    table.write_arrow(ROWS.slice(0, 1))
    table.create_tag("first", 1)
    return table


def append_table(catalog, name="d.wide"):
    table = catalog.create_table(name, Schema(WIDE))
    table.write_arrow(pa.table({"i": pa.array([1], pa.int32()), "s": ["abc"]}))
    return table


def reopened(table):
    """The table as another process would see it: nothing cached."""
    return Table.open(table.location, QUICK, env=env())


def files(directory):
    """Every file below a directory with its bytes."""
    root = Path(directory)
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def stored(store, directory):
    """Every file below a directory of a store with its bytes."""
    found, waiting = {}, [directory]
    while waiting:
        for status in store.list(waiting.pop()):
            if status.is_directory:
                waiting.append(status.path)
            else:
                found[status.path] = store.get(status.path)
    return found


@contextlib.contextmanager
def refused(where, error, *words):
    """The body raises exactly `error`, its message has all the words, and no file below `where` is another one."""
    directory = getattr(where, "location", None) or getattr(where, "warehouse", None) or where
    before = files(directory)
    with pytest.raises(error) as caught:
        yield caught
    assert type(caught.value) is error, repr(caught.value)
    for word in words:
        assert re.search(re.escape(str(word)), str(caught.value)), f"{word!r} is not in {caught.value}"
    assert files(directory) == before
