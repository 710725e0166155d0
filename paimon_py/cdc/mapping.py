"""Type mappings of the source, with Java's names. Pure.

Source: Java `TypeMapping`, `MySqlTypeUtils.toDataType`.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from paimon_py.cdc.event import SourceColumn
from paimon_py.errors import UsageError
from paimon_py.spec.cast_rules import is_text
from paimon_py.spec.types import BYTES, STRING, Atomic, Root

MODES = {
    "tinyint1-not-bool": "MySQL's TINYINT(1) is TINYINT, not BOOLEAN",
    "to-nullable": "columns are nullable whatever the source declares; always on, except for primary keys",
    "to-string": "all columns are STRING",
    "char-to-string": "CHAR(n) and VARCHAR(n) are STRING",
    "longtext-to-bytes": "MySQL's LONGTEXT is BYTES",
    "bigint-unsigned-to-bigint": "MySQL's BIGINT UNSIGNED is BIGINT; values that are larger are dead letters",
    "decimal-no-change": "decimals of tables stay as they are; values that do not fit are dead letters",
    "allow-non-string-to-string": "a column becomes STRING if it does in the source",
}
"""The modes and their meaning."""

_PRINTED = ("boolean text", "whole text", "number text", "float text", "time text", "clock text")


def check_modes(modes: Collection[str]) -> None:
    """
    Raises: UsageError for an unknown mode.
    """
    unknown = [mode for mode in modes if mode not in MODES]
    if isinstance(modes, str) or unknown:
        raise UsageError(f"types={modes!r} is not a list of modes such as {list(MODES)}")


def map_column(column: SourceColumn, modes: Collection[str]) -> SourceColumn:
    """The column after applying the modes."""
    root = column.type.root if isinstance(column.type, Atomic) else None
    if "to-string" in modes:
        return _as_text(column)
    if "tinyint1-not-bool" in modes and column.declared == "tinyint" and root is Root.BOOLEAN:
        return _with_type(column, Atomic(Root.TINYINT), "whole text")
    if "bigint-unsigned-to-bigint" in modes and column.declared == "bigint unsigned":
        return _with_type(column, Atomic(Root.BIGINT), "whole text")
    if "longtext-to-bytes" in modes and column.declared == "longtext":
        return _with_type(column, BYTES, "text bytes")
    if "char-to-string" in modes and is_text(column.type):
        return _with_type(column, STRING, column.encoding)
    return column


def _with_type(column: SourceColumn, kind: Atomic, encoding: str) -> SourceColumn:
    return msgspec.structs.replace(column, type=kind, encoding=encoding)


def _as_text(column: SourceColumn) -> SourceColumn:
    if is_text(column.type):
        return _with_type(column, STRING, column.encoding)
    if column.encoding in _PRINTED:
        return _with_type(column, STRING, "string")
    if column.encoding == "set text":
        return _with_type(column, STRING, "set as text")
    if column.encoding == "bits":
        return _with_type(column, STRING, "bit text")
    return msgspec.structs.replace(column, type=STRING, read_as=column.type)
