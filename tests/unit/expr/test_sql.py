"""WHERE texts: what they mean, and how mistakes are shown."""

import datetime
import itertools
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon_py import Schema
from paimon_py.codec.arrow_types import from_arrow_schema
from paimon_py.errors import UsageError
from paimon_py.expr.arrow import evaluate
from paimon_py.expr.bind import bind
from paimon_py.expr.column import col, lit
from paimon_py.expr.predicate import Constant
from paimon_py.expr.sql import parse_where, sql

day = datetime.date(2024, 1, 2)


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("month = 3 AND carrier LIKE 'U%'", (col("month") == 3) & col("carrier").like("U%")),
        ("a=1 or b<>2 and not c >= 3", (col("a") == 1) | ((col("b") != 2) & ~(col("c") >= 3))),
        ("(a == 1 or b != 2) and c < -3", ((col("a") == 1) | (col("b") != 2)) & (col("c") < -3)),
        ("5 < a", col("a") > 5),
        ("'x' >= a.b", col("a", "b") <= "x"),
        ("a in (1, -2.5, NULL)", col("a").isin([1, Decimal("-2.5"), None])),
        ("a NOT IN ('it''s')", col("a").not_in(["it's"])),
        ("a BETWEEN 1 AND 2 AND b = 3", col("a").between(1, 2) & (col("b") == 3)),
        ("a not between 1 and 2", ~col("a").between(1, 2)),
        ("a IS NULL or b is not null", col("a").is_null() | col("b").is_not_null()),
        ("a like 'x\\%y'", col("a").like("x\\%y")),
        ("a not like '10!%\\' escape '!'", ~col("a").like("10\\%\\\\")),
        ("a ILIKE 'x%' and a not ilike '%y'", col("a").ilike("x%") & ~col("a").ilike("%y")),
        ("starts_with(a, 'x') or not contains(a.b, 'y')", col("a").starts_with("x") | ~col("a", "b").contains("y")),
        ("endswith(a, 'it''s')", col("a").ends_with("it's")),
        ("a = 1e3", col("a") == Decimal("1E+3")),
        ("a = .5", col("a") == Decimal("0.5")),
        ("a = 123456789012345678901234567890", col("a") == Decimal("123456789012345678901234567890")),
        ("a = X'00fF'", col("a") == b"\x00\xff"),
        ("d >= DATE '2024-01-02'", col("d") >= day),
        ("t = time '01:02:03.004'", col("t") == datetime.time(1, 2, 3, 4000)),
        ("t = TIMESTAMP '2024-01-02 00:00:00.5'", col("t") == np.datetime64("2024-01-02T00:00:00.5")),
        ("date = date '2024-01-02' and time is null", (col("date") == day) & col("time").is_null()),
        ('"odd ""name" = 1 and `back``tick`.x = TRUE', (col('odd "name') == 1) & (col("back`tick", "x") == True)),  # noqa: E712
        ('"select"."or" = 1', col("select", "or") == 1),
        ("größe = 1", col("größe") == 1),
        ("not active", ~col("active")),
        ("TRUE", Constant(True)),
        ("not not a = 1", col("a") == 1),
        (" \n a\t=\r\n1 ", col("a") == 1),
        ("price * 2 > 10", col("price") * 2 > 10),
        ("10 < 2 * price", 2 * col("price") > 10),
        ("lower(name) = 'x'", sql("lower(name)") == "x"),
        ("(a + 1) * 2 BETWEEN b AND 9", ((col("a") + 1) * 2).between(col("b"), 9)),
        ("((a)) > ((3)) AND (flag)", (col("a") > 3) & parse_where("flag")),
        ("(a = 1 OR (b)/2 > 3)", (col("a") == 1) | (col("b") / 2 > 3)),
        ("-a - -1 <> 0", -col("a") - lit(-1) != 0),
        ("upper(a) NOT IN ('X', NULL)", sql("upper(a)").not_in(["X", None])),
        ("a || 'x' LIKE 'y%' ", sql("a || 'x'").like("y%")),
        ("starts_with(trim(a), 'y')", sql("trim(a)").starts_with("y")),
        ("a + 1 IS NOT NULL", (col("a") + 1).is_not_null()),
        ("a IS DISTINCT FROM b + 1", col("a").is_distinct_from(col("b") + 1)),
        ("b * 2 IS DISTINCT FROM NULL", (col("b") * 2).is_distinct_from(None)),
        ("a = CASE WHEN b > 1 THEN c END", col("a") == sql("CASE WHEN b > 1 THEN c END")),
        ("case = 1 AND end > 2 AND when IS NULL AND length < 3", (col("case") == 1) & (col("end") > 2) & col("when").is_null() & (col("length") < 3)),
        ("case ilike 'x' or case in (1)", col("case").ilike("x") | col("case").isin([1])),
    ],
)
def test_text_means_the_same_as_code(text, predicate):
    assert parse_where(text) == predicate


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("", 1, "the end"),
        ("a = 'x", 5, "never closed"),
        ("a = 1 b", 7, "AND, OR or the end"),
        ("(a = 1", 7, r"expected \)"),
        ("a = 1)", 6, "AND, OR or the end"),
        ("a IN ()", 7, "literal"),
        ("a IN (1, b)", 10, "IN takes literals"),
        ("a IN 1", 6, r"expected \("),
        ("a = NULL", 5, "IS NULL"),
        ("a BETWEEN 1 OR 2", 13, "expected AND"),
        ("a BETWEEN NULL AND 2", 11, "IS NULL"),
        ("a LIKE 5", 8, "'text'"),
        ("a LIKE 'x' ESCAPE 'xx'", 19, "one character"),
        ("a LIKE 'x!' ESCAPE '!'", 20, "ends with"),
        ("a NOT 5", 7, "BETWEEN"),
        ("a IS 5", 6, "NULL"),
        ("5", 1, "not a condition"),
        ("a = - ", 7, "a column or a literal"),
        ("a = -'x' 5", 10, "AND, OR or the end"),
        ("lower(a", 8, r"expected \)"),
        ("lowr(a) = 'x'", 1, "did you mean lower"),
        ("lower(a, b) = 'x'", 1, "takes 1 arguments"),
        ("(a + 1) (b)", 9, "AND, OR or the end"),
        ("(a = 1) + 1", 9, "AND, OR or the end"),
        ("a = (b = 1)", 8, r"expected \)"),
        ("case a when null then 1 end = 2", 13, "IS NULL"),
        ("case when a > 1 then 1 = 2", 24, "expected END"),
        ("a + 1 IN (b)", 11, "IN takes literals"),
        ("NULL = a", 1, "IS NULL"),
        ("1 NOT", 6, "BETWEEN"),
        ("a = X'abc'", 5, "two digits"),
        ("a = DATE '2024-02-30'", 10, "yyyy-mm-dd"),
        ("a.= 1", 3, "column name"),
        ("1a = 1", 1, "quotes"),
        ("a ~ 1", 3, "unexpected"),
        ("a = 1; drop", 6, "unexpected"),
        ("a = ?", 5, "unexpected"),
    ],
)
def test_mistakes_are_pointed_at(text, position, message):
    with pytest.raises(UsageError, match=message) as caught:
        parse_where(text)
    first, line, caret = str(caught.value).split("\n")
    assert f"(at character {position})" in first
    assert line.strip() == text.strip() or not text
    assert caret.index("^") == position + 1


