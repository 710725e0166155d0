"""Rows in the processes of an engine: parts that were pickled give what one process gives, or leave nothing behind."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from paimon_py import AddColumn, Catalog, CommitConflictError, Schema, SchemaError, Table, UsageError
from paimon_py.distributed import (
    BucketRouting,
    CommitLabel,
    DistributedMerge,
    DistributedWrite,
    LookupPart,
    MergeClauses,
    RowRouting,
    commit_of,
    create_table_at,
    run_once,
    with_options,
)
from paimon_py.errors import AlreadyExistsError, OptionError

COLUMNS = Schema([("p", "INT NOT NULL"), ("k", "BIGINT NOT NULL"), ("v", "STRING")])
KINDS = {
    "fixed": {"primary_key": ["p", "k"], "partition_by": ["p"], "options": {"bucket": "3"}},
    "unpartitioned": {"primary_key": ["k"], "options": {"bucket": "2"}},
    "dynamic": {"primary_key": ["p", "k"], "partition_by": ["p"], "options": {"bucket": "-1", "dynamic-bucket.target-row-num": "20"}},
    "cross": {"primary_key": ["k"], "partition_by": ["p"], "options": {"bucket": "-1"}},
    "append": {"partition_by": ["p"]},
}
NOBODY = CommitLabel()


@pytest.fixture
def catalog(tmp_path):
    made = Catalog.open(str(tmp_path / "lake"))
    made.create_database("db")
    return made


def rows(start, end, text="v"):
    numbers = np.arange(start, end)
    return pa.table({"p": pa.array(numbers % 3, pa.int32()), "k": numbers, "v": [f"{text}{k}" for k in numbers]})


def content(table):
    found = table.scan().to_arrow().sort_by([("p", "ascending"), ("k", "ascending"), ("v", "ascending")])
    return found.to_pylist()


def files(table):
    return sorted(path for path in Path(table.location).rglob("*") if path.is_file())


def elsewhere(part):
    """The part as another process has it."""
    return pickle.loads(pickle.dumps(part))


def routed(data, schema, target, processes):
    """The rows of each process, in batches with its number."""
    routing, sent = elsewhere(RowRouting(schema, target, processes)), [[] for _ in range(processes)]
    for batch in data.to_batches(max_chunksize=17):
        numbers = routing(batch)
        for number in range(processes):
            sent[number].append((number, batch.filter(pa.array(numbers == number))))
    return sent


def write(table, data, wanted=4, *, sends=True, overwrite=None, label=NOBODY):
    writing = DistributedWrite(table, overwrite, sends=sends)
    writing.check()
    writers = writing.writers(wanted) if sends else 0
    if writers:
        sent = routed(data, table.schema, data.schema, writers)
    else:
        sent = [[(None, batch)] for batch in data.to_batches(max_chunksize=40)]
    part = writing.part(data.schema, writers)
    written = [one for own in sent for one in elsewhere(part)(own)]
    return writing.commit(written, label)


@pytest.mark.parametrize("sends", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_written_as_one_process_writes_them(catalog, kind, sends):
    here, there = (catalog.create_table(f"db.{name}", COLUMNS, **KINDS[kind]) for name in ("here", "there"))
    for data in (rows(0, 100), rows(40, 120, "w")):
        here.write_arrow(data)
        assert write(there, data, sends=sends).snapshot_id is not None
    assert content(there) == content(here)
    assert [finding for finding in there.doctor() if finding.severity == "problem"] == []
    write(there, rows(0, 4), sends=sends, overwrite={})
    assert content(there) == rows(0, 4).sort_by([("p", "ascending"), ("k", "ascending")]).to_pylist()


def test_rows_of_a_bucket_come_to_one_writer(catalog):
    table = catalog.create_table("db.t", COLUMNS, **KINDS["fixed"])
    write(table, rows(0, 100))
    names = table.system("files").scan(columns=["partition", "bucket"]).to_arrow()
    assert len(names) == len(set(map(str, names.to_pylist()))) == 9
    routing = BucketRouting(table.schema, 4)
    assert {routing.of_bucket(split.partition, split.bucket) for split in table.scan().splits()} <= set(range(4))
    assert DistributedWrite(catalog.create_table("db.u", COLUMNS, **KINDS["unpartitioned"])).writers(9) == 2


def test_a_commit_has_all_or_nothing_and_counts_once(catalog):
    table = catalog.create_table("db.t", COLUMNS, **KINDS["fixed"])
    label = CommitLabel("loader", 7)
    assert commit_of(table, label) is None
    write(table, rows(0, 30), label=label)
    before = files(table)
    assert commit_of(table, label).snapshot_ids == (1,)
    writing = DistributedWrite(table)
    written = [one for own in routed(rows(0, 30), table.schema, rows(0, 1).schema, 2) for one in writing.part(rows(0, 1).schema, 2)(own)]
    assert len(files(table)) > len(before)
    writing.discard(written)
    assert files(table) == before
    with pytest.raises(SchemaError, match="k: string given"):
        writing.part(pa.schema([("p", pa.int32()), ("k", pa.string())]))
    with pytest.raises(UsageError, match="overwrite takes"):
        DistributedWrite(table, "partly").check()


def test_staged_rows_of_another_schema_are_refused_and_deleted(catalog):
    table = catalog.create_table("db.t", COLUMNS, **KINDS["dynamic"])
    write(table, rows(0, 9), sends=False)
    before = files(table)
    data = rows(0, 30)
    written = list(DistributedWrite(table, sends=False).part(data.schema)([(None, data.to_batches()[0])]))
    table.alter(AddColumn("w", "INT"))
    newer = catalog.table("db.t")
    with pytest.raises(CommitConflictError, match="the schema of db.t changed"):
        DistributedWrite(newer, sends=False).commit(written, NOBODY)
    assert {path for path in files(newer) if "bucket-" in str(path)} == {path for path in before if "bucket-" in str(path)}


def merge(table, data, clauses, wanted=4, label=NOBODY):
    merging = DistributedMerge("merge", table, data.schema, ["p", "k"], clauses)
    processes = merging.parts(wanted)
    homes = BucketRouting(table.schema, processes)

    def gather(part, splits):
        work = [[] for _ in range(processes)]
        for number, split in enumerate(splits):
            work[homes.of_bucket(split.partition, split.bucket)].append((number, bytes(split)))
        sent = routed(data, table.schema, data.schema, processes)
        pairs = zip(sent, work, strict=True)
        return [one for own, splits in pairs for one in elsewhere(part)(iter([rows for _, rows in own if rows.num_rows]), splits)]

    return run_once(table, label, lambda: merging.run(label, gather))


@pytest.mark.parametrize("kind", ["fixed", "append"])
def test_rows_are_merged_as_one_process_merges_them(catalog, kind):
    here, there = (catalog.create_table(f"db.{name}", COLUMNS, **KINDS[kind]) for name in ("here", "there"))
    for table in (here, there):
        table.write_arrow(rows(0, 60))
    data = rows(50, 80, "m")
    expected = here.merge(data, ["p", "k"], when_matched_update=True, when_not_matched_insert=True, when_not_matched_by_source_delete="target.k < 5")
    clauses = MergeClauses(matched_update=True, insert=True, by_source_delete="target.k < 5")
    done = merge(there, data, clauses, label=CommitLabel("m", 1))
    assert (done.updated, done.inserted, done.deleted) == (expected.updated, expected.inserted, expected.deleted) == (10, 20, 5)
    assert content(there) == content(here)
    assert merge(there, data, clauses, label=CommitLabel("m", 1)).already_committed


def test_keys_are_looked_up_in_one_snapshot(catalog):
    table = catalog.create_table("db.t", COLUMNS, **KINDS["fixed"])
    keys = pa.table({"p": pa.array([1, None, 2, 1, 0], pa.int32()), "k": pa.array([7, 4, None, 7, 1000])})
    empty = elsewhere(LookupPart(table, ["v"]))
    table.write_arrow(rows(0, 30))
    part = elsewhere(LookupPart(table, ["v"]))
    table.write_arrow(rows(0, 30, "later"))
    assert part(keys).to_pylist() == [{"v": "v7"}, {"v": None}, {"v": None}, {"v": "v7"}, {"v": None}]
    assert empty(keys).to_pylist() == [{"v": None}] * 5
    assert part(keys.slice(0, 0)).num_rows == 0
    assert elsewhere(LookupPart(table, ["v"]))(keys.slice(3, 1)).to_pylist() == [{"v": "later7"}]


def test_a_table_is_made_at_a_path_once(tmp_path):
    path = str(tmp_path / "t")
    create_table_at(path, COLUMNS, {"primary-key": "k", "bucket": "2"}, {})
    create_table_at(path, COLUMNS, {"primary-key": "k", "bucket": "9"}, {})  # somebody was faster
    table = Table.open(path)
    assert (table.schema.primary_keys, table.options["bucket"]) == (("k",), "2")
    assert with_options(table, {"write-only": "true"}).options["write-only"] == "true"
    assert "write-only" not in Table.open(path).options
    with pytest.raises(OptionError, match="cannot change"):
        with_options(table, {"merge-engine": "aggregation"})
    table.write_arrow(rows(0, 3))
    for schema in (Path(path) / "schema").iterdir():
        schema.unlink()
    with pytest.raises(AlreadyExistsError, match="remains of another table"):
        create_table_at(path, COLUMNS, {}, {})
