"""Steps of a sink whose events are decoded and written by tasks, beside the same steps in one process."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from paimon_py import Catalog, Schema, Table
from paimon_py.cdc import Event, Routes, Sink, SinkResult, step_by_tasks, taken
from paimon_py.errors import CommitConflictError, StorageError, UsageError
from paimon_py.executors import Job, LocalExecutor, TaskResult

KEY = {"orders": "int32", "items": "int64", "log": None}
"""The source tables, with the type of their key."""


class Elsewhere:
    """Sends jobs and tasks as bytes, as other machines get them, and returns the results in any order.

    `jobs`: the tag of each job, with the number of its tasks.
    """

    def __init__(self, seed=0, fails=""):
        self._rng, self._fails = random.Random(seed), fails
        self.jobs = []

    def run(self, job, tasks):
        import pickle

        there, items = pickle.loads(pickle.dumps(job)), [bytes(task) for task in tasks]
        assert isinstance(there, Job) and there.is_remote
        self.jobs.append((job.kind.tag, len(items)))
        results = [TaskResult.from_bytes(there.run_bytes(item)) for item in items]
        if job.kind.tag == self._fails:
            results[-1] = TaskResult(job.kind.tag, results[-1].number, None, StorageError("lost", operation="put"))
        self._rng.shuffle(results)
        yield from results


@pytest.fixture(autouse=True)
def _small_tasks(monkeypatch):
    monkeypatch.setattr(step_by_tasks, "TASK_EVENTS", 3)


@pytest.fixture
def places(tmp_path):
    return [Catalog.open(str(tmp_path / name)) for name in ("here", "there")]


def debezium(op, before, after, table, types):
    fields = [{"field": name, "type": types.get(name, "string")} for name in (after or before)]
    payload = {"op": op, "before": before, "after": after, "source": {"table": table, "db": "shop", "ts_ms": 5}}
    value = {"schema": {"fields": [{"field": "after", "fields": fields}]}, "payload": payload}
    key = None if KEY[table] is None else {"schema": {"fields": fields[:1]}, "payload": {"id": (after or before)["id"]}}
    return json.dumps(value), key and json.dumps(key)


def debezium_by_key(op, before, after, table, types):
    """Deletes without the old row, as PostgreSQL tells them."""
    value, key = debezium(op, before, after, table, types)
    told = json.loads(value)
    told["payload"]["before"] = None
    return (json.dumps(told), key) if KEY[table] else (value, key)


def canal(op, before, after, table, types):
    names = {"int32": "int", "int64": "bigint", "int16": "smallint"}
    text = [{name: None if value is None else str(value) for name, value in row.items()} for row in (after or before, before or {})]
    value = {
        "type": {"c": "INSERT", "u": "UPDATE", "d": "DELETE"}[op], "database": "shop", "table": table, "ts": 5, "isDdl": False,
        "pkNames": ["id"] if KEY[table] else None, "data": text[:1], "old": text[1:] if op == "u" else None,
        "mysqlType": {name: names.get(types.get(name), "varchar(20)") for name in text[0]},
    }  # fmt: skip
    return json.dumps(value), None


def maxwell(op, before, after, table, _types):
    kinds = {"c": "insert", "u": "update", "d": "delete"}
    value = {"type": kinds[op], "database": "shop", "table": table, "ts": 5, "data": after or before}
    value |= {"old": before} if op == "u" else {}
    value |= {"primary_key_columns": ["id"]} if KEY[table] else {}
    return json.dumps(value), None


FORMATS = {"debezium-json": debezium, "by key": debezium_by_key, "canal-json": canal, "maxwell-json": maxwell}


class Source:
    """A database of three tables that lives at random: rows come, change and go, columns come and widen, a key widens."""

    def __init__(self, seed, told):
        self._rng, self._told = random.Random(seed), told
        self._rows = {table: {} for table in KEY}
        self._types = {table: {"id": kind or "int64", "v": "int16"} for table, kind in KEY.items()}
        self._position = 0

    def step(self, size):
        return [self._event() for _ in range(size)]

    def _event(self):
        rng = self._rng
        table = rng.choice(list(KEY))
        types, rows = self._types[table], self._rows[table]
        if rng.random() < 0.04:
            types[f"c{len(types)}"] = rng.choice(["string", "int32"])
        if rng.random() < 0.04:
            types["v"] = {"int16": "int32", "int32": "int64", "int64": "int64"}[types["v"]]
        if rng.random() < 0.01 and table == "orders":
            types["id"] = "int64"  # the table keeps INT: dead letters from now on
        self._position += 1
        if rng.random() < 0.06:
            value, key = rng.choice([("{", None), ("null", None), ('{"op": "x", "source": {"table": "orders"}}', None)])
        else:
            value, key = self._happening(table, types, rows)
        at = f"0:{self._position}"
        return Event(value.encode(), key and key.encode(), f"shop.{table}", at, 0, self._position, 7)

    def _happening(self, table, types, rows):
        rng, key = self._rng, self._rng.randrange(6)
        old = rows.get(key)
        new = {name: rng.randrange(100) if kind.startswith("int") else f"n{rng.randrange(9)}" for name, kind in types.items()} | {"id": key}
        if rng.random() < 0.05:
            new["v"] = "no number"
        if old is None or not KEY[table] or set(old) != set(new):
            rows[key] = new
            return self._told("c", None, new, table, types)
        if rng.random() < 0.4:
            del rows[key]
            return self._told("d", old, None, table, types)
        rows[key] = new
        return self._told("u", old, new, table, types)


def shown(catalog):
    """Everything that a sink made, without names of files."""
    found = {}
    for name in catalog.tables("lake"):
        table = catalog.table(f"lake.{name}")
        rows = [tuple(row.items()) for row in table.to_arrow().to_pylist()]
        labels = [(one.commit_user, one.commit_identifier) for one in table.snapshots() if one.commit_kind == "APPEND"]
        schema = table.schema
        found[name] = (rows if name.endswith("letters") else Counter(rows), labels, schema.fields, schema.primary_keys, schema.id)
    return found


OPTIONS = [
    {}, {"bucket": "1"}, {"bucket": "4", "changelog-producer": "input"}, {"bucket": "-2"},
    {"bucket": "3", "sequence.field": "v"}, {"merge-engine": "partial-update", "bucket": "2", "ignore-delete": "true"},
]  # fmt: skip


def lives(places, told, seed, ways=None):
    """Checks that a source ends the same in both places, and returns the results of its steps."""
    options = OPTIONS[seed]
    routes = Routes(metadata={"op_ts": "at", "offset": "place"}, computed=("w=truncate(id, 2)",)) if seed == 1 else Routes()
    source, kind = Source(seed, FORMATS[told]), "debezium-json" if told == "by key" else told
    steps = [source.step(size) for size in (20, 1, 35, 9)]
    done: list[list[SinkResult]] = []
    for catalog, way in zip(places, ways or (lambda: None, lambda: Elsewhere(seed)), strict=True):
        executor = way()
        prepare(catalog, options, ("STRING", "STRING") if told == "maxwell-json" else ("BIGINT", "SMALLINT"))
        sink = Sink(catalog, "lake", user="u", format=kind, routes=routes, options=options)
        done.append([sink.write(events, identifier=at, executor=executor) for at, events in enumerate(steps)])
        for name in KEY:
            catalog.table(f"lake.{name}").compact()
    assert done[0] == done[1]
    assert shown(places[0]) == shown(places[1])
    return done[0]


@pytest.mark.parametrize(("told", "seed"), [(list(FORMATS)[seed % 4], seed) for seed in range(6)])
def test_lives_of_several_tables_end_the_same(places, told, seed):
    done = lives(places, told, seed)
    assert {name for one in done for name, count in one.rows.items() if count} == set(KEY)
    assert sum(one.dead for one in done) > 2 and any(one.altered for one in done)


@pytest.mark.parametrize("seed", range(6))
def test_rows_that_are_converted_a_few_at_a_time_end_the_same(places, seed, monkeypatch):
    def at_once(rows):
        monkeypatch.setattr(taken, "_ROWS", rows)

    lives(places, list(FORMATS)[seed // 2 % 4], seed, [lambda: at_once(1024), lambda: at_once(1 + seed % 3)])


@pytest.mark.full
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("told", FORMATS)
def test_more_lives_of_several_tables_end_the_same(places, told, seed):
    lives(places, told, seed)


def prepare(catalog, options, types):
    """Makes the table without a key, which has no buckets whatever options others have."""
    catalog.create_database("lake")
    if "bucket" in options:
        catalog.create_table("lake.log", Schema(list(zip(("id", "v"), types, strict=True))))


# -- what is decoded, and how often --------------------------------------------------------------------------------------


def created(key, table="orders", **more):
    row = {"id": key, "v": key} | more
    value, told = debezium("c", None, row, table, {"id": "int32", "v": "int16"})
    return Event(value.encode(), told and told.encode(), table)


def ids(catalog, table="orders"):
    return sorted(row["id"] for row in catalog.table(f"lake.{table}").to_arrow().to_pylist())


def test_events_are_decoded_once_where_tables_are_as_they_need_to_be(places):
    catalog, executor = places[0], Elsewhere()
    sink = Sink(catalog, "lake", user="u", options={"bucket": "2"})
    sink.write([created(key) for key in range(9)], identifier=0, executor=executor)
    assert executor.jobs == [("events", 3), ("events", 3), ("parcels", 2)]
    executor.jobs.clear()
    sink.write([created(key) for key in range(9)], identifier=1, executor=executor)
    Sink(catalog, "lake", user="other").write([created(key) for key in range(9)], identifier=0, executor=executor)
    assert executor.jobs == [("events", 3), ("parcels", 2)] * 2
    executor.jobs.clear()
    items = [created(key, "items") for key in range(3)]
    sink.write(items, identifier=2, executor=executor)
    executor.jobs.clear()
    sink.write([*map(created, range(3)), *items, created(3, more="x")], identifier=3, executor=executor)
    assert executor.jobs == [("events", 3), ("events", 2), ("parcels", 4)], "events of the altered table come twice"
    executor.jobs.clear()
    bad = [*map(created, range(3)), created(7, v="text", id="key"), *items]
    assert sink.write(bad, identifier=4, executor=executor).dead == 1
    assert executor.jobs == [("events", 3), ("parcels", 4)]


def test_what_a_step_does_not_change_is_not_written(places):
    executor = Elsewhere()
    done = Sink(places[0], "lake", user="u").write([b"null", b"null"], identifier=0, executor=executor)
    assert done == SinkResult(rows={}, dead=0, skipped={"tombstone": 2}, altered={})
    assert Sink(places[0], "lake", user="u").write([], identifier=1, executor=executor).rows == {}
    assert executor.jobs == [("events", 1)] and "lake" not in places[0].databases()


def test_keys_that_move_between_partitions(places):
    columns = Schema([("id", "INT NOT NULL"), ("v", "SMALLINT"), ("part", "STRING")])
    for catalog, executor in zip(places, (None, Elsewhere()), strict=True):
        catalog.create_database("lake")
        catalog.create_table("lake.orders", columns, primary_key=["id"], partition_by=["part"])
        sink = Sink(catalog, "lake", user="u")
        sink.write([created(key, part="a") for key in range(8)], identifier=0, executor=executor)
        moved = [created(key, part=part) for key, part in ((1, "b"), (2, "c"), (1, "c"), (9, "b"))]
        assert sink.write(moved, identifier=1, executor=executor).rows == {"orders": 4}
        rows = catalog.table("lake.orders").to_arrow().sort_by("id").to_pylist()
        assert [row["part"] for row in rows] == ["a", "c", "c", "a", "a", "a", "a", "a", "b"]


def test_partitions_and_dynamic_buckets_are_shared_by_key(places):
    routes = Routes(keys={"orders": ("id", "part")}, partitions={"orders": ("part",)})
    for catalog, executor in zip(places, (None, Elsewhere()), strict=True):
        sink = Sink(catalog, "lake", user="u", routes=routes, options={"dynamic-bucket.target-row-num": "5"})
        for at in range(3):
            events = [created(key, part="ab"[key % 2]) for key in range(at * 7, at * 7 + 40)]
            sink.write(events, identifier=at, executor=executor)
    assert shown(places[0])["orders"] == shown(places[1])["orders"]
    assert ids(places[1]) == [*range(54)]


@pytest.mark.parametrize("options", [
    {"deletion-vectors.enabled": "true"}, {"changelog-producer": "lookup"}, {"dynamic-bucket.max-buckets": "2"},
], ids=str)  # fmt: skip
def test_rows_of_dynamic_buckets_are_seen_after_steps_of_different_sizes(places, options):
    catalog = places[1]
    sink = Sink(catalog, "lake", user="u", options={"dynamic-bucket.target-row-num": "5", **options})
    for at, size in enumerate((9, 30, 6)):
        sink.write([created(key, part=str(at)) for key in range(size)], identifier=at, executor=Elsewhere(at))
        rows = catalog.table("lake.orders").to_arrow().sort_by("id").to_pylist()
        assert [row["part"] for row in rows[:size]] == [str(at)] * size
        stored = catalog.table("lake.orders").system("files").to_arrow()
        assert "max-buckets" not in str(options) or len(set(stored["bucket"].to_pylist())) <= 2
        assert "lookup" not in str(options) or 0 not in stored["level"].to_pylist()


# -- exactly once --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [None, Elsewhere()], ids=["here first", "elsewhere first"])
def test_a_step_that_one_way_began_is_known_to_the_other(places, first):
    catalog = places[0]
    events = [created(key) for key in range(7)] + [Event(b"{")]
    then = Elsewhere() if first is None else None
    assert Sink(catalog, "lake", user="u").write(events, identifier=3, executor=first).rows == {"orders": 7}
    done = Sink(catalog, "lake", user="u").write(events[::-1], identifier=3, executor=then)
    assert (done.rows, done.dead) == ({"orders": 0}, 1)
    assert catalog.table("lake.cdc_dead_letters").count() == 1 and ids(catalog) == [*range(7)]


@pytest.mark.parametrize(("number", "kind"), [(3, UsageError), (7, CommitConflictError)])
def test_a_lost_step_touches_nothing(places, number, kind):
    catalog, executor = places[0], Elsewhere()
    target = Sink(catalog, "lake", user="u")
    target.write([created(1), created(2, "items")], identifier=7, executor=executor)
    before = shown(catalog)
    for again in ([created(9, "log")], [Event(b"{")], [created(3, more="x")], [created(1)]):
        for sink in (target, Sink(catalog, "lake", user="u")):
            with pytest.raises(kind, match="newest checkpoint back"):
                sink.write(again, identifier=number, executor=executor)
    assert shown(catalog) == before
    assert {tag for tag, _ in executor.jobs[2:]} <= {"events", "parcels"} and executor.jobs[-1][0] == "events"


@pytest.mark.parametrize("fails", ["events", "parcels"])
def test_a_task_that_fails_leaves_no_file_and_the_step_can_be_given_again(places, tmp_path, fails):
    catalog, events = places[0], [created(key) for key in range(9)] + [created(1, "items"), Event(b"{")]
    sink = Sink(catalog, "lake", user="u", options={"bucket": "2"})
    with pytest.raises(StorageError, match="lost"):
        sink.write(events, identifier=1, executor=Elsewhere(fails=fails))
    left = [path for path in tmp_path.rglob("data-*") if "dead_letters" not in str(path)]
    assert len(left) <= 1  # that of the result that got lost
    assert sink.write(events, identifier=1, executor=Elsewhere()).rows == {"orders": 9, "items": 1}
    assert catalog.table("lake.cdc_dead_letters").count() == 1


def test_tables_behind_one_that_cannot_be_committed_leave_no_file(places, tmp_path, monkeypatch):
    catalog, commit = places[0], Table.commit

    def failing(table, changes, **label):
        if table.name.endswith("items"):
            raise CommitConflictError("another commit came first")
        return commit(table, changes, **label)

    events = [created(key, table) for key in range(4) for table in ("orders", "items", "log")]
    sink = Sink(catalog, "lake", user="u")
    with monkeypatch.context() as patch:
        patch.setattr(Table, "commit", failing)
        with pytest.raises(CommitConflictError):
            sink.write(events, identifier=1, executor=Elsewhere())
    assert {path.relative_to(tmp_path / "here" / "lake.db").parts[0] for path in tmp_path.rglob("data-*")} == {"orders"}
    assert sink.write(events, identifier=1, executor=Elsewhere()).rows == {"orders": 0, "items": 4, "log": 4}


# -- what is refused -----------------------------------------------------------------------------------------------------


def raising(event):
    raise ZeroDivisionError(event.position)


def test_what_a_decoder_raises_comes_out_before_anything_is_made(places):
    for executor in (None, LocalExecutor(), Elsewhere()):
        sink = Sink(places[0], "lake", user="u", format=raising)
        with pytest.raises(ZeroDivisionError):
            sink.write([b"{}"], identifier=0, executor=executor)
    assert "lake" not in places[0].databases()


def test_only_executors_are_taken(places):
    with pytest.raises(UsageError, match=r"paimon_py\.executors"):
        Sink(places[0], "lake", user="u").write([b"{}"], identifier=0, executor=4)


def test_a_source_table_with_the_name_of_the_dead_letters_is_refused(places):
    sink = Sink(places[0], "lake", user="u", dead_letters="orders")
    with pytest.raises(UsageError, match="the one for dead letters"):
        sink.write([created(1)], identifier=0, executor=Elsewhere())
