"""Merges with the whole source in every process: rows, counts and errors of one process, or nothing left behind."""

from __future__ import annotations

import os
import pickle
import random
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_py import Catalog, CommitConflictError, Schema, StorageError, UsageError, col, sql
from paimon_py.distributed import (
    AssignedBucketsPart,
    AssignRowsPart,
    BucketsPart,
    ChangePart,
    CommitLabel,
    DistributedMerge,
    InsertPart,
    MergeClauses,
    NewRowsPart,
    assigned_rows,
    run_once,
)
from paimon_py.distributed.merge import pack_groups
from paimon_py.distributed.sent import HeldMessages, Sent
from paimon_py.env import TemporarySpill
from paimon_py.errors import PaimonError

COLUMNS = Schema([("p", "INT NOT NULL"), ("k", "BIGINT NOT NULL"), ("v", "STRING"), ("d", "DOUBLE")])
SPILLS = {"write-buffer-size": "2 kb", "page-size": "1 kb"}
KINDS = {
    "append": {"partition_by": ["p"]},
    "marked": {"partition_by": ["p"], "options": {"deletion-vectors.enabled": "true"}},
    "tracked": {"options": {"row-tracking.enabled": "true"}},
    "spilling": {"partition_by": ["p"], "options": SPILLS},
    "dynamic": {"primary_key": ["p", "k"], "partition_by": ["p"], "options": {"bucket": "-1", "dynamic-bucket.target-row-num": "20"}},
    "dynamic, vectors": {"primary_key": ["p", "k"], "partition_by": ["p"], "options": {"deletion-vectors.enabled": "true", "dynamic-bucket.target-row-num": "7"}},
    "dynamic, lookup": {"primary_key": ["p", "k"], "partition_by": ["p"], "options": {"changelog-producer": "lookup", "dynamic-bucket.target-row-num": "5", **SPILLS}},
    "dynamic, one partition": {"primary_key": ["k"], "options": {"dynamic-bucket.target-row-num": "9", "sequence.field": "d", "merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"}},
    "fixed": {"primary_key": ["p", "k"], "partition_by": ["p"], "options": {"bucket": "3"}},
    "fixed, lookup": {"primary_key": ["p", "k"], "partition_by": ["p"], "options": {"bucket": "2", "changelog-producer": "lookup", **SPILLS}},
    "in buckets": {"options": {"bucket": "3", "bucket-key": "k"}},
}
NAN = float("nan")


@pytest.fixture
def catalog(tmp_path):
    made = Catalog.open(str(tmp_path / "lake"), {"fs.local.fsync": "false"})
    made.create_database("db")
    return made


def rows(*keys, text="v"):
    """Rows whose other columns say less and less of the key."""
    doubles = [None if k is None else (NAN if k % 11 == 0 else k / 4) for k in keys]
    return pa.table({
        "p": pa.array([None if k is None else k % 3 for k in keys], pa.int32()), "k": pa.array(keys, pa.int64()),
        "v": pa.array([None if k is None or k % 7 == 0 else f"{text}{k}" for k in keys], pa.string()),
        "d": pa.array(doubles, pa.float64()),
    })  # fmt: skip


def content(table):
    return sorted(map(repr, table.scan().to_arrow().to_pylist()))


def files(table):
    found = (path for path in Path(table.location).rglob("*") if path.is_file())
    return {path for path in found if "bucket-" in str(path) or path.parent.name == "index"}


def named(table):
    """The data files that some snapshot has."""
    scans = [table.scan(snapshot_id=snapshot.id) for snapshot in table.snapshots()]
    return {file.name for scan in scans for split in scan.splits() for file in split.files}


def elsewhere(part):
    """The part as another process has it."""
    return pickle.loads(pickle.dumps(part))


def by_process(sent, count):
    """What each process of the next step gets."""
    return [[(number, one.kind, one.data) for one in sent if one.process == number] for number in range(count)]


def collected(merging, processes, *, assigned=False):
    """The results of all processes; if one fails, the files of the others are deleted."""
    results, errors = [], []
    for process in processes:
        try:
            for result in process:
                results.append(result)  # noqa: PERF402 - those before an error count
        except PaimonError as error:
            errors.append(error)
    if errors:
        merging.discard(assigned_rows(results)[0] if assigned else results)
        raise errors[0]
    return results


