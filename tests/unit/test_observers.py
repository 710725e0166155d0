"""Observers: which events come, and that an observer that fails changes nothing but a warning and a text."""

from __future__ import annotations

import logging
import pickle
import threading

import msgspec
import pyarrow as pa
import pytest
from unit.public import QUICK, ROWS, env, keyed_table, new_catalog

import paimon_py.types as types
from paimon_py import (
    AddColumn,
    Catalog,
    CommitConflictError,
    PaimonWarning,
    RemoveOption,
    SetOption,
    Table,
    UnsupportedError,
    UsageError,
)
from paimon_py.observers import Observers
from paimon_py.spec.events import TableEvent


@pytest.fixture
def catalog(tmp_path):
    return new_catalog(tmp_path)


@pytest.fixture
def seen(catalog):
    events: list[TableEvent] = []
    catalog.register_observer(events.append)
    return events


def kinds(events):
    return [event.kind for event in events]


def test_a_commit_says_what_it_did(catalog, seen):
    table = keyed_table(catalog)
    created, first, second, tag = seen
    assert (created.kind, created.action, created.name) == ("catalog", "create", "d.keyed")
    assert isinstance(first, types.CommitEvent) and isinstance(tag, types.TagEvent)
    assert (first.snapshot_id, first.commit_kind, first.added_files, first.added_rows) == (1, "APPEND", 2, 2)
    assert (first.watermark, first.attempts, first.path, first.table) == (5, 1, table.location, "d.keyed")
    assert first.added_bytes == sum(file["file_size_in_bytes"] for file in table.system("files").scan(snapshot_id=1).to_arrow().to_pylist())
    assert (second.added_rows, second.total_rows, second.user) == (1, 3, table.snapshot(2).commit_user)
    assert (tag.action, tag.name, tag.snapshot_id) == ("create", "first", 1)


def test_verbs_that_are_no_commits_are_told(catalog, seen):
    table = keyed_table(catalog)
    table.rename_tag("first", "one")
    table.replace_tag("one", 2)
    table.delete_tag("one")
    table.alter(AddColumn("x", "INT"), SetOption("strange.password", "hidden"))
    table.create_branch("b")
    table.delete_branch("b")
    del seen[:4]
    said = [(event.kind, getattr(event, "action", None), getattr(event, "old_name", None)) for event in seen]
    assert said == [
        ("tag", "rename", "first"), ("tag", "replace", None), ("tag", "delete", None), ("schema", None, None),
        ("branch", "create", None), ("branch", "delete", None),
    ]  # fmt: skip
    assert seen[3].changes[0].startswith("AddColumn(column='x'") and "hidden" not in str(seen[3].changes)


def test_the_event_of_a_new_schema_has_the_values_of_options_that_are_no_secrets(catalog, seen):
    table = keyed_table(catalog)
    del seen[:]
    table.alter(SetOption("num-sorted-run.stop-trigger", "77"), SetOption("fs.s3a.secret.key", "sesame"), RemoveOption("file.format"))
    stop, secret, removed = seen[0].changes
    assert stop == repr(SetOption("num-sorted-run.stop-trigger", "77")) and removed == repr(RemoveOption("file.format"))
    assert secret.startswith("SetOption('fs.s3a.secret.key', ") and "sesame" not in secret


def test_rollback_expiry_compaction_and_names_are_told(catalog, seen):
    table = keyed_table(catalog)
    for _ in range(3):
        table.write_arrow(ROWS)
    del seen[:]
    table.rollback_to(4)
    assert (seen[0].kind, seen[0].snapshot_id, seen[0].deleted_ids[0]) == ("rollback", 4, 5)
    table.compact(full=True)
    compactions = [event for event in seen if event.kind == "compaction"]
    assert {event.output_level for event in compactions} == {5} and seen[-1].commit_kind == "COMPACT"
    done = table.expire_snapshots(retain_min=1, retain_max=1)
    expiry = seen[-1]
    assert (expiry.kind, expiry.what, expiry.count) == ("expiry", "snapshots", len(done.snapshot_ids))
    assert (expiry.first_id, expiry.last_id) == (done.snapshot_ids[0], done.snapshot_ids[-1])
    catalog.rename_table("d.keyed", "d.other")
    catalog.drop_table("d.other")
    assert [(event.action, event.name) for event in seen[-2:]] == [("rename", "d.other"), ("drop", "d.other")]


def test_every_event_is_json_with_its_kind(catalog, seen):
    keyed_table(catalog)
    for event in seen:
        found = msgspec.json.decode(msgspec.json.encode(event))
        assert found["kind"] == event.kind and found["path"] == event.path


def test_a_failing_observer_is_a_warning_and_a_value_and_the_commit_stands(catalog, caplog):
    table = keyed_table(catalog)
    after: list[TableEvent] = []

    def broken(event):
        raise RuntimeError("the pager is down")

    catalog.register_observer(broken)
    catalog.register_observer(after.append)
    with pytest.warns(PaimonWarning, match="broken failed on the event 'commit': RuntimeError: the pager is down") as caught:
        done = table.write_arrow(ROWS)
    assert (done.snapshot_id, len(done.warnings), len(caught)) == (3, 1, 1)
    assert caught[0].filename == __file__ and table.snapshot().id == 3
    assert kinds(after) == ["commit"], "the ones behind are called all the same"
    with pytest.warns(PaimonWarning, match="pager"):
        expired = table.expire_snapshots(retain_min=1, retain_max=1)
    assert expired.warnings and expired.snapshot_ids == (1, 2)
    with pytest.warns(PaimonWarning, match="pager"):
        assert table.rollback_to(3).warnings
    assert catalog.remove_observer(broken) and not catalog.remove_observer(broken)
    assert table.write_arrow(ROWS).warnings == ()


