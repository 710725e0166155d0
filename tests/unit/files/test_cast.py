"""Casts against what Java Paimon 2.0.0 answered.

`casts_of_java.jsonl` holds one cast per line: stored type, read type, pairs of stored and read value in the notation
of the oracle, `{"error": true}` where Java fails. It was made with the oracle in /shared: an append table with one
file per value and one column per target type, ALTER of every column, one read per value.
"""

import itertools
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from unit.files.notation import arrow_array, canonical

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.errors import SchemaError, UnsupportedError
from paimon_py.files.casts.cast import cast
from paimon_py.files.casts.rules import is_supported
from paimon_py.spec.type_text import parse_type

CASES = [json.loads(line) for line in (Path(__file__).parent / "casts_of_java.jsonl").read_text("utf-8").splitlines()]
ERROR = {"error": True}


def differs_on_purpose(source, target, value, wanted) -> bool:
    """What Java 2.0.0 answers and we do not."""
    if target == "DATE" and source.startswith("TIMESTAMP") and "LOCAL" not in source:
        return value.startswith("1969")  # 2.0.0 cuts toward 1970; later Java takes the day itself
    if isinstance(wanted, str) and target.startswith(("TIMESTAMP", "DATE")) and not wanted[0].isdigit():
        return True  # years beyond 9999 and before 1
    if target.startswith("TIMESTAMP(0)") and value in (2**53 + 1, "9223372036854775807"):
        return True  # milliseconds that wrap
    if target == "DATE" and wanted == "0000-01-01":
        return True  # Python has no year 0; the day itself is right
    if target.startswith("TIME(") and value in TIMES_OUTSIDE_ONE_DAY:
        return True
    return target.startswith("TIMESTAMP") and "T" in str(value) and source == "STRING"  # newer Java reads this form


TIMES_OUTSIDE_ONE_DAY = ("-12", "-129", "-5", "-2147483648", "2147483647", "25:61:61", "16777217")


def java_answer(wanted, target):
    if wanted == ERROR:
        return ERROR
    try:
        return canonical(arrow_array([wanted], target))[0]
    except OverflowError:
        return ERROR  # outside what nanoseconds hold


def our_answer(value, source, target):
    try:
        read = cast(arrow_array([value], source), source, target)
    except SchemaError:
        return ERROR
    read.validate(full=True)
    return canonical(read)[0]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}->{case[1]}"[:90])
def test_a_cast_gives_what_java_gives(case):
    source, target, pairs = case
    given, wanted = parse_type(source), parse_type(target)
    assert is_supported(given, wanted)
    wrong = [
        (value, answer, ours)
        for value, answer in pairs
        if not differs_on_purpose(source, target, value, answer)
        and (ours := our_answer(value, given, wanted)) != java_answer(answer, wanted)
    ]
    assert wrong == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}->{case[1]}"[:90])
def test_a_cast_of_a_column_is_the_cast_of_its_values_with_nulls_between(case):
    source, target, pairs = case
    given, wanted = parse_type(source), parse_type(target)
    good = [value for value, _ in pairs if our_answer(value, given, wanted) != ERROR]
    mixed = [item for value in good for item in (None, value)] + [None]
    column = pa.concat_arrays([arrow_array([None], given), arrow_array(mixed, given)]).slice(2)
    read = cast(column, given, wanted)
    read.validate(full=True)
    assert canonical(read) == [text for value in good for text in (our_answer(value, given, wanted), "None")]


def test_a_bad_text_names_the_column_and_the_value():
    with pytest.raises(
        SchemaError, match="column price: the stored STRING value 'cheap' cannot be read as INT"
    ) as caught:
        cast(pa.array(["1", None, "cheap"]), parse_type("STRING"), parse_type("INT"), column="price")
    assert caught.value.fields == ("price",)


@pytest.mark.parametrize(
    ("source", "target"),
    [("DATE", "INT"), ("BOOLEAN", "DATE"), ("BYTES", "INT"), ("DATE", "VARCHAR(10)"), ("ARRAY<INT>", "INT")],
)
def test_what_java_cannot_cast_is_refused_by_name(source, target):
    given, wanted = parse_type(source), parse_type(target)
    assert not is_supported(given, wanted)
    with pytest.raises(UnsupportedError, match="no cast from"):
        cast(arrow_array([None], given), given, wanted)


def test_decimals_beyond_the_new_precision_become_null_and_halves_round_away_from_zero():
    stored = pa.array([Decimal("9.995"), Decimal("0.005"), Decimal("-0.005"), None], pa.decimal128(4, 3))
    read = cast(stored, parse_type("DECIMAL(4, 3)"), parse_type("DECIMAL(3, 2)"))
    assert read.to_pylist() == [None, Decimal("0.01"), Decimal("-0.01"), None]


def test_text_under_a_null_row_or_list_is_never_parsed():
    rows = pa.StructArray.from_arrays([pa.array(["1", "bad"])], ["x"], mask=pa.array([False, True]))
    given = parse_type({"type": "ROW", "fields": [{"id": 1, "name": "x", "type": "STRING"}]})
    wanted = parse_type({"type": "ROW", "fields": [{"id": 1, "name": "y", "type": "INT"}]})
    assert cast(rows, given, wanted).to_pylist() == [{"y": 1}, None]
    items = pa.ListArray.from_arrays(
        pa.array([0, 1, 2], pa.int32()), pa.array(["1", "bad"]), mask=pa.array([False, True])
    )
    assert cast(items, parse_type("ARRAY<STRING>"), parse_type("ARRAY<INT>")).to_pylist() == [[1], None]


