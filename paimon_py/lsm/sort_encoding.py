"""Columns as unsigned integers and byte strings that compare like the format's key order.

A column becomes *parts*, most significant first; rows compare like the tuples of their parts. `Fixed` parts contain
one uint64 per row, `Text` parts the bytes of strings and binaries in place.

Source: format.md §8.2 (null first, signed integers, unsigned bytes, false < true, floats by Java's `compare`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Union

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_py.codec.columns import (
    SPARE_BYTES,
    Ints,
    Mask,
    Slices,
    Words,
    combine,
    distinct_integers,
    from_slices,
    nulls_or_none,
    numpy_values,
    word_view,
)
from paimon_py.errors import UnsupportedError

WORD_BITS = 64

_SIGN = np.uint64(1 << 63)
_SAMPLE = 32
_LEADING_BYTES = np.array([(1 << WORD_BITS) - (1 << WORD_BITS - 8 * count) for count in range(9)], np.uint64)
"""Masks of the first bytes of a word, by their number."""
_SPARE = (np.zeros(SPARE_BYTES, np.uint8), np.zeros(1, np.int64), np.full(1, SPARE_BYTES, np.int64))


class Fixed(msgspec.Struct, frozen=True):
    """One unsigned integer per row, each below `2**bits`."""

    values: Words
    bits: int


class Text(msgspec.Struct, frozen=True):
    """Bytes per row, compared unsigned, a prefix before its extensions.

    `data` has `SPARE_BYTES` readable bytes after the last value; `cut` leading bytes are the same in every row;
    `longest` is the largest length; `is_even`: all rows have this length and are contiguous.
    """

    data: npt.NDArray[np.uint8]
    starts: Ints
    lengths: Ints
    cut: int
    longest: int
    is_even: bool = False


KeyPart = Union[Fixed, Text]


def parts_of(column: pa.Array | pa.ChunkedArray) -> list[KeyPart]:
    """The parts of one column, nulls first; constant parts are omitted.

    Cost: 1-10 ns a row; no copy of string bytes unless their buffer lacks spare bytes.
    Raises: UnsupportedError for a type that has no order (nested ones).
    """
    # Example: 5, NULL, 3 becomes Fixed([1, 0, 1], 1 bit) for "is not null" and Fixed([2, 0, 0], 2 bits) for the value
    # minus the smallest one. As tuples (1, 2), (0, 0), (1, 0): NULL < 3 < 5. The texts "user-7" and "user-12" become
    # one Text with `cut` 5: only "7" and "12" have to be compared.
    array = combine_chunks(column)
    valid = nulls_or_none(array)
    parts = _values(array, valid)
    if valid is not None:
        parts.insert(0, Fixed(valid.astype(np.uint64), 1))
    return [part for part in parts if not isinstance(part, Fixed) or part.bits]


def combine_chunks(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column as one array; concatenated strings get spare bytes."""
    if isinstance(column, pa.Array) or column.num_chunks < 2 or not _is_text(column.type):
        return combine(column)
    spare = from_slices(Slices(*_SPARE), pa.binary()).cast(column.type)
    return pa.concat_arrays([*column.chunks, spare]).slice(0, len(column))


def invert(parts: list[KeyPart]) -> list[KeyPart]:
    """The parts in reverse order (fixed parts only)."""
    reverse: list[KeyPart] = []
    for part in parts:
        if isinstance(part, Text):
            raise AssertionError("parts of text cannot be inverted; rank them first")
        reverse.append(Fixed(np.uint64((1 << part.bits) - 1) - part.values, part.bits))
    return reverse


def leading_words(text: Text) -> Words:
    """The first eight bytes of every row after the cut, most significant first, padded with zeros."""
    left = text.longest - text.cut
    if not text.is_even or left <= 0:
        return words_at(text, text.starts, text.lengths, text.cut)
    words: Words = _raw_words(text, None, text.cut).byteswap()
    if left < 8:
        words &= _LEADING_BYTES[left]
    return words


