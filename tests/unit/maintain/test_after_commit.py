"""What commits do for their table: what goes, when the store is asked, and what becomes of a commit when care fails."""

from __future__ import annotations

import itertools
import json
import warnings
from datetime import timedelta

import msgspec
import pyarrow as pa
import pytest
from unit.commit.support import Clock, Ids

from paimon_py import Catalog, PaimonError, PaimonWarning, SetOption
from paimon_py.commit.result import CommitResult
from paimon_py.env import Env, SerialPool
from paimon_py.maintain.auto_maintenance import run_auto_maintenance
from paimon_py.maintain.cleanup.retention import Retention, may_go
from paimon_py.metadata.consumers import Consumer
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.table import Table
from paimon_py.testing.counting_store import CountingStore
from paimon_py.testing.fault_store import MODES, FaultStore, for_each_fault

SCHEMA = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.string())])
PATH = "/w/d.db/t"
HOUR = 3600
FEW = {"snapshot.num-retained.min": "2", "snapshot.num-retained.max": "3"}


def opened(store, clock, pool=None):
    root = TableRoot(store, PATH, Env(clock, None, pool or SerialPool()))
    return Table(root, root.schemas.latest(), "d.t")


def created(store, clock, key=("k",), **options):
    catalog = Catalog(store, "/w", env=Env(clock, None, SerialPool()))
    catalog.create_database("d", exist_ok=True)
    options = {"bucket": "1" if key else "-1", "num-sorted-run.compaction-trigger": "99", **options}
    return catalog.create_table("d.t", SCHEMA, primary_key=list(key), options=options)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(clock):
    return MemoryStore(clock=clock)


def rows(*keys, v="x"):
    return pa.table({"k": list(keys), "v": [v] * len(keys)}, schema=SCHEMA)


def ids(table):
    return [snapshot.id for snapshot in table.snapshots()]


@pytest.mark.parametrize(
    ("oldest", "millis", "answer"),
    [(18, 0, False), (10, None, True), (10, 2000, True), (11, None, None), (11, 999, True), (11, 1000, False), (17, 999, True)],
)
def test_numbers_and_times_say_whether_the_oldest_may_go(oldest, millis, answer):
    """Of 20 snapshots 3 to 10 stay, and those whose time is 1000 or later."""
    kept = Retention(count_min=3, count_max=10, older_than_millis=1000, limit=1)
    assert may_go(oldest, millis, 20, kept) is answer


def test_snapshots_go_by_number(store, clock):
    table = created(store, clock, **FEW)
    for number in range(1, 9):
        table.write_arrow(rows(number))
        assert ids(table) == list(range(max(1, number - 2), number + 1))
    assert sorted(table.scan().to_arrow()["k"].to_pylist()) == list(range(1, 9))


def test_snapshots_go_by_age_and_never_the_newest(store, clock):
    table = created(store, clock)
    for _ in range(12):
        table.write_arrow(rows(1))
        clock.seconds += 60
    assert ids(table) == list(range(1, 13))
    clock.seconds += HOUR - 10 * 60
    table.write_arrow(rows(1))
    assert ids(table) == list(range(2, 14)), "the successor of 1 was made over an hour ago, that of 2 was not"
    clock.seconds += 10 * HOUR
    assert ids(opened(store, clock)) == list(range(2, 14)), "nobody commits"
    opened(store, clock).write_arrow(rows(1))
    assert ids(table) == list(range(5, 15)), "ten stay"


def test_the_limit_of_a_commit(store, clock):
    table = created(store, clock, **{"write-only": "true"})
    for _ in range(8):
        table.write_arrow(rows(1))
    table.alter(SetOption("write-only", "false"), SetOption("snapshot.expire.limit", "3"),
                *(SetOption(name, text) for name, text in FEW.items()))  # fmt: skip
    for first in (4, 7, 9, 10):
        table.write_arrow(rows(1))
        assert ids(table)[0] == first


