"""The maintenance runner: what a round does, in which order, within which budget, and how the runner ends."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from datetime import timedelta

import pyarrow as pa
import pytest
from unit.commit.support import Clock
from unit.public import ROWS, keyed_table, new_catalog

from paimon_py import Catalog, SetOption, StorageError, UsageError
from paimon_py.env import Env, SerialPool
from paimon_py.metrics.measures import TableMeasures
from paimon_py.service import CareRunner, CareSettings, CareState, HealthServer, StopFlag
from paimon_py.service.health import health_page
from paimon_py.service.urgency import Need, urgency
from paimon_py.storage.memory_store import MemoryStore

PLAIN = pa.schema([("a", pa.int64())])
WRITE_ONLY = {"write-only": "true"}


@pytest.fixture
def catalog(tmp_path):
    return new_catalog(tmp_path)


def piled_up(catalog, name, commits):
    table = keyed_table(catalog, name, **WRITE_ONLY)
    for _ in range(commits):
        table.write_arrow(ROWS)
    return table


def runner_of(catalog, stop=None, **settings):
    return CareRunner(catalog, CareSettings(**settings), stop=stop)


def test_a_round_compacts_expires_and_leaves_rows_as_they_are(catalog):
    table = piled_up(catalog, "d.t", 20)
    before = table.to_arrow()
    table.delete_tag("first")
    table.alter(SetOption("snapshot.num-retained.min", "2"), SetOption("snapshot.num-retained.max", "3"))
    found = runner_of(catalog).run_round()
    entry = found.entries[0]
    assert (entry.table, entry.error, entry.waiting_files) == ("d.t", None, 0)
    assert entry.compacted_files == 43 and entry.compacted_bytes > 0 and entry.expired_snapshots == 20
    assert found.errors == () and found.compacted_bytes == entry.compacted_bytes
    assert catalog.table("d.t").to_arrow().sort_by("p") == before.sort_by("p")
    assert not runner_of(catalog).run_round().entries[0].did_something


def test_the_worst_table_comes_first(catalog):
    piled_up(catalog, "d.little", 2)
    piled_up(catalog, "d.worst", 20)
    piled_up(catalog, "d.bad", 5)
    found = runner_of(catalog).run_round()
    assert [entry.table for entry in found.entries] == ["d.worst", "d.bad", "d.little"]


@pytest.mark.parametrize(("level0", "runs", "files", "need"), [
    (9, 9, 9, Need.LEVEL_0_PILE_UP), (6, 6, 6, Need.READ_AMPLIFICATION), (5, 5, 5, Need.SMALL_FILES), (9, 9, 0, Need.NOTHING),
])  # fmt: skip
def test_needs_are_those_of_the_doctor(catalog, level0, runs, files, need):
    schema = keyed_table(catalog).schema
    seen = TableMeasures(table="d.t", time_millis=0, level0_files_max=level0, sorted_runs_max=runs, backlog_files=files, backlog_bytes=1)
    assert urgency(seen, schema).need is need


def test_a_budget_of_bytes_leaves_the_rest_for_later_rounds_and_goes_on(catalog):
    piled_up(catalog, "d.a", 8)
    piled_up(catalog, "d.b", 8)
    runner, waited = runner_of(catalog, budget_bytes=1), []
    for _ in range(6):
        found = runner.run_round()
        waited.append(sum(entry.waiting_files for entry in found.entries))
        if not waited[-1]:
            break
    assert waited[0] > 0 and waited[-1] == 0 and waited == sorted(waited, reverse=True)
    assert all(piece.levels()["file_count"].to_pylist() == [1, 1] for piece in (catalog.table("d.a"), catalog.table("d.b")))


def test_a_budget_of_time_names_the_tables_that_it_left(catalog):
    piled_up(catalog, "d.a", 9)
    piled_up(catalog, "d.b", 3)
    clock = catalog._env.clock
    runner = runner_of(catalog, budget_time=timedelta(seconds=1))

    def slow(event):
        clock.seconds += 2

    catalog.register_observer(slow)
    found = runner.run_round()
    assert [entry.table for entry in found.entries] == ["d.a"] and found.out_of_time == ("d.b",)


def test_orphans_go_once_a_day():
    clock = Clock()
    store = MemoryStore(clock=clock)
    catalog = Catalog(store, "memory://lake/wh", env=Env(clock, None, SerialPool()))
    catalog.create_database("d")
    table = keyed_table(catalog)
    runner = runner_of(catalog, orphans_older_than=timedelta(hours=1))
    stray = table.location + "/p=1/bucket-0/data-stray-0.parquet"
    table._root.store.put(stray, b"x")
    clock.seconds += 7200
    assert runner.run_round().entries[0].orphans == 1
    table._root.store.put(stray, b"x")
    clock.seconds += 7200
    assert runner.run_round().entries[0].orphans == 0
    clock.seconds += 86_401
    assert runner.run_round().entries[0].orphans == 1
    assert runner_of(catalog, orphans_every=None).run_round().entries[0].orphans == 0


def test_an_error_of_one_table_is_its_own(catalog):
    broken, fine = piled_up(catalog, "d.broken", 9), piled_up(catalog, "d.fine", 9)
    store = fine._root.store
    for status in store.list(broken.location + "/manifest"):
        store.put(status.path, b"damage")
    found = runner_of(catalog).run_round()
    by_name = {entry.table: entry for entry in found.entries}
    assert by_name["d.broken"].error is not None and by_name["d.fine"].compacted_files
    assert found.errors[0].startswith("d.broken: ")


def test_a_table_that_is_dropped_meanwhile_is_no_error(catalog):
    piled_up(catalog, "d.a", 9)
    piled_up(catalog, "d.b", 3)
    runner = runner_of(catalog)
    catalog.register_observer(lambda event: catalog.drop_table("d.b", missing_ok=True) if event.kind == "commit" else None)
    found = runner.run_round()
    assert found.errors == () and [entry.table for entry in found.entries] == ["d.a", "d.b"]
    assert runner.metrics.value("paimon_live_files", table="d.b") == 0


def test_a_stop_gives_work_up_and_leaves_no_file(catalog):
    table = piled_up(catalog, "d.t", 20)
    stop = StopFlag()

    class Stopping(StopFlag):
        def progress(self, *said):
            self.is_requested = True
            super().progress(*said)

    stop = Stopping()
    found = runner_of(catalog, stop=stop).run_round()
    assert found.stopped and found.entries[0].compacted_files == 0
    assert table.snapshot().id == 22 and table.remove_orphans(older_than=timedelta(seconds=1)).files == 0


def test_a_runner_waits_between_rounds_and_ends_when_it_is_told(catalog):
    clock, stop, rounds = catalog._env.clock, StopFlag(), []
    keyed_table(catalog)
    runner = runner_of(catalog, stop=stop, every=timedelta(minutes=10))

    def after(found):
        rounds.append(clock.elapsed())
        if len(rounds) == 3:
            stop.request()

    runner.run(after)
    assert rounds == [0, 600, 1200] and max(clock.waits) <= 1.0
    assert runner.state.rounds == 3


def test_a_round_that_cannot_list_the_tables_is_tried_again(catalog, monkeypatch, caplog):
    keyed_table(catalog)
    runner, failing = runner_of(catalog), [True, True]
    databases = catalog.databases

    def flaky(self):
        if failing:
            failing.pop()
            raise StorageError("the store is away", operation="list")
        return databases()

    monkeypatch.setattr(Catalog, "databases", flaky)
    runner.run(rounds=3)
    assert (runner.state.rounds, runner.state.failed_rounds) == (1, 0)
    assert sum("the round failed" in record.getMessage() for record in caplog.records) == 2
    failing.append(True)
    with pytest.raises(StorageError):
        runner.run(rounds=1)


def test_health_is_about_rounds_that_end():
    settings = CareSettings(every=timedelta(minutes=10))
    state = CareState(began_millis=0)
    assert state.is_healthy(40 * 60_000, settings) and not state.is_healthy(41 * 60_000, settings)
    later = CareState(began_millis=0, last_end_millis=60 * 60_000)
    assert later.is_healthy(90 * 60_000, settings) and not later.is_healthy(120 * 60_000, settings)
    assert not CareState(began_millis=0, failed_rounds=3).is_healthy(0, settings)


def test_the_health_endpoint_answers(catalog):
    keyed_table(catalog)
    runner = runner_of(catalog)
    runner.run_round()
    clock = catalog._env.clock
    server = HealthServer(runner, clock=clock)
    try:
        place = f"http://127.0.0.1:{server.port}"
        assert urllib.request.urlopen(f"{place}/healthz").read() == b"ok\n"
        assert b'paimon_live_files{table="d.keyed"} 3' in urllib.request.urlopen(f"{place}/metrics").read()
        state = json.loads(urllib.request.urlopen(place).read())
        assert state["healthy"] is True and state["last"]["entries"][0]["table"] == "d.keyed"
        with pytest.raises(urllib.error.HTTPError, match="404") as missing:
            urllib.request.urlopen(f"{place}/nothing")
        missing.value.close()
        clock.seconds += 86_400
        with pytest.raises(urllib.error.HTTPError, match="503") as sick:
            urllib.request.urlopen(f"{place}/healthz")
        sick.value.close()
    finally:
        server.close()
    assert health_page(runner, "/metrics", 0).status == 200


@pytest.mark.parametrize("wrong", [{"every": 10}, {"every": timedelta(0)}, {"budget_bytes": 0}, {"orphans_older_than": timedelta(-1)}])
def test_settings_without_sense_are_refused(wrong):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        CareSettings(**wrong)


def test_only_the_databases_that_are_named(catalog):
    catalog.create_database("other")
    keyed_table(catalog, "d.t")
    keyed_table(catalog, "other.t")
    assert [entry.table for entry in runner_of(catalog, databases=("other",)).run_round().entries] == ["other.t"]


def test_postponed_buckets_are_published(tmp_path):
    catalog = Catalog.open(tmp_path / "w", {"fs.local.fsync": "false"}, env=Env(Clock(), None, SerialPool()))
    catalog.create_database("d")
    columns = pa.schema([pa.field("k", pa.int64(), nullable=False)])
    table = catalog.create_table("d.late", columns, primary_key=["k"], options={"bucket": "-2"})
    table.write_arrow(pa.table({"k": [1, 2, 3]}))
    assert table.scan().to_arrow().num_rows == 0
    entry = runner_of(catalog).run_round().entries[0]
    assert entry.compacted_files == 1 and catalog.table("d.late").scan().to_arrow().num_rows == 3
