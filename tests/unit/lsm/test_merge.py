"""Questions to `lsm.merge`: is the merge right for any runs and any window, and are broken runs noticed?"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon_py.errors import CorruptionError
from paimon_py.lsm.engines.deduplicate import Deduplicate
from paimon_py.lsm.groups import Merged
from paimon_py.lsm.merge import MergeWindow, Plan, ResultFilter, RunSource, merge
from paimon_py.lsm.order import MergeOrder
from paimon_py.memory import UNLIMITED, MemoryShares
from paimon_py.spec.types import Atomic, Field, Root

SCHEMA = pa.schema(
    [
        ("k", pa.string()),
        ("n", pa.int32()),
        ("v", pa.int64()),
        ("_SEQUENCE_NUMBER", pa.int64()),
        ("_VALUE_KIND", pa.int8()),
    ]
)
ORDER = MergeOrder(keys=(Field(0, "k", Atomic(Root.VARCHAR)), Field(1, "n", Atomic(Root.INT))))


def source(rows, batch_rows=None, columns=SCHEMA.names, name="run"):
    table = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA).select(columns)

    def open_run(wanted):
        return iter(table.to_batches(max_chunksize=batch_rows or wanted))

    return RunSource(name, len(rows), 40, open_run)


def plan(**changes):
    return Plan(**{"order": ORDER, "engine": Deduplicate(), **changes})


def merged(sources, **changes):
    batches = list(merge(sources, plan(**changes)))
    return pa.Table.from_batches(batches).to_pylist() if batches else []


@st.composite
def run_sets(draw):
    keys = [
        (text, number) for text in ("", "a", "a\0", "key-000000000000001", "key-000000000000002") for number in range(9)
    ]
    runs, sequence = [], 0
    for _ in range(draw(st.integers(1, 5))):
        picked = sorted(draw(st.sets(st.sampled_from(keys), max_size=45)))
        rows = [
            (text, number, sequence + at, sequence + draw(st.integers(0, 30)), draw(st.sampled_from([0, 0, 2, 3])))
            for at, (text, number) in enumerate(picked)
        ]
        sequence += draw(st.sampled_from([0, 50]))
        runs.append(rows)
    return runs


@settings(max_examples=150, deadline=None, derandomize=True)
@given(run_sets(), st.integers(1, 7), st.integers(1, 60), st.sampled_from([None, 0, 1, 9]))
def test_a_merge_equals_a_dictionary_filled_in_order_of_sequence(runs, batch_rows, window_rows, first_rows):
    expected: dict = {}
    for run in runs:
        for row in run:
            held = expected.get(row[:2])
            if held is None or (row[3], row[4] % 2 == 0) >= (held[3], held[4] % 2 == 0):
                expected[row[:2]] = row
    wanted = [expected[key] for key in sorted(expected, key=lambda k: (k[0].encode(), k[1])) if expected[key][4] != 3]
    got = merged([source(run, batch_rows) for run in runs], window_rows=window_rows, first_rows=first_rows)
    assert [tuple(row.values()) for row in got] == wanted


class _Summing:
    """Computes a column and the kinds, some of them deletes."""

    def __call__(self, groups, columns):
        sums = np.add.reduceat(columns["v"].to_numpy()[groups.order], groups.firsts) if len(groups) else np.zeros(0)
        kinds = pa.array((sums % 5 == 0) * 3, pa.int8())
        return Merged(groups.newest_rows, {"v": pa.array(sums, pa.int64()), "_VALUE_KIND": kinds})


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    run_sets(), st.integers(1, 7), st.integers(1, 60), st.booleans(), st.sampled_from([Deduplicate(), _Summing()]),
    st.sampled_from([("v",), ("n",), ("v", "k"), ("k", "n", "v")]), st.sampled_from([1, 2, 7]), st.integers(0, 1),
)  # fmt: skip
def test_a_condition_leaves_the_rows_that_a_filter_of_the_result_leaves(
    runs, batch_rows, window_rows, drop_deletes, engine, asked, modulus, rest
):
    def mask(batch):
        assert batch.schema.names == list(asked)
        numbers = batch.column("v" if "v" in asked else "n").to_numpy()
        return pa.array(numbers % modulus == rest)

    def all_rows():
        settings = {"engine": engine, "drop_deletes": drop_deletes, "window_rows": window_rows}
        return [source(run, batch_rows) for run in runs], {**settings, "columns": ("k", "n", "v")}

    sources, settings = all_rows()
    number = 2 if "v" in asked else 1
    expected = [row for row in merged(sources, **settings) if list(row.values())[number] % modulus == rest]
    sources, settings = all_rows()
    found = merged(sources, **settings, condition=ResultFilter(asked, mask))
    if len(asked) < 3:
        assert found == expected
    else:  # nothing is left to gather, so the caller's filter is enough
        assert [row for row in found if row["v"] % modulus == rest] == expected


def test_windows_begin_small_and_grow_where_few_rows_may_be_enough():
    asked = []

    def run(start):
        table = pa.table({"k": ["k"] * 40_000, "n": range(start, start + 40_000), "v": [0] * 40_000}).cast(pa.schema(list(SCHEMA)[:3]))

        def open_run(wanted):
            asked.append(wanted)
            return iter(table.to_batches(max_chunksize=wanted))

        return RunSource("run", 40_000, 40, open_run)

    sizes = [batch.num_rows for batch in merge([run(0), run(20_000)], plan(first_rows=10))]
    assert sum(sizes) == 60_000 and sizes[0] <= 4096 and max(sizes[1:]) > 4 * sizes[0] and max(asked) <= 4096


class Versions:
    """An engine whose result names every version of a key, oldest first."""

    def inputs(self, wanted):
        return wanted

    def __call__(self, groups, columns):
        numbers = columns["v"].take(pa.array(groups.order)).to_pylist()
        sums = [sum(n * 1000**i for i, n in enumerate(numbers[a:b])) for a, b in zip(groups.firsts, groups.ends)]
        return Merged(groups.newest_rows, {"v": pa.array([total % 2**61 for total in sums], pa.int64())})


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.lists(st.lists(st.tuples(st.sampled_from(["", "a", "b"]), st.integers(0, 3)), max_size=40), min_size=1, max_size=4),
    st.integers(1, 7),
    st.integers(1, 60),
)
def test_runs_with_repeated_keys_merge_like_one_run_of_all_versions(keys, batch_rows, window_rows):
    runs, expected, number = [], {}, 0
    for run in keys:
        rows = []
        for key in sorted(run):
            number += 1
            rows.append((*key, number, number, 0))
            expected.setdefault(key, []).append(number)
        runs.append(rows)
    sources = [source(rows, batch_rows) for rows in runs]
    got = merged(sources, window_rows=window_rows, engine=Versions(), repeats=True, columns=("k", "n", "v"))
    assert [tuple(row.values()) for row in got] == [
        (*key, sum(n * 1000**i for i, n in enumerate(expected[key])) % 2**61) for key in sorted(expected)
    ]


def test_keys_that_fall_are_noticed_where_they_may_repeat_too():
    for second in (("a", 0), ("", 5)):
        rows = [("a", 1, 1, 1, 0), ("a", 1, 2, 2, 0), (*second, 3, 3, 0)]
        for batch_rows in (1, 2, 3):
            with pytest.raises(CorruptionError, match="not in ascending order"):
                merged([source(rows, batch_rows), source([("a", 1, 9, 9, 0)])], repeats=True)


def test_output_rows_lack_columns_that_only_the_merge_needed():
    got = merged([source([("a", 1, 7, 0, 0)]), source([("a", 1, 8, 1, 2)])], columns=("v",))
    assert got == [{"v": 8}]


def test_order_of_runs_decides_when_sequence_numbers_are_not_read():
    columns = ["k", "n", "v"]
    runs = [source([("a", 1, value, 0, 0)], columns=columns) for value in (3, 1, 2)]
    assert merged(runs) == [{"k": "a", "n": 1, "v": 2}]


def test_deletes_stay_when_asked_for():
    got = merged(
        [source([("a", 1, 7, 0, 0)]), source([("a", 1, 8, 1, 3)])], drop_deletes=False, columns=("v", "_VALUE_KIND")
    )
    assert got == [{"v": 8, "_VALUE_KIND": 3}]


def test_an_engine_may_compute_columns_and_kinds():
    def engine(groups, columns):
        assert columns["v"].to_pylist() == [1, 2, 3]
        kinds = pa.array([3, 0], pa.int8())
        return Merged(groups.newest_rows, {"v": pa.array([10, 20], pa.int64()), "_VALUE_KIND": kinds})

    runs = [source([("a", 1, 1, 0, 0), ("b", 1, 2, 1, 0)]), source([("b", 1, 3, 2, 0)])]
    assert merged(runs, engine=engine, columns=("k", "v")) == [{"k": "b", "v": 20}]


def rounds(runs):
    """Java's `SortMergeReader` with plain lists: each round takes one row of every run that stands at the smallest key."""
    runs, merged = [list(run) for run in runs], []
    while any(runs):
        key = min(run[0][:2] for run in runs if run)
        merged.append([run.pop(0) for run in runs if run and run[0][:2] == key])
    return merged


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.lists(st.lists(st.tuples(st.sampled_from(["", "a", "b"]), st.integers(0, 2)), max_size=30), min_size=1, max_size=4),
    st.integers(1, 7),
    st.integers(1, 60),
)
def test_runs_that_hold_a_key_twice_merge_as_in_java(keys, batch_rows, window_rows):
    number, runs = 0, []
    for run in keys:
        runs.append([(*key, number + at, number + at, 0) for at, key in enumerate(sorted(run))])
        number += len(run)
    got = merged([source(rows, batch_rows) for rows in runs], window_rows=window_rows, engine=Versions(), columns=("k", "n", "v"))
    wanted = [(*rows[0][:2], sum(row[3] * 1000**i for i, row in enumerate(rows)) % 2**61) for rows in rounds(runs)]
    assert [tuple(row.values()) for row in got] == wanted


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.lists(st.lists(st.integers(-2, 5), max_size=12), min_size=1, max_size=3), st.integers(1, 4), st.integers(1, 12),
)  # fmt: skip
def test_runs_that_hold_a_number_twice_merge_as_in_java(keys, batch_rows, window_rows):
    """Keys whose order is checked a batch at a time: a batch of different keys says nothing of those before it."""
    number, runs = 0, []
    for run in keys:
        runs.append([("", key, number + at, number + at, 0) for at, key in enumerate(sorted(run))])
        number += len(run)
    order = MergeOrder(keys=(Field(1, "n", Atomic(Root.INT)),))
    sources = [source(rows, batch_rows) for rows in runs]
    got = merged(sources, order=order, window_rows=window_rows, engine=Versions(), columns=("n", "v"))
    wanted = [(rows[0][1], sum(row[3] * 1000**i for i, row in enumerate(rows)) % 2**61) for rows in rounds(runs)]
    assert [tuple(row.values()) for row in got] == wanted


