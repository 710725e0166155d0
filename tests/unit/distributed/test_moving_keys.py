"""Keys that move between partitions, written by several processes: the rows of one writer, or nothing left behind."""

from __future__ import annotations

import os
import pickle
import random
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from paimon_py import Catalog, CommitConflictError, Schema, SchemaError, UnsupportedError
from paimon_py.distributed import CommitLabel, DistributedMerge, DistributedWrite, MergeClauses, RowRouting
from paimon_py.errors import CorruptionError, PaimonError
from paimon_py.executors import LocalExecutor

COLUMNS = Schema([("p", "INT NOT NULL"), ("k", "BIGINT NOT NULL"), ("v", "STRING"), ("n", "BIGINT")])
TEXTS = Schema([("p", "STRING NOT NULL"), ("k", "STRING NOT NULL"), ("v", "STRING"), ("n", "BIGINT")])
KINDS = {
    "plain": {},
    "write-only": {"write-only": "true"},
    "partial": {"merge-engine": "partial-update"},
    "sums": {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
    "spilling": {"write-buffer-size": "4 kb", "page-size": "1 kb"},
    "input": {"changelog-producer": "input"},
}


@pytest.fixture
def catalog(tmp_path):
    made = Catalog.open(str(tmp_path / "lake"), {"fs.local.fsync": "false"})
    made.create_database("db")
    return made


def create(catalog, name, kind, columns=COLUMNS):
    options = {"dynamic-bucket.target-row-num": "6", **KINDS[kind]}
    return catalog.create_table(f"db.{name}", columns, primary_key=["k"], partition_by=["p"], options=options)


def rows(keys, chosen, text="v", *, kinds=None):
    """Rows of some keys, each in a partition by chance."""
    data = {
        "p": pa.array([chosen.randrange(3) for _ in keys], pa.int32()), "k": pa.array(keys, pa.int64()),
        "v": [None if chosen.random() < 0.2 else f"{text}{k}" for k in keys], "n": pa.array([chosen.randrange(9) for _ in keys], pa.int64()),
    }  # fmt: skip
    if kinds is not None:
        data["_row_kind"] = [chosen.choice(kinds) for _ in keys]
    return pa.table(data)


def elsewhere(part):
    """The part as another process has it."""
    return pickle.loads(pickle.dumps(part))


def written(table, data, count, *, overwrite=None, seed=0, attempts=1):
    """The changes of all processes, each with its input in an order of its own; the last attempt of a step counts."""
    writing, chosen = DistributedWrite(table, overwrite), random.Random(seed)
    assert writing.shares_keys(count)
    steps = writing.key_steps(data.schema, count)
    routing = elsewhere(RowRouting(table.schema, data.schema, count))
    given = [[] for _ in range(count)]
    for batch in data.to_batches(max_chunksize=7):
        numbers = routing(batch)
        for number in set(numbers.tolist()):
            given[number].append((number, batch.filter(pa.array(numbers == number))))
    for work in steps.work:
        read = [list(elsewhere(steps.keys)(work)) for _ in range(attempts)][-1]
        for one in read:
            given[one.process].insert(chosen.randrange(len(given[one.process]) + 1), one)
    return [change for own in given for change in [list(elsewhere(steps.rows)(own)) for _ in range(attempts)][-1]]


def spread(table, data, count, *, overwrite=None, label=CommitLabel(), **more):
    changes = written(table, data, count, overwrite=overwrite, **more)
    return DistributedWrite(table, overwrite).commit(changes, label)


def content(table):
    return table.scan().to_arrow().sort_by([("k", "ascending"), ("p", "ascending")]).to_pylist()


def files(table):
    return {path for path in Path(table.location).rglob("*") if path.is_file() and path.name.startswith("data-")}


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(1, 8))])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_read_as_one_writer_leaves_them_whatever_the_number_of_processes(catalog, kind, seed):
    here, there = create(catalog, "here", kind), create(catalog, "there", kind)
    chosen = random.Random(f"{kind} {seed}")
    for turn in range(5):
        keys = chosen.sample(range(60), 30)
        data = rows(keys, chosen, f"t{turn}-", kinds=["+I", "+U", "-D"] if kind == "plain" and seed % 2 else None)
        count, overwrite = chosen.choice((2, 3, 5)), {} if turn == 3 else None
        here.write_arrow(data, overwrite=overwrite)
        if turn == 1:
            there.write_arrow(data)
        else:
            spread(there, data, count, overwrite=overwrite, seed=seed, attempts=1 + turn % 2)
        assert content(there) == content(here)
        if turn == 2 and kind != "write-only":
            here.compact(full=True)
            there.compact(full=True)
    assert [finding for finding in there.doctor() if finding.severity == "problem"] == []
    there.compact(full=True)
    assert content(there) == content(here)


