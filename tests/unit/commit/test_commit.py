import json

import msgspec
import pyarrow as pa
import pytest
from unit.commit.support import (
    APPEND,
    KEYED,
    PARTITIONED,
    TABLE,
    Clock,
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
    put_schema,
    reachable,
    renumbered,
    root_on,
    row,
    static,
    unaware,
)

from paimon_py.codec.json import schema_to_json
from paimon_py.commit.changes import Edit
from paimon_py.commit.commit import DynamicOverwrite
from paimon_py.errors import (
    CommitConflictError,
    CommitRetriesExhaustedError,
    CommitUnknownError,
    StorageError,
    StorageUnknownError,
    UsageError,
)
from paimon_py.spec.data_file import FileKind
from paimon_py.spec.layout import latest_hint_path, schema_path, snapshot_path
from paimon_py.spec.manifest import IndexEntry
from paimon_py.spec.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, SnapshotId
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Field
from paimon_py.testing.counting_store import CountingStore
from paimon_py.testing.snapshots import put_snapshot


def commit_file(store, table_schema, name, *, base=None, rows=1, sequences=(0, 0), owner=None, **request):
    """Commit one file as another process would."""
    make = bucket_changes if table_schema.primary_keys else unaware
    changes = changes_of(make(data_file(name, rows=rows, sequences=sequences)), base=base)
    place(store, table_schema, changes)
    return do_commit(root_on(store, owner or f"{name}-"), table_schema, changes, **request)


def latest(store):
    root = root_on(store, "reader")
    return root, root.snapshots.latest()


# -- appending ----------------------------------------------------------------------------------------------------------


def test_a_first_and_a_second_commit_add_their_files():
    store = new_store(APPEND)
    first = commit_file(store, APPEND, "a", rows=2)
    second = commit_file(store, APPEND, "b", base=1, rows=3)
    assert (first.snapshot_id, first.row_count, first.file_count, first.attempts) == (1, 2, 1, 1)
    assert (second.snapshot_id, second.snapshot_ids, second.already_committed) == (2, (2,), False)
    root, snapshot = latest(store)
    assert names_in(root, snapshot) == ["a", "b"]
    assert (snapshot.total_record_count, snapshot.delta_record_count) == (5, 3)
    assert snapshot.commit_kind is CommitKind.APPEND
    assert snapshot.commit_identifier == BATCH_COMMIT_IDENTIFIER
    stored, needed = check_history(root)
    assert {name for name in stored if "manifest" in name} <= needed


def test_results_become_json():
    store = new_store(APPEND)
    result = commit_file(store, APPEND, "a", rows=2)
    found = json.loads(msgspec.json.encode(result, enc_hook=int))
    assert (found["snapshot_id"], found["snapshot_ids"], found["before"], found["row_count"]) == (1, [1], 0, 2)


def test_the_hint_follows_the_commit():
    store = new_store(APPEND)
    for number, name in enumerate("abc"):
        commit_file(store, APPEND, name, base=number or None)
        assert store.get(latest_hint_path(TABLE)) == str(number + 1).encode()


def test_nothing_to_commit_makes_no_snapshot():
    store = new_store(APPEND)
    for request in ({}, {"user": "job", "identifier": 3}):
        result = do_commit(root_on(store), APPEND, changes_of(), **request)
        assert (result.snapshot_id, result.snapshot_ids, result.attempts) == (None, (), 0)
    assert root_on(store).snapshots.ids() == []


def test_an_empty_snapshot_can_be_requested():
    for option in ({"commit.force-create-snapshot": "true"}, {"snapshot.ignore-empty-commit": "false"}):
        table_schema = msgspec.structs.replace(APPEND, options=option)
        store = new_store(table_schema)
        result = do_commit(root_on(store), table_schema, changes_of(), user="job", identifier=3, watermark=9)
        assert result.snapshot_id == 1
        _, snapshot = latest(store)
        assert (snapshot.commit_identifier, snapshot.watermark, snapshot.total_record_count) == (3, 9, 0)


@pytest.mark.parametrize("number", [int, SnapshotId])
def test_what_the_caller_says_is_recorded(number):
    store, said = new_store(APPEND), {"identifier": number(5), "watermark": number(8)}
    commit_file(store, APPEND, "a", user="job", **said, properties={"x": "y"}, operation="WRITE")
    _, snapshot = latest(store)
    assert (snapshot.commit_user, snapshot.commit_identifier, snapshot.watermark) == ("job", 5, 8)
    assert (snapshot.properties, snapshot.operation) == ({"x": "y"}, "WRITE")


def test_the_watermark_is_the_larger_of_changes_and_request():
    store = new_store(APPEND)
    changes = changes_of(unaware(data_file("a")), watermark=12)
    do_commit(root_on(store), APPEND, changes, watermark=8)
    assert latest(store)[1].watermark == 12