def test_rows_inside_maps_and_arrays_match_by_id():
    def kind(*fields):
        row = {"type": "ROW", "fields": [{"id": i, "name": n, "type": t} for i, n, t in fields]}
        return parse_type({"type": "MAP", "key": "STRING NOT NULL", "value": {"type": "ARRAY", "element": row}})

    given, wanted = (
        kind((1, "a", "INT"), (2, "b", "STRING")),
        kind((3, "b", "DOUBLE"), (2, "c", "STRING"), (1, "a", "BIGINT")),
    )
    stored = arrow_array([[["k", [{"a": 1, "b": "x"}, None]]], None, [["l", None]], []], given)
    for column in (stored, stored.slice(1), stored.slice(0, 1)):
        read = cast(column, given, wanted)
        read.validate(full=True)
        expected = [[("k", [{"b": None, "c": "x", "a": 1}, None])], None, [("l", None)], []]
        start = 0 if len(column) != 3 else 1
        assert read.to_pylist() == expected[start : start + len(column)]


def test_texts_become_arrays_maps_and_rows():
    def read(text, kind):
        return cast(pa.array([text, None, text]), parse_type("STRING"), parse_type(kind)).to_pylist()[0]

    row = {
        "type": "ROW",
        "fields": [{"id": 1, "name": "x", "type": "INT"}, {"id": 2, "name": "l", "type": "ARRAY<INT>"}],
    }
    assert read(" [1, null, 3] ", "ARRAY<INT>") == [1, None, 3]
    assert read("array(a, b)", "ARRAY<STRING>") == ["a", "b"]
    assert read("{a -> 1, b -> null, a -> 2}", "MAP<STRING, INT>") == [("a", 2), ("b", None)]
    assert read("MAP(a, 1)", "MAP<STRING, INT>") == [("a", 1)]
    assert read("NULL", "MAP<STRING, INT>") is None
    assert read("{5, [1, 2]}", row) == {"x": 5, "l": [1, 2]}
    assert read("{}", row) == {"x": None, "l": None}
    with pytest.raises(SchemaError, match="expected 2 fields"):
        read("{1}", row)


def test_a_column_that_only_changed_nullability_is_not_copied():
    stored = pa.array([1, 2], pa.int32())
    assert cast(stored, parse_type("INT NOT NULL"), parse_type("INT")) is stored


ATOMS = [
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(9, 2)", "STRING", "CHAR(3)", "BYTES",
    "BINARY(3)", "DATE", "TIME", "TIMESTAMP(3)", "TIMESTAMP(6) WITH LOCAL TIME ZONE",
]  # fmt: skip


def is_a_cast_of_java(given, wanted):
    """By the predicates of Java's rules (`CastExecutors`), apart from the code."""
    whole, floats, times = {"TINYINT", "SMALLINT", "INT", "BIGINT"}, {"FLOAT", "DOUBLE"}, {"TIMESTAMP"}
    texts, binary = {"STRING", "CHAR"}, {"BYTES", "BINARY"}
    one, other = (name.split("(")[0].split(" ")[0] for name in (given, wanted))
    numbers = whole | floats | {"DECIMAL"}
    return (
        other == "STRING"
        or (other == "CHAR" and one not in times | {"DATE", "TIME"})
        or (one in numbers and other in numbers)
        or (one in whole and other == "BOOLEAN")
        or (one == "BOOLEAN" and other in numbers)
        or (one in texts and other in numbers | {"BOOLEAN", "DATE", "TIME"} | times | binary)
        or (one in binary and other in binary)
        or (one in times and other in times | {"DATE", "TIME", "INT", "BIGINT"})
        or (one in {"INT", "BIGINT"} and other in times)
        or (one in {"DATE", "TIME"} and other in times)
        or given == wanted
    )


def test_a_column_changes_its_type_exactly_where_java_casts():
    wrong = []
    for given, wanted in itertools.product(ATOMS, ATOMS):
        does = is_supported(parse_type(given), parse_type(wanted))
        if does is not is_a_cast_of_java(given, wanted):
            wrong.append((given, wanted, does))
    assert wrong == []


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE"])
@pytest.mark.parametrize("odd", [1e30, 5e-7, -2.5e-9])
def test_nulls_among_numbers_stay_null_as_decimals(kind, odd):
    """Also where one of the numbers is written with an exponent."""
    source, target = parse_type(kind), parse_type("DECIMAL(20, 8)")
    given = pa.array([None, 1.5, odd, None, 0.0], to_arrow_type(source))
    found = cast(given, source, target)
    alone = [cast(given.slice(at, 1), source, target)[0].as_py() for at in range(len(given))]
    assert found.to_pylist() == alone and alone[0] is None and alone[3] is None and alone[1] == Decimal("1.5")


@pytest.mark.parametrize("count", [0, 1, 99, 101, 1000])
def test_a_text_becomes_an_array_of_any_length(count):
    found = cast(pa.array([str(list(range(count))), None, "[7]"]), parse_type("STRING"), parse_type("ARRAY<INT>"))
    assert found.to_pylist() == [list(range(count)), None, [7]]