def test_a_write_only_table_leaves_care_to_others(store, clock):
    table = created(store, clock, **FEW, **{"write-only": "true", "consumer.expiration-time": "1 s"})
    table._root.consumers.put(Consumer("c", 1))
    for _ in range(6):
        clock.seconds += 10 * HOUR
        table.write_arrow(rows(1))
    assert len(ids(table)) == 6 and [consumer.name for consumer in table.consumers()] == ["c"]


VERBS = {
    "write": lambda table: table.write_arrow(rows(1, v="y")),
    "overwrite": lambda table: table.write_arrow(rows(1), overwrite={}),
    "delete": lambda table: table.delete("k = 1"),
    "update": lambda table: table.update("k = 1", {"v": "z"}),
    "merge": lambda table: table.merge(rows(1), ["k"], when_matched_update=True),
    "upsert": lambda table: table.upsert(rows(1, 7), on=None if table.schema.primary_keys else ["k"]),
    "compact": lambda table: table.compact(full=True),
    "commit": lambda table: table.commit(written(table)),
    "commit as a user": lambda table: table.commit(written(table), user="u", identifier=1),
}


def written(table):
    with table.writer() as writer:
        writer.write_arrow(rows(3))
        return writer.changes()


@pytest.mark.parametrize(("verb", "key"), [*((verb, ("k",)) for verb in VERBS), ("upsert", ()), ("rescale", ("k",))])
def test_every_verb_that_commits_takes_care(store, clock, verb, key):
    table = created(store, clock, key, **({} if key else {"file-index.bloom-filter.columns": "k"}))
    for number in range(12):
        table.write_arrow(rows(1, 2, v=f"v{number}"))
    before = ids(table)
    clock.seconds += 2 * HOUR
    result = table.rescale(2) if verb == "rescale" else VERBS[verb](table)
    assert len(ids(table)) == 10 < len(before)
    assert result.snapshot_id == ids(table)[-1]


def test_a_truncation_lets_nothing_go_as_in_java(store, clock):
    table = created(store, clock, (), **FEW)
    for _ in range(3):
        table.write_arrow(rows(1))
    table.truncate()
    assert ids(table) == [1, 2, 3, 4]


def test_what_commits_nothing_lets_nothing_go(store, clock):
    table = created(store, clock, **FEW, **{"write-only": "true"})
    for _ in range(5):
        table.write_arrow(rows(1))
    result = CommitResult()
    assert run_auto_maintenance(OpenTable(table._root, table.schema), result) is result
    assert len(ids(table)) == 5


def test_a_commit_that_lets_nothing_go_asks_nothing(store, clock):
    created(store, clock, (), **{"consumer.expiration-time": "1 d", "changelog.num-retained.min": "20"})
    counting = CountingStore(store)
    table = opened(counting, clock)
    for number in range(1, 31):
        with table.writer() as writer:
            writer.write_arrow(rows(number))
            changes = writer.changes()
        calls = []
        for doing in (lambda: table.commit(changes), lambda n=number: run_auto_maintenance(OpenTable(table._root, table.schema), CommitResult(snapshot_id=n))):
            before = len(counting.paths)
            doing()
            calls.append(len(counting.paths) - before)
        assert calls[1] == 0, number
        clock.seconds += 1
    asked = [path for _, path in counting.paths if path.endswith(("/consumer", "/changelog", "/branch", "/tag", "/snapshot"))]
    assert len(asked) < 10, asked


def test_the_first_commit_of_a_table_object_looks_once(store, clock):
    table = created(store, clock, ())
    for number in range(15):
        table.write_arrow(rows(number))
        clock.seconds += 60
    counting = CountingStore(store)
    again = opened(counting, clock)
    calls = []
    for _ in range(2):
        before = len(counting.paths)
        run_auto_maintenance(OpenTable(again._root, again.schema), CommitResult(snapshot_id=15))
        calls.append(counting.paths[before:])
    assert len(calls[0]) <= 4 and calls[1] == [], calls


