"""Partitions that are marked as done: which file says so, and what is refused."""

from __future__ import annotations

import json
from datetime import date

import pyarrow as pa
import pytest
from unit.commit.support import Clock

from paimon_py import (
    Catalog,
    CorruptionError,
    PaimonWarning,
    StorageError,
    TableNotFoundError,
    UnsupportedError,
    UsageError,
)
from paimon_py.env import Env, SerialPool
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.fault_store import FaultStore

NOW = 1_700_000_000_000
SCHEMA = pa.schema([pa.field("d", pa.date32()), pa.field("h", pa.string()), ("k", pa.int64())])


def made(**options):
    store, clock = MemoryStore(), Clock(NOW)
    catalog = Catalog(store, "/w", env=Env(clock, None, SerialPool()))
    catalog.create_database("d")
    return store, clock, catalog.create_table("d.t", SCHEMA, partition_by=["d", "h"], options=options)


@pytest.mark.parametrize(("legacy", "day"), [("true", "19782"), ("false", "2024-02-29")])
def test_a_file_says_when_a_partition_was_marked_first_and_last(legacy, day):
    store, clock, table = made(**{"partition.legacy-name": legacy})
    partitions = [{"d": date(2024, 2, 29), "h": "a/b"}, {"h": None, "d": date(2024, 2, 29)}, {"d": date(2024, 2, 29)}]
    paths = table.mark_partitions_done(partitions)
    top = f"/w/d.db/t/d={day}"
    assert paths == [f"{top}/h=a%2Fb/_SUCCESS", f"{top}/h=__DEFAULT_PARTITION__/_SUCCESS", f"{top}/_SUCCESS"]
    text = f'{{\n  "creationTime" : {NOW},\n  "modificationTime" : {NOW}\n}}'
    assert {store.get(path).decode() for path in paths} == {text}
    clock.sleep(5)
    table.mark_partitions_done(partitions[:1])
    assert json.loads(store.get(paths[0])) == {"creationTime": NOW, "modificationTime": NOW + 5000}
    assert store.get(paths[1]).decode() == text


def test_a_marked_partition_is_written_and_dropped_as_before():
    _, _, table = made()
    one = {"d": date(2024, 2, 29), "h": "a"}
    table.mark_partitions_done([one])
    table.write_arrow(pa.table({**{name: [value] for name, value in one.items()}, "k": [1]}, SCHEMA))
    assert [part.partition for part in table.partitions()] == [one]
    table.drop_partitions([one])
    assert table.partitions() == []


@pytest.mark.parametrize("action", ["done-partition", "mark-event", "http-report", "custom", "success-file,HTTP-report"])
def test_what_needs_others_is_refused_by_name(action):
    store, _, table = made(**{"partition.mark-done-action": action})
    with pytest.raises(UnsupportedError, match=action.split(",")[-1].lower()):
        table.mark_partitions_done([{"d": date(2024, 2, 29)}])
    assert [status.name for status in store.list("/w/d.db/t")] == ["schema"]


@pytest.mark.parametrize(
    "partitions", [[], {}, "d", [{}], [{"k": 1}], [{"h": "x"}], [{"d": "no day"}], [{"d": 1.5, "h": "x"}], None]
)
def test_nonsense_is_refused(partitions):
    store, _, table = made()
    with pytest.raises(UsageError):
        table.mark_partitions_done(partitions)
    assert [status.name for status in store.list("/w/d.db/t")] == ["schema"]


def test_an_unknown_action_is_no_option():
    _, _, table = made(**{"partition.mark-done-action": "success_file"})
    with pytest.raises(UsageError, match="success-file, done-partition"):
        table.mark_partitions_done([{"d": date(2024, 2, 29)}])


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"creationTime": "x"}', b"\xff"])
def test_another_file_of_that_name_is_left_alone(data):
    store, _, table = made()
    (path,) = table.mark_partitions_done([{"d": date(2024, 2, 29), "h": "a"}])
    store.put(path, data)
    with pytest.raises(CorruptionError, match="_SUCCESS"):
        table.mark_partitions_done([{"d": date(2024, 2, 29), "h": "a"}])
    assert store.get(path) == data


@pytest.mark.parametrize(("call", "mode"), [(1, "before"), (2, "before"), (2, "after"), (2, "lost")])
def test_a_call_that_failed_may_be_repeated(call, mode):
    store, _, table = made()
    faulty = FaultStore(store, call, mode)
    table._root.store = faulty
    with pytest.raises(StorageError):
        table.mark_partitions_done([{"d": date(2024, 2, 29), "h": "a"}])
    (path,) = table.mark_partitions_done([{"d": date(2024, 2, 29), "h": "a"}])
    assert json.loads(store.get(path))["creationTime"] == NOW


def test_nothing_is_written_where_the_table_was_dropped(tmp_path):
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("d")
    table = catalog.create_table("d.t", SCHEMA, partition_by=["d", "h"])
    table.write_arrow(pa.table({"d": [date(2024, 2, 29)], "h": ["a"], "k": [1]}, SCHEMA))
    catalog.drop_table("d.t")
    for verb in (lambda: table.mark_partitions_done([{"d": date(2024, 2, 29)}]), table.analyze, table.partitions):
        with pytest.raises(TableNotFoundError):
            verb()
    assert not (tmp_path / "d.db" / "t").exists()


def test_batches_mark_what_they_wrote_where_the_table_asks_for_it():
    store, clock, table = made(**{"partition.end-input-to-done": "true", "bucket": "-1"})
    row = lambda hour: pa.table({"d": [date(2024, 2, 29)], "h": [hour], "k": [1]}, SCHEMA)  # noqa: E731
    place = lambda hour: f"/w/d.db/t/d=19782/h={hour}/_SUCCESS"  # noqa: E731
    table.write_arrow(row("a"))
    assert json.loads(store.get(place("a"))) == {"creationTime": NOW, "modificationTime": NOW}
    clock.sleep(1)
    table.write_arrow(row("b"))
    with table.writer() as writer:
        writer.write_arrow(row("c"))
        table.commit(writer.changes(), user="stream", identifier=1)
    table.compact(full=True)
    table.drop_partitions([{"h": "a"}])
    assert json.loads(store.get(place("a"))) == {"creationTime": NOW, "modificationTime": NOW}
    assert json.loads(store.get(place("b")))["creationTime"] == NOW + 1000
    assert [status.name for status in store.list("/w/d.db/t/d=19782/h=c")] == ["bucket-0"]
    table.delete("h = 'b'")
    table.write_arrow(row("c"), overwrite={"h": "c"})
    assert json.loads(store.get(place("c")))["creationTime"] == NOW + 1000


def test_a_batch_is_committed_though_nothing_can_be_marked():
    _, _, table = made(**{"partition.end-input-to-done": "true", "partition.mark-done-action": "mark-event", "bucket": "-1"})
    with pytest.warns(PaimonWarning, match="snapshot 1 was committed, but partitions were not marked as done: .*mark-event"):
        table.write_arrow(pa.table({"d": [date(2024, 2, 29)], "h": ["a"], "k": [1]}, SCHEMA))
    assert table.scan().count() == 1
