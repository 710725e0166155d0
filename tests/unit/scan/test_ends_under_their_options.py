"""`changes(a, b, mode="diff")` makes the state at b of the state at a, as the scans of both say, whatever options changed."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from paimon_py import Catalog, DropColumn, RemoveOption, RenameColumn, SetOption

COLUMNS = pa.schema([
    pa.field("k", pa.int64(), nullable=False), ("v", pa.int64()), ("s", pa.int64()),
])


@pytest.fixture
def catalog():
    found = Catalog.open("memory://ends")
    found.drop_database("d", missing_ok=True, cascade=True)
    found.create_database("d")
    return found


def made(catalog, **options):
    settings = {"bucket": "1", "write-only": "true", "deletion-vectors.modifiable": "true", **options}
    return catalog.create_table("d.t", COLUMNS, primary_key=["k"], options=settings)


def write(table, *rows):
    """Rows as (k, v, s) or (k, v, s, kind)."""
    table.write_arrow([dict(zip(("k", "v", "s", "_row_kind"), row)) for row in rows])


def state(table, **at):
    return {row["k"]: tuple(row.values()) for row in table.scan(**at).to_arrow().to_pylist()}


def assert_exact(table, a, b):
    """a + diff = b, and the diff holds no row that is the same."""
    found = state(table, snapshot_id=a)
    for row in table.changes(a, b, mode="diff").to_arrow().to_pylist():
        kind = row.pop("_row_kind")
        key, values = row["k"], tuple(row.values())
        if kind == "-D":
            assert found.pop(key) == values
        else:
            assert (kind == "+I") == (key not in found)
            assert found.get(key) != values
            found[key] = values
    assert found == state(table, snapshot_id=b)


CHANGES = {
    "deletion vectors": ({}, SetOption("deletion-vectors.enabled", "true")),
    "sequence": ({}, SetOption("sequence.field", "s")),
    "no sequence": ({"sequence.field": "s"}, RemoveOption("sequence.field")),
    "ignored deletes": ({}, SetOption("ignore-delete", "true")),
    "aggregate": (
        {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"},
        SetOption("fields.v.aggregate-function", "max"),
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_an_option_that_changed_between_changes_no_end(catalog, name):
    options, change = CHANGES[name]
    table = made(catalog, **options)
    kind = "+I" if "aggregate" in name else "-D"
    write(table, (1, 1, 9), (2, 2, 9), (3, 3, 9))
    write(table, (1, 5, 1), (4, 4, 4))
    write(table, (2, 7, 9, kind))
    table.alter(change)
    write(table, (5, 5, 5))
    write(table, (3, 9, 1))
    for a in range(1, 6):
        for b in range(a, 6):
            assert_exact(table, a, b)
    scan = table.changes(3, 4, mode="diff")
    apart = [batch for split in scan.splits() for batch in scan.read(bytes(split))]
    assert pa.Table.from_batches(apart, scan.schema) == scan.to_arrow()


def test_unchanged_files_are_read_again_only_where_they_may_make_other_rows(catalog):
    table = made(catalog)
    write(table, (1, 1, 9))
    write(table, (1, 2, 1))
    table.alter(SetOption("snapshot.num-retained.max", "50"))
    table.compact_manifests()
    assert table.changes(2, 3, mode="diff").explain().skipped.same == 4
    table.alter(SetOption("sequence.field", "s"))
    write(table, (2, 2, 2))
    assert table.changes(3, mode="diff", columns=["k", "v"]).to_arrow().to_pylist() == [
        {"k": 1, "v": 1, "_row_kind": "+U"}, {"k": 2, "v": 2, "_row_kind": "+I"},
    ]  # fmt: skip


def test_the_latest_state_is_read_as_the_table_is_now(catalog):
    table = made(catalog)
    write(table, (1, 1, 9))
    write(table, (1, 2, 1))
    write(table, (2, 2, 2))
    table.alter(SetOption("sequence.field", "s"))
    assert table.changes(2, mode="diff", columns=["k", "v"]).to_arrow().to_pylist() == [
        {"k": 1, "v": 1, "_row_kind": "+U"}, {"k": 2, "v": 2, "_row_kind": "+I"},
    ]  # fmt: skip
    assert table.changes(2, 3, mode="diff", columns=["k"]).to_arrow()["k"].to_pylist() == [2]


def test_options_follow_columns_that_were_renamed_and_dropped(catalog):
    table = made(catalog, **{"sequence.field": "s"})
    write(table, (1, 1, 9))
    write(table, (1, 2, 1))
    table.alter(RemoveOption("sequence.field"), RenameColumn("v", "w"))
    table.alter(DropColumn("s"))
    table.write_arrow([{"k": 2, "w": 2}])
    found = table.changes(2, 3, mode="diff").to_arrow().to_pylist()
    assert found == [{"k": 1, "w": 2, "_row_kind": "+U"}, {"k": 2, "w": 2, "_row_kind": "+I"}]
    assert state(table, snapshot_id=2) == {1: (1, 1, 9)}


def test_an_overwrite_of_a_stream_is_compared_under_the_options_of_its_ends(catalog):
    table = made(catalog, **{"streaming-read-overwrite": "true"})
    write(table, (1, 1, 9))
    write(table, (1, 2, 1))
    table.alter(SetOption("sequence.field", "s"))
    stream = table.stream(from_="latest")
    table.write_arrow([{"k": 1, "v": 3, "s": 3}], overwrite={})
    step = stream.poll()
    assert [(row["v"], row["_row_kind"]) for row in step.to_arrow().to_pylist()] == [(2, "-U"), (3, "+U")]


def test_a_result_is_told_under_the_options_of_its_call(catalog):
    table = made(catalog)
    write(table, (1, 1, 9))
    write(table, (1, 2, 1))
    table.alter(SetOption("sequence.field", "s"))
    done = table.write_arrow([{"k": 2, "v": 2, "s": 2}])
    assert table.changes(done, columns=["k"]).to_arrow().to_pylist() == [{"k": 2, "_row_kind": "+I"}]


@pytest.mark.parametrize("seed", range(6))
def test_lives_with_changing_options(catalog, seed):
    chance = random.Random(seed)
    table = made(catalog)
    steps = [
        SetOption("sequence.field", "s"), RemoveOption("sequence.field"), SetOption("ignore-delete", "true"),
        SetOption("ignore-delete", "false"), SetOption("deletion-vectors.enabled", "true"),
    ]  # fmt: skip
    for number in range(10):
        keys = chance.sample(range(6), 3)
        if "ignore-delete" in table.options or chance.random() < 0.7:
            write(table, *[(key, number, chance.randrange(5)) for key in keys])
        else:
            write(table, *[(key, number, chance.randrange(5), "-D") for key in keys])
        if chance.random() < 0.3:
            table.compact(full=chance.random() < 0.5)
        if chance.random() < 0.5:
            table.alter(chance.choice(steps))
    ids = [snapshot.id for snapshot in table.snapshots()]
    for _ in range(8):
        a, b = sorted(chance.sample(ids, 2))
        assert_exact(table, a, b)
