"""Questions to `lsm.order`: does every key type sort as Java does, and do versions of a key come in order?"""

from __future__ import annotations

import datetime
import decimal
import math
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon_py.codec.binary_row import encode
from paimon_py.errors import UnsupportedError
from paimon_py.lsm.engines.deduplicate import Deduplicate
from paimon_py.lsm.groups import Groups
from paimon_py.lsm.order import MergeOrder, dense_ranks, key_ranks, sort_batch
from paimon_py.spec.types import Atomic, Field, Root


def field(name: str) -> Field:
    return Field(0, name, Atomic(Root.INT))


def reference_key(value, kind):
    """A Python value that compares as Java compares, null first."""
    if value is None:
        return (0,)
    if pa.types.is_string(kind):
        return (1, value.encode())
    if pa.types.is_floating(kind):
        if math.isnan(value):
            return (1, 2, 0)
        bits = struct.unpack(">q", struct.pack(">d", value))[0]
        return (1, 1, bits if bits >= 0 else -(1 << 63) - bits - 1)
    return (1, value)


def reference(columns, sequence=(), descending=False):
    names = list(columns)
    rows = list(zip(*(columns[name].to_pylist() for name in names), strict=True))
    kinds = [columns[name].type for name in names]

    def key(index):
        key_part, seq_part = [], []
        for name, value, kind in zip(names, rows[index], kinds, strict=True):
            form = reference_key(value, kind)
            if name.startswith("k"):
                key_part.append(form)
            elif name in sequence and descending and value is not None:
                seq_part.append((1, _Backwards(form)))
            else:
                seq_part.append((form[0], form))
        return key_part, seq_part

    order = sorted(range(len(rows)), key=key)
    starts = [i == 0 or key(order[i])[0] != key(order[i - 1])[0] for i in range(len(order))]
    return order, starts


class _Backwards:
    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        return other.value < self.value

    def __eq__(self, other):
        return self.value == other.value


def check(columns, *, sequence=(), descending=False):
    keys = tuple(field(name) for name in columns if name.startswith("k"))
    order = MergeOrder(keys=keys, sequence=tuple(field(name) for name in sequence), sequence_descending=descending)
    expected = reference(columns, sequence, descending)
    for runs_sorted in (True, False):
        rows, starts = sort_batch(order, columns, runs_sorted=runs_sorted)
        assert (rows.tolist(), starts.tolist()) == expected
        assert rows.dtype == np.int64 and starts.dtype == np.bool_


KINDS = {
    "tinyint": (pa.int8(), st.integers(-128, 127)),
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "small int": (pa.int32(), st.integers(-3, 3)),
    "bigint": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "boolean": (pa.bool_(), st.booleans()),
    "double": (pa.float64(), st.one_of(st.floats(), st.sampled_from([0.0, -0.0, math.nan, -math.nan, math.inf]))),
    "float": (pa.float32(), st.one_of(st.floats(width=32), st.sampled_from([0.0, -0.0, math.nan]))),
    "date": (pa.date32(), st.dates()),
    "time": (pa.time32("ms"), st.integers(0, 86_399_999)),
    "timestamp": (pa.timestamp("us"), st.integers(-(2**53), 2**53)),
    "zoned": (pa.timestamp("ms", tz="UTC"), st.integers(-(2**40), 2**40)),
    "narrow decimal": (pa.decimal128(9, 2), st.decimals(-(10**6), 10**6, places=2)),
    "wide decimal": (pa.decimal128(38, 3), st.decimals(-(10**34), 10**34, places=3)),
    "string": (pa.string(), st.text(st.characters(exclude_categories=["Cs"]), max_size=20)),
    "prefixed string": (pa.string(), st.text("ab", max_size=12).map(lambda text: "user-000000" + text)),
    "binary": (pa.binary(), st.binary(max_size=12)),
    "zero bytes": (pa.binary(), st.text("\0a", max_size=10).map(str.encode)),
}


def values_of(draw, kind, nullable):
    arrow, values = KINDS[kind]
    if nullable:
        values = st.one_of(st.none(), values)
    return arrow, draw(st.lists(values, min_size=1, max_size=4))


@st.composite
def key_columns(draw):
    count = draw(st.integers(0, 40))
    columns = {}
    for index in range(draw(st.integers(1, 3))):
        arrow, pool = values_of(draw, draw(st.sampled_from(sorted(KINDS))), draw(st.booleans()))
        cells = draw(st.lists(st.sampled_from(pool), min_size=count, max_size=count))
        columns[f"k{index}"] = pa.array(cells, arrow) if not isinstance(cells, str) else cells
    return columns


@settings(max_examples=400, deadline=None, derandomize=True)
@given(key_columns())
def test_every_mix_of_key_types_sorts_as_the_reference_does(columns):
    check(columns)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(key_columns(), st.data())
def test_versions_of_a_key_are_ordered_by_sequence_fields_then_sequence_number(columns, data):
    count = len(columns["k0"])
    fields = data.draw(st.integers(0, 2))
    descending = data.draw(st.booleans())
    for index in range(fields):
        arrow, pool = values_of(data.draw, data.draw(st.sampled_from(sorted(KINDS))), True)
        columns[f"s{index}"] = pa.array(
            data.draw(st.lists(st.sampled_from(pool), min_size=count, max_size=count)), arrow
        )
    if data.draw(st.booleans()):
        numbers = data.draw(st.lists(st.integers(-1, 5), min_size=count, max_size=count))
        columns["_SEQUENCE_NUMBER"] = pa.array(numbers, pa.int64())
    check(columns, sequence=tuple(f"s{index}" for index in range(fields)), descending=descending)


