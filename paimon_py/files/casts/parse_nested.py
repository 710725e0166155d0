"""Casts from strings to arrays, maps and rows: splits the string; the parts are cast as columns.

Forms: `[a, b]` or `ARRAY(a, b)`, `{k -> v}` or `MAP(k, v)`, `{a, b}` or `STRUCT(a, b)`; `null` is null. Commas inside
brackets or double quotes do not split.

Source: Java `StringToArrayCastRule`, `StringToMapCastRule`, `StringToRowCastRule`, release 2.0.
"""

from __future__ import annotations

import re

from paimon_py.files.casts.parse import BLANKS

_FLAGS = re.IGNORECASE | re.ASCII
_ARRAY = re.compile(r"\s*\[(.*)\]\s*|\s*ARRAY\s*\((.*)\)\s*", _FLAGS)
_MAP_ENTRIES = re.compile(r"\s*\{(.*)\}\s*", re.ASCII)
_MAP_CALL = re.compile(r"\s*MAP\s*\((.*)\)\s*", _FLAGS)
_ROW = re.compile(r"\s*\{(.*)\}\s*|\s*STRUCT\s*\((.*)\)\s*", _FLAGS)
_ENTRY = re.compile(r"(.+?)\s*->\s*(.+)", re.ASCII)


def array_parts(text: str) -> list[str | None]:
    """The strings of the elements.

    Raises:
        ValueError: not an array.
    """
    match = _ARRAY.fullmatch(text.strip(BLANKS))
    if not match:
        raise ValueError("expected [a, b] or ARRAY(a, b)")
    return [_part(part) for part in _split((match[1] or match[2] or "").strip(BLANKS), keep_quotes=True)]


def map_parts(text: str) -> list[tuple[str | None, str | None]] | None:
    """The strings of keys and values, each key once (the last value wins); None for `NULL`.

    Raises:
        ValueError: not a map.
    """
    trimmed = text.strip(BLANKS)
    if trimmed.upper() == "NULL":
        return None
    if match := _MAP_ENTRIES.fullmatch(trimmed):
        entries = [_ENTRY.fullmatch(part) for part in _split(match[1].strip(BLANKS), keep_quotes=False)]
        if None in entries:
            raise ValueError("expected key -> value")
        return list({_part(entry[1]): _part(entry[2]) for entry in entries if entry}.items())
    if match := _MAP_CALL.fullmatch(trimmed):
        parts = [_part(part) for part in _split(match[1].strip(BLANKS), keep_quotes=False)]
        if len(parts) % 2:
            raise ValueError("expected an even number of keys and values")
        return list(dict(zip(parts[::2], parts[1::2], strict=True)).items())
    raise ValueError("expected {k -> v} or MAP(k, v)")


def row_parts(text: str, width: int) -> list[str | None]:
    """The strings of the fields, all null for an empty row.

    Raises:
        ValueError: not a row of `width` fields.
    """
    match = _ROW.fullmatch(text.strip(BLANKS))
    if not match:
        raise ValueError("expected {a, b} or STRUCT(a, b)")
    content = (match[1] or match[2] or "").strip(BLANKS)
    if not content:
        return [None] * width
    parts = [_part(part) for part in _split(content, keep_quotes=True)]
    if len(parts) != width:
        raise ValueError(f"expected {width} fields, got {len(parts)}")
    return parts


def _part(text: str) -> str | None:
    trimmed = text.strip(BLANKS)
    return None if trimmed == "null" else trimmed


def _split(content: str, *, keep_quotes: bool) -> list[str]:
    """Split at commas outside brackets and quotes; empty parts are dropped. `keep_quotes` keeps `"` and `\\` in the
    parts."""
    parts: list[str] = []
    current: list[str] = []
    depth, quoted, escaped = 0, False, False
    for char in content:
        mark = False
        if escaped:
            escaped, mark = False, not keep_quotes
        elif char == "\\":
            escaped = mark = True
        elif char == '"':
            quoted, mark = not quoted, True
        elif not quoted:
            if char in "[{(":
                depth += 1
            elif char in "]})":
                depth = max(depth - 1, 0)
            elif char == "," and depth == 0:
                parts.append("".join(current))
                current = []
                continue
        if keep_quotes or not mark:
            current.append(char)
    parts.append("".join(current))
    return [part for part in parts if part]
