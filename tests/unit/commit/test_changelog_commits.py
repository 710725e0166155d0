"""Changelog files in commits: named by the snapshot that they tell of, renumbered with their rows, gone where it is not published."""

import msgspec
import pytest
from unit.commit.support import (
    KEYED,
    below,
    bucket_changes,
    changes_of,
    check_history,
    data_file,
    do_commit,
    names_in,
    new_store,
    path_of,
    place,
    renumbered,
    root_on,
    static,
)

from paimon_py.commit.changes import Changes, Edit
from paimon_py.commit.commit import CommitRequest, commit
from paimon_py.commit.sequence_numbers import offsets
from paimon_py.errors import CommitConflictError, CorruptionError, UsageError
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.snapshot import CommitKind


def row_file(name, **facts):
    return data_file(name, keys=(1, 2), **facts)


def input_changes(name, *, sequences=(0, 0), base=None, **more):
    """One new file, and the changelog of twice as many rows that came in."""
    first, last = sequences
    log = row_file(f"changelog-{name}", rows=2, sequences=(max(0, first - 1), last))
    return changes_of(bucket_changes(row_file(name, sequences=sequences), changelog=(log,), **more), base=base)


def told(root, snapshot_id):
    """Names of the changelog files of a snapshot."""
    snapshot = root.snapshots.get(snapshot_id)
    if snapshot.changelog_manifest_list is None:
        return None
    lists = root.manifests.read_list(snapshot.changelog_manifest_list, snapshot.changelog_manifest_list_size)
    return root.manifests.read_entries(lists).names().to_pylist()


def commit_rows(store, changes, owner="u", **request):
    place(store, KEYED, changes)
    return do_commit(root_on(store, owner), KEYED, changes, **request)


def data_names(store):
    return sorted(path.rsplit("/", 1)[1] for path in below(store, "/warehouse/db.db/t") if "/bucket-" in path)


def test_the_snapshot_names_and_counts_the_changelog_and_no_other_does():
    store = new_store(KEYED)
    result = commit_rows(store, input_changes("a"))
    assert (result.row_count, result.file_count) == (1, 1)
    commit_rows(store, changes_of(bucket_changes(row_file("b", sequences=(1, 1))), base=1), "v")
    root = root_on(store, "reader")
    first, second = root.snapshots.get(1), root.snapshots.get(2)
    assert (told(root, 1), told(root, 2)) == (["changelog-a"], None)
    assert (first.changelog_record_count, first.delta_record_count, first.total_record_count) == (2, 1, 1)
    assert (second.changelog_record_count, second.total_record_count) == (None, 2)
    assert first.commit_kind is CommitKind.APPEND
    assert names_in(root, second) == ["a", "b"]
    check_history(root)


def test_a_lost_race_renumbers_rows_and_changelog_alike_and_leaves_one_copy():
    store = new_store(KEYED)
    commit_rows(store, input_changes("a", sequences=(0, 9)))
    commit_rows(store, input_changes("b", sequences=(1, 4)), "v")
    root = root_on(store, "reader")
    # the smallest number of the second writer's rows is 0, in the changelog: it becomes 10
    assert told(root, 2) == [renumbered("changelog-b", 10)]
    assert names_in(root, root.snapshots.get(2)) == ["a", renumbered("b", 10)]
    entries = root.manifests.read_entries(
        root.manifests.read_list(root.snapshots.get(2).changelog_manifest_list)
    ).entries()
    assert [(entry.file.min_sequence, entry.file.max_sequence) for entry in entries] == [(10, 14)]
    assert data_names(store) == ["a", renumbered("b", 10), "changelog-a", renumbered("changelog-b", 10)]


def test_numbers_of_one_commit_come_once_even_if_only_its_changelog_has_them():
    """An older `sequence.field` stands in the changelog alone: its number may be the smallest or the largest."""
    first = bucket_changes(row_file("a", sequences=(1, 1)), changelog=(row_file("log-a", rows=3, sequences=(0, 2)),))
    second = bucket_changes(row_file("b", sequences=(1, 1)), changelog=(row_file("log-b", rows=2, sequences=(0, 1)),))
    assert offsets([first, second], {first.place: 9}) == [10, 13]
    assert offsets([first, second], {}) == [0, 3]


def test_a_renumbered_bucket_loses_the_changelog_of_its_compaction():
    store = new_store(KEYED)
    commit_rows(store, input_changes("a", sequences=(0, 9)))
    compacted = Edit(
        deleted=(row_file("b"),), added=(row_file("c", level=5),), changelog=(row_file("changelog-c", level=5),)
    )
    result = commit_rows(store, input_changes("b", compacted=compacted), "v")
    assert len(result.dropped_buckets) == 1
    root = root_on(store, "reader")
    assert told(root, 2) == [renumbered("changelog-b", 10)]
    assert {"c", "changelog-c", "b", "changelog-b"}.isdisjoint(data_names(store))


def test_a_dropped_compaction_drops_its_changelog():
    store = new_store(KEYED)
    commit_rows(store, input_changes("a"))
    other = changes_of(
        bucket_changes(compacted=Edit(deleted=(row_file("a"),), added=(row_file("o", level=5),))), base=1
    )
    commit_rows(store, other, "v")
    new = row_file("b", sequences=(1, 1))
    compacted = Edit(
        deleted=(row_file("a"), new), added=(row_file("big", level=5),), changelog=(row_file("changelog-big", level=5),)
    )
    result = commit_rows(store, changes_of(bucket_changes(new, compacted=compacted), base=2), "w")
    assert result.snapshot_ids == (3,) and "file a" in result.dropped_compaction
    assert {"big", "changelog-big"}.isdisjoint(data_names(store))
    assert told(root_on(store, "reader"), 3) is None


