"""Steps of a sink whose events are in the processes of an engine, beside the same steps in one process."""

from __future__ import annotations

import itertools
import pickle
import random

import pyarrow as pa
import pytest
from unit.cdc.test_steps_by_tasks import FORMATS, KEY, OPTIONS, Source, created, ids, prepare, raising, shown

from paimon_py import Catalog, Schema, Table
from paimon_py.cdc import Routes, Sink, SinkResult, event_shares
from paimon_py.cdc.event_shares import KEPT, REPORT
from paimon_py.errors import CommitConflictError, ResourceError, StorageError, UsageError
from paimon_py.executors import LocalExecutor


def rows_of(events, topics=True):
    """Events as Spark's source for Kafka has them."""
    rows = {
        "key": [each.key for each in events], "value": [each.value for each in events], "topic": [each.topic for each in events],
        "partition": pa.array([len(each.topic) % 2 for each in events], pa.int32()), "offset": range(len(events)),
    }  # fmt: skip
    return pa.table(rows if topics else {name: rows[name] for name in ("value", "offset")})


class Shares:
    """Divides a table of events among processes, which get everything as pickles, and answer in any order.

    Args:
        shuffled: processes get rows from anywhere, until the events are sorted.
        sees: called before each process with its number and what it is to do; may return other rows.

    `calls`: what was done.
    """

    def __init__(self, rows, seed=0, *, shuffled=False, sees=lambda number, what, given: given):
        self._rng, self._sees, self.calls = random.Random(seed), sees, []
        self._rows, self._shuffled = rows, shuffled
        self.processes, self._kept = 1 + seed % 4, []

    def decode(self, part):
        self.calls.append("decode")
        rows, cuts = self._rows, 1 + self._rng.randrange(5)
        order = list(range(rows.num_rows))
        if self._shuffled:
            self._rng.shuffle(order)
        names = [name for name in ("topic", "partition", "offset") if name in rows.column_names]
        rows = rows.take(order) if self._shuffled else rows.sort_by([(name, "ascending") for name in names])
        ends = sorted(self._rng.randrange(rows.num_rows + 1) for _ in range(cuts - 1))
        self._kept = []
        for number, (start, end) in enumerate(zip([0, *ends], [*ends, rows.num_rows], strict=True)):
            own = self._sees(number, "decode", rows.slice(start, end - start))
            self._kept += pickle.loads(pickle.dumps(part))(own.to_batches(max_chunksize=4))
        self._rng.shuffle(self._kept)
        return [data for number, data in self._kept if number == REPORT]

    def bring(self):
        self.calls.append("kept")
        return [data for number, data in self._kept if number == KEPT]

    def write(self, part):
        self.calls.append("write")
        found, done = {}, []
        for number, data in self._kept:
            if number >= 0:
                found.setdefault(number, []).append(data)
        assert max(found) < self.processes
        try:
            for number, own in found.items():
                done += pickle.loads(pickle.dumps(part))(self._sees(number, "write", own))
        except StorageError:
            part.discard(done)
            raise
        self._rng.shuffle(done)
        return done

    def in_order(self):
        self.calls.append("in_order")
        self._shuffled = False
        return self

    def close(self):
        self.calls.append("close")
        self._kept = []


@pytest.fixture(autouse=True)
def _short_runs(monkeypatch):
    monkeypatch.setattr(event_shares, "_RUN_EVENTS", 3)


@pytest.fixture
def places(tmp_path):
    return [Catalog.open(str(tmp_path / name)) for name in ("here", "there")]


def lives(places, told, seed, shuffled):
    options = OPTIONS[seed]
    routes = Routes(metadata={"op_ts": "at", "offset": "place"}, computed=("w=truncate(id, 2)",)) if seed == 1 else Routes()
    source, kind = Source(seed, FORMATS[told]), "debezium-json" if told == "by key" else told
    steps = [rows_of(source.step(size)) for size in (20, 1, 35, 9)]
    done: list[list[SinkResult]] = []
    for catalog, there in zip(places, (False, True), strict=True):
        prepare(catalog, options, ("STRING", "STRING") if told == "maxwell-json" else ("BIGINT", "SMALLINT"))
        sink = Sink(catalog, "lake", user="u", format=kind, routes=routes, options=options)
        given = [Shares(rows, seed + at, shuffled=shuffled) if there else rows for at, rows in enumerate(steps)]
        done.append([sink.write(each, identifier=at) for at, each in enumerate(given)])
        if there:
            rows = [each.table("lake.log").to_arrow().to_pylist() for each in places]
            assert rows[0] == rows[1], "rows without a key are in the order of the source"
    for catalog, name in itertools.product(places, KEY):
        catalog.table(f"lake.{name}").compact()
    assert done[0] == done[1]
    assert shown(places[0]) == shown(places[1])
    return done[0]


