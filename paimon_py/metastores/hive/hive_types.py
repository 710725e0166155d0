"""Converts Paimon data types to Hive type names, as in the columns of a metastore. Pure.

Source: Java `HiveTypeUtils`, `LocalZonedTimestampTypeUtils`, release 2.0.
"""

from __future__ import annotations

from paimon_py.errors import UnsupportedError
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
