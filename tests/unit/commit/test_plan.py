import msgspec
from unit.commit.support import bucket_changes, changes_of, data_file

from paimon_py.commit.attempts import PATIENCE_SECONDS, Limits
from paimon_py.commit.changes import Edit
from paimon_py.commit.next_snapshot import Author, ManifestLists, batch_user, next_snapshot
from paimon_py.commit.sequence_numbers import offsets
from paimon_py.commit.snapshot_delta import SnapshotDelta, compact_part, upgrade, write_part
from paimon_py.spec.data_file import FileKind
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import MIN_LONG, Base, CommitKind

AUTHOR = Author(user="me", identifier=7)
WRITTEN = ManifestLists(base=("b", 1), delta=("d", 2))
SCHEMA = TableSchema(id=2, fields=(), highest_field_id=-1)


def test_changes_become_a_part_that_was_written_and_one_that_was_compacted():
    bucket = bucket_changes(
        data_file("new"),
        changelog=(data_file("log"),),
        compacted=Edit(deleted=(data_file("new"),), added=(data_file("big", level=5),)),
    )
    first, second = write_part([bucket]), compact_part([bucket])
    assert (first.kind, [e.file.name for e in first.entries], [e.file.name for e in first.changelog]) == (
        CommitKind.APPEND,
        ["new"],
        ["log"],
    )
    assert [(e.kind, e.file.name) for e in second.entries] == [(FileKind.DELETE, "new"), (FileKind.ADD, "big")]
    assert second.kind is CommitKind.COMPACT


def test_deleting_files_makes_an_overwrite():
    part = write_part([bucket_changes(data_file("b"), deleted=(data_file("a"),))])
    assert part.kind is CommitKind.OVERWRITE
    assert [e.kind for e in part.entries] == [FileKind.DELETE, FileKind.ADD]


def test_the_first_snapshot_has_id_one_and_counts_its_rows():
    part = write_part([bucket_changes(data_file("a", rows=3), data_file("b", rows=4))])
    first = next_snapshot(None, part, WRITTEN, AUTHOR, schema=SCHEMA, uuid="x", time_millis=5)
    assert (first.id, first.schema_id, first.uuid, first.time_millis, first.next_row_id) == (1, 2, "x", 5, 0)
    assert (first.total_record_count, first.delta_record_count, first.changelog_record_count) == (7, 7, None)
    assert (first.watermark, first.statistics, first.properties, first.operation) == (None, None, None, None)
    assert (first.base_manifest_list, first.base_manifest_list_size) == ("b", 1)
    assert (first.commit_user, first.commit_identifier, first.commit_kind) == ("me", 7, CommitKind.APPEND)


def following(latest, part=None, author=AUTHOR, schema_id=2, time_millis=5, **changes):
    part = part or SnapshotDelta(kind=CommitKind.APPEND)
    latest = msgspec.structs.replace(latest, **changes)
    return next_snapshot(latest, part, WRITTEN, author, schema=msgspec.structs.replace(SCHEMA, id=schema_id), uuid="y", time_millis=time_millis)


def a_snapshot():
    part = write_part([bucket_changes(data_file("a", rows=3))])
    return next_snapshot(None, part, WRITTEN, AUTHOR, schema=SCHEMA, uuid="x", time_millis=5)


def test_totals_add_up_and_deletes_count_backwards():
    part = write_part([bucket_changes(data_file("b", rows=1), deleted=(data_file("a", rows=3),))])
    after = following(a_snapshot(), part)
    assert (after.id, after.total_record_count, after.delta_record_count) == (2, 1, -2)


def test_time_never_goes_back():
    assert following(a_snapshot(), time_millis=9).time_millis == 9
    assert following(a_snapshot(), time_millis=9, **{}).id == 2
    assert (
        next_snapshot(
            msgspec.structs.replace(a_snapshot(), time_millis=100),
            SnapshotDelta(kind=CommitKind.APPEND),
            WRITTEN,
            AUTHOR,
            schema=SCHEMA,
            uuid="y",
            time_millis=50,
        ).time_millis
        == 100
    )


def test_watermarks_never_fall_and_none_is_no_watermark():
    assert following(a_snapshot(), watermark=8).watermark == 8
    assert following(a_snapshot(), author=msgspec.structs.replace(AUTHOR, watermark=3), watermark=8).watermark == 8
    assert following(a_snapshot(), author=msgspec.structs.replace(AUTHOR, watermark=9), watermark=8).watermark == 9
    assert following(a_snapshot(), watermark=MIN_LONG).watermark is None


def test_statistics_stay_while_the_schema_does():
    assert following(a_snapshot(), statistics="stat-1").statistics == "stat-1"
    assert following(a_snapshot(), statistics="stat-1", schema_id=3).statistics is None


