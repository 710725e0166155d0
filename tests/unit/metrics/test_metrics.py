"""Metrics: what is counted, how tables are measured, and the texts for others."""

from __future__ import annotations

import json
import math
import pickle
import re
import threading
from pathlib import Path

import pyarrow as pa
import pytest
from unit.public import QUICK, ROWS, env, keyed_table, new_catalog

import paimon_py
from paimon_py import Catalog, CommitConflictError, SetOption
from paimon_py.metrics import Metrics, Sample, measure
from paimon_py.metrics.families import COMMIT_SECONDS, COMMITS, FAMILIES
from paimon_py.metrics.measures import measure_table
from paimon_py.metrics.samples import prometheus_text
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.storage.metered_store import MeteredStore
from paimon_py.storage.store import FileMissingError, page_lister

ROOT = Path(__file__).parents[3]


@pytest.fixture
def catalog(tmp_path):
    return new_catalog(tmp_path)


@pytest.fixture
def metrics(catalog):
    made = Metrics()
    catalog.register_observer(made)
    return made


def test_commits_are_counted_by_table_and_kind(catalog, metrics):
    table = keyed_table(catalog)
    table.compact(full=True)
    assert metrics.value("paimon_commits_total", table="d.keyed", commit_kind="APPEND") == 2
    assert metrics.value("paimon_commits_total", table="d.keyed") == 3
    assert metrics.value("paimon_rows_added_total", commit_kind="APPEND") == 3
    assert metrics.value("paimon_files_added_total", commit_kind="APPEND") == 3
    assert metrics.value("paimon_commit_attempts_total") == 3
    assert metrics.value("paimon_tag_changes_total", action="create") == 1
    assert metrics.value("paimon_compactions_total") >= 1
    times = next(one for one in metrics.samples() if one.family is COMMIT_SECONDS)
    assert times.count == 3 and times.buckets[-1] == (math.inf, 3)
    table.expire_snapshots(retain_min=1, retain_max=1)
    assert metrics.value("paimon_expired_total", what="snapshots") == 2


def test_conflicts_and_schemas_are_counted(catalog, metrics):
    table = keyed_table(catalog)
    compacted = table.run_compaction(table.compaction_tasks(full=True)[0])
    table.truncate()
    with pytest.raises(CommitConflictError):
        table.commit(compacted)
    table.alter(SetOption("x", "y"))
    table.rollback_to(1)
    assert metrics.value("paimon_commit_failures_total", outcome="conflict") == 1
    assert metrics.value("paimon_schema_changes_total") == metrics.value("paimon_rollbacks_total", action="rollback") == 1


def test_calls_to_the_store_are_counted_with_their_outcome(catalog, metrics):
    table = keyed_table(catalog)
    assert metrics.value("paimon_store_calls_total", operation="put_new", outcome="ok") >= 2
    assert metrics.value("paimon_store_bytes_total", operation="put_new") > 1000
    with pytest.raises(FileMissingError):
        table._root.store.get(table.location + "/nothing")
    assert metrics.value("paimon_store_calls_total", operation="get", outcome="missing") >= 1
    assert isinstance(table._root.store, MeteredStore)
    assert not isinstance(pickle.loads(pickle.dumps(table))._root.store, MeteredStore)


def test_a_store_is_the_store_itself_where_nobody_counts(tmp_path):
    catalog = new_catalog(tmp_path)
    catalog.register_observer(lambda event: None)
    assert not isinstance(keyed_table(catalog)._root.store, MeteredStore)


def test_a_meter_that_fails_breaks_no_call(tmp_path, caplog):
    class Broken(Metrics):
        def count_call(self, operation, seconds, size_bytes, outcome):
            raise RuntimeError("full")

    catalog = new_catalog(tmp_path)
    catalog.register_observer(Broken())
    keyed_table(catalog)
    assert [record.getMessage() for record in caplog.records if "Broken" in record.getMessage()] == [
        "Broken failed and receives no more calls: full"
    ]


