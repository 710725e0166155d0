"""Others write while an operation is evaluated: it looks at what they wrote, and not again at what stayed as it was."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from unit.public import new_catalog, reopened

from paimon_py import UsageError
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


KEYED = pa.schema([SCHEMA.field("p").with_nullable(False), SCHEMA.field("k").with_nullable(False), SCHEMA.field("n")])
KEYED_KINDS = [
    {"bucket": "2"}, {"bucket": "2", **VECTORS}, {"bucket": "-1"}, {"bucket": "1", "write-only": "true"},
    {"bucket": "2", "merge-engine": "partial-update"}, {"bucket": "1", "file.format": "orc"},
]  # fmt: skip


def make_keyed(catalog, options, keys):
    table = catalog.create_table("d.t", KEYED, primary_key=["p", "k"], partition_by=["p"], options=options)
    write(table, {(k % 4, k): k for k in keys})
    return table


def write(table, rows):
    """Values by partition and key; None deletes."""
    data = pa.table({"p": [p for p, _ in rows], "k": [k for _, k in rows], "n": list(rows.values())}, KEYED)
    kinds = pa.array(["-D" if value is None else "+U" for value in rows.values()])
    table.write_arrow(data.append_column("_row_kind", kinds) if kinds.unique() != pa.array(["+U"]) else data)


def state(table):
    """All rows, also of files whose compaction was overtaken."""
    scan = reopened(table).scan(options={"deletion-vectors.merge-on-read": "true"})
    return {(row["p"], row["k"]): row["n"] for row in scan.to_arrow().to_pylist()}


@pytest.mark.parametrize("options", KEYED_KINDS, ids=str)
@pytest.mark.parametrize("verb", ["update", "merge"])
def test_with_a_primary_key_only_keys_that_others_wrote_are_looked_at_again(catalog, options, verb):
    keys = range(400)
    table = make_keyed(catalog, options, keys)
    other = reopened(table)
    looked_at = Counter()

    def values(rows):
        old = rows["target.n"] if verb == "merge" else rows["n"]
        looked_at.update(old.to_pylist())
        number = 1000 + len(other.snapshots())
        if number < 1006:
            write(other, {(3, 3): number, (3, 1003): number, (2, number): -1})
        return pc.add(old, 10_000)

    if verb == "update":
        result = table.update("k < 2000", {"n": values})
    else:
        source = pa.table({"p": pa.array([*(k % 4 for k in keys), 3], pa.int32()), "k": [*keys, 1003]})
        result = table.merge(source, ["p", "k"], when_matched_update={"n": values})
    last = max(n for n in looked_at if n >= 1000)
    new = {(2, k): 9_999 if verb == "update" else -1 for k in range(1001, last + 1) if (2, k) in state(table)}
    expected = {(k % 4, k): k + 10_000 for k in keys} | {(3, 3): last + 10_000, (3, 1003): last + 10_000} | new
    assert state(table) == expected and len(new) > 1
    assert result.updated == len(expected) - (0 if verb == "update" else len(new)) and result.rounds > 1
    assert all(looked_at[k] == 1 for k in keys)


@pytest.mark.parametrize("options", [*KEYED_KINDS[:4], {"bucket": "1", "rowkind.field": "kind"}], ids=str)
def test_keys_that_others_delete_or_move_out_of_reach_meanwhile_are_left_alone(catalog, options):
    schema = KEYED.append(pa.field("kind", pa.string())) if "rowkind.field" in options else KEYED
    table = catalog.create_table("d.t", schema, primary_key=["p", "k"], partition_by=["p"], options=options)

    def put(rows):
        data = pa.table({"p": [0] * len(rows), "k": list(rows), "n": list(rows.values())}, KEYED)
        kinds = pa.array(["-D" if value is None else "+I" for value in rows.values()])
        table.write_arrow(data.append_column("kind" if "rowkind.field" in options else "_row_kind", kinds))

    put({k: k for k in range(100)})
    late = [{7: None, 5: 50, 8: 80}, {5: None, 6: 5000}]

    def values(rows):
        if late:
            put(late.pop(0))
        return pc.add(rows["n"], 1000)

    result = table.update("n < 1000", {"n": values})
    changed = {k: k + 1000 for k in range(100) if k not in (5, 7)} | {6: 5000, 8: 1080}
    assert {k: n for (_, k), n in state(table).items()} == changed
    assert (result.updated, result.rounds) == (97, 3)


@pytest.mark.parametrize("options", KEYED_KINDS[:4], ids=str)
def test_a_delete_of_keys_that_others_write_meanwhile_takes_what_is_there_now(catalog, options, monkeypatch):
    table = make_keyed(catalog, options, range(100))
    other = reopened(table)
    late = [{(1, 1): 999, (2, 2): None}, {(1, 5): 999}]
    decide = DeleteWhere.decide

    def busy(self, batch):
        if late:
            write(other, late.pop(0))
        return decide(self, batch)

    monkeypatch.setattr(DeleteWhere, "decide", busy)
    result = table.delete("n < 50")
    assert state(table) == {(k % 4, k): k for k in range(50, 100)} | {(1, 1): 999, (1, 5): 999}
    assert result.deleted == 47 and result.rounds > 1


@pytest.mark.parametrize("meanwhile", ["compact", "truncate", "overwrite", "rescale", "much"])
def test_beside_other_work_the_result_is_that_of_one_after_the_other(catalog, meanwhile):
    table = make_keyed(catalog, {"bucket": "1"}, range(40))
    other = reopened(table)
    turns = []

    def values(rows):
        turns.append(rows.num_rows)
        if len(turns) == 1:
            write(other, {(0, 4): 400})
            if meanwhile == "compact":
                other.compact(full=True)
            elif meanwhile == "truncate":
                other.drop_partitions([{"p": 1}])
            elif meanwhile == "overwrite":
                other.write_arrow(pa.table({"p": [2], "k": [2], "n": [200]}, KEYED), overwrite={"p": 2})
            elif meanwhile == "rescale":
                other.rescale(2)
            else:
                write(other, {(3, k): k for k in range(3, 400, 4)})
        return pc.add(rows["n"], 1000)

    table = reopened(table)
    if meanwhile == "rescale":
        with pytest.raises(UsageError, match="rescale"):
            table.update("k >= 0", {"n": values})
        return
    table.update("k >= 0", {"n": values})
    expected = {(k % 4, k): k for k in range(40)} | {(0, 4): 400}
    if meanwhile == "truncate":
        expected = {at: n for at, n in expected.items() if at[0] != 1}
    elif meanwhile == "overwrite":
        expected = {at: n for at, n in expected.items() if at[0] != 2} | {(2, 2): 200}
    elif meanwhile == "much":
        expected |= {(3, k): k for k in range(3, 400, 4)}
    assert state(table) == {at: n + 1000 for at, n in expected.items()}