@pytest.mark.parametrize("batch_rows", [1, 2, 10])
def test_a_run_that_goes_backwards_is_corrupt(batch_rows):
    rows = [("b", 1, 1, 0, 0), ("a", 1, 2, 1, 0), ("c", 1, 3, 2, 0)]
    with pytest.raises(CorruptionError, match="broken"):
        merged([source([("b", 1, 1, 0, 0)]), source(rows, batch_rows, name="broken.parquet")], window_rows=1)


def test_runs_are_closed_when_the_reader_stops_early():
    closed = []

    def open_run(wanted):
        try:
            yield pa.record_batch({"k": ["a"], "n": pa.array([1], pa.int32())})
        finally:
            closed.append(True)

    stream = merge([RunSource("a", 1, 1, open_run)] * 2, plan())
    next(stream)
    stream.close()
    assert len(closed) == 2


def test_windows_stay_small_when_rows_are_wide():
    seen = []

    def engine(groups, columns):
        seen.append(len(groups.order))
        return Deduplicate()(groups, columns)

    rows = [(f"{n:06d}", 1, n, n, 0) for n in range(4000)]
    list(merge([source(rows), source(rows)], plan(engine=engine, window_bytes=20_000)))
    assert max(seen) <= 1100 and sum(seen) == 8000


