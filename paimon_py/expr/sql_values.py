"""Values from SQL text: `sql("upper(name)")`, `sql("price * 2")`.

Grammar beside that of conditions, keywords in any case:

    value   = product { ( + | - | "||" ) product }
    product = factor { ( * | / ) factor }
    factor  = ( + | - ) factor | "(" value ")" | call | case | column | literal
    call    = name "(" [ value { "," value } ] ")"
    case    = CASE { WHEN condition THEN value } [ ELSE value ] END
            | CASE column { WHEN literal THEN value } [ ELSE value ] END
"""

from __future__ import annotations

import difflib

from paimon_py.errors import UsageError
from paimon_py.expr.calculation import Arithmetic, Calculable, Calculation, Case, FunctionCall, Negative, Sign
from paimon_py.expr.literal import Lit
from paimon_py.expr.predicate import Column, Compare, Predicate
from paimon_py.expr.sql import MAX_DEPTH, Conditions

FUNCTIONS: dict[str, tuple[int, int]] = {
    "abs": (1, 1), "ceil": (1, 1), "coalesce": (1, 99), "concat": (1, 99), "floor": (1, 1), "greatest": (2, 99),
    "least": (2, 99), "length": (1, 1), "lower": (1, 1), "ltrim": (1, 1), "nullif": (2, 2), "replace": (3, 3),
    "round": (1, 2), "rtrim": (1, 1), "substring": (2, 3), "trim": (1, 1), "upper": (1, 1),
}  # fmt: skip
"""Functions and how many arguments each takes, at least and at most."""

_CASTS = "values take the type of their column where nothing is lost; a function casts: lambda rows: rows['a'].cast(…)"
_CHOOSES = "write CASE WHEN a > 1 THEN b ELSE c END"
_MEANT = {
    "cast": _CASTS, "try_cast": _CASTS, "to_char": _CASTS, "to_date": _CASTS, "if": _CHOOSES, "iff": _CHOOSES,
    "iif": _CHOOSES, "decode": _CHOOSES, "ifnull": "coalesce", "nvl": "coalesce", "isnull": "coalesce",
    "len": "length", "char_length": "length", "ceiling": "ceil", "substr": "substring", "ucase": "upper",
    "lcase": "lower",
}  # fmt: skip
"""What stands here for functions of other dialects: one of ours, or advice."""
_SUMS: dict[str, Sign] = {"+": "+", "-": "-"}
_PRODUCTS: dict[str, Sign] = {"*": "*", "/": "/"}
_CLAUSES = frozenset(("WHEN", "THEN", "ELSE", "END"))


def sql(text: str) -> Calculable:
    """The value that a SQL text means, for `update` and `merge`: `sql("price * 2")`, `sql("upper(source.name)")`.

    A text has columns, literals, `+ - * /`, `||`, CASE, and the functions abs, ceil, coalesce, concat, floor, greatest,
    least, length, lower, ltrim, nullif, replace, round, rtrim, substring, trim and upper. NULL makes NULL.

    Raises: UsageError with the position and a caret under it.
    """
    if not isinstance(text, str):
        raise UsageError(f'sql() takes a string such as "price * 2", not {text!r}')
    parser = _Values(text)
    value = parser.value(0)
    parser.expect_end_of_value()
    return value


class _Values(Conditions):
    """Recursive descent over the tokens of a value."""

    def expect_end_of_value(self) -> None:
        if self._token.kind != "end":
            self._fail(f"expected a sign or the end, not {self._token_text()}; conditions stand in CASE WHEN only")

    def value(self, depth: int) -> Calculable:
        if depth >= MAX_DEPTH:
            self._fail(f"the value is nested deeper than {MAX_DEPTH}")
        found = self._product(depth)
        while True:
            sign = self._token.keyword
            if self._accept("||"):
                found = FunctionCall("concat", (found, self._product(depth)))
            elif sign in _SUMS:
                self._accept(sign)
                found = Arithmetic(_SUMS[sign], found, self._product(depth))
            else:
                return found

    def _product(self, depth: int) -> Calculable:
        found = self._factor(depth)
        while (sign := self._token.keyword) in _PRODUCTS:
            self._accept(sign)
            found = Arithmetic(_PRODUCTS[sign], found, self._factor(depth))
        return found

    def _factor(self, depth: int) -> Calculable:
        if depth >= MAX_DEPTH:
            self._fail(f"the value is nested deeper than {MAX_DEPTH}")
        if self._token.keyword in _SUMS and self._tokens[self._at + 1].kind != "number":
            negative = self._token.keyword == "-"
            self._at += 1
            found = self._factor(depth + 1)
            return Negative(found) if negative else found
        if self._accept("("):
            found = self.value(depth + 1)
            self._expect(")")
            return found
        if self._token.kind == "word" and self._tokens[self._at + 1].keyword == "(":
            return self._call(depth)
        if self._token.keyword == "CASE" and self._tokens[self._at + 1].keyword != ".":
            return self._case(depth)
        if self._at_column() and self._token.keyword not in _CLAUSES:
            return Column(self.column().path)
        return Lit(self._literal())

    def _call(self, depth: int) -> Calculation:
        token = self._token
        name = token.value.lower()
        if name not in FUNCTIONS:
            self._fail(f"there is no function {token.value}; {_meant(name)}")
        self._at += 2
        arguments: list[object] = []
        if not self._accept(")"):
            arguments.append(self.value(depth + 1))
            while self._accept(","):
                arguments.append(self.value(depth + 1))
            self._expect(")")
        low, high = FUNCTIONS[name]
        if not low <= len(arguments) <= high:
            takes = str(low) if low == high else f"{low} or more" if high == 99 else f"{low} to {high}"
            self._fail(f"{name} takes {takes} arguments, not {len(arguments)}", token)
        return FunctionCall(name, tuple(arguments))

    def _case(self, depth: int) -> Calculation:
        self._at += 1
        operand = None if self._token.keyword == "WHEN" else self.column()
        branches: list[tuple[object, object]] = []
        while self._accept("WHEN"):
            condition: Predicate
            if operand is None:
                condition = self.disjunction(depth + 1)
            else:
                token, literal = self._token, self._literal()
                if literal is None:
                    self._fail("nothing compares with NULL; write CASE WHEN … IS NULL", token)
                condition = Compare(operand, "==", literal)
            self._expect("THEN")
            branches.append((condition, self.value(depth + 1)))
        if not branches:
            self._fail(f"expected WHEN, not {self._token_text()}")
        otherwise: object = self.value(depth + 1) if self._accept("ELSE") else Lit(None)
        self._expect("END")
        return Case(tuple(branches), otherwise)


def _meant(name: str) -> str:
    """What may be meant by a function that is not there."""
    near = [_MEANT[name]] if name in _MEANT else difflib.get_close_matches(name, FUNCTIONS, 1)
    if not near:
        return f"there are {', '.join(FUNCTIONS)}"
    return f"did you mean {near[0]}?" if near[0] in FUNCTIONS else near[0]