def test_row_ids_are_carried_and_properties_are_per_commit():
    assert following(a_snapshot(), next_row_id=40).next_row_id == 40
    assert following(a_snapshot(), next_row_id=None).next_row_id == 0
    assert following(a_snapshot(), properties={"a": "1"}).properties is None
    told = msgspec.structs.replace(AUTHOR, properties={"b": "2"})
    assert following(a_snapshot(), author=told, properties={"a": "1"}).properties == {"b": "2"}


def test_sequence_numbers_move_above_what_others_committed():
    one = bucket_changes(data_file("a", sequences=(5, 9)))
    assert offsets([one], {}) == [0]
    assert offsets([one], {(one.partition, 0): 4}) == [0]
    assert offsets([one], {(one.partition, 0): 5}) == [1]
    assert offsets([one], {(one.partition, 0): 100, (one.partition, 1): 500}) == [96]


def test_two_writers_of_one_bucket_in_one_commit_come_one_after_the_other():
    first = bucket_changes(data_file("a", sequences=(0, 9)))
    second = bucket_changes(data_file("b", sequences=(0, 3)))
    elsewhere = bucket_changes(data_file("c", sequences=(0, 3)), bucket=1)
    assert offsets([first, second, elsewhere], {}) == [0, 10, 0]
    assert offsets([first, second, elsewhere], {(first.partition, 0): 6}) == [7, 17, 0]
    later = bucket_changes(data_file("d", sequences=(10, 12)))
    assert offsets([first, later], {}) == [0, 0]
    assert offsets([bucket_changes(), first], {}) == [0, 0]


def test_files_of_an_overwrite_go_to_the_top_level_where_they_do_not_overlap():
    buckets = [
        bucket_changes(data_file("a"), data_file("b")),
        bucket_changes(data_file("c"), data_file("d"), bucket=1),
        bucket_changes(data_file("e"), bucket=2),
    ]
    adds = write_part(buckets).adds
    ranks = {"a": (0, 4), "b": (5, 9), "c": (0, 5), "d": (5, 9), "e": (3, 3)}
    assert {e.file.name: e.file.level for e in upgrade(adds, ranks, 5)} == {"a": 5, "b": 5, "c": 0, "d": 0, "e": 5}


def test_nothing_is_upgraded_if_a_file_is_above_level_zero_already():
    adds = write_part([bucket_changes(data_file("a"), data_file("b", level=2))]).adds
    assert upgrade(adds, {"a": (0, 1), "b": (2, 3)}, 5) == adds


def test_the_same_files_make_the_same_batch_user():
    changes = changes_of(bucket_changes(data_file("a")), bucket_changes(data_file("b"), bucket=1))
    turned = msgspec.structs.replace(changes, buckets=changes.buckets[::-1], base=Base(5))
    assert batch_user(changes) == batch_user(turned)
    assert batch_user(changes) != batch_user(changes_of(bucket_changes(data_file("c"))))
    assert batch_user(changes_of()) is None
    assert [len(part) for part in batch_user(changes).split("-")] == [8, 4, 4, 4, 12]


def test_a_file_that_was_only_moved_to_another_level_is_not_deleted():
    bucket = bucket_changes(
        data_file("new"),
        compacted=Edit(
            deleted=(data_file("old"), data_file("new")),
            added=(data_file("old", level=5), data_file("new", level=5), data_file("made", level=5)),
            changelog=(data_file("log"),),
        ),
    )
    assert sorted(file.name for file in bucket.made_files) == ["log", "made", "new"]
    assert sorted(file.name for file in bucket.compaction_files) == ["log", "made"]


def limits(**options):
    return Limits.of(Options({name.replace("_", "-").replace("commit-", "commit."): v for name, v in options.items()}))


def test_without_options_a_commit_is_patient():
    assert not limits().are_exhausted(500, PATIENCE_SECONDS - 1)
    assert not limits().are_exhausted(10, PATIENCE_SECONDS + 1)
    assert limits().are_exhausted(11, PATIENCE_SECONDS + 1)


def test_given_limits_are_kept():
    assert not limits(commit_max_retries="3").are_exhausted(3, 1e9)
    assert limits(commit_max_retries="3").are_exhausted(4, 0)
    for seconds, over in ((1.999, False), (2.0, False), (2.001, True)):
        assert limits(commit_timeout="2 s").are_exhausted(1, seconds) is over
    for seconds, over in ((PATIENCE_SECONDS - 0.001, False), (PATIENCE_SECONDS, False), (PATIENCE_SECONDS + 0.001, True)):
        assert limits().are_exhausted(11, seconds) is over


def test_waits_grow_to_a_bound_and_are_random():
    default = limits()
    assert [default.wait_seconds(lost, 0.5) for lost in (1, 2, 3)] == [0.005, 0.01, 0.02]
    assert default.wait_seconds(40, 0.999) <= 10
    assert default.wait_seconds(1, 0.0) == 0.0
