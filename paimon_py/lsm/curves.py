"""Positions of rows on a z-order or Hilbert curve through several columns, as sortable integer columns.

Every column is first encoded as bits that compare like its values, nulls smallest: 64 bits, or for strings on the
z-order curve the number of bytes that the options set. The z-order interleaves one bit of each column, as Java's
`ZIndexer` does; the values equal Java's except for floats and decimals, whose order Java does not preserve. The Hilbert
curve visits the same cube so that neighbours on the curve are neighbours in space; all 64 bits count, whereas Java
omits the sign.

The position itself is never stored.

Source: Java `ZIndexer`, `ZOrderByteUtils`, `HilbertIndexer`; J. Skilling, "Programming the Hilbert curve" (2004).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_py.codec.columns import Bytes, Ints, Words, from_numpy, nulls_or_none, numpy_values, slices_of
from paimon_py.errors import UnsupportedError
from paimon_py.lsm.sort_encoding import Text, float_words, words_at

_SIGN = np.uint64(1 << 63)
_ONE = np.uint64(1)
_WORD_BYTES = 8
_TRUE = np.uint64(0x81 << 56)
_PIECE = 8192
"""Rows whose positions are computed together, so that the intermediate arrays fit into the cache."""


def z_order(columns: Sequence[pa.Array], *, text_bytes: int) -> list[pa.Array]:
    """The z-order of rows.

    Shapes: columns of equal length → int64 columns, the most significant first.
    Cost: about 20 ns a row and column.
    Raises: UnsupportedError for a type that has no order.
    """
    words = [_order_words(column, text_bytes if _is_text(column.type) else _WORD_BYTES) for column in columns]
    sizes = [text_bytes if _is_text(column.type) else _WORD_BYTES for column in columns]
    return _in_pieces(words, len(columns[0]), lambda piece: _interleave(piece, sizes))


def hilbert(columns: Sequence[pa.Array]) -> list[pa.Array]:
    """The positions of rows on a Hilbert curve.

    Shapes: as `z_order`; strings count with eight bytes.
    Cost: about 400 ns a row and column.
    Raises: UnsupportedError for a type that has no order.
    """
    words = [_order_words(column, _WORD_BYTES) for column in columns]
    sizes = [_WORD_BYTES] * len(columns)
    return _in_pieces(words, len(columns[0]), lambda piece: _interleave(_transpose(piece), sizes))


def _in_pieces(
    words: list[list[Words]], count: int, place: Callable[[list[list[Words]]], npt.NDArray[np.uint64]]
) -> list[pa.Array]:
    made = [
        place([[word[start : start + _PIECE] for word in column] for column in words])
        for start in range(0, count, _PIECE)
    ]
    if not made:
        return [pa.nulls(0, pa.int64())]
    return [from_numpy((whole ^ _SIGN).view(np.int64), pa.int64()) for whole in np.concatenate(made, axis=1)]


def _interleave(columns: Sequence[Sequence[Words]], sizes: Sequence[int]) -> npt.NDArray[np.uint64]:
    """Interleave the bits of the columns, highest first; exhausted columns are skipped.

    Shapes: words of each column, with `sizes` significant bytes → (words, rows).
    """
    # Example with few bits: 10 and 11 become 1101, each bit of the first before one of the second; 1100 and 00111111
    # become 1010 0101 1111, since the first column has no bits left for the last four.
    rows = len(columns[0][0])
    bits = []
    for words, size in zip(columns, sizes, strict=True):
        flat: Bytes = np.stack(words, axis=1).astype(">u8").view(np.uint8)
        bits.append(np.unpackbits(flat, axis=1)[:, : 8 * size])
    pieces, done = [], 0
    for step in sorted(set(sizes)):
        going = [bit[:, 8 * done : 8 * step] for bit, size in zip(bits, sizes, strict=True) if size > done]
        pieces.append(np.stack(going, axis=2).reshape(rows, -1))
        done = step
    packed = np.packbits(np.concatenate(pieces, axis=1) if len(pieces) > 1 else pieces[0], axis=1)
    spare = -packed.shape[1] % _WORD_BYTES
    if spare:
        packed = np.concatenate([packed, np.zeros((rows, spare), np.uint8)], axis=1)
    whole: npt.NDArray[np.uint64] = np.ascontiguousarray(packed).view(">u8").astype(np.uint64).T
    return whole


def _transpose(columns: Sequence[Sequence[Words]]) -> list[list[Words]]:
    """The Hilbert index of points, with its bits distributed over the dimensions: interleaving them gives the index."""
    # Example, two columns of two bits: the 16 points are visited as (0,0) (1,0) (1,1) (0,1) (0,2) (0,3) (1,3) (1,2)
    # (2,2) (2,3) (3,3) (3,2) (3,1) (2,1) (2,0) (3,0); every step changes one coordinate by one. The z-order jumps:
    # after (1,3), its position 7, comes (2,0).
    points = [words[0].copy() for words in columns]
    first = points[0]
    bit = 1 << 63
    while bit > 1:
        below = np.uint64(bit - 1)
        shift = np.uint64(bit.bit_length() - 1)
        for point in points:
            inside = np.uint64(0) - ((point >> shift) & _ONE)
            first ^= inside & below
            if point is not first:
                swap = (first ^ point) & below & ~inside
                first ^= swap
                point ^= swap
        bit >>= 1
    for before, point in itertools.pairwise(points):
        point ^= before
    turn = np.zeros(len(first), np.uint64)
    for number in range(1, 64):
        inside = np.uint64(0) - ((points[-1] >> np.uint64(number)) & _ONE)
        turn ^= inside & np.uint64((1 << number) - 1)
    for point in points:
        point ^= turn
    return [[point] for point in points]


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or (pa.types.is_fixed_size_binary(kind) and not pa.types.is_decimal(kind))
    )


def _order_words(column: pa.Array, size: int) -> list[Words]:
    """A column as unsigned words with the same order, nulls zero; the first `size` bytes of strings."""
    valid = nulls_or_none(column)
    words = _text_words(column, size) if _is_text(column.type) else [_fixed_words(column)]
    return words if valid is None else [np.where(valid, word, np.uint64(0)) for word in words]


def _text_words(column: pa.Array, size: int) -> list[Words]:
    slices = slices_of(column)
    lengths = np.minimum(slices.lengths, size)
    text = Text(slices.data, slices.starts, lengths, 0, size)
    return [words_at(text, slices.starts, lengths, skip) for skip in range(0, size, _WORD_BYTES)]


def _fixed_words(column: pa.Array) -> Words:
    kind = column.type
    if pa.types.is_boolean(kind):
        flags: Words = np.where(numpy_values(column), _TRUE, np.uint64(0))
        return flags
    if pa.types.is_floating(kind):
        return float_words(column)
    if pa.types.is_decimal128(kind):
        return _decimal_words(column)
    if pa.types.is_timestamp(kind):
        ticks = numpy_values(column).astype(np.int64, copy=False)
        parts = {"s": 1, "ms": 1, "us": 1_000, "ns": 1_000_000}[kind.unit]
        millis: Ints = ticks * 1000 if kind.unit == "s" else ticks // parts
        return _to_unsigned(millis)
    if pa.types.is_signed_integer(kind) or pa.types.is_temporal(kind):
        return _to_unsigned(numpy_values(column).astype(np.int64))
    raise UnsupportedError(f"a column of type {kind} has no order", feature=f"clustering by {kind}")


def _to_unsigned(values: Ints) -> Words:
    words: Words = values.view(np.uint64) ^ _SIGN
    return words


def _decimal_words(column: pa.Array) -> Words:
    """The highest 64 bits of a decimal with this precision."""
    halves = numpy_values(column)
    low, high = halves[:, 0], halves[:, 1]
    most = 10**column.type.precision
    drop = max(0, most.bit_length() + 1 - 64)
    if drop:
        low = (high << np.uint64(64 - drop)) | (low >> np.uint64(drop)) if drop < 64 else high
    words: Words = np.ascontiguousarray(low) ^ _SIGN
    return words
