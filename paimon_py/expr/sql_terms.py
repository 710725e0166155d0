"""Columns and literals from SQL text.

Grammar, keywords in any case:

    column  = name { "." name }                               name, "name" or `name`
    literal = number | 'text' | X'hex' | TRUE | FALSE | NULL | DATE 'text' | TIME 'text' | TIMESTAMP 'text'

In `'text'` two quotes stand for one; a backslash is special only in LIKE. Numbers are exact decimals. DATE, TIME
and TIMESTAMP are keywords only before a text, so columns may have these names.
"""

from __future__ import annotations

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
from paimon_py.expr.predicate import FunctionCall, Ref
from paimon_py.expr.sql_intervals import NOW, Interval, Moment, Now, parse_interval
from paimon_py.expr.sql_tokens import Token, point_at, tokens

MAX_DEPTH = 100
RESERVED = frozenset(["AND", "OR", "NOT", "IN", "BETWEEN", "IS", "NULL", "LIKE", "ESCAPE", "TRUE", "FALSE"])

_TYPED: dict[str, tuple[Callable[[str], LiteralValue | None], str]] = {
    "DATE": (parse_date, "yyyy-mm-dd"),
    "TIME": (parse_time, "hh:mm:ss.fff"),
    "TIMESTAMP": (parse_timestamp, "yyyy-mm-dd hh:mm:ss.fffffffff, with up to nine digits and a zone if needed"),
}


class Terms:
    """Reads columns and literals from the tokens, one after the other."""

    def __init__(self, text: str, now: Now | None = None, *, now_is_later: bool = False) -> None:
        self._text = text
        self._now = now
        self._now_is_later = now_is_later
        self._tokens = tokens(text)
        self._at = 0

    def expect_end(self) -> None:
        """Refuse further tokens."""
        if self._token.kind != "end":
            self._fail(f"expected AND, OR or the end, not {self._token_text()}{_advice(self._token.keyword)}")

    def column(self) -> Ref:
        """A column, or a field inside a ROW."""
        path = [self._name()]
        while self._accept("."):
            path.append(self._name())
        return Ref(tuple(path))

    def _at_column(self) -> bool:
        token = self._token
        if token.kind == "word":
            return token.keyword not in RESERVED and not self._at_typed()
        return token.kind == "quoted"

    def _at_typed(self) -> bool:
        return self._token.keyword in _TYPED and self._tokens[self._at + 1].kind == "text"

    def _name(self) -> str:
        token = self._token
        if token.kind not in ("word", "quoted") or token.keyword in RESERVED or not token.value:
            known = token.kind == "word" and token.keyword in RESERVED
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

    def _at_interval(self) -> bool:
        return self._token.keyword == "INTERVAL" and self._tokens[self._at + 1].kind in ("text", "number")

    def _interval(self) -> Interval:
        """An interval: INTERVAL '1' DAY, INTERVAL 3 HOURS, INTERVAL '1 day 2 hours'."""
        token = self._tokens[self._at + 1]
        self._at += 2
        text = token.value
        if token.kind == "number" or text.strip().lstrip("+-").isdecimal():
            text += f" {self._token.value}"
            self._at += self._token.kind == "word"
        found = parse_interval(text)
        if found is None:
            self._fail("an INTERVAL is a number and a unit, as in INTERVAL '1' DAY or INTERVAL '2 hours'", token)
        return found

    def _current_time(self) -> Moment | FunctionCall:
        """now() and the like."""
        name = self._token.value
        if self._now is None and not self._now_is_later:
            self._fail(f"{name}() is not known here; write the time, as in TIMESTAMP '2024-01-31 12:00:00'")
        self._at += 2
        self._expect(")")
        return FunctionCall(name.lower(), ()) if self._now is None else NOW[name.lower()](self._now)

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


def _advice(keyword: str) -> str:
    """Advice for a condition that continues with something that conditions do not have."""
    if keyword in ("RLIKE", "REGEXP", "SIMILAR", "GLOB"):
        return ": conditions have no regular expressions; write LIKE 'a%' or ILIKE 'a%'"
    return ""