def test_manifests_are_merged_when_there_are_many():
    table_schema = msgspec.structs.replace(APPEND, options={"manifest.merge-min-count": "4"})
    store = new_store(table_schema)
    for number in range(12):
        commit_file(store, table_schema, f"f{number}", base=number or None)
    root, snapshot = latest(store)
    assert names_in(root, snapshot) == sorted(f"f{n}" for n in range(12))
    assert len(root.manifests.read_list(snapshot.base_manifest_list)) <= 4
    check_history(root)


def test_the_snapshot_names_the_latest_schema_and_the_files_keep_theirs():
    store = new_store(APPEND)
    fields = (*APPEND.fields, Field(3, "w", parse_type("INT")))
    added = msgspec.structs.replace(APPEND, id=1, fields=fields, highest_field_id=3)
    put_schema(store, added)
    commit_file(store, APPEND, "a")
    root, snapshot = latest(store)
    assert snapshot.schema_id == 1
    assert root.manifests.live_entries(snapshot).schema_id.tolist() == [0]


# -- conflicts ----------------------------------------------------------------------------------------------------------


def files_of(store):
    return sorted(below(store, TABLE))


def test_a_dropped_column_is_a_conflict_and_nothing_is_left():
    store = new_store(APPEND)
    dropped = msgspec.structs.replace(APPEND, id=1, fields=APPEND.fields[:2])
    store.put_new(schema_path(TABLE, 1), schema_to_json(dropped))
    before = files_of(store)
    with pytest.raises(CommitConflictError, match="column v was dropped"):
        do_commit(root_on(store), APPEND, changes_of(unaware(data_file("a"))))
    assert files_of(store) == before


def test_the_expected_snapshot_is_compared():
    store = new_store(APPEND)
    commit_file(store, APPEND, "a", expected_snapshot_id=0)
    commit_file(store, APPEND, "b", base=1, expected_snapshot_id=1)
    with pytest.raises(CommitConflictError, match="latest snapshot is 2, not 1"):
        commit_file(store, APPEND, "c", base=1, expected_snapshot_id=1)


def test_deleting_a_file_that_another_commit_deleted_is_a_conflict():
    store = new_store(APPEND)
    commit_file(store, APPEND, "a")
    delete = changes_of(unaware(data_file("b"), deleted=(data_file("a"),)), base=1)
    assert do_commit(root_on(store, "x"), APPEND, delete).snapshot_id == 2
    again = changes_of(unaware(data_file("c"), deleted=(data_file("a"),)), base=1)
    with pytest.raises(CommitConflictError, match="file a .* was deleted"):
        do_commit(root_on(store, "y"), APPEND, again)
    root, snapshot = latest(store)
    assert names_in(root, snapshot) == ["b"]
    assert snapshot.commit_kind is CommitKind.OVERWRITE


def test_another_number_of_buckets_is_refused_even_for_buckets_without_files():
    store = new_store(KEYED)
    commit_file(store, KEYED, "a")
    other = changes_of(bucket_changes(data_file("b"), bucket=3, total_buckets=4))
    with pytest.raises(CommitConflictError, match="written for 4 buckets, but the partition has 1"):
        do_commit(root_on(store), KEYED, other)


# -- several writers of one bucket --------------------------------------------------------------------------------------


def test_rows_of_a_later_commit_get_later_sequence_numbers():
    store = new_store(KEYED)
    commit_file(store, KEYED, "a", sequences=(0, 9))
    result = commit_file(store, KEYED, "b", sequences=(0, 4))
    root, snapshot = latest(store)
    entries = {
        e.file.name: (e.file.min_sequence, e.file.max_sequence) for e in root.manifests.live_entries(snapshot).entries()
    }
    assert entries == {"a": (0, 9), renumbered("b", 10): (10, 14)}
    assert (result.row_count, result.file_count) == (1, 1)
    bucket = bucket_changes()
    assert store.stat(path_of(KEYED, bucket, "b")) is None
    assert store.stat(path_of(KEYED, bucket, renumbered("b", 10))) is not None
    check_history(root)


def test_a_writer_that_started_above_all_others_is_left_alone():
    store = new_store(KEYED)
    commit_file(store, KEYED, "a", sequences=(0, 9))
    commit_file(store, KEYED, "b", sequences=(10, 14))
    assert names_in(*latest(store)) == ["a", "b"]


def test_a_writer_whose_base_is_the_latest_snapshot_reads_no_manifest():
    store = new_store(KEYED)
    commit_file(store, KEYED, "a", sequences=(0, 9))
    changes = changes_of(bucket_changes(data_file("b", sequences=(10, 11))), base=1)
    counting = CountingStore(store)
    do_commit(root_on(counting, "b"), KEYED, changes)
    read = [path.rsplit("/", 1)[1] for verb, path in counting.paths if verb == "get" and "/manifest/" in path]
    assert all(name.startswith("manifest-list-") for name in read)