def test_where_warnings_are_errors_the_commit_stands(catalog):
    table = keyed_table(catalog)
    catalog.register_observer(lambda event: 1 / 0)
    with pytest.raises(PaimonWarning, match="ZeroDivisionError"):
        table.write_arrow(ROWS)
    assert table.snapshot().id == 3 and table.scan().count() == 2


def test_a_conflict_is_told_and_raised(catalog, seen, caplog):
    table = keyed_table(catalog)
    task = table.compaction_tasks(full=True)[0]
    compacted = table.run_compaction(task)
    table.truncate()
    del seen[:]
    catalog.register_observer(lambda event: 1 / 0)
    with caplog.at_level(logging.WARNING, "paimon_py"), pytest.raises(CommitConflictError):
        table.commit(compacted)
    assert (seen[-1].kind, seen[-1].outcome, seen[-1].attempts) == ("conflict", "conflict", 1)
    assert any("ZeroDivisionError" in record.getMessage() for record in caplog.records)


def test_lost_races_are_told_with_the_wait(tmp_path, seen, catalog):
    table, other = keyed_table(catalog), Catalog.open(tmp_path, QUICK, env=env()).table("d.keyed")
    wrote = []

    class Rival:
        """Commits once, just before the snapshot of the other one is published."""

        def __init__(self, inner):
            self.inner = inner

        def __getattr__(self, name):
            return getattr(self.inner, name)

        def put_new(self, path, data, *, within=None):
            if not wrote and "/snapshot-3" in path:
                wrote.append(other.write_arrow(ROWS).snapshot_id)
            return self.inner.put_new(path, data, within=within)

    table._root.store = Rival(table._root.store)
    table._root.snapshots._store = table._root.store
    table.write_arrow(ROWS)
    race = next(event for event in seen if event.kind == "race")
    assert wrote == [3] and race.attempt == 1 and race.wait_seconds >= 0 and race.reason
    assert (seen[-1].snapshot_id, seen[-1].attempts) == (4, 2)


def test_tables_without_a_catalog_are_followed_by_their_environment(tmp_path, catalog):
    location, events = keyed_table(catalog).location, []
    watched = env()
    watched.observers.register(events.append)
    Table.open(location, QUICK, env=watched).write_arrow(ROWS)
    assert kinds(events) == ["commit"]
    assert kinds_of_env(location) == ["commit"]


def kinds_of_env(location):
    events = []
    Table.open(location, QUICK, env=types.Env(pool=types.SerialPool(), observers=[events.append])).write_arrow(ROWS)
    return kinds(events)


def test_pickled_tables_leave_observers_behind(catalog, seen):
    table = keyed_table(catalog)
    del seen[:]
    pickle.loads(pickle.dumps(table)).write_arrow(ROWS)
    pickle.loads(pickle.dumps(catalog)).table("d.keyed").write_arrow(ROWS)
    assert seen == []


def test_nothing_is_made_for_nobody(catalog, monkeypatch):
    from paimon_py.commit import attempts

    monkeypatch.setattr(attempts, "commit_event", None)
    keyed_table(catalog)


def test_what_cannot_be_called_is_refused_and_a_function_is_called_once(catalog):
    with pytest.raises(UsageError, match="an observer is a function of one event"):
        catalog.register_observer("print")
    observers, events = Observers(), []
    observers.register(events.append)
    observers.register(events.append)
    observers.report(types.OrphanEvent(path="/w/d.db/t", time_millis=1, deleted_files=1, size_bytes=2))
    assert len(events) == 1 and events[0].table == "d.t"
    assert types.OrphanEvent(path="/w/t", time_millis=1, deleted_files=1, size_bytes=2).table == "t"


def test_commits_of_several_threads_are_each_told_once(catalog, seen):
    table = catalog.create_table("d.plain", pa.schema([("a", pa.int64())]))
    threads = [threading.Thread(target=lambda: table.write_arrow(pa.table({"a": [1]}))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    commits = [event.snapshot_id for event in seen if event.kind == "commit"]
    assert sorted(commits) == [1, 2, 3, 4, 5, 6]


def test_log_records_have_fields(catalog, caplog):
    with caplog.at_level(logging.INFO, "paimon_py.commits"):
        table = keyed_table(catalog)
    record = caplog.records[0]
    assert (record.paimon_path, record.paimon_branch, record.paimon_snapshot_id) == (table.location, "main", 1)
    assert (record.paimon_commit_kind, record.paimon_added_files, record.paimon_attempt) == ("APPEND", 2, 1)


def test_callbacks_of_java_classes_are_refused_by_name(catalog):
    table = keyed_table(catalog)
    table.alter(SetOption("tag.callbacks", "org.example.Notify"))
    for verb in (lambda: table.create_tag("x"), lambda: table.delete_tag("first"), lambda: table.rename_tag("first", "y"),
                 lambda: table.replace_tag("first")):  # fmt: skip
        with pytest.raises(UnsupportedError, match=r"tag\.callbacks.*register_observer"):
            verb()
    assert [tag.name for tag in table.tags()] == ["first"]
    table.alter(SetOption("tag.callbacks", ""), SetOption("commit.callbacks", "org.example.Notify"))
    with pytest.raises(UnsupportedError, match=r"commit\.callbacks.*register_observer"):
        table.write_arrow(ROWS)
    assert table.scan().count() == 2
