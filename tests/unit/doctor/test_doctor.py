"""The doctor: each check finds its illness in a table that has it, and nothing in one that is healthy."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from unit.commit.support import Clock
from unit.public import QUICK

from paimon_py import Catalog, Finding, RemoveOption, SetOption, SnapshotExpiredError
from paimon_py.doctor.checks import examine
from paimon_py.doctor.facts import Broken, Commit, ConsumerBacklog, Facts, FileHolder, ManifestFacts
from paimon_py.doctor.gather import gather
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.consumers import Consumer
from paimon_py.metadata.open_table import OpenTable

COLUMNS = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.string())])
LAZY = {"write-only": "true"}


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def catalog(tmp_path, clock):
    found = Catalog.open(tmp_path / "wh", QUICK, env=Env(clock, None, SerialPool()))
    found.create_database("d")
    return found


def rows(keys, v="x"):
    return pa.table({"k": list(keys), "v": [v] * len(list(keys))})


def keyed(catalog, **options):
    options = {"bucket": "1", **{name.replace("_", "-"): text for name, text in options.items()}}
    return catalog.create_table("d.keyed", COLUMNS, primary_key=["k"], options=options)


def codes(table, **how):
    return [finding.code for finding in table.doctor(**how)]


def only(table, code, **how):
    found = [finding for finding in table.doctor(**how) if finding.code == code]
    assert len(found) == 1, table.doctor(**how)
    assert found[0].message and found[0].mend
    return found[0]


def switch_vectors_on_as_java_does(table):
    """Another schema, and no compaction."""
    root, schema = table._root, table._schema
    on = {**schema.options, "deletion-vectors.enabled": "true"}
    assert root.schemas.add(msgspec.structs.replace(schema, id=schema.id + 1, options=on))


def test_runs_from_before_deletion_vectors_are_found_until_a_full_compaction(catalog):
    table = keyed(catalog, **{"deletion-vectors.modifiable": "true"})
    table.write_arrow(rows(range(1000)))
    table.compact(full=True)
    for number in range(5):
        table.write_arrow(rows([7], f"new {number}"))
    assert "unmarked-rows" not in codes(table)
    switch_vectors_on_as_java_does(table)
    table = table.refresh()
    assert table.scan().to_arrow()["k"].to_pylist().count(7) == 2
    found = only(table, "unmarked-rows")
    assert found.places == ("bucket-0",) and found.severity == "problem"
    table.compact(full=True)
    assert table.scan().to_arrow().num_rows == 1000
    assert "unmarked-rows" not in codes(table)


def data_files(table):
    return sorted(path for path in Path(table.location).rglob("data-*") if path.is_file())


# -- healthy --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("deep", [False, True])
def test_healthy_tables_have_no_findings(catalog, deep):
    table = keyed(catalog)
    assert table.doctor(deep=deep) == []
    for number in range(3):
        table.write_arrow(rows(range(10), str(number)))
    plain = catalog.create_table("d.plain", COLUMNS)
    plain.write_arrow(rows(range(10)))
    dynamic = catalog.create_table("d.dynamic", COLUMNS, primary_key=["k"], options={"bucket": "-1"})
    dynamic.write_arrow(rows(range(10)))
    dynamic.write_arrow(rows(range(5, 15)))
    vectors = catalog.create_table(
        "d.vectors", COLUMNS, primary_key=["k"], options={"bucket": "2", "deletion-vectors.enabled": "true"}
    )
    vectors.write_arrow(rows(range(10)))
    vectors.write_arrow(rows(range(5)))
    for one in (table, plain, dynamic, vectors):
        one.create_tag("kept")
        before = sorted(Path(one.location).rglob("*"))
        assert one.doctor(deep=deep) == []
        assert sorted(Path(one.location).rglob("*")) == before


def test_the_doctor_reports_progress(catalog):
    told = []
    table = keyed(catalog)
    for _ in range(2):
        table.write_arrow(rows([1, 2], "a"))
    table.doctor(progress=lambda *state: told.append(state))
    last = {what: (done, total) for done, total, what in told}
    assert list(last) == ["files", "snapshots", "tags", "states", "directories"]
    assert all(done == total > 0 for done, total in last.values())


def test_findings_are_values_sorted_by_severity(catalog):
    table = keyed(catalog, **LAZY)
    for number in range(9):
        table.write_arrow(rows([1, 2], str(number)))
    data_files(table)[0].unlink()
    found = table.doctor()
    assert [one.severity for one in found] == ["problem", "warning", "warning"]
    assert pickle.loads(pickle.dumps(found)) == found and isinstance(found[0], Finding)


# -- files ----------------------------------------------------------------------------------------------------------------


def test_missing_files_are_found(catalog):
    table = keyed(catalog)
    table.write_arrow(rows(range(10)))
    gone = data_files(table)[0]
    gone.unlink()
    found = only(table, "missing-files")
    assert (found.severity, found.figure, found.places) == ("problem", 1, (str(gone),))
    assert codes(table, deep=True) == ["missing-files"]


def test_a_snapshot_that_expires_meanwhile_is_not_a_missing_file(catalog, monkeypatch):
    table = keyed(catalog)
    table.write_arrow(rows(range(10)))

    def expiring(*_, **__):
        Path(table.location, "snapshot", "snapshot-1").unlink()
        return [Broken("data-1.parquet")]

    monkeypatch.setattr("paimon_py.doctor.gather.broken_files", expiring)
    with pytest.raises(SnapshotExpiredError, match="call doctor"):
        table.doctor()


def test_files_of_the_wrong_size_are_found(catalog):
    table = keyed(catalog)
    table.write_arrow(rows(range(10)))
    cut = data_files(table)[0]
    cut.write_bytes(cut.read_bytes()[:-5])
    found = only(table, "damaged-files")
    assert (found.severity, found.figure) == ("problem", 1) and str(cut) in found.places[0]


def test_damage_inside_files_is_found_by_a_deep_check(catalog):
    table = keyed(catalog)
    table.write_arrow(rows(range(10)))
    (path,) = data_files(table)
    path.write_bytes(path.read_bytes()[:-20] + b"\xff" * 20)
    assert codes(table) == []
    assert str(path) in only(table, "damaged-files", deep=True).places[0]


def test_missing_index_files_are_found(catalog):
    table = catalog.create_table("d.dynamic", COLUMNS, primary_key=["k"], options={"bucket": "-1"})
    table.write_arrow(rows(range(10)))
    for path in Path(table.location, "index").iterdir():
        path.unlink()
    assert only(table, "missing-files").figure == 1


@pytest.mark.parametrize("what", ["manifest-list-*", "manifest-*", "tag"])
@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_damaged_metadata_are_findings_and_not_errors(catalog, what, damage):
    table = keyed(catalog)
    table.write_arrow(rows(range(10)))
    if what == "tag":
        table.create_tag("t")
        table.write_arrow(rows(range(10)))
        name = table.snapshot(1).value.delta_manifest_list
        chosen = [Path(table.location, "manifest", name)]
        table.expire_snapshots(retain_min=1, retain_max=1)
    else:
        chosen = [path for path in Path(table.location, "manifest").glob(what) if "list" in path.name or "list" not in what]
    for path in chosen:
        path.write_bytes(path.read_bytes()[:20]) if damage == "cut" else path.unlink()
    found = [one for one in catalog.table("d.keyed").doctor() if one.severity == "problem"]
    assert {one.code for one in found} <= {"damaged-files", "missing-files"} and found
    assert catalog.table("d.keyed").doctor(deep=True)


def test_small_files_of_append_tables_are_found_and_mended(catalog):
    table = catalog.create_table("d.plain", COLUMNS, options=LAZY)
    for _ in range(4):
        table.write_arrow(rows([1]))
    assert codes(table) == []
    table.write_arrow(rows([1]))
    found = only(table, "small-files")
    assert (found.figure, found.option, found.places) == (5, "compaction.min.file-num", ("bucket-0: 5 files",))
    table.compact()
    assert codes(table) == []


# -- levels ---------------------------------------------------------------------------------------------------------------


def test_level_0_piles_up_and_readers_merge_too_many_runs(catalog):
    table = keyed(catalog, **LAZY)
    for number in range(5):
        table.write_arrow(rows([1, 2], str(number)))
    assert codes(table) == []
    table.write_arrow(rows([1, 2]))
    assert codes(table) == ["read-amplification"]
    assert only(table, "read-amplification").figure == 6.0
    for number in range(3):
        table.write_arrow(rows([1, 2], str(number)))
    found = only(table, "level-0-pile-up")
    assert (found.figure, found.option) == (9, "num-sorted-run.stop-trigger")
    assert found.places == ("bucket-0: 9 files on level 0",)
    catalog.table("d.keyed").compact(full=True)
    assert codes(table) == []


def test_a_key_that_is_overwritten_again_and_again_is_found(catalog):
    table = keyed(catalog, **LAZY)
    for number in range(9):
        table.write_arrow(rows([number % 2 * number], str(number)))
    assert "skewed-keys" not in codes(table)
    for number in range(5):
        table.write_arrow(rows([0], str(number)))
    assert only(table, "skewed-keys").figure == 10


def test_skewed_buckets_are_found(catalog):
    options = {"bucket": "8", "bucket-key": "k", "target-file-size": "1 kb"}
    even = catalog.create_table("d.even", COLUMNS, options=options)
    even.write_arrow(rows(range(2000)))
    assert codes(even) == []
    table = catalog.create_table("d.skewed", COLUMNS, options=options)
    table.write_arrow(rows([7] * 2000))
    table.write_arrow(rows(range(40)))
    found = only(table, "skewed-buckets")
    assert found.figure > 7 and len(found.places) == 1


# -- metadata -------------------------------------------------------------------------------------------------------------


def test_manifests_that_grew_are_found_and_mended(catalog):
    table = keyed(catalog, **LAZY)
    for number in range(14):
        table.write_arrow(rows([1, 2], str(number)))
    assert "many-manifests" not in codes(table)
    table.alter(SetOption("manifest.merge-min-count", "10"))
    assert only(table, "many-manifests").figure == 14
    table.compact_manifests()
    assert "many-manifests" not in codes(table)


def test_snapshots_that_are_due_to_expire_are_found(catalog, clock):
    table = keyed(catalog, **{"snapshot.expire.limit": "1", "snapshot.num-retained.min": "2", **LAZY})
    for number in range(5):
        table.write_arrow(rows([1, 2], str(number)))
    assert codes(table) == []
    clock.seconds += 7200
    found = only(table, "old-snapshots")
    assert (found.figure, found.option) == (3, "snapshot.num-retained.max")
    for _ in range(3):
        table.expire_snapshots()
    assert codes(table) == []


def test_snapshots_and_tags_that_retain_many_bytes_are_found(catalog):
    table = keyed(catalog, **{"target-file-size": "1 kb"})
    table.write_arrow(rows(range(3000), "a long text to fill a file"))
    table.create_tag("t")
    assert codes(table) == []
    table.write_arrow(rows([1]), overwrite={})
    assert codes(table) == ["snapshots-hold-much", "tags-hold-much"]
    table.expire_snapshots(retain_min=1, retain_max=1)
    assert codes(table) == ["tags-hold-much"]
    assert only(table, "tags-hold-much").figure > 1024
    table.delete_tag("t")
    assert codes(table) == []


def test_consumers_that_retain_snapshots_are_found(catalog, clock):
    table = keyed(catalog, **{"snapshot.num-retained.min": "2", "consumer.expiration-time": "1 d", **LAZY})
    for number in range(5):
        table.write_arrow(rows([1, 2], str(number)))
    table._root.consumers.put(Consumer("slow", 1))
    table._root.consumers.put(Consumer("quick", 6))
    clock.seconds += 7200
    found = only(table, "consumers-behind")
    assert (found.figure, found.places) == (5, ("slow: 5 behind",))
    table.delete_consumer("slow")
    assert codes(table) == []


def test_orphans_are_found_and_mended(catalog):
    table = keyed(catalog)
    table.write_arrow(rows(range(10)))
    orphan = data_files(table)[0].with_name("data-0b6a3f42-0000-4000-8000-000000000000-0.parquet")
    orphan.write_bytes(b"orphan")
    assert codes(table) == []
    os.utime(orphan, (1, 1))
    found = only(table, "orphans")
    assert (found.figure, found.places, orphan.exists()) == (1, (str(orphan),), True)
    assert found.severity == "note"


def test_a_hash_index_that_does_not_match_its_bucket_is_found(catalog):
    table = catalog.create_table("d.dynamic", COLUMNS, primary_key=["k"], options={"bucket": "-1"})
    table.write_arrow(rows(range(100)))
    facts = gather(OpenTable(table._root, table.schema), deep=False)
    assert facts.buckets["hash_count"].to_pylist() == [100] and examine(facts) == []
    for count, code in ((90, "hash-index-lacks-keys"), (None, "hash-index-lacks-keys"), (99, None), (1300, "hash-index-stale")):
        buckets = facts.buckets.set_column(
            facts.buckets.column_names.index("hash_count"), "hash_count", pa.array([count], pa.int64())
        )
        assert [one.code for one in examine(changed(facts, buckets=buckets))] == ([code] if code else [])


# -- pure checks ----------------------------------------------------------------------------------------------------------


def changed(facts, **given):
    import msgspec

    return msgspec.structs.replace(facts, **given)


@pytest.fixture
def facts(catalog):
    table = keyed(catalog)
    table.write_arrow(rows(range(3)))
    return gather(OpenTable(table._root, table.schema), deep=False)


@pytest.mark.parametrize(
    ("commits", "off"),
    [
        ([], []),
        ([(1, 0, None), (2, 60_000, None)], []),
        ([(1, 60_001, None), (2, 0, None)], [60.001]),
        ([(1, 60_000, None), (2, 0, None)], []),
        ([(1, 500_000, 400_000), (2, 600_000, 600_000)], [100.0]),
        ([(1, 400_000, 900_000)], []),
        ([(1, 2_000_000, None)], [1000.0]),
    ],
)
def test_clocks_that_disagree_are_found(facts, commits, off):
    found = examine(changed(facts, now_millis=1_000_000, commits=tuple(Commit(*one) for one in commits)))
    assert [(one.code, one.figure) for one in found] == [("clocks-disagree", figure) for figure in off]


def test_entries_of_deleted_files_are_found(facts):
    grown = ManifestFacts(count=3, small=0, size_bytes=17 << 20, entries=1000)
    assert [one.code for one in examine(changed(facts, manifests=grown, live_files=100))] == ["dead-entries"]
    assert examine(changed(facts, manifests=grown, live_files=600)) == []
    small = ManifestFacts(count=3, small=0, size_bytes=15 << 20, entries=1000)
    assert examine(changed(facts, manifests=small, live_files=100)) == []


def test_snapshots_that_retain_less_than_a_file_or_the_live_bytes_are_healthy(facts):
    held = (FileHolder("snapshot", "1", 100 << 20), FileHolder("tag", "a", 300 << 20), FileHolder("tag", "b", 400 << 20))
    found = examine(changed(facts, holders=held))
    assert [(one.code, one.figure, len(one.places)) for one in found] == [("tags-hold-much", 400 << 20, 2)]
    assert examine(changed(facts, holders=held, live_bytes=500 << 20)) == []


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({}, []),
        ({"snapshot.num-retained.min": "5", "snapshot.num-retained.max": "4"}, ["snapshot.num-retained.max"]),
        ({"changelog.num-retained.min": "5", "changelog.num-retained.max": "4"}, ["changelog.num-retained.max"]),
        ({"changelog.time-retained": "30 min"}, ["changelog.time-retained"]),
        ({"changelog.time-retained": "2 h"}, []),
        ({"num-sorted-run.stop-trigger": "3"}, ["num-sorted-run.stop-trigger"]),
        ({"num-sorted-run.stop-trigger": "6"}, []),
        ({"write-only": "true", "changelog-producer": "lookup"}, ["write-only"]),
        ({"write-only": "true", "changelog-producer": "input"}, []),
        ({"write-only": "true", "deletion-vectors.enabled": "true"}, ["write-only"]),
        ({"write-only": "true", "full-compaction.delta-commits": "3"}, ["full-compaction.delta-commits"]),
        ({"partition.expiration-time": "7 d"}, ["partition.expiration-time"]),
    ],
)  # fmt: skip
def test_options_that_contradict_each_other_are_found(facts, options, named):
    found = examine(changed(facts, options=options))
    assert sorted(one.option for one in found if one.code == "options") == sorted(named)
    assert len(found) == len(named)


@pytest.mark.parametrize(
    "options",
    [{"snapshot.time-retained": "soon"}, {"target-file-size": "large"}, {"manifest.target-file-size": "-"},
     {"num-sorted-run.compaction-trigger": "0"},
     {"snapshot.num-retained.min": "5", "snapshot.num-retained.max": "4"}],
)  # fmt: skip
def test_invalid_options_stored_by_others_are_findings_and_not_errors(catalog, options):
    table = keyed(catalog)
    table.write_arrow(rows(range(3)))
    schema = changed(table.schema, options={**table.options, **options})
    found = examine(gather(OpenTable(table._root, schema), deep=True))
    assert [(one.code, one.severity) for one in found] == [("options", "problem")]
    assert found[0].option in options


def test_consumers_that_never_expire_are_named(facts):
    followed = changed(facts, followers=(ConsumerBacklog("c", 0),))
    assert [one.option for one in examine(followed)] == ["consumer.expiration-time"]
    assert examine(changed(followed, options={"consumer.expiration-time": "7 d"})) == []


def test_the_call_of_a_finding_resolves_contradicting_options(catalog):
    table = keyed(catalog, **{"changelog.time-retained": "30 min"})
    mend = only(table, "options").mend
    assert mend == "table.alter(RemoveOption('changelog.time-retained'))"
    eval(mend, {"table": table, "RemoveOption": RemoveOption})
    assert codes(table) == []


def test_every_fact_is_a_value(facts):
    assert isinstance(facts, Facts) and "buckets" in repr(facts)