@pytest.mark.parametrize("shuffled", [False, True], ids=["as in Kafka", "shuffled"])
@pytest.mark.parametrize(("told", "seed"), [(list(FORMATS)[seed % 4], seed) for seed in range(6)])
def test_lives_of_several_tables_end_the_same(places, told, seed, shuffled):
    done = lives(places, told, seed, shuffled)
    assert {name for one in done for name, count in one.rows.items() if count} == set(KEY)
    assert sum(one.dead for one in done) > 2 and any(one.altered for one in done)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("told", FORMATS)
def test_more_lives_of_several_tables_end_the_same(places, told, seed):
    lives(places, told, seed, shuffled=seed % 2 == 0)


# -- what is decoded, and how often --------------------------------------------------------------------------------------


def sink_of(catalog, **more):
    return Sink(catalog, "lake", user="u", **more)


def test_events_are_decoded_once_where_tables_are_as_they_need_to_be(places):
    sink, rows = sink_of(places[0], options={"bucket": "2"}), rows_of([created(key) for key in range(9)])
    calls = []
    for identifier in range(3):
        shares = Shares(rows, 3)
        assert sink.write(shares, identifier=identifier).rows == {"orders": 9}
        calls.append(shares.calls)
    assert calls == [["decode", "decode", "write", "close"], *[["decode", "write", "close"]] * 2]
    other = Sink(places[0], "lake", user="other")
    shares = Shares(rows, 1, shuffled=True)
    assert other.write(shares, identifier=0).rows == {"orders": 9}
    assert shares.calls == ["decode", "close", "in_order", "decode", "write", "close"]
    shares = Shares(rows, 2)
    assert other.write(shares, identifier=0).rows == {"orders": 0}
    assert shares.calls == ["decode", "close"]


def test_events_with_values_and_offsets_alone_are_taken(places):
    routes = Routes(keys={"orders": ("id",)})
    rows = rows_of([created(key, more=str(key)) for key in (1, 2, 1, 3)], topics=False)
    assert sink_of(places[0], routes=routes).write(Shares(rows, 1), identifier=0).rows == {"orders": 4}
    assert places[0].table("lake.orders").to_arrow().sort_by("id").to_pylist()[0] == {"id": 1, "v": 1, "more": "1"}


def test_nothing_is_made_of_no_events(places):
    done = sink_of(places[0]).write(Shares(rows_of([])), identifier=0)
    assert done == SinkResult(rows={}, dead=0, skipped={}, altered={}) and "lake" not in places[0].databases()


def test_keys_that_move_between_partitions(places):
    columns = Schema([("id", "INT NOT NULL"), ("v", "SMALLINT"), ("part", "STRING")])
    catalog = places[0]
    catalog.create_database("lake")
    catalog.create_table("lake.orders", columns, primary_key=["id"], partition_by=["part"])
    sink = sink_of(catalog)
    sink.write(Shares(rows_of([created(key, part="a") for key in range(8)]), 2), identifier=0)
    moved = [created(key, part=part) for key, part in ((1, "b"), (2, "c"), (1, "c"), (9, "b"))]
    shares = Shares(rows_of([*moved, created(5, "items")]), 3)
    assert sink.write(shares, identifier=1).rows == {"orders": 4, "items": 1}
    rows = catalog.table("lake.orders").to_arrow().sort_by("id").to_pylist()
    assert [row["part"] for row in rows] == ["a", "c", "c", "a", "a", "a", "a", "a", "b"]


# -- exactly once --------------------------------------------------------------------------------------------------------


def test_a_step_that_one_way_began_is_known_to_the_other(places):
    catalog, events = places[0], [created(key) for key in range(7)]
    assert sink_of(catalog).write(Shares(rows_of(events), 1), identifier=3).rows == {"orders": 7}
    assert sink_of(catalog).write(events, identifier=3).rows == {"orders": 0}
    assert sink_of(catalog).write(events, identifier=4, executor=LocalExecutor()).rows == {"orders": 7}
    assert sink_of(catalog).write(Shares(rows_of(events), 2), identifier=4).rows == {"orders": 0}
    for number, kind in ((2, UsageError), (4, CommitConflictError)):
        with pytest.raises(kind, match="newest checkpoint back"):
            sink_of(catalog).write(Shares(rows_of([created(9, "items")])), identifier=number)
    assert catalog.tables("lake") == ["orders"] and ids(catalog) == [*range(7)]