def test_both_snapshots_of_a_commit_have_their_own_changelog():
    store = new_store(KEYED)
    compacted = Edit(
        deleted=(row_file("a"),),
        added=(row_file("big", level=5),),
        changelog=(row_file("changelog-big", rows=3, level=5),),
    )
    commit_rows(store, input_changes("a", compacted=compacted))
    root = root_on(store, "reader")
    assert (told(root, 1), told(root, 2)) == (["changelog-a"], ["changelog-big"])
    assert [root.snapshots.get(number).changelog_record_count for number in (1, 2)] == [2, 3]


def test_overwrites_name_no_changelog_and_delete_it():
    store = new_store(KEYED)
    commit_rows(store, input_changes("a"))
    compacted = Edit(
        deleted=(row_file("b"),), added=(row_file("big", level=5),), changelog=(row_file("changelog-big", level=5),)
    )
    result = commit_rows(store, input_changes("b", compacted=compacted, base=1), "v", overwrite=static({}))
    assert result.snapshot_ids == (2, 3)
    root = root_on(store, "reader")
    assert (told(root, 2), told(root, 3)) == (None, None)
    assert [root.snapshots.get(number).changelog_record_count for number in (2, 3)] == [None, None]
    assert {"changelog-b", "changelog-big"}.isdisjoint(data_names(store))
    check_history(root)


def test_truncating_tells_nothing():
    store = new_store(KEYED)
    commit_rows(store, input_changes("a"))
    do_commit(root_on(store, "v"), KEYED, changes_of(base=1), overwrite=static({}))
    root = root_on(store, "reader")
    assert (told(root, 2), root.snapshots.get(2).total_record_count) == (None, 0)


def test_a_conflict_keeps_the_changelog_for_its_writer():
    store = new_store(KEYED)
    commit_rows(store, input_changes("a"))
    with pytest.raises(CommitConflictError):
        commit_rows(store, input_changes("b", base=0), "v", expected_snapshot_id=7)
    assert "changelog-b" in data_names(store)
    assert root_on(store, "reader").snapshots.ids() == [1]


def test_changes_sent_as_bytes_are_committed_once_with_their_changelog():
    store = new_store(KEYED)
    changes = input_changes("a")
    place(store, KEYED, changes)
    again = Changes.from_bytes(bytes(changes))
    assert again == changes
    assert do_commit(root_on(store), KEYED, changes, user="job", identifier=1).snapshot_id == 1
    assert do_commit(root_on(store, "v"), KEYED, again, user="job", identifier=1).already_committed
    assert do_commit(root_on(store, "w"), KEYED, again).already_committed
    assert data_names(store) == ["a", "changelog-a"]


# -- changes that come from elsewhere -----------------------------------------------------------------------------------


def commit_foreign(store, changes):
    return commit(OpenTable(root_on(store, 'f'), KEYED), changes, CommitRequest(check_files=True))


def foreign(store):
    """Changes of which every file is there."""
    changes = input_changes("a", sequences=(0, 1))
    for file in changes.buckets[0].made_files:
        store.put(path_of(KEYED, changes.buckets[0], file.name), bytes(file.size_bytes))
    return changes


def test_changelogs_of_others_are_committed():
    store = new_store(KEYED)
    assert commit_foreign(store, foreign(store)).snapshot_id == 1
    assert told(root_on(store, "reader"), 1) == ["changelog-a"]


def test_a_missing_changelog_file_is_refused_by_name():
    store = new_store(KEYED)
    changes = foreign(store)
    store.delete(path_of(KEYED, changes.buckets[0], "changelog-a"))
    with pytest.raises(UsageError, match="changelog-a"):
        commit_foreign(store, changes)
    assert root_on(store, "reader").snapshots.ids() == []


def with_log(**facts):
    """Changes whose changelog file is described otherwise."""
    changes = foreign(new_store(KEYED))
    (bucket,) = changes.buckets
    (log,) = bucket.written.changelog
    written = msgspec.structs.replace(bucket.written, changelog=(msgspec.structs.replace(log, **facts),))
    return msgspec.structs.replace(changes, buckets=(msgspec.structs.replace(bucket, written=written),))


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        ({"row_count": 0}, "has 0 rows"),
        ({"row_count": 3, "max_sequence": 0}, "sequence numbers"),
        ({"min_sequence": -1}, "sequence numbers"),
        ({"delete_row_count": 3}, "deletes"),
        ({"level": 77}, "level 77"),
        ({"schema_id": 9}, "schema 9"),
        ({"name": "a"}, "contains rows of the table"),
        ({"name": "../a"}, "nothing was committed"),
        ({"min_key": b"junk"}, "nothing was committed"),
    ],
)
def test_a_changelog_file_that_cannot_be_as_it_is_described_is_refused(facts, word):
    store = new_store(KEYED)
    with pytest.raises((CorruptionError, UsageError), match=word):
        commit_foreign(store, with_log(**facts))
    assert root_on(store, "reader").snapshots.ids() == []


@pytest.mark.parametrize("field", ["added", "changelog"])
def test_changes_that_name_a_changelog_of_the_table_under_a_used_identifier_do_not_delete_it(field):
    store = new_store(KEYED)
    commit_rows(store, input_changes("a"), user="job", identifier=1)
    commit_rows(store, input_changes("b", sequences=(1, 1), base=1), "v", user="job", identifier=2)
    forged = msgspec.structs.replace(bucket_changes(), written=Edit(**{field: (row_file("changelog-a"),)}))
    assert do_commit(root_on(store, "f"), KEYED, changes_of(forged, base=2), user="job", identifier=1).already_committed
    assert "changelog-a" in data_names(store)
