"""Limits, counts and first rows: exact, and read from as few files as statistics allow."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa
import pytest
from unit.scan.build import opened, table
from unit.scan.order import ordered

from paimon_py import col
from paimon_py.errors import UsageError

VALUES = {
    "INT": [None, *range(-20, 20)],
    "DOUBLE": [None, float("nan"), -0.0, 0.0, -1.5, 2.5, float("inf"), float("-inf")],
    "STRING": [None, "", "a", "ab", "b", "ä", "x" * 40, "x" * 39 + "y"],
    "DECIMAL(10, 2)": [None, *(Decimal(number).scaleb(-2) for number in range(-500, 500, 77))],
}


def shown(rows, names):
    return [[repr(row[name]) for name in names] for row in rows]


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("layout", ["append", "keyed", "orc", "summed"])
def test_the_first_rows_are_those_of_a_sort(kind, layout):
    draw = random.Random(f"{kind} {layout}")
    options = {"bucket": "1", "write-only": "true", "file.format": "orc" if layout == "orc" else "parquet"}
    if layout == "summed":
        options |= {"merge-engine": "aggregation", "fields.c.aggregate-function": "max"}
    fields = [("k", "INT NOT NULL"), ("c", kind), ("d", "INT")]
    append = layout in ("append", "orc")
    store = table(
        fields, primary_key=() if append else ("k",), options={**options, **({"bucket": "-1"} if append else {})}
    )
    for _ in range(5):
        rows = [
            {"k": key, "c": draw.choice(VALUES[kind]), "d": draw.randrange(4)} for key in draw.sample(range(60), 15)
        ]
        store.write_arrow(pa.Table.from_pylist(rows, schema=pa.schema(store.scan().schema)))
    everything = store.scan().to_arrow().to_pylist()
    for order in ([("c", False)], [("c", True)], [("d", True), ("c", False)], [("c", True), ("d", False)]):
        names = [name for name, _ in order]
        order_by = [(name, "descending") if descending else name for name, descending in order]
        for limit in (1, 3, 20, 1000):
            found = store.scan(order_by=order_by, limit=limit).to_arrow()
            assert found.schema == store.scan().schema
            assert shown(found.to_pylist(), names) == shown(ordered(everything, order)[:limit], names)
        some = [row for row in everything if row["d"] > 1]
        found = store.scan(order_by=order_by, limit=4, where="d > 1", columns=["k"]).to_arrow()
        by_key = {row["k"]: row for row in everything}
        if not append:
            rows = [by_key[key] for key in found.column("k").to_pylist()]
            assert shown(rows, names) == shown(ordered(some, order)[:4], names)
        assert found.column_names == ["k"] and found.num_rows == min(4, len(some))


def rising():
    """Ten files of ten rows with rising values."""
    store = table([("n", "INT"), ("s", "STRING")], options={"bucket": "-1", "write-only": "true"})
    for start in range(0, 100, 10):
        numbers = list(range(start, start + 10))
        store.write_arrow(pa.table({"n": pa.array(numbers, pa.int32()), "s": [f"{number:03}" for number in numbers]}))
    store._root.store.reset()
    return store


@pytest.mark.parametrize("order", ["n", ("n", "descending"), ("s", "descending")])
def test_files_that_cannot_hold_first_rows_are_not_read(order):
    store = rising()
    found = store.scan(order_by=order, limit=5).to_arrow().column("n").to_pylist()
    assert found == ([0, 1, 2, 3, 4] if order == "n" else [99, 98, 97, 96, 95])
    assert len(set(opened(store))) == 1


def test_a_limit_plans_no_more_files_than_surely_hold_enough_rows():
    store = rising()
    store = type(store)(store._root, store.schema, "t")
    scan = store.scan(limit=25, options={"source.split.target-size": "1 kb", "source.split.open-file-cost": "1 kb"})
    assert len(scan.splits()) == 3
    assert scan.explain().skipped.limit == 7
    assert "limit 7" in str(scan.explain())
    assert scan.to_arrow().num_rows == scan.count() == 25
    assert store.scan(limit=25, where=col("n") >= 80).count() == 20


def test_rows_of_partitions_are_counted_without_opening_a_file():
    store = table([("p", "INT"), ("n", "INT")], partition_by=("p",), options={"bucket": "-1"})
    store.write_arrow(pa.table({"p": pa.array([1, 1, 2, None], pa.int32()), "n": pa.array([1, 2, 3, 4], pa.int32())}))
    store._root.store.reset()
    assert store.scan(where="p = 1").count() == 2
    assert store.scan(where="p IS NULL OR p = 2").count() == 2
    assert opened(store) == []
    assert store.scan(where="p = 1 AND n > 1").count() == 1


@pytest.mark.parametrize(
    ("order_by", "words"),
    [("x", "column 'x' does not exist"), (("n", "up"), "descending"), ([], "no column"), (["n", "n"], "twice"), (7, "takes")],
)
def test_an_order_that_is_none_is_refused_by_name(order_by, words):
    with pytest.raises(UsageError, match=words):
        rising().scan(order_by=order_by, limit=1)


def test_an_order_needs_a_limit_and_has_no_splits():
    store = rising()
    with pytest.raises(UsageError, match="limit="):
        store.scan(order_by="n")
    with pytest.raises(UsageError, match="as a whole"):
        store.scan(order_by="n", limit=2).splits()
    assert store.scan(order_by="n", limit=0).to_arrow().num_rows == 0
    assert store.scan(order_by="n", limit=200).head(2).column("n").to_pylist() == [0, 1]
    assert store.scan(order_by="n", limit=7).count() == 7


def test_a_limit_does_not_count_on_dead_rows():
    options = {"bucket": "-1", "write-only": "true", "deletion-vectors.enabled": "true"}
    store = table([("n", "INT")], options=options)
    for start in range(0, 30, 10):
        store.write_arrow(pa.table({"n": pa.array(range(start, start + 10), pa.int32())}))
    store.delete("n < 9 OR n = 29")
    small = {"source.split.target-size": "1 b", "source.split.open-file-cost": "1 b"}
    for limit in (1, 2, 10, 11, 12, 20, 21):
        scan = store.scan(limit=limit, options=small)
        assert scan.to_arrow().num_rows == scan.count() == min(limit, 20)
    assert [len(store.scan(limit=limit, options=small).splits()) for limit in (1, 2, 11, 12)] == [1, 2, 2, 3]


def test_sums_of_several_runs_may_come_before_what_statistics_promise():
    options = {"bucket": "1", "write-only": "true", "merge-engine": "aggregation", "fields.c.aggregate-function": "sum"}
    store = table([("k", "INT NOT NULL"), ("c", "INT")], primary_key=("k",), options=options)
    for key, value in ((1, 5), (1, 100), (9, 103), (20, 7)):
        store.write_arrow(pa.table({"k": pa.array([key], pa.int32()), "c": pa.array([value], pa.int32())}))
    first = store.scan(order_by=("c", "descending"), limit=1)
    assert first.to_arrow().to_pylist() == [{"k": 1, "c": 105}]
    done = first.explain(analyze=True).analysis
    assert (done.files_opened, done.files_by_order) == (2, 2)
