"""Others write while an operation is evaluated: it looks at what they wrote, and not again at what stayed as it was."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from unit.public import new_catalog, reopened

from paimon_py.rows.decide import DeleteWhere

VECTORS = {"deletion-vectors.enabled": "true"}
BUCKETS = {"bucket": "2", "bucket-key": "k", "write-only": "true"}
KINDS = [{}, VECTORS, BUCKETS, {**BUCKETS, **VECTORS}]
SCHEMA = pa.schema([("p", pa.int32()), ("k", pa.int64()), ("n", pa.int64())])


@pytest.fixture
def catalog(tmp_path):
    return new_catalog(tmp_path / "w")


def fill(table, numbers):
    table.write_arrow(pa.table({"p": [n % 2 for n in numbers], "k": [n % 10 for n in numbers], "n": list(numbers)}, SCHEMA))


def make(catalog, options):
    table = catalog.create_table("d.t", SCHEMA, partition_by=["p"], options=options)
    for low in (0, 20):
        fill(table, range(low, low + 20))
    return table


class Busy:
    """Values that are made while others add rows, so many times."""

    def __init__(self, table, times):
        self.table, self.times = reopened(table), times
        self.looked_at = Counter()

    def __call__(self, rows):
        old = rows["target.n"] if "target.n" in rows.schema.names else rows["n"]
        self.looked_at.update(old.to_pylist())
        if self.times:
            self.times -= 1
            low = 100 + 20 * self.times
            fill(self.table, range(low, low + 20))
        return pc.add(old, 1000)


def numbers(table):
    return sorted(reopened(table).scan().to_arrow()["n"].to_pylist())


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_an_update_looks_at_every_row_once(catalog, options):
    table = make(catalog, options)
    busy = Busy(table, 6)
    result = table.update("k < 5", {"n": busy})
    every = [*range(40), *range(100, 220)]
    assert numbers(table) == sorted(n + 1000 if n % 10 < 5 else n for n in every)
    assert result.updated == 80 and result.rounds > 1
    assert busy.looked_at == Counter(n for n in every if n % 10 < 5)


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_a_merge_looks_at_every_row_once_and_adds_rows_once(catalog, options):
    table = make(catalog, options)
    busy = Busy(table, 3)
    source = pa.table({"k": [3, 4, 77], "p": pa.array([1, 0, 1], pa.int32()), "n": [0, 0, 77]})
    result = table.merge(source, "k", when_matched_update={"n": busy}, when_not_matched_insert=True)
    every = [*range(40), *range(100, 160)]
    assert numbers(table) == sorted([77, *(n + 1000 if n % 10 in (3, 4) else n for n in every)])
    assert (result.updated, result.inserted) == (20, 1) and result.rounds > 1
    assert busy.looked_at == Counter(n for n in every if n % 10 in (3, 4))


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_a_merge_begins_anew_when_others_add_a_key_that_it_adds(catalog, options):
    table = make(catalog, options)
    other = reopened(table)
    late = [pa.table({"p": pa.array([0], pa.int32()), "k": [key], "n": [n]}, SCHEMA) for key, n in ((77, 5), (3, 6))]

    def values(rows):
        if late:
            other.write_arrow(late.pop())
        return pc.add(rows["target.n"], 1000)

    source = pa.table({"k": [3, 77], "p": pa.array([1, 1], pa.int32()), "n": [0, 77]})
    result = table.merge(source, "k", when_matched_update={"n": values}, when_not_matched_insert=True)
    assert numbers(table) == sorted([1005, 1006, *(n + 1000 if n % 10 == 3 else n for n in range(40))])
    assert (result.updated, result.inserted) == (6, 0)


def test_a_merge_in_blocks_carries_on_too(catalog):
    table = make(catalog, {**VECTORS, "write-buffer-size": "1 kb"})
    busy = Busy(table, 3)
    keys = list(range(5, 400))
    source = pa.table({"k": keys, "p": pa.array([0] * len(keys), pa.int32()), "n": keys})
    result = table.merge(source, "k", when_matched_update={"n": busy}, when_not_matched_insert=True)
    every = [*range(40), *range(100, 160)]
    assert numbers(table) == sorted([*range(10, 400), *(n + 1000 if n % 10 > 4 else n for n in every)])
    assert (result.updated, result.inserted) == (50, 390) and result.rounds > 1
    assert busy.looked_at == Counter(n for n in every if n % 10 > 4)


def test_a_compaction_in_between_begins_anew(catalog):
    table = make(catalog, VECTORS)
    other = reopened(table)
    turns = []

    def values(rows):
        turns.append(rows.num_rows)
        if len(turns) == 1:
            other.compact(full=True, order_by=["n"])
        return pc.add(rows["n"], 1000)

    result = table.update("k = 3", {"n": values})
    assert (result.updated, result.rounds) == (4, 2)
    assert numbers(table) == sorted(n + 1000 if n % 10 == 3 else n for n in range(40))


@pytest.mark.parametrize("options", [{}, VECTORS], ids=str)
def test_a_delete_also_takes_rows_that_came_meanwhile(catalog, options, monkeypatch):
    table = make(catalog, options)
    other = reopened(table)
    evaluate = DeleteWhere.decide

    def decide(self, batch):
        if len(other.snapshots()) < 3:
            fill(other, range(100, 120))
        return evaluate(self, batch)

    monkeypatch.setattr(DeleteWhere, "decide", decide)
    result = table.delete("k = 3")
    assert (result.deleted, result.rounds) == (6, 2)
    assert [n for n in numbers(table) if n % 10 == 3] == []


@pytest.mark.parametrize("options", [{"bucket": "2"}, {"bucket": "2", **VECTORS}, {"bucket": "-1"}], ids=str)
@pytest.mark.parametrize("verb", ["update", "merge"])
def test_with_a_primary_key_only_buckets_that_others_wrote_are_looked_at_again(catalog, options, verb):
    schema = pa.schema([SCHEMA.field("p").with_nullable(False), SCHEMA.field("k").with_nullable(False), SCHEMA.field("n")])
    table = catalog.create_table("d.t", schema, primary_key=["p", "k"], partition_by=["p"], options=options)
    keys = list(range(40))
    table.write_arrow(pa.table({"p": [k % 4 for k in keys], "k": keys, "n": keys}, schema))
    other = reopened(table)
    looked_at = Counter()

    def values(rows):
        old = rows["target.n"] if verb == "merge" else rows["n"]
        looked_at.update(old.to_pylist())
        if len(other.snapshots()) < 4:
            number = 100 + len(other.snapshots())
            other.write_arrow(pa.table({"p": [3, 3], "k": [3, 50], "n": [number, number]}, schema))
        return pc.add(old, 1000)

    if verb == "update":
        result = table.update("k < 60", {"n": values})
    else:
        source = pa.table({"p": pa.array([*(k % 4 for k in keys), 3], pa.int32()), "k": [*keys, 50]})
        result = table.merge(source, ["p", "k"], when_matched_update={"n": values})
    rows = reopened(table).scan().to_arrow().to_pylist()
    last = max(n for n in looked_at if n > 60)
    assert {row["k"]: row["n"] for row in rows} == {**{k: k + 1000 for k in keys}, 3: last + 1000, 50: last + 1000}
    assert result.updated == 41 and result.rounds > 1
    assert all(looked_at[k] == 1 for k in keys if k % 4 != 3)
    assert looked_at[7] > 1