def _raw_words(text: Text, rows: Ints | None, skip: int) -> Words:
    """Eight bytes of some rows (None: all) from byte `skip` on, the first one lowest, with those behind the row."""
    words: Words
    if rows is None and text.is_even:
        first = int(text.starts[0]) + skip
        words = np.ndarray((len(text.starts),), np.dtype("<u8"), text.data, first, (text.longest,))
    else:
        words = word_view(text.data)[(text.starts if rows is None else text.starts[rows]) + skip]
    return words


def words_at(text: Text, starts: Ints, lengths: Ints, skip: int) -> Words:
    """Eight bytes of the given rows from byte `skip` on, most significant first, padded with zeros."""
    left = lengths - skip
    least = int(left.min()) if len(left) else 8
    places = starts + skip
    if least <= 0:
        places[left <= 0] = 0
    words: Words = word_view(text.data)[places].byteswap()
    if least < 8:
        words &= _LEADING_BYTES[np.minimum(np.maximum(left, 0), 8)]
    return words


def _values(array: pa.Array, valid: Mask | None) -> list[KeyPart]:
    kind = array.type
    if _is_text(kind):
        return [_text(array, valid)]
    if pa.types.is_fixed_size_binary(kind) and not pa.types.is_decimal(kind):
        return [_text(array.cast(pa.binary()), valid)]
    if pa.types.is_boolean(kind):
        return [_ranged_part(numpy_values(array).astype(np.uint64), valid)]
    if pa.types.is_floating(kind):
        return [_ranged_part(float_words(array), valid)]
    if pa.types.is_decimal128(kind):
        return _decimal(array, valid)
    if pa.types.is_signed_integer(kind) or pa.types.is_temporal(kind):
        return [_signed_part(numpy_values(array).astype(np.int64, copy=False), valid)]
    raise UnsupportedError(f"a column of type {kind} has no order", feature=f"ordering by {kind}")


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_large_binary(kind)
    )


def _signed_part(values: Ints, valid: Mask | None) -> Fixed:
    if valid is not None or not len(values):
        return _ranged_part(values.view(np.uint64) ^ _SIGN, valid)
    low, high = int(values.min()), int(values.max())
    squeezed: Words = values.view(np.uint64) - np.uint64(low % (1 << 64))
    return Fixed(squeezed, (high - low).bit_length())


def _ranged_part(words: Words, valid: Mask | None) -> Fixed:
    """Subtract the smallest value to reduce the number of bits."""
    if not len(words):
        return Fixed(words, 0)
    if valid is not None:
        if not valid.any():
            return Fixed(np.zeros(len(words), np.uint64), 0)
        words = np.where(valid, words, words[int(np.argmax(valid))])
    low, high = words.min(), words.max()
    squeezed: Words = words - low
    if valid is not None:
        squeezed[~valid] = 0
    return Fixed(squeezed, int(high - low).bit_length())


def float_words(array: pa.Array) -> Words:
    """Bits that compare like Java's `compare`: −0.0 below 0.0, every NaN equal and last."""
    wide = numpy_values(array).astype(np.float64)
    bits = wide.view(np.uint64)
    words = np.where(bits >> np.uint64(63) != 0, ~bits, bits | _SIGN)
    words[np.isnan(wide)] = np.uint64((1 << 64) - 1)
    return words


def fits_word(kinds: Iterable[pa.DataType]) -> bool:
    """Whether rows of columns of these types fit into one 64-bit number."""
    return sum(map(_packed_bits, kinds)) <= WORD_BITS