def spread(table, data, on, clauses, *, tasks=4, label=None, seed=0, between=None, attempts=1):
    """A merge as an engine runs it: each process gets its input in an order of its own. The last attempt counts."""
    merging = DistributedMerge("merge", table, data.schema, on, clauses)
    assert merging.spreads
    chosen = random.Random(seed)

    def shuffled(items):
        return chosen.sample(items, len(items))

    def gather(part, splits):
        shares = merging.divide(splits, tasks, 100)
        if not merging.inserts:
            return collected(merging, (
                elsewhere(part)(iter(shuffled(data.to_batches(max_chunksize=5))), list(enumerate(map(bytes, share))))
                for share in shares
            ))  # fmt: skip
        assert sorted(split.files[0].name for share in shares for split in share) == sorted(split.files[0].name for split in splits)
        changing, inserting = ChangePart(part, len(shares)), InsertPart(part, len(shares))
        sent = []
        for number, share in enumerate(shares):
            for _ in range(attempts):
                batches = iter(shuffled(data.to_batches(max_chunksize=5)))
                own = list(elsewhere(changing)(batches, [(0, changing.work(number, share))]))
            sent += own
            if between is not None:
                between(number)
        given = by_process(sent, len(shares))
        last = inserting
        if merging.writes_apart:
            middle, last = [NewRowsPart(part, len(shares))], BucketsPart(part, len(shares))
            if merging.assigns_apart:
                middle, last = [*middle, AssignRowsPart(part, len(shares))], AssignedBucketsPart(part, len(shares))
            for step in middle:
                given = by_process([
                    one for each in given for one in [list(elsewhere(step)(iter(shuffled(each)))) for _ in range(attempts)][-1]
                ], len(shares))
        for one in given * (attempts - 1):
            list(elsewhere(last)(iter(shuffled(one))))
        if not merging.assigns_apart:
            return collected(merging, (elsewhere(last)(iter(shuffled(one))) for one in given))
        done, fit = assigned_rows(collected(merging, (elsewhere(last)(iter(shuffled(one))) for one in given), assigned=True))
        assert fit
        return done

    label = label or CommitLabel()
    return run_once(table, label, lambda: merging.run(label, gather))


def here_and_there(catalog, kind, seed, options=None):
    """Two tables with the same rows in several files, some of them deleted."""
    made = {**KINDS[kind], "options": {**KINDS[kind].get("options", {}), **(options or {})}}
    tables = [catalog.create_table(f"db.{name}", COLUMNS, **made) for name in ("here", "there")]
    for table in tables:
        chosen = random.Random(seed)
        for number in range(4):
            keys = chosen.sample(range(60), 12)
            table.write_arrow(rows(*keys, text=chosen.choice("vw")))
            if number == 2:
                table.delete("k < 6")
    return tables


ON = [["k"], ["p", "k"], ["v"], ["d"], ["p", "v"], {"v": "v", "d": "d"}]
UPDATES = [None, {"v": "source.v"}, ("target.k > 20", {"v": "new"}), [("source.k > 30", {"v": "source.v"}), {"d": 1.5}]]
DELETES = [None, "source.k < 15", True]
INSERTS = [None, True, ("source.k % 2 = 0", True), ("source.v IS NULL", True)]
APART = [None, "target.k > 50"]
PREDICATES = {"source.k % 2 = 0": "source.k > 33"}


def clauses_at(chosen, *, inserts):
    while True:
        update, delete = chosen.choice(UPDATES), chosen.choice(DELETES)
        insert, apart = chosen.choice(INSERTS), chosen.choice(APART)
        insert = insert if inserts else None
        if delete is True:
            update = None
        if isinstance(insert, tuple):
            insert = (PREDICATES.get(insert[0], insert[0]), insert[1])
        if update or delete or insert or apart:
            return MergeClauses(matched_update=update, matched_delete=delete, insert=insert, by_source_delete=apart)


def asked(clauses):
    return {
        "when_matched_update": clauses.matched_update, "when_matched_delete": clauses.matched_delete,
        "when_not_matched_insert": clauses.insert, "when_not_matched_by_source_delete": clauses.by_source_delete,
    }  # fmt: skip


