"""Time travel in SQL text: `t FOR VERSION AS OF 3` becomes a table name that contains the state.

DuckDB has no such clause, so the state is encoded in the table's name until the names are resolved.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from paimon_py.errors import UsageError

VERSION, TIMESTAMP = "VERSION", "TIMESTAMP"
_UNITS = {"version": VERSION, "system_version": VERSION, "timestamp": TIMESTAMP, "system_time": TIMESTAMP}
_MARK = "\x1f"
_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
      | (?P<text>(?:\b[eE])?'(?:[^']|'')*'|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)
      | (?P<quoted>"(?:[^"]|"")*")
      | (?P<word>[^\W\d][\w$]*)
      | (?P<number>\d+)
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)


class NamedState(msgspec.Struct, frozen=True):
    """A state of a table: `VERSION` with the id of a snapshot or the name of a tag, or `TIMESTAMP` with a time.

    Attributes:
        unit: `VERSION` or `TIMESTAMP`.
        value: the value in the query.
        is_number: whether the value is a number and not a string.
    """

    unit: str
    value: str
    is_number: bool = False


def mark_name(name: str, state: NamedState) -> str:
    """A table name with an encoded state."""
    return _MARK.join((name, state.unit, "1" if state.is_number else "", state.value))


def split_name(name: str) -> tuple[str, NamedState | None]:
    """The plain name of a table, and the state encoded in it."""
    table, mark, rest = name.partition(_MARK)
    if not mark:
        return table, None
    unit, is_number, value = rest.split(_MARK, 2)
    return table, NamedState(unit, value, is_number == "1")


def with_states_in_names(query: str) -> str:
    """The query with each `t FOR VERSION AS OF …` and `t FOR TIMESTAMP AS OF …` encoded in the name of its table.

    `FOR` is optional, as in Spark; an alias follows the clause.

    Raises: UsageError for a state that is neither a number nor a string.
    """
    if _MARK in query:
        raise UsageError("a query must not contain control characters")
    tokens = [(match.lastgroup if match.lastgroup != "tag" else "text", match[0]) for match in _TOKEN.finditer(query)]
    parts: list[str] = []
    at, named = 0, -1  # `named`: the token of the last name
    while at < len(tokens):
        kind, text = tokens[at]
        clause = _clause(tokens, at) if kind == "word" and named >= 0 else None
        if clause is not None:
            state, at = clause
            parts[named:] = ['"' + mark_name(_name(parts[named]), state).replace('"', '""') + '"']
            named = -1
            continue
        if kind != "space":
            named = len(parts) if kind in ("word", "quoted") else -1
        parts.append(text)
        at += 1
    return "".join(parts)


def _clause(tokens: Sequence[tuple[str | None, str]], start: int) -> tuple[NamedState, int] | None:
    """The state in a clause that begins at a token, and the position after it; None if no clause begins there."""
    seen = [at for at in range(start, min(start + 24, len(tokens))) if tokens[at][0] != "space"]
    words = [tokens[at][1].lower() for at in seen[:4]]
    skipped = 1 if words[:1] == ["for"] else 0
    if words[skipped + 1 : skipped + 3] != ["as", "of"] or words[skipped] not in _UNITS:
        return None
    unit = _UNITS[words[skipped]]
    rest = seen[skipped + 3 :]
    if rest and unit == TIMESTAMP and tokens[rest[0]][1].lower() == "timestamp":
        rest = rest[1:]  # TIMESTAMP '2024-01-31'
    kind, text = tokens[rest[0]] if rest else (None, "the end of the query")
    if kind == "number":
        return NamedState(unit, text, is_number=True), rest[0] + 1
    if kind == "text" and text[0] == "'":
        return NamedState(unit, text[1:-1].replace("''", "'")), rest[0] + 1
    if skipped:
        what = "the id of a snapshot or a tag in quotes" if unit == VERSION else "a time in quotes"
        raise UsageError(f"{unit} AS OF takes {what}, not {text}")
    return None


def _name(text: str) -> str:
    return text[1:-1].replace('""', '"') if text[0] == '"' else text
