"""Streams and `changes` of tables without primary key refuse what they cannot tell; older snapshots count as they are."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from paimon_py import Catalog, RemoveOption, SetOption, UnsupportedError, UsageError, col

COLUMNS = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.string())])
PASSING = "streaming-read-append-overwrite"

TAKING = {
    "update": lambda table: table.update(col("k") == 1, {"v": "b"}),
    "delete": lambda table: table.delete(col("k") == 1),
    "overwrite": lambda table: table.write_arrow([row(1, "b")], overwrite={}),
    "truncate": lambda table: table.truncate(),
}


def row(k, v):
    return {"k": k, "v": v}


def made(*, keyed=False, **options):
    catalog = Catalog.open("memory://taking")
    catalog.drop_database("d", missing_ok=True, cascade=True)
    catalog.create_database("d")
    keys = {"primary_key": ["k"]} if keyed else {}
    settings = {"bucket": "1", **options} if keyed else options
    return catalog.create_table("d.t", COLUMNS, options=settings, **keys)


def steps(stream):
    return [[tuple(each.values()) for each in step.to_arrow().to_pylist()] for step in iter(stream.poll, None)]


@pytest.mark.parametrize("name", TAKING)
@pytest.mark.parametrize("vectors", ["false", "true"])
def test_a_commit_that_removes_rows_is_refused_by_name(name, vectors):
    table = made(**{"deletion-vectors.enabled": vectors})
    table.write_arrow([row(1, "a"), row(2, "a")])
    done = TAKING[name](table)
    table.write_arrow([row(3, "c")])
    stream = table.stream(from_=1)
    assert stream.poll().snapshot_id == 1
    position = stream.position
    for again in (stream, stream, table.stream(from_=position)):
        with pytest.raises(UnsupportedError, match=r"snapshot 2 .*changes\(1, 2, mode='diff'\).*streaming-read-append-ov"):
            again.poll()
    for scan in (table.changes(1), table.changes(0, 3, mode="delta"), table.changes(done, mode="delta")):
        with pytest.raises(UnsupportedError, match="snapshot 2 of .* deleted or replaced rows"):
            scan.count()
    assert table.changes(2).count() == table.changes(0, 1).count() - 1 == 1
    assert table.changes(done).count() >= 1
    passing = table.stream(from_=position, options={PASSING: "false"})
    assert steps(passing) == [[(3, "c", "+I")]]


def test_an_option_decides_what_happens_to_commits_that_remove_rows():
    table = made()
    table.write_arrow([row(1, "a"), row(2, "a")])
    table.update(col("k") == 1, {"v": "b"})
    both = table.stream(from_=2, options={PASSING: "true"})
    assert [sorted(step) for step in steps(both)] == [[(1, "b", "+I"), (2, "a", "+I")]]
    table.alter(SetOption(PASSING, "false"))
    assert (steps(table.stream(from_=2)), table.changes(1).count()) == ([], 0)


def test_commits_that_remove_nothing_are_read_whatever_their_kind():
    table = made(**{"write-only": "true"})
    table.write_arrow([row(1, "a")], overwrite={})
    assert table.snapshots()[0].commit_kind == "OVERWRITE"
    for number in range(2, 7):
        table.write_arrow([row(number, "a")])
    assert table.compact(full=True).file_count
    assert len(steps(table.stream(from_=1))) == table.changes(0).count() == 6


@pytest.mark.parametrize("vectors", ["false", "true"])
def test_compactions_that_apply_deletion_vectors_are_skipped(vectors):
    table = made(**{"deletion-vectors.enabled": vectors, "write-only": "true"})
    for number in range(6):
        table.write_arrow([row(number, "a")])
    table.delete(col("k") < 3)
    last = table.snapshots()[-1].id
    table.compact(full=True)
    table.write_arrow([row(9, "z")])
    assert steps(table.stream(from_=last + 1)) == [[(9, "z", "+I")]]


def test_rows_written_before_a_producer_was_set_are_reported():
    table = made(keyed=True, **{"write-only": "true"})
    table.write_arrow([row(1, "a")])
    table.alter(SetOption("changelog-producer", "input"))
    table.write_arrow([row(2, "b")])
    assert steps(table.stream(from_=1)) == [[(1, "a", "+I")], [(2, "b", "+I")]]


def test_changelogs_written_before_a_producer_was_removed_are_reported():
    table = made(keyed=True, **{"changelog-producer": "lookup"})
    table.write_arrow([row(1, "a")])
    table.write_arrow([row(1, "b")])
    table.alter(RemoveOption("changelog-producer"))
    table.write_arrow([row(1, "c")])
    assert steps(table.stream(from_=1)) == [[(1, "a", "+I")], [(1, "a", "-U"), (1, "b", "+U")], [(1, "c", "+I")]]


@pytest.mark.parametrize("name", ["delete", "update"])
def test_deleted_rows_are_noticed_after_the_previous_snapshot_expired(name):
    table = made(**{"deletion-vectors.enabled": "true"})
    table.write_arrow([row(1, "a"), row(2, "a")])
    stream = table.stream(from_=1)
    stream.poll()
    position = stream.position
    TAKING[name](table)
    table.write_arrow([row(3, "c")])
    table.expire_snapshots(retain_max=2, retain_min=2)
    with pytest.raises(UnsupportedError, match="snapshot 2 of .* deleted or replaced rows"):
        table.stream(from_=position).poll()


def test_plain_rows_are_read_after_the_previous_snapshot_expired():
    table = made(**{"deletion-vectors.enabled": "true"})
    table.write_arrow([row(1, "a"), row(2, "a")])
    TAKING["delete"](table)
    table.write_arrow([row(3, "c")])
    stream = table.stream(from_=3)
    stream.poll()
    position = stream.position
    table.write_arrow([row(4, "d")])
    table.write_arrow([row(5, "e")])
    table.expire_snapshots(retain_max=2, retain_min=2)
    assert steps(table.stream(from_=position)) == [[(4, "d", "+I")], [(5, "e", "+I")]]


def bucketed(**options):
    return made(**{"bucket": "2", "bucket-key": "k", "write-only": "true", **options})


@pytest.mark.parametrize("passing", [None, "true", "false"])
def test_streams_and_changes_continue_after_a_rescale(passing):
    table = bucketed(**({} if passing is None else {PASSING: passing}))
    table.write_arrow([row(number, "a") for number in range(9)])
    stream = table.stream(from_=1)
    stream.poll()
    table.rescale(3)
    assert table.snapshots()[-1].commit_kind == "OVERWRITE"
    table.write_arrow([row(10, "b")])
    assert steps(stream) == [[(10, "b", "+I")]]
    assert [table.changes(1, mode=mode).count() for mode in ("auto", "delta", "diff")] == [1, 1, 1]
    assert table.changes(0, 2, mode="delta").count() == 9
    assert (table.scan().count(), table.snapshots()[-1].properties) == (10, {})


def test_a_rescale_by_another_writer_is_refused_like_any_overwrite():
    table = bucketed()
    table.write_arrow([row(1, "a")])
    table.rescale(3)
    store, path = table._root.store, f"{table.location}/snapshot/snapshot-2"
    text = store.get(path)
    assert b'"paimon-py.rows":"same"' in text.replace(b" ", b"")
    store.put(path, text.replace(b'"2:', b'"1:'))
    fresh = Catalog(store, "memory://taking").table("d.t")
    for read in (fresh.stream(from_=2).poll, fresh.changes(1).count):
        with pytest.raises(UnsupportedError, match="snapshot 2 .* deleted or replaced rows"):
            read()


def test_a_rescale_has_no_changes_if_overwrites_are_compared():
    table = made(keyed=True, **{"streaming-read-overwrite": "true"})
    table.write_arrow([row(1, "a")])
    table.rescale(2)
    table.write_arrow([row(1, "b")], overwrite={})
    assert steps(table.stream(from_=2)) == [[(1, "a", "-U"), (1, "b", "+U")]]
    with pytest.raises(UnsupportedError, match=r"snapshot 3 of .* overwrote rows.*mode='diff'"):
        table.changes(1).count()
    assert table.changes(1, mode="diff").count() == 1
    assert table.changes(0, 2).count() == 1


def test_auto_reads_of_each_snapshot_what_a_stream_would_return():
    table = made(keyed=True)
    table.write_arrow([row(1, "a"), row(2, "a")])
    table.write_arrow([row(1, "b")])
    table.alter(SetOption("changelog-producer", "lookup"))
    table.write_arrow([row(1, "c")])
    table.write_arrow([{**row(2, "a"), "_row_kind": "-D"}])
    table.alter(RemoveOption("changelog-producer"))
    table.write_arrow([row(3, "d")])
    wanted = [change for step in steps(table.stream(from_=1)) for change in step]
    assert (1, "b", "-U") in wanted and (3, "d", "+I") in wanted and (2, "a", "-D") in wanted
    found = [tuple(each.values()) for each in table.changes(0).to_arrow().to_pylist()]
    assert (sorted(found), len(set(found))) == (sorted(wanted), len(wanted))
    for number in (1, 2):
        mine = [change for change in found if change[0] == number]
        assert mine == [change for change in wanted if change[0] == number]
    with pytest.raises(UsageError, match=r"snapshot 1 was committed while .*mode='auto'"):
        table.changes(0, mode="changelog").count()
    assert table.changes(0, mode="delta").count() == 6


def _evolving():
    table = made(**{"row-tracking.enabled": "true", "data-evolution.enabled": "true", PASSING: "false"})
    table.write_arrow([row(1, "a"), row(2, "b")])
    table.update(col("k") == 1, {"v": "x"})
    return table


def test_changes_of_several_snapshots_contain_each_row_once_with_its_newest_columns():
    table = _evolving()
    table.write_arrow([row(3, "c")])
    assert steps(table.stream(from_=2)) == [[(None, "x", "+I"), (None, "b", "+I")], [(3, "c", "+I")]]
    found = table.changes(0, mode="delta").to_arrow().select(["k", "v"]).to_pylist()
    assert found == [row(1, "x"), row(2, "b"), row(3, "c")]
    assert table.changes(0, mode="delta", where="v = 'a'").count() == 0


def test_rows_with_columns_in_several_files_of_one_commit_are_reported_once():
    table = _evolving()
    root, lists = table._root, []
    for snapshot in (root.snapshots.get(1), root.snapshots.get(2)):
        lists += root.manifests.read_list(snapshot.delta_manifest_list, snapshot.delta_manifest_list_size)
    name, size = root.manifests.write_list(lists)
    path = f"{table.location}/snapshot/snapshot-1"
    first = json.loads(root.store.get(path)) | {"deltaManifestList": name, "deltaManifestListSize": size}
    root.store.put(path, json.dumps(first).encode())
    table = Catalog(root.store, "memory://taking").table("d.t")
    assert steps(table.stream(from_=1)) == [[(1, "x", "+I"), (2, "b", "+I")]]
