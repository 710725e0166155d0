"""Predicates from SQL text: `parse_where("month = 3 AND carrier LIKE 'U%'")`.

Grammar, keywords in any case:

    or      = and { OR and }
    and     = not { AND not }
    not     = { NOT } test
    test    = "(" or ")" | TRUE | FALSE | column
            | value ( = == != <> < <= > >= ) value            at least one side a column
            | column IS [NOT] ( NULL | TRUE | FALSE | UNKNOWN | NAN )
            | column IS [NOT] DISTINCT FROM ( value | NULL )  NULL counts as a value
            | column [NOT] IN "(" literal { "," literal } ")"
            | column [NOT] BETWEEN value AND value
            | column [NOT] ( LIKE | ILIKE ) text [ ESCAPE text ]
            | ( STARTS_WITH | ENDS_WITH | CONTAINS ) "(" column "," text ")" | ISNAN "(" column ")"
    value   = column | literal
    column  = name { "." name }                               name, "name" or `name`
    literal = number | 'text' | X'hex' | TRUE | FALSE | NULL | DATE 'text' | TIME 'text' | TIMESTAMP 'text'

In `'text'` two quotes stand for one; a backslash is special only in LIKE. Numbers are exact decimals. DATE, TIME
and TIMESTAMP are keywords only before a text, so columns may have these names. NaN and Infinity are numbers beside a
FLOAT or DOUBLE column if no column has that name; `'NaN'` always is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import NoReturn

from paimon_py.expr.literal import (
    BinaryValue,
    LiteralValue,
    parse_date,
    parse_time,
    parse_timestamp,
    to_literal,
)
from paimon_py.expr.predicate import (
    And,
    Compare,
    CompareColumns,
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
    distinct,
    join_predicates,
)
from paimon_py.expr.sql_tokens import Token, point_at, tokens

MAX_DEPTH = 100

_OPERATORS: dict[str, Operator] = {
    "=": "==", "==": "==", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">=",
}  # fmt: skip
_MIRROR: dict[Operator, Operator] = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_CALCULATING = frozenset(["(", "+", "-", "*", "/", "||"])
_LIKES: dict[str, TextTest] = {"LIKE": "like", "ILIKE": "ilike"}
_NAN_TESTS = ("ISNAN", "IS_NAN")
_TESTS: dict[str, TextTest] = {
    **dict.fromkeys(("STARTS_WITH", "STARTSWITH"), "starts_with"),
    **dict.fromkeys(("ENDS_WITH", "ENDSWITH"), "ends_with"), "CONTAINS": "contains",
}  # fmt: skip
_RESERVED = frozenset(["AND", "OR", "NOT", "IN", "BETWEEN", "IS", "NULL", "LIKE", "ESCAPE", "TRUE", "FALSE"])
_TYPED: dict[str, tuple[Callable[[str], LiteralValue | None], str]] = {
    "DATE": (parse_date, "yyyy-mm-dd"),
    "TIME": (parse_time, "hh:mm:ss.fff"),
    "TIMESTAMP": (parse_timestamp, "yyyy-mm-dd hh:mm:ss.fffffffff, with up to nine digits and a zone if needed"),
}


def parse_where(text: str) -> Predicate:
    """The predicate of a SQL condition.

    Cost: linear in the text.
    Raises: UsageError with the position and a caret under it.
    """
    parser = Conditions(text)
    predicate = parser.disjunction(0)
    parser.expect_end()
    return predicate


def parse_column(text: str) -> Ref:
    """The column, or field inside a ROW, with a name as written in conditions.

    Raises: UsageError with the position and a caret under it.
    """
    parser = _Terms(text)
    column = parser.column()
    parser.expect_end()
    return column


class _Terms:
    """Reads columns and literals from the tokens, one after the other."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens(text)
        self._at = 0

    def expect_end(self) -> None:
        if self._token.kind != "end":
            self._fail(f"expected AND, OR or the end, not {self._token_text()}{_advice(self._token.keyword)}")

    def column(self) -> Ref:
        path = [self._name()]
        while self._accept("."):
            path.append(self._name())
        return Ref(tuple(path))

    def _at_column(self) -> bool:
        token = self._token
        if token.kind == "word":
            return token.keyword not in _RESERVED and not self._at_typed()
        return token.kind == "quoted"

    def _at_typed(self) -> bool:
        return self._token.keyword in _TYPED and self._tokens[self._at + 1].kind == "text"

    def _name(self) -> str:
        token = self._token
        if token.kind not in ("word", "quoted") or token.keyword in _RESERVED or not token.value:
            known = token.kind == "word" and token.keyword in _RESERVED
            hint = f"; write `{token.value}` if a column is called that" if known else ""
            self._fail(f"expected a column name, not {self._token_text()}{hint}")
        self._at += 1
        return token.value

    def _literal(self) -> LiteralValue | None:
        token = self._token
        if self._at_typed():
            return self._typed_literal()
        if token.keyword in ("+", "-"):
            self._at += 1
            if self._token.kind != "number":
                self._fail(f"expected a number after {token.value!r}, not {self._token_text()}")
            return self._number(token.value + self._token.value)
        if token.kind == "number":
            return self._number(token.value)
        if token.keyword not in ("TRUE", "FALSE", "NULL") and token.kind not in ("text", "hex"):
            self._fail(f"expected a column or a literal, not {self._token_text()}")
        self._at += 1
        if token.kind == "text":
            return to_literal(token.value)
        if token.kind == "hex":
            if len(token.value) % 2:
                self._fail("X'…' needs two digits per byte", token)
            return BinaryValue(bytes.fromhex(token.value))
        return None if token.keyword == "NULL" else token.keyword == "TRUE"

    def _number(self, text: str) -> LiteralValue | None:
        token = self._token
        self._at += 1
        digits = text.lstrip("+-")
        if digits.isdecimal() and len(digits) <= 18:
            return int(text)
        try:
            return to_literal(Decimal(text))
        except InvalidOperation:
            self._fail("the number has too large an exponent", token)

    def _typed_literal(self) -> LiteralValue:
        keyword = self._token.keyword
        self._at += 1
        parse, form = _TYPED[keyword]
        value = parse(self._token.value)
        if value is None:
            self._fail(f"{self._token.value!r} is not a {keyword} of the form {form}")
        self._at += 1
        return value

    def _string(self, keyword: str) -> str:
        if self._token.kind != "text":
            self._fail(f"expected 'text' after {keyword}, not {self._token_text()}")
        self._at += 1
        return self._tokens[self._at - 1].value

    @property
    def _token(self) -> Token:
        return self._tokens[self._at]

    def _accept(self, keyword: str) -> bool:
        if self._token.keyword != keyword:
            return False
        self._at += 1
        return True

    def _expect(self, keyword: str) -> None:
        if not self._accept(keyword):
            self._fail(f"expected {keyword}, not {self._token_text()}")

    def _token_text(self) -> str:
        token = self._token
        return "the end" if token.kind == "end" else repr(self._text[token.start : token.end][:40])

    def _fail(self, message: str, token: Token | None = None) -> NoReturn:
        raise point_at(self._text, (token or self._token).start, message)


