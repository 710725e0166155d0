"""Values that are calculated: signs on columns and `sql("…")`, in updates and merges."""

from __future__ import annotations

import pickle
from datetime import date
from decimal import Decimal as D

import pyarrow as pa
import pytest
from unit.public import new_catalog

from paimon_py import SchemaError, UsageError, col, lit, sql

COLUMNS = pa.schema([
    ("k", pa.int64()), ("v", pa.int16()), ("f", pa.float32()), ("p", pa.decimal128(10, 2)), ("s", pa.string()),
    ("b", pa.bool_()), ("n", pa.int64()), ("d", pa.date32()), ("t", pa.timestamp("us")),
])  # fmt: skip
ROWS = pa.table({
    "k": [1, 2, 3], "v": [5, 0, None], "f": [1.5, 2.5, None], "p": [D("1.10"), D("20.05"), None],
    "s": ["ab", "Cdé", None], "n": [2**62, 7, None],
})  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    table = new_catalog(tmp_path_factory.mktemp("calculated")).create_table("d.t", COLUMNS)
    table.write_arrow(ROWS)
    return table


GOOD = [
    ("v", col("v") + 1, [6, 1, None]),
    ("n", 2 - col("k"), [1, 0, -1]),
    ("n", lit(2) * col("k"), [2, 4, 6]),
    ("n", -col("k"), [-1, -2, -3]),
    ("n", col("k") + None, [None, None, None]),
    ("n", col("v") / 5, [1, 0, None]),
    ("n", sql("5 / nullif(v, 0)"), [1, None, None]),
    ("n", sql("-(-k) - -1"), [2, 3, 4]),
    ("n", sql("1 + 2 * 3 - 4 / 2"), [5, 5, 5]),
    ("p", sql("p * 2"), [D("2.20"), D("40.10"), None]),
    ("p", sql("round(p * 1.1, 2)"), [D("1.21"), D("22.06"), None]),
    ("p", sql("round(p / 3, 2)"), [D("0.37"), D("6.68"), None]),
    ("p", col("k") * D("1.5"), [D("1.50"), D("3.00"), D("4.50")]),
    ("f", col("f") * 2, [3.0, 5.0, None]),
    ("s", sql("upper(s)"), ["AB", "CDÉ", None]),
    ("s", sql("s || '-' || lower(s)"), ["ab-ab", "Cdé-cdé", None]),
    ("s", sql("concat(s, 'x')"), ["abx", "Cdéx", None]),
    ("s", sql("coalesce(s, 'none')"), ["ab", "Cdé", "none"]),
    ("s", sql("substring(s, 2)"), ["b", "dé", None]),
    ("s", sql("substring(s, -2, 1)"), ["a", "d", None]),
    ("s", sql("replace(trim(concat(' ', s, ' ')), 'b', 'XX')"), ["aXX", "Cdé", None]),
    ("s", sql("CASE WHEN v > 1 THEN 'many' WHEN v IS NULL THEN 'none' ELSE s END"), ["many", "Cdé", "none"]),
    ("n", sql("case v when 0 then 0 else 10 / v end"), [2, 0, None]),
    ("n", sql("case when v > 1 then 1 end"), [1, None, None]),
    ("n", sql("case when true then 1 else 2 end"), [1, 1, 1]),
    ("n", sql("length(s)"), [2, 3, None]),
    ("n", col("n") % 10, [2**62 % 10, 7, None]),
    ("n", sql("(0 - n) % nullif(v, 0)"), [-(2**62 % 5), None, None]),
    ("n", sql("(-9223372036854775807 - 1) % -1 + 0 * k"), [0, 0, 0]),
    ("f", sql("f % 1"), [0.5, 0.5, None]),
    ("n", 7 % col("k"), [0, 1, 1]),
    ("n", sql("greatest(v, n, 3)"), [2**62, 7, 3]),
    ("n", sql("least(k, v)"), [1, 0, 3]),
    ("f", sql("floor(0.5) + ceil(0.5) + ceil(p * 0)"), [1.0, 1.0, None]),
    ("n", sql("abs(-k)"), [1, 2, 3]),
    ("n", sql("round(f)"), [2, 3, None]),
    ("n", sql("floor(f)"), [1, 2, None]),
    ("n", sql("ceil(p)"), [2, 21, None]),
    ("n", sql("9223372036854775807 - k"), [2**63 - 2, 2**63 - 3, 2**63 - 4]),
    ("d", sql("date '2020-01-02'"), [date(2020, 1, 2)] * 3),
    ("d", sql("coalesce(d, DATE '2020-01-02')"), [date(2020, 1, 2)] * 3),
    ("b", sql("true"), [True] * 3),
    ("s", sql("'a'"), ["a"] * 3),
    ("n", sql("v"), [5, 0, None]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "wanted"), GOOD, ids=[f"{at}-{name}" for at, (name, _, _) in enumerate(GOOD)])
def test_values_are_calculated(table, name, value, wanted):
    table.update("true", {name: pickle.loads(pickle.dumps(value))})
    try:
        assert table.to_arrow().sort_by("k")[name].to_pylist() == wanted
    finally:
        table.rollback_to(1)


