"""Tags that get another name or name another snapshot."""

from __future__ import annotations

from datetime import timedelta

import pytest

from paimon_py import (
    AlreadyExistsError,
    Catalog,
    Schema,
    SnapshotExpiredError,
    SnapshotNotFoundError,
    TableNotFoundError,
    TagNotFoundError,
    UsageError,
)
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.counting_store import CountingStore
from paimon_py.testing.fault_store import for_each_fault


@pytest.fixture
def table(tmp_path):
    """Snapshots 1 to 5; the tags `first` of 1, which expires when the test says so, and `third`."""
    catalog = Catalog.open(tmp_path)
    catalog.create_database("d")
    options = {"bucket": "1", "write-only": "true"}
    table = catalog.create_table("d.t", Schema({"k": "INT NOT NULL"}), primary_key=["k"], options=options)
    for number in range(1, 6):
        table.write_arrow([{"k": number}])
    table.compact(full=True)
    table.create_tag("first", 1)
    table.create_tag("third", 3, retain=timedelta(days=3))
    return table


def rows(table, tag):
    return sorted(table.scan(tag=tag).to_arrow()["k"].to_pylist())


def names(table):
    return [tag.name for tag in table.tags()]


def test_a_renamed_tag_is_what_it_was(table):
    before = table.system("tags").scan(where="tag_name = 'third'").to_arrow().drop_columns(["tag_name"])
    assert table.rename_tag("third", "good").name == "good"
    assert names(table) == ["first", "good"] and rows(table, "good") == [1, 2, 3]
    assert table.system("tags").scan(where="tag_name = 'good'").to_arrow().drop_columns(["tag_name"]) == before


def test_a_replaced_tag_names_the_latest_or_another_snapshot(table):
    assert table.replace_tag("first").snapshot_id == 6 and rows(table, "first") == [1, 2, 3, 4, 5]
    assert table.replace_tag("first", 4).snapshot_id == 4 and rows(table, "first") == [1, 2, 3, 4]
    assert table.replace_tag("third", 2, retain=timedelta(days=1)).snapshot_id == 2 and rows(table, "third") == [1, 2]
    assert table.expire_tags() == [] and names(table) == ["first", "third"]


def test_files_that_only_the_old_tag_kept_go(table):
    table.expire_snapshots(retain_min=1, retain_max=1)
    assert rows(table, "first") == [1] and rows(table, "third") == [1, 2, 3]
    table.replace_tag("third", 1)
    assert rows(table, "third") == [1]
    table.replace_tag("third")
    table.replace_tag("first")
    assert table.remove_orphans(older_than=timedelta(milliseconds=1), dry_run=False).files == 0
    assert rows(table, "first") == rows(table, "third") == [1, 2, 3, 4, 5]


def test_a_tag_that_alone_keeps_its_snapshot_may_be_replaced_by_itself(table):
    table.expire_snapshots(retain_min=1, retain_max=1)
    table.replace_tag("first", 1, retain=timedelta(days=1))
    assert rows(table, "first") == [1]


def test_what_cannot_be_is_refused_and_changes_nothing(table):
    with pytest.raises(AlreadyExistsError, match="'third'"):
        table.rename_tag("first", "third")
    with pytest.raises(AlreadyExistsError):
        table.rename_tag("first", "first")
    for verb in (lambda: table.rename_tag("none", "x"), lambda: table.replace_tag("none")):
        with pytest.raises(TagNotFoundError, match="'none'"):
            verb()
    with pytest.raises(SnapshotNotFoundError):
        table.replace_tag("first", 99)
    for hostile in ("", "a/b", None):
        with pytest.raises(UsageError):
            table.rename_tag("first", hostile)
    with pytest.raises(UsageError, match="retain"):
        table.replace_tag("first", retain=timedelta(0))
    assert names(table) == ["first", "third"] and rows(table, "first") == [1]


def lived():
    store = MemoryStore()
    catalog = Catalog(store, "/w")
    catalog.create_database("d")
    table = catalog.create_table("d.t", Schema({"k": "INT NOT NULL"}), primary_key=["k"], options={"bucket": "1", "write-only": "true"})
    for number in range(1, 4):
        table.write_arrow([{"k": number}])
    table.create_tag("a", 1)
    table.compact(full=True)
    table.expire_snapshots(retain_min=1, retain_max=1)
    return store