NUMBERS = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("_VALUE_KIND", pa.int8())])
BY_NUMBER = MergeOrder(keys=(Field(0, "k", Atomic(Root.BIGINT)),))


def numbers(keys, version, batch_rows, kinds=None, name="run"):
    columns = [pa.array(keys), pa.array([version] * len(keys)), pa.array(kinds or [0] * len(keys), pa.int8())]
    table = pa.Table.from_arrays([c.cast(f.type) for c, f in zip(columns, NUMBERS, strict=True)], schema=NUMBERS)
    return RunSource(name, len(keys), 17, lambda rows: iter(table.to_batches(max_chunksize=batch_rows or rows)))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(st.sets(st.integers(-50, 400), max_size=80), min_size=1, max_size=4), st.integers(1, 9), st.data())
def test_runs_that_are_alone_for_long_stretches_merge_like_any(runs, batch_rows, data):
    window_rows = data.draw(st.sampled_from([1, 7, 40, 1000]))
    sources = [numbers(sorted(run), at, batch_rows) for at, run in enumerate(runs)]
    batches = list(merge(sources, plan(order=BY_NUMBER, window_rows=window_rows)))
    got = [(row["k"], row["v"]) for batch in batches for row in batch.to_pylist()]
    assert got == sorted({key: at for at, run in enumerate(runs) for key in run}.items())


