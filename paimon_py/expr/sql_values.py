"""Values from SQL text: `price * 2`, `upper(name)`.

Grammar in addition to that of columns and literals, keywords in any case:

    value   = product { ( + | - | "||" ) product | ( + | - ) interval }
    product = factor { ( * | / | % ) factor }
    factor  = ( + | - ) factor | "(" value ")" | call | case | column | literal | now | interval + factor
    call    = name "(" [ value { "," value } ] ")" | CAST "(" value AS DATE ")"
    case    = CASE { WHEN condition THEN value } [ ELSE value ] END
            | CASE value { WHEN literal THEN value } [ ELSE value ] END

A column may be called case where no CASE can be meant, and when, then, else or end outside of CASE.
"""

from __future__ import annotations

import difflib

from paimon_py.expr.literal import DateValue, TimestampValue
from paimon_py.expr.predicate import (
    CALCULATED,
    Arithmetic,
    Case,
    ColumnValue,
    FunctionCall,
    Negative,
    Predicate,
    Sign,
    ValueTree,
    compare,
)
from paimon_py.expr.sql_intervals import NOW, Interval, Now, interval_text, shift
from paimon_py.expr.sql_terms import MAX_DEPTH, RESERVED, Terms
from paimon_py.expr.sql_tokens import Token

FUNCTIONS: dict[str, tuple[int, int]] = {
    "abs": (1, 1), "ceil": (1, 1), "coalesce": (1, 99), "concat": (1, 99), "date": (1, 1), "date_trunc": (2, 2),
    "floor": (1, 1), "greatest": (2, 99),
    "least": (2, 99), "length": (1, 1), "lower": (1, 1), "ltrim": (1, 1), "nullif": (2, 2), "replace": (3, 3),
    "round": (1, 2), "rtrim": (1, 1), "substring": (2, 3), "trim": (1, 1), "upper": (1, 1),
}  # fmt: skip
"""Functions, and the minimum and maximum number of arguments of each."""

_CASTS = "values take the type of their column where nothing is lost; a function casts: lambda rows: rows['a'].cast(…)"
_CHOOSES = "write CASE WHEN a > 1 THEN b ELSE c END"
_MEANT = {
    "try_cast": _CASTS, "to_char": _CASTS, "to_date": "date", "if": _CHOOSES, "iff": _CHOOSES,
    "iif": _CHOOSES, "decode": _CHOOSES, "ifnull": "coalesce", "nvl": "coalesce", "isnull": "coalesce",
    "len": "length", "char_length": "length", "ceiling": "ceil", "substr": "substring", "ucase": "upper",
    "lcase": "lower", "mod": "write a % b",
}  # fmt: skip
"""Equivalents of functions of other dialects: a supported function, or advice."""
_OTHERS = 'catalog.sql("SELECT … WHERE …") has the functions of DuckDB'
_ALONE = "an INTERVAL is added to a date or timestamp, as in ts + INTERVAL '1' DAY > now()"
_SUMS: dict[str, Sign] = {"+": "+", "-": "-"}
_PRODUCTS: dict[str, Sign] = {"*": "*", "/": "/", "%": "%"}
_CLAUSES = frozenset(("WHEN", "THEN", "ELSE", "END"))


