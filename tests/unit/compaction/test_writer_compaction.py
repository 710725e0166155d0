"""A writer compacts what it writes to: when it is due, from the newest runs on, and never over rows that may still come."""

from __future__ import annotations

from collections import Counter

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.commit.support import Clock, Ids

from paimon_py import Catalog, PaimonError, SetOption, StorageError
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.root import TableRoot
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.table import Table
from paimon_py.testing.fault_store import MODES, FaultStore, for_each_fault
from paimon_py.testing.store_spill import StoreSpill

WAREHOUSE = "memory://compacting"
EAGER = {"compaction.total-size-threshold": "1 mb"}
"""Two runs are enough for a compaction."""

ROWS = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.string())])


def new_table(store=None, *, keyed=True, **options):
    store = store or MemoryStore()
    catalog = Catalog(store, WAREHOUSE, env=Env(Clock(), Ids("setup"), SerialPool()))
    catalog.create_database("db")
    keys = {"primary_key": ["k"]} if keyed else {}
    named = {name.replace("_", "-"): value for name, value in options.items()}
    catalog.create_table("db.t", ROWS, **keys, options={"bucket": "1", **named})
    return table_on(store)


def table_on(store, owner="w"):
    root = TableRoot(store, f"{WAREHOUSE}/db.db/t", Env(Clock(), Ids(owner), SerialPool(), StoreSpill(MemoryStore())))
    return Table(root, root.schemas.latest(), "db.t")


def rows(keys, value):
    return pa.table({"k": list(keys), "v": [str(value)] * len(list(keys))}, schema=ROWS)


def live(table):
    root = table._root
    snapshot = root.snapshots.latest()
    return [] if snapshot is None else [entry.file for entry in root.manifests.live_entries(snapshot).entries()]


def levels(table):
    return dict(sorted(Counter(file.level for file in live(table)).items()))


def held(table):
    read = table.scan().to_arrow()
    return dict(zip(read["k"].to_pylist(), read["v"].to_pylist(), strict=True))


def data_files(table, directory=None):
    store, found = table._root.store, []
    store = getattr(store, "store", store)
    for status in store.list(directory or table.location):
        found += data_files(table, status.path) if status.is_directory else [status.path]
    return [path for path in found if "/bucket-" in path]


def referenced(table):
    root, names = table._root, set()
    for number in root.snapshots.ids():
        snapshot = root.snapshots.get(number)
        manifests = root.manifests.read_list(snapshot.delta_manifest_list)
        names.update(root.manifests.read_entries(manifests).names().to_pylist())
    return names


def kinds(table):
    return [snapshot.commit_kind.name for snapshot in (table._root.snapshots.get(n) for n in table._root.snapshots.ids())]


def test_the_commit_that_makes_enough_runs_also_compacts_them():
    table = new_table()
    for number in range(5):
        result = table.write_arrow(rows([number, 0], number))
    assert len(result.snapshot_ids) == 2
    assert levels(table) == {5: 1}
    assert kinds(table) == ["APPEND"] * 5 + ["COMPACT"]
    assert held(table) == {0: "4", 1: "1", 2: "2", 3: "3", 4: "4"}


def test_a_file_of_the_very_commit_is_added_and_then_compacted_away():
    table = new_table(**EAGER)
    table.write_arrow(rows([1], "a"))
    with table.writer() as writer:
        writer.write_arrow(rows([1, 2], "b"))
    (bucket,) = writer.changes().buckets
    (new,) = bucket.written.added
    assert new in bucket.compacted.deleted
    assert len(bucket.compacted.deleted) == 2
    assert [file.row_count for file in bucket.compacted.added] == [2]


def test_a_table_that_is_write_only_is_left_to_others():
    table = new_table(write_only="true")
    for number in range(9):
        table.write_arrow(rows([number], number))
    assert levels(table) == {0: 9}


