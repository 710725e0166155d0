"""Detects string values that look like a column or an expression. Pure.

Source: none; Java takes values as SQL, where strings are quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

SIDES = {"source": "source", "src": "source", "s": "source", "target": "target", "tgt": "target", "t": "target"}
"""The prefix of a reference, in any case, and the side that it stands for."""

_NAME = r'(?:[^\W\d][\w$]*|`[^`]+`|"[^"]+")'
_PATH = rf"{_NAME}(?:\.{_NAME})*"
_PATHS = re.compile(_PATH)
_NAMES = re.compile(_NAME)
_TOKEN = re.compile(
    rf"""\s*(?:
      (?P<call>     {_PATH}\( )
    | (?P<column>   {_PATH} )
    | (?P<literal>  (?:\d+(?:\.\d*)?|\.\d+)(?!\w) | '[^']*' )
    | (?P<sign>     [-+] )
    | (?P<operator> [*/%<>=!|&]+ )
    | (?P<open>     \( )
    | (?P<close>    \) )
    | (?P<comma>    , )
    )\s*""",
    re.VERBOSE,
)
_CALL = re.compile(rf"{_PATH}\(")
_SIDE = re.compile(rf"\b({'|'.join(SIDES)})\.(?=[^\W\d]|[`\"])", re.IGNORECASE)
_PARENTHESES = re.compile(r"[()]")
_BEGIN = frozenset(("call", "column", "literal", "open", "sign"))
_GO_ON = frozenset(("sign", "operator", "comma", "close"))
_NEXT = {
    **dict.fromkeys(("open", "sign", "operator", "comma"), _BEGIN),
    **dict.fromkeys(("column", "literal", "close"), _GO_ON),
    "call": _BEGIN | {"close"},
}
"""The tokens of an expression that may follow each token."""


def column_meant(text: str, columns: Iterable[str]) -> tuple[str, ...] | None:
    """The path of a column that a string refers to, if the whole string looks like a reference or an expression.

    A *reference* is a name after `source.` or `target.`, in any case, or after `src.`, `tgt.`, `s.` or `t.` if it is
    one of `columns`. A string looks like an expression if it consists of names, literals, operators and calls and
    contains a reference, or a column inside a call or next to `||`; or if it is one call and contains a reference; or
    if it is a CASE … END or a CAST(… AS …) that contains a reference or a column.

    Cost: linear in the length of the string.
    Returns: the path, after "source" or "target" if the string names a side; None for any other string.
    """
    text = text.strip()
    found = _inside_of_case(text)
    if not found and not any(sign in text for sign in (".", "(", "||")):
        return None
    known = {name.casefold(): name for name in columns}
    found = found or _operands(text) or _inside_of_call(text)
    references = (_reference(path, known) for path, _ in found)
    meant = next((path for path in references if path is not None), None)
    is_joined = "||" in text
    names = (path.casefold() for path, in_call in found if in_call or is_joined)
    return meant or next(((known[name],) for name in names if name in known), None)


def correct(text: str, *, sided: bool) -> str:
    """An expression with the correct names of both sides, or with none."""

    def right(found: re.Match[str]) -> str:
        return f"{SIDES[found[1].casefold()]}." if sided else ""

    return _SIDE.sub(right, text.strip())


def is_path(text: str) -> bool:
    """Whether a string consists only of names separated by dots."""
    return _PATHS.fullmatch(text) is not None


def _reference(path: str, known: Mapping[str, str]) -> tuple[str, ...] | None:
    head, *rest = (name.strip('`"') for name in _NAMES.findall(path))
    side = SIDES.get(head.casefold())
    if side is None or not rest or (head.casefold() != side and rest[0].casefold() not in known):
        return None
    return side, known.get(rest[0].casefold(), rest[0]), *rest[1:]


def _operands(text: str) -> list[tuple[str, bool]]:
    """The columns of an expression and whether each is inside a call; empty if the string is not an expression."""
    found: list[tuple[str, bool]] = []
    calls: list[bool] = []
    depth_of_calls, position, before = 0, 0, "operator"
    while position < len(text):
        token = _TOKEN.match(text, position)
        kind = "" if token is None else token.lastgroup or ""
        if token is None or kind not in _NEXT[before] or (kind in ("close", "comma") and not calls):
            return []
        if kind == "column":
            found.append((token[kind], depth_of_calls > 0))
        elif kind in ("call", "open"):
            calls.append(kind == "call")
            depth_of_calls += calls[-1]
        elif kind == "close":
            depth_of_calls -= calls.pop()
        position, before = token.end(), kind
    return found if not calls and before in ("column", "literal", "close") else []


def _inside_of_call(text: str) -> list[tuple[str, bool]]:
    """All possible columns in a string that is one call, whatever else it contains."""
    start = _CALL.match(text)
    if start is None or not text.endswith(")"):
        return []
    inside = text[start.end() : -1]
    depth = 1
    for sign in _PARENTHESES.findall(inside):
        depth += 1 if sign == "(" else -1
        if depth == 0:
            return []
    is_cast = text[: start.end() - 1].casefold() in ("cast", "try_cast") and " as " in inside.casefold()
    return [(path, is_cast) for path in _PATHS.findall(inside)] if depth == 1 else []


def _inside_of_case(text: str) -> list[tuple[str, bool]]:
    """All possible columns in a string that is one CASE … END."""
    words = text.casefold().split()
    is_case = words[:1] == ["case"] and words[-1] == "end" and "when" in words and "then" in words
    return [(path, True) for path in _PATHS.findall(text)] if is_case else []
