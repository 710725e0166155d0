"""Suggestions for unknown type names: names from other systems, and misspellings.

Source: none; the types themselves are format.md §2.
"""

from __future__ import annotations

import datetime
import decimal
import difflib
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