def test_a_writer_that_commits_repeatedly_starts_from_the_current_files():
    table = new_table()
    with table.writer() as writer:
        for number in range(23):
            writer.write_arrow(rows([number % 7, 100 + number], number))
            result = table.commit(writer.changes(), user="stream", identifier=number)
            assert result.dropped_compaction is None
            assert sum(levels(table).values()) <= 5
    assert kinds(table).count("COMPACT") >= 4
    assert held(table) == {**{100 + n: str(n) for n in range(23)}, **{n % 7: str(n) for n in range(23)}}


def test_no_compaction_bypasses_rows_that_may_still_be_committed():
    table = new_table(**EAGER)
    table.write_arrow(rows([0], "old"))
    with table.writer() as writer:
        pending = []
        for number in range(4):
            writer.write_arrow(rows([0, number], number))
            pending.append(writer.changes())
    assert [bool(changes.buckets[0].compacted.deleted) for changes in pending] == [True, False, False, False]
    late = [pending[1], pending[0], *pending[2:]]
    for changes in late:
        table.commit(changes)
    assert held(table) == {0: "3", 1: "1", 2: "2", 3: "3"}


def test_compaction_continues_once_the_files_are_committed_or_discarded():
    table = new_table(**EAGER)
    with table.writer() as writer:
        writer.write_arrow(rows([0], "a"))
        first = writer.changes()
        writer.write_arrow(rows([0], "b"))
        second = writer.changes()
        assert not second.buckets[0].compacted.deleted
        table.commit([first, second])
        writer.write_arrow(rows([0], "c"))
        third = writer.changes()
        assert len(third.buckets[0].compacted.deleted) == 3
        writer.discard(third)
        writer.write_arrow(rows([0], "d"))
        fourth = writer.changes()
        assert len(fourth.buckets[0].compacted.deleted) == 3
        table.commit(fourth)
    assert held(table) == {0: "d"}
    assert set(referenced(table)) == {path.rsplit("/", 1)[1] for path in data_files(table)}


def test_a_compaction_that_others_got_in_the_way_of_is_dropped_and_the_rows_stay():
    table = new_table(**EAGER)
    table.write_arrow(rows([0, 1], "old"))
    with table.writer() as writer:
        writer.write_arrow(rows([0], "mine"))
    changes = writer.changes()
    assert changes.buckets[0].compacted.deleted
    other = table_on(table._root.store, "other")
    other.write_arrow(rows([0], "theirs"))
    result = table.commit(changes)
    assert result.dropped_compaction is not None
    assert held(table) == {0: "mine", 1: "old"}
    assert set(referenced(table)) == {path.rsplit("/", 1)[1] for path in data_files(table)}


def test_a_long_load_never_piles_up_more_runs_than_writers_may():
    options = {"write-buffer-size": "4 kb", "write-buffer-spillable": "false", "num-sorted-run.stop-trigger": "6"}
    table = new_table(**options)
    most = 0
    with table.writer() as writer:
        for number in range(60):
            writer.write_arrow(rows(range(number, number + 150), number))
            most = max(most, len(data_files(table)))
    changes = writer.changes()
    (bucket,) = changes.buckets
    assert len(bucket.written.added) > 20
    made = {file.name for file in (*bucket.written.added, *bucket.compacted.added)}
    assert {path.rsplit("/", 1)[1] for path in data_files(table)} == made
    table.commit(changes)
    assert sum(levels(table).values()) <= 7
    expected = {}
    for number in range(60):
        expected.update(dict.fromkeys(range(number, number + 150), str(number)))
    assert held(table) == expected


def test_aborting_deletes_the_files_compacted_in_the_middle_of_a_load():
    options = {"write-buffer-size": "4 kb", "write-buffer-spillable": "false", "num-sorted-run.stop-trigger": "5"}
    table = new_table(**options)
    with pytest.raises(RuntimeError), table.writer() as writer:
        for number in range(30):
            writer.write_arrow(rows(range(number, number + 150), number))
        assert len(data_files(table)) > 5
        raise RuntimeError
    assert data_files(table) == []


