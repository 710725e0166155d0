"""What Iceberg readers see after each verb, and what they see when something went wrong before."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from unit.iceberg.reader import metadata, rows, seen, snapshot_of, version_of
from unit.iceberg.support import COLUMNS, DIRECTORY, PATH, VECTORS, World, data, stored

from paimon_py import (
    AddColumn,
    OptionError,
    PaimonWarning,
    RenameColumn,
    Schema,
    SetOption,
    StorageError,
    UnsupportedError,
    UsageError,
)
from paimon_py.storage.memory_store import MemoryStore


def names(world, directory=DIRECTORY):
    return sorted(status.name for status in world.store.list(directory))


def test_every_commit_is_seen_with_its_number():
    world = World()
    for number in (1, 2, 3):
        result = world.table.write_arrow(data(number))
        assert result.warnings == ()
        assert seen(world.store, DIRECTORY) == (number, stored(world.table))
    value = metadata(world.store, DIRECTORY)
    assert [one["snapshot-id"] for one in value["snapshots"]] == [1, 2, 3]
    assert value["refs"] == {"main": {"snapshot-id": 3, "type": "branch"}}
    assert [one["snapshot-id"] for one in value["snapshot-log"]] == [1, 2, 3]
    assert rows(world.store, value, 2) == [[1, "a"], [2, "a"]]
    assert snapshot_of(value)["summary"]["total-records"] == "3"


def test_nothing_is_done_where_the_option_is_off():
    world = World(**{"metadata.iceberg.storage": None})
    assert world.table.write_arrow(data(1)).warnings == ()
    assert world.store.list(DIRECTORY) == []
    assert world.table.iceberg().enabled is False
    with pytest.raises(UsageError, match="metadata.iceberg.storage"):
        world.table.publish_iceberg()


def test_metadata_for_a_hadoop_catalog_is_stored_beside_the_databases():
    world = World(**{"metadata.iceberg.storage": "hadoop-catalog"})
    world.table.write_arrow(data(1))
    assert seen(world.store, "/w/iceberg/d/t/metadata") == (1, [[1, "a"]])
    assert metadata(world.store, "/w/iceberg/d/t/metadata")["location"] == PATH
    assert world.store.list(DIRECTORY) == []


def test_overwrites_and_truncation_take_files_away():
    world = World()
    world.table.write_arrow(data(1))
    world.table.write_arrow(data(2), overwrite={})
    assert seen(world.store, DIRECTORY) == (2, [[2, "a"]])
    assert snapshot_of(metadata(world.store, DIRECTORY))["summary"]["operation"] == "overwrite"
    world.table.truncate()
    assert seen(world.store, DIRECTORY) == (3, [])


def test_compaction_is_a_replacement_and_rows_stay():
    world = World(**{"compaction.min.file-num": "2"})
    for number in range(4):
        world.table.write_arrow(data(number))
    world.table.compact(full=True)
    assert seen(world.store, DIRECTORY) == (5, stored(world.table))
    assert snapshot_of(metadata(world.store, DIRECTORY))["summary"]["operation"] == "replace"


def test_partitions_with_null_and_odd_names_are_seen():
    columns = pa.schema([("k", pa.int64()), ("größe", pa.string()), ("d", pa.date32())])
    world = World(columns, partition_by=["größe", "d"])
    world.table.write_arrow(pa.table({"k": [1, 2], "größe": [None, "a/b"], "d": pa.array([None, 3], pa.date32())}))
    world.table.write_arrow(pa.table({"k": [3], "größe": [None], "d": pa.array([None], pa.date32())}))
    assert [row[0] for row in rows(world.store, metadata(world.store, DIRECTORY))] == [1, 2, 3]
    world.table.drop_partitions([{"größe": "a/b"}])
    assert [row[0] for row in rows(world.store, metadata(world.store, DIRECTORY))] == [1, 3]
    world.table.drop_partitions([{"größe": None}])
    assert rows(world.store, metadata(world.store, DIRECTORY)) == []


def test_columns_are_found_by_id_after_the_schema_changed():
    world = World()
    world.table.write_arrow(data(1))
    world.table.alter(RenameColumn("v", "w"), AddColumn("n", "INT"))
    assert version_of(world.store, DIRECTORY) == 1
    world.table.write_arrow(pa.table({"k": [2], "w": ["b"], "n": pa.array([7], pa.int32())}))
    value = metadata(world.store, DIRECTORY)
    assert [field["name"] for field in value["schemas"][-1]["fields"]] == ["k", "w", "n"]
    assert rows(world.store, value) == [[1, "a", None], [2, "b", 7]]


def test_a_table_with_keys_shows_the_state_of_the_last_full_compaction():
    world = World(key=["k"])
    world.table.write_arrow(data(1, 2))
    world.table.write_arrow(data(2, v="b"))
    assert seen(world.store, DIRECTORY) == (2, [[1, "a"], [2, "a"]])
    state = world.table.iceberg()
    assert state.hidden_rows == 1 and "full=True" in state.not_seen[0]
    world.table.compact(full=True)
    assert seen(world.store, DIRECTORY) == (3, stored(world.table))
    assert world.table.iceberg().not_seen == ()


def test_vectors_of_row_operations_and_of_lookup_compaction_are_seen():
    world = World(**VECTORS)
    world.table.write_arrow(data(*range(9)))
    world.table.delete("k in (2, 5)")
    assert seen(world.store, DIRECTORY) == (2, stored(world.table))
    world.table.delete("k = 7")
    assert seen(world.store, DIRECTORY) == (3, stored(world.table))
    keyed = World(key=["k"], **VECTORS)
    for round_ in ("a", "b", "c"):
        keyed.table.write_arrow(data(1, 2, 3, v=round_) if round_ == "a" else data(2, v=round_))
        keyed.table.compact()
        keyed.table.compact(full=True) if round_ == "a" else None
    value = metadata(keyed.store, DIRECTORY)
    assert value["format-version"] == 3 and value["next-row-id"] >= 3


def test_hidden_vectors_and_decimal_partitions_are_warned_of():
    with pytest.warns(PaimonWarning, match="metadata.iceberg.format-version=3 and deletion-vectors.bitmap64=true"):
        World(**{"deletion-vectors.enabled": "true"})
    columns = pa.schema([("k", pa.int64()), ("p", pa.decimal128(9, 2))])
    with pytest.warns(PaimonWarning, match="DECIMAL"):
        World(columns, partition_by=["p"])


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        (pa.schema([("t", pa.timestamp("s"))]), {}, r"TIMESTAMP\(0\)"),
        (pa.schema([("t", pa.timestamp("ns"))]), {}, "format-version=3"),
        (Schema([("t", "TIME(6)")]), {}, r"TIME\(6\)"),
        (Schema([("s", "ARRAY<TIMESTAMP(1)>")]), {}, r"TIMESTAMP\(1\)"),
    ],
)
def test_types_that_iceberg_lacks_are_refused_when_the_table_is_created(columns, options, words):
    with pytest.raises(UnsupportedError, match=words):
        World(columns, **options)


def test_options_are_checked_and_versions_do_not_fall():
    with pytest.raises(OptionError, match="2 or 3"):
        World(**{"metadata.iceberg.format-version": "4"})
    with pytest.raises(OptionError, match="manifest-compression"):
        World(**{"metadata.iceberg.manifest-compression": "lzo"})
    world = World(**{"metadata.iceberg.format-version": "3"})
    with pytest.raises(OptionError, match="cannot fall"):
        world.table.alter(SetOption("metadata.iceberg.format-version", "2"))
    with pytest.raises(OptionError, match=r"metadata\.iceberg\.uri"):
        world.table.alter(SetOption("metadata.iceberg.storage", "hive-catalog"))


def test_the_format_version_can_be_raised():
    world = World()
    world.table.write_arrow(data(1))
    world.table.alter(SetOption("metadata.iceberg.format-version", "3"))
    world.table.write_arrow(data(2))
    value = metadata(world.store, DIRECTORY)
    assert (value["format-version"], value["next-row-id"]) == (3, 2)
    assert seen(world.store, DIRECTORY) == (2, [[1, "a"], [2, "a"]])


def test_tags_are_refs_as_long_as_their_snapshot_is_listed():
    world = World(**{"snapshot.num-retained.min": "2", "snapshot.num-retained.max": "2"})
    for number in (1, 2):
        world.table.write_arrow(data(number))
    world.table.create_tag("a1", 2)
    world.table.create_tag("a2", 2)
    refs = metadata(world.store, DIRECTORY)["refs"]
    assert {name: ref["snapshot-id"] for name, ref in refs.items()} == {"main": 2, "a1": 2, "a2": 2}
    world.table.rename_tag("a1", "b1")
    world.table.delete_tag("a2")
    assert set(metadata(world.store, DIRECTORY)["refs"]) == {"main", "b1"}
    world.table.write_arrow(data(3))
    assert set(metadata(world.store, DIRECTORY)["refs"]) == {"main", "b1"}
    world.table.write_arrow(data(4))
    assert set(metadata(world.store, DIRECTORY)["refs"]) == {"main"}


def test_old_snapshots_go_with_their_files():
    world = World(**{"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2"})
    for number in range(5):
        world.table.write_arrow(data(number), overwrite={})
    assert [one["snapshot-id"] for one in metadata(world.store, DIRECTORY)["snapshots"]] == [4, 5]
    assert len([name for name in names(world) if name.startswith("snap-")]) == 2
    assert [name for name in names(world) if name.startswith("v")] == ["v5.metadata.json", "version-hint.text"]


def test_old_versions_stay_as_asked():
    world = World(**{"metadata.iceberg.previous-versions-max": "2"})
    for number in range(5):
        world.table.write_arrow(data(number))
    assert [name for name in names(world) if name.startswith("v") and name != "version-hint.text"] == [
        f"v{number}.metadata.json" for number in (3, 4, 5)
    ]


@pytest.mark.parametrize("previous", [1, 2, 3])
def test_old_versions_can_be_read_as_long_as_they_stay(previous):
    """Manifests are merged and each version has only one snapshot, so that versions share few files."""
    small = {"metadata.iceberg.compaction.min.file-num": "3", "metadata.iceberg.compaction.max.file-num": "3"}
    one = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"}
    world = World(**small, **one, **{"metadata.iceberg.previous-versions-max": str(previous)})
    for number in range(1, 9):
        world.table.write_arrow(data(number))
        for kept in range(max(1, number - previous), number + 1):
            found = rows(world.store, metadata(world.store, DIRECTORY, kept))
            assert found == [[key, "a"] for key in range(1, kept + 1)]


def test_many_small_manifests_are_merged():
    small = {"metadata.iceberg.compaction.min.file-num": "3", "metadata.iceberg.compaction.max.file-num": "3"}
    world = World(**small)
    for number in range(7):
        world.table.write_arrow(data(number))
        assert seen(world.store, DIRECTORY) == (number + 1, stored(world.table))
    assert len([name for name in names(world) if "-m" in name]) < 12


# -- histories -------------------------------------------------------------------------------------------------------


def test_a_rollback_is_published_immediately_and_keeps_the_history():
    world = World()
    for number in range(1, 5):
        world.table.write_arrow(data(number))
    uuid = metadata(world.store, DIRECTORY)["table-uuid"]
    assert world.table.rollback_to(2).warnings == ()
    value = metadata(world.store, DIRECTORY)
    assert seen(world.store, DIRECTORY) == (2, [[1, "a"], [2, "a"]])
    assert [one["snapshot-id"] for one in value["snapshots"]] == [1, 2]
    world.table.write_arrow(data(30))
    assert seen(world.store, DIRECTORY) == (3, [[1, "a"], [2, "a"], [30, "a"]])
    assert metadata(world.store, DIRECTORY)["table-uuid"] == uuid


def test_a_rollback_of_a_table_with_keys_shows_the_version_of_that_time():
    world = World(key=["k"])
    world.table.write_arrow(data(1, 2))
    world.table.compact(full=True)
    world.table.write_arrow(data(2, v="b"))
    world.table.write_arrow(data(2, v="c"))
    world.table.rollback_to(3)
    assert seen(world.store, DIRECTORY) == (3, [[1, "a"], [2, "a"]])


def test_the_next_commit_notices_a_rollback_by_others():
    world = World()
    for number in range(1, 5):
        world.table.write_arrow(data(number))
    world.table.alter(SetOption("metadata.iceberg.storage", "disabled"))
    world.table.rollback_to(2)
    world.table.alter(SetOption("metadata.iceberg.storage", "table-location"))
    state = world.table.iceberg()
    assert state.snapshot_id is None and "no longer exists" in state.problems[0]
    world.table.write_arrow(data(30))
    assert seen(world.store, DIRECTORY) == (3, [[1, "a"], [2, "a"], [30, "a"]])
    assert [name for name in names(world) if name.startswith("v4")] == []
    assert world.table.iceberg().problems == ()


def test_a_fast_forward_is_seen():
    world = World()
    world.table.write_arrow(data(1))
    branch = world.table.create_branch("b")
    branch.write_arrow(data(2))
    assert seen(world.store, DIRECTORY) == (1, [[1, "a"]])
    world.table.fast_forward("b")
    assert seen(world.store, DIRECTORY) == (2, [[1, "a"], [2, "a"]])


def test_metadata_of_another_iceberg_writer_is_replaced_with_a_warning():
    world = World()
    world.table.write_arrow(data(1))
    value = metadata(world.store, DIRECTORY)
    stranger = {**value, "current-snapshot-id": 77, "snapshots": [{**value["snapshots"][0], "snapshot-id": 77}]}
    world.store.put(f"{DIRECTORY}/v2.metadata.json", json.dumps(stranger).encode())
    assert "another writer" in world.table.iceberg().problems[0]
    with pytest.warns(PaimonWarning, match="another writer"):
        result = world.table.write_arrow(data(2))
    assert "another writer" in result.warnings[0]
    assert seen(world.store, DIRECTORY) == (2, [[1, "a"], [2, "a"]])
    assert metadata(world.store, DIRECTORY)["table-uuid"] == value["table-uuid"]


def test_the_next_publication_includes_commits_made_without_the_option():
    for key in ([], ["k"]):
        world = World(key=key)
        world.table.write_arrow(data(1))
        world.table.alter(SetOption("metadata.iceberg.storage", "disabled"))
        world.table.write_arrow(data(2))
        world.table.compact(full=True)
        world.table.alter(SetOption("metadata.iceberg.storage", "table-location"))
        world.table.write_arrow(data(3))
        state = world.table.iceberg()
        assert (state.lag, state.problems) == (0, ())
        assert rows(world.store, metadata(world.store, DIRECTORY))[:2] == [[1, "a"], [2, "a"]]


def test_a_broken_or_missing_base_is_rebuilt():
    for damage in ("list", "manifest", "version"):
        world = World()
        world.table.write_arrow(data(1))
        world.table.write_arrow(data(2))
        begin, end = {"list": ("snap-", ".avro"), "manifest": ("", "-m0.avro"), "version": ("v", ".json")}[damage]
        for name in names(world):
            if name.startswith(begin) and name.endswith(end):
                world.store.put(f"{DIRECTORY}/{name}", b"damaged")
        assert world.table.iceberg().problems
        world.table.write_arrow(data(3))
        world.table.write_arrow(data(4), overwrite={})
        assert seen(world.store, DIRECTORY) == (4, [[4, "a"]])
        assert world.table.iceberg().problems == ()


def test_publishing_again_repairs_everything_and_keeps_the_uuid():
    world = World(key=["k"])
    world.table.write_arrow(data(1, 2))
    world.table.compact(full=True)
    world.table.write_arrow(data(2, v="b"))
    uuid = metadata(world.store, DIRECTORY)["table-uuid"]
    done = world.table.publish_iceberg()
    assert (done.version, done.made) == (3, "anew")
    assert seen(world.store, DIRECTORY) == (3, [[1, "a"], [2, "a"]])
    assert metadata(world.store, DIRECTORY)["table-uuid"] == uuid
    world.table.write_arrow(data(5))
    world.table.compact(full=True)
    assert seen(world.store, DIRECTORY) == (5, stored(world.table))


def test_remains_of_a_dropped_table_are_ignored():
    world = World(**{"metadata.iceberg.storage": "hadoop-catalog"})
    directory = "/w/iceberg/d/t/metadata"
    for number in range(3):
        world.table.write_arrow(data(number))
    options = dict(world.table.options)
    world.catalog.drop_table("d.t")
    again = world.catalog.create_table("d.t", COLUMNS, options=options)
    again.write_arrow(data(9))
    assert seen(world.store, directory) == (1, [[9, "a"]])
    assert len(names(world, directory)) == 4


def test_a_failed_publication_is_a_warning_and_the_next_commit_heals(monkeypatch):
    world = World()
    world.table.write_arrow(data(1))
    put = MemoryStore.put

    def failing(store, path, content, *, within=None):
        if "/metadata/" in path:
            raise StorageError("no room is left", path=path, operation="put", transient=False)
        put(store, path, content, within=within)

    with monkeypatch.context() as patch, pytest.warns(PaimonWarning, match="snapshot 2 was committed, but .* no room"):
        patch.setattr(MemoryStore, "put", failing)
        result = world.table.write_arrow(data(2))
    assert result.snapshot_id == 2 and "publish_iceberg" in result.warnings[0]
    assert seen(world.store, DIRECTORY) == (1, [[1, "a"]])
    assert world.table.iceberg().lag == 1
    world.table.write_arrow(data(3))
    assert seen(world.store, DIRECTORY) == (3, [[1, "a"], [2, "a"], [3, "a"]])


def test_a_repeated_commit_repeats_the_publication():
    world = World()
    world.table.write_arrow(data(1), user="u", identifier=1)
    for name in names(world):
        world.store.delete(f"{DIRECTORY}/{name}")
    again = world.table.write_arrow(data(1), user="u", identifier=1)
    assert again.already_committed and again.warnings == ()
    assert seen(world.store, DIRECTORY) == (1, [[1, "a"]])


@pytest.mark.parametrize("hint", [b"1", None])
def test_a_repeated_commit_lets_readers_find_a_version_whose_publisher_died(hint):
    """Its version is there, and the hint does not name it: a reader that follows no further numbers finds the older one."""
    world = World()
    for number in (1, 2):
        world.table.write_arrow(data(number), user="u", identifier=number)
    world.store.delete(f"{DIRECTORY}/version-hint.text")
    if hint is not None:
        world.store.put(f"{DIRECTORY}/version-hint.text", hint)
    assert world.table.write_arrow(data(2), user="u", identifier=2).already_committed
    assert world.store.get(f"{DIRECTORY}/version-hint.text") == b"2"


def test_orphans_are_the_files_that_no_version_references():
    """Files of vectors belong to a version as manifests and lists do."""
    world = World(**VECTORS, **{"metadata.iceberg.delete-after-commit.enabled": "false", "bucket": "-1"})
    world.table.write_arrow(data(1, 2, 3))
    world.table.delete("k = 2")
    world.table.write_arrow(data(4, 5))
    world.table.delete("k = 4")
    before = names(world)
    assert len([name for name in before if name.endswith(".puffin")]) >= 2
    for name in ("x-deletes.puffin", "x-m0.avro", "snap-1-x.avro"):
        world.store.put(f"{DIRECTORY}/{name}", b"left")
    world.clock.seconds += 86_400 * 9
    assert world.table.remove_orphans(dry_run=False).files == 3
    assert names(world) == before and seen(world.store, DIRECTORY)[1] == stored(world.table) == [[1, "a"], [3, "a"], [5, "a"]]


def test_a_rollback_to_a_version_without_files_rebuilds_it():
    world = World(**{"metadata.iceberg.delete-after-commit.enabled": "false"})
    for number in (1, 2, 3):
        world.table.write_arrow(data(number))
    world.table.create_tag("late", 3)
    world.table.publish_iceberg()  # the manifest lists of versions 1 and 2 go
    assert version_of(world.store, DIRECTORY) == 3
    world.table.rollback_to(2)
    assert seen(world.store, DIRECTORY) == (2, [[1, "a"], [2, "a"]])
    assert set(metadata(world.store, DIRECTORY)["refs"]) == {"main"}
    assert world.table.iceberg().problems == ()


def test_a_kept_version_loses_the_tags_that_a_rollback_took():
    world = World(**{"metadata.iceberg.delete-after-commit.enabled": "false"})
    world.table.write_arrow(data(1))
    world.table.create_tag("a", 1)
    world.table.write_arrow(data(2))
    world.table.delete_tag("a")
    world.table.rollback_to(1)
    assert set(metadata(world.store, DIRECTORY)["refs"]) == {"main"}


def check_schemas(world):
    """Readers find the schemas of the table, also those that no commit has used yet."""
    value = metadata(world.store, DIRECTORY)
    present = world.table.schema
    (current,) = (one for one in value["schemas"] if one["schema-id"] == value["current-schema-id"])
    assert [(one["id"], one["name"]) for one in current["fields"]] == [(field.id, field.name) for field in present.fields]
    assert value["last-column-id"] >= max(field.id for field in present.fields)


@pytest.mark.parametrize("deletes_old", ["true", "false"])
@pytest.mark.parametrize("commits_after", [0, 1])
def test_a_rollback_after_a_schema_change_shows_the_present_schema(deletes_old, commits_after):
    world = World(**{"metadata.iceberg.delete-after-commit.enabled": deletes_old})
    for number in (1, 2, 3):
        world.table.write_arrow(data(number))
    world.table.alter(AddColumn("n", "INT"), RenameColumn("v", "w"))
    for number in range(commits_after):
        world.table.write_arrow(data(10 + number).rename_columns(["k", "w"]))
    world.table.rollback_to(2)
    check_schemas(world)
    assert world.table.iceberg().problems == ()


@pytest.mark.parametrize("deletes_old", ["true", "false"])
def test_a_fast_forward_to_a_branch_with_another_schema_shows_that_schema(deletes_old):
    world = World(**{"metadata.iceberg.delete-after-commit.enabled": deletes_old})
    world.table.write_arrow(data(1))
    world.table.create_branch("b", 1)
    branch = world.table.branch("b")
    branch.alter(AddColumn("n", "INT"))
    branch.write_arrow(data(5))
    world.table.alter(AddColumn("m", "STRING"))
    world.table.write_arrow(data(2))
    world.table.fast_forward("b", discard=True)
    world.table.refresh()
    assert world.table.schema.names[-1] == "n"
    check_schemas(world)
    world.table.rollback_to(1)
    check_schemas(world)


def overtake(monkeypatch, other, *, dies=False):
    """Another writer commits snapshot 3 right before the publisher of snapshot 2 sets the hint, and may die after that."""
    put = MemoryStore.put

    def overtaken(store, path, content, *, within=None):
        if not path.endswith("version-hint.text") or content != b"2":
            return put(store, path, content, within=within)
        monkeypatch.setattr(MemoryStore, "put", put)
        other.write_arrow(data(3))
        assert version_of(store, DIRECTORY) == 3
        put(store, path, content, within=within)
        assert store.get(f"{DIRECTORY}/version-hint.text") == b"2"
        if dies:
            raise KeyboardInterrupt
        return None

    monkeypatch.setattr(MemoryStore, "put", overtaken)


def test_a_late_publisher_that_lowered_the_hint_corrects_it(monkeypatch):
    world = World()
    world.table.write_arrow(data(1))
    overtake(monkeypatch, world.opened())
    assert world.table.write_arrow(data(2)).snapshot_id == 2
    assert seen(world.store, DIRECTORY) == (3, [[1, "a"], [2, "a"], [3, "a"]])


@pytest.mark.parametrize("heal", ["commit", "publish"])
def test_the_next_publication_corrects_a_hint_that_a_dead_publisher_lowered(monkeypatch, heal):
    world = World()
    world.table.write_arrow(data(1))
    overtake(monkeypatch, world.opened(), dies=True)
    with pytest.raises(KeyboardInterrupt):
        world.table.write_arrow(data(2))
    table = world.opened()
    if heal == "commit":
        table.write_arrow(data(4))
    else:
        table.publish_iceberg()
    latest = table.snapshot().id
    assert seen(world.store, DIRECTORY) == (latest, stored(table))
    assert [one["snapshot-id"] for one in metadata(world.store, DIRECTORY)["snapshots"]][-1] == latest


def test_rows_that_readers_do_not_see_yet_are_reported():
    world = World(key=["k"])
    world.table.write_arrow(data(1))
    world.table.compact(full=True)
    world.table.write_arrow(data(1, v="b"))
    world.table.alter(SetOption("metadata.iceberg.format-version", "3"))
    world.table.write_arrow(data(1, v="c"))
    assert seen(world.store, DIRECTORY) == (4, [])
    assert "publish_iceberg" in world.table.iceberg().not_seen[0]
    world.table.publish_iceberg()
    assert seen(world.store, DIRECTORY) == (4, [[1, "a"]])
    assert "full=True" in world.table.iceberg().not_seen[0]


def test_a_renamed_table_is_published_at_its_new_path():
    world = World()
    world.table.write_arrow(data(1))
    uuid = metadata(world.store, DIRECTORY)["table-uuid"]
    world.catalog.rename_table("d.t", "d.u")
    table, directory = world.catalog.table("d.u"), "/w/d.db/u/metadata"
    assert "renamed" in table.iceberg().problems[0]
    table.write_arrow(data(2))
    assert seen(world.store, directory) == (2, [[1, "a"], [2, "a"]])
    value = metadata(world.store, directory)
    assert (value["location"], value["table-uuid"]) == ("/w/d.db/u", uuid)
    assert table.iceberg().problems == ()