def test_a_run_that_is_alone_is_not_read_beyond_the_window_budget():
    read = []
    table = pa.Table.from_arrays([pa.array(range(10_000))] * 2 + [pa.array([0] * 10_000, pa.int8())], schema=NUMBERS)

    def batches(rows):
        for batch in table.to_batches(max_chunksize=rows):
            read.append(batch.num_rows)
            yield batch

    other = numbers([10_000], 1, None)
    steps = merge([RunSource("long", 10_000, 17, batches), other], plan(order=BY_NUMBER, window_rows=1000))
    first = next(steps)
    assert first.num_rows <= 1000 and sum(read) <= 2 * 1000 + 256
    assert first.num_rows + sum(batch.num_rows for batch in steps) == 10_001


@pytest.mark.parametrize("keys", [[1, 3, 2, 4], [5, 6, 7, 1]])
@pytest.mark.parametrize("batch_rows", [1, 2, 4])
def test_a_run_alone_that_does_not_grow_is_corruption(keys, batch_rows):
    with pytest.raises(CorruptionError, match="broken"):
        list(merge([numbers(keys, 0, batch_rows, name="broken"), numbers([100], 1, 1)], plan(order=BY_NUMBER)))


@pytest.mark.parametrize("first", [299, 300, 398, 399, 400])
def test_a_window_that_ends_on_the_first_key_of_another_run_leaves_the_key_to_the_next(first):
    long, short = numbers(range(1000), 0, 100), numbers([first, *range(2000, 2999)], 1, 100)
    rows = [row for batch in merge([long, short], plan(order=BY_NUMBER, window_rows=600)) for row in batch.to_pylist()]
    assert [row["k"] for row in rows] == [*range(1000), *range(2000, 2999)]
    assert [row["k"] for row in rows if row["v"] == 1] == [first, *range(2000, 2999)]


def test_windows_shrink_with_the_memory_of_the_process():
    whole = MergeWindow()
    assert whole.within(UNLIMITED) == whole == whole.within(MemoryShares(4 << 30))
    small = whole.within(MemoryShares(256 << 20))
    assert (small.rows, small.size_bytes) == (whole.rows // 4, 8 << 20)
    assert whole.within(MemoryShares(1 << 20)).rows == 256