def test_every_nth_hand_over_fully_compacts_all_buckets_written_since():
    table = new_table(bucket="4", **{"full-compaction.delta-commits": "3"})
    with table.writer() as writer:
        for number in range(6):
            writer.write_arrow(rows([number], number))
            table.commit(writer.changes(), user="stream", identifier=number)
            if number % 3 == 2:
                assert set(levels(table)) == {5}
            else:
                assert 0 in levels(table)
    assert held(table) == {number: str(number) for number in range(6)}


def test_files_of_a_bucket_without_key_are_joined_in_their_order():
    table = new_table(keyed=False, bucket_key="k")
    for number in range(9):
        table.write_arrow(rows([number], number))
    assert len(live(table)) == 1
    assert table.scan().to_arrow()["k"].to_pylist() == list(range(9))
    assert kinds(table).count("COMPACT") == 2


def test_every_nth_hand_over_joins_the_files_of_a_bucket_without_key_though_they_are_few():
    table = new_table(keyed=False, bucket_key="k", **{"full-compaction.delta-commits": "3"})
    with table.writer() as writer:
        for number in range(6):
            writer.write_arrow(rows([number], number))
            table.commit(writer.changes(), user="stream", identifier=number)
            assert len(live(table)) == (1, 2, 1, 2, 3, 1)[number]
    assert table.scan().to_arrow()["k"].to_pylist() == list(range(6))


def test_tables_without_buckets_are_not_compacted_by_writers():
    table = new_table(keyed=False, bucket="-1")
    for number in range(9):
        table.write_arrow(rows([number], number))
    assert len(live(table)) == 9


@pytest.mark.parametrize("options", [{"merge-engine": "first-row"}, {"deletion-vectors.enabled": "true"}])
def test_tables_that_read_no_level_0_show_every_commit_at_once(options):
    table = new_table(**options)
    expected = {}
    for number in range(8):
        for key in (0, number):
            if "merge-engine" not in options or key not in expected:
                expected[key] = str(number)
        table.write_arrow(rows({0, number}, number))
        assert 0 not in levels(table)
        assert held(table) == expected
    table.write_arrow(rows([5], "new"), overwrite={})
    assert held(table) == {5: "new"}
    table.write_arrow(rows([6], "more"))
    assert held(table) == {5: "new", 6: "more"}


def test_an_overwrite_with_deletes_shows_none_of_them_in_a_table_with_deletion_vectors():
    table = new_table(**{"deletion-vectors.enabled": "true"})
    table.write_arrow(rows([1, 2], "old"))
    data = pa.table({"k": [1, 2], "v": ["x", "y"], "_row_kind": ["+I", "-D"]})
    table.write_arrow(data, overwrite={})
    assert held(table) == {1: "x"}


def test_a_commit_that_compacts_nothing_makes_no_more_requests_than_without_compaction():
    counts = {}
    for only in ("true", "false"):
        table = new_table(**{"write-only": only, "tag.time-expire-enabled": "false"})
        for number in range(3):
            table.write_arrow(rows([number], number))
        store = FaultStore(table._root.store)
        table_on(store, "next").write_arrow(rows([9], 9))
        counts[only] = store.count
    assert counts["true"] == counts["false"]


