"""`changes(a, b, mode="diff")` of tables without a primary key: what went and what came, row by row."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from paimon_py import Catalog, col
from paimon_py.scan import bag_read

COLUMNS = pa.schema([("p", pa.int32()), ("v", pa.int64()), ("t", pa.string())])


@pytest.fixture
def catalog():
    found = Catalog.open("memory://bags")
    found.drop_database("d", missing_ok=True, cascade=True)
    found.create_database("d")
    return found


def made(catalog, columns=COLUMNS, **options):
    partitions = ["p"] if "p" in columns.names else []
    return catalog.create_table("d.t", columns, partition_by=partitions, options={"write-only": "true", **options})


def row(p, v, t=None):
    return {"p": p, "v": v, "t": t}


def bag(scan):
    return Counter(tuple(each.values()) for each in scan.to_arrow().to_pylist())


def assert_exact(table, a, b):
    before, after = (Counter() if end == 0 else bag(table.scan(snapshot_id=end)) for end in (a, b))
    told = bag(table.changes(a, b, mode="diff"))
    assert {each[:-1]: count for each, count in told.items() if each[-1] == "-D"} == before - after
    assert {each[:-1]: count for each, count in told.items() if each[-1] == "+I"} == after - before
    assert {each[-1] for each in told} <= {"-D", "+I"}


@pytest.mark.parametrize("vectors", ["false", "true"])
def test_rows_that_went_and_came_are_told_as_often_as_they_did(catalog, vectors):
    table = made(catalog, **{"deletion-vectors.enabled": vectors})
    table.write_arrow([row(1, 1, "a")] * 3 + [row(1, 2, "b"), row(2, 1, "a"), row(2, None, None)])
    done = table.update((col("v") == 2) | col("v").is_null(), {"t": "c"})
    assert bag(table.changes(done)) == Counter({
        (1, 2, "b", "-D"): 1, (1, 2, "c", "+I"): 1, (2, None, None, "-D"): 1, (2, None, "c", "+I"): 1,
    })  # fmt: skip
    assert bag(table.changes(table.delete(col("v") == 1), where="p = 1")) == Counter({(1, 1, "a", "-D"): 3})
    done = table.write_arrow([row(1, 1, "a")], overwrite={"p": 1})
    scan = table.changes(1, mode="diff", columns=["v"])
    assert bag(scan) == Counter({(1, "-D"): 3, (2, "-D"): 1, (None, "-D"): 1, (None, "+I"): 1})
    assert scan.count() == 6
    apart = [batch for split in scan.splits() for batch in scan.read(bytes(split))]
    told = pa.Table.from_batches(apart, scan.schema).to_pylist()
    assert Counter(tuple(each.values()) for each in told) == bag(scan)
    assert len(apart) == len(scan.splits()) == 2
    assert bag(table.changes(0, mode="diff")) == Counter({(*each, "+I"): n for each, n in bag(table.scan()).items()})
    assert table.changes(1, mode="diff", where="_row_kind = '+I'").count() == 1


def test_what_a_compaction_wrote_again_is_no_change_and_common_files_are_not_read(catalog):
    table = made(catalog)
    for number in range(8):
        table.write_arrow([row(number % 2, number, "x")])
    done = table.compact(full=True)
    assert done.file_count
    assert bag(table.changes(8, mode="diff")) == bag(table.changes(done)) == Counter()
    last = table.write_arrow([row(0, 99, "y")])
    scan = table.changes(done.snapshot_id, mode="diff")
    assert bag(scan) == bag(table.changes(last)) == Counter({(0, 99, "y", "+I"): 1})
    assert (scan.explain().skipped.same, len(scan.splits()), len(scan.splits()[0].files)) == (4, 1, 1)


def test_values_of_every_kind_are_told_apart_by_their_bits(catalog):
    columns = pa.schema([
        ("i", pa.int64()), ("f", pa.float64()), ("d", pa.decimal128(30, 2)), ("b", pa.binary()), ("o", pa.bool_()),
        ("w", pa.timestamp("us")), ("l", pa.list_(pa.int32())), ("m", pa.map_(pa.string(), pa.int32())),
        ("s", pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))])),
    ])  # fmt: skip
    table = made(catalog, columns)
    base = {
        "i": 1, "f": 0.0, "d": Decimal("123456789012345678901.25"), "b": b"x" * 40, "o": True,
        "w": datetime(2024, 1, 2), "l": [1, 2], "m": [("a", 1), ("b", None)], "s": {"x": 1, "y": ["p", "q"]},
    }  # fmt: skip
    others = [
        {"i": 2}, {"f": -0.0}, {"d": Decimal("-1.25")}, {"b": b"x" * 41}, {"o": None}, {"w": datetime(2024, 1, 3)},
        {"l": [2, 1]}, {"l": []}, {"l": None}, {"l": [1, None]}, {"m": [("a", 1), ("b", 2)]}, {"m": []},
        {"s": {"x": 1, "y": ["q", "p"]}}, {"s": None}, {"s": {"x": None, "y": ["p", "q"]}}, {"f": float("nan")},
    ]  # fmt: skip
    rows = [base, *({**base, **other} for other in others)]

    def data(chosen):
        return pa.Table.from_pylist(chosen, columns)

    table.write_arrow(data(rows))
    shuffled = [rows[number] for number in random.Random(1).sample(range(len(rows)), len(rows))]
    table.write_arrow(data(shuffled), overwrite={})
    assert table.changes(1, mode="diff").count() == 0
    for number in range(len(rows)):
        before = table.snapshots()[-1].id
        table.write_arrow(data([*rows[:number], *rows[number + 1 :]]), overwrite={})
        table.write_arrow(data(rows), overwrite={})
        found = table.changes(before, before + 1, mode="diff").to_arrow().to_pylist()
        assert str(found) == str([{**data([rows[number]]).to_pylist()[0], "_row_kind": "-D"}])


@pytest.mark.parametrize("alike", [False, True])
def test_more_rows_than_memory_holds_go_to_disk_and_are_deleted(catalog, monkeypatch, alike):
    if alike:
        monkeypatch.setattr(bag_read, "row_hashes", lambda columns, count: bag_read.np.zeros(count, "uint64"))
    table = made(catalog, **{"write-buffer-size": "1 kb"})
    made_files = []
    kind = type(table._root.env.spill)
    real = kind.create

    def create(place):
        made_files.append(real(place))
        return made_files[-1]

    monkeypatch.setattr(kind, "create", create)
    rows = 40 if alike else 600
    table.write_arrow([row(1, number % 30, str(number % 7)) for number in range(rows)])
    table.write_arrow([row(1, number % 31, str(number % 7)) for number in range(rows)], overwrite={})
    del made_files[:]
    assert_exact(table, 1, 2)
    assert len(made_files) >= 32
    for file in made_files:
        with pytest.raises(OSError):
            file.open_read()


def test_parts_that_are_too_large_are_divided_by_the_next_bits_of_their_hashes(catalog, monkeypatch):
    """A row is written to disk once for each time that its part is divided."""
    rows = pa.table({"n": pa.array(range(20_000), pa.int64())})
    made_files, seen = [], []
    place = made(catalog)._root.env.spill

    class Place:
        def create(self):
            made_files.append(place.create())
            return made_files[-1]

    def compare(batches):
        seen.append(sum(batch.num_rows for batch in batches))
        return iter(())

    for limit, levels in ((1 << 30, 0), (rows.nbytes // 4, 1), (rows.nbytes // 100, 2)):
        del made_files[:], seen[:]
        hashed = bag_read.mark_rows(iter(rows.to_batches(max_chunksize=500)), 0, lambda batch: bag_read.row_hashes(batch.columns, batch.num_rows))
        assert list(bag_read.HashParts(Place(), limit, compare).differences(hashed)) == []
        assert sum(seen) == rows.num_rows and len(made_files) == sum(32**level for level in range(1, levels + 1))
        assert max(seen) < 2 * rows.num_rows / 32**levels + 20 or not levels


@pytest.mark.parametrize("seed", range(8))
def test_lives_of_append_tables(catalog, seed):
    chance = random.Random(seed)
    options = [{}, {"deletion-vectors.enabled": "true"}, {"bucket": "2", "bucket-key": "v"}][seed % 3]
    table = made(catalog, **options)

    def some():
        count = chance.randrange(1, 7)
        return [row(chance.randrange(2), chance.randrange(4), chance.choice("ab")) for _ in range(count)]

    table.write_arrow(some())
    for _ in range(9):
        step = chance.randrange(6)
        if step < 2:
            table.write_arrow(some())
        elif step == 2:
            table.delete(col("v") == chance.randrange(4))
        elif step == 3:
            table.update(col("v") == chance.randrange(4), {"t": chance.choice("abc")})
        elif step == 4:
            table.compact(full=chance.random() < 0.5)
        else:
            table.write_arrow([row(1, 3, "o")], overwrite={"p": 1})
    ids = [0, *(snapshot.id for snapshot in table.snapshots())]
    for _ in range(8):
        a, b = sorted(chance.choices(ids, k=2))
        assert_exact(table, a, b)
