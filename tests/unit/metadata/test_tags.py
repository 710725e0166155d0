"""Tags: named copies of snapshots."""

from datetime import datetime, timedelta

import pytest

from paimon_py.errors import AlreadyExistsError, TagNotFoundError, UsageError
from paimon_py.metadata.tags import Tags
from paimon_py.spec.snapshot import CommitKind, Snapshot
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.storage.store import FileMissingError

ROOT = "/w/t"
SNAPSHOT = Snapshot(
    id=3,
    schema_id=0,
    base_manifest_list="b",
    delta_manifest_list="d",
    commit_user="u",
    commit_identifier=1,
    commit_kind=CommitKind.APPEND,
    time_millis=5,
)


def opened(store: MemoryStore | None = None) -> Tags:
    store = store or MemoryStore()
    store.make_directory(ROOT)
    return Tags(store, ROOT)


def test_created_tag_is_found_and_listed_by_name():
    tags = opened()
    for name in ("z", "2024-01-01 10:00", "ä"):
        assert tags.create(name, SNAPSHOT).name == name
    assert [tag.name for tag in tags.list()] == ["2024-01-01 10:00", "z", "ä"]
    assert tags.get("z").snapshot == SNAPSHOT
    assert tags.get("z").create_time is None


def test_tag_with_retention_keeps_its_time():
    tags = opened()
    now = datetime(2024, 2, 3, 4, 5, 6, 789)  # noqa: DTZ001
    tag = tags.create("t", SNAPSHOT, now=now, time_retained=timedelta(days=1, milliseconds=5))
    assert tags.get("t") == tag
    assert tag.create_time == (2024, 2, 3, 4, 5, 6, 789_000) and tag.time_retained_seconds == 86400.005


def test_a_retention_without_a_time_is_an_internal_error():
    with pytest.raises(TypeError):
        opened().create("t", SNAPSHOT, time_retained=timedelta(days=1))


def test_a_taken_name_is_refused_and_the_tag_is_kept():
    tags = opened()
    tags.create("t", SNAPSHOT)
    with pytest.raises(AlreadyExistsError, match="'t'"):
        tags.create("t", SNAPSHOT, now=datetime(2024, 1, 1), time_retained=timedelta(1))  # noqa: DTZ001
    assert tags.get("t").time_retained_seconds is None


@pytest.mark.parametrize("name", ["", "..", "a/b", ".a", "a\0b", "a\\b", "x" * 300, "a%2fb"])
def test_a_hostile_name_is_refused_before_any_request(name):
    tags = Tags(None, ROOT)
    for verb in (tags.get, tags.delete, lambda it: tags.create(it, SNAPSHOT)):
        with pytest.raises(UsageError):
            verb(name)


def test_missing_tag_is_named():
    tags = opened()
    for verb in (tags.get, tags.delete):
        with pytest.raises(TagNotFoundError, match="'t'"):
            verb("t")


def test_deleted_tag_is_gone():
    tags = opened()
    tags.create("t", SNAPSHOT)
    tags.delete("t")
    assert tags.list() == []
    tags.create("t", SNAPSHOT)


def test_other_files_are_no_tags_and_tags_that_vanish_are_left_out():
    class Vanishing(MemoryStore):
        def list(self, directory):
            children = super().list(directory)
            super().delete(f"{ROOT}/tag/tag-b")
            return children

    store = Vanishing()
    tags = opened(store)
    tags.create("a", SNAPSHOT)
    tags.create("b", SNAPSHOT)
    store.put(f"{ROOT}/tag/.tag-c.123.tmp", b"x")
    store.put(f"{ROOT}/tag/tag-", b"x")
    store.make_directory(f"{ROOT}/tag/tag-dir")
    assert [tag.name for tag in tags.list()] == ["a"]
    assert tags.names() == ["a"]


def test_a_tag_does_not_recreate_the_directory_of_a_dropped_table():
    store = MemoryStore()
    with pytest.raises(FileMissingError, match="/w/t does not exist"):
        Tags(store, ROOT).create("t", SNAPSHOT)
    assert store.stat(ROOT) is None
