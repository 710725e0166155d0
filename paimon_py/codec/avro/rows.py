"""Encodes columns as flat Avro records: encodes each column first, then copies its bytes into place with one scatter.

Worked example: the columns [7, NULL] and ["ab", "c"] encode, row by row, to 02 0e, 00 and 02 04 61 62, 02 02 63. The
first row takes 6 bytes and the second 4, so the rows begin at 0 and 6; each column writes its bytes at these positions
and advances them.

Source: Avro 1.11 specification, "Binary Encoding".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_py.codec.avro.starts import FlatField
from paimon_py.codec.columns import Bytes, Ints, Mask, numpy_values, slices_of, validity_mask

_ONE = np.uint64(1)
_DATA_BITS = np.uint64(0x7F)


class _Fixed(NamedTuple):
    """The bytes of each row as a matrix; only the first `sizes` bytes of a row are valid."""

    matrix: npt.NDArray[np.uint8]
    sizes: Ints


class _Spans(NamedTuple):
    """The bytes of each row as ranges of a buffer."""

    data: Bytes
    starts: Ints
    sizes: Ints


def encode(columns: Sequence[pa.Array], fields: Sequence[FlatField]) -> tuple[Bytes, Ints]:
    """The encoded records, and the end offset of each.

    Shapes: one column per field, of equal length, with types for which `fits` is true.
    """
    parts = [part for column, field in zip(columns, fields, strict=True) for part in _parts(column, field)]
    count = len(columns[0]) if columns else 0
    sizes = np.zeros(count, np.int64)
    for part in parts:
        sizes += part.sizes
    ends: Ints = np.cumsum(sizes)
    out = np.empty(int(ends[-1]) if count else 0, np.uint8)
    at = ends - sizes
    for part in parts:
        if isinstance(part, _Fixed):
            _put(out, at, part)
        else:
            _copy(out, at, part)
        at = at + part.sizes
    return out, ends


def _put(out: Bytes, at: Ints, part: _Fixed) -> None:
    widest = part.matrix.shape[1]
    least = int(part.sizes.min()) if len(part.sizes) else 0
    for place in range(widest):
        if place < least:
            out[at + place] = part.matrix[:, place]
        else:
            rows = np.flatnonzero(part.sizes > place)
            out[at[rows] + place] = part.matrix[rows, place]


def _copy(out: Bytes, at: Ints, part: _Spans) -> None:
    total = int(part.sizes.sum())
    if total:
        before = np.cumsum(part.sizes) - part.sizes
        run = np.arange(total)
        out[np.repeat(at - before, part.sizes) + run] = part.data[np.repeat(part.starts - before, part.sizes) + run]


def _parts(column: pa.Array, field: FlatField) -> list[_Fixed | _Spans]:
    there = validity_mask(column) if column.null_count else None
    parts: list[_Fixed | _Spans] = []
    count = len(column)
    if field.null is not None:
        branch = np.full((count, 1), 2 * (1 - field.null), np.uint8)
        if there is not None:
            branch[~there] = 2 * field.null
        parts.append(_Fixed(branch, np.ones(count, np.int64)))
    if field.kind in ("string", "bytes"):
        slices = slices_of(column)
        head, sizes = _varints(slices.lengths)
        spans = _Spans(slices.data, slices.starts, _present_sizes(slices.lengths, there))
        return [*parts, _Fixed(head, _present_sizes(sizes, there)), spans]
    values = numpy_values(column)
    if field.kind == "long":
        matrix, sizes = _varints(values.view(f"i{values.dtype.itemsize}").astype(np.int64))
    else:
        matrix = np.ascontiguousarray(values).view(np.uint8).reshape(count, -1)
        sizes = np.full(count, matrix.shape[1], np.int64)
    return [*parts, _Fixed(matrix, _present_sizes(sizes, there))]


def _present_sizes(sizes: Ints, there: Mask | None) -> Ints:
    return sizes if there is None else np.where(there, sizes, 0)


def _varints(values: Ints) -> tuple[npt.NDArray[np.uint8], Ints]:
    """Zigzag varints of int64 numbers: the bytes of each number as a matrix row, and the number of bytes."""
    zigzag = (values.astype(np.uint64) << _ONE) ^ (values >> 63).astype(np.uint64)
    largest = int(zigzag.max()) if len(zigzag) else 0
    width = max(1, -(-largest.bit_length() // 7))
    sizes = np.ones(len(zigzag), np.int64)
    for place in range(1, width):
        sizes += zigzag >= (_ONE << np.uint64(7 * place))
    matrix = np.empty((len(zigzag), width), np.uint8)
    for place in range(width):
        septet = ((zigzag >> np.uint64(7 * place)) & _DATA_BITS).astype(np.uint8)
        matrix[:, place] = septet | np.where(sizes > place + 1, np.uint8(0x80), np.uint8(0))
    return matrix, sizes