def outcome(action):
    try:
        done = action()
    except PaimonError as error:
        return type(error), str(error).split(" with ")[0].lstrip("0123456789")
    return done.updated, done.deleted, done.inserted


@pytest.mark.parametrize("seed", [2, *(pytest.param(seed, marks=pytest.mark.full) for seed in (0, 1, *range(3, 10)))])
@pytest.mark.parametrize("kind", [pytest.param(kind, marks=pytest.mark.full) if kind.endswith("lookup") else kind for kind in KINDS])
def test_rows_are_merged_as_one_process_merges_them(catalog, kind, seed):
    chosen = random.Random(f"{kind} {seed}")
    here, there = here_and_there(catalog, kind, seed)
    by_key = kind == "dynamic" and seed % 4 == 0
    others = [one for one in ON if set(one) != set(here.schema.primary_keys)]
    on = ["p", "k"] if by_key else chosen.choice(others if here.schema.primary_keys else ON)
    clauses = clauses_at(chosen, inserts=kind != "in buckets")
    keys = chosen.sample(range(90), 40)
    if seed % 3 == 0:
        keys += keys[:3]
    data = rows(*keys, *([] if here.schema.primary_keys or seed % 4 else [77, 77]), text="v")
    before = files(there)
    expected = outcome(lambda: here.merge(data, on, **asked(clauses)))
    found = outcome(lambda: spread(there, data, on, clauses, tasks=chosen.choice((1, 3, 8)), seed=seed))
    assert found == expected
    assert content(there) == content(here)
    if isinstance(expected[0], type):
        assert files(there) == before
    assert [finding for finding in there.doctor() if finding.severity == "problem"] == []


def test_keys_that_differ_in_their_bits_alone_are_one_key(catalog):
    table = catalog.create_table("db.t", COLUMNS)
    other_nan = -NAN
    for number in range(4):
        part = rows(number + 1)
        table.write_arrow(part.set_column(3, "d", pa.array([float(number) if number < 3 else NAN])))
    doubles = [NAN, other_nan, 0.0, -0.0, 9.0, None]
    data = pa.table({"p": pa.array([1] * 6, pa.int32()), "k": range(100, 106), "v": ["s"] * 6, "d": pa.array(doubles)})
    clauses = MergeClauses(matched_delete=True, insert=True)
    spread(table, data, ["d"], clauses, tasks=4)
    here = catalog.create_table("db.here", COLUMNS)
    for number in range(4):
        part = rows(number + 1)
        here.write_arrow(part.set_column(3, "d", pa.array([float(number) if number < 3 else NAN])))
    here.merge(data, ["d"], **asked(clauses))
    assert content(table) == content(here)
    assert {102, 100} & set(table.scan(columns=["k"]).to_arrow()["k"].to_pylist()) == set()


@pytest.mark.parametrize("kind", ["append", *(pytest.param(kind, marks=pytest.mark.full) for kind in ("marked", "dynamic", "fixed", "dynamic, vectors"))])
def test_attempts_that_an_engine_repeats_count_once(catalog, kind):
    here, there = here_and_there(catalog, kind, 5)
    data, clauses = rows(*range(10, 80), text="m"), MergeClauses(matched_update={"v": "source.v"}, insert=True)
    on = ["k"] if kind in ("fixed", "dynamic, vectors") else ["p", "k"]
    here.merge(data, on, **asked(clauses))
    spread(there, data, on, clauses, attempts=2)
    assert content(there) == content(here)
    assert {path.name for path in files(there) if path.name.startswith("data-")} > named(there)