def test_a_metered_store_passes_everything_on():
    store = MemoryStore()
    watched = env()
    metrics = Metrics()
    watched.observers.register(metrics)
    metered = MeteredStore(store, watched)
    metered.make_directory("memory://m/a")
    assert metered.put_new("memory://m/a/x", b"123") and not metered.put_new("memory://m/a/x", b"4")
    metered.put("memory://m/a/y", b"12345")
    with metered.open_write("memory://m/a/z") as sink:
        sink.write(b"z")
    with metered.open_read("memory://m/a/z") as source:
        assert source.read() == b"z"
    assert [one.name for one in metered.list("memory://m/a")] == ["x", "y", "z"]
    assert [one.name for one in page_lister(metered)("memory://m", "memory://m/a/y")] == ["y", "z"]
    assert metered.stat("memory://m/a/x").size_bytes == 3 and metered.get("memory://m/a/y") == b"12345"
    metered.delete("memory://m/a/x")
    metered.delete_tree("memory://m/a")
    assert metered.list("memory://m/a") == [] and metered.open_other("s3://x") is None
    assert metered == MeteredStore(store, watched) and hash(metered) == hash(MeteredStore(store, watched))
    assert metrics.value("paimon_store_bytes_total", operation="put") == 5
    assert metrics.value("paimon_store_calls_total", operation="put_new") == 2
    assert metrics.value("paimon_store_calls_total", operation="list") == 3


def test_a_table_is_measured(catalog):
    table = keyed_table(catalog, **{"write-only": "true"})
    for _ in range(4):
        table.write_arrow(ROWS)
    table.stream(consumer_id="reader", from_=3).poll().acknowledge()
    found = measure_table(table)
    assert (found.table, found.snapshot_id, found.snapshots, found.tags) == ("d.keyed", 6, 6, 1)
    assert found.file_count == 11 and found.levels[0].level == 0 and found.buckets == 2
    assert (found.level0_files_max, found.sorted_runs_max) == (6, 6)
    assert found.backlog_files == 11 and found.backlog_bytes == found.size_bytes
    assert [(one.name, one.snapshots) for one in found.consumers] == [("reader", 3)]
    table.compact(full=True)
    after = measure_table(table)
    assert (after.backlog_files, after.level0_files_max, after.sorted_runs_max) == (0, 0, 1)


def test_an_empty_table_is_measured(catalog):
    found = measure_table(catalog.create_table("d.empty", pa.schema([("a", pa.int64())])))
    assert (found.snapshot_id, found.snapshot_age_seconds, found.file_count, found.size_bytes) == (0, None, 0, 0)


def test_gauges_are_replaced_and_forgotten(catalog, metrics):
    table = keyed_table(catalog)
    table.create_tag("second")
    metrics.set_measures(measure_table(table))
    assert metrics.value("paimon_tags") == 2
    table.delete_tag("second")
    metrics.set_measures(measure_table(table))
    assert metrics.value("paimon_tags") == 1 and metrics.value("paimon_latest_snapshot_id") == 2
    metrics.forget("d.keyed")
    assert metrics.value("paimon_latest_snapshot_id") == 0 and metrics.value("paimon_commits_total") == 2


LINE = re.compile(r'[a-z_0-9]+(\{[a-z_]+="(\\.|[^"\\])*"(,[a-z_]+="(\\.|[^"\\])*")*\})? (-?[0-9.e+-]+|\+Inf)')


def test_the_text_is_what_prometheus_reads(catalog, metrics):
    metrics.set_measures(measure_table(keyed_table(catalog)))
    text = metrics.prometheus()
    lines = text.splitlines()
    assert text.endswith("\n") and all(line.startswith("# ") or LINE.fullmatch(line) for line in lines)
    types = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(types) == len(set(types)), "numbers of one name stand together"
    assert 'paimon_commits_total{table="d.keyed",commit_kind="APPEND"} 2' in lines
    assert 'paimon_commit_seconds_bucket{table="d.keyed",le="+Inf"} 2' in lines


