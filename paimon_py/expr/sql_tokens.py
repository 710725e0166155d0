"""The tokens of a WHERE text, and errors that point to a position in it."""

from __future__ import annotations

import re
from typing import Literal, NoReturn

import msgspec

from paimon_py.errors import UsageError

Kind = Literal["number", "text", "hex", "quoted", "word", "sign", "end"]

_TOKEN = re.compile(
    r"""
      (?P<number> (?: \d+ (?: \.\d* )? | \.\d+ ) (?: [eE][+-]?\d+ )? (?! [\w$] ) )
    | (?P<hex>    [xX]'[0-9a-fA-F]*' )
    | (?P<text>   '[^']*(?:''[^']*)*' )
    | (?P<quoted> "[^"]*(?:""[^"]*)*" | `[^`]*(?:``[^`]*)*` )
    | (?P<word>   [^\W\d][\w$]* )
    | (?P<sign>   <= | >= | <> | != | == | \|\| | [=<>(),.+\-*/%] )
    """,
    re.VERBOSE,
)
_MEANT = {
    "&": "; write AND", "|": "; write OR, or || between strings", "!": "; write NOT", ";": "; leave it out",
    "~": "; write LIKE 'a%'", ":": "; values keep their types", "[": "; names are quoted as `a b`",
}  # fmt: skip
"""Replacements for signs of other languages."""
_BLANK = re.compile(r"\s*")
_CONTEXT = 60


class Token(msgspec.Struct, frozen=True):
    """One token: its kind, its value without quotes, its start and end."""

    kind: Kind
    value: str
    start: int
    end: int

    @property
    def keyword(self) -> str:
        """The word in upper case, or the sign; empty for anything else."""
        return self.value.upper() if self.kind == "word" else self.value if self.kind == "sign" else ""


def tokens(text: str) -> list[Token]:
    """All tokens of the text, followed by one of kind `end`.

    Cost: linear in the text.
    Raises: UsageError at the first character that begins no token.
    """
    found: list[Token] = []
    position = _skip(text, 0)
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            _refuse(text, position)
        kind: Kind = match.lastgroup  # type: ignore[assignment]
        found.append(Token(kind, _plain(kind, match.group()), position, match.end()))
        position = _skip(text, match.end())
    found.append(Token("end", "", len(text), len(text)))
    return found


def point_at(text: str, position: int, message: str) -> UsageError:
    """An error with the line of the text around `position` and a caret under it."""
    start = max(text.rfind("\n", 0, position) + 1, position - _CONTEXT)
    end = text.find("\n", position)
    end = min(len(text) if end < 0 else end, position + _CONTEXT)
    line = text[start:end].replace("\t", " ").replace("\r", " ")
    return UsageError(f"{message} (at character {position + 1})\n  {line}\n  {' ' * (position - start)}^")


def _skip(text: str, position: int) -> int:
    match = _BLANK.match(text, position)
    return position if match is None else match.end()


def _plain(kind: str, text: str) -> str:
    if kind in ("text", "quoted"):
        return text[1:-1].replace(text[0] * 2, text[0])
    return text[2:-1] if kind == "hex" else text


def _refuse(text: str, position: int) -> NoReturn:
    sign = text[position]
    if sign in "'\"`":
        raise point_at(text, position, f"the quote {sign} is never closed")
    if sign.isdigit():
        raise point_at(text, position, "neither a number nor a name; a name that begins with a digit needs quotes")
    raise point_at(text, position, f"unexpected {sign!r}{_MEANT.get(sign, '')}")