def test_writers_that_are_far_behind_read_the_live_files_instead_of_every_snapshot():
    store = new_store(KEYED)
    for number in range(40):
        commit_file(store, KEYED, f"f{number:02}", base=number or None, sequences=(number, number))
    commit_file(store, KEYED, "late", sequences=(0, 0))
    assert renumbered("late", 40) in names_in(*latest(store))


def test_a_renumbered_bucket_loses_its_compaction_which_is_reported():
    store = new_store(KEYED)
    commit_file(store, KEYED, "a", sequences=(0, 9))
    mine = bucket_changes(
        data_file("b", sequences=(0, 4)),
        compacted=Edit(
            deleted=(data_file("b", sequences=(0, 4)),), added=(data_file("c", level=5, sequences=(0, 4)),)
        ),
    )
    place(store, KEYED, changes_of(mine))
    result = do_commit(root_on(store), KEYED, changes_of(mine))
    assert "compaction" in result.dropped_compaction
    assert result.snapshot_ids == (2,)
    stored, needed = check_history(root_on(store))
    assert {"b", "c"}.isdisjoint(stored)


# -- identifiers --------------------------------------------------------------------------------------------------------


def test_an_identifier_is_committed_once():
    store = new_store(APPEND)
    first = commit_file(store, APPEND, "a", user="job", identifier=1)
    again = commit_file(store, APPEND, "a2", base=1, user="job", identifier=1)
    assert (again.already_committed, again.snapshot_id, again.row_count) == (True, first.snapshot_id, 0)
    root, snapshot = latest(store)
    assert (snapshot.id, names_in(root, snapshot)) == (1, ["a"])
    assert store.stat(path_of(APPEND, bucket_changes(), "a2")) is None


def test_repeating_a_commit_keeps_the_files_that_are_in_the_table():
    store = new_store(APPEND)
    changes = changes_of(unaware(data_file("a")))
    place(store, APPEND, changes)
    do_commit(root_on(store, "x"), APPEND, changes, user="job", identifier=1)
    commit_file(store, APPEND, "other", base=1)
    assert do_commit(root_on(store, "y"), APPEND, changes, user="job", identifier=1).already_committed
    check_history(root_on(store))
    assert names_in(*latest(store)) == ["a", "other"]


def test_an_identifier_below_the_last_one_is_refused():
    store = new_store(APPEND)
    commit_file(store, APPEND, "a", user="job", identifier=5)
    with pytest.raises(UsageError, match="last number of 'job' is 5, and 3 is smaller"):
        commit_file(store, APPEND, "b", base=1, user="job", identifier=3)
    assert names_in(*latest(store)) == ["a"]


def test_a_misused_identifier_never_deletes_files_that_were_committed():
    store = new_store(APPEND)
    commit_file(store, APPEND, "a", user="job", identifier=1)
    second = changes_of(unaware(data_file("b")), base=1)
    place(store, APPEND, second)
    do_commit(root_on(store, "x"), APPEND, second, user="job", identifier=2)
    assert do_commit(root_on(store, "y"), APPEND, second, user="job", identifier=1).already_committed
    check_history(root_on(store))


@pytest.mark.parametrize("field", ["written.added", "written.changelog", "compacted.added", "beside"])
def test_changes_that_name_files_of_the_table_under_a_used_identifier_delete_none_of_them(field):
    store = new_store(APPEND)
    commit_file(store, APPEND, "a", user="job", identifier=1)
    commit_file(store, APPEND, "b", base=1, user="job", identifier=2)
    stranger = data_file("a")
    if field == "beside":
        edits = {"written": Edit(added=(msgspec.structs.replace(data_file("c"), extra_files=("a",)),))}
    else:
        edit, _, kind = field.partition(".")
        edits = {edit: Edit(**{kind: (stranger,)})}
    forged = changes_of(msgspec.structs.replace(unaware(data_file("c")), **edits), base=2)
    assert do_commit(root_on(store, "y"), APPEND, forged, user="job", identifier=1).already_committed
    check_history(root_on(store))
    root, snapshot = latest(store)
    assert names_in(root, snapshot) == ["a", "b"]
    assert store.stat(path_of(APPEND, bucket_changes(), "a")) is not None


def test_a_batch_commit_of_the_same_user_does_not_hide_identifiers():
    store = new_store(APPEND)
    commit_file(store, APPEND, "a", user="job")
    assert commit_file(store, APPEND, "b", base=1, user="job", identifier=1).snapshot_id == 2
    assert commit_file(store, APPEND, "c", base=2, user="job").snapshot_id == 3
    assert commit_file(store, APPEND, "d", base=3, user="job", identifier=1).already_committed


