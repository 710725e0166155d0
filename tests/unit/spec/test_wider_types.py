"""The type that holds the values of two: it holds those of both, and no smaller one does."""

from __future__ import annotations

from itertools import product

import pytest

from paimon_py.spec.type_text import parse_type, sql_type
from paimon_py.spec.wider_types import wider

DECIMALS = [(1, 0), (1, 1), (5, 0), (5, 2), (5, 5), (9, 4), (20, 0), (20, 20), (37, 1), (38, 0), (38, 1), (38, 37), (38, 38)]


def wider_of(old: str, new: str) -> str | None:
    found = wider(parse_type(old), parse_type(new))
    return None if found is None else sql_type(found)


@pytest.mark.parametrize(("old", "new"), list(product(DECIMALS, repeat=2)))
def test_a_decimal_holds_the_largest_and_the_finest_value_of_both(old, new):
    both = [(precision - scale, scale) for precision, scale in (old, new)]
    fitting = [
        (precision, scale) for precision in range(1, 39) for scale in range(precision + 1)
        if all(precision - scale >= whole and scale >= fraction for whole, fraction in both)
    ]  # fmt: skip
    expected = sql_type(parse_type(f"DECIMAL({min(fitting)[0]}, {min(fitting)[1]})")) if fitting else None
    assert wider_of(f"DECIMAL({old[0]}, {old[1]})", f"DECIMAL({new[0]}, {new[1]})") == expected


FAMILIES = [
    ["TINYINT", "SMALLINT", "INT", "BIGINT"], ["FLOAT", "DOUBLE"], ["CHAR(1)", "VARCHAR(3)", "CHAR(7)", "STRING"],
    ["BINARY(2)", "VARBINARY(5)", "BYTES"], ["TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP(9)"], ["TIME(0)", "TIME(3)"], ["BOOLEAN"], ["DATE"],
]  # fmt: skip
KINDS = list(product([(f, n) for f, family in enumerate(FAMILIES) for n in range(len(family))], repeat=2))


@pytest.mark.parametrize(("first", "second"), KINDS)
def test_of_two_types_of_a_family_the_larger_one_holds_both_and_families_do_not_mix(first, second):
    family = FAMILIES[first[0]]
    expected = family[max(first[1], second[1])] if first[0] == second[0] else None
    assert wider_of(family[first[1]], FAMILIES[second[0]][second[1]]) == expected


def test_the_old_type_says_whether_null_is_a_value():
    assert wider_of("INT NOT NULL", "BIGINT") == "BIGINT NOT NULL"
    assert wider_of("INT", "BIGINT NOT NULL") == "BIGINT"
    assert wider_of("BIGINT NOT NULL", "INT") == "BIGINT NOT NULL"
    assert wider_of("ARRAY<INT>", "ARRAY<BIGINT>") is None
    assert wider_of("ARRAY<INT>", "ARRAY<INT>") == "ARRAY<INT>"
