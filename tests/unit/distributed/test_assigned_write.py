"""Dynamic buckets whose readers wait for compactions: each has one writer, however many processes assign rows to buckets."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from unit.distributed.two_steps import Torn, TwoSteps, merge_in_steps

from paimon_py import Catalog, CommitConflictError, Schema, SchemaError
from paimon_py.commit.deletion_index import index_entries
from paimon_py.distributed import CommitLabel, DistributedWrite, MergeClauses, assigned_changes
from paimon_py.distributed.sent import ROWS
from paimon_py.metadata.hash_files import read_hashes

COLUMNS = Schema([("p", "INT NOT NULL"), ("k", "BIGINT NOT NULL"), ("v", "STRING"), ("n", "BIGINT")])
KINDS = {
    "vectors": {"deletion-vectors.enabled": "true"},
    "lookup": {"changelog-producer": "lookup"},
    "first row": {"merge-engine": "first-row"},
    "sums": {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "changelog-producer": "lookup"},
    "few assigners": {"deletion-vectors.enabled": "true", "dynamic-bucket.initial-buckets": "2"},
    "few buckets": {"deletion-vectors.enabled": "true", "dynamic-bucket.max-buckets": "3"},
}
SPEC = {"primary_key": ["p", "k"], "partition_by": ["p"]}
DYNAMIC = {"bucket": "-1", "dynamic-bucket.target-row-num": "12"}


@pytest.fixture
def catalog(tmp_path):
    made = Catalog.open(str(tmp_path / "lake"), {"fs.local.fsync": "false"})
    made.create_database("db")
    return made


def create(catalog, name, kind):
    return catalog.create_table(f"db.{name}", COLUMNS, options={**DYNAMIC, **KINDS[kind]}, **SPEC)


def rows(keys, text="v", parts=5):
    return pa.table({
        "p": pa.array([k % parts for k in keys], pa.int32()), "k": pa.array(keys, pa.int64()),
        "v": [f"{text}{k}" for k in keys], "n": pa.array(list(keys), pa.int64()),
    })  # fmt: skip


def content(table):
    return table.scan().to_arrow().sort_by([("p", "ascending"), ("k", "ascending")]).to_pylist()


def files(table):
    found = (path for path in Path(table.location).rglob("*") if path.is_file())
    return {path for path in found if "bucket-" in str(path) or path.parent.name == "index"}


def is_indexed_once(table):
    """Whether each key is in the index of one bucket of its partition."""
    entries = [entry for entry in index_entries(table._root, table._root.snapshots.latest()) if entry.index_type == "HASH"]
    found = [(entry.partition, value) for entry in entries for value in read_hashes(table._open_table, entry).tolist()]
    return len(found) == len(set(found)) == table.count()


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_read_as_one_writer_leaves_them_whatever_the_number_of_processes(catalog, kind):
    here, there = create(catalog, "here", kind), create(catalog, "there", kind)
    for turn, count in enumerate((2, 3)):
        data = rows(range(turn * 9, turn * 9 + 60), f"t{turn}-", parts=2)
        here.write_arrow(data)
        engine = TwoSteps(there, data, count, seed=turn)
        done = engine.commit(engine.results())
        assert done.dropped_compaction is None
        assert content(there) == content(here)
        levels = there.system("files").scan(columns=["level"]).to_arrow()["level"].to_pylist()
        assert 0 not in levels
    assert is_indexed_once(there)
    assert [finding for finding in there.doctor() if finding.severity == "problem"] == []
    if "changelog-producer" in KINDS[kind]:
        told = [table.changes(start=0, end=table.snapshot().id).to_arrow() for table in (here, there)]
        assert len({tuple(sorted(map(repr, each.to_pylist()))) for each in told}) == 1


def test_a_bucket_has_one_writer(catalog):
    table = create(catalog, "t", "vectors")
    table.write_arrow(rows(range(60)))
    engine = TwoSteps(table, rows(range(80), "w"), 4)
    changes, _ = assigned_changes(engine.results())
    places = [bucket.place for one in changes for bucket in one.buckets]
    assert len(places) == len(set(places)) > 4


def test_a_share_that_is_assigned_twice_is_noticed_and_leaves_nothing(catalog):
    table = create(catalog, "t", "vectors")
    before = files(table)
    engine = TwoSteps(table, rows(range(90)), 2)
    first, other, again = engine.assign(0), engine.assign(1), engine.assign(0)
    results = [*engine.write(0, first + other), *engine.write(1, again + other)]
    changes, fit = assigned_changes(results)
    assert not fit
    engine.writing.discard(changes)
    assert files(table) == before
    engine.commit([*engine.write(0, again + other), *engine.write(1, again + other)])
    assert content(table) == rows(range(90)).sort_by([("p", "ascending"), ("k", "ascending")]).to_pylist()


def test_a_repeated_share_is_noticed_by_processes_that_get_no_rows_of_it(catalog):
    options = {**DYNAMIC, **KINDS["vectors"], "dynamic-bucket.initial-buckets": "1"}
    table = catalog.create_table("db.t", COLUMNS, options=options, **SPEC)
    engine = TwoSteps(table, rows(range(5), parts=1), 3)
    first = [one for number in range(3) for one in engine.assign(number)]
    table.write_arrow(rows(range(100, 113), "rival", parts=1))  # fills the bucket that was assigned
    again = [one for number in range(3) for one in engine.assign(number)]
    had = {one.process for one in first if one.kind == ROWS}
    assert had.isdisjoint(one.process for one in again if one.kind == ROWS)
    results = [result for number in range(3) for result in engine.write(number, again if number in had else first)]
    assert assigned_changes(results) == ([], False)


def test_keys_that_others_assigned_in_the_meantime_are_refused(catalog):
    table = create(catalog, "t", "vectors")
    table.write_arrow(rows(range(0, 25)))
    engine = TwoSteps(table, rows(range(100, 160)), 3)
    sent = [one for number in range(3) for one in engine.assign(number)]
    table.write_arrow(rows(range(159, 99, -1), "rival"))  # in other buckets
    before = files(table)
    results = [result for number in range(3) for result in engine.write(number, sent)]
    with pytest.raises(CommitConflictError, match="another writer assigned bucket"):
        engine.commit(results)
    assert content(table)[-1]["v"] == "rival159" and is_indexed_once(table)
    assert files(table) == before


def test_known_keys_may_be_written_while_others_write(catalog):
    table = create(catalog, "t", "vectors")
    table.write_arrow(rows(range(0, 60)))
    engine = TwoSteps(table, rows(range(0, 60), "w"), 3)
    sent = [one for number in range(3) for one in engine.assign(number)]
    table.write_arrow(rows(range(100, 160), "rival"))
    done = engine.commit([result for number in range(3) for result in engine.write(number, sent)])
    assert done.dropped_compaction is None and is_indexed_once(table)
    assert {row["v"] for row in content(table)} == {f"w{k}" for k in range(60)} | {f"rival{k}" for k in range(100, 160)}


@pytest.mark.parametrize("overwrite", [{}, "dynamic", {"p": 2}], ids=str)
def test_an_overwrite_assigns_its_buckets_anew(catalog, overwrite):
    here, there = create(catalog, "here", "vectors"), create(catalog, "there", "vectors")
    for table in (here, there):
        table.write_arrow(rows(range(60)))
    data = rows(range(2, 90, 5), "o")
    here.write_arrow(data, overwrite=overwrite)
    engine = TwoSteps(there, data, 3, overwrite=overwrite)
    engine.commit(engine.results())
    assert content(there) == content(here) and is_indexed_once(there)


def test_a_commit_counts_once_and_nothing_is_needed_for_no_rows(catalog):
    table = create(catalog, "t", "vectors")
    engine = TwoSteps(table, rows(range(20)), 2)
    assert engine.commit(engine.results(), CommitLabel("u", 1)).row_count == 20
    engine = TwoSteps(table, rows(range(20)), 2)
    assert engine.commit(engine.results(), CommitLabel("u", 1)).already_committed
    engine = TwoSteps(table, rows([]), 2)
    assert engine.results() == [] and engine.commit([]).snapshot_id is None
    with pytest.raises(SchemaError, match="k: string given"):
        DistributedWrite(table).steps(pa.schema([("p", pa.int32()), ("k", pa.string())]), 2)


@pytest.mark.parametrize(("options", "is_needed"), [
    ({}, False), (KINDS["vectors"], True), ({**KINDS["vectors"], "write-only": "true"}, False), (KINDS["lookup"], True),
    ({**KINDS["vectors"], "deletion-vectors.merge-on-read": "true"}, False), ({**KINDS["lookup"], "bucket": "4"}, False),
], ids=str)  # fmt: skip
def test_two_steps_are_for_tables_whose_readers_wait_for_the_writer(catalog, options, is_needed):
    writing = DistributedWrite(catalog.create_table("db.t", COLUMNS, options={**DYNAMIC, **options}, **SPEC))
    assert writing.takes_two_steps(4) is is_needed and not writing.takes_two_steps(1)


# -- merges ---------------------------------------------------------------------------------------------------------

CLAUSES = {
    "upserts": {"matched_update": True, "insert": True},
    "some": {"matched_update": ("source.n > 40", {"v": "source.v"}), "insert": ("source.n < 80", True)},
    "deletes": {"matched_delete": "source.n = 33", "insert": True, "by_source_delete": "target.n < 9"},
    "others": {"insert": True, "by_source_update": ("target.n < 20", {"v": "apart"})},
}
NAMES = {"matched_update": "when_matched_update", "matched_delete": "when_matched_delete", "insert": "when_not_matched_insert",
         "by_source_delete": "when_not_matched_by_source_delete", "by_source_update": "when_not_matched_by_source_update"}  # fmt: skip


@pytest.mark.parametrize("kind", ["vectors", "lookup", "few buckets"])
@pytest.mark.parametrize("asked", CLAUSES)
def test_rows_are_merged_as_one_process_merges_them(catalog, kind, asked):
    here, there = create(catalog, "here", kind), create(catalog, "there", kind)
    for table in (here, there):
        table.write_arrow(rows(range(50), parts=2))
    source, clauses = rows(range(30, 90), "m", parts=2), CLAUSES[asked]
    one = here.merge(source, ["p", "k"], **{NAMES[name]: value for name, value in clauses.items()})
    two = merge_in_steps(there, source, ["p", "k"], MergeClauses(**clauses), 3, seed=len(asked))
    assert (two.inserted, two.updated, two.deleted) == (one.inserted, one.updated, one.deleted)
    assert content(there) == content(here)
    levels = there.system("files").scan(columns=["level"]).to_arrow()["level"].to_pylist()
    assert 0 not in levels
    assert [finding for finding in there.doctor() if finding.severity == "problem"] == []


def test_columns_of_the_source_may_have_other_names_and_keys_that_nobody_has(catalog):
    table = create(catalog, "t", "vectors")
    source = rows(range(20), "m").rename_columns(["part", "key", "text", "number"])
    values = {"p": "source.part", "k": "source.key", "v": "source.text"}
    done = merge_in_steps(table, source, {"p": "part", "k": "key"}, MergeClauses(insert=values), 4)
    assert done.inserted == 20 and is_indexed_once(table)
    again = merge_in_steps(table, source, {"p": "part", "k": "key"}, MergeClauses(insert=values), 2)
    assert again.snapshot_id is None and {row["v"] for row in content(table)} == {f"m{k}" for k in range(20)}


def test_a_share_of_a_merge_that_is_assigned_twice_is_noticed_and_leaves_nothing(catalog):
    table = create(catalog, "t", "vectors")
    table.write_arrow(rows(range(9)))
    before, was = files(table), content(table)
    with pytest.raises(Torn):
        merge_in_steps(table, rows(range(90), "m"), ["p", "k"], MergeClauses(matched_update=True, insert=True), 2, repeat=0)
    assert files(table) == before and content(table) == was


@pytest.mark.parametrize("asked", ["upserts", "others"])
def test_a_merge_whose_keys_others_move_to_other_buckets_is_done_again(catalog, asked):
    here, there = create(catalog, "here", "vectors"), create(catalog, "there", "vectors")
    source, clauses, other = rows(range(30, 90), "m", parts=2), CLAUSES[asked], rows(range(70, -1, -1), "o", parts=2)
    for table in (here, there):
        table.write_arrow(rows(range(70), parts=2))
    here.write_arrow(other, overwrite={})
    one = here.merge(source, ["p", "k"], **{NAMES[name]: value for name, value in clauses.items()})
    rivals = [lambda: there.write_arrow(other, overwrite={}), lambda: there.compact(full=True)]
    two = merge_in_steps(there, source, ["p", "k"], MergeClauses(**clauses), 3, rivals=rivals)
    assert (two.inserted, two.updated, two.rounds) == (one.inserted, one.updated, 2)
    assert content(there) == content(here) and is_indexed_once(there)