def test_a_batch_that_is_committed_again_is_recognised():
    store = new_store(APPEND)
    changes = changes_of(unaware(data_file("a", rows=2)))
    place(store, APPEND, changes)
    do_commit(root_on(store, "x"), APPEND, changes)
    commit_file(store, APPEND, "b", base=1)
    again = do_commit(root_on(store, "y"), APPEND, changes)
    assert (again.already_committed, again.snapshot_id) == (True, 1)
    for request in ({"user": "another"}, {"user": "another", "identifier": 4}):
        assert do_commit(root_on(store, "z"), APPEND, changes, **request).already_committed
    assert latest(store)[1].id == 2


def test_changes_of_which_a_part_is_in_the_table_are_refused():
    store = new_store(KEYED)
    commit_file(store, KEYED, "a", sequences=(0, 0))
    both = changes_of(bucket_changes(data_file("a"), data_file("b")))
    place(store, KEYED, both)
    with pytest.raises(CommitConflictError, match="file a is in the table already"):
        do_commit(root_on(store), KEYED, both)
    check_history(root_on(store))


# -- overwriting --------------------------------------------------------------------------------------------------------


def in_partition(number, *names, **settings):
    return bucket_changes(*(data_file(name, **settings) for name in names), partition=row(number))


def partitioned_store():
    store = new_store(PARTITIONED)
    keys = {"keys": (1, 5)}
    changes = changes_of(in_partition(1, "a", **keys), in_partition(2, "b", **keys), in_partition(3, "c", **keys))
    place(store, PARTITIONED, changes)
    do_commit(root_on(store, "first"), PARTITIONED, changes)
    return store


@pytest.mark.parametrize(
    ("overwrite", "left"),
    [
        (static({"p": 2}), ["a", "c", "new"]),
        (DynamicOverwrite(), ["a", "c", "new"]),
        (static({}), ["new"]),
        (static({"p": 1}, {"p": 2}), ["c", "new"]),
    ],
)
def test_overwriting_replaces_the_partitions_it_names(overwrite, left):
    store = partitioned_store()
    changes = changes_of(in_partition(2, "new", keys=(7, 9)), base=1)
    place(store, PARTITIONED, changes)
    result = do_commit(root_on(store), PARTITIONED, changes, overwrite=overwrite)
    root, snapshot = latest(store)
    assert (result.snapshot_id, snapshot.commit_kind, result.file_count) == (2, CommitKind.OVERWRITE, 1)
    assert names_in(root, snapshot) == left
    delta = root.manifests.read_entries(root.manifests.read_list(snapshot.delta_manifest_list))
    assert delta.kind.tolist() == sorted(delta.kind.tolist(), reverse=True)
    check_history(root)


def test_new_files_of_an_overwrite_go_to_the_top_level():
    store = partitioned_store()
    changes = changes_of(in_partition(2, "new", keys=(7, 9)), base=1)
    do_commit(root_on(store), PARTITIONED, changes, overwrite=DynamicOverwrite())
    root, snapshot = latest(store)
    levels = {e.file.name: e.file.level for e in root.manifests.live_entries(snapshot).entries()}
    assert levels == {"a": 0, "c": 0, "new": 5}
    plain = msgspec.structs.replace(PARTITIONED, options={"bucket": "1", "overwrite-upgrade": "false"})
    again = changes_of(in_partition(2, "newer", keys=(7, 9)), base=2)
    do_commit(root_on(store, "v"), plain, again, overwrite=DynamicOverwrite())
    root, snapshot = latest(store)
    assert {e.file.level for e in root.manifests.live_entries(snapshot).entries()} == {0}


def test_overwriting_with_nothing_truncates():
    store = partitioned_store()
    result = do_commit(root_on(store), PARTITIONED, changes_of(base=1), overwrite=static({"p": 3}))
    assert (result.snapshot_id, result.row_count) == (2, 0)
    assert names_in(*latest(store)) == ["a", "b"]
    do_commit(root_on(store, "w"), PARTITIONED, changes_of(base=2), overwrite=static({}))
    root, snapshot = latest(store)
    assert names_in(root, snapshot) == []
    assert snapshot.total_record_count == 0
    check_history(root)


def test_a_dynamic_overwrite_without_files_does_nothing():
    store = partitioned_store()
    result = do_commit(root_on(store), PARTITIONED, changes_of(base=1), overwrite=DynamicOverwrite())
    assert (result.snapshot_id, latest(store)[1].id) == (None, 1)


def test_files_outside_a_static_overwrite_are_refused():
    store = partitioned_store()
    before = files_of(store)
    changes = changes_of(in_partition(2, "x", keys=(1, 2)), in_partition(3, "y", keys=(1, 2)), base=1)
    with pytest.raises(UsageError, match="outside"):
        do_commit(root_on(store), PARTITIONED, changes, overwrite=static({"p": 2}))
    assert files_of(store) == before


