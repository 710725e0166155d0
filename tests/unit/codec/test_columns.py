"""Arrow arrays as numpy arrays and back."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from paimon_py.codec.columns import (
    Slices,
    binary_array,
    child_range,
    combine,
    distinct_integers,
    from_numpy,
    from_slices,
    integer_array,
    numpy_values,
    one_nan,
    ranges,
    scalar_array,
    slices_of,
    text_array,
    validity_mask,
    word_view,
)

FIXED = [
    pa.array([1, None, 3, -4], pa.int8()),
    pa.array([1, None, 2**40], pa.int64()),
    pa.array([1.5, None, -0.0], pa.float32()),
    pa.array([True, None, False, True, True, False, None, True, True]),
    pa.array([1, None, 3], pa.date32()),
    pa.array([1, None, 3], pa.timestamp("us", "UTC")),
    pa.array([1, None, 3], pa.time32("ms")),
    pa.array([None, 12345678901234567890123, -1], pa.decimal128(38, 0)),
]


@pytest.mark.parametrize("array", FIXED, ids=lambda a: str(a.type))
def test_values_convert_to_numpy_and_back_at_any_offset(array):
    for start in range(len(array)):
        part = array.slice(start)
        back = from_numpy(numpy_values(part), array.type, validity_mask(part))
        back.validate(full=True)
        assert back.equals(part)


def test_fixed_width_values_are_not_copied():
    array = pa.array([1, 2, 3], pa.int64())
    assert numpy_values(array.slice(1)).__array_interface__["data"][0] == array.buffers()[1].address + 8


def test_texts_of_every_layout_become_slices():
    values = ["a", None, "", "long enough to matter"]
    for kind in (pa.string(), pa.large_string()):
        array = pa.array([*values, "x"], kind).slice(0, 4)
        slices = slices_of(array)
        assert slices.lengths.tolist() == [1, 0, 0, 21]
        assert from_slices(slices, pa.string(), validity_mask(array)).to_pylist() == values
    fixed = pa.array([b"ab", None, b"cd"], pa.binary(2)).slice(1)
    assert from_slices(slices_of(fixed), pa.binary(), validity_mask(fixed)).to_pylist() == [None, b"cd"]


def test_every_position_of_slices_can_be_read_as_a_word():
    slices = slices_of(pa.array(["abc", "d"]))
    assert int(word_view(slices.data)[3]) == ord("d")


def test_slices_may_come_in_any_order_and_overlap():
    data = np.frombuffer(b"abcdef" + bytes(8), np.uint8)
    slices = Slices(data, np.array([4, 0, 2]), np.array([2, 3, 0]))
    assert from_slices(slices, pa.string()).to_pylist() == ["ef", "abc", ""]
    same = Slices(data, np.array([4, 0]), np.array([2, 2]))
    assert from_slices(same, pa.string()).to_pylist() == ["ef", "ab"]


def test_python_bytes_and_texts_become_arrays():
    assert binary_array([b"a", None, b""]).to_pylist() == [b"a", None, b""]
    assert binary_array([]).to_pylist() == []
    assert text_array(["é", None, ""]).to_pylist() == ["é", None, ""]
    text_array(["a"]).validate(full=True)


def test_children_of_lists_are_found_in_every_layout():
    values = [[1, 2], None, [], [3]]
    for kind in (pa.list_(pa.int32()), pa.large_list(pa.int32()), pa.list_view(pa.int32())):
        array = pa.array([[9], *values], kind).slice(1)
        sizes, index, first, last = child_range(array)
        assert sizes.tolist() == [2, 0, 0, 1]
        child = (
            array.values.slice(first, last - first)
            if index is None
            else array.values.take(from_numpy(index, pa.int64()))
        )
        assert child.to_pylist() == [1, 2, 3]


def test_ranges_are_laid_out_one_after_the_other():
    assert ranges(np.array([5, 0, 9]), np.array([2, 0, 3])).tolist() == [5, 6, 9, 10, 11]
    assert ranges(np.array([], np.int64), np.array([], np.int64)).tolist() == []


def test_chunks_become_one_array():
    assert combine(pa.chunked_array([], pa.int32())).to_pylist() == []
    one = pa.array([1])
    assert combine(pa.chunked_array([one])).buffers()[1].address == one.buffers()[1].address
    assert combine(pa.chunked_array([[1], [2]])).to_pylist() == [1, 2]


def test_nothing_here_imports_pandas():
    code = """
