"""A process forks while a writer holds rows: the writer stays the parent's, and nobody deletes or spoils its files."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pyarrow as pa
import pytest

from paimon_py import Catalog, Table, UsageError
from paimon_py.env import Env, SerialPool, SystemIds
from paimon_py.storage.memory_store import MemoryStore

KINDS = {
    "append": ({"bucket": "1", "bucket-key": "a", "write-buffer-size": "1 kb"}, []),
    "flushing": ({"bucket": "1", "write-buffer-size": "1 kb", "write-buffer-spillable": "false"}, ["a"]),
    "spilling": ({"bucket": "1", "write-buffer-size": "1 kb"}, ["a"]),
    "dynamic": ({"bucket": "-1"}, ["a"]),
    "moving": ({"bucket": "-1"}, ["a"]),
}
ROWS = 3000


def rows(first):
    return pa.table({"a": list(range(first, first + ROWS)), "p": ["x"] * ROWS})


def created(catalog, kind):
    options, key = KINDS[kind]
    catalog.create_database("db")
    schema = pa.schema([("a", pa.int64()), ("p", pa.string())])
    return catalog.create_table(
        "db.t", schema, primary_key=key, partition_by=["p"] if kind == "moving" else [], options=options
    )


class OtherProcess(SystemIds):
    """Ids that can be told which process asks."""

    asks = 1

    def process(self):
        return self.asks


def names(store, directory):
    found = []
    for status in store.list(directory):
        found += names(store, status.path) if status.is_directory else [status.path]
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_child_can_do_nothing_with_it(kind):
    store, ids = MemoryStore(), OtherProcess()
    table = created(Catalog(store, "/wh", env=Env(ids=ids, pool=SerialPool())), kind)
    writer = table.writer()
    writer.write_arrow(rows(0))
    before = names(store, "/wh")
    ids.asks = 2
    for refused in (lambda: writer.write_arrow(rows(ROWS)), writer.changes, writer.__enter__):
        with pytest.raises(UsageError, match="opened in another process"):
            refused()
    writer.close()
    writer.__exit__(None, None, None)
    assert names(store, "/wh") == before
    ids.asks = 1
    writer.write_arrow(rows(ROWS))
    table.commit(writer.changes())
    assert sorted(table.scan().to_arrow()["a"].to_pylist()) == list(range(2 * ROWS))


@pytest.mark.parametrize("kind", ["append", "flushing"])
@pytest.mark.parametrize("end", ["abort", "leave", "batches"])
def test_the_child_deletes_nothing(kind, end):
    store, ids = MemoryStore(), OtherProcess()
    table = created(Catalog(store, "/wh", env=Env(ids=ids, pool=SerialPool())), kind)
    writer = table.writer()
    writer.write_arrow(rows(0))

    def forking():
        yield rows(ROWS).to_batches()[0]
        ids.asks = 2
        raise SystemExit

    before = names(store, "/wh")
    assert any("/bucket-0/" in name for name in before)
    if end == "batches":
        with pytest.raises(SystemExit):
            writer.write_arrow(pa.RecordBatchReader.from_batches(rows(0).schema, forking()))
        assert set(before) <= set(names(store, "/wh"))
    else:
        ids.asks = 2
        writer.abort() if end == "abort" else writer.__exit__(SystemExit, SystemExit(), None)
        assert names(store, "/wh") == before


SCRIPT = """
import gc, os, sys
import pyarrow as pa
from paimon_py import Table, UsageError

ROWS = {rows}

def rows(first):
    return pa.table({{"a": list(range(first, first + ROWS)), "p": ["x"] * ROWS}})

def child(writer):
    for refused in (lambda: writer.write_arrow(rows(0)), writer.changes):
        try:
            refused()
        except UsageError as error:
            assert "another process" in str(error)
        else:
            sys.exit(3)
    {end}

def main():
    table = Table.open({location!r})
    writer = table.writer()
    for number in range(4):
        writer.write_arrow(rows(number * ROWS))
    process = os.fork()
    if process == 0:
        child(writer)
        del writer
        gc.collect()
        return
    assert os.waitpid(process, 0)[1] == 0
    writer.write_arrow(rows(4 * ROWS))
    table.commit(writer.changes())

main()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on Windows")
@pytest.mark.parametrize(
    ("kind", "end"),
    [("append", "writer.close()"), ("append", "writer.abort()"), ("spilling", "writer.abort()"), ("dynamic", "os._exit(0)")],
)
def test_parents_go_on_beside_real_children(tmp_path, kind, end):
    table = created(Catalog.open(str(tmp_path)), kind)
    script = textwrap.dedent(SCRIPT).format(rows=ROWS, location=table.location, end=end)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert sorted(Table.open(table.location).scan().to_arrow()["a"].to_pylist()) == list(range(5 * ROWS))


TWO = """
import os
import pyarrow as pa
from paimon_py import Table

table = Table.open({location!r})
process = os.fork()
rows = pa.table({{"a": [os.getpid()] * 10, "p": ["x"] * 10}})
for _ in range(5):
    table.write_arrow(rows)
if process:
    assert os.waitpid(process, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on Windows")
def test_a_table_that_was_opened_before_the_fork_serves_both(tmp_path):
    table = created(Catalog.open(str(tmp_path)), "append")
    script = TWO.format(location=table.location)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = Table.open(table.location).scan().to_arrow()["a"].to_pylist()
    assert len(found) == 100 and len(set(found)) == 2
