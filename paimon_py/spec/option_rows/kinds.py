"""The form of a row in the option tables, and the names of types in rows."""

from __future__ import annotations

INT = "int"
LONG = "long"
BOOL = "bool"
REAL = "real"
TEXT = "text"
SIZE = "size"
TIME = "time"
MAP = "map"

Row = tuple[str, str, str | None, str]
"""Name, type, default as a string (None: no default), description."""