def test_others_that_expired_roll_back_or_begin_anew(store, clock):
    table = created(store, clock, (), **FEW)
    for _ in range(4):
        table.write_arrow(rows(1))
    other = opened(store, clock)
    for _ in range(5):
        other.write_arrow(rows(2))
    table.write_arrow(rows(3))
    assert ids(table) == [8, 9, 10]
    table.rollback_to(8)
    table.write_arrow(rows(4))
    assert ids(table) == [8, 9]
    catalog = Catalog(store, "/w", env=Env(clock, None, SerialPool()))
    catalog.drop_table("d.t")
    created(store, clock, (), **FEW)
    for number in range(1, 6):
        table.write_arrow(rows(1))
        assert ids(table) == list(range(max(1, number - 2), number + 1))


@pytest.mark.parametrize("only", ["false", "true"], ids=["", "without kept changelogs changelog-only means nothing"])
def test_consumers_hold_snapshots_until_they_expire(store, clock, only):
    table = created(store, clock, **FEW, **{"consumer.expiration-time": "1 h", "consumer.changelog-only": only})
    table.write_arrow(rows(1))
    table._root.consumers.put(Consumer("slow", 2))
    for _ in range(5):
        table.write_arrow(rows(1))
    assert ids(table)[0] == 2
    clock.seconds += HOUR / 2
    table._root.consumers.put(Consumer("quick", 6))
    clock.seconds += HOUR / 2
    table.write_arrow(rows(1))
    assert len(table.consumers()) == 2 and ids(table)[0] == 2, "an hour is not more than an hour"
    clock.seconds += 1
    table.write_arrow(rows(1))
    assert [consumer.name for consumer in table.consumers()] == ["quick"] and ids(table) == [6, 7, 8]
    clock.seconds += HOUR
    table.write_arrow(rows(1))
    assert table.consumers() == []


class Timeless:
    """A store that does not say when files were written."""

    def __init__(self, store):
        self._store = store

    def __getattr__(self, verb):
        return getattr(self._store, verb)

    def stat(self, path):
        status = self._store.stat(path)
        return status and msgspec.structs.replace(status, modified_millis=None)

    def list(self, directory):
        return [msgspec.structs.replace(one, modified_millis=None) for one in self._store.list(directory)]


def with_a_consumer(store, clock):
    """A table of an honest machine, six snapshots and a consumer that has read the first one."""
    table = created(store, clock, **FEW, **{"consumer.expiration-time": "1 d"})
    for number in range(6):
        table.write_arrow(rows(number))
        if number == 1:
            table._root.consumers.put(Consumer("reads", 2))
        clock.seconds += 60
    return table


def test_a_machine_whose_clock_is_ahead_forgets_no_consumer(store, clock):
    """Found by a review: it forgot live consumers, and let go what they had not read."""
    table = with_a_consumer(store, clock)
    ahead = Clock(clock.millis() + 48 * HOUR * 1000)
    counting = CountingStore(store)
    theirs = opened(counting, ahead)
    theirs.write_arrow(rows(7))
    assert theirs.expire_consumers() == [] and theirs.expire_consumers(timedelta(hours=2)) == []
    assert [consumer.name for consumer in table.consumers()] == ["reads"] and ids(table)[0] == 2
    counting.reset()
    theirs.write_arrow(rows(8))
    assert not [path for _, path in counting.paths if ".clock." in path], "it knows by now"
    for passing in (clock, ahead):
        passing.seconds += 24 * HOUR + 1
    theirs.write_arrow(rows(9))
    assert table.consumers() == [] and ids(table)[0] > 2, "by the clock of the store a day is over"
    assert not [path for path in store._directories[f"{PATH}/manifest"] if ".clock." in path]


def test_a_machine_whose_clock_is_behind_forgets_later(store, clock):
    table = with_a_consumer(store, clock)
    behind = Clock(clock.millis() - 12 * HOUR * 1000)
    theirs = opened(store, behind)
    for passed, names in ((0, ["reads"]), (25 * HOUR, ["reads"]), (HOUR * 10, ["reads"]), (2 * HOUR, [])):
        for passing in (clock, behind):
            passing.seconds += passed
        theirs.write_arrow(rows(7))
        assert [consumer.name for consumer in table.consumers()] == names


