"""FLOAT and DOUBLE as texts; the expected ones were printed by JDK 17."""

import pytest

from paimon_py.codec.java_float import java_float


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.5, "1.5"),
        (1e20, "1.0E20"),
        (1e-5, "1.0E-5"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (100.0, "100.0"),
        (-0.0, "-0.0"),
        (0.0, "0.0"),
        (5e-324, "4.9E-324"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (-123.456, "-123.456"),
        (0.1, "0.1"),
        (1234.0, "1234.0"),
    ],
)
def test_doubles_print_as_in_java(value, text):
    assert java_float(value, single=False) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1, "0.1"), (3.4028234663852886e38, "3.4028235E38"), (1.401298464324817e-45, "1.4E-45"), (1e10, "1.0E10")],
)
def test_floats_print_as_in_java(value, text):
    assert java_float(value, single=True) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2e23, "1.9999999999999998E23"),
        (1e23, "9.999999999999999E22"),
        (2.0**-44, "5.6843418860808015E-14"),
        (8.41e21, "8.409999999999999E21"),
        (2.0**62, "4.6116860184273879E18"),
        (4.35e10, "4.35E10"),
    ],
)
def test_texts_of_old_javas_are_longer_than_needed_here_and_there(value, text):
    assert java_float(value, single=False) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(25506902704128.0, "2.55069027E13"), (76096242450432.0, "7.6096242E13"), (2.83474768459255e18, "2.83474768E18")],
)
def test_floats_have_a_digit_too_many_where_java_has(value, text):
    assert java_float(value, single=True) == text


@pytest.mark.parametrize("value", [2.0**power for power in range(-60, 60)] + [0.1 * n for n in range(1, 60)])
def test_a_string_parses_to_the_same_number(value):
    assert float(java_float(value, single=False)) == value
