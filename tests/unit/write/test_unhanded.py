"""A writer that is forgotten with rows that nobody took: a warning, and no files; whatever was handed over stays."""

from __future__ import annotations

import gc
import subprocess
import sys
import warnings

import pyarrow as pa
import pytest
from unit.write.support import CountingIds, data_files, root_of, schema_of

from paimon_py.env import Env
from paimon_py.errors import StorageError
from paimon_py.metadata.open_table import OpenTable
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.store_spill import StoreSpill
from paimon_py.write.session import Writer

KINDS = {
    "append": ({"k": "BIGINT", "v": "STRING"}, (), {}),
    "keyed": ({"k": "BIGINT NOT NULL", "v": "STRING"}, ("k",), {"bucket": "2"}),
    "dynamic": ({"k": "BIGINT NOT NULL", "v": "STRING"}, ("k",), {"bucket": "-1"}),
    "postponed": ({"k": "BIGINT NOT NULL", "v": "STRING"}, ("k",), {"bucket": "-2"}),
}
LOST = r"a writer of /warehouse/db.db/t was dropped with rows that changes\(\) did not hand over: they are lost, and their"
ROWS = pa.table({"k": range(100), "v": [str(number) for number in range(100)]})


def made(kind="keyed", store=None, **more):
    columns, keys, options = KINDS[kind]
    schema = schema_of(columns, primary_key=keys, options={**options, **more})
    return root_of(schema, store or MemoryStore()), schema


def written(root, schema):
    writer = Writer(OpenTable(root, schema))
    writer.write_arrow(ROWS)
    return writer


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_closed", [False, True], ids=["open", "closed"])
def test_uncollected_rows_give_a_warning_and_their_files_are_deleted(kind, is_closed):
    root, schema = made(kind)
    writer = written(root, schema)
    if is_closed:
        writer.close()
        assert data_files(root) != []
    with pytest.warns(ResourceWarning, match=LOST + r" files are deleted; pass writer.changes\(\) to table.commit"):
        del writer
    assert data_files(root) == []


def test_the_warning_names_the_line_that_dropped_the_writer():
    writer = written(*made())
    with pytest.warns(ResourceWarning, match=LOST) as told:
        del writer
    assert [warning.filename for warning in told] == [__file__]


def test_files_and_compactions_of_a_long_load_go_too():
    options = {"write-buffer-size": "4 kb", "write-buffer-spillable": "false", "num-sorted-run.stop-trigger": "5"}
    root, schema = made(**{**options, "bucket": "1"})
    writer = Writer(OpenTable(root, schema))
    for number in range(30):
        writer.write_arrow(pa.table({"k": range(number, number + 150), "v": [str(number)] * 150}))
    assert len(data_files(root)) > 5 and writer._compaction._levels
    with pytest.warns(ResourceWarning, match=LOST):
        del writer
    assert data_files(root) == []


def test_spilled_files_are_deleted_too():
    root, schema = made(**{"write-buffer-size": "16 kb"})
    spill = MemoryStore()
    root.env = Env(root.env.clock, root.env.ids, spill=StoreSpill(spill, "/spill"))
    writer = Writer(OpenTable(root, schema))
    for _ in range(4):
        writer.write_arrow(pa.table({"k": range(500), "v": ["x" * 20] * 500}))
    assert spill.list("/spill") != []
    with pytest.warns(ResourceWarning, match=LOST):
        del writer
    assert spill.list("/spill") == []


@pytest.mark.parametrize("kind", KINDS)
def test_handed_over_files_are_kept(kind):
    root, schema = made(kind)
    writer = written(root, schema)
    changes = writer.changes()
    handed = data_files(root)
    writer.write_arrow(ROWS)
    writer.close()
    assert len(data_files(root)) > len(handed)
    with pytest.warns(ResourceWarning, match=LOST):
        del writer
    assert data_files(root) == handed
    assert handed and changes.row_count == 100


def ends(writer):
    yield "nothing was written", lambda: None
    yield "taken", lambda: (writer.write_arrow(ROWS), writer.changes())
    yield "taken after the end", lambda: (writer.write_arrow(ROWS), writer.close(), writer.changes())
    yield "aborted", lambda: (writer.write_arrow(ROWS), writer.abort())
    yield "no rows", lambda: (writer.write_arrow(ROWS.slice(0, 0)), writer.close())


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("kind", KINDS)
def test_a_finished_writer_is_collected_without_a_warning(kind, number):
    root, schema = made(kind)
    writer = Writer(OpenTable(root, schema))
    _, end = list(ends(writer))[number]
    end()
    before = data_files(root)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del writer, end
        gc.collect()
    assert data_files(root) == before


def test_a_writer_in_a_reference_cycle_is_collected():
    root, schema = made()
    holder = {"writer": written(root, schema)}
    holder["self"] = holder
    holder["writer"].close()
    with pytest.warns(ResourceWarning, match=LOST):
        del holder
        gc.collect()
    assert data_files(root) == []


class Twins(CountingIds):
    """Two processes: the one that is asked for now."""

    now = 1

    def process(self):
        return self.now


def test_a_forked_child_leaves_all_to_its_parent():
    root, schema = made()
    root.env = Env(root.env.clock, Twins())
    writer = written(root, schema)
    writer.close()
    before = data_files(root)
    root.env.ids.now = 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del writer
    assert data_files(root) == before != []


class Keeps(MemoryStore):
    """Deletes nothing."""

    def delete(self, path):
        raise StorageError("no", path=path, operation="delete")


def test_a_failing_store_does_not_suppress_the_warning():
    root, schema = made(store=Keeps())
    writer = written(root, schema)
    writer.close()
    with pytest.warns(ResourceWarning, match=LOST):
        del writer


_AT_THE_END = """
import sys, warnings
import pyarrow as pa
from paimon_py import Catalog
catalog = Catalog.open(sys.argv[1])
catalog.create_database("d", exist_ok=True)
table = catalog.create_table("d.t", pa.schema([("k", pa.int64())]), exist_ok=True)
writer = table.writer()
writer.write_arrow(pa.table({"k": [1]}))
warnings.simplefilter(sys.argv[2], ResourceWarning)
"""


@pytest.mark.parametrize("action", ["always", "error"])
def test_the_end_of_the_process_gives_a_warning_and_raises_nothing(tmp_path, action):
    done = subprocess.run(
        [sys.executable, "-c", _AT_THE_END, str(tmp_path), action], capture_output=True, text=True, check=False, timeout=120
    )  # fmt: skip
    assert done.returncode == 0
    if action == "always":
        assert "was dropped with rows that changes() did not hand over" in done.stderr and "their files are orphans" in done.stderr
    else:
        assert done.stderr == ""
