"""Masks over Arrow columns: small questions whose answers are known."""

import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import paimon_py
from paimon_py.expr.arrow import evaluate, pinned_values, prepare
from paimon_py.expr.bind import bind
from paimon_py.expr.column import col
from paimon_py.expr.predicate import Constant
from paimon_py.spec.types import Atomic, Field, Root, RowType

NAN = float("nan")
INT = Atomic(Root.INT)
FIELDS = [
    Field(0, "f", Atomic(Root.FLOAT)),
    Field(1, "d", Atomic(Root.DOUBLE)),
    Field(2, "s", Atomic(Root.VARCHAR, length=99)),
    Field(3, "b", Atomic(Root.VARBINARY, length=99)),
    Field(4, "i", INT),
    Field(5, "row", RowType((Field(6, "x", INT), Field(7, "in", RowType((Field(8, "y", INT),)))))),
    Field(9, "dec", Atomic(Root.DECIMAL, precision=38, scale=2)),
    Field(10, "t", Atomic(Root.TIMESTAMP, precision=9)),
    Field(11, "z", Atomic(Root.TIMESTAMP_LTZ, precision=6)),
    Field(12, "flag", Atomic(Root.BOOLEAN)),
    Field(13, "time", Atomic(Root.TIME, precision=3)),
    Field(14, "day", Atomic(Root.DATE)),
]
NUMBERS = [-1.0, -0.0, 0.0, 1.0, float("inf"), NAN, None]


def rows(predicate, **columns):
    mask = evaluate(bind(predicate, FIELDS), columns)
    assert mask.type == pa.bool_() and mask.null_count == 0
    return [row for row, found in enumerate(mask.to_pylist()) if found]


@pytest.mark.parametrize("name", ["f", "d"])
@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (lambda c: c == 0.0, [2]),
        (lambda c: c == -0.0, [1]),
        (lambda c: c != -0.0, [0, 2, 3, 4, 5]),
        (lambda c: c < 0.0, [0, 1]),
        (lambda c: c < -0.0, [0]),
        (lambda c: c <= -0.0, [0, 1]),
        (lambda c: c <= 0, [0, 1, 2]),
        (lambda c: c > -0.0, [2, 3, 4, 5]),
        (lambda c: c > 0.0, [3, 4, 5]),
        (lambda c: c >= 0.0, [2, 3, 4, 5]),
        (lambda c: c >= -0.0, [1, 2, 3, 4, 5]),
        (lambda c: c == NAN, [5]),
        (lambda c: c != NAN, [0, 1, 2, 3, 4]),
        (lambda c: c >= NAN, [5]),
        (lambda c: c > NAN, []),
        (lambda c: c < NAN, [0, 1, 2, 3, 4]),
        (lambda c: c <= NAN, [0, 1, 2, 3, 4, 5]),
        (lambda c: c > float("inf"), [5]),
        (lambda c: c > 1e300, [4, 5]),
        (lambda c: ~(c > 1), [0, 1, 2, 3]),
        (lambda c: c.isin([0.0, NAN]), [2, 5]),
        (lambda c: c.not_in([0.0, NAN]), [0, 1, 3, 4]),
        (lambda c: c.not_in([0.0, None]), []),
        (lambda c: c.is_null(), [6]),
    ],
)
def test_floats_compare_as_java_does(name, ask, expected):
    column = pa.array([*NUMBERS, 7.0], pa.float32() if name == "f" else pa.float64()).slice(0, 7)
    assert rows(ask(col(name)), **{name: column}) == expected
    assert rows(ask(col(name)), **{name: pa.concat_arrays([column.slice(3, 2), column]).slice(2)}) == expected


def test_every_nan_is_the_same_nan():
    bits = pa.array([0x7FF8000000000000, -1, 0x7FF0000000000001], pa.int64()).view(pa.float64())
    assert rows(col("d") == NAN, d=bits) == [0, 1, 2]
    assert rows(col("d").isin([NAN, 1.0]), d=bits) == [0, 1, 2]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a%b", [0, 1, 2, 5, 6]),
        ("a_b", [0, 2, 5]),
        ("a\\%b", [5]),
        ("a\\_%b", [6]),
        ("A%b", []),
        ("%.%_", [3]),
        ("___", [0, 2, 3, 5, 8]),
        ("%\\", [8]),
        ("_%_%_%_", [1, 6, 7]),
        ("[%]_", []),
    ],
)
def test_like_knows_escapes_newlines_and_characters(pattern, expected):
    column = pa.array(["a\nb", "a12b", "aéb", "x.y", "", "a%b", "a_xb", "😀😀😀😀", "xy\\", None])
    assert rows(col("s").like(pattern), s=column) == expected
    others = [row for row in range(9) if row not in expected]
    assert rows(~col("s").like(pattern), s=column) == others


def test_text_and_bytes_compare_by_unsigned_bytes():
    column = pa.array(["\ufeff", "😀", "z", None])
    assert rows(col("s") > "\ufeff", s=column) == [1]
    assert rows(col("s").isin(["z", "😀"]), s=column) == [1, 2]
    column = pa.array([b"\xff\x00", b"\x7f", b"", None])
    assert rows(col("b") > b"\x7f", b=column) == [0]
    assert rows(col("b").starts_with(b"\xff"), b=column) == [0]
    assert rows(col("b").ends_with(b"\x00"), b=column) == [0]
    assert rows(~col("b").contains(bytearray(b"\x7f")), b=column) == [0, 2]