@pytest.mark.parametrize("what", ["decode", "write"])
def test_a_process_that_fails_leaves_no_file_and_the_step_can_be_given_again(places, tmp_path, what):
    catalog = places[0]
    rows = rows_of([created(key, table) for key in range(9) for table in KEY] + [created(1, v="text")])
    seen = []

    def fails(number, doing, given):
        seen.append(doing)
        if doing == what and seen.count(doing) == 2:
            raise StorageError("lost", operation="put")
        return given

    sink = sink_of(catalog, options={"bucket": "2"})
    catalog.create_database("lake")
    catalog.create_table("lake.log", Schema([("id", "BIGINT"), ("v", "SMALLINT")]))
    shares = Shares(rows, 3, sees=fails)
    with pytest.raises(StorageError, match="lost"):
        sink.write(shares, identifier=1)
    assert shares.calls[-1] == "close"
    assert [path for path in tmp_path.rglob("data-*") if "dead_letters" not in str(path)] == []
    assert sink.write(Shares(rows, 4), identifier=1).rows == {"orders": 9, "items": 9, "log": 9}
    assert catalog.table("lake.cdc_dead_letters").count() == 1


@pytest.mark.parametrize("other", [lambda given: given[1:], lambda given: [*given, given[0]]], ids=["lost", "twice"])
@pytest.mark.parametrize("rounds", [2, 9])
def test_rows_that_are_lost_or_come_twice_are_noticed(places, tmp_path, other, rounds):
    left = [rounds]

    def sees(number, what, given):
        if what == "write" and left[0]:
            left[0] -= 1
            return other(given)
        return given

    shares = Shares(rows_of([created(key) for key in range(9)]), 0, sees=sees)
    if rounds == 2:
        assert sink_of(places[0]).write(shares, identifier=1).rows == {"orders": 9}
        assert ids(places[0]) == [*range(9)] and shares.calls.count("write") == 3
        return
    with pytest.raises(ResourceError, match="other than they had been reported"):
        sink_of(places[0]).write(shares, identifier=1)
    assert [*tmp_path.rglob("data-*")] == [] and places[0].table("lake.orders").snapshots() == []


def test_events_that_change_while_they_are_computed_again_are_refused(places):
    passes = []

    def sees(number, what, given):
        passes.extend(["one"] if number == 0 else [])
        return given.slice(1) if len(passes) > 1 else given

    with pytest.raises(UsageError, match="other events each time"):
        sink_of(places[0]).write(Shares(rows_of([created(key) for key in range(3)]), 0, sees=sees), identifier=1)
    assert places[0].table("lake.orders").snapshots() == []


def test_tables_behind_one_that_cannot_be_committed_leave_no_file(places, tmp_path, monkeypatch):
    catalog, commit = places[0], Table.commit

    def failing(table, changes, **label):
        if table.name.endswith("items"):
            raise CommitConflictError("another commit came first")
        return commit(table, changes, **label)

    rows = rows_of([created(key, table) for key in range(4) for table in ("orders", "items", "log")])
    with monkeypatch.context() as patch:
        patch.setattr(Table, "commit", failing)
        with pytest.raises(CommitConflictError):
            sink_of(catalog).write(Shares(rows, 2), identifier=1)
    assert {path.relative_to(tmp_path / "here" / "lake.db").parts[0] for path in tmp_path.rglob("data-*")} <= {"orders", "log"}
    done = sink_of(catalog).write(Shares(rows, 3), identifier=1).rows
    assert {name: catalog.table(f"lake.{name}").count() for name in done} == {"orders": 4, "items": 4, "log": 4}


# -- what is refused -----------------------------------------------------------------------------------------------------


def test_what_a_decoder_raises_comes_out_before_anything_is_made(places):
    with pytest.raises(ZeroDivisionError):
        sink_of(places[0], format=raising).write(Shares(rows_of([created(1)])), identifier=0)
    assert "lake" not in places[0].databases()


def test_an_executor_beside_shares_and_events_without_an_offset_are_refused(places):
    rows = rows_of([created(1)])
    with pytest.raises(UsageError, match="leave executor= out"):
        sink_of(places[0]).write(Shares(rows), identifier=0, executor=LocalExecutor())
    bare = rows.set_column(4, "offset", pa.array([None], pa.int64()))
    with pytest.raises(UsageError, match="no offset"):
        sink_of(places[0]).write(Shares(bare), identifier=0)


def test_a_table_that_cannot_be_read_stops_only_the_steps_that_need_it(places, tmp_path):
    sink_of(places[0]).write([created(1)], identifier=0)
    (tmp_path / "here" / "lake.db" / "orders" / "schema" / "schema-0").write_bytes(b"{}")
    fresh = Catalog.open(str(tmp_path / "here"))
    assert sink_of(fresh).write(Shares(rows_of([created(2, "items")])), identifier=1).rows == {"items": 1}
