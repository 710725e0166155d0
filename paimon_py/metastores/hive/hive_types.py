"""Converts Paimon data types to Hive type names, as in the columns of a metastore, and back. Pure.

Source: Java `HiveTypeUtils`, `LocalZonedTimestampTypeUtils`, release 2.0.
"""

from __future__ import annotations

from paimon_py.errors import CorruptionError, UnsupportedError
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import ArrayType, Atomic, DataType, MapType, MultisetType, Root, RowType, VectorType

_LONGEST_CHAR = 255
_LONGEST_VARCHAR = 65535

_NAMES = {
    Root.BOOLEAN: "boolean",
    Root.TINYINT: "tinyint",
    Root.SMALLINT: "smallint",
    Root.INT: "int",
    Root.BIGINT: "bigint",
    Root.FLOAT: "float",
    Root.DOUBLE: "double",
    Root.BINARY: "binary",
    Root.VARBINARY: "binary",
    Root.BLOB: "binary",
    Root.DATE: "date",
    Root.TIME: "string",
    Root.TIMESTAMP: "timestamp",
    Root.TIMESTAMP_LTZ: "timestamp with local time zone",
    Root.VARIANT: "struct<value:binary,metadata:binary>",
}


def hive_type(kind: DataType) -> str:
    """The name of a type in Hive.

    Raises: UnsupportedError for a type that Java's catalog does not support either.
    """
    if isinstance(kind, RowType):
        return f"struct<{','.join(f'{field.name}:{hive_type(field.type)}' for field in kind.fields)}>"
    if isinstance(kind, MapType):
        return f"map<{hive_type(kind.key)},{hive_type(kind.value)}>"
    if isinstance(kind, MultisetType):
        return f"map<{hive_type(kind.element)},int>"
    if isinstance(kind, (ArrayType, VectorType)):
        return f"array<{hive_type(kind.element)}>"
    return _atomic(kind)


def _atomic(kind: Atomic) -> str:
    if kind.root is Root.DECIMAL:
        return f"decimal({kind.precision},{kind.scale})"
    if kind.root is Root.CHAR and kind.length is not None:
        return f"char({kind.length})" if kind.length <= _LONGEST_CHAR else "string"
    if kind.root is Root.VARCHAR and kind.length is not None:
        return f"varchar({kind.length})" if kind.length <= _LONGEST_VARCHAR else "string"
    name = _NAMES.get(kind.root)
    if name is None:
        raise UnsupportedError(
            f"a Hive Metastore has no type for {kind.root.value}, nor has Java's catalog: keep such a table in another"
            " catalog",
            feature=f"{kind.root.value} in a Hive Metastore",
        )
    return name


_OF_HIVE = {
    **{name: name.upper() for name in ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "date")},
    "string": "STRING", "binary": "BYTES", "timestamp": "TIMESTAMP(6)", "decimal": "DECIMAL(10, 0)",
    "timestamp with local time zone": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
}  # fmt: skip
_WITH_NUMBERS = ("decimal(", "char(", "varchar(")


def paimon_type(name: str) -> DataType:
    """The Paimon type of a Hive type name, as Java's catalog reads it.

    Raises: CorruptionError if it is not a Hive type; UnsupportedError for a type that Java's catalog does not support.
    """
    return parse_type(_text_of(name.strip()))


def _text_of(name: str) -> str:
    kind, mark, inner = name.partition("<")
    if mark and inner.endswith(">"):
        parts = [part.strip() for part in _split(inner[:-1])]
        match kind.strip().lower(), len(parts):
            case "struct", _:
                pairs = [part.partition(":") for part in parts]
                return f"ROW<{', '.join(f'{_quote(key)} {_text_of(value.strip())}' for key, _, value in pairs)}>"
            case "array", 1:
                return f"ARRAY<{_text_of(parts[0])}>"
            case "map", 2:
                return f"MAP<{_text_of(parts[0])}, {_text_of(parts[1])}>"
    lower = name.lower()
    if lower in _OF_HIVE:
        return _OF_HIVE[lower]
    if lower.startswith(_WITH_NUMBERS):
        return name.upper()
    if not name or mark:
        raise CorruptionError(f"the metastore has a column of the type {name!r}, which is not one of Hive")
    feature = f"Hive type {name}"
    raise UnsupportedError(f"columns of the {feature} are not supported, nor in Java", feature=feature)


def _split(text: str) -> list[str]:
    """The parts between commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and not depth:
            parts.append(text[start:place])
            start = place + 1
    return [*parts, text[start:]]


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