def test_an_unknown_partition_key_and_a_wrong_value_are_refused():
    store = partitioned_store()
    for partition in ({"nope": 1}, {"p": "text"}):
        with pytest.raises(UsageError):
            do_commit(root_on(store), PARTITIONED, changes_of(base=1), overwrite=static(partition))


def test_the_null_partition_can_be_overwritten():
    store = new_store(PARTITIONED)
    nothing = pa.array([None], pa.int32())
    from paimon_py.codec.binary_row import encode

    null_row = encode([nothing], [parse_type("INT")])[0].as_py()
    changes = changes_of(
        in_partition(1, "a", keys=(1, 5)), bucket_changes(data_file("n", keys=(1, 5)), partition=null_row)
    )
    do_commit(root_on(store), PARTITIONED, changes)
    do_commit(root_on(store, "w"), PARTITIONED, changes_of(base=1), overwrite=static({"p": None}))
    assert names_in(*latest(store)) == ["a"]


def test_an_overwrite_replaces_the_files_of_concurrent_commits():
    store = partitioned_store()
    commit = changes_of(in_partition(2, "late", keys=(1, 2), sequences=(1, 1)), base=1)
    place(store, PARTITIONED, commit)
    do_commit(root_on(store, "late"), PARTITIONED, commit)
    do_commit(root_on(store), PARTITIONED, changes_of(base=1), overwrite=static({"p": 2}))
    assert names_in(*latest(store)) == ["a", "c"]


def test_index_files_of_overwritten_partitions_are_dropped():
    store = partitioned_store()
    root = root_on(store, "index")
    entries = [
        IndexEntry(
            kind=FileKind.ADD, partition=row(p), bucket=0, index_type="HASH", name=f"i{p}", size_bytes=4, row_count=1
        )
        for p in (1, 2)
    ]
    name, _ = root.manifests.write_index(entries)
    indexed = msgspec.structs.replace(
        root.snapshots.latest(), id=2, index_manifest=name, uuid="indexed", delta_record_count=0
    )
    empty, size = root.manifests.write_list([])
    base, base_size = root.manifests.write_list(root.manifests.base_and_delta(root.snapshots.latest()))
    put_snapshot(
        root,
        msgspec.structs.replace(
            indexed,
            delta_manifest_list=empty,
            delta_manifest_list_size=size,
            base_manifest_list=base,
            base_manifest_list_size=base_size,
        ),
    )
    changes = changes_of(in_partition(3, "new", keys=(7, 9)), base=2)
    do_commit(root_on(store, "v"), PARTITIONED, changes, overwrite=DynamicOverwrite())
    assert latest(store)[1].index_manifest == name
    do_commit(root_on(store, "w"), PARTITIONED, changes_of(base=3), overwrite=static({"p": 2}))
    root, snapshot = latest(store)
    assert [entry.name for entry in root.manifests.read_index(snapshot.index_manifest)] == ["i1"]
    do_commit(root_on(store, "x"), PARTITIONED, changes_of(base=4), overwrite=static({}))
    assert latest(store)[1].index_manifest is None


# -- compaction ---------------------------------------------------------------------------------------------------------


def compaction(before, after, base, *new):
    return changes_of(bucket_changes(*new, compacted=Edit(deleted=tuple(before), added=tuple(after))), base=base)


def test_written_and_compacted_files_become_two_snapshots():
    store = new_store(KEYED)
    commit_file(store, KEYED, "a", sequences=(0, 0))
    new, big = data_file("b", keys=(1, 2), sequences=(1, 1)), data_file("big", level=5, keys=(1, 2), rows=2)
    old = root_on(store).manifests.live_entries(latest(store)[1]).entries()[0].file
    changes = compaction([old, new], [big], 1, new)
    place(store, KEYED, changes)
    result = do_commit(root_on(store), KEYED, changes, user="job", identifier=1)
    assert (result.snapshot_ids, result.dropped_compaction) == ((2, 3), None)
    root, snapshot = latest(store)
    assert names_in(root, snapshot) == ["big"]
    assert (snapshot.commit_kind, snapshot.commit_identifier) == (CommitKind.COMPACT, 1)
    check_history(root)


def test_a_compaction_that_lost_its_files_is_dropped_and_the_rows_are_kept():
    store = new_store(KEYED)
    commit_file(store, KEYED, "a", sequences=(0, 0))
    old = data_file("a")
    do_commit(root_on(store, "o"), KEYED, compaction([old], [data_file("o", level=5, keys=(1, 9))], 1))
    new = data_file("b", keys=(1, 2), sequences=(1, 1))
    changes = compaction(
        [old, new], [data_file("big", level=5, keys=(1, 2)), msgspec.structs.replace(new, level=4)], 2, new
    )
    place(store, KEYED, changes)
    result = do_commit(root_on(store), KEYED, changes)
    assert "file a" in result.dropped_compaction
    assert result.snapshot_ids == (3,)
    assert names_in(*latest(store)) == ["b", "o"]
    bucket = bucket_changes()
    assert store.stat(path_of(KEYED, bucket, "big")) is None
    assert store.stat(path_of(KEYED, bucket, "b")) is not None