@pytest.mark.full
@pytest.mark.parametrize("kind", ["append", "dynamic", "fixed"])
def test_a_store_that_fails_at_any_write_changes_nothing(catalog, kind, monkeypatch):
    _, table = here_and_there(catalog, kind, 6)
    data, clauses = rows(*range(10, 80), text="m"), MergeClauses(matched_update={"v": "source.v"}, insert=True)
    rest, calls, opened = content(table), [], type(table._root.store).open_write

    def failing(self, path, *, within=None):
        calls.append(path)
        if len(calls) == at:
            raise StorageError("full", path=path, operation="open_write")
        return opened(self, path, within=within)

    monkeypatch.setattr(type(table._root.store), "open_write", failing)
    for at in range(1, 100, 3):
        calls.clear()
        try:
            spread(catalog.table("db.there"), data, ["k"] if kind == "fixed" else ["p", "k"], clauses)
        except StorageError:
            assert content(catalog.table("db.there")) == rest
        else:
            break
    assert at > 5
    assert content(catalog.table("db.there")) != rest


@pytest.mark.parametrize("seed", range(3))
def test_new_rows_come_after_changed_ones_of_the_same_key(catalog, seed):
    here, there = (catalog.create_table(f"db.{name}", COLUMNS, **KINDS["fixed"]) for name in ("here", "there"))
    for table in (here, there):
        for start in (0, 30):
            table.write_arrow(rows(*range(start, start + 30)))
    changed, new = rows(*range(1, 7)), rows(*range(1, 20), text="new")
    data = pa.concat_tables([changed, new]) if seed else pa.concat_tables([new, changed])
    clauses = MergeClauses(matched_update={"d": 1.5}, insert=True, by_source_delete="target.k > 55")
    expected = outcome(lambda: here.merge(data, ["v"], **asked(clauses)))
    assert outcome(lambda: spread(there, data, ["v"], clauses, seed=seed, tasks=2)) == expected
    assert content(there) == content(here)
    found = {row["k"]: row["v"] for row in there.scan().to_arrow().to_pylist()}
    assert [found[k] for k in (1, 6, 19, 20)] == ["new1", "new6", "new19", "v20"] and 56 not in found


def test_new_rows_with_other_keys_than_their_source_rows_are_written_by_the_process_of_their_bucket(catalog):
    here, there = here_and_there(catalog, "fixed", 1)
    data, text = rows(*range(40, 90)), {"p": "source.p", "k": sql("source.k - 30"), "v": "source.v", "d": 0.5}
    clauses = MergeClauses(matched_update={"v": "m"}, insert=text)
    expected = outcome(lambda: here.merge(data, ["p", "k"], **asked(clauses)))
    assert outcome(lambda: spread(there, data, ["p", "k"], clauses)) == expected and expected[2] > 20
    assert content(there) == content(here)


def test_what_is_sent_later_goes_to_local_disk_beyond_a_limit():
    place = TemporarySpill()
    messages = [Sent(number, b"rows", bytes([number]) * number * 10) for number in range(40)]
    for limit in (0, 500, 1 << 20):
        held = HeldMessages(place, limit)
        for one in messages:
            held.add([one])
        assert list(held) == messages
        held.close()
    assert list(held) == []

    class Full:
        path = "/full"

        def create(self):
            return self

        def open_write(self):
            raise OSError("no space")

    with pytest.raises(StorageError, match="rows to be sent could not be spilled"):
        HeldMessages(Full(), 0).add(messages)


def test_a_step_is_committed_once(catalog):
    _, table = here_and_there(catalog, "append", 1)
    clauses, label = MergeClauses(matched_update={"v": "source.v"}, insert=True), CommitLabel("m", 1)
    data = rows(*range(20, 80), text="m")
    done = spread(table, data, ["k"], clauses, label=label)
    assert done.inserted > 10 and done.updated > 10
    after = content(table)
    assert spread(table, data, ["k"], clauses, label=label).already_committed
    assert content(table) == after


@pytest.mark.parametrize("kind", ["append", "dynamic", "dynamic, vectors"])
def test_a_merge_that_is_overtaken_is_done_again_and_leaves_no_file(catalog, kind):
    here, there = here_and_there(catalog, kind, 2)
    data, clauses = rows(*range(0, 40), text="m"), MergeClauses(matched_update={"v": "source.v"}, insert=True)
    late = [rows(4, 200, text="late")]

    def meanwhile(number):
        if number == 1 and late:
            catalog.table("db.there").write_arrow(late.pop())

    done = spread(there, data, ["k"], clauses, between=meanwhile)
    here.write_arrow(rows(4, 200, text="late"))
    here.merge(data, ["k"], **asked(clauses))
    assert done.rounds == 2 and content(there) == content(here)
    for path in files(there):
        os.utime(path, (0, 0))
    assert there.remove_orphans().files == 0