def test_a_key_of_several_columns_of_text_has_one_writer(catalog):
    options = {"dynamic-bucket.target-row-num": "6"}
    here, there = (
        catalog.create_table(f"db.{name}", TEXTS, primary_key=["k", "n"], partition_by=["p"], options=options) for name in ("here", "there")
    )
    chosen = random.Random(1)
    for turn in range(3):
        data = pa.table({
            "n": pa.array([k % 4 for k in range(40)], pa.int64()), "k": [f"key {k}" * (k % 3) for k in range(40)],
            "p": [chosen.choice(["a", "b", "ä/c"]) for _ in range(40)], "v": [f"t{turn}"] * 40,
        }).group_by(["k", "n"]).aggregate([("p", "min"), ("v", "min")]).rename_columns(["k", "n", "p", "v"])  # fmt: skip
        here.write_arrow(data)
        spread(there, data, 4)
        assert content(there) == content(here)


def test_each_process_fills_buckets_of_its_own_up_to_their_size(catalog):
    table = create(catalog, "t", "plain")
    chosen = random.Random(3)
    one = rows(range(40), chosen).set_column(0, "p", pa.array([0] * 40, pa.int32()))
    table.write_arrow(one)
    more = rows(range(100, 160), chosen).set_column(0, "p", pa.array([0] * 60, pa.int32()))
    spread(table, more, 3)
    table.compact(full=True)
    sizes = {}
    for split in table.scan().splits():
        sizes[split.bucket] = sizes.get(split.bucket, 0) + split.row_count
    assert sum(sizes.values()) == 100 and max(sizes.values()) == 6
    assert len(sizes) <= 17 + 3


def test_keys_that_others_moved_in_the_meantime_are_a_conflict_and_leave_no_file(catalog):
    table = create(catalog, "t", "plain")
    chosen = random.Random(4)
    table.write_arrow(rows(range(40), chosen))
    changes = written(table, rows(range(20, 60), chosen, "m"), 3)
    catalog.table("db.t").write_arrow(rows([3], chosen, "late"))
    before = content(table)
    with pytest.raises(CommitConflictError, match="others changed rows in the meantime"):
        DistributedWrite(table).commit(changes, CommitLabel())
    assert content(catalog.table("db.t")) == before
    for path in files(table):
        os.utime(path, (0, 0))
    assert table.remove_orphans().files == 0
    changes = written(table, rows(range(20, 60), chosen, "m"), 3)
    catalog.table("db.t").compact(full=True)
    DistributedWrite(table).commit(changes, CommitLabel())
    assert table.refresh().count() == 60


def test_a_batch_is_committed_once_and_changes_of_two_writes_are_not_mixed(catalog):
    table, chosen = create(catalog, "t", "plain"), random.Random(5)
    data = rows(range(40), chosen)
    assert spread(table, data, 3, label=CommitLabel("job", 1)).row_count == 40
    assert spread(table, data, 3, label=CommitLabel("job", 1)).already_committed
    one, two = (written(table, rows(range(n, n + 20), chosen), 2) for n in (0, 100))
    with pytest.raises(PaimonError, match="several writers"):
        DistributedWrite(table).commit([*one, *two], CommitLabel())


def test_a_key_that_is_in_two_partitions_is_named_by_the_process_of_its_share(catalog):
    table, chosen = create(catalog, "t", "plain"), random.Random(6)
    one, two = table.writer(), catalog.table("db.t").writer()
    for writer, p in ((one, 0), (two, 1)):
        writer.write_arrow(rows([7, 8], chosen).set_column(0, "p", pa.array([p, p], pa.int32())))
    changes = [writer.changes() for writer in (one, two)]
    table.commit(changes[0])
    catalog.table("db.t").commit(msgspec.structs.replace(changes[1], keys=None))
    with pytest.raises(CorruptionError, match="more than once, in"):
        written(table, rows(range(20), chosen), 2)


def test_rows_without_a_key_are_refused_and_processes_without_rows_write_nothing(catalog):
    table, chosen = create(catalog, "t", "plain"), random.Random(7)
    table.write_arrow(rows(range(10), chosen))
    data = rows(range(10), chosen)
    with pytest.raises(SchemaError):
        written(table, data.set_column(1, "k", pa.array([None, *range(9)], pa.int64())), 3)
    assert written(table, data.slice(0, 0), 3) == []
    assert len(written(table, data.slice(0, 1), 3)) == 1
    with pytest.raises(SchemaError, match="k: string given"):
        DistributedWrite(table).key_steps(pa.schema([("p", pa.int32()), ("k", pa.string())]), 2)
    with pytest.raises(UnsupportedError, match="overwrite some partitions"):
        DistributedWrite(table, {"p": 1}).check()