def test_a_machine_whose_clock_is_behind_does_not_ask_for_consumers_each_time(store, clock):
    table = created(store, clock, **{"consumer.expiration-time": "1 d"})
    table._root.consumers.put(Consumer("reads", 1))
    counting = CountingStore(store)
    theirs = opened(counting, Clock(clock.millis() - 48 * HOUR * 1000))
    for _ in range(5):
        theirs.write_arrow(rows(7))
    assert len([path for _, path in counting.paths if path.endswith("/consumer")]) == 1


@pytest.mark.parametrize("ahead", [-48, 48])
def test_where_the_store_tells_no_times_no_consumer_is_forgotten(store, clock, ahead):
    table = with_a_consumer(store, clock)
    theirs = opened(Timeless(store), Clock(clock.millis() + ahead * HOUR * 1000))
    theirs.write_arrow(rows(7))
    assert theirs.expire_consumers(timedelta(seconds=1)) == []
    assert [consumer.name for consumer in table.consumers()] == ["reads"] and ids(table)[0] == 2


@pytest.mark.parametrize("only", [False, True])
def test_changelogs_outlive_snapshots_and_go_by_commits(store, clock, only):
    options = {**FEW, "changelog.num-retained.min": "4", "changelog.num-retained.max": "5", "changelog-producer": "input",
               "consumer.changelog-only": str(only).lower(), "snapshot.time-retained": "1 ms"}  # fmt: skip
    table = created(store, clock, **options)
    table.write_arrow(rows(1))
    table._root.consumers.put(Consumer("c", 3))
    for _ in range(7):
        clock.seconds += 60
        table.write_arrow(rows(1))
    assert ids(table) == ([7, 8] if only else [3, 4, 5, 6, 7, 8])
    assert table._root.changelogs.ids() == ([3, 4, 5, 6] if only else [2])
    table._root.consumers.delete("c")
    table.write_arrow(rows(1))
    assert (ids(table), table._root.changelogs.ids()) == ([7, 8, 9], [6])
    assert table.changes(5).to_arrow().num_rows == 4


def test_changelogs_go_by_their_time_though_no_snapshot_goes(store, clock):
    options = {**FEW, "changelog.num-retained.min": "3", "changelog.num-retained.max": "99", "changelog.time-retained": "1 h",
               "changelog-producer": "input"}  # fmt: skip
    table = created(store, clock, **options)
    for _ in range(7):
        table.write_arrow(rows(1))
    assert table._root.changelogs.ids() == [1, 2, 3, 4]
    table.create_tag("t")
    table._root.consumers.put(Consumer("c", 5))
    clock.seconds += 2 * HOUR
    table.write_arrow(rows(1))
    assert table._root.changelogs.ids() == [4], "the newest stays"
    assert ids(table) == [5, 6, 7, 8]


def test_partitions_expire_by_commits(store, clock):
    class Jitter(Ids):
        def jitter(self):
            return 0.25

    catalog = Catalog(store, "/w", env=Env(clock, None, SerialPool()))
    catalog.create_database("d", exist_ok=True)
    schema = pa.schema([("dt", pa.string()), ("k", pa.int64())])
    options = {**FEW, "partition.expiration-time": "2 d", "partition.expiration-check-interval": "8 h"}
    catalog.create_table("d.t", schema, partition_by=["dt"], options=options)
    root = TableRoot(store, PATH, Env(clock, Jitter(), SerialPool()))
    table = Table(root, root.schemas.latest(), "d.t")

    def commit(day):
        return table.write_arrow(pa.table({"dt": [day], "k": [1]}, schema=schema))

    def days():
        return [partition.partition["dt"] for partition in table.partitions()]

    assert commit("2023-11-12").snapshot_id == 1 and commit("2023-11-14").snapshot_id == 2  # 2023-11-14 22:13
    assert days() == ["2023-11-12", "2023-11-14"], "six hours are left until the first look"
    clock.seconds += 6 * HOUR
    assert commit("2023-11-15").snapshot_id == 3
    assert days() == ["2023-11-12", "2023-11-14", "2023-11-15"]
    clock.seconds += 1
    assert commit("2023-11-15").snapshot_id == 4
    assert days() == ["2023-11-14", "2023-11-15"] and ids(table) == [3, 4, 5], "the commit that dropped it counts"
    clock.seconds += 24 * HOUR
    commit("2023-11-17")
    assert days() == ["2023-11-15", "2023-11-17"]


