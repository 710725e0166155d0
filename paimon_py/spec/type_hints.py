"""Suggestions for unknown type names: names from other systems, and misspellings.

Source: none; the types themselves are format.md §2.
"""

from __future__ import annotations

import datetime
import decimal
import difflib
import re
from collections.abc import Iterable

_ELSEWHERE = {
    "TEXT": "STRING", "STR": "STRING", "UTF8": "STRING", "LARGE_STRING": "STRING", "NVARCHAR": "STRING",
    "CLOB": "STRING", "UUID": "STRING", "JSON": "STRING", "ENUM": "STRING", "CHARACTER": "CHAR", "LONG": "BIGINT",
    "INT64": "BIGINT", "UINT32": "BIGINT", "INT8": "TINYINT", "BYTE": "TINYINT", "INT16": "SMALLINT",
    "SHORT": "SMALLINT", "UINT8": "SMALLINT", "INT32": "INT", "UINT16": "INT", "MEDIUMINT": "INT",
    "UINT64": "DECIMAL(20, 0)", "NUMBER": "DECIMAL(38, 10)", "DECIMAL128": "DECIMAL(38, 10)", "BOOL": "BOOLEAN",
    "FLOAT4": "FLOAT", "FLOAT32": "FLOAT", "REAL": "FLOAT", "FLOAT8": "DOUBLE", "FLOAT64": "DOUBLE",
    "HALFFLOAT": "FLOAT", "DATE32": "DATE", "DATETIME": "TIMESTAMP(6)", "TIMESTAMP_NTZ": "TIMESTAMP(6)",
    "TIMESTAMPTZ": "TIMESTAMP(6) WITH LOCAL TIME ZONE", "LARGE_BINARY": "BYTES", "BYTEA": "BYTES",
    "STRUCT": "ROW<a INT, b STRING>", "RECORD": "ROW<a INT, b STRING>", "LIST": "ARRAY<INT>",
    "DICT": "MAP<STRING, INT>",
}  # fmt: skip
_PYTHON = {
    bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", str: "STRING", bytes: "BYTES", datetime.date: "DATE",
    datetime.datetime: "TIMESTAMP(6)", datetime.time: "TIME(3)", decimal.Decimal: "DECIMAL(38, 10)", list: "ARRAY<INT>",
    dict: "MAP<STRING, INT>",
}  # fmt: skip
_WITH_NUMBERS = {"DECIMAL128": "DECIMAL", "NUMBER": "DECIMAL", "VARCHAR2": "VARCHAR", "NVARCHAR": "VARCHAR"}
_WITH_TYPES = {"STRUCT": "ROW", "RECORD": "ROW", "LIST": "ARRAY", "DICT": "MAP"}
_OF_ARROW = re.compile(r"timestamp\[(s|ms|us|ns)(,\s*tz=[^\]]*)?\]", re.IGNORECASE)
_ZONED = re.compile(r"\btimestamp(\s*\(\d+\))?\s+with\s+time\s+zone\b", re.IGNORECASE)
_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_TYPE_NAME = re.compile(r"(?<![\w`])([A-Za-z]\w*)\b(?!\s*:)(?!\s+(?!NOT\b|NULL\b)[\w`])(\s*[(<])?", re.IGNORECASE)


def meant_text(text: str) -> str:
    """A text with the names of types of other systems replaced: `struct<a:int>` is `ROW<a int>`. It may be no type."""
    found = _OF_ARROW.sub(_timestamp_of_arrow, text)
    found = _ZONED.sub(r"TIMESTAMP\1 WITH LOCAL TIME ZONE", found)
    return re.sub(r"\s*:\s*", " ", _TYPE_NAME.sub(_our_name, found))


def _timestamp_of_arrow(match: re.Match[str]) -> str:
    return f"TIMESTAMP({_DIGITS[match[1].lower()]}){' WITH LOCAL TIME ZONE' if match[2] else ''}"


def _our_name(match: re.Match[str]) -> str:
    name, opened = match[1].upper(), match[2] or ""
    if opened:
        return (_WITH_NUMBERS if "(" in opened else _WITH_TYPES).get(name, match[1]) + opened
    return _ELSEWHERE.get(name, match[1])


def meant_type(name: str, known: Iterable[str]) -> str:
    """The suggestion at the end of a message: `; did you mean 'BIGINT'?`, or empty. `known`: all names."""
    found = _ELSEWHERE.get(name.upper())
    if found is None:
        found = next(iter(difflib.get_close_matches(name.upper(), [*known, *_ELSEWHERE], 1, 0.7)), None)
        found = _ELSEWHERE.get(found or "", found)
    return "" if found is None else f"; did you mean {found!r}?"


def meant_class(value: object) -> str:
    """The same for a Python class that is passed as a type."""
    found = _PYTHON.get(value) if isinstance(value, type) else None
    return "" if found is None else f"; did you mean {found!r}?"
