"""Questions to `scan.reach`: is reading a sorted run stopped early, and never too early?"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon_py import Catalog
from paimon_py.expr.arrow import evaluate
from paimon_py.expr.bind import bind
from paimon_py.expr.column import col
from paimon_py.files.reader import FileReader
from paimon_py.lsm import merge
from paimon_py.scan import split_reader
from paimon_py.scan.reach import reach
from paimon_py.spec.types import Atomic, Field, Root

FIELDS = (Field(0, "k", Atomic(Root.INT)), Field(1, "v", Atomic(Root.INT)))


def beyond(predicate, first, fields=FIELDS, kind=None):
    test = reach(bind(predicate, fields), "k")
    return None if test is None else test(pa.record_batch({"k": pa.array([first], kind or pa.int32())}))


@pytest.mark.parametrize(
    ("predicate", "first", "expected"),
    [
        (col("k") < 5, 5, True),
        (col("k") < 5, 4, False),
        (col("k") <= 5, 5, False),
        (col("k") == 5, 6, True),
        (col("k").isin([1, 9]), 9, False),
        (col("k").isin([1, 9]), 10, True),
        (col("k").between(2, 4) & (col("v") == 1), 5, True),
        ((col("k") < 3) | (col("k") == 7), 7, False),
        ((col("k") < 3) | (col("k") == 7), 8, True),
    ],
)
def test_a_run_is_left_behind_its_last_possible_key(predicate, first, expected):
    assert beyond(predicate, first) is expected


@pytest.mark.parametrize("predicate", [col("k") > 5, col("v") == 1, (col("k") < 3) | (col("v") == 1), col("k") != 5])
def test_nothing_stops_where_no_upper_bound_is_known(predicate):
    assert beyond(predicate, 100) is None


def test_floats_are_compared_as_java_does():
    fields = (Field(0, "k", Atomic(Root.DOUBLE)),)
    assert beyond(col("k") <= -0.0, 0.0, fields, pa.float64()) is True
    assert beyond(col("k") == math.nan, math.nan, fields, pa.float64()) is False
    assert beyond(col("k") <= math.inf, math.nan, fields, pa.float64()) is True


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.data())
def test_no_row_behind_the_reach_matches(data):
    value = st.integers(-5, 5)
    leaf = st.one_of(
        value.map(lambda v: col("k") < v),
        value.map(lambda v: col("k") >= v),
        value.map(lambda v: col("k") == v),
        st.lists(value, min_size=1, max_size=3).map(lambda v: col("k").isin(v)),
        value.map(lambda v: col("v") > v),
    )
    tree = st.recursive(
        leaf,
        lambda inner: st.tuples(inner, inner, st.booleans()).map(lambda t: t[0] & t[1] if t[2] else t[0] | t[1]),
        max_leaves=5,
    )
    predicate = bind(data.draw(tree), FIELDS)
    test = reach(predicate, "k")
    rows = [(k, v) for k in range(-6, 7) for v in range(-6, 7)]
    batch = pa.record_batch(
        {"k": pa.array([k for k, _ in rows], pa.int32()), "v": pa.array([v for _, v in rows], pa.int32())}
    )
    for at, matches in enumerate(evaluate(predicate, batch).to_pylist()):
        assert not (matches and test is not None and test(batch.slice(at, 1)))


@pytest.mark.parametrize("options", [{}, {"parquet.page.size": "2000"}, {"file.format": "avro"}, {"file.format": "orc"}])
@pytest.mark.parametrize("runs", [1, 4])
def test_ranges_of_keys_are_filtered_rows_at_any_end_of_a_batch(tmp_path, monkeypatch, options, runs):
    monkeypatch.setattr(split_reader, "_FEW_ROWS", 16)
    monkeypatch.setattr(merge, "_BATCH_ROWS", 64)
    catalog = Catalog.open(tmp_path)
    catalog.create_database("d")
    schema = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())])
    options = {"bucket": "1", "write-only": "true", "target-file-size": "1 kb", **options}
    table = catalog.create_table("d.t", schema, primary_key=["k"], options=options)
    rng = np.random.default_rng(runs)
    for number in range(runs):
        keys = rng.choice(1_000, 500, replace=False)
        table.write_arrow(pa.table({"k": keys, "v": keys + number}, schema))
    whole = table.scan().to_arrow()
    for low, high in [(0, 15), (0, 16), (16, 63), (63, 64), (100, 100), (500, 480), (900, 2_000), *rng.integers(0, 999, (12, 2)).tolist()]:
        where = col("k").between(low, high) if low <= high else (col("k") >= high) & (col("k") < low)
        found = table.scan(where=where).to_arrow()
        ends = sorted((low, high + (low <= high)))
        assert found.equals(whole.filter((pc.field("k") >= ends[0]) & (pc.field("k") < ends[1])))


def test_what_follows_a_batch_that_ends_after_the_last_key_is_not_decoded(tmp_path, monkeypatch):
    catalog = Catalog.open(tmp_path)
    catalog.create_database("d")
    schema = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())])
    table = catalog.create_table("d.t", schema, primary_key=["k"], options={"bucket": "1", "write-only": "true"})
    for number in range(2):
        table.write_arrow(pa.table({"k": range(38_000), "v": range(number, 38_000 + number)}, schema))
    decoded, positions = [], FileReader.positions

    def counted(self, *args, **given):
        for position, batch in positions(self, *args, **given):
            decoded.append(batch.num_rows)
            yield position, batch

    monkeypatch.setattr(FileReader, "positions", counted)
    assert table.scan(where=col("k") < 100).to_arrow().num_rows == 100
    assert sum(decoded) <= 38_000