@pytest.mark.parametrize(
    "mode", ["before", *(pytest.param(mode, marks=pytest.mark.full) for mode in MODES if mode != "before")]
)
@pytest.mark.filterwarnings("ignore:.*a later commit tries again")
def test_whatever_call_fails_while_a_writer_compacts_the_rows_are_there_or_the_commit_failed(mode):
    def fresh():
        store = MemoryStore()
        table = new_table(store, write_only="true", **EAGER)
        for number in range(2):
            table.write_arrow(rows([0, number], number))
        table.alter(SetOption("write-only", "false"))
        return store

    old = {0: "1", 1: "1"}
    new = {0: "2", 1: "1", 2: "2"}

    def operation(store):
        return table_on(store, "operation").write_arrow(rows([0, 2], 2))

    def check(store, outcome):
        table = table_on(store, "after")
        assert held(table) in ([new] if outcome.error is None else [old, new])
        if isinstance(outcome.error, PaimonError) and held(table) == old and outcome.fault.verb != "delete":
            assert set(referenced(table)) == {path.rsplit("/", 1)[1] for path in data_files(table)}

    assert for_each_fault(fresh, operation, check, modes=(mode,)) > 10


def test_a_store_failure_in_a_compaction_aborts_the_writer():
    table = new_table(**EAGER)
    table.write_arrow(rows([0], "old"))
    before = set(data_files(table))
    store = FaultStore(table._root.store)
    with pytest.raises(StorageError), table_on(store, "failing").writer() as writer:
        writer.write_arrow(rows([0], "new"))
        writer.close()
        store.fail_at = store.count + 3
        writer.changes()
    assert store.failed
    assert set(data_files(table)) == before


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.lists(st.tuples(st.integers(0, 40), st.booleans()), min_size=1, max_size=60)),
        st.tuples(st.just("commit"), st.just([])),
        st.tuples(st.just("reopen"), st.just([])),
        st.tuples(st.just("discard"), st.just([])),
        st.tuples(st.just("other"), st.lists(st.tuples(st.integers(0, 40), st.booleans()), min_size=1, max_size=9)),
    ),
    min_size=4,
    max_size=25,
)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    steps=STEPS,
    trigger=st.integers(2, 5),
    buckets=st.integers(1, 3),
    spillable=st.sampled_from(["true", "false"]),
    options=st.sampled_from([{}, {"deletion-vectors.enabled": "true"}, {"full-compaction.delta-commits": "2"}]),
)
def test_random_writes_with_tiny_buffers_read_like_a_dict(steps, trigger, buckets, spillable, options):
    table = new_table(
        bucket=str(buckets), **{"write-buffer-size": "1 kb", "write-buffer-spillable": spillable},
        **{"num-sorted-run.compaction-trigger": str(trigger), "num-sorted-run.stop-trigger": str(trigger)}, **options,
    )  # fmt: skip
    model, pending, value = {}, [], 0
    writer = table.writer()

    def written(cells):
        nonlocal value
        value += 1
        kinds_ = ["-D" if deleted else "+I" for _, deleted in cells]
        data = pa.table({"k": [key for key, _ in cells], "v": [f"{value}-{at}" for at in range(len(cells))]})
        return data.append_column("_row_kind", pa.array(kinds_)), [
            (key, None if deleted else f"{value}-{at}") for at, (key, deleted) in enumerate(cells)
        ]

    def apply(cells):
        for key, text in cells:
            if text is None:
                model.pop(key, None)
            else:
                model[key] = text

    for verb, cells in steps:
        if verb == "write":
            data, done = written(cells)
            writer.write_arrow(data)
            pending += done
        elif verb == "other":
            data, done = written(cells)
            table_on(table._root.store, f"other{value}").write_arrow(data)
            apply(done)
            assert held(table) == model
        elif verb == "discard":
            writer.discard(writer.changes())
            pending = []
        else:
            result = table.commit(writer.changes())
            apply(pending)
            pending = []
            if result.dropped_compaction is not None:
                table.compact()
            assert held(table) == model
            if verb == "reopen":
                writer.close()
                writer = table.writer()
    writer.abort()
    assert held(table) == model
    assert set(referenced(table)) >= {path.rsplit("/", 1)[1] for path in data_files(table)}
    assert {file.name for file in live(table)} <= {path.rsplit("/", 1)[1] for path in data_files(table)}
    assert msgspec.json.encode(levels(table))