def test_awkward_values_sort_in_java_order():
    cases = {
        pa.float64(): [-math.inf, -1.5, -5e-324, -0.0, 0.0, 5e-324, 1.0, math.inf, math.nan],
        pa.string(): ["", "\0", "\0\0", "a", "a\0", "ab", "b", "z\ud7ff", "\ufeff", "\U0001f600"],
        pa.binary(): [b"", b"\x00", b"\x7f", b"\x80", b"\xff", b"\xff\x00", b"\xff" * 9],
        pa.decimal128(38, 0): [decimal.Decimal(10) ** 37 * n for n in (-9, -1, 0, 1, 9)],
        pa.date32(): [datetime.date(1, 1, 1), datetime.date(1969, 12, 31), datetime.date(1970, 1, 1)],
        pa.int64(): [-(2**63), -1, 0, 1, 2**63 - 1],
        pa.bool_(): [False, True],
    }
    for kind, values in cases.items():
        array = pa.array([None, *values][::-1], kind)
        rows, starts = sort_batch(MergeOrder(keys=(field("k"),)), {"k": array}, runs_sorted=False)
        assert rows.tolist() == list(range(len(array)))[::-1], kind
        assert starts.all()


def test_sliced_and_chunked_columns_are_read_at_their_place():
    whole = pa.array([f"key-{n:05d}" for n in (9, 9, 3, 1, 2, 1, 9)])
    chunked = pa.chunked_array([whole.slice(2, 2), whole.slice(4, 2)])
    rows, starts = sort_batch(MergeOrder(keys=(field("k"),)), {"k": chunked}, runs_sorted=True)
    assert rows.tolist() == [1, 3, 2, 0]
    assert starts.tolist() == [True, False, True, True]


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.binary(max_size=18), st.integers(0, 18), st.sampled_from([0, 1, 18, 19]), st.data())
def test_strings_of_one_length_sort_as_the_reference_does(prefix, width, first, data):
    rest = st.binary(min_size=width, max_size=width)
    values = data.draw(st.lists(st.one_of(rest, st.text("\0\1", min_size=width, max_size=width).map(str.encode))))
    cells = [prefix + value for value in values]
    check({"k0": pa.array([b"x" * first, *cells], pa.binary()).slice(1), "k1": pa.array(range(len(cells)), pa.int64())})


def test_a_nested_key_is_refused():
    with pytest.raises(UnsupportedError, match="no order"):
        sort_batch(MergeOrder(keys=(field("k"),)), {"k": pa.array([[1], [2]])}, runs_sorted=True)


def test_a_retraction_comes_before_an_addition_of_the_same_number():
    columns = {
        "k": pa.array([1, 1, 1]),
        "_SEQUENCE_NUMBER": pa.array([7, 7, 7], pa.int64()),
        "_VALUE_KIND": pa.array([0, 3, 2], pa.int8()),
    }
    rows, _ = sort_batch(MergeOrder(keys=(field("k"),)), columns, runs_sorted=True)
    assert rows.tolist() == [1, 0, 2]


@pytest.mark.parametrize("runs_sorted", [True, False])
def test_many_runs_of_wide_keys_agree_with_numpy(runs_sorted):
    random = np.random.default_rng(7)
    runs = [np.sort(random.choice(2**62, 500, replace=False)) for _ in range(5)]
    keys = np.concatenate([*runs, runs[0][::2]])
    texts = pa.array([f"{key:036x}" for key in keys.tolist()])
    expected = np.argsort(keys, kind="stable")
    for column in (pa.array(keys.tolist(), pa.int64()), texts):
        rows, starts = sort_batch(MergeOrder(keys=(field("k"),)), {"k": column}, runs_sorted=runs_sorted)
        assert (rows == expected).all()
        assert int(starts.sum()) == len(np.unique(keys))


def test_dense_ranks_number_distinct_rows_in_key_order():
    ranks = dense_ranks([pa.array([2, 1, 2, None, 1]), pa.array(["b", "z", "a", "x", "z"])])
    assert ranks.tolist() == [3, 1, 2, 0, 1]


def test_key_ranks_compare_min_and_max_keys_of_files_in_one_scale():
    types = [Atomic(Root.INT), Atomic(Root.VARCHAR, length=9)]
    lows = encode([pa.array([-1, 5, 5], pa.int32()), pa.array(["b", "a", "a\0"])], types)
    highs = encode([pa.array([5, 5, 7], pa.int32()), pa.array(["a", "a\0", ""])], types)
    low_ranks, high_ranks = key_ranks(lows, highs, types)
    assert low_ranks.tolist() == [0, 1, 2]
    assert high_ranks.tolist() == [1, 2, 3]


def test_deduplicate_keeps_the_newest_row_of_every_key():
    groups = Groups(np.array([3, 0, 2, 1]), np.array([True, True, False, True]))
    assert Deduplicate()(groups, {}).rows.tolist() == [3, 2, 1]
    assert (groups.oldest_rows.tolist(), groups.multiple.tolist(), len(groups)) == ([3, 0, 1], [1], 3)


def test_deduplicate_can_step_over_deletes():
    groups = Groups(np.array([0, 1, 2, 3, 4]), np.array([True, False, False, True, False]))
    kinds = pa.chunked_array([pa.array([0, 2, 3, 1, 3], pa.int8())])
    assert Deduplicate(ignore_delete=True)(groups, {"_VALUE_KIND": kinds}).rows.tolist() == [1, 4]
    assert Deduplicate(ignore_delete=True)(groups, {}).rows.tolist() == [2, 4]

