"""Bucket functions against the worked examples of the format (format.md §7.1, §7.2)."""

import datetime
import decimal

import pyarrow as pa
import pytest

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.buckets import bucket_numbers
from paimon_py.errors import UnsupportedError, UsageError
from paimon_py.spec.types import MAX_LENGTH, Atomic, Root

INT, BIGINT = Atomic(Root.INT), Atomic(Root.BIGINT)
STRING = Atomic(Root.VARCHAR, length=MAX_LENGTH)
MONEY = Atomic(Root.DECIMAL, precision=10, scale=2)
D = decimal.Decimal


def of(kinds, row, buckets, function="default"):
    columns = [pa.array([value], type=to_arrow_type(kind)) for value, kind in zip(row, kinds, strict=True)]
    return bucket_numbers(columns, kinds, buckets, function).tolist()[0]


@pytest.mark.parametrize(
    ("kinds", "row", "expected"),
    [
        ([INT], (0,), (1, 3, 9)),
        ([INT], (-(2**31),), (1, 3, 9)),
        ([BIGINT], (2**63 - 1,), (1, 3, 5)),
        ([STRING], ("hello paimon",), (0, 0, 6)),
        ([STRING], ("中文",), (0, 0, 4)),
        ([INT, STRING], (1, "a"), (0, 2, 2)),
        ([INT, STRING], (1, None), (0, 2, 6)),
        ([Atomic(Root.DATE)], (datetime.date(2024, 5, 14),), (0, 2, 8)),
        ([MONEY], (D("123.45"),), (0, 2, 2)),
        ([Atomic(Root.DECIMAL, precision=20, scale=0)], (None,), (0, 0, 0)),
    ],
)
def test_default_buckets_are_those_of_java(kinds, row, expected):
    assert tuple(of(kinds, row, n) for n in (2, 4, 10)) == expected


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [(INT, 17, 2), (INT, -3, 2), (INT, -(2**31), 2), (BIGINT, -(2**63), 2), (BIGINT, 5, 0), (INT, None, 0)],
)
def test_mod_is_the_floor_modulus(kind, value, expected):
    assert of([kind], (value,), 5, "mod") == expected


@pytest.mark.parametrize(
    ("kinds", "row", "expected"),
    [
        ([INT, STRING], (1, "abc"), (1, 5)),
        ([INT, STRING], (-7, None), (3, 1)),
        ([INT, STRING], (0, "中文"), (2, 2)),
        ([BIGINT], (4294967297,), (0, 0)),
        ([BIGINT], (-1,), (0, 0)),
        ([MONEY], (D("123.40"),), (3, 5)),
        ([MONEY], (D("-0.50"),), (2, 4)),
        ([MONEY], (D("100.00"),), (0, 0)),
        ([Atomic(Root.DOUBLE)], (1.5,), (0, 6)),
    ],
)
def test_hive_buckets_are_those_of_java(kinds, row, expected):
    assert tuple(of(kinds, row, n, "hive") for n in (4, 10)) == expected


def test_hive_hashes_both_zeros_and_all_nans_alike():
    kind = Atomic(Root.DOUBLE)
    assert of([kind], (-0.0,), 7, "hive") == of([kind], (0.0,), 7, "hive") == 0
    assert of([kind], (float("nan"),), 7, "hive") == of([kind], (-float("nan"),), 7, "hive")


def test_one_bucket_needs_no_hash_and_takes_any_type():
    column = pa.array([[1], None], pa.list_(pa.int32()))
    assert bucket_numbers([column], [Atomic(Root.VARIANT)], 1).tolist() == [0, 0]


def test_mod_refuses_anything_but_one_integer():
    for kinds, row in (([INT, INT], (1, 2)), ([STRING], ("a",)), ([Atomic(Root.SMALLINT)], (1,))):
        with pytest.raises(UsageError, match="INT or BIGINT"):
            of(kinds, row, 4, "mod")


def test_unknown_functions_and_types_are_refused_by_name():
    with pytest.raises(UsageError, match="md5"):
        of([INT], (1,), 4, "md5")
    with pytest.raises(UnsupportedError, match="TIMESTAMP"):
        of([Atomic(Root.TIMESTAMP, precision=3)], (0,), 4, "hive")