def opened(store):
    return Catalog(store, "/w").table("d.t")


class RenamingBeforeDeletes:
    """A store on which another process renames the tag `a` right before it is deleted."""

    def __init__(self, store):
        self.store = store

    def __getattr__(self, verb):
        return getattr(self.store, verb)

    def delete(self, path):
        if path.endswith("/tag/tag-a") and names(opened(self.store)) == ["a"]:
            opened(self.store).rename_tag("a", "b")
        self.store.delete(path)


def test_a_tag_that_is_renamed_while_it_is_deleted_keeps_its_files():
    store = lived()
    opened(RenamingBeforeDeletes(store)).delete_tag("a")
    assert names(opened(store)) == ["b"] and rows(opened(store), "b") == [1]


class ActingAfterPuts:
    """A store on which another process acts once, right after the tag `a` is written."""

    def __init__(self, store, act):
        self.store = store
        self.act = act

    def __getattr__(self, verb):
        return getattr(self.store, verb)

    def put(self, path, data, **more):
        self.store.put(path, data, **more)
        act, self.act = self.act, None
        if path.endswith("/tag/tag-a") and act is not None:
            act()


def test_a_tag_names_its_old_snapshot_again_if_the_new_one_expires_meanwhile():
    store = lived()
    opened(store).write_arrow([{"k": 9}])
    target = opened(store).snapshot().id
    opened(store).write_arrow([{"k": 10}])

    with pytest.raises(SnapshotExpiredError, match="expired while the tag 'a' was made to name it"):
        opened(ActingAfterPuts(store, lambda: store.delete(f"/w/d.db/t/snapshot/snapshot-{target}"))).replace_tag("a", target)
    assert names(opened(store)) == ["a"] and rows(opened(store), "a") == [1]


def test_a_tag_of_a_table_that_another_one_replaced_meanwhile_goes():
    store = lived()
    opened(store).write_arrow([{"k": 9}])

    def replace():
        catalog = Catalog(store, "/w")
        catalog.drop_table("d.t")
        catalog.create_table("d.t", Schema({"k": "INT NOT NULL"}), primary_key=["k"], options={"bucket": "1"})
        store.put("/w/d.db/t/tag/tag-a", left[0])

    left = []

    class Keeping(ActingAfterPuts):
        def put(self, path, data, **more):
            left.append(data)
            super().put(path, data, **more)

    with pytest.raises(TableNotFoundError):
        opened(Keeping(store, replace)).replace_tag("a")
    assert names(opened(store)) == []


VERBS = {"rename": lambda table: table.rename_tag("a", "b"), "replace": lambda table: table.replace_tag("a")}


@pytest.mark.parametrize("verb", VERBS)
def test_wherever_the_store_fails_the_call_can_be_repeated(verb):
    """Before, in between and afterwards every tag can be read."""
    original = lived()

    def check(store, outcome):
        seen = {tag.name: rows(opened(store), tag.name) for tag in opened(store).tags()}
        assert seen and all(found in ([1], [1, 2, 3]) for found in seen.values()), (seen, outcome)
        try:
            VERBS[verb](opened(store))
        except TagNotFoundError:
            assert verb == "rename"
        assert {tag.name: rows(opened(store), tag.name) for tag in opened(store).tags()} == (
            {"b": [1]} if verb == "rename" else {"a": [1, 2, 3]}
        )

    assert for_each_fault(original.copy, lambda store: VERBS[verb](opened(store)), check) > 5


def test_other_tags_are_read_only_if_a_deleted_one_named_an_expired_snapshot():
    counting = CountingStore(MemoryStore())
    catalog = Catalog(counting, "/w")
    catalog.create_database("d")
    table = catalog.create_table("d.t", Schema({"k": "INT"}))
    for number in range(3):
        table.write_arrow([{"k": number}])
    for number in range(1, 4):
        table.create_tag(f"of{number}", number)
        table.create_tag(f"like{number}", number)
    table.expire_snapshots(retain_max=1, retain_min=1)

    def reads_others(name):
        counting.reset()
        table.delete_tag(name)
        return any(verb == "get" and path.endswith("tag-like2") for verb, path in counting.paths)

    assert not reads_others("of3") and reads_others("of1")
    assert names(table) == ["like1", "like2", "like3", "of2"]
    assert rows(table, "like1") == [0] and rows(table, "like3") == [0, 1, 2]
