"""Parses LIKE patterns.

Source: SQL's LIKE with a backslash as the escape; a backslash before any character makes it literal, a trailing one
is literal.
"""

from __future__ import annotations

from typing import Union

import msgspec

from paimon_py.errors import UsageError

MAX_PATTERN = 4_096

ANY_TEXT = "%"
ANY_CHARACTER = "_"


class Plain(msgspec.Struct, frozen=True):
    """Text that must occur literally."""

    text: str


class Wildcard(msgspec.Struct, frozen=True):
    """`%` or `_`."""

    sign: str


Piece = Union[Plain, Wildcard]


def pieces(pattern: str) -> tuple[Piece, ...]:
    """The pattern as plain strings and wildcards in order; consecutive `%` become one.

    Raises: UsageError if the pattern is longer than 4,096 characters.
    """
    if len(pattern) > MAX_PATTERN:
        raise UsageError(f"a LIKE pattern may have {MAX_PATTERN} characters, not {len(pattern)}")
    found: list[Piece] = []
    plain: list[str] = []
    position = 0
    while position < len(pattern):
        sign = pattern[position]
        if sign == "\\" and position + 1 < len(pattern):
            position += 1
            plain.append(pattern[position])
        elif sign in (ANY_TEXT, ANY_CHARACTER):
            if plain:
                found.append(Plain("".join(plain)))
                plain.clear()
            if sign == ANY_CHARACTER or not found or found[-1] != Wildcard(ANY_TEXT):
                found.append(Wildcard(sign))
        else:
            plain.append(sign)
        position += 1
    if plain:
        found.append(Plain("".join(plain)))
    return tuple(found)


def prefix(pattern: str) -> str:
    """The plain string with which every match begins."""
    first = pieces(pattern)[:1]
    return first[0].text if first and isinstance(first[0], Plain) else ""


def regex(pattern: str, *, ignore_case: bool = False) -> str:
    """The pattern for RE2: matches the whole string, including newlines, case-sensitive unless `ignore_case`.

    `%` matches any bytes, also those that are not UTF-8; `_` matches a character.
    """
    body = [
        _escape(piece.text) if isinstance(piece, Plain) else ("\\C*" if piece.sign == ANY_TEXT else ".")
        for piece in pieces(pattern)
    ]
    return ("(?is)" if ignore_case else "(?s)") + "\\A" + "".join(body) + "\\z"


def _escape(text: str) -> str:
    return "".join(sign if ord(sign) > 127 or sign.isalnum() else f"\\x{{{ord(sign):x}}}" for sign in text)
