"""Columns of atomic types as the slots and variable parts of BinaryRows.

Source: format.md §6.1, §6.2; Java `AbstractBinaryWriter`.
"""

from __future__ import annotations

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import (
    Ints,
    Mask,
    Slices,
    Words,
    nulls_or_none,
    numpy_values,
    slices_of,
    word_view,
)
from paimon_py.errors import UnsupportedError
from paimon_py.spec.types import Atomic, DataType, Root, VectorType

INLINE_LIMIT = 7
COMPACT_DECIMAL = 18
COMPACT_TIMESTAMP = 3

_WIDTHS = {
    Root.BOOLEAN: 1,
    Root.TINYINT: 1,
    Root.SMALLINT: 2,
    Root.INT: 4,
    Root.DATE: 4,
    Root.TIME: 4,
    Root.FLOAT: 4,
}
_PLAIN = frozenset({*_WIDTHS, Root.BIGINT, Root.DOUBLE})
_TEXTS = frozenset({Root.CHAR, Root.VARCHAR, Root.BINARY, Root.VARBINARY})
_BOUNDLESS = frozenset({Root.VARIANT, Root.BLOB})
_TIMESTAMPS = frozenset({Root.TIMESTAMP, Root.TIMESTAMP_LTZ})
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_LOW_BYTES = np.array([(1 << (8 * n)) - 1 for n in range(8)] + [0xFFFF_FFFF_FFFF_FFFF], np.uint64)
_BYTE_LIMITS = np.array([1 << (8 * n - 1) for n in range(1, 8)], np.uint64)


class Slots(msgspec.Struct, frozen=True):
    """One column, row by row.

    `words`: the slot; for values with a variable part only its low half, until the part has an offset.
    `valid`: None if nothing is null; slots of nulls are 0.
    `tail`: (n, k) words that every row has in its variable part, including null rows (zeros), or None.
    `items`: byte strings of the variable part, length 0 for rows without one, or None.
    """

    words: Words
    valid: Mask | None
    tail: Words | None = None
    items: Slices | None = None


def is_wide_decimal(kind: DataType) -> bool:
    """Whether values are stored in the variable part, with 16 bytes reserved even for NULL."""
    return isinstance(kind, Atomic) and kind.root is Root.DECIMAL and (kind.precision or 0) > COMPACT_DECIMAL


def is_wide_timestamp(kind: DataType) -> bool:
    """Whether milliseconds are stored in the variable part, with 8 bytes reserved even for NULL."""
    return isinstance(kind, Atomic) and kind.root in _TIMESTAMPS and (kind.precision or 0) > COMPACT_TIMESTAMP


def has_no_bounds(kind: DataType) -> bool:
    """Whether rows store only NULL for the type: columns of it have no statistics and cannot be keys."""
    return isinstance(kind, VectorType) or (isinstance(kind, Atomic) and kind.root in _BOUNDLESS)


def is_text(kind: DataType) -> bool:
    """Whether values are byte strings, which are inline up to seven bytes."""
    return isinstance(kind, Atomic) and kind.root in _TEXTS


def element_width(kind: DataType) -> int:
    """The size of an element of this type in an array."""
    return _WIDTHS.get(kind.root, 8) if isinstance(kind, Atomic) else 8


def atomic_slots(array: pa.Array, kind: Atomic) -> Slots:
    """The slots of one column of an atomic type.

    Shapes: in — n values of the Arrow type that belongs to `kind`; out — n slots.
    Raises:
        UnsupportedError: VARIANT, BLOB, GEOMETRY, GEOGRAPHY.
    """
    valid = nulls_or_none(array)
    if kind.root in _TEXTS:
        return _text_slots(slices_of(array), valid)
    if kind.root in _TIMESTAMPS:
        return _timestamp_slots(array, valid, wide=is_wide_timestamp(kind))
    if kind.root is Root.DECIMAL:
        assert array.type.scale == kind.scale, f"{array.type} given for {kind}"
        if is_wide_decimal(kind):
            return _wide_decimal_slots(numpy_values(array), valid)
        return Slots(_clear_nulls(numpy_values(array)[:, 0].copy(), valid), valid)
    if kind.root not in _PLAIN:
        raise UnsupportedError(f"{kind.root.value} values inside a BinaryRow", feature=kind.root.value)
    values = numpy_values(array)
    width = values.dtype.itemsize
    assert width == element_width(kind), f"{array.type} given for {kind}"
    words = values.view(np.dtype(f"<u{width}")).astype(np.uint64)
    return Slots(_clear_nulls(words, valid), valid)


def _clear_nulls(words: Words, valid: Mask | None) -> Words:
    if valid is not None:
        words[~valid] = 0
    return words


def _text_slots(items: Slices, valid: Mask | None) -> Slots:
    lengths = items.lengths
    longest = int(lengths.max()) if len(lengths) else 0
    if longest == 0:
        words = np.full(len(lengths), 0x80 << 56, np.uint64)
        return Slots(_clear_nulls(words, valid), valid)
    short = np.minimum(lengths, INLINE_LIMIT)
    words = word_view(items.data)[items.starts] & _LOW_BYTES[short]
    words |= (short.astype(np.uint64) | np.uint64(0x80)) << np.uint64(56)
    if longest <= INLINE_LIMIT:
        return Slots(_clear_nulls(words, valid), valid)
    long = lengths > INLINE_LIMIT
    words = np.where(long, lengths.astype(np.uint64), words)
    kept = Slices(items.data, items.starts, np.where(long, lengths, 0))
    return Slots(_clear_nulls(words, valid), valid, items=kept)


def _timestamp_slots(array: pa.Array, valid: Mask | None, *, wide: bool) -> Slots:
    per_second = _PER_SECOND[array.type.unit]
    values = numpy_values(array)
    if per_second <= 1_000:
        millis = values * (1_000 // per_second)
        nanos = np.zeros(len(values) if wide else 0, np.int64)
    else:
        per_milli = per_second // 1_000
        millis = values // per_milli
        nanos = (values - millis * per_milli) * (1_000_000 // per_milli)
    first = _clear_nulls(millis.view(np.uint64), valid)
    if not wide:
        return Slots(first, valid)
    return Slots(_clear_nulls(nanos.view(np.uint64), valid), valid, tail=first[:, None])


def _wide_decimal_slots(values: Words, valid: Mask | None) -> Slots:
    """Minimal big-endian two's complement of 128-bit integers, padded to sixteen bytes each."""
    low, high = values[:, 0], values[:, 1]
    sign = (high.view(np.int64) >> 63).view(np.uint64)
    flipped_low, flipped_high = low ^ sign, high ^ sign
    fits_low = (flipped_high == 0) & (flipped_low < np.uint64(1 << 63))
    count = np.where(
        fits_low,
        1 + np.searchsorted(_BYTE_LIMITS, flipped_low, "right"),
        9 + np.searchsorted(_BYTE_LIMITS, flipped_high, "right"),
    ).astype(np.uint64)
    shift = np.uint64(128) - count * np.uint64(8)
    over = shift >= 64
    part = shift & np.uint64(63)
    carried = (low >> np.uint64(1)) >> (np.uint64(63) - part)
    first = np.where(over, low << part, (high << part) | carried)
    second = np.where(over, np.uint64(0), low << part)
    tail = np.stack((_clear_nulls(first, valid).byteswap(), _clear_nulls(second, valid).byteswap()), axis=1)
    return Slots(_clear_nulls(count, valid), valid, tail=tail)


def spaces(lengths: Ints) -> Ints:
    """The sizes of items of these lengths, including padding."""
    out: Ints = (lengths + 7) & ~np.int64(7)
    return out
