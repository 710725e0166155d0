"""Converts a Spark schema, in its JSON form, to columns; does not need Spark. Pure.

Source: Spark `DataType.json`; Java `SparkTypeUtils.toPaimonType`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from paimon_py.errors import SchemaError
from paimon_py.spec.type_text import with_nullability
from paimon_py.spec.types import BYTES, STRING, ArrayType, Atomic, DataType, Field, MapType, Root, RowType

_NAMED: Mapping[str, DataType] = {
    "string": STRING, "binary": BYTES, "boolean": Atomic(Root.BOOLEAN), "byte": Atomic(Root.TINYINT),
    "short": Atomic(Root.SMALLINT), "integer": Atomic(Root.INT), "long": Atomic(Root.BIGINT),
    "float": Atomic(Root.FLOAT), "double": Atomic(Root.DOUBLE), "date": Atomic(Root.DATE),
    "timestamp": Atomic(Root.TIMESTAMP_LTZ, precision=6), "timestamp_ntz": Atomic(Root.TIMESTAMP, precision=6),
}  # fmt: skip
_SIZED = re.compile(r"(char|varchar|decimal|time)\((\d+)(?:, ?(-?\d+))?\)")
_CHARS = "__CHAR_VARCHAR_TYPE_STRING"
"""The metadata key for the type of CHAR and VARCHAR columns, which Spark exposes as strings."""

Column = tuple[str, DataType, "str | None"]


def columns_of_spark(schema: Mapping[str, object]) -> list[Column]:
    """The name, type and comment of every column. All are nullable, as in tables that Spark creates from a query.

    Args:
        schema: `StructType.jsonValue()`.

    Raises: SchemaError; the message names every column whose type Paimon lacks.
    """
    columns: list[Column] = []
    problems: dict[str, str] = {}
    for name, kind, about in _fields(schema):
        chars, comment = about.get(_CHARS), about.get("comment")
        try:
            columns.append((name, _type(chars or kind), comment if isinstance(comment, str) else None))
        except SchemaError as error:
            problems[name] = f"column {name!r}: {error}"
    if problems:
        text = "".join(f"\n  {problem}" for problem in problems.values())
        raise SchemaError(f"columns with types that no table can have:{text}", fields=tuple(problems))
    return columns


def _fields(struct: Mapping[str, object]) -> list[tuple[str, object, Mapping[str, object]]]:
    fields = struct["fields"]
    assert isinstance(fields, list)
    return [(str(field["name"]), field["type"], field.get("metadata") or {}) for field in fields]


def _type(kind: object) -> DataType:
    if isinstance(kind, Mapping):
        return _nested_type(kind)
    text = str(kind)
    if text in _NAMED:
        return _NAMED[text]
    sized = _SIZED.fullmatch(text)
    if sized is not None:
        size, scale = int(sized[2]), int(sized[3] or 0)
        if sized[1] == "decimal" and scale >= 0:
            return Atomic(Root.DECIMAL, precision=size, scale=scale)
        if sized[1] == "time":
            return Atomic(Root.TIME, precision=min(size, 3))
        if sized[1] != "decimal":
            return Atomic(Root.CHAR if sized[1] == "char" else Root.VARCHAR, length=size)
    if text == "void":
        raise SchemaError("void has no values: cast the column to another type, as in cast(c as int)")
    raise SchemaError(f"Spark's {text} has no corresponding type")


def _nested_type(kind: Mapping[str, object]) -> DataType:
    name = kind.get("type")
    if name == "array":
        return ArrayType(_type(kind["elementType"]))
    if name == "map":
        return MapType(with_nullability(_type(kind["keyType"]), False), _type(kind["valueType"]))
    if name == "struct":
        return RowType(tuple(Field(at, each, _type(inner)) for at, (each, inner, _) in enumerate(_fields(kind))))
    raise SchemaError(f"Spark's {name} has no corresponding type")