@pytest.mark.parametrize("kind", ["append", "fixed", "dynamic", "dynamic, vectors"])
def test_an_error_of_one_process_reaches_the_caller_and_all_files_go(catalog, kind):
    _, table = here_and_there(catalog, kind, 3)
    before, rest = files(table), content(table)
    clauses = MergeClauses(matched_update={"v": "source.v"}, insert=True)
    twice = rows(*range(0, 70), *range(0, 70), text="m")
    with pytest.raises(UsageError, match="2 rows of the source want to change the row with k="):
        spread(table, twice, ["k"], clauses)
    wrong = MergeClauses(insert={"p": "source.p", "k": "source.k", "v": "source.v", "d": "CAST(NULL AS DOUBLE)"})
    with pytest.raises(PaimonError):
        spread(table, rows(*range(70, 90)).drop_columns(["p"]), ["k"], wrong)
    assert files(table) == before and content(table) == rest


def test_a_store_that_fails_is_left_to_the_engine(catalog, monkeypatch):
    _, table = here_and_there(catalog, "append", 3)
    before = files(table)
    clauses = MergeClauses(matched_update={"v": "source.v"}, insert=True)
    merging = DistributedMerge("merge", table, rows().schema, ["k"], clauses)

    def gather(part, splits):
        changing = ChangePart(part, 1)
        monkeypatch.setattr(type(table._root.store), "open_write", failing)
        with pytest.raises(StorageError, match="full"):
            list(changing(iter(rows(*range(60), text="m").to_batches()), [(0, changing.work(0, splits))]))
        raise CommitConflictError("enough")

    def failing(self, path, *, within=None):
        raise StorageError("full", path=path, operation="open_write")

    with pytest.raises(CommitConflictError, match="enough"):
        merging.run(CommitLabel(), gather)
    assert files(table) == before


def test_where_source_rows_are_sent_to_their_buckets_no_process_needs_all_of_them(catalog):
    def steps(kind, on, **clauses):
        table = catalog.create_table("db.t", COLUMNS, exist_ok=False, **KINDS[kind])
        try:
            merging = DistributedMerge("merge", table, rows().schema, on, MergeClauses(**clauses))
            return 1 + merging.inserts + merging.writes_apart + merging.assigns_apart if merging.spreads else 0
        finally:
            catalog.drop_table("db.t")

    assert steps("fixed", ["p", "k"], matched_update=True) == 0
    assert steps("fixed", ["v"], matched_delete=True) == 1 and steps("fixed", ["v"], insert=True) == 3
    assert steps("dynamic", ["p", "k"], insert=True) == 2 and steps("dynamic", ["v"], insert=True) == 3
    assert steps("dynamic, vectors", ["p", "k"], matched_update=True) == 1 and steps("dynamic, vectors", ["v"], insert=True) == 4
    assert steps("dynamic, vectors", ["p", "k"], insert=True) == 0
    moved = {"p": "source.p", "k": "source.k + 1", "v": "source.v"}
    assert steps("fixed", ["p", "k"], insert=moved) == 3
    assert steps("dynamic", ["p", "k"], insert=moved) == 3 and steps("dynamic, lookup", ["p", "k"], insert=moved) == 4
    assert steps("fixed", ["p", "k"], insert=[("source.k > 1", {**moved, "k": "source.k"}), {**moved, "k": col("source.k")}]) == 0
    assert steps("append", ["v"], insert=True) == 2 and steps("in buckets", ["v"], insert=True) == 0


@pytest.mark.parametrize("kind", ["dynamic", "dynamic, vectors"])
@pytest.mark.parametrize("on", [["p", "k"], ["k"]])
def test_no_more_processes_fill_buckets_than_there_may_be(catalog, kind, on):
    options = {"dynamic-bucket.target-row-num": "4", "dynamic-bucket.max-buckets": "2"}
    here, there = here_and_there(catalog, kind, 8, options)
    data, clauses = rows(*range(10, 90), text="m"), MergeClauses(matched_update={"v": "source.v"}, insert=True)
    here.merge(data, on, **asked(clauses))
    if kind == "dynamic" or on == ["k"]:
        spread(there, data, on, clauses, tasks=8)
        assert content(there) == content(here)
    assert max(split.bucket for split in there.scan().splits()) == 1


