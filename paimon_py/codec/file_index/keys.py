"""Column values as index keys: 64-bit numbers in the order of the values, or byte strings.

Floats become numbers that sort like Java's `compare` (−0.0 before 0.0, NaN last). Timestamps become milliseconds up to
precision 3 and microseconds above, so that one key stands for several values with nanoseconds.

Source: format.md §11; Java `BitmapTypeVisitor`, `KeyFactory`, `BitSliceIndexBitmapFileIndex.getValueMapper`.
"""

from __future__ import annotations

from decimal import MAX_PREC, Context, Decimal
from typing import Union

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import Bytes, Ints, Mask, numpy_values
from paimon_py.expr.literal import (
    NANOS_PER_SECOND,
    BinaryValue,
    DateValue,
    DecimalValue,
    LiteralValue,
    TimestampValue,
    TimeValue,
)
from paimon_py.spec.types import Atomic, Root

Key = Union[int, bytes]

_WIDTHS = {
    Root.BOOLEAN: 1, Root.TINYINT: 1, Root.SMALLINT: 2, Root.INT: 4, Root.DATE: 4, Root.TIME: 4, Root.FLOAT: 4,
    Root.BIGINT: 8, Root.DOUBLE: 8, Root.TIMESTAMP: 8, Root.TIMESTAMP_LTZ: 8, Root.DECIMAL: 8,
}  # fmt: skip
_FLOATS = (Root.FLOAT, Root.DOUBLE)
_STRINGS = (Root.CHAR, Root.VARCHAR, Root.BINARY, Root.VARBINARY)
_TIMESTAMPS = (Root.TIMESTAMP, Root.TIMESTAMP_LTZ)
_NANS = {4: (np.int64(0x7F800000), np.int64(0x7FC00000)), 8: (np.int64(0x7FF0 << 48), np.int64(0x7FF8 << 48))}
_EXACT = Context(prec=MAX_PREC)


class KeyKind(msgspec.Struct, frozen=True):
    """The conversion of values of a type to keys.

    Attributes:
        width: size of a stored number in bytes; 0 for byte strings, which are stored after a length of four bytes.
        is_exact: whether a key stands for one value only.
    """

    type: Atomic
    width: int
    is_exact: bool

    @classmethod
    def of(cls, type_: Atomic) -> KeyKind:
        """The key kind of a type that some index supports."""
        exact = type_.root not in _TIMESTAMPS or _precision(type_) <= 6
        return cls(type_, 0 if type_.root in _STRINGS else _WIDTHS[type_.root], exact)

    @property
    def is_text(self) -> bool:
        """Whether keys are byte strings."""
        return not self.width

    def key(self, literal: LiteralValue) -> Key:
        """The key of a literal that is valid for the type."""
        if isinstance(literal, str):
            return literal.encode()
        if isinstance(literal, BinaryValue):
            return literal.data
        if self.type.root in _FLOATS:
            assert isinstance(literal, (int, float))
            values = np.array([literal], np.float32 if self.width == 4 else np.float64)
            return int(_to_ordered(values.view(f"<i{self.width}").astype(np.int64), self.width)[0])
        if isinstance(literal, DecimalValue):
            return int(Decimal(literal.text).scaleb(self.type.scale or 0, context=_EXACT))
        if isinstance(literal, DateValue):
            return literal.days
        if isinstance(literal, TimeValue):
            return literal.nanos // 1_000_000
        if isinstance(literal, TimestampValue):
            nanos = literal.seconds * NANOS_PER_SECOND + literal.nanos
            return nanos // (1_000_000 if _precision(self.type) <= 3 else 1_000)
        return int(literal)

    def numbers(self, column: pa.Array) -> Ints:
        """The keys of a numeric column; keys of null slots are arbitrary."""
        values = numpy_values(column)
        root = self.type.root
        if root in _FLOATS:
            return _to_ordered(values.view(f"<i{self.width}").astype(np.int64), self.width)
        if root is Root.DECIMAL:
            low: Ints = values[:, 0].view(np.int64)
            return low
        numbers: Ints = values.astype(np.int64)
        if root in _TIMESTAMPS and _precision(self.type) == 0:
            numbers *= 1_000
        elif root in _TIMESTAMPS and _precision(self.type) > 6:
            numbers //= 1_000
        return numbers

    def fits(self, column: pa.Array) -> Mask:
        """A mask of values that equal their keys; false for decimals wider than 64 bits."""
        if self.type.root is not Root.DECIMAL:
            return np.ones(len(column), np.bool_)
        words = numpy_values(column).view(np.int64)
        found: Mask = words[:, 1] == words[:, 0] >> 63
        return found

    def bits(self, numbers: Ints) -> Ints:
        """Keys as the numbers that are stored: the bits of floats."""
        return _from_ordered(numbers, self.width) if self.type.root in _FLOATS else numbers

    def store(self, numbers: Ints) -> Bytes:
        """Keys as bytes, one row of `width` each."""
        data = self.bits(numbers).astype(f">i{self.width}")
        return data.view(np.uint8).reshape(len(numbers), self.width)

    def load(self, data: bytes | Bytes) -> Ints:
        """The inverse of `store`, from the concatenated bytes of all keys."""
        raw: Ints = np.frombuffer(data, f">i{self.width}").astype(np.int64)
        if self.type.root is Root.BOOLEAN:
            raw = np.minimum(np.abs(raw), 1)
        return _to_ordered(raw, self.width) if self.type.root in _FLOATS else raw


def _precision(type_: Atomic) -> int:
    return 6 if type_.precision is None else type_.precision


def _to_ordered(bits: Ints, width: int) -> Ints:
    """Sign-extended float bits as numbers in Java's order; all NaNs have one key."""
    infinity, nan = _NANS[width]
    magnitude = bits & np.int64((1 << (8 * width - 1)) - 1)
    bits = np.where(magnitude > infinity, nan, bits)
    return _from_ordered(bits, width)


def _from_ordered(numbers: Ints, width: int) -> Ints:
    """Flips all bits but the sign of negative floats; applied twice, it is the identity."""
    flipped: Ints = numbers ^ ((numbers >> 63) & np.int64((1 << (8 * width - 1)) - 1))
    return flipped