def test_a_compaction_that_the_store_refuses_is_dropped_with_its_files_and_the_rows_are_kept():
    store = new_store(KEYED)
    commit_file(store, KEYED, "a", sequences=(0, 0))
    new = data_file("b", keys=(1, 2), sequences=(1, 1))
    changes = compaction([data_file("a"), new], [data_file("big", level=5, keys=(1, 2))], 1, new)
    place(store, KEYED, changes)

    def refuse(path, data):
        raise StorageError("no room", path=path, operation="put")

    actions = [lambda path, data: None, refuse, refuse, refuse]
    result = do_commit(root_on(Interrupting(store, *actions)), KEYED, changes)
    assert (result.snapshot_ids, len(result.dropped_buckets)) == ((2,), 1)
    assert "no room" in result.dropped_compaction
    assert names_in(*latest(store)) == ["a", "b"]
    assert store.stat(path_of(KEYED, bucket_changes(), "big")) is None
    assert store.stat(path_of(KEYED, bucket_changes(), "b")) is not None


def test_a_compaction_alone_that_conflicts_is_an_error_and_keeps_its_files_for_the_caller():
    store = new_store(KEYED)
    commit_file(store, KEYED, "a")
    changes = compaction([data_file("gone")], [data_file("big", level=5, keys=(1, 2))], 1)
    place(store, KEYED, changes)
    with pytest.raises(CommitConflictError, match="file gone"):
        do_commit(root_on(store), KEYED, changes)
    assert store.stat(path_of(KEYED, bucket_changes(), "big")) is not None
    assert latest(store)[1].id == 1


def test_compactions_must_not_overlap_the_output_of_another_one_on_their_level():
    store = new_store(KEYED)
    commit_file(store, KEYED, "a", sequences=(0, 0))
    commit_file(store, KEYED, "b", base=1, sequences=(1, 1))
    do_commit(root_on(store, "o"), KEYED, compaction([data_file("a")], [data_file("big", level=5, keys=(1, 5))], 2))
    mine = compaction([data_file("b", sequences=(1, 1))], [data_file("mine", level=5, keys=(5, 9))], 2)
    with pytest.raises(CommitConflictError, match="would overlap"):
        do_commit(root_on(store), KEYED, mine)


def test_moving_a_file_to_another_level_is_a_delete_and_an_add_in_this_order():
    store = new_store(KEYED)
    changes = changes_of(bucket_changes(data_file("a", keys=(1, 5))))
    place(store, KEYED, changes)
    do_commit(root_on(store, "first"), KEYED, changes)
    moved = compaction([data_file("a", keys=(1, 5))], [data_file("a", keys=(1, 5), level=5)], 1)
    do_commit(root_on(store), KEYED, moved)
    root, snapshot = latest(store)
    delta = root.manifests.read_entries(root.manifests.read_list(snapshot.delta_manifest_list))
    assert list(zip(delta.kind.tolist(), delta.level.tolist())) == [(1, 0), (0, 5)]
    check_history(root)


# -- races, told step by step -------------------------------------------------------------------------------------------


class Interrupting:
    """A store that lets something happen right before certain creations of snapshots."""

    def __init__(self, store, *actions):
        self.store = store
        self.actions = list(actions)

    def __getattr__(self, verb):
        return getattr(self.store, verb)

    def put_new(self, path, data, *, within=None):
        if "/snapshot-" in path and self.actions:
            action = self.actions.pop(0)
            answer = action(path, data)
            if answer is not None:
                return answer
        return self.store.put_new(path, data, within=within)


def test_a_lost_race_is_tried_again_on_the_winner():
    store = new_store(APPEND)
    clock = Clock()
    racing = Interrupting(
        store, *(lambda p, d, n=n: commit_file(store, APPEND, n, rows=10) and None for n in ("x", "y"))
    )
    changes = changes_of(unaware(data_file("mine")))
    place(store, APPEND, changes)
    result = do_commit(root_on(racing, clock=clock), APPEND, changes)
    assert (result.snapshot_id, result.attempts) == (3, 3)
    assert clock.waits == [0.005, 0.01]
    root, snapshot = latest(store)
    assert names_in(root, snapshot) == ["mine", "x", "y"]
    stored, needed = check_history(root)
    assert {name for name in stored if "manifest" in name} <= needed


