"""Texts given as values: which are taken for columns or expressions, and that these are not stored as texts."""

from __future__ import annotations

import pyarrow as pa
import pytest
from unit.public import files, new_catalog

from paimon_py import UsageError, col, lit
from paimon_py.rows.text_values import column_meant

COLUMNS = ("k", "s", "u", "a b")

LIKE_COLUMNS = {
    "source.nobody": ("source", "nobody"),
    "SOURCE.s": ("source", "s"),
    "target.u": ("target", "u"),
    " Target.u ": ("target", "u"),
    "source.S.x": ("source", "s", "x"),
    'source."a b"': ("source", "a b"),
    "`source`.`a b`": ("source", "a b"),
    "src.s": ("source", "s"),
    "tgt.U": ("target", "u"),
    "S.k": ("source", "k"),
    "t.u": ("target", "u"),
    "source.a + 1": ("source", "a"),
    "1+source.a": ("source", "a"),
    "-source.a": ("source", "a"),
    "(source.a)": ("source", "a"),
    "((source.a) * 2) - 'x'": ("source", "a"),
    "k || source.s": ("source", "s"),
    "target.k >= 3": ("target", "k"),
    "upper(source.s)": ("source", "s"),
    "upper( s )": ("s",),
    "coalesce(x, S, 'none')": ("s",),
    "now() - coalesce(u, 1)": ("u",),
    "round(abs(k) / 2, 1)": ("k",),
    "cast(source.a AS INT)": ("source", "a"),
    "max(t.u) ": ("target", "u"),
    "lit('source.a')": ("source", "a"),
    "CASE WHEN source.a = 1 THEN 'x' ELSE 'y' END": ("source", "a"),
    "case when k > 1\n then 'x' end": ("k",),
    "case K when 1 then 'x' end": ("k",),
    "cast(k as string)": ("k",),
    "TRY_CAST(U AS INT)": ("u",),
}

TEXTS = (
    "case closed, k", "case of s when the end", "Case when all else fails, then end", "cast(x as string)", "casting (k as s)",
    "", "s", "k", "source", "Dr. Who", "v1.2", "a.b@c.org", "end.", ".5", "1.2.3", "s.", ".s", "source.", "source. Not found",
    "source.a is better", "the source.s of it", "src.main", "src/s", "tgt.zip", "t.co", "s.p.a.", "sources.s", "resource.s",
    "k + 1", "n/a", "u-2", "upper()", "upper(x)", "upper(x) and lower(y)", "f(x) (s)", "see (source.s)", "Mr (k)",
    "upper(source.s", "upper)source.s(", "g(s) of h(k)", "g(source.s) of h(source.k)", "(((", "()", "a,b", "source.a,source.b",
    "https://source.com/k", "source.a;", "50% of source.a", "é.s", "k()", "1 2", "'source.s'", "source..s",
)  # fmt: skip


@pytest.mark.parametrize(("text", "path"), LIKE_COLUMNS.items())
def test_references_and_expressions_are_recognised(text, path):
    assert column_meant(text, COLUMNS) == path


@pytest.mark.parametrize("text", TEXTS)
def test_ordinary_texts_are_texts(text):
    assert column_meant(text, COLUMNS) is None


def test_long_texts_are_looked_at_once():
    for text in ("f(" + "(" * 100_000 + "u " * 100_000, "(" * 200_000, "f(" * 100_000, "a." * 100_000, "1+" * 100_000, "f(" + "a " * 100_000 + ")", "case " + "when then " * 50_000 + "end"):
        assert column_meant(text, COLUMNS) is None


# -- in tables --------------------------------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path):
    table = new_catalog(tmp_path).create_table("d.t", pa.schema([("k", pa.int64()), ("u", pa.string()), ("n", pa.int64())]))
    table.write_arrow(pa.table({"k": [1, 2], "u": ["a", "b"], "n": [1, 2]}))
    return table


SOURCE = pa.table({"k": [2, 3], "s": ["x", "y"]})


@pytest.mark.parametrize(("text", "words"), [
    ("src.s", 'col("source.s")'), ("SOURCE.s", 'col("source.s")'), ("upper(SRC.s)", 'sql("upper(source.s)")'),
    ("CASE WHEN Src.s = 'x' THEN 'y' END", "sql(\"CASE WHEN source.s = 'x' THEN 'y' END\")"),
    ("tgt.u", 'col("target.u")'), ("source.s + 1", 'lit("source.s + 1")'), ("u || 'x'", 'sql("u || \'x\'")'), ("Target.u", "looks like a column or an expression"),
    ("upper(U)", 'col("u")'),
])  # fmt: skip
@pytest.mark.parametrize("clause", ["when_matched_update", "when_not_matched_insert", "when_not_matched_by_source_update"])
def test_a_merge_refuses_texts_that_read_like_columns(table, clause, text, words):
    before = files(table.location)
    with pytest.raises(UsageError) as caught:
        table.merge(SOURCE, ["k"], **{clause: {"k": 3, "u": text} if "insert" in clause else {"u": text}})
    assert f"u: the string {text!r} looks like" in str(caught.value) and words in str(caught.value)
    assert files(table.location) == before


@pytest.mark.parametrize(("text", "words"), [
    ("target.u", 'col("u")'), ("TARGET.n", 'col("n")'), ("source.s", 'col("s")'), ("upper(u)", 'sql("upper(u)")'), ("t.n * 2", 'sql("n * 2")'),
])  # fmt: skip
def test_an_update_refuses_texts_that_read_like_columns(table, text, words):
    before = files(table.location)
    with pytest.raises(UsageError) as caught:
        table.update("k = 1", {"u": text})
    assert words in str(caught.value) and f'lit("{text}")' in str(caught.value)
    assert files(table.location) == before


def test_the_refused_texts_can_be_stored_and_the_others_still_are(table):
    table.update("k = 1", {"u": lit("upper(u)"), "n": lit(7)})
    table.merge(
        SOURCE, ["k"], when_matched_update={"u": lit("source.s")},
        when_not_matched_insert={"k": "source.k", "u": pa.scalar("SOURCE.s"), "n": lit(None)},
    )  # fmt: skip
    assert table.scan().to_arrow().sort_by("k").to_pydict() == {
        "k": [1, 2, 3], "u": ["upper(u)", "source.s", "SOURCE.s"], "n": [7, 2, None]
    }  # fmt: skip
    table.update("k = 2", {"u": "Dr. Who"})
    assert table.scan(where=col("u") == lit("Dr. Who")).to_arrow()["k"].to_pylist() == [2]
    with pytest.raises(UsageError, match="the source has no column 'nobody'"):
        table.merge(SOURCE, ["k"], when_matched_update={"u": "source.nobody"})


def test_a_literal_shows_and_compares_as_what_it_is():
    assert repr(lit("source.a")) == "lit('source.a')"
    assert lit(lit(3)) == lit(3) != lit(4)
    assert repr(col("a") > lit(3)) == repr(col("a") > 3)
