"""Streams and `changes` of tables without primary key refuse what they cannot tell; older snapshots count as they are."""

from __future__ import annotations

import pyarrow as pa
import pytest

from paimon_py import Catalog, RemoveOption, SetOption, UnsupportedError, col

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
def test_a_commit_that_takes_rows_away_is_refused_by_name(name, vectors):
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


def test_the_option_says_what_becomes_of_it():
    table = made()
    table.write_arrow([row(1, "a"), row(2, "a")])
    table.update(col("k") == 1, {"v": "b"})
    both = table.stream(from_=2, options={PASSING: "true"})
    assert [sorted(step) for step in steps(both)] == [[(1, "b", "+I"), (2, "a", "+I")]]
    table.alter(SetOption(PASSING, "false"))
    assert (steps(table.stream(from_=2)), table.changes(1).count()) == ([], 0)


def test_what_takes_nothing_is_read_whatever_its_kind_is():
    table = made(**{"write-only": "true"})
    table.write_arrow([row(1, "a")], overwrite={})
    assert table.snapshots()[0].commit_kind == "OVERWRITE"
    for number in range(2, 7):
        table.write_arrow([row(number, "a")])
    assert table.compact(full=True).file_count
    assert len(steps(table.stream(from_=1))) == table.changes(0).count() == 6


@pytest.mark.parametrize("vectors", ["false", "true"])
def test_compactions_of_vectors_are_read_over(vectors):
    table = made(**{"deletion-vectors.enabled": vectors, "write-only": "true"})
    for number in range(6):
        table.write_arrow([row(number, "a")])
    table.delete(col("k") < 3)
    last = table.snapshots()[-1].id
    table.compact(full=True)
    table.write_arrow([row(9, "z")])
    assert steps(table.stream(from_=last + 1)) == [[(9, "z", "+I")]]


def test_rows_written_before_a_producer_was_set_are_told():
    table = made(keyed=True, **{"write-only": "true"})
    table.write_arrow([row(1, "a")])
    table.alter(SetOption("changelog-producer", "input"))
    table.write_arrow([row(2, "b")])
    assert steps(table.stream(from_=1)) == [[(1, "a", "+I")], [(2, "b", "+I")]]


def test_changelogs_written_before_a_producer_was_removed_are_told():
    table = made(keyed=True, **{"changelog-producer": "lookup"})
    table.write_arrow([row(1, "a")])
    table.write_arrow([row(1, "b")])
    table.alter(RemoveOption("changelog-producer"))
    table.write_arrow([row(1, "c")])
    assert steps(table.stream(from_=1)) == [[(1, "a", "+I")], [(1, "a", "-U"), (1, "b", "+U")], [(1, "c", "+I")]]


@pytest.mark.parametrize("name", ["delete", "update"])
def test_dead_rows_are_noticed_though_the_snapshot_before_has_expired(name):
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


def test_plain_rows_are_read_though_the_snapshot_before_has_expired():
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
