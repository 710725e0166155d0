"""Predicates from SQL text: `parse_where("month = 3 AND carrier LIKE 'U%'")`, and values: `sql("price * 2")`.

Grammar in addition to that of values, keywords in any case:

    or      = and { OR and }
    and     = not { AND not }
    not     = { NOT } test
    test    = "(" or ")" | value
            | value ( = == != <> < <= > >= ) value
            | value IS [NOT] ( NULL | TRUE | FALSE | UNKNOWN | NAN )
            | value IS [NOT] DISTINCT FROM value              NULL counts as a value
            | value [NOT] IN "(" value { "," value } ")"      values without columns
            | value [NOT] BETWEEN value AND value
            | value [NOT] ( LIKE | ILIKE ) text [ ESCAPE text ]
            | ( STARTS_WITH | ENDS_WITH | CONTAINS ) "(" value "," text ")" | ISNAN "(" value ")"

A value alone is a condition if it is BOOLEAN. NaN and Infinity are numbers where they are compared with a FLOAT or
DOUBLE value and no column has that name; `'NaN'` always is.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Union

from paimon_py.errors import UsageError
from paimon_py.expr.column import Calculable, calculable
from paimon_py.expr.literal import LiteralValue
from paimon_py.expr.predicate import (
    CALCULATED,
    And,
    Compare,
    Constant,
    In,
    IsNull,
    IsTrue,
    Not,
    Operator,
    Or,
    Predicate,
    Ref,
    TextMatch,
    TextTest,
    ValueTree,
    compare,
    distinct,
    join_predicates,
    on_values,
)
from paimon_py.expr.sql_intervals import Now
from paimon_py.expr.sql_terms import MAX_DEPTH, Terms
from paimon_py.expr.sql_tokens import Token
from paimon_py.expr.sql_values import Values
from paimon_py.expr.truth import is_false, is_true, is_unknown

_OPERATORS: dict[str, Operator] = {
    "=": "==", "==": "==", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">=",
}  # fmt: skip
_LIKES: dict[str, TextTest] = {"LIKE": "like", "ILIKE": "ilike"}
_NAN_TESTS = ("ISNAN", "IS_NAN")
_TESTS: dict[str, TextTest] = {
    **dict.fromkeys(("STARTS_WITH", "STARTSWITH"), "starts_with"),
    **dict.fromkeys(("ENDS_WITH", "ENDSWITH"), "ends_with"), "CONTAINS": "contains",
}  # fmt: skip


_TRUTHS = ((("TRUE",), is_true), (("FALSE",), is_false), (("UNKNOWN", "NULL"), is_unknown))


def parse_where(text: str, now: Now | None = None) -> Predicate:
    """The predicate of a SQL condition; `now`: the clock for now() and the like.

    Cost: linear in the text.
    Raises: UsageError with the position and a caret under it.
    """
    parser = Conditions(text, now)
    predicate = parser.disjunction(0)
    parser.expect_end()
    return predicate


def parse_column(text: str) -> Ref:
    """The column, or field inside a ROW, with a name as written in conditions.

    Raises: UsageError with the position and a caret under it.
    """
    parser = Terms(text)
    column = parser.column()
    parser.expect_end()
    return column


def sql(text: str) -> Calculable:
    """The value of a SQL text, for `update`, `merge` and conditions: `sql("price * 2")`, `sql("lower(name)") == "x"`.

    A text may contain columns, literals, `+ - * / %`, `||`, CASE, INTERVAL, and the functions abs, ceil, coalesce,
    concat, date, date_trunc, floor, greatest, least, length, lower, ltrim, nullif, replace, round, rtrim, substring,
    trim and upper. The result of NULL is NULL. `now()`, `localtimestamp()` and `today()` are the time at which a method
    of a table gets the value.

    Raises: UsageError with the position and a caret under it.
    """
    if not isinstance(text, str):
        raise UsageError(f'sql() takes a string such as "price * 2", not {text!r}')
    parser = Conditions(text, now_is_later=True)
    value = parser.value(0)
    parser.expect_end_of_value()
    return calculable(value)


class _Operand(NamedTuple):
    """A value where a condition may stand, and its first token."""

    value: ValueTree
    start: Token


_Part = Union[Predicate, _Operand]


class Conditions(Values):
    """Recursive descent over the tokens; every level of parentheses counts as depth.

    What a parenthesis contains is known only at its end: a condition, or a value that a comparison follows. So each
    step returns a condition or an operand, and an operand becomes a condition where only a condition may stand.
    """

    def disjunction(self, depth: int) -> Predicate:
        """Conditions joined by OR."""
        return self._condition(self._or(depth))

    def expect_end_of_value(self) -> None:
        """Refuse further tokens."""
        if self._token.kind != "end":
            self._fail(f"expected a sign or the end, not {self._token_text()}; conditions stand in CASE WHEN only")

    def _or(self, depth: int) -> _Part:
        first = self._and(depth)
        if self._token.keyword != "OR":
            return first
        parts = [self._condition(first)]
        while self._accept("OR"):
            parts.append(self._condition(self._and(depth)))
        return join_predicates(Or, parts)

    def _and(self, depth: int) -> _Part:
        first = self._not(depth)
        if self._token.keyword != "AND":
            return first
        parts = [self._condition(first)]
        while self._accept("AND"):
            parts.append(self._condition(self._not(depth)))
        return join_predicates(And, parts)

    def _not(self, depth: int) -> _Part:
        if self._token.keyword != "NOT":
            return self._test(depth)
        negated = False
        while self._accept("NOT"):
            negated = not negated
        predicate = self._condition(self._test(depth))
        return Not(predicate) if negated else predicate

    def _condition(self, part: _Part) -> Predicate:
        """The condition that a part is; a value alone is one if it is BOOLEAN."""
        if not isinstance(part, _Operand):
            return part
        if isinstance(part.value, bool):
            return Constant(part.value)
        if not isinstance(part.value, CALCULATED):
            self._fail("a literal alone is not a condition; compare it with a column", part.start)
        return on_values([part.value], IsTrue)

    def _test(self, depth: int) -> _Part:
        start = self._token
        if (start.keyword in _TESTS or start.keyword in _NAN_TESTS) and self._tokens[self._at + 1].keyword == "(":
            return self._test_function(start.keyword, depth)
        if start.keyword != "(":
            return self._of_value(self._sum_from(self._factor(depth), depth), start, depth)
        if depth >= MAX_DEPTH:
            self._fail(f"parentheses are nested deeper than {MAX_DEPTH}")
        self._at += 1
        inside = self._or(depth + 1)
        self._expect(")")
        if not isinstance(inside, _Operand):
            return self._is_true_or_not(inside) if self._accept("IS") else inside
        return self._of_value(self._sum_from(inside.value, depth), start, depth)

    def _of_value(self, value: ValueTree, start: Token, depth: int) -> _Part:
        """The test that follows a value; the value itself if none follows."""
        operator = _OPERATORS.get(self._token.keyword)
        if operator is not None:
            if value is None:
                self._fail("nothing compares with NULL; write IS NULL or IS NOT NULL", start)
            self._at += 1
            return self._compare(value, operator, depth)
        if self._accept("IS"):
            return self._is(value, depth, negated=self._accept("NOT"))
        negated = self._accept("NOT")
        if self._accept("IN"):
            return self._in(value, negated, depth)
        if self._accept("BETWEEN"):
            return self._between(value, negated, depth)
        for test in _LIKES:
            if self._accept(test):
                return self._like(value, test, negated)
        if negated:
            self._fail(f"expected IN, BETWEEN, LIKE or ILIKE after NOT, not {self._token_text()}")
        return _Operand(value, start)

    def _compare(self, left: ValueTree, operator: Operator, depth: int) -> Predicate:
        start = self._token
        right = self.value(depth)
        if right is None:
            self._fail("nothing compares with NULL; write IS NULL or IS NOT NULL", start)
        return compare(left, operator, right)

    def _is(self, value: ValueTree, depth: int, *, negated: bool) -> Predicate:
        if not self._accept("DISTINCT"):
            return self._is_special(value, negated)
        self._expect("FROM")
        found = distinct(value, self.value(depth))
        return Not(found) if negated else found

    def _is_special(self, value: ValueTree, negated: bool) -> Predicate:
        """Tests that are never unknown: NULL is neither true nor false nor NaN."""
        token = self._token
        if self._accept("NULL"):
            return on_values([value], lambda ref: IsNull(ref, negated=negated))
        found: Predicate
        if self._accept("UNKNOWN"):  # only BOOLEAN columns are unknown
            found = on_values([value], lambda ref: And((IsNull(ref), Or((IsTrue(ref), IsNull(ref))))))
        elif token.keyword in ("TRUE", "FALSE"):
            self._at += 1
            is_true = token.keyword == "TRUE"
            found = on_values(
                [value], lambda ref: And((IsNull(ref, negated=True), IsTrue(ref) if is_true else Not(IsTrue(ref))))
            )
        elif self._accept("NAN"):
            found = on_values([value], lambda ref: And((IsNull(ref, negated=True), Compare(ref, "==", math.nan))))
        else:
            self._fail(f"expected NULL, TRUE, FALSE, UNKNOWN, NAN or DISTINCT FROM, not {self._token_text()}")
        return Not(found) if negated else found

    def _is_true_or_not(self, part: Predicate) -> Predicate:
        """The test that follows `(condition) IS`."""
        negated = self._accept("NOT")
        for words, test in _TRUTHS:
            if any(map(self._accept, words)):
                return Not(test(part)) if negated else test(part)
        self._fail(f"expected TRUE, FALSE, UNKNOWN or NULL, not {self._token_text()}")

    def _test_function(self, keyword: str, depth: int) -> Predicate:
        self._at += 1
        self._expect("(")
        value = self.value(depth + 1)
        if keyword in _NAN_TESTS:
            self._expect(")")
            return on_values([value], lambda ref: Compare(ref, "==", math.nan))
        self._expect(",")
        text = self._string(f"{keyword}(…,")
        self._expect(")")
        return on_values([value], lambda ref: TextMatch(ref, _TESTS[keyword], text))

    def _in(self, value: ValueTree, negated: bool, depth: int) -> Predicate:
        self._expect("(")
        literals = [self._item(depth)]
        while self._accept(","):
            literals.append(self._item(depth))
        self._expect(")")
        known = tuple(literal for literal in literals if literal is not None)
        return on_values([value], lambda ref: In(ref, known, has_null=len(known) < len(literals), negated=negated))

    def _item(self, depth: int) -> LiteralValue | None:
        start, item = self._token, self.value(depth)
        if isinstance(item, CALCULATED):
            self._fail("IN takes literals; write a = b OR a = c for columns, and text in 'single quotes'", start)
        return item

    def _between(self, value: ValueTree, negated: bool, depth: int) -> Predicate:
        low = self._compare(value, ">=", depth)
        self._expect("AND")
        both = And((low, self._compare(value, "<=", depth)))
        return Not(both) if negated else both

    def _like(self, value: ValueTree, keyword: str, negated: bool) -> Predicate:
        pattern = self._string(keyword)
        if self._accept("ESCAPE"):
            token = self._token
            escape = self._string("ESCAPE")
            if len(escape) != 1:
                self._fail("ESCAPE takes one character", token)
            pattern = self._with_backslashes(pattern, escape, token)
        text = pattern
        match = on_values([value], lambda ref: TextMatch(ref, _LIKES[keyword], text))
        return Not(match) if negated else match

    def _with_backslashes(self, pattern: str, escape: str, token: Token) -> str:
        written: list[str] = []
        position = 0
        while position < len(pattern):
            sign = pattern[position]
            if sign == escape:
                position += 1
                if position == len(pattern):
                    self._fail(f"the pattern ends with its escape character {escape!r}", token)
                sign = "\\" + pattern[position]
            elif sign == "\\":
                sign = "\\\\"
            written.append(sign)
            position += 1
        return "".join(written)
