"""Changes of tables whose keys move between partitions, applied by key in the order in which they are returned."""

from __future__ import annotations

import random

import pytest

from paimon_py import Catalog
from paimon_py.scan.split import Split

PRODUCERS = ("none", "input", "lookup", "full-compaction")
EXACT = ("lookup", "full-compaction")


def made(producer, **options):
    catalog = Catalog.open("memory://moving")
    catalog.drop_database("d", missing_ok=True, cascade=True)
    catalog.create_database("d")
    columns = {"p": "INT NOT NULL", "k": "INT NOT NULL", "v": "INT"}
    settings = {"bucket": "-1", "changelog-producer": producer, "dynamic-bucket.target-row-num": "3", **options}
    return catalog.create_table("d.t", columns, primary_key=["k"], partition_by=["p"], options=settings)


def folded(rows, state, *, exact=False):
    """A copy by key after some changes. `exact`: each row that goes is there, and each that comes is not."""
    found = dict(state)
    for row in rows:
        kind, values = row["_row_kind"], (row["p"], row["k"], row["v"])
        if kind in ("-D", "-U"):
            assert not exact or found[row["k"]] == values
            found.pop(row["k"], None)
        else:
            assert not exact or row["k"] not in found
            found[row["k"]] = values
    return found


def state_of(table, **at):
    return {row["k"]: tuple(row.values()) for row in table.scan(**at).to_arrow().to_pylist()}


@pytest.mark.parametrize("producer", PRODUCERS)
def test_keys_that_change_places_are_in_a_copy_of_each_step(producer):
    table = made(producer)
    table.write_arrow([{"p": 0, "k": 1, "v": 1}, {"p": 1, "k": 2, "v": 2}])
    table.compact(full=True)
    stream, copy = table.stream(), {}
    copy = folded(stream.poll().to_arrow().to_pylist(), copy)
    table.write_arrow([{"p": 1, "k": 1, "v": 3}, {"p": 0, "k": 2, "v": 4}])
    table.compact(full=True)
    for step in iter(stream.poll, None):
        copy = folded(step.to_arrow().to_pylist(), copy, exact=producer in EXACT)
        (split,) = step.splits()
        assert step.read(bytes(split)).read_all() == step.to_arrow()
        assert Split.from_bytes(bytes(split)) == split and not split.raw
    assert copy == {1: (1, 1, 3), 2: (0, 2, 4)}


@pytest.mark.parametrize("producer", PRODUCERS)
def test_copies_follow_random_moves_step_by_step_and_over_spans(producer):
    rng = random.Random(producer)
    table = made(producer, **{"write-buffer-size": "1 b"})
    stream, copy, states = None, {}, {0: {}}
    for number in range(14):
        keys = rng.sample(range(9), rng.randrange(1, 6))
        rows = [{"p": rng.randrange(3), "k": key, "v": number, "_row_kind": rng.choice(["+I", "+I", "-D"])} for key in keys]
        table.write_arrow(rows)
        if producer in EXACT:
            table.compact(full=True)
        if stream is None:
            stream = table.stream(from_="earliest")
        for step in iter(stream.poll, None):
            copy = folded(step.to_arrow().to_pylist(), copy, exact=producer in EXACT)
        assert copy == state_of(table)
        states[table.snapshot().id] = copy
    for _ in range(20):
        start, end = sorted(rng.sample(sorted(states), 2))
        changes = table.changes(start, end)
        rows = changes.to_arrow().to_pylist()
        assert folded(rows, states[start], exact=producer in EXACT) == states[end]
        assert changes.count() == len(rows)
        key = rng.randrange(9)
        of_key = table.changes(start, end, where=f"k = {key}", columns=["v"]).to_arrow()
        assert of_key["v"].to_pylist() == [row["v"] for row in rows if row["k"] == key]


def test_a_key_that_comes_back_within_a_commit_is_not_lost():
    table = made("input")
    table.write_arrow([{"p": 0, "k": 1, "v": 1}])
    with table.writer() as writer:
        for place in (1, 0):
            writer.write_arrow([{"p": place, "k": 1, "v": 10 + place}])
        table.commit(writer.changes())
    rows = table.changes(1).to_arrow().to_pylist()
    assert [row["_row_kind"] for row in rows].count("-D") == 2
    assert folded(rows, {1: (0, 1, 1)}) == {1: (0, 1, 10)} == state_of(table)


def test_rows_without_deletes_are_in_a_split_for_each_bucket():
    table = made("none")
    table.write_arrow([{"p": number % 2, "k": number, "v": 1} for number in range(8)])
    assert len(table.changes(0).splits()) > 1
