"""Columns and literals as Arrow arrays in the types in which they are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from paimon_py.expr.coerce import BINARY, INTEGER_BITS, TEXT, timestamp_units
from paimon_py.expr.literal import (
    NANOS_PER_SECOND,
    BinaryValue,
    DateValue,
    DecimalValue,
    LiteralValue,
    TimestampValue,
    TimeValue,
)
from paimon_py.expr.predicate import Ref
from paimon_py.spec.types import Atomic, Root

_UNITS = {1: "s", 1_000: "ms", 1_000_000: "us", NANOS_PER_SECOND: "ns"}
_DIGITS_OF_128_BITS = 38
_NUMPY = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}


def column_type(ref: Ref) -> Atomic:
    """The type of a bound, comparable column."""
    if not isinstance(ref.type, Atomic):
        raise ValueError(f"{ref} is not bound")
    return ref.type


def arrow_type(type_: Atomic) -> pa.DataType:
    """The Arrow type in which columns of this (ordered) type are compared."""
    root = type_.root
    if root in INTEGER_BITS:
        return _INTEGERS[INTEGER_BITS[root]]
    if root in TEXT:
        return pa.string()
    if root in BINARY:
        return pa.binary()
    if root is Root.DECIMAL:
        decimal = pa.decimal128 if (type_.precision or 10) <= _DIGITS_OF_128_BITS else pa.decimal256
        return decimal(type_.precision or 10, type_.scale or 0)
    if root in (Root.TIMESTAMP, Root.TIMESTAMP_LTZ):
        unit = _UNITS[timestamp_units(type_.precision)]
        return pa.timestamp(unit, tz="UTC" if root is Root.TIMESTAMP_LTZ else None)
    return _SIMPLE[root]


_INTEGERS = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
_SIMPLE = {
    Root.BOOLEAN: pa.bool_(),
    Root.FLOAT: pa.float32(),
    Root.DOUBLE: pa.float64(),
    Root.DATE: pa.date32(),
    Root.TIME: pa.time32("ms"),
}


def literal_array(literals: Sequence[LiteralValue], type_: Atomic) -> pa.Array:
    """Fitted literals as an Arrow array of the column's type.

    Built from buffers: `pa.array` and `pa.scalar` would import pandas.
    """
    target = arrow_type(type_)
    plain = type_.root in INTEGER_BITS or type_.root in (Root.BOOLEAN, Root.FLOAT, Root.DOUBLE)
    values: Sequence[Any] = literals if plain else [_storage(literal, type_) for literal in literals]
    if type_.root in TEXT or type_.root in BINARY:
        offsets = np.zeros(len(values) + 1, np.int32)
        np.cumsum([len(value) for value in values], out=offsets[1:])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(values))]
        return pa.Array.from_buffers(target, len(values), buffers)
    if type_.root is Root.DECIMAL:
        width = target.bit_width // 8
        data = b"".join(value.to_bytes(width, "little", signed=True) for value in values)
    elif type_.root is Root.BOOLEAN:
        data = np.packbits(np.array(values, np.bool_), bitorder="little").tobytes()
    elif type_.root in (Root.FLOAT, Root.DOUBLE):
        data = np.array(values, np.float32 if type_.root is Root.FLOAT else np.float64).tobytes()
    else:
        data = np.array(values, _NUMPY[target.bit_width]).tobytes()
    return pa.Array.from_buffers(target, len(values), [None, pa.py_buffer(data)])


def _storage(literal: LiteralValue, type_: Atomic) -> Any:
    """The stored value of the column for a fitted literal."""
    if isinstance(literal, str):
        return literal.encode("utf-8")
    if isinstance(literal, BinaryValue):
        return literal.data
    if isinstance(literal, DecimalValue):
        sign, digits, exponent = Decimal(literal.text).as_tuple()
        units = int("".join(map(str, digits))) * 10 ** (int(exponent) + (type_.scale or 0))
        return -units if sign else units
    if isinstance(literal, DateValue):
        return literal.days
    if isinstance(literal, TimeValue):
        return literal.nanos // 1_000_000
    if isinstance(literal, TimestampValue):
        units = timestamp_units(type_.precision)
        return literal.seconds * units + literal.nanos // (NANOS_PER_SECOND // units)
    return literal


def conform(array: pa.Array, type_: Atomic) -> pa.Array:
    """The array in the type of the column's literals; a lossy cast raises."""
    target = arrow_type(type_)
    return array if array.type == target else array.cast(target)


def in_plain_type(
    kind: pa.DataType, kernel: Callable[[Sequence[pa.Array]], pa.Array]
) -> Callable[[Sequence[pa.Array]], pa.Array]:
    """A kernel that picks one of its values for each row, for arrays of any ordered type.

    Arrow has no such kernel for booleans and for timestamps with a zone.
    """
    plain = pa.uint8() if pa.types.is_boolean(kind) else kind
    plain = pa.timestamp(kind.unit) if pa.types.is_timestamp(kind) else plain
    return kernel if plain.equals(kind) else lambda given: kernel([array.cast(plain) for array in given]).cast(kind)
