"""The rows of a block of the format `row`, value by value.

Source: format.md §28.4; Java `RowFormat`, release 2.0.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from paimon_py.errors import UnsupportedError
from paimon_py.formats.from_python import steps_array
from paimon_py.formats.reshape import as_leaf, map_parts
from paimon_py.spec.types import ArrayType, Atomic, DataType, Field, MapType, MultisetType, Root, RowType, VectorType

Read = Callable[["Cursor"], Any]

_MILLIS_DIGITS = 3
_LONG_DIGITS = 18
_FIXED = {
    Root.TINYINT: struct.Struct("<b"), Root.SMALLINT: struct.Struct("<h"), Root.INT: struct.Struct("<i"),
    Root.DATE: struct.Struct("<i"), Root.TIME: struct.Struct("<i"), Root.BIGINT: struct.Struct("<q"),
    Root.FLOAT: struct.Struct("<f"), Root.DOUBLE: struct.Struct("<d"), Root.BOOLEAN: struct.Struct("<?"),
}
_LONG = struct.Struct("<q")
_TEXTS = (Root.CHAR, Root.VARCHAR)
_BYTES = (Root.BINARY, Root.VARBINARY)
_NANOS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


class Cursor:
    """A position in the bytes of a block."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        """The next bytes. Raises: ValueError where the block ends before."""
        begin, self.at = self.at, self.at + count
        if self.at > len(self.data):
            raise ValueError("a value continues after the end of its block")
        return self.data[begin : self.at]

    def size(self) -> int:
        """The next number of variable length. Raises: ValueError for one beyond 64 bits."""
        found = shift = 0
        while shift < 64:
            byte = self.take(1)[0]
            found |= (byte & 127) << shift
            if byte < 128:
                return found
            shift += 7
        raise ValueError("a number has too many bytes")


def row_reader(fields: Sequence[Field]) -> Callable[[Cursor], list[Any]]:
    """Reads one row: a value for each field, None for NULL.

    Raises: UnsupportedError for types that Java has no reader of here.
    """
    readers = [value_reader(field.type) for field in fields]
    width = (len(readers) + 7) // 8

    def read(cursor: Cursor) -> list[Any]:
        nulls = int.from_bytes(cursor.take(width), "little")
        return [None if nulls >> place & 1 else each(cursor) for place, each in enumerate(readers)]

    return read


def value_reader(kind: DataType) -> Read:
    """Reads one value that is not NULL."""
    if isinstance(kind, Atomic):
        return _atomic(kind)
    if isinstance(kind, RowType):
        return row_reader(kind.fields)
    if isinstance(kind, (ArrayType, VectorType)):
        return _list_reader(kind.element)
    if isinstance(kind, (MapType, MultisetType)):
        keys, values = map(_list_reader, map_parts(kind))

        def pairs(cursor: Cursor) -> list[tuple[Any, Any]]:
            return list(zip(keys(cursor), values(cursor), strict=True))

        return pairs
    feature = "file.format=row of this type"
    raise UnsupportedError(f"files of the format row with {kind} cannot be read", feature=feature)


def _list_reader(element: DataType) -> Read:
    read = value_reader(element)

    def items(cursor: Cursor) -> list[Any]:
        count = cursor.size()
        if count > 8 * len(cursor.data):
            raise ValueError(f"a list of {count} elements in a block of {len(cursor.data)} bytes")
        nulls = int.from_bytes(cursor.take((count + 7) // 8), "little")
        return [None if nulls >> place & 1 else read(cursor) for place in range(count)]

    return items


def _atomic(kind: Atomic) -> Read:
    fixed = _FIXED.get(kind.root)
    if fixed is not None:
        return lambda cursor: fixed.unpack(cursor.take(fixed.size))[0]
    if kind.root in (*_TEXTS, *_BYTES):
        return lambda cursor: cursor.take(cursor.size())
    if kind.root is Root.DECIMAL:
        return _decimal_reader(kind)
    if kind.root in (Root.TIMESTAMP, Root.TIMESTAMP_LTZ):
        if (kind.precision or 0) <= _MILLIS_DIGITS:
            return lambda cursor: 10**6 * _LONG.unpack(cursor.take(8))[0]
        return lambda cursor: 10**6 * _LONG.unpack(cursor.take(8))[0] + cursor.size()
    feature = f"file.format=row of {kind.root.value}"
    raise UnsupportedError(f"files of the format row with {kind.root.value} cannot be read", feature=feature)


def _decimal_reader(kind: Atomic) -> Read:
    assert kind.precision is not None and kind.scale is not None
    is_long, scale = kind.precision <= _LONG_DIGITS, kind.scale

    def read(cursor: Cursor) -> Decimal:
        if is_long:
            unscaled: int = _LONG.unpack(cursor.take(8))[0]
        else:
            unscaled = int.from_bytes(cursor.take(cursor.size()), "big", signed=True)
        digits = tuple(map(int, str(abs(unscaled))))
        return Decimal((int(unscaled < 0), digits, -scale))

    return read


def leaf_array(values: Sequence[Any], kind: Atomic, target: pa.DataType) -> pa.Array:
    """Values of `value_reader` as Arrow has them.

    Raises: ValueError, pa.ArrowInvalid, OverflowError for bytes that are not text, and times that the type cannot hold.
    """
    if kind.root is Root.DATE:
        return steps_array(values, target, np.int32)
    if kind.root is Root.TIME:
        return as_leaf(steps_array(values, pa.time32("ms"), np.int32), target)
    if kind.root in (Root.TIMESTAMP, Root.TIMESTAMP_LTZ):
        unit = _NANOS[target.unit]
        return steps_array([None if value is None else value // unit for value in values], target, np.int64)
    if kind.root in _TEXTS:
        return pa.array([None if value is None else value.decode("utf-8") for value in values], target)
    return pa.array(values, target)
