"""Taking predicates apart by columns, and carrying them over to older files."""

import pytest

from paimon_py.expr.bind import bind
from paimon_py.expr.column import col
from paimon_py.expr.predicate import Constant
from paimon_py.expr.references import columns_of
from paimon_py.expr.split import split_conjuncts, translate
from paimon_py.spec.types import ArrayType, Atomic, Field, Root, RowType

INT, BIG, TEXT = Atomic(Root.INT), Atomic(Root.BIGINT), Atomic(Root.VARCHAR, length=20)
FIELDS = [
    Field(0, "p", INT),
    Field(1, "q", TEXT),
    Field(2, "x", BIG),
    Field(3, "d", Atomic(Root.DOUBLE)),
    Field(4, "row", RowType((Field(5, "y", BIG),))),
    Field(6, "dec", Atomic(Root.DECIMAL, precision=12, scale=4)),
    Field(7, "t", Atomic(Root.TIMESTAMP, precision=3)),
    Field(8, "list", ArrayType(INT)),
]


def bound(predicate):
    return bind(predicate, FIELDS)


def test_columns_are_the_top_level_ones():
    predicate = ((col("p") == 1) | ~col("row", "y").is_null()) & ~col("flag")
    assert columns_of(predicate) == {"p", "row", "flag"}
    assert columns_of(Constant(True)) == set()


def test_conjuncts_go_to_the_side_that_can_answer_them():
    p, q, x = col("p") == 1, col("q") == "a", col("x") == 2
    assert split_conjuncts(bound(p & x & q), ["p", "q"]) == (bound(p & q), bound(x))
    assert split_conjuncts(bound(p), ["p"]) == (bound(p), None)
    assert split_conjuncts(bound(x), ["p"]) == (None, bound(x))
    assert split_conjuncts(Constant(False), ["p"]) == (Constant(False), None)


def test_what_a_mixed_part_implies_is_used_as_well():
    p1, p2, x = col("p") == 1, col("p") == 2, col("x") > 3
    mixed = (p1 & x) | (p2 & (col("d") > 0))
    assert split_conjuncts(bound(mixed), ["p"]) == (bound(p1 | p2), bound(mixed))
    assert split_conjuncts(bound(mixed | (x & x)), ["p"]) == (None, bound(mixed | (x & x)))


OLD = [
    Field(2, "x_old", INT),
    Field(0, "x", INT),
    Field(3, "d", Atomic(Root.FLOAT)),
    Field(4, "r", RowType((Field(5, "y_old", BIG),))),
    Field(6, "dec", Atomic(Root.DECIMAL, precision=8, scale=2)),
    Field(7, "t", Atomic(Root.TIMESTAMP, precision=6)),
    Field(8, "list", ArrayType(INT)),
]


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (col("p") == 1, col("x") == 1),
        (col("x") <= 5, col("x_old") <= 5),
        (col("x") <= 2**40, col("x_old") <= 2**40),
        (col("x") == 2**40, Constant(False)),
        (col("x").isin([1, 2**40, 3]), col("x_old").isin([1, 3])),
        (col("row", "y").not_in([1, 2]), col("r", "y_old").not_in([1, 2])),
        (col("dec") > 1.2345, col("dec") > 1.23),
        (col("x").is_null(), col("x_old").is_null()),
        (col("d") > 0.1, Constant(True)),
        (col("t") > "2024-01-01", Constant(True)),
        (col("list").is_null(), Constant(True)),
        (col("q").starts_with("a"), Constant(True)),
        ((col("q") == "a") & (col("p") == 1), col("x") == 1),
        ((col("q") == "a") | (col("p") == 1), Constant(True)),
    ],
)
def test_older_files_get_what_the_predicate_implies(new, old):
    assert translate(bound(new), OLD) == bind(old, OLD)


def test_longer_text_columns_keep_their_predicates():
    old = [Field(1, "text", Atomic(Root.VARCHAR, length=5))]
    assert translate(bound(col("q").starts_with("a")), old) == bind(col("text").starts_with("a"), old)
    assert translate(bound(col("q") == "a"), [Field(1, "q", INT)]) == Constant(True)
    assert translate(bound(col("q") == "a"), [Field(1, "q", Atomic(Root.VARCHAR, length=50))]) == Constant(True)


def test_a_predicate_that_was_not_bound_is_refused():
    with pytest.raises(ValueError, match="not bound"):
        translate(~(col("p") == 1), OLD)
