"""A plan by the tasks of an executor consists of the splits that one process plans."""

from __future__ import annotations

import itertools
import random

import pyarrow as pa
import pytest
from unit.scan.test_lazy_plan import CUTS

from paimon_py import Catalog, col
from paimon_py.env import Env
from paimon_py.errors import OptionError, SnapshotExpiredError, StorageError, UnsupportedError, UsageError
from paimon_py.executors import LocalExecutor, ProcessExecutor, TaskResult
from paimon_py.scan import plan_shares, plan_tasks, prune_entries
from paimon_py.scan.part_files import PartFiles
from paimon_py.scan.plan_shares import PlanShares
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.named_files import name_files
from paimon_py.testing.store_spill import StoreSpill

SCHEMA = pa.schema([pa.field("p", pa.int32(), nullable=False), pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())])
ALWAYS = {"scan.plan.executor-manifests": "0"}
SHAPES = {
    "append": {"options": {"bucket": "-1", "write-only": "true"}},
    "vectors of append": {"options": {"bucket": "-1", "deletion-vectors.enabled": "true"}},
    "buckets": {"options": {"bucket": "3", "bucket-key": "k", "write-only": "true"}},
    "keyed": {"primary_key": ["p", "k"], "options": {"bucket": "3", "write-only": "true"}},
    "vectors": {"primary_key": ["p", "k"], "options": {"bucket": "2", "deletion-vectors.enabled": "true"}},
    "dynamic": {"primary_key": ["p", "k"], "options": {"bucket": "-1", "write-only": "true"}},
    "sums": {"primary_key": ["p", "k"], "options": {"bucket": "1", "merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}},
    "evolving": {"options": {"bucket": "-1", "row-tracking.enabled": "true", "data-evolution.enabled": "true"}},
}  # fmt: skip
WHERE = [None, col("v") > 40, col("p") == 2, (col("k") < 60) & col("v").is_null(), col("k") == 17, col("p") == 99]


@pytest.fixture(scope="module", params=SHAPES)
def table(request, tmp_path_factory):
    """A table of many small files, some of which other manifests delete, with deletion vectors or column files."""
    rng = random.Random(request.param)
    catalog = Catalog.open(tmp_path_factory.mktemp("shares"))
    catalog.create_database("d")
    shape = SHAPES[request.param]
    own = {"manifest.merge-min-count": "1000", "manifest.full-compaction-threshold-size": "1 gb", "source.split.target-size": "4 kb", "source.split.open-file-cost": "1 kb"}  # fmt: skip
    options = {**shape["options"], **own}
    table = catalog.create_table("d.t", SCHEMA, partition_by=["p"], **{**shape, "options": options})
    for number in range(12):
        keys = rng.sample(range(number * 10, number * 10 + 40), 8)
        rows = {"p": [key % 5 for key in keys], "k": keys, "v": [rng.choice((None, key, 2 * key)) for key in keys]}
        table.write_arrow(pa.table(rows, SCHEMA))
        if number in (4, 8) and request.param != "evolving":
            table.compact(full=True)
        if number in (3, 7, 10) and request.param == "evolving":
            table.update(col("k") > 10 * number, {"v": number})
        elif number in (3, 7, 10) and request.param != "sums":
            table.delete(col("k") % 5 == number % 5)
    table.create_tag("early", 7)
    return lambda: catalog.table("d.t")


def divided(monkeypatch, count, pieces=1, entries=20):
    """Divide all plans into so many shares, and read so many entries in a task."""
    monkeypatch.setattr(plan_shares, "PART_ENTRIES", entries)
    monkeypatch.setattr(plan_tasks, "divide_plan", lambda *_: PlanShares(count, pieces))


def same(splits):
    return sorted(map(bytes, splits))


def files(splits):
    return sorted((split.partition, split.bucket, file.name) for split in splits for file in split.files)


def rows(scan, splits):
    found = [row for split in splits for row in scan.read(split).read_all().to_pylist()]
    return sorted(found, key=lambda row: (row["k"], repr(row)))


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize(("count", "entries"), [(1, 1000), (3, 1), (7, 12)])
def test_splits_by_tasks_are_the_splits(table, monkeypatch, where, count, entries):
    divided(monkeypatch, count, entries=entries)
    scan = table().scan(where=where, options=ALWAYS)
    assert same(scan.iter_splits(executor=LocalExecutor())) == same(table().scan(where=where).splits())


@pytest.mark.parametrize("where", WHERE)
def test_earlier_states_tags_buckets_and_columns(table, monkeypatch, where):
    divided(monkeypatch, 4, entries=9)
    asked = [{"snapshot_id": 5}, {"tag": "early"}, {"columns": ["v"]}]
    asked += [{"options": {"scan.bucket": "1"}}] if table().schema.options["bucket"] == "3" else []
    for each in asked:
        more = {**each, "options": {**each.get("options", {}), **ALWAYS}}
        found = table().scan(where=where, **more).iter_splits(executor=LocalExecutor())
        assert same(found) == same(table().scan(where=where, **each).splits())


def test_files_of_a_bucket_are_divided_if_they_are_independent(table, monkeypatch):
    alone = not table().schema.primary_keys and "data-evolution.enabled" not in table().schema.options
    monkeypatch.setattr(plan_shares, "PART_ENTRIES", 4)
    planner = plan_tasks.planner_of(table().scan())
    groups = plan_shares.read_groups(planner)
    shares = plan_shares.divide_plan(planner, groups)
    assert shares.count > 8 and (shares.pieces > 1) == alone
    for where in WHERE:
        scan = table().scan(where=where, options=ALWAYS)
        found = list(scan.iter_splits(executor=LocalExecutor()))
        whole = table().scan(where=where).splits()
        assert files(found) == files(whole) and rows(scan, found) == rows(scan, whole)


def test_processes_plan(table, monkeypatch):
    with ProcessExecutor(1) as executor:
        for where in WHERE[:3]:
            scan = table().scan(where=where, options=ALWAYS)
            assert same(scan.iter_splits(executor=executor)) == same(table().scan(where=where).splits())


def test_limits(table, monkeypatch):
    divided(monkeypatch, 5, entries=9)
    for limit in (0, 1, 30, 1000):
        scan = table().scan(limit=limit, options=ALWAYS)
        found = list(scan.iter_splits(executor=LocalExecutor()))
        expected = min(limit, table().count())
        assert sum(scan.read(split).read_all().num_rows for split in found) >= expected
        assert {split.partition for split in found} or not limit
    some = table().scan(limit=1, options=ALWAYS).iter_splits(executor=LocalExecutor())
    assert len(list(some)) < len(table().scan().splits())


def test_below_the_option_and_for_changes_and_orders_this_process_plans(table):
    calls = []

    class Counting:
        def run(self, job, tasks):
            calls.append(job.kind.tag)
            return LocalExecutor().run(job, tasks)

    whole = table().scan().splits()
    assert same(table().scan().iter_splits(executor=Counting())) == same(whole)
    count = len(plan_shares.read_groups(plan_tasks.planner_of(table().scan()))[0])
    assert count < 50 and calls == []
    for text, used in ((str(count), True), (str(count + 1), False)):
        calls.clear()
        scan = table().scan(options={"scan.plan.executor-manifests": text})
        assert same(scan.iter_splits(executor=Counting())) == same(whole)
        assert calls == (["manifests", "share"] if used else [])
    calls.clear()
    changes = table().changes(2, 4)
    assert same(changes.iter_splits(executor=Counting())) == same(changes.splits()) and calls == []
    with pytest.raises(UsageError, match="order_by"):
        table().scan(order_by="k", limit=3).iter_splits(executor=Counting())
    with pytest.raises(UsageError, match="executors"):
        table().scan().iter_splits(executor=4)
    with pytest.raises(OptionError, match="whole number"):
        table().scan(options={"scan.plan.executor-manifests": "many"})


def test_branches_are_planned_by_this_process_and_a_branch_by_tasks(tmp_path, monkeypatch):
    divided(monkeypatch, 3, entries=2)
    catalog = Catalog.open(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", SCHEMA, partition_by=["p"], options={"bucket": "-1"})
    for number in range(6):
        table.write_arrow(pa.table({"p": [number % 3], "k": [number], "v": [number]}, SCHEMA))
    table.create_branch("b")
    branch = catalog.table("d.t$branch_b")
    branch.write_arrow(pa.table({"p": [1, 7], "k": [70, 71], "v": [7, 8]}, SCHEMA))
    found = branch.scan(options=ALWAYS).iter_splits(executor=LocalExecutor())
    assert same(found) == same(branch.scan().splits())
    both = {"scan.fallback-branch": "b", **ALWAYS}
    scan = catalog.table("d.t").scan(options=both)
    assert same(scan.iter_splits(executor=LocalExecutor())) == same(scan.splits())


@pytest.fixture
def named(tmp_path):
    """The table of many files, in a warehouse; the files exist only in its manifests."""
    catalog = Catalog.open(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", SCHEMA, partition_by=["p"], options={"bucket": "-1", "write-only": "true"})
    table.write_arrow(pa.table({"p": [0, 1], "k": [1, 2], "v": [4, 5]}, SCHEMA))
    name_files(table, 25_000, deleted=300)
    return tmp_path


def opened(warehouse):
    """The table, and the temporary files of its plans, in a store of their own."""
    spill = StoreSpill(MemoryStore())
    return Catalog.open(warehouse, env=Env(spill=spill)).table("d.t"), spill


class Odd:
    """Runs tasks here, the last of a job first, each twice, and fails at a task of a kind."""

    def __init__(self, failing=None):
        self.failing = failing
        self.ran = []

    def run(self, job, tasks):
        for task in reversed(list(tasks)):
            self.ran.append(job.kind.tag)
            if self.failing == job.kind.tag and task.number == 1:
                yield TaskResult(job.kind.tag, 1, None, StorageError("the store failed", operation="get"))
                continue
            for _ in range(2):
                yield TaskResult.from_bytes(job.run_bytes(bytes(task)))


def test_deletes_of_other_manifests_tasks_that_run_twice_and_in_another_order(named, monkeypatch):
    divided(monkeypatch, 4, 2, entries=10_000)
    table, spill = opened(named)
    odd = Odd()
    found = list(table.scan(options=ALWAYS).iter_splits(executor=odd))
    assert files(found) == files(table.scan().splits()) and len(files(found)) == 25_000
    assert odd.ran == ["manifests"] * 3 + ["share"] * 4 and spill.paths() == []


@pytest.mark.parametrize("kind", ["manifests", "share"])
def test_a_task_that_fails_ends_the_plan_and_leaves_no_file(named, monkeypatch, kind):
    divided(monkeypatch, 4, entries=10_000)
    table, spill = opened(named)
    with pytest.raises(StorageError, match="the store failed"):
        list(table.scan(options=ALWAYS).iter_splits(executor=Odd(kind)))
    assert spill.paths() == []
    assert len(files(table.scan(options=ALWAYS).iter_splits(executor=Odd()))) == 25_000


def test_a_plan_that_ends_early_leaves_no_file(named, monkeypatch):
    divided(monkeypatch, 40, 40, entries=10_000)
    table, spill = opened(named)
    odd = Odd()
    plan = table.scan(options=ALWAYS).iter_splits(executor=odd)
    assert len(list(itertools.islice(plan, 2))) == 2 and spill.paths()
    plan.close()
    assert spill.paths() == [] and odd.ran.count("share") == 16


@pytest.mark.parametrize("cut", CUTS)
def test_temporary_files_that_were_cut_are_noticed(named, monkeypatch, cut):
    """They were written before the first task that plans a share."""
    divided(monkeypatch, 4, entries=10_000)
    table, spill = opened(named)
    distribute = PartFiles.distribute

    def cut_one(self, parts):
        files = distribute(self, parts)
        data = spill.store.get(files[-1].file.path)
        spill.store.put(files[-1].file.path, data[: CUTS[cut](data)])
        return files

    monkeypatch.setattr(PartFiles, "distribute", cut_one)
    with pytest.raises(StorageError, match="plan the scan again"):
        list(table.scan(options=ALWAYS).iter_splits(executor=LocalExecutor()))
    assert spill.paths() == []


def test_a_limit_for_which_few_manifests_are_enough_is_planned_here(named):
    """Six manifests of 5,000 files, each of one row; the last one has the DELETEs."""

    def by_tasks(**asked):
        odd = Odd()
        table, _ = opened(named)
        scan = table.scan(options={"scan.plan.executor-manifests": "3"}, **asked)
        assert len(files(scan.iter_splits(executor=odd))) >= min(asked.get("limit", 25_000), 25_000)
        return bool(odd.ran)

    assert by_tasks() and by_tasks(limit=25_000) and by_tasks(limit=30_000)
    assert by_tasks(limit=12, where=col("k") > 0)
    assert not by_tasks(limit=12)


def test_conditions_prune_before_entries_are_sent(named, monkeypatch):
    divided(monkeypatch, 4, entries=10_000)
    table, _ = opened(named)
    sent = []
    run = plan_tasks.share_entries
    monkeypatch.setattr(plan_tasks, "share_entries", lambda *given: [sent.append(part) or part for part in run(*given)])
    for where, entries in ((col("v") == 99, 300), (col("p") == 5, 0), (col("k") == 1, 10_000 + 5_300 + 300)):
        sent.clear()
        found = list(table.scan(where=where, options=ALWAYS).iter_splits(executor=LocalExecutor()))
        assert files(found) == files(table.scan(where=where).splits())
        assert sum(part.entry_count for part in sent) == entries


def test_an_unsupported_file_that_another_manifest_deletes_is_no_obstacle(table, monkeypatch):
    """One task alone sees the ADD, and cannot know that the file is gone."""
    divided(monkeypatch, 2, entries=1)
    whole = table().scan(where=col("k") >= 0).splits()
    unsupported = {name for _, _, name in files(table().scan(snapshot_id=2).splits())}
    left = unsupported & {name for _, _, name in files(table().scan().splits())}

    def check(entries, *_):
        if found := unsupported & set(entries.names().to_pylist()):
            seen.append(found)
            raise UnsupportedError(f"unsupported: {found}", feature="it")

    seen = []
    monkeypatch.setattr(prune_entries, "check_entries", check)
    scan = table().scan(options=ALWAYS, where=col("k") >= 0)
    if left:
        for plan in (scan.splits, lambda: list(scan.iter_splits(executor=LocalExecutor()))):
            with pytest.raises(UnsupportedError, match="unsupported"):
                plan()
    else:
        assert same(scan.iter_splits(executor=LocalExecutor())) == same(whole)
    assert seen


def test_a_snapshot_that_expires_meanwhile(named, monkeypatch):
    table, spill = opened(named)
    plan = table.scan(options=ALWAYS).iter_splits(executor=LocalExecutor())
    for path in (named / "d.db" / "t" / "manifest").glob("manifest-*"):
        path.unlink()
    (named / "d.db" / "t" / "snapshot" / "snapshot-2").unlink()
    with pytest.raises(SnapshotExpiredError):
        list(plan)
    assert spill.paths() == []
