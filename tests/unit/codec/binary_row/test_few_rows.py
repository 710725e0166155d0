"""A few rows, value by value, are the bytes that whole columns give."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.binary_row.encode import encode_columns, header_bytes
from paimon_py.codec.binary_row.few_rows import FEW_ROWS, are_few, few_rows
from paimon_py.spec.types import MAX_LENGTH, ArrayType, Atomic, Root

TEXT = st.one_of(st.text(max_size=9), st.sampled_from(["", "1234567", "12345678", "ä" * 8, "x" * 40]))
BINARY = st.one_of(st.binary(max_size=9), st.just(b"\xff" * 17))


def _whole(bits):
    return st.one_of(st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1), st.sampled_from([0, -1, 1]))


def _decimal(precision):
    return st.one_of(st.integers(-(10**precision) + 1, 10**precision - 1), st.sampled_from([0, -1, 127, 128, -128]))


COLUMNS = {
    Atomic(Root.BOOLEAN): st.booleans(),
    Atomic(Root.TINYINT): _whole(8),
    Atomic(Root.SMALLINT): _whole(16),
    Atomic(Root.INT): _whole(32),
    Atomic(Root.BIGINT): _whole(64),
    Atomic(Root.DATE): _whole(32),
    Atomic(Root.TIME, precision=3): st.integers(0, 86_399_999),
    Atomic(Root.FLOAT): st.floats(width=32),
    Atomic(Root.DOUBLE): st.floats(),
    Atomic(Root.VARCHAR, length=MAX_LENGTH): TEXT,
    Atomic(Root.CHAR, length=9): TEXT,
    Atomic(Root.VARBINARY, length=MAX_LENGTH): BINARY,
    **{Atomic(Root.DECIMAL, precision=p, scale=2): _decimal(p) for p in (2, 18, 19, 38)},
    **{
        Atomic(root, precision=digits): _whole(64)
        for root in (Root.TIMESTAMP, Root.TIMESTAMP_LTZ)
        for digits in (0, 3, 6, 9)
    },
}


def _array(values, kind):
    arrow = to_arrow_type(kind)
    if kind.root is Root.DECIMAL:
        data = b"".join((value or 0).to_bytes(16, "little", signed=True) for value in values)
        valid = pa.array([value is not None for value in values], pa.bool_()).buffers()[1]
        return pa.Array.from_buffers(arrow, len(values), [valid, pa.py_buffer(data)])
    if kind.root in (Root.DATE, Root.TIME, Root.TIMESTAMP, Root.TIMESTAMP_LTZ):
        storage = pa.int32() if arrow.bit_width == 32 else pa.int64()
        return pa.array(values, storage).view(arrow)
    return pa.array(values, arrow)


@st.composite
def rows(draw):
    kinds = draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=8))
    count, skip = draw(st.integers(1, FEW_ROWS)), draw(st.integers(0, 9))
    columns = []
    for kind in kinds:
        values = draw(st.lists(st.one_of(st.none(), COLUMNS[kind]), min_size=count + skip, max_size=count + skip))
        columns.append(_array(values, kind).slice(skip))
    return columns, kinds, count


@settings(max_examples=60, deadline=None)
@given(rows())
def test_a_few_rows_are_encoded_as_whole_columns_are(given):
    columns, kinds, count = given
    assert are_few(columns, kinds, count)
    prefix = len(kinds).to_bytes(4, "big")
    found = [prefix + row for row in few_rows(columns, kinds, count, header_bytes(len(kinds)))]
    assert found == encode_columns(columns, kinds, count).to_pylist()


def test_null_columns_have_no_buffers():
    kinds = list(COLUMNS) * 3
    columns = [pa.nulls(2, to_arrow_type(kind)) for kind in kinds]
    prefix = len(kinds).to_bytes(4, "big")
    found = [prefix + row for row in few_rows(columns, kinds, 2, header_bytes(len(kinds)))]
    assert found == encode_columns(columns, kinds, 2).to_pylist()


def test_other_types_and_many_rows_go_by_columns():
    kind = Atomic(Root.INT)
    column = pa.array(range(FEW_ROWS + 1), pa.int32())
    assert not are_few([column], [kind], len(column))
    assert not are_few([pa.array([[1]])], [ArrayType(kind)], 1)
    assert not are_few([pa.nulls(1, pa.binary())], [Atomic(Root.BLOB)], 1)