BAD = [
    ("v", col("v") * 30000, r"v: 150000 \(row 0 of a batch, int64\) does not fit SMALLINT"),
    ("n", col("n") * 4, r"n: 4611686018427387904 \* 4 \(row 0 of a batch\) goes beyond BIGINT"),
    ("n", sql("n + n"), r"n: 4611686018427387904 \+ 4611686018427387904 \(row 0 of a batch\) goes beyond BIGINT"),
    ("n", col("v") / 2, r"n: 2.5 \(row 0 of a batch\) does not fit BIGINT without loss; round"),
    ("n", sql("5 / v"), r"n: 5 / 0 \(row 1 of a batch\) divides by zero; write a / nullif\(b, 0\) for NULL"),
    ("f", col("f") / col("v"), r"f: 2.5 / 0 \(row 1 of a batch\) divides by zero"),
    ("n", sql("5 % v"), r"n: 5 % 0 \(row 1 of a batch\) divides by zero; write a % nullif\(b, 0\)"),
    ("p", col("p") % 2, "p: % takes integers and floats, not decimals"),
    ("p", col("p") * 1.1, r'p: 22.055 \(row 1 of a batch\) does not fit DECIMAL\(10, 2\) without loss; .*sql\("round\(…, 2\)"\)'),
    ("n", col("s") + 1, r"n: \+ takes numbers, not string; texts are put together with concat"),
    ("n", sql("upper(k)"), "n: upper takes strings, not int64"),
    ("n", sql("coalesce(s, 1)"), "n: int64 and string have no type in common"),
    ("n", sql("round(f, s)"), "n: round: only the first argument may be a column"),
    ("s", sql("k + 1"), "s: int64 given, STRING needed"),
    ("b", col("k") > 1, r'b: .* BOOLEAN needed: .*sql\("CASE WHEN a > 1 THEN TRUE ELSE FALSE END"\)'),
    ("n", sql("p*p*p*p*p*p*p*p"), "n: .*: the result has more than 76 digits"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "words"), BAD, ids=[f"{at}-{name}" for at, (name, _, _) in enumerate(BAD)])
def test_what_cannot_be_calculated_names_column_row_and_values(table, name, value, words):
    with pytest.raises(SchemaError, match=rf"^(column |values do not fit their columns:\n  )?{words}") as caught:
        table.update("true", {name: value})
    assert caught.value.fields == (name,)
    assert table.refresh().snapshot().id == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [("uper(s)", "did you mean upper"), ("ifnull(s, 'x')", "did you mean coalesce"), ("SUBSTR(s, 2)", "did you mean substring"),
     ("cast(k as string)", r"cast to DATE only; .*lambda rows: rows\['a'\]\.cast\("), ("if(v > 1, 1, 2)", "function if does not exist; write CASE WHEN"),
     ("sqrt(f)", "function sqrt does not exist; the functions are abs, ceil"), ("k +", "expected a column or a literal"), ("round(k", r"expected \)"), ("v > 1", "CASE WHEN only"),
     ("concat()", "1 or more arguments"), ("case end", "expected WHEN"), ("k + 'a", "never closed"), ("", "expected"), ("sum(k)", "the functions are abs"),
     ("(" * 500 + "1" + ")" * 500, "nested deeper"), ("-" * 500 + "k", "nested deeper"), (7, "takes a string")],
)  # fmt: skip
def test_texts_that_are_no_values_are_refused_with_their_place(text, words):
    with pytest.raises(UsageError, match=words):
        sql(text)


def test_a_value_alone_is_no_condition_and_has_no_truth_value(table):
    for ask in (lambda: bool(col("k") + 1), lambda: table.scan(where=col("k") + 1), lambda: table.delete("k + 1"), lambda: 1 < col("k") + 1 < 5):
        with pytest.raises(UsageError):
            ask()
    with pytest.raises(UsageError, match="the table has no column 'nobody'"):
        table.update("true", {"n": col("nobody") + 1})


def test_a_merge_calculates_of_both_sides(tmp_path):
    table = new_catalog(tmp_path).create_table("d.t", COLUMNS, primary_key=["k"], options={"bucket": "1"})
    table.write_arrow(ROWS)
    news = pa.table({"k": pa.array([1, 9], pa.int32()), "s": pa.array(["z", "y"]).dictionary_encode(), "a": pa.array([3, 4], pa.int8())})
    table.merge(
        news, ["k"],
        when_matched_update={"n": col("source.a") + 1, "s": sql("upper(source.s) || target.s"), "v": col("source.a")},
        when_not_matched_insert={"k": col("source.k"), "n": sql("source.a * 10"), "s": sql("concat(s, '!')")},
        when_not_matched_by_source_update={"s": sql("upper(target.s)")},
    )  # fmt: skip
    found = table.to_arrow().sort_by("k")
    assert found["n"].to_pylist() == [4, 7, None, 40]
    assert found["s"].to_pylist() == ["Zab", "CDÉ", None, "y!"]
