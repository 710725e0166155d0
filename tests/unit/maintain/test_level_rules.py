"""Options that give levels another meaning: no change is told twice or never, and every row stays in sight."""

from __future__ import annotations

import itertools
from collections import Counter

import pyarrow as pa
import pytest

from paimon_py import AddColumn, Catalog, PaimonWarning, RemoveOption, SetOption, UsageError

COLUMNS = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())])
PRODUCERS = ("none", "input", "lookup", "full-compaction")


def made(**options):
    catalog = Catalog.open("memory://levels")
    catalog.drop_database("d", missing_ok=True, cascade=True)
    catalog.create_database("d")
    settings = {"bucket": "1", "snapshot.num-retained.min": "100", "snapshot.num-retained.max": "100", **options}
    return catalog.create_table("d.t", COLUMNS, primary_key=["k"], options=settings)


def write(table, *rows):
    table.write_arrow([dict(zip(("k", "v", "_row_kind"), (*row, "+I"))) for row in rows])


def told(table):
    return [row for step in iter(table.stream(from_=1).poll, None) for row in step.to_arrow().to_pylist()]


def folded(changes):
    rows = {}
    for change in changes:
        kind = change["_row_kind"]
        if kind in ("+I", "+U"):
            rows[change["k"]] = change["v"]
        elif kind == "-D":
            rows.pop(change["k"], None)
    return rows


def state(table):
    return {row["k"]: row["v"] for row in table.to_arrow().to_pylist()}


@pytest.mark.parametrize(("old", "new"), [pair for pair in itertools.product(PRODUCERS, PRODUCERS) if len({*pair}) > 1])
@pytest.mark.parametrize("write_only", ["true", "false"])
def test_a_change_of_producer_doubles_and_loses_no_change(old, new, write_only):
    table = made(**{"changelog-producer": old, "write-only": write_only})
    write(table, (1, 1), (2, 2))
    write(table, (3, 3))
    table.alter(SetOption("changelog-producer", new))
    write(table, (4, 4))
    table.compact(full=True)
    changes = told(table)
    assert folded(changes) == state(table) == {1: 1, 2: 2, 3: 3, 4: 4}
    assert Counter(change["k"] for change in changes) == {1: 1, 2: 1, 3: 1, 4: 1}


@pytest.mark.parametrize("old", ["none", "input", "full-compaction"])
def test_a_stream_goes_on_over_a_change_to_lookup_with_the_rows_before(old):
    table = made(**{"changelog-producer": old, "write-only": "true"})
    write(table, (1, 1))
    table.alter(SetOption("changelog-producer", "lookup"))
    last = table.snapshots()[-1].id
    write(table, (1, 9))
    table.compact()
    steps = [step.to_arrow().to_pylist() for step in iter(table.stream(from_=last + 1).poll, None)]
    assert [(row["v"], row["_row_kind"]) for step in steps for row in step] == [(1, "-U"), (9, "+U")]


def test_rows_stay_in_sight_when_deletion_vectors_are_switched_on_and_off():
    table = made(**{"deletion-vectors.modifiable": "true", "write-only": "true"})
    write(table, (1, 1), (2, 2))
    table.write_arrow([{"k": 2, "v": None, "_row_kind": "-D"}])
    table.alter(SetOption("deletion-vectors.enabled", "true"))
    assert state(table) == {1: 1}
    write(table, (1, 5), (3, 3))
    table.alter(RemoveOption("deletion-vectors.enabled"))
    assert state(table) == {1: 5, 3: 3}
    assert [entry for entry in table.snapshots()[-1:] if entry.commit_kind != "COMPACT"] == []


def test_other_changes_and_refused_ones_compact_nothing():
    table = made(**{"write-only": "true"})
    write(table, (1, 1))
    table.alter(SetOption("snapshot.num-retained.max", "101"), AddColumn("w", "INT"))
    table.alter(SetOption("changelog-producer", "input"))
    with pytest.raises(UsageError):
        table.alter(SetOption("changelog-producer", "lookup"), AddColumn("w", "INT"))
    assert [snapshot.commit_kind for snapshot in table.snapshots()] == ["APPEND"]
    table.alter(SetOption("changelog-producer", "lookup"))
    assert [snapshot.commit_kind for snapshot in table.snapshots()] == ["APPEND", "COMPACT"]
    table.alter(SetOption("changelog-producer", "full-compaction"))
    assert len(table.snapshots()) == 2


def test_a_table_without_rows_or_key_just_changes():
    table = made()
    table.alter(SetOption("changelog-producer", "lookup"))
    assert table.options["changelog-producer"] == "lookup"
    assert table.snapshots() == []


def test_rows_that_others_commit_in_between_are_warned_of(monkeypatch):
    import paimon_py.table.table as module

    table = made(**{"write-only": "true"})
    write(table, (1, 1))
    other, plain = Catalog.open("memory://levels").table("d.t"), module.alter

    def later(*args, **kwargs):
        write(other, (2, 2))
        return plain(*args, **kwargs)

    monkeypatch.setattr(module, "alter", later)
    with pytest.warns(PaimonWarning, match=r"rows were committed while the options changed.*compact\(full=True\)"):
        table.alter(SetOption("changelog-producer", "lookup"))
    assert table.options["changelog-producer"] == "lookup"


def test_a_rollback_over_a_change_is_warned_of():
    table = made(**{"write-only": "true"})
    write(table, (1, 1))
    table.alter(SetOption("changelog-producer", "lookup"))
    write(table, (2, 2))
    with pytest.warns(PaimonWarning, match=r"snapshot 1 was written under other options.*compact\(full=True\)"):
        table.rollback_to(1)
    assert state(table) == {1: 1}


def test_a_rollback_to_files_of_the_top_level_with_deletion_vectors_is_warned_of():
    table = made(**{"deletion-vectors.modifiable": "true", "deletion-vectors.enabled": "true", "write-only": "true"})
    write(table, (1, 1), (2, 2))
    table.compact(full=True)
    whole = table.snapshot().id
    table.write_arrow([{"k": 2, "v": None, "_row_kind": "-D"}])
    table.compact()
    number = table.snapshot().id
    assert table.levels()["level"].to_pylist() == [5]
    table.alter(RemoveOption("deletion-vectors.enabled"))
    with pytest.warns(PaimonWarning, match=f"snapshot {number} was written under other options"):
        table.rollback_to(number)
    table.rollback_to(whole)  # nothing lies below the top level, and no row is deleted there
