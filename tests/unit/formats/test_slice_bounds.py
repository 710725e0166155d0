"""Bounds of many slices at once are those of each slice alone."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon_py.formats.bounds import RunningBounds
from paimon_py.formats.slice_bounds import slice_bounds

TEXTS = st.one_of(st.text("ab\0é", max_size=20), st.sampled_from(["x" * 8, "x" * 16, "x" * 16 + "\0", "x" * 600]))
VALUES = {
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.bool_(): st.booleans(),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.date32(): st.dates(datetime.date(1900, 1, 1)),
    pa.timestamp("us"): st.datetimes(datetime.datetime(1900, 1, 1)),
    pa.decimal128(38, 0): st.integers(-(10**38) + 1, 10**38 - 1).map(decimal.Decimal),
    pa.string(): TEXTS,
    pa.binary(): TEXTS.map(str.encode),
}


def expected(array, kind):
    """The bits of both bounds (NULL: unknown), and the number of nulls."""
    running = RunningBounds(kind)
    running.add(array)
    found = running.result()
    return [None, None] if found.ends is None else [str(value) for value in found.ends], found.null_count


@pytest.mark.parametrize("kind", VALUES, ids=str)
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_each_slice_has_the_bounds_that_it_has_alone(kind, data):
    values = VALUES[kind] if data.draw(st.booleans()) else st.none() | VALUES[kind]
    slices = data.draw(st.lists(st.lists(values, min_size=1, max_size=6), min_size=1, max_size=6))
    array = pa.array([None, *(value for part in slices for value in part)], kind).slice(1)
    cuts = np.cumsum([0, *map(len, slices)])
    found = slice_bounds(array, cuts, ordered=True)
    nowhere = [None] * len(slices)
    lows, highs = (
        nowhere if side is None else [None if value.as_py() is None else str(value) for value in side]
        for side in (found.lows, found.highs)
    )
    for number, part in enumerate(slices):
        one = array.slice(cuts[number], len(part))
        assert ([lows[number], highs[number]], found.null_counts[number]) == expected(one, kind)


@pytest.mark.parametrize("others", [[], ["x" * 8, "x" * 16], ["x" * 16, "x" * 8], ["x" * 600, "x" * 601]])
def test_texts_that_differ_by_zeros_at_their_end_are_told_apart(others):
    array = pa.array(["\0", "", "a\0", "a", *others])
    found = slice_bounds(array, np.array([0, 2, 4, *([len(array)] if others else [])]), ordered=True)
    assert found.lows.to_pylist()[:2] == ["", "a"]
    assert found.highs.to_pylist()[:2] == ["\0", "a\0"]


def test_nulls_alone_are_counted_if_no_order_is_wanted():
    found = slice_bounds(pa.array(["a", None, None]), np.array([0, 1, 3]), ordered=False)
    assert found.lows is None and found.null_counts.tolist() == [0, 2]