def test_labels_are_quoted():
    text = prometheus_text([Sample(COMMITS, (("table", 'a"b\\c\nd'), ("commit_kind", "APPEND")), 2.5)])
    assert text.splitlines()[2] == 'paimon_commits_total{table="a\\"b\\\\c\\nd",commit_kind="APPEND"} 2.5'
    assert prometheus_text([]) == ""


def test_the_process_has_metrics_of_its_own(tmp_path):
    catalog = new_catalog(tmp_path)
    found = paimon_py.metrics.follow(catalog)
    table = keyed_table(catalog, "d.of_process")
    measure(table)
    assert found.value("paimon_commits_total", table="d.of_process") == 2
    assert 'paimon_snapshots{table="d.of_process"} 2' in paimon_py.metrics.prometheus()
    assert {one.name for one in paimon_py.metrics.samples()} >= {"paimon_commits_total", "paimon_snapshots"}
    assert set(paimon_py.metrics.__all__) <= set(dir(paimon_py.metrics))


def test_several_threads_count_each_commit_once(catalog, metrics):
    table = catalog.create_table("d.plain", pa.schema([("a", pa.int64())]))
    threads = [threading.Thread(target=lambda: table.write_arrow(pa.table({"a": [1]}))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert metrics.value("paimon_commits_total", table="d.plain") == 6


class StubMeter:
    def __init__(self):
        self.made = {}

    def create_observable_counter(self, name, callbacks, unit, description):
        self.made[name] = "counter", callbacks[0], unit

    def create_observable_gauge(self, name, callbacks, unit, description):
        self.made[name] = "gauge", callbacks[0], unit


def test_opentelemetry_asks_for_the_same_numbers(catalog, metrics):
    pytest.importorskip("opentelemetry.metrics")
    meter = StubMeter()
    metrics.export_to(meter)
    metrics.set_measures(measure_table(keyed_table(catalog)))
    kind, asked, _ = meter.made["paimon_commits_total"]
    assert kind == "counter"
    assert [(one.value, dict(one.attributes)) for one in asked(None)] == [(2, {"table": "d.keyed", "commit_kind": "APPEND"})]
    assert meter.made["paimon_live_bytes"][0] == "gauge" and meter.made["paimon_live_bytes"][2] == "By"
    assert next(iter(meter.made["paimon_commit_seconds_count"][1](None))).value == 2
    histograms = sum(family.kind == "histogram" for family in FAMILIES)
    assert len(meter.made) == len(FAMILIES) + histograms


def test_opentelemetry_that_is_not_installed_is_named(monkeypatch):
    from paimon_py.metrics import telemetry

    monkeypatch.setattr(telemetry, "Observation", None)
    with pytest.raises(paimon_py.UsageError, match=r"paimon-py\[opentelemetry\]"):
        Metrics().export_to(StubMeter())


def test_the_board_asks_for_numbers_that_exist():
    board = json.loads((ROOT / "docs" / "grafana.json").read_text())
    known = {family.name for family in FAMILIES}
    known |= {f"{family.name}_bucket" for family in FAMILIES if family.kind == "histogram"}
    asked = set()
    for panel in board["panels"]:
        for target in panel["targets"]:
            asked |= set(re.findall(r"paimon_[a-z0-9_]+", target["expr"]))
    assert asked <= known and len(asked) > 15
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def test_the_page_lists_every_number():
    page = (ROOT / "docs" / "watch.md").read_text()
    assert [family.name for family in FAMILIES if f"`{family.name}`" not in page] == []


def test_a_catalog_that_is_opened_later_can_be_followed(tmp_path):
    catalog = Catalog.open(tmp_path, QUICK)
    metrics = Metrics()
    catalog.register_observer(metrics)
    catalog.create_database("d")
    keyed_table(catalog)
    assert metrics.value("paimon_commits_total") == 2
