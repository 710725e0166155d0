from __future__ import annotations

import pytest

from paimon_py.spec.cast_rules import supports_cast
from paimon_py.spec.type_text import parse_type


@pytest.mark.parametrize(
    ("source", "target", "implicit", "explicit"),
    [
        ("INT", "BIGINT", True, True),
        ("BIGINT", "INT", False, True),
        ("INT", "INT", True, True),
        ("INT", "INT NOT NULL", False, True),
        ("INT NOT NULL", "BIGINT", True, True),
        ("DECIMAL(10, 2)", "DOUBLE", True, True),
        ("DOUBLE", "DECIMAL(10, 2)", True, True),
        ("DOUBLE", "FLOAT", False, True),
        ("CHAR(3)", "VARCHAR(2)", True, True),
        ("VARCHAR(2)", "CHAR(3)", False, True),
        ("STRING", "DATE", False, True),
        ("DATE", "STRING", False, True),
        ("DATE", "VARCHAR(10)", False, False),
        ("TIMESTAMP(3)", "DATE", True, True),
        ("TIMESTAMP(3)", "TIMESTAMP(9) WITH LOCAL TIME ZONE", True, True),
        ("TIMESTAMP(6)", "BIGINT", False, True),
        ("TIMESTAMP(6)", "DOUBLE", False, False),
        ("TIME(0)", "TIME(3)", False, False),
        ("INT", "DATE", False, False),
        ("BOOLEAN", "INT", False, True),
        ("DECIMAL(3, 0)", "BOOLEAN", False, False),
        ("BYTES", "STRING", False, True),
        ("ARRAY<INT>", "STRING", False, True),
        ("MULTISET<INT>", "STRING", False, False),
        ("ARRAY<INT>", "ARRAY<BIGINT>", False, False),
        ("ROW<x INT>", "ROW<x INT>", True, True),
        ("STRING", "ARRAY<INT>", False, False),
        ("VARIANT", "STRING", False, False),
    ],
)
def test_casts_are_allowed_as_in_java(source, target, implicit, explicit):
    assert supports_cast(parse_type(source), parse_type(target), False) is implicit
    assert supports_cast(parse_type(source), parse_type(target), True) is explicit