def test_a_lost_race_writes_only_the_base_list_again():
    store = new_store(APPEND)
    commit_file(store, APPEND, "a")
    counting = CountingStore(Interrupting(store, lambda p, d: commit_file(store, APPEND, "x", base=1) and None))
    do_commit(root_on(counting), APPEND, changes_of(unaware(data_file("mine")), base=1))
    written = [path.rsplit("/", 1)[1] for verb, path in counting.paths if verb == "open_write"]
    assert len(written) == 4
    assert sum(name.startswith("manifest-list-") for name in written) == 3


def test_each_lost_race_renumbers_from_the_original_and_leaves_one_copy():
    store = new_store(KEYED)
    commit_file(store, KEYED, "a", sequences=(0, 9))
    racing = Interrupting(
        store,
        lambda p, d: commit_file(store, KEYED, "x", base=1, sequences=(10, 19)) and None,
        lambda p, d: commit_file(store, KEYED, "y", base=2, sequences=(20, 29)) and None,
    )
    changes = changes_of(bucket_changes(data_file("mine", sequences=(10, 14))), base=1)
    place(store, KEYED, changes)
    result = do_commit(root_on(racing), KEYED, changes)
    assert result.attempts == 3
    root, snapshot = latest(store)
    assert names_in(root, snapshot) == ["a", renumbered("mine", 20), "x", "y"]
    stored, needed = check_history(root)
    assert {name for name in stored if name.startswith("mine")} == {renumbered("mine", 20)}


def test_a_commit_gives_up_after_too_many_lost_races_and_keeps_the_callers_files():
    table_schema = msgspec.structs.replace(KEYED, options={"bucket": "1", "commit.max-retries": "2"})
    store = new_store(table_schema)

    def win(number):
        first = number * 10
        return lambda p, d: (
            commit_file(store, table_schema, f"w{number}", base=number or None, sequences=(first, first)) and None
        )

    racing = Interrupting(store, *map(win, range(9)))
    changes = changes_of(bucket_changes(data_file("mine")))
    place(store, table_schema, changes)
    with pytest.raises(CommitRetriesExhaustedError, match="3 times"):
        do_commit(root_on(racing), table_schema, changes)
    stored, needed = check_history(root_on(store))
    assert {name for name in stored if name.startswith("mine")} == {"mine"}
    assert {name for name in stored if "manifest" in name} <= needed


# -- answers that are lost ----------------------------------------------------------------------------------------------


def lost(store):
    def answer(path, data):
        store.put_new(path, data)
        raise StorageUnknownError("timeout", path=path, operation="put_new")

    return answer


def silent(path, data):
    raise StorageUnknownError("timeout", path=path, operation="put_new")


def test_a_lost_answer_after_the_effect_is_a_success():
    store = new_store(APPEND)
    changes = changes_of(unaware(data_file("a")))
    result = do_commit(root_on(Interrupting(store, lost(store))), APPEND, changes)
    assert (result.snapshot_id, result.attempts) == (1, 1)


def test_a_silent_retry_that_reports_exists_is_a_success():
    store = new_store(APPEND)
    changes = changes_of(unaware(data_file("a")))
    result = do_commit(root_on(Interrupting(store, lambda p, d: store.put_new(p, d) and False)), APPEND, changes)
    assert (result.snapshot_id, result.attempts) == (1, 1)


def test_a_lost_answer_without_effect_is_tried_again_with_the_same_bytes():
    store = new_store(APPEND)
    racing = Interrupting(store, silent)
    assert do_commit(root_on(racing), APPEND, changes_of(unaware(data_file("a")))).snapshot_id == 1


def test_a_late_effect_is_not_mistaken_for_a_lost_race():
    store = new_store(APPEND)
    racing = Interrupting(store, silent, lambda p, d: store.put_new(p, d) and False)
    assert do_commit(root_on(racing), APPEND, changes_of(unaware(data_file("a")))).attempts == 1


def test_a_store_that_never_answers_leaves_the_outcome_unknown_and_every_file():
    store = new_store(APPEND)
    changes = changes_of(unaware(data_file("a")))
    place(store, APPEND, changes)
    with pytest.raises(CommitUnknownError, match="again") as caught:
        do_commit(root_on(Interrupting(store, silent, silent, silent)), APPEND, changes)
    assert caught.value.snapshot_id == 1
    assert sum("manifest" in path.rsplit("/", 1)[1] for path in below(store, TABLE)) == 3
    assert do_commit(root_on(store, "again"), APPEND, changes).snapshot_id == 1


class Unreadable(Interrupting):
    """After its actions, snapshots cannot be read."""

    def get(self, path):
        if not self.actions and "/snapshot-" in path:
            raise StorageError("cut off", path=path, operation="get")
        return self.store.get(path)


