from __future__ import annotations

import pickle

import pytest

from paimon_py.codec.json import schema_to_json
from paimon_py.env import SystemClock
from paimon_py.errors import (
    CommitRetriesExhaustedError,
    CorruptionError,
    StorageError,
    StorageUnknownError,
    TableNotFoundError,
    UnsupportedError,
)
from paimon_py.metadata.schemas import ALTER_ATTEMPTS, Schemas, alter
from paimon_py.spec.new_schema import Schema, TableSpec, new_table_schema
from paimon_py.spec.schema_changes import AddColumn, SetOption
from paimon_py.storage.memory_store import MemoryStore

TABLE = "memory://w/db.db/t"


class Clock(SystemClock):
    def __init__(self):
        self.slept = []

    def millis(self):
        return 1_000

    def sleep(self, seconds):
        self.slept.append(seconds)


class Counting(MemoryStore):
    gets = 0

    def get(self, path):
        self.gets += 1
        return super().get(path)


def first():
    return new_table_schema(Schema([("a", "INT")]), TableSpec(), time_millis=1)


def opened(store=None):
    schemas = Schemas(store or MemoryStore(), TABLE)
    assert schemas.add(first())
    return schemas


def no_data():
    return False


def test_no_schema_means_no_table():
    with pytest.raises(TableNotFoundError):
        Schemas(MemoryStore(), TABLE).latest()


def test_versions_are_listed_and_read_and_names_that_are_no_schema_are_ignored():
    store = MemoryStore()
    schemas = opened(store)
    store.put(TABLE + "/schema/schema-x", b"")
    store.put(TABLE + "/schema/.schema-1.tmp", b"")
    assert schemas.ids() == [0]
    assert schemas.latest() == schemas.get(0) == first()
    with pytest.raises(CorruptionError, match="schema 7"):
        schemas.get(7)


def test_a_taken_id_is_not_overwritten():
    schemas = opened()
    assert not schemas.add(first())


def test_a_version_is_read_once():
    store = Counting()
    schemas = opened(store)
    store.gets = 0
    assert schemas.latest() is schemas.latest()
    assert store.gets == 1


def test_a_file_with_the_wrong_id_is_corrupt():
    store = MemoryStore()
    store.put(TABLE + "/schema/schema-3", schema_to_json(first()))
    with pytest.raises(CorruptionError, match="schema-3"):
        Schemas(store, TABLE).latest()


def test_pickles_find_the_table_again():
    schemas = opened()
    assert pickle.loads(pickle.dumps(schemas)).latest() == first()


def test_alter_publishes_the_next_version():
    schemas = opened()
    changed = alter(schemas, [AddColumn("b", "INT")], has_snapshots=no_data, clock=Clock())
    assert (changed.id, changed.time_millis) == (1, 1_000)
    assert schemas.latest() == changed


def test_alter_applies_its_changes_again_to_a_version_of_another_writer():
    class Raced(MemoryStore):
        races = 2

        def put_new(self, path, data, *, within=None):
            if path.endswith("schema-1") and self.races:
                self.races = 0
                alter(Schemas(self, TABLE), [AddColumn("other", "INT")], has_snapshots=no_data, clock=Clock())
            return super().put_new(path, data, within=within)

    schemas, clock = opened(Raced()), Clock()
    changed = alter(schemas, [AddColumn("mine", "INT")], has_snapshots=no_data, clock=clock)
    assert (changed.id, changed.names) == (2, ("a", "other", "mine"))
    assert len(clock.slept) == 1


def test_alter_gives_up_after_all_attempts():
    class Lost(MemoryStore):
        def put_new(self, path, data, *, within=None):
            return path.endswith("schema-0") and super().put_new(path, data, within=within)

    clock = Clock()
    with pytest.raises(CommitRetriesExhaustedError):
        alter(opened(Lost()), [AddColumn("b", "INT")], has_snapshots=no_data, clock=clock)
    assert len(clock.slept) == ALTER_ATTEMPTS - 1


@pytest.mark.parametrize(("happened", "result"), [("ours", True), ("theirs", False)])
def test_after_a_lost_answer_the_file_is_read_back(happened, result):
    class Lossy(MemoryStore):
        def put_new(self, path, data, *, within=None):
            super().put_new(path, data if happened == "ours" else b"{}", within=within)
            raise StorageUnknownError("lost", path=path, operation="put_new")

    assert Schemas(Lossy(), TABLE).add(first()) is result


def test_a_lost_answer_without_a_file_stays_unknown():
    class Lossy(MemoryStore):
        def put_new(self, path, data, *, within=None):
            raise StorageUnknownError("lost", path=path, operation="put_new")

    with pytest.raises(StorageUnknownError):
        Schemas(Lossy(), TABLE).add(first())


def test_a_version_that_cannot_be_read_back_is_unknown():
    class Blind(MemoryStore):
        def get(self, path):
            raise StorageError("no answer", path=path, operation="get")

    with pytest.raises(StorageUnknownError, match="could not be read back"):
        Schemas(Blind(), TABLE).add(first())


def test_changes_are_applied_again_after_a_java_writer_replaced_the_version():
    class Overwritten(MemoryStore):
        races = 1

        def put_new(self, path, data, *, within=None):
            created = super().put_new(path, data, within=within)
            if path.endswith("schema-1") and self.races:
                self.races = 0
                theirs = MemoryStore()
                alter(opened(theirs), [AddColumn("theirs", "INT")], has_snapshots=no_data, clock=Clock())
                self.put(path, theirs.get(path))
            return created

    changed = alter(opened(Overwritten()), [AddColumn("mine", "INT")], has_snapshots=no_data, clock=Clock())
    assert (changed.id, changed.names) == (2, ("a", "theirs", "mine"))


class Interrupted(MemoryStore):
    """Lets something happen to the table right before a file is made with `put_new`."""

    def __init__(self, name, action):
        super().__init__()
        self.name, self.action = name, action

    def put_new(self, path, data, *, within=None):
        if path.endswith(self.name):
            self.action(self)
        return super().put_new(path, data, within=within)


def test_alter_does_not_bring_a_renamed_table_back():
    store = Interrupted("schema-1", lambda store: store.rename_directory(TABLE, "/elsewhere"))
    with pytest.raises(TableNotFoundError, match="was renamed, dropped or rolled back"):
        alter(opened(store), [AddColumn("b", "INT")], has_snapshots=no_data, clock=Clock())
    assert store.stat(TABLE) is None
    assert Schemas(store, "/elsewhere").ids() == [0]


def test_alter_deletes_its_version_if_the_previous_one_is_gone():
    store = Interrupted("schema-1", lambda store: store.delete(TABLE + "/schema/schema-0"))
    with pytest.raises(TableNotFoundError, match="was renamed, dropped or rolled back"):
        alter(opened(store), [AddColumn("b", "INT")], has_snapshots=no_data, clock=Clock())
    assert Schemas(store, TABLE).ids() == []


def test_alter_refuses_features_whose_rules_are_not_known():
    schemas = opened()
    with pytest.raises(UnsupportedError, match="query-auth"):
        alter(schemas, [SetOption("query-auth.enabled", "true")], has_snapshots=no_data, clock=Clock())
    assert schemas.ids() == [0]


def test_a_version_that_a_fast_forward_deletes_while_the_latest_is_read_is_passed_over():
    class Deleting(MemoryStore):
        def get(self, path):
            if path.endswith("schema-1"):
                self.delete(path)
            return super().get(path)

    store = Deleting()
    opened(store)
    store.put(TABLE + "/schema/schema-1", b"")
    assert Schemas(store, TABLE).latest() == first()