@pytest.mark.parametrize("kind", ["fixed", "dynamic", "dynamic, vectors"])
def test_rows_that_have_their_key_by_default_are_where_their_key_is(catalog, kind):
    columns = Schema([("p", "INT NOT NULL"), ("k", "BIGINT NOT NULL", None, "7"), ("v", "STRING"), ("d", "DOUBLE")])
    here, there = (catalog.create_table(f"db.{name}", columns, **KINDS[kind]) for name in ("here", "there"))
    for table in (here, there):
        table.write_arrow(rows(*range(30)))
        table.write_arrow(rows(7, 31).set_column(0, "p", pa.array([2, 2], pa.int32())))
    data, values = rows(*range(45, 55)), {"p": "source.p", "v": "source.v"}
    for table, merge in ((here, here.merge), (there, None)):
        clauses = MergeClauses(insert=values, matched_update={"d": 1.5})
        done = merge(data, ["d"], **asked(clauses)) if merge else spread(table, data, ["d"], clauses)
        assert done.inserted == 10
    mine, other = ({(row["p"], row["k"]) for row in table.to_arrow().to_pylist()} for table in (here, there))
    assert mine == other and there.count() == len(other)
    assert [finding for finding in there.doctor() if finding.severity == "problem"] == []


@pytest.mark.parametrize("repeated", [0, 2])
def test_rows_that_are_assigned_again_for_some_processes_are_noticed(catalog, repeated):
    _, table = here_and_there(catalog, "dynamic, vectors", 5)
    data, clauses = rows(*range(10, 80), text="m"), MergeClauses(matched_update={"v": "source.v"}, insert=True)
    merging = DistributedMerge("merge", table, data.schema, ["k"], clauses)

    def gather(part, splits):
        shares = merging.divide(splits, 3, 100)
        change = ChangePart(part, 3)
        sent = [one for number, share in enumerate(shares) for one in change(iter(data.to_batches()), [(0, change.work(number, share))])]
        found = by_process([one for each in by_process(sent, 3) for one in NewRowsPart(part, 3)(each)], 3)
        assigned = [list(AssignRowsPart(part, 3)(each)) for each in found]
        again = [*assigned[:repeated], list(AssignRowsPart(part, 3)(found[repeated])), *assigned[repeated + 1 :]]
        given = [by_process([one for each in way for one in each], 3) for way in (assigned, again)]
        results = [result for number in range(3) for result in AssignedBucketsPart(part, 3)(given[number == 1][number])]
        done, fit = assigned_rows(results)
        merging.discard(done)
        assert not fit
        raise CommitConflictError("enough")

    before = files(table)
    with pytest.raises(CommitConflictError, match="enough"):
        merging.run(CommitLabel(), gather)
    assert files(table) == before


def test_groups_are_packed_by_size():
    class Sized:
        def __init__(self, size_bytes):
            self.size_bytes = size_bytes

    groups = [[Sized(size)] for size in (5, 1, 9, 3, 3, 7)]
    packed = pack_groups(groups, 3)
    assert sorted(sum(one.size_bytes for one in share) for share in packed) == [9, 9, 10]
    assert pack_groups([], 5) == [[]] and len(pack_groups(groups, 50)) == 6


@pytest.mark.parametrize("kind", ["append", "dynamic"])
def test_columns_of_the_source_may_have_other_names(catalog, kind):
    here, there = here_and_there(catalog, kind, 4)
    data = rows(*range(10, 80), text="m").rename_columns(["q", "id", "w", "x"])
    values = {"p": "source.q", "k": "source.id", "v": "source.w", "d": 1.5}
    clauses = MergeClauses(matched_update={"v": "source.w"}, insert=values)
    on = {"p": "q", "k": "id"}
    expected = outcome(lambda: here.merge(data, on, **asked(clauses)))
    assert outcome(lambda: spread(there, data, on, clauses)) == expected
    assert content(there) == content(here)