def test_batches_may_look_at_once(store, clock):
    catalog = Catalog(store, "/w", env=Env(clock, Ids(), SerialPool()))
    catalog.create_database("d", exist_ok=True)
    schema = pa.schema([("dt", pa.string()), ("k", pa.int64())])
    options = {"partition.expiration-time": "2 d", "end-input.check-partition-expire": "true"}
    table = catalog.create_table("d.t", schema, partition_by=["dt"], options=options)
    table.write_arrow(pa.table({"dt": ["2023-11-12", "2023-11-13"], "k": [1, 2]}, schema=schema))
    assert [partition.partition["dt"] for partition in table.partitions()] == ["2023-11-13"]


# -- failures ---------------------------------------------------------------------------------------------------------


def test_a_commit_is_told_of_though_care_fails(store, clock):
    table = created(store, clock, **FEW)
    for _ in range(3):
        table.write_arrow(rows(1))
    store.put(f"{PATH}/tag/tag-odd", b"{}")
    with pytest.warns(PaimonWarning, match=r"snapshot 4 was committed, but snapshots did not expire: .*tag-odd") as caught:
        result = table.write_arrow(rows(2))
    assert result.snapshot_id == 4 and ids(table) == [1, 2, 3, 4] and caught[0].filename == __file__
    store.delete(f"{PATH}/tag/tag-odd")
    table.write_arrow(rows(3))
    assert ids(table) == [3, 4, 5]


def test_what_fails_does_not_keep_the_rest_from_care(store, clock):
    table = created(store, clock, **FEW, **{"consumer.expiration-time": "1 h"})

    class Closed(FaultStore):
        def list(self, directory):
            if directory.endswith("/consumer") and self.log.count(("list", directory)) == 0:
                self.log.append(("list", directory))
                raise PaimonError("closed")
            return super().list(directory)

    for _ in range(3):
        table.write_arrow(rows(1))
    with pytest.warns(PaimonWarning, match="consumers did not expire: closed"):
        opened(Closed(store), clock).write_arrow(rows(1))
    assert ids(table) == [2, 3, 4]


class Later(SerialPool):
    """Runs what goes on behind the caller when it is told to."""

    def __init__(self):
        self.waiting = []

    def behind(self, function):
        self.waiting.append(function)


def test_care_in_the_background_goes_on_one_at_a_time(store, clock):
    created(store, clock, **FEW, **{"snapshot.expire.execution-mode": "async"})
    pool = Later()
    table = opened(store, clock, pool)
    numbers = iter(range(99))

    def commit():
        table.commit(written(table), user="u", identifier=next(numbers))

    for _ in range(6):
        commit()
    assert len(ids(table)) == 6 and len(pool.waiting) == 1
    pool.waiting.pop()()
    assert ids(table) == [1, 2, 3, 4, 5, 6], "the care of the first commit, when there was nothing to do"
    commit()
    pool.waiting.pop()()
    assert ids(table) == [5, 6, 7]
    store.put(f"{PATH}/tag/tag-odd", b"{}")
    commit()
    with pytest.warns(PaimonWarning, match="snapshot 8 was committed, but snapshots did not expire"):
        pool.waiting.pop()()
    store.delete(f"{PATH}/tag/tag-odd")
    commit()
    pool.waiting.pop()()
    assert ids(table) == [7, 8, 9]
    table.write_arrow(rows(1))
    assert ids(table) == [8, 9, 10] and not pool.waiting, "batches wait for their care"