class Values(Terms):
    """Recursive descent over the tokens of a value."""

    def __init__(self, text: str, now: Now | None = None, *, now_is_later: bool = False) -> None:
        super().__init__(text, now, now_is_later=now_is_later)
        self._open_cases = 0

    def disjunction(self, depth: int) -> Predicate:
        """A condition, as in CASE WHEN."""
        raise NotImplementedError

    def value(self, depth: int) -> ValueTree:
        """A value; `depth` counts parentheses, calls and signs around it."""
        if depth >= MAX_DEPTH:
            self._fail(f"the value is nested deeper than {MAX_DEPTH}")
        return self._sum_from(self._factor(depth), depth)

    def _sum_from(self, first: ValueTree, depth: int) -> ValueTree:
        """The sum that begins with a factor."""
        found = self._product_from(first, depth)
        while True:
            sign = self._token.keyword
            if self._accept("||"):
                found = FunctionCall("concat", (found, self._product(depth)))
            elif sign in _SUMS:
                self._accept(sign)
                found = self._plus(found, _SUMS[sign], depth)
            else:
                return found

    def _plus(self, value: ValueTree, sign: Sign, depth: int) -> ValueTree:
        """A sum or difference; of a date and days, or a date or timestamp and an INTERVAL, the result."""
        start = self._token
        if self._at_interval():
            return self._shift(value, self._interval(), sign, start)
        other = self._product(depth)
        if isinstance(value, DateValue) and type(other) is int:
            return self._shift(value, Interval(days=other), sign, start)
        return Arithmetic(sign, value, other)

    def _shift(self, value: ValueTree, interval: Interval, sign: Sign, start: Token) -> ValueTree:
        """A date or timestamp plus or minus an interval."""
        if isinstance(value, CALCULATED):
            return FunctionCall("add_interval", (value, interval_text(interval, 1 if sign == "+" else -1)))
        if not isinstance(value, (DateValue, TimestampValue)):
            self._fail(_ALONE, start)
        found = shift(value, interval, 1 if sign == "+" else -1)
        if found is None:
            self._fail("the result is not in the years 1 to 9999", start)
        return found

    def _product(self, depth: int) -> ValueTree:
        return self._product_from(self._factor(depth), depth)

    def _product_from(self, first: ValueTree, depth: int) -> ValueTree:
        found = first
        while (sign := self._token.keyword) in _PRODUCTS:
            self._accept(sign)
            found = Arithmetic(_PRODUCTS[sign], found, self._factor(depth))
        return found

    def _factor(self, depth: int) -> ValueTree:
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
            return self._current_time() if self._token.value.lower() in NOW else self._call(depth)
        if self._at_interval():
            start, interval = self._token, self._interval()
            if not self._accept("+"):
                self._fail(_ALONE, start)
            return self._shift(self._factor(depth + 1), interval, "+", start)
        if self._at_case():
            return self._case(depth)
        if self._at_column() and not (self._open_cases and self._token.keyword in _CLAUSES):
            return ColumnValue(self.column())
        return self._literal()

    def _at_case(self) -> bool:
        """Whether CASE begins a value here, and is not the name of a column."""
        if self._token.keyword != "CASE":
            return False
        after = self._tokens[self._at + 1]
        is_name = after.kind in ("end", "sign") or after.keyword in RESERVED - {"TRUE", "FALSE", "NOT"}
        return not is_name and after.keyword != "ILIKE"

    def _call(self, depth: int) -> FunctionCall:
        token = self._token
        name = token.value.lower()
        if name == "cast":
            return self._cast(depth)
        if name not in FUNCTIONS:
            self._fail(f"function {token.value} does not exist; {_meant(name)}")
        self._at += 2
        arguments: list[ValueTree] = []
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

    def _cast(self, depth: int) -> FunctionCall:
        start = self._token
        self._at += 2
        value = self.value(depth + 1)
        self._expect("AS")
        if not self._accept("DATE"):
            self._fail(f"conditions and values cast to DATE only; {_CASTS}; {_OTHERS}", start)
        self._expect(")")
        return FunctionCall("date", (value,))

    def _case(self, depth: int) -> Case:
        self._at += 1
        self._open_cases += 1
        operand = None if self._token.keyword in _CLAUSES else self.value(depth + 1)
        branches: list[tuple[Predicate, ValueTree]] = []
        while self._accept("WHEN"):
            condition = self.disjunction(depth + 1) if operand is None else self._equals(operand)
            self._expect("THEN")
            branches.append((condition, self.value(depth + 1)))
        if not branches:
            self._fail(f"expected WHEN, not {self._token_text()}")
        otherwise = self.value(depth + 1) if self._accept("ELSE") else None
        self._expect("END")
        self._open_cases -= 1
        return Case(tuple(branches), otherwise)

    def _equals(self, operand: ValueTree) -> Predicate:
        token, literal = self._token, self._literal()
        if literal is None:
            self._fail("nothing compares with NULL; write CASE WHEN … IS NULL", token)
        return compare(operand, "==", literal)


def _meant(name: str) -> str:
    """The known function that an unknown name may stand for."""
    near = [_MEANT[name]] if name in _MEANT else difflib.get_close_matches(name, FUNCTIONS, 1)
    if not near:
        return f"the functions are {', '.join(FUNCTIONS)}; {_OTHERS}"
    return f"did you mean {near[0]}?" if near[0] in FUNCTIONS else f"{near[0]}; {_OTHERS}"
