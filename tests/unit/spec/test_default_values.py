from __future__ import annotations

from datetime import date, time
from decimal import Decimal

import pytest

from paimon_py.errors import SchemaError
from paimon_py.spec.default_values import parse_default
from paimon_py.spec.type_text import parse_type

DAY_NANOS = 86_400_000_000_000


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("INT", "-5", -5),
        ("INT", "5.9", 5),
        ("TINYINT", "127", 127),
        ("BIGINT", "-9223372036854775808", -(2**63)),
        ("BOOLEAN", "Yes", True),
        ("BOOLEAN", "0", False),
        ("DOUBLE", "1e3", 1000.0),
        ("FLOAT", "-Infinity", float("-inf")),
        ("FLOAT", "1.5f", 1.5),
        ("DECIMAL(5, 2)", "1.005", Decimal("1.01")),
        ("DECIMAL(38, 0)", "9" * 38, Decimal("9" * 38)),
        ("STRING", "'quoted'", "quoted"),
        ("STRING", "'", "'"),
        ("VARCHAR(3)", "abcdef", "abc"),
        ("BYTES", "é", "é".encode()),
        ("DATE", "2024-1-2", date(2024, 1, 2)),
        ("TIME(3)", "12:34:56.789", time(12, 34, 56, 789_000)),
        ("TIMESTAMP(3)", "1970-01-02", DAY_NANOS),
        ("TIMESTAMP(9)", "1970-01-02 00:00:01.000000001", DAY_NANOS + 1_000_000_001),
        ("TIMESTAMP(9)", "1969-12-31T23:59:59.5", -500_000_000),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", "1970-01-01 00:00:00", 0),
    ],
)
def test_a_default_is_read_as_a_value_of_its_type(kind, text, value):
    assert parse_default(parse_type(kind), text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("INT", "five"),
        ("INT", ""),
        ("INT", "2147483648"),
        ("TINYINT", "-129"),
        ("BOOLEAN", "maybe"),
        ("DOUBLE", "1,5"),
        ("DECIMAL(5, 2)", "1000"),
        ("DECIMAL(5, 2)", "NaN"),
        ("DATE", "2024-02-30"),
        ("DATE", "tomorrow"),
        ("TIME(0)", "25:00"),
        ("TIMESTAMP(3)", "2024-01-02 24:00"),
        ("ARRAY<INT>", "[1]"),
        ("VARIANT", "1"),
    ],
)
def test_a_text_that_is_no_value_of_the_type_is_refused(kind, text):
    with pytest.raises(SchemaError):
        parse_default(parse_type(kind), text)
