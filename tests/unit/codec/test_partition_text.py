"""Directory texts of partition values, as Java prints them (format.md §1.2)."""

import decimal

import pyarrow as pa
import pytest

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.partition_text import partition_texts
from paimon_py.errors import UnsupportedError
from paimon_py.spec.types import MAX_LENGTH, ArrayType, Atomic, Root

D = decimal.Decimal
STRING = Atomic(Root.VARCHAR, length=MAX_LENGTH)


def texts(kind, values, legacy=True):
    return partition_texts(pa.array(values, type=to_arrow_type(kind)), kind, legacy=legacy).to_pylist()


def test_negative_and_positive_zero_are_two_texts():
    assert texts(Atomic(Root.DOUBLE), [0.0, -0.0, None, 0.0]) == ["0.0", "-0.0", None, "0.0"]
    assert texts(Atomic(Root.FLOAT), [-0.0, 0.0]) == ["-0.0", "0.0"]


def test_plain_values_in_both_styles():
    for legacy in (True, False):
        assert texts(Atomic(Root.BIGINT), [-5, 2**62, None], legacy) == ["-5", str(2**62), None]
        assert texts(Atomic(Root.BOOLEAN), [True, False], legacy) == ["true", "false"]
        assert texts(STRING, ["a/b", "", None], legacy) == ["a/b", "", None]
        money = Atomic(Root.DECIMAL, precision=30, scale=2)
        assert texts(money, [D("1.50"), D("-0.01"), D("1E+20")], legacy) == ["1.50", "-0.01", "1" + "0" * 20 + ".00"]


def test_dates_and_times_are_numbers_in_legacy_names():
    assert texts(Atomic(Root.DATE), [19724, -1]) == ["19724", "-1"]
    assert texts(Atomic(Root.TIME, precision=3), [45296789]) == ["45296789"]


def test_dates_and_times_are_text_in_new_names():
    assert texts(Atomic(Root.DATE), [19724, -1, -719162], False) == ["2024-01-02", "1969-12-31", "0001-01-01"]
    clock = [11045006, 11045500, 11045000]
    assert texts(Atomic(Root.TIME, precision=3), clock, False) == ["03:04:05.006", "03:04:05.5", "03:04:05.0"]
    assert texts(Atomic(Root.TIME, precision=0), clock, False) == ["03:04:05"] * 3
    assert texts(Atomic(Root.TIME, precision=2), clock, False) == ["03:04:05.00", "03:04:05.5", "03:04:05.0"]


MINUTE, SECOND = 1_704_164_640_000, 1_704_164_645_000


@pytest.mark.parametrize(
    ("precision", "value", "legacy", "modern"),
    [
        (3, MINUTE, "2024-01-02T03:04", "2024-01-02 03:04:00.000"),
        (3, SECOND + 500, "2024-01-02T03:04:05.500", "2024-01-02 03:04:05.500"),
        (6, SECOND * 1000 + 1, "2024-01-02T03:04:05.000001", "2024-01-02 03:04:05.000001"),
        (6, SECOND * 1000, "2024-01-02T03:04:05", "2024-01-02 03:04:05.000000"),
        (9, SECOND * 10**6 + 1, "2024-01-02T03:04:05.000000001", "2024-01-02 03:04:05.000000001"),
        (0, SECOND // 1000, "2024-01-02T03:04:05", "2024-01-02 03:04:05"),
        (3, -1, "1969-12-31T23:59:59.999", "1969-12-31 23:59:59.999"),
        (0, 253_402_300_800, "+10000-01-01T00:00", "0000-01-01 00:00:00"),
        (0, -62_198_755_200, "-0001-01-01T00:00", None),
    ],
)
def test_timestamps(precision, value, legacy, modern):
    kind = Atomic(Root.TIMESTAMP, precision=precision)
    assert texts(kind, [value]) == [legacy]
    assert modern is None or texts(kind, [value], False) == [modern]
    assert texts(Atomic(Root.TIMESTAMP_LTZ, precision=precision), [value]) == [legacy]


def test_texts_that_java_does_not_define_are_refused():
    with pytest.raises(UnsupportedError, match="time zone"):
        texts(Atomic(Root.TIMESTAMP_LTZ, precision=3), [0], False)
    with pytest.raises(UnsupportedError, match="VARBINARY"):
        texts(Atomic(Root.VARBINARY, length=9), [b"a"])
    with pytest.raises(UnsupportedError, match="ARRAY"):
        texts(ArrayType(STRING), [["a"]])