@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.full)])
def test_whatever_fails_a_published_commit_is_told_and_all_that_is_left_can_be_read(every):
    clock = Clock()
    original = MemoryStore(clock=clock)
    options = {**FEW, "changelog-producer": "input", "changelog.num-retained.min": "4",
               "changelog.num-retained.max": "5", "consumer.expiration-time": "1 h"}  # fmt: skip
    table = created(original, clock, **options)
    for number in range(4):
        table.write_arrow(rows(number, number + 1))
    table.create_tag("kept", snapshot_id=2)
    table._root.consumers.put(Consumer("c", 1))
    clock.seconds += 2 * HOUR
    before = sorted(table.scan().to_arrow()["k"].to_pylist())

    def operation(store):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PaimonWarning)
            return opened(store, clock).write_arrow(rows(9))

    def check(store, outcome):
        left = opened(store, clock)
        latest = left.snapshot()
        expected = before if latest.id == 4 else [*before, 9]
        for snapshot in left.snapshots():
            left.scan(snapshot_id=snapshot.id).to_arrow()
        assert sorted(left.scan().to_arrow()["k"].to_pylist()) == expected
        assert left.scan(tag="kept").to_arrow().num_rows == 3
        assert outcome.result is None or (latest.id == 5 == outcome.result.snapshot_id)
        assert outcome.crashed or outcome.result is not None or latest.id == 4 or "not known" in str(outcome.error)
        left.write_arrow(rows(10))
        left.write_arrow(rows(11))  # the hint may say that more went than did
        assert left.consumers() == [] and len(ids(left)) <= 3

    share = lambda call, mode: (call + MODES.index(mode)) % every == 0  # noqa: E731
    assert for_each_fault(original.copy, operation, check, share=share) > 10


def test_warnings_that_are_errors_come_after_the_commit(store, clock):
    table = created(store, clock, **FEW)
    for _ in range(3):
        table.write_arrow(rows(1))
    store.put(f"{PATH}/tag/tag-odd", b"{}")
    with pytest.raises(PaimonWarning, match="snapshot 4 was committed"):  # the suite makes warnings errors
        table.write_arrow(rows(1))
    assert ids(table)[-1] == 4


def test_a_tag_keeps_its_rows_while_commits_expire_what_is_around(store, clock):
    table = created(store, clock, **FEW)
    for number in range(12):
        table.write_arrow(rows(number % 3, v=f"v{number}"))
        if number == 4:
            table.create_tag("t", retain=timedelta(days=1))
    state = {}
    for number in range(5):
        state[number % 3] = f"v{number}"
    found = table.scan(tag="t").to_arrow()
    assert dict(zip(found["k"].to_pylist(), found["v"].to_pylist(), strict=True)) == state
    assert all(itertools.starmap(lambda first, second: first + 1 == second, itertools.pairwise(ids(table))))


# -- found by random lives --------------------------------------------------------------------------------------------


def test_a_branch_keeps_what_it_shares_though_it_let_the_common_snapshots_go(store, clock):
    """The branch's own snapshot has the number of one of the table that goes, and no older one is left there."""
    table = created(store, clock, (), **FEW)
    table.write_arrow(rows(1))
    branch = table.create_branch("b", 1)
    for number in range(3):
        branch.write_arrow(rows(10 + number))
    assert ids(branch) == [2, 3, 4]
    table.write_arrow(rows(2))
    table.write_arrow(rows(3), overwrite={})
    table.write_arrow(rows(4))
    table.write_arrow(rows(5))
    assert ids(table) == [3, 4, 5]
    table.write_arrow(rows(6))
    assert [branch.scan(snapshot_id=number).to_arrow().num_rows for number in ids(branch)] == [2, 3, 4]