class Conditions(_Terms):
    """Recursive descent over the tokens; every level of parentheses or NOT counts as depth."""

    def disjunction(self, depth: int) -> Predicate:
        parts = [self._conjunction(depth)]
        while self._accept("OR"):
            parts.append(self._conjunction(depth))
        return join_predicates(Or, parts)

    def _conjunction(self, depth: int) -> Predicate:
        parts = [self._negation(depth)]
        while self._accept("AND"):
            parts.append(self._negation(depth))
        return join_predicates(And, parts)

    def _negation(self, depth: int) -> Predicate:
        negated = False
        while self._accept("NOT"):
            negated = not negated
        predicate = self._test(depth)
        return Not(predicate) if negated else predicate

    def _test(self, depth: int) -> Predicate:
        if self._token.keyword == "(":
            if depth >= MAX_DEPTH:
                self._fail(f"parentheses are nested deeper than {MAX_DEPTH}")
            self._at += 1
            predicate = self.disjunction(depth + 1)
            self._expect(")")
            return predicate
        start = self._token
        if (start.keyword in _TESTS or start.keyword in _NAN_TESTS) and self._tokens[self._at + 1].keyword == "(":
            return self._test_function(start.keyword)
        if self._at_column():
            return self._of_column(self.column())
        literal = self._literal()
        operator = _OPERATORS.get(self._token.keyword)
        if operator is None:
            if isinstance(literal, bool):
                return Constant(literal)
            self._fail("a literal alone is not a condition; compare it with a column", start)
        self._at += 1
        if not self._at_column():
            self._fail("expected a column on one side of the comparison")
        return self._compare(self.column(), _MIRROR[operator], literal, start)

    def _of_column(self, column: Ref) -> Predicate:
        operator = _OPERATORS.get(self._token.keyword)
        if operator is not None:
            self._at += 1
            return self._with_value(column, operator)
        if self._accept("IS"):
            return self._is(column, negated=self._accept("NOT"))
        negated = self._accept("NOT")
        if self._accept("IN"):
            return self._in(column, negated)
        if self._accept("BETWEEN"):
            return self._between(column, negated)
        for test in _LIKES:
            if self._accept(test):
                return self._like(column, test, negated)
        if negated:
            self._fail(f"expected IN, BETWEEN, LIKE or ILIKE after NOT, not {self._token_text()}")
        return IsTrue(column)

    def _compare(self, column: Ref, operator: Operator, literal: LiteralValue | None, start: Token) -> Predicate:
        if literal is None:
            self._fail("nothing compares with NULL; write IS NULL or IS NOT NULL", start)
        return Compare(column, operator, literal)

    def _is(self, column: Ref, *, negated: bool) -> Predicate:
        if not self._accept("DISTINCT"):
            return self._is_special(column, negated)
        self._expect("FROM")
        found = distinct(column, self.column() if self._at_column() else self._literal())
        return Not(found) if negated else found

    def _is_special(self, column: Ref, negated: bool) -> Predicate:
        """Tests that are never unknown: NULL is neither true nor false nor NaN."""
        token = self._token
        if self._accept("NULL"):
            return IsNull(column, negated=negated)
        found: Predicate
        if self._accept("UNKNOWN"):
            found = And((IsNull(column), Or((IsTrue(column), IsNull(column)))))  # only BOOLEAN columns are unknown
        elif token.keyword in ("TRUE", "FALSE"):
            self._at += 1
            held = IsTrue(column) if token.keyword == "TRUE" else Not(IsTrue(column))
            found = And((IsNull(column, negated=True), held))
        elif self._accept("NAN"):
            found = And((IsNull(column, negated=True), Compare(column, "==", math.nan)))
        else:
            self._fail(f"expected NULL, TRUE, FALSE, UNKNOWN, NAN or DISTINCT FROM, not {self._token_text()}")
        return Not(found) if negated else found

    def _test_function(self, keyword: str) -> Predicate:
        self._at += 1
        self._expect("(")
        column = self.column()
        if keyword in _NAN_TESTS:
            self._expect(")")
            return Compare(column, "==", math.nan)
        self._expect(",")
        text = self._string(f"{keyword}({column.name},")
        self._expect(")")
        return TextMatch(column, _TESTS[keyword], text)

    def _with_value(self, column: Ref, operator: Operator) -> Predicate:
        start = self._token
        if self._at_column():
            return CompareColumns(column, operator, self.column())
        return self._compare(column, operator, self._literal(), start)

    def _in(self, column: Ref, negated: bool) -> Predicate:
        self._expect("(")
        literals = [self._item()]
        while self._accept(","):
            literals.append(self._item())
        self._expect(")")
        known = tuple(literal for literal in literals if literal is not None)
        return In(column, known, has_null=len(known) < len(literals), negated=negated)

    def _item(self) -> LiteralValue | None:
        if self._at_column():
            self._fail("IN takes literals; write a = b OR a = c for columns, and text in 'single quotes'")
        return self._literal()

    def _between(self, column: Ref, negated: bool) -> Predicate:
        low = self._with_value(column, ">=")
        self._expect("AND")
        both = And((low, self._with_value(column, "<=")))
        return Not(both) if negated else both

    def _like(self, column: Ref, keyword: str, negated: bool) -> Predicate:
        pattern = self._string(keyword)
        if self._accept("ESCAPE"):
            token = self._token
            escape = self._string("ESCAPE")
            if len(escape) != 1:
                self._fail("ESCAPE takes one character", token)
            pattern = self._with_backslashes(pattern, escape, token)
        match = TextMatch(column, _LIKES[keyword], pattern)
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


def _advice(keyword: str) -> str:
    """What to write where a condition goes on with something that conditions do not have."""
    if keyword in _CALCULATING:
        return (
            ": conditions have no functions and no arithmetic; filter the rows that a scan gives, or ask "
            "catalog.sql(\"SELECT … WHERE lower(a) = 'x'\")"
        )
    if keyword in ("RLIKE", "REGEXP", "SIMILAR", "GLOB"):
        return ": conditions have no regular expressions; write LIKE 'a%' or ILIKE 'a%'"
    return ""