def test_only_the_line_in_question_is_shown():
    with pytest.raises(UsageError) as caught:
        parse_where("a = 1\n  and b ~ 2\n  and c = 3")
    assert str(caught.value).split("\n")[1:] == ["    and b ~ 2", " " * 10 + "^"]
    with pytest.raises(UsageError) as caught:
        parse_where("a = 1 and " * 5000 + "~")
    assert len(str(caught.value)) < 300


def test_nesting_is_bounded_and_flat_texts_are_not():
    with pytest.raises(UsageError, match="nested deeper"):
        parse_where("(" * 5000 + "a = 1" + ")" * 5000)
    assert parse_where("not " * 5001 + "a = 1") == ~(col("a") == 1)
    assert len(parse_where(" or ".join(["a = 1"] * 20_000)).parts) == 20_000


def test_long_texts_end_in_an_error_without_taking_for_ever():
    for text in ("'" * 200_001, "a = '" + "''" * 100_000, "a in (" + "1," * 50_000, "9" * 200_000, '"' * 100_001):
        with pytest.raises(UsageError):
            parse_where(text)


@settings(derandomize=True, deadline=None)
@given(st.text(alphabet="ab'\"`()=<>!.,-+ \n01eEX_%ÄNOTLIKEandBETWEENisullDATE\\", max_size=60))
def test_any_text_parses_or_is_refused_politely(text):
    try:
        parse_where(text)
    except UsageError as error:
        assert "^" in str(error)


CONDITIONS = [
    "a = 1", "a <> 2", "f > 2", "s LIKE 'y%'", "s NOT LIKE 'x'", "a IN (1, 5)", "a NOT IN (2, NULL)", "a IN (1, NULL)",
    "b", "b IS TRUE", "s IS NULL", "a < f", "a * 2 > 3", "a IS DISTINCT FROM 2", "lower(s) = 'yy'", "1 = 1",
    "a = 1 AND f > 2", "a = 1 OR NOT f > 2", "(a = 1) IS UNKNOWN OR b",
]  # fmt: skip


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("test", ["TRUE", "FALSE", "UNKNOWN", "NULL"])
def test_a_condition_in_parentheses_is_true_false_or_unknown_as_in_sql(condition, test):
    duckdb = pytest.importorskip("duckdb")
    values = itertools.product((1, 2, None), (True, None), (1.5, 3.0, None), ("x", "yy", None))
    columns = dict(zip("abfs", map(list, zip(*values, strict=True)), strict=True))
    rows = pa.table(columns, schema=pa.schema([("a", pa.int32()), ("b", pa.bool_()), ("f", pa.float64()), ("s", pa.string())]))
    fields = Schema(from_arrow_schema(rows.schema)).fields
    for sign in ("", "NOT "):
        where = f"({condition}) IS {sign}{test}"
        bound = bind(parse_where(where), fields)
        batch = rows.combine_chunks().to_batches()[0]
        kept = rows.filter(evaluate(bound, batch))
        wanted = duckdb.sql(f"SELECT * FROM rows WHERE {where.replace('UNKNOWN', 'NULL')}").to_arrow_table()
        assert kept.to_pylist() == wanted.to_pylist(), where


def test_tests_of_conditions_are_refused_where_they_are_none():
    for text in ("(a = 1) IS", "(a = 1) IS NAN", "(a = 1) IS DISTINCT FROM b", "((a = 1) IS TRUE"):
        with pytest.raises(UsageError):
            parse_where(text)
    nested = "a = 1"
    for _ in range(40):
        nested = f"({nested}) IS UNKNOWN"
    with pytest.raises(UsageError, match="nested too deeply"):
        parse_where(nested)