def test_a_tag_keeps_what_the_first_changelog_that_goes_took_away(store, clock):
    """The newest tag before does not know these files: the snapshot that took them away has it."""
    options = {**FEW, "changelog.num-retained.min": "4", "changelog.num-retained.max": "5"}
    table = created(store, clock, (), **options)
    table.write_arrow(rows(1))
    table.create_tag("before", snapshot_id=1)
    table.write_arrow(rows(2), overwrite={})
    table.create_tag("after", snapshot_id=2)
    for number in range(8):
        table.write_arrow(rows(number))
        assert table.scan(tag="before").to_arrow().num_rows == 1, table._root.changelogs.ids()
    assert table._root.changelogs.ids() == [6, 7]


def test_a_tag_of_an_older_java_goes_without_files_of_its_snapshot(store, clock):
    """It leaves fields out that it does not know; the snapshot is the same."""
    table = created(store, clock, ())
    for number in range(4):
        table.write_arrow(rows(number))
    table.create_tag("t", snapshot_id=3)
    path = f"{PATH}/tag/tag-t"
    fields = json.loads(store.get(path))
    assert fields.pop("uuid")
    store.put(path, json.dumps(fields).encode())
    table.delete_tag("t")
    assert [table.scan(snapshot_id=number).to_arrow().num_rows for number in ids(table)] == [1, 2, 3, 4]


def test_a_tag_that_goes_leaves_the_changes_that_are_kept(store, clock):
    """In an append table the files that were written tell of the changes."""
    options = {**FEW, "changelog.num-retained.min": "9", "changelog.num-retained.max": "99"}
    table = created(store, clock, (), **options)
    for number in range(3):
        table.write_arrow(rows(number))
    table.create_tag("t", snapshot_id=2)
    table.write_arrow(rows(3), overwrite={})
    for number in range(4):
        table.write_arrow(rows(number))
    assert ids(table) == [6, 7, 8] and table._root.changelogs.ids() == [1, 2, 3, 4, 5]
    table.delete_tag("t")
    assert [table.changes(number - 1, number).to_arrow().num_rows for number in range(1, 4)] == [1, 1, 1]


def test_a_tag_that_goes_leaves_the_changes_that_a_branch_keeps(store, clock):
    """A branch began with the tag, and has let its snapshot go since, not the changes."""
    table = created(store, clock, (), **FEW)
    for number in range(3):
        table.write_arrow(rows(number))
    table.create_tag("t", snapshot_id=2)
    branch = table.create_branch("b", "t")
    branch.alter(SetOption("changelog.num-retained.min", "9"), SetOption("changelog.num-retained.max", "99"))
    branch = table.branch("b")
    for process in (table, branch):
        process.write_arrow(rows(3), overwrite={})
        for number in range(4):
            process.write_arrow(rows(number))
    assert branch._root.changelogs.ids() == [2, 3, 4] and not {2, 3} & {*ids(table), *ids(branch)}
    branch.delete_tag("t")
    table.delete_tag("t")
    assert branch.changes(1, 2).to_arrow().num_rows == 1


def test_the_snapshots_of_a_branch_outlive_the_changes_of_main_that_took_their_rows_away(store, clock):
    table = created(store, clock, (), **FEW, **{"write-only": "true"})
    table.write_arrow(rows(1))
    branch = table.create_branch("b", 1)
    branch.write_arrow(rows(2), overwrite={})
    branch.write_arrow(rows(3))
    table.fast_forward("b")
    table.alter(SetOption("changelog.num-retained.min", "9"), SetOption("changelog.num-retained.max", "99"))
    for number in range(4, 8):
        table.write_arrow(rows(number))
    table.expire_snapshots(retain_min=1, retain_max=1)
    assert table._root.changelogs.ids() == [1, 2, 3, 4, 5, 6]
    for gone in range(1, 6):
        assert table.expire_changelogs(retain_min=1, retain_max=1, max_deletes=1).snapshot_ids == (gone,)
        assert {number: branch.scan(snapshot_id=number).to_arrow().num_rows for number in ids(branch)} == {1: 1, 2: 1, 3: 2}