def test_fields_of_a_null_row_are_null():
    inner = pa.StructArray.from_arrays([pa.array([1, 2, 3, None], pa.int32())], ["y"])
    column = pa.StructArray.from_arrays(
        [pa.array([1, 2, 3, 4], pa.int32()), inner], ["x", "in"], mask=pa.array([False, True, False, False])
    )
    assert rows(col("row", "x") != 3, row=column) == [0, 3]
    assert rows(col("row", "in", "y").is_null(), row=column) == [1, 3]
    assert rows(col(["row", "in", "y"]) >= 2, row=column.slice(1)) == [1]
    assert rows(col("row").is_null(), row=column) == [1]


def test_wide_decimals_timestamps_and_times_are_exact():
    big = Decimal("999999999999999999999999999999999999.99")
    column = pa.array([big, big.copy_negate(), Decimal("0.01"), None], pa.decimal128(38, 2))
    assert rows(col("dec") == big, dec=column) == [0]
    assert rows(col("dec").isin([big, big.copy_negate()]), dec=column) == [0, 1]
    assert rows(col("dec") < Decimal("0.015"), dec=column) == [1, 2]
    column = pa.array([-1, 0, 1, None], pa.timestamp("ns"))
    assert rows(col("t") < pa.scalar(1, pa.timestamp("ns")), t=column) == [0, 1]
    column = pa.array([-1, 0, 1, None], pa.timestamp("us", "UTC"))
    assert rows(col("z") >= "1970-01-01T01:00+01:00", z=column) == [1, 2]
    assert rows(col("time") > "00:00:00.001", time=pa.array([0, 1, 2], pa.time32("ms"))) == [2]
    assert rows(col("day").isin(["1970-01-02", "1969-12-31"]), day=pa.array([-1, 0, 1], pa.date32())) == [0, 2]
    assert rows(~col("flag"), flag=pa.array([True, False, None])) == [1]


def test_dictionaries_and_other_widths_are_understood():
    column = pa.array(["a", "b", None, "a"]).dictionary_encode()
    assert rows(col("s") == "a", s=column) == [0, 3]
    assert rows(col("s") != "a", s=column) == [1]
    assert rows(col("s").isin(["b", "c"]), s=column.slice(1)) == [0]
    hidden = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), pa.array(["a", None]))
    assert rows(col("s").is_null(), s=hidden) == [1, 2]
    assert rows(~(col("s") == "b"), s=hidden) == [0]
    assert rows(col("s") == "a", s=pa.array(["a", "b"], pa.large_string())) == [0]
    assert rows(col("i") == 1, i=pa.array([1, 2], pa.int8())) == [0]
    with pytest.raises(pa.ArrowInvalid):
        rows(col("i") == 1, i=pa.array([2**40], pa.int64()))


def test_three_valued_logic_ends_in_false():
    i, s = pa.array([1, None, 3, None], pa.int32()), pa.array(["a", "a", None, None])
    assert rows((col("i") == 1) | (col("s") == "a"), i=i, s=s) == [0, 1]
    assert rows(~((col("i") == 1) & (col("s") == "a")), i=i, s=s) == [2]
    assert rows(~((col("i") == 1) | (col("s") == "b")), i=i, s=s) == []
    assert rows(~(col("i").is_null() | (col("i") == 3)), i=i, s=s) == [0]


def test_batches_constants_and_empty_columns():
    batch = pa.record_batch({"i": pa.array([1, 2, 3], pa.int32())})
    assert evaluate(Constant(True), batch).to_pylist() == [True] * 3
    assert evaluate(Constant(False), batch).to_pylist() == [False] * 3
    mask = prepare(bind(col("i") > 1, FIELDS))
    assert mask(batch).to_pylist() == [False, True, True]
    assert mask(batch.slice(0, 0)).to_pylist() == []


def test_a_predicate_that_was_not_bound_is_refused():
    for predicate in (col("i") == 1, ~(col("i") == 1), ~col("flag")):
        with pytest.raises(ValueError, match="not bound"):
            prepare(predicate)


def test_pinned_values_are_what_a_row_must_have():
    bound = bind((col("i").isin([3, 4, 5]) & (col("i") == 4)) & (col("s") == "x") & (col("d") > 1), FIELDS)
    assert {name: array.to_pylist() for name, array in pinned_values(bound).items()} == {"i": [4], "s": ["x"]}
    assert pinned_values(bind((col("i") == 1) | (col("i") == 2), FIELDS)) == {}
    assert pinned_values(bind(col("row", "x") == 1, FIELDS)) == {}


def test_evaluating_does_not_import_pandas():
    code = (
        "import sys, types, pyarrow as pa\n"
        "package = sys.modules['paimon_py'] = types.ModuleType('paimon_py')\n"
        f"package.__path__ = [{str(Path(paimon_py.__file__).parent)!r}]\n"
        "from paimon_py.expr.arrow import evaluate\n"
        "from paimon_py.expr.bind import bind\n"
        "from paimon_py.expr.sql import parse_where\n"
        "from paimon_py.spec.types import Atomic, Field, Root\n"
        "data = pa.Array.from_buffers(pa.int64(), 1, [None, pa.py_buffer(b'12345678')])\n"
        "where = bind(parse_where('a > 1.5 and a in (1, 2, 3)'), [Field(0, 'a', Atomic(Root.BIGINT))])\n"
        "evaluate(where, {'a': data})\n"
        "assert 'pandas' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