@pytest.mark.parametrize(("options", "shares"), [
    ({}, True), ({"deletion-vectors.enabled": "true"}, False), ({"changelog-producer": "lookup"}, False),
    ({"merge-engine": "first-row"}, False), ({"changelog-producer": "lookup", "write-only": "true"}, True),
], ids=str)  # fmt: skip
def test_one_process_writes_where_readers_wait_for_its_compaction(catalog, options, shares):
    table = catalog.create_table("db.t", COLUMNS, primary_key=["k"], partition_by=["p"], options=options)
    writing = DistributedWrite(table)
    assert writing.shares_keys(3) is shares and not writing.shares_keys(1) and writing.writers(3) == 1
    assert not DistributedWrite(table, sends=False).shares_keys(3)


# -- rows that stay where they are ----------------------------------------------------------------------------------------

STAYING = {
    "plain": {}, "vectors": {"deletion-vectors.enabled": "true"}, "lookup": {"changelog-producer": "lookup"},
    "partial": {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
}


class CountedExecutor(LocalExecutor):
    """Counts the tasks, and lets something happen before the first one."""

    def __init__(self, before=()):
        super().__init__(threads=2)
        self.count = 0
        self.before = list(before)

    def run(self, job, tasks):
        for each in self.before[:1]:
            each()
        del self.before[:1]
        for result in super().run(job, tasks):
            self.count += 1
            yield result


def staying(catalog, kind):
    """Two tables with the same rows, in several buckets of each partition; keys have moved."""
    options = {"dynamic-bucket.target-row-num": "6", **STAYING[kind]}
    tables = [catalog.create_table(f"db.{name}", COLUMNS, primary_key=["k"], partition_by=["p"], options=options) for name in ("here", "there")]
    for table in tables:
        chosen = random.Random(8)
        for turn in range(3):
            table.write_arrow(rows(chosen.sample(range(60), 35), chosen, f"t{turn}-"))
    return tables


@pytest.mark.parametrize("kind", STAYING)
def test_rows_change_where_they_are_by_a_task_for_each_bucket(catalog, kind):
    here, there = staying(catalog, kind)
    buckets = {(split.partition, split.bucket) for split in there.scan().splits()}
    executor = CountedExecutor()
    assert there.update("k < 40", {"v": "u"}, executor=executor).updated == here.update("k < 40", {"v": "u"}).updated
    assert 6 < executor.count <= len(buckets)
    assert there.delete("n > 5", executor=executor).deleted == here.delete("n > 5").deleted > 5
    assert content(there) == content(here)
    data = rows(range(30, 80), random.Random(9), "m")
    asked = {"when_matched_update": ("source.k > 40", {"v": "m"}), "when_matched_delete": "source.k = 33", "when_not_matched_by_source_delete": "target.k < 9"}
    merging = DistributedMerge("merge", there, data.schema, ["k"], MergeClauses(
        matched_update=asked["when_matched_update"], matched_delete="source.k = 33", by_source_delete="target.k < 9",
    ))  # fmt: skip
    assert merging.spreads and not merging.takes_two_steps(3)

    def gather(part, splits):
        shares = merging.divide(splits, 3, 9)
        assert len(shares) == 3
        return [one for share in shares for one in elsewhere(part)(iter(data.to_batches()), list(enumerate(map(bytes, share))))]

    one, two = here.merge(data, ["k"], **asked), merging.run(CommitLabel(), gather)
    assert (two.updated, two.deleted) == (one.updated, one.deleted)
    assert content(there) == content(here)
    moved = rows(range(50), random.Random(10), "w")
    here.write_arrow(moved)
    there.write_arrow(moved)
    assert content(there) == content(here)
    there.compact(full=True)
    assert content(there) == content(here)
    assert [finding for finding in there.doctor() if finding.severity == "problem"] == []
    inserting = DistributedMerge("merge", there, data.schema, ["k"], MergeClauses(insert=True))
    assert not inserting.spreads and inserting.parts(4) == 1


@pytest.mark.parametrize("kind", ["plain", "vectors"])
def test_rows_that_others_move_in_the_meantime_are_changed_where_they_are_then(catalog, kind):
    here, there = staying(catalog, kind)
    moved = rows(range(0, 60, 2), random.Random(11), "moved")
    here.write_arrow(moved)
    here.update("v like 't%' or k = 4", {"v": "u"})
    executor = CountedExecutor([lambda: catalog.table("db.there").write_arrow(moved)])
    done = there.update("v like 't%' or k = 4", {"v": "u"}, executor=executor)
    assert done.rounds == 2
    assert content(there) == content(here)
    other = CountedExecutor([lambda: catalog.table("db.there").compact(full=True)])
    here.delete("v = 'u'")
    there.delete("v = 'u'", executor=other)
    assert content(there) == content(here)
    for path in files(there):
        os.utime(path, (0, 0))
    assert there.remove_orphans().files == 0