def test_an_unreadable_answer_keeps_everything_and_the_repetition_recognises_it():
    store = new_store(KEYED)
    changes = changes_of(bucket_changes(data_file("a")))
    place(store, KEYED, changes)
    with pytest.raises(CommitUnknownError):
        do_commit(root_on(Unreadable(store, lost(store))), KEYED, changes)
    again = do_commit(root_on(store, "again"), KEYED, changes)
    assert (again.already_committed, again.snapshot_id) == (True, 1)
    check_history(root_on(store))


def test_renumbered_files_of_an_unknown_outcome_are_recognised():
    store = new_store(KEYED)
    commit_file(store, KEYED, "a", sequences=(0, 9))
    changes = changes_of(bucket_changes(data_file("mine")))
    place(store, KEYED, changes)
    with pytest.raises(CommitUnknownError):
        do_commit(root_on(Unreadable(store, lost(store))), KEYED, changes)
    assert do_commit(root_on(store, "again"), KEYED, changes).already_committed
    assert names_in(*latest(store)) == ["a", renumbered("mine", 10)]


def test_a_refusing_store_is_an_error_and_leaves_nothing():
    store = new_store(APPEND)
    commit_file(store, APPEND, "a")
    before = files_of(store)

    def refuse(path, data):
        raise StorageError("forbidden", path=path, operation="put_new")

    with pytest.raises(StorageError, match="forbidden"):
        do_commit(
            root_on(Interrupting(store, refuse, refuse, refuse)), APPEND, changes_of(unaware(data_file("b")), base=1)
        )
    assert files_of(store) == before


# -- writers that sleep -------------------------------------------------------------------------------------------------


def expire_to(store, first):
    """Delete the snapshots before `first`, as expiry would, without moving the hint."""
    root = root_on(store, "expire")
    for snapshot_id in root.snapshots.ids():
        if snapshot_id < first:
            store.delete(snapshot_path(TABLE, snapshot_id))


def others_go_on(store, start, count):
    def action(path, data):
        for number in range(start, start + count):
            commit_file(store, APPEND, f"o{number}", base=number - 1 or None)
        expire_to(store, start + count - 1)

    return action


@pytest.mark.parametrize("start", [1, 4])
def test_a_writer_that_slept_while_its_place_expired_does_not_turn_the_table_back(start):
    store = new_store(APPEND)
    for number in range(1, start):
        commit_file(store, APPEND, f"o{number}", base=number - 1 or None)
    changes = changes_of(unaware(data_file("slow")), base=start - 1 or None)
    place(store, APPEND, changes)
    result = do_commit(root_on(Interrupting(store, others_go_on(store, start, 8))), APPEND, changes, is_new=True)
    assert result.snapshot_id == start + 8
    root, snapshot = latest(store)
    assert names_in(root, snapshot) == sorted(["slow", *(f"o{n}" for n in range(1, start + 8))])
    assert root.snapshots.ids() == [start + 7, start + 8]


def test_a_writer_that_slept_below_a_direct_successor_is_found_out_too():
    store = new_store(APPEND)
    for number in range(1, 4):
        commit_file(store, APPEND, f"o{number}", base=number - 1 or None)

    def action(path, data):
        for number in (4, 5):
            commit_file(store, APPEND, f"o{number}", base=number - 1, rows=number)
        expire_to(store, 5)

    changes = changes_of(unaware(data_file("slow")), base=3)
    result = do_commit(root_on(Interrupting(store, action)), APPEND, changes, is_new=True)
    assert result.snapshot_id == 6
    assert root_on(store).snapshots.ids() == [5, 6]
    assert "slow" in names_in(*latest(store))


def test_a_successor_that_was_built_on_us_does_not_bury_us():
    store = new_store(APPEND)
    commit_file(store, APPEND, "a")

    def action(path, data):
        assert store.put_new(path, data)
        commit_file(store, APPEND, "next", base=2)
        expire_to(store, 2)
        return True

    result = do_commit(root_on(Interrupting(store, action)), APPEND, changes_of(unaware(data_file("b")), base=1))
    assert result.snapshot_id == 2
    assert root_on(store).snapshots.ids() == [2, 3]


def test_a_plan_that_took_half_the_retention_is_made_again():
    table_schema = msgspec.structs.replace(APPEND, options={"snapshot.time-retained": "10 s"})
    store = new_store(table_schema)
    clock = Clock()

    class Slow(Interrupting):
        slept = False

        def open_write(self, path, *, within=None):
            if not self.slept:
                self.slept = True
                clock.seconds += 6
            return self.store.open_write(path, within=within)

    result = do_commit(root_on(Slow(store), clock=clock), table_schema, changes_of(unaware(data_file("a"))))
    assert (result.attempts, result.snapshot_id) == (2, 1)
    stored, needed = check_history(root_on(store), data=False)
    assert {name for name in stored if "manifest" in name} == {
        name for name in reachable(root_on(store)) if "manifest" in name
    }