import sys, types
sys.modules['paimon_py'] = package = types.ModuleType('paimon_py')
package.__path__ = ['paimon_py']
import numpy as np, pyarrow as pa
from paimon_py.codec import columns
from paimon_py.codec.binary_row import decode, encode, hash_rows
from paimon_py.spec.types import Atomic, Root
column = columns.from_numpy(np.arange(5), pa.int64(), np.arange(5) > 1)
kinds = [Atomic(Root.BIGINT), Atomic(Root.VARCHAR, length=9)]
rows = encode([column, columns.text_array(['a'] * 5)], kinds)
decode(rows, kinds)
decode([bytes(3) + b'\\x02' + bytes(24)], kinds)
hash_rows([column], kinds[:1])
assert 'pandas' not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("array", FIXED, ids=lambda a: str(a.type))
def test_numbers_and_scalars_become_the_same_array(array):
    if pa.types.is_decimal(array.type):
        stored = [None if value is None else int(value) for value in array.to_pylist()]
    elif pa.types.is_temporal(array.type):
        stored = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64()).to_pylist()
    else:
        stored = array.to_pylist()
    assert integer_array(stored, array.type).equals(array)
    assert scalar_array(list(array), array.type).equals(array)
    assert integer_array([], array.type).equals(scalar_array([], array.type))


def test_numbers_that_do_not_fit_are_refused():
    with pytest.raises(OverflowError):
        integer_array([300], pa.int8())
    with pytest.raises((TypeError, ValueError)):
        integer_array([b"x"], pa.int64())


@pytest.mark.parametrize("values", [[], [3], [3, 3], [5, 1, 3, 1, 5]])
def test_distinct_integers_are_numpys(values):
    numbers = np.array(values, np.int64)
    assert distinct_integers(numbers).tolist() == np.unique(numbers).tolist()


NAN_BITS = {
    pa.float32(): [0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF, 0x7FFFFFFF],
    pa.float64(): [0x7FF8 << 48, 0xFFF8 << 48, (0x7FF0 << 48) + 1, (1 << 64) - 1, (1 << 63) - 1],
}


@pytest.mark.parametrize("kind", NAN_BITS, ids=str)
@pytest.mark.parametrize("offset", [0, 1, 9])
@pytest.mark.parametrize("nulls", [(), (0,), (3, 4, 11)])
@pytest.mark.parametrize("has_nan", [True, False])
def test_every_nan_has_the_bits_of_javas_and_all_else_stays(kind, offset, nulls, has_nan):
    words = np.dtype(f"u{kind.bit_width // 8}")
    plain = np.array([0.0, -0.0, 1.5, -np.inf, np.inf, 5e-45, -3.25], f"f{words.itemsize}").view(words)
    nans = np.array(NAN_BITS[kind] if has_nan else [], words)
    bits = np.concatenate([plain[:offset], nans, plain, nans])
    valid = np.array([at not in nulls for at in range(len(bits))])
    whole = from_numpy(bits.view(f"f{words.itemsize}"), kind, valid if nulls else None)
    given = whole.slice(min(offset, len(whole)))
    found = one_nan(given)
    found.validate(full=True)
    wanted = np.where(np.isin(bits, np.array(NAN_BITS[kind], words)), words.type(NAN_BITS[kind][0]), bits)[offset:]
    assert found.type == kind and found.is_valid().to_pylist() == valid[offset:].tolist()
    assert found.view(pa.uint32() if words.itemsize == 4 else pa.uint64()).to_pylist() == [
        int(each) if there else None for each, there in zip(wanted, valid[offset:], strict=True)
    ]


@pytest.mark.parametrize("array", FIXED[:2] + FIXED[3:] + [pa.array(["NaN", None])], ids=lambda a: str(a.type))
def test_arrays_without_floats_have_no_nan(array):
    assert one_nan(array) is array