def pack(columns: Sequence[pa.Array]) -> Words:
    """Pack rows into single numbers that are in key order, and equal where the rows are.

    Shapes: columns without nulls, of types that fit.
    Cost: 1-5 ns a row and column.
    """
    # Example: two TINYINT columns. Adding 128 makes a signed byte unsigned in the same order, so (-1, 2), (0, -3),
    # (0, 1) become the bytes 7f 82, 80 7d, 80 81, and the numbers 0x7f82 < 0x807d < 0x8081 are in key order.
    words: Words = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        width = _packed_bits(column.type)
        word = float_words(column) if pa.types.is_floating(column.type) else _to_unsigned(column, width)
        words = word if width == WORD_BITS else words << np.uint64(width) | word
    return words


def _packed_bits(kind: pa.DataType) -> int:
    """The bits of a value in a packed number; more than `WORD_BITS` for types that cannot be packed."""
    if pa.types.is_boolean(kind):
        return 8
    if pa.types.is_floating(kind):
        return WORD_BITS
    plain = pa.types.is_signed_integer(kind) or pa.types.is_temporal(kind)
    return int(kind.bit_width) if plain else WORD_BITS + 1


def _to_unsigned(column: pa.Array, width: int) -> Words:
    """Integers as unsigned ones of `width` bits with the same order."""
    values: Words = numpy_values(column).astype(np.int64).view(np.uint64)
    values += np.uint64(1 << (width - 1))
    if width < WORD_BITS:
        values &= np.uint64((1 << width) - 1)
    return values


def _decimal(array: pa.Array, valid: Mask | None) -> list[KeyPart]:
    halves = numpy_values(array)
    low, high = np.ascontiguousarray(halves[:, 0]), np.ascontiguousarray(halves[:, 1])
    sign = np.where(low >> np.uint64(63) != 0, np.uint64((1 << 64) - 1), np.uint64(0))
    narrow = sign == high
    if bool((narrow if valid is None else narrow | ~valid).all()):
        return [_ranged_part(low ^ _SIGN, valid)]
    return [_ranged_part(high ^ _SIGN, valid), _ranged_part(low, valid)]


def _text(array: pa.Array, valid: Mask | None) -> Text:
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    _, offset_buffer, data_buffer = array.buffers()
    if offset_buffer is None or not len(array):
        zeros = np.zeros(len(array), np.int64)
        return Text(np.zeros(SPARE_BYTES, np.uint8), zeros, zeros, 0, 0)
    offsets = np.frombuffer(offset_buffer, np.int64 if wide else np.int32)
    offsets = offsets[array.offset : array.offset + len(array) + 1].astype(np.int64)
    starts, lengths = offsets[:-1], offsets[1:] - offsets[:-1]
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.zeros(0, np.uint8)
    if len(data) < int(offsets[-1]) + SPARE_BYTES:
        first = int(offsets[0])
        data = np.concatenate([data[first : int(offsets[-1])], np.zeros(SPARE_BYTES, np.uint8)])
        starts = starts - first
    if valid is not None:
        lengths = np.where(valid, lengths, 0)
        starts = np.where(valid, starts, 0)
    longest = int(lengths.max())
    is_even = bool(valid is None and longest and int(lengths.min()) == longest)
    text = Text(data, starts, lengths, 0, longest, is_even)
    return msgspec.structs.replace(text, cut=_common_prefix(text))


def _common_prefix(text: Text) -> int:
    """The number of leading bytes that all rows share: estimated from a sample, then checked on every row."""
    count = len(text.starts)
    picked = distinct_integers(np.linspace(0, count - 1, _SAMPLE).astype(np.int64))
    shared = _shared_bytes(text, picked, int(text.lengths.min()))
    return _shared_bytes(text, None, shared) if shared else 0


def _shared_bytes(text: Text, rows: Ints | None, most: int) -> int:
    """The number of leading bytes that these rows (None: all) share, at most `most`; no row is shorter."""
    for skip in range(0, most, 8):
        words = _raw_words(text, rows, skip)
        differing = int(np.bitwise_or.reduce(words ^ words[0]))
        if differing:
            first_bit = (differing & -differing).bit_length() - 1
            return min(most, skip + first_bit // 8)
    return most
