"""Files outside the table through the public verbs: written, read, committed, discarded and aborted."""

from __future__ import annotations

import os
import pickle

import pyarrow as pa
import pytest

from paimon_py import Catalog, Changes, OptionError, Schema, SetOption, UsageError
from paimon_py.scan.split import Split
from paimon_py.storage.open import open_store

EXTERNAL = "data-file.external-paths"
COLUMNS = Schema([("k", "INT NOT NULL"), ("v", "STRING")])


def files_below(directory) -> list[str]:
    return sorted(os.path.join(at, name) for at, _, names in os.walk(directory) for name in names)


def rows(*numbers: int) -> pa.Table:
    return pa.table({"k": pa.array(numbers, pa.int32()), "v": [f"v{n}" for n in numbers]})


@pytest.fixture(params=["keyed", "append"])
def table(request, tmp_path):
    catalog = Catalog.open(str(tmp_path / "w"))
    catalog.create_database("d")
    options = {"bucket": "2" if request.param == "keyed" else "-1", EXTERNAL: f"file://{tmp_path}/one,file://{tmp_path}/two",
               f"{EXTERNAL}.strategy": "round-robin"}  # fmt: skip
    return catalog.create_table("d.t", COLUMNS, primary_key=["k"] if request.param == "keyed" else [], options=options)


def outside(table) -> list[str]:
    home = os.path.dirname(os.path.dirname(os.path.dirname(table.location)))
    return files_below(os.path.join(home, "one")) + files_below(os.path.join(home, "two"))


def test_rows_come_back_from_outside_through_changes_and_splits_in_other_processes(table):
    with table.writer() as writer:
        writer.write_arrow(rows(*range(30)))
    changes = Changes.from_bytes(bytes(writer.changes()))
    paths = [file.external_path for bucket in changes.buckets for file in bucket.written.added]
    assert sorted(path.removeprefix("file:") for path in paths) == outside(table)
    table.commit(changes)
    scan = pickle.loads(pickle.dumps(table)).scan()
    splits = [Split.from_bytes(bytes(split)) for split in scan.splits()]
    read = pa.concat_tables([pa.Table.from_batches(scan.read(split)) for split in splits])
    assert read.sort_by("k").equals(rows(*range(30)).cast(read.schema))


def test_discarded_aborted_and_failed_writes_leave_nothing_outside(table):
    with table.writer() as writer:
        writer.write_arrow(rows(1, 2))
    changes = writer.changes()
    assert outside(table)
    writer.discard(changes)
    assert outside(table) == []
    writer = table.writer()
    writer.write_arrow(rows(1, 2))
    writer.close()
    assert outside(table)
    writer.abort()
    assert outside(table) == []


def test_changes_whose_external_files_are_missing_are_refused(table):
    with table.writer() as writer:
        writer.write_arrow(rows(1, 2))
    changes = writer.changes()
    os.remove(outside(table)[0])
    with pytest.raises(UsageError, match="one|two"):
        table.commit(changes)


def test_two_writers_of_a_bucket_both_keep_their_rows_outside(table):
    writers = [table.writer(), table.writer()]
    for number, writer in enumerate(writers):
        with writer:
            writer.write_arrow(pa.table({"k": pa.array([1], pa.int32()), "v": [f"w{number}"]}))
    for writer in writers:
        table.commit(writer.changes())
    found = table.scan().to_arrow()["v"].to_pylist()
    assert found == (["w1"] if table.schema.primary_keys else ["w0", "w1"])
    assert len(outside(table)) == 2


def test_paths_may_be_changed_at_any_time(table):
    table.write_arrow(rows(1))
    table.alter(SetOption(f"{EXTERNAL}.strategy", "none"))
    table.write_arrow(rows(2))
    assert len(outside(table)) == 1
    assert table.scan().count() == 2
    with pytest.raises(OptionError):
        table.alter(SetOption(EXTERNAL, "relative"), SetOption(f"{EXTERNAL}.strategy", "round-robin"))


def test_dropping_a_table_deletes_its_external_files_and_nothing_else(table, tmp_path):
    table.write_arrow(rows(1, 2))
    table.create_tag("kept")
    table.write_arrow(rows(3), overwrite={})
    neighbour = tmp_path / "one" / "neighbour"
    neighbour.parent.mkdir(exist_ok=True)
    neighbour.write_text("x")
    assert len(outside(table)) > 2
    Catalog.open(str(tmp_path / "w")).drop_table("d.t")
    assert outside(table) == [str(neighbour)]


def test_files_may_be_in_another_store(tmp_path):
    catalog = Catalog.open(str(tmp_path / "w"))
    catalog.create_database("d")
    options = {EXTERNAL: "memory://elsewhere/x", f"{EXTERNAL}.strategy": "round-robin"}
    table = catalog.create_table("d.t", COLUMNS, options=options)
    table.write_arrow(rows(1, 2))
    assert table.scan().count() == 2 == table.scan().to_arrow().num_rows
    store, root = open_store("memory://elsewhere/x", {})
    assert [status.name for status in store.list(f"{root}/bucket-0")] != []
    assert not any(name.endswith(".parquet") for name in files_below(tmp_path))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({EXTERNAL: "/plain/path", f"{EXTERNAL}.strategy": "round-robin"}, EXTERNAL),
        ({EXTERNAL: "s3://b/x", f"{EXTERNAL}.strategy": "specific-fs"}, f"{EXTERNAL}.specific-fs"),
        ({EXTERNAL: "s3://b/x", f"{EXTERNAL}.strategy": "nearest"}, f"{EXTERNAL}.strategy"),
        ({"data-file.path-directory": "/abs"}, "data-file.path-directory"),
        ({"data-file.path-directory": "../up"}, "data-file.path-directory"),
    ],
)
def test_bad_places_are_refused_when_a_table_is_created(tmp_path, options, named):
    catalog = Catalog.open(str(tmp_path / "w"))
    catalog.create_database("d")
    with pytest.raises(OptionError) as caught:
        catalog.create_table("d.t", COLUMNS, options=options)
    assert caught.value.option == named
