"""Arrow arrays as numpy arrays and back, without copies where the layout allows it.

All functions honour `Array.offset`. No function uses `Array.to_numpy()`, `pa.array(…)` or `pa.scalar(…)`, which import
pandas if it is installed (a quarter of a second, once).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, TypeVar, cast

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_py.arrays import AnyArray as AnyArray
from paimon_py.arrays import Bytes as Bytes
from paimon_py.arrays import Int32s as Int32s
from paimon_py.arrays import Ints as Ints
from paimon_py.arrays import Mask as Mask
from paimon_py.arrays import Words as Words

SPARE_BYTES = 8
"""The number of bytes after the last meaningful one, so that any position can be read as an 8-byte word."""

_FEW = 64
"""Below this number of values, a loop is faster than the fixed costs of numpy."""

_Scalar = TypeVar("_Scalar", bound=np.generic)


class Slices(msgspec.Struct, frozen=True):
    """Byte strings inside one buffer: `data` ends with spare bytes; null strings have length 0."""

    data: Bytes
    starts: Ints
    lengths: Ints


def combine(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One contiguous array; no copy if there is a single chunk."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    if column.num_chunks == 0:
        return pa.nulls(0, column.type)
    return pa.concat_arrays(column.chunks)


def numpy_values(array: pa.Array) -> AnyArray:
    """The values of a fixed-width array; values of null slots are arbitrary.

    Shapes: out — (n,), dtype of the storage (dates, times and timestamps as their integers); booleans become one
      byte each (a copy); decimal128 becomes (n, 2) uint64, low word first.
    Cost: no copy except for booleans; read-only unless the buffer is mutable.
    """
    kind = array.type
    count, offset = len(array), array.offset
    data = array.buffers()[1]
    if pa.types.is_boolean(kind):
        return _bits(data, offset, count)
    dtype: np.dtype[Any]
    if pa.types.is_decimal128(kind):
        if data is None:
            return np.zeros((count, 2), np.uint64)
        return np.frombuffer(data, np.uint64, count=2 * count, offset=16 * offset).reshape(count, 2)
    dtype = _dtype(kind)
    if data is None or count == 0:
        return np.zeros(count, dtype)
    return np.frombuffer(data, dtype, count=count, offset=offset * dtype.itemsize)


def one_nan(array: pa.Array) -> pa.Array:
    """The array with the same bits for every NaN, those of Java's: all NaNs are one key, but have several hashes."""
    if not pa.types.is_floating(array.type):
        return array
    values = numpy_values(array)
    nans = np.isnan(values)
    if not nans.any():
        return array
    return from_numpy(np.where(nans, values.dtype.type(np.nan), values), array.type, nulls_or_none(array))


def from_numpy(values: AnyArray, kind: pa.DataType, validity: Mask | None = None) -> pa.Array:
    """The array of type `kind` over fixed-width `values` (the inverse of `numpy_values`).

    `validity` is True where there is a value; None: no nulls.
    """
    count = len(values)
    if pa.types.is_boolean(kind):
        data = pa.py_buffer(np.packbits(np.asarray(values, np.bool_), bitorder="little"))
    elif pa.types.is_decimal128(kind):
        data = pa.py_buffer(np.ascontiguousarray(values, np.uint64))
    else:
        data = pa.py_buffer(np.ascontiguousarray(values, _dtype(kind)))
    bitmap, nulls = validity_bitmap(validity)
    return pa.Array.from_buffers(kind, count, [bitmap, data], null_count=nulls)


def from_slices(slices: Slices, kind: pa.DataType, validity: Mask | None = None) -> pa.Array:
    """Gather byte strings into a `string` or `binary` array.

    Raises:
        OverflowError: the total size exceeds 32-bit offsets.
    """
    offsets = np.zeros(len(slices.lengths) + 1, np.int64)
    np.cumsum(slices.lengths, out=offsets[1:])
    total = int(offsets[-1])
    if total > 0x7FFF_FFFF:
        raise OverflowError(f"{total} bytes do not fit into one {kind} array")
    out = gather_bytes(slices)
    bitmap, nulls = validity_bitmap(validity)
    buffers = [bitmap, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(out)]
    return pa.Array.from_buffers(kind, len(slices.lengths), buffers, null_count=nulls)


def gather_bytes(slices: Slices) -> Bytes:
    """All byte strings, one after the other."""
    lengths = slices.lengths
    total = int(lengths.sum())
    ends = np.cumsum(lengths)
    if len(lengths) and int(lengths[0]) * len(lengths) == total and bool((lengths == lengths[0]).all()):
        width = int(lengths[0])
        same: Bytes = slices.data[(slices.starts[:, None] + np.arange(width)).reshape(-1)]
        return same
    at = np.repeat(slices.starts - (ends - lengths), lengths)
    at += np.arange(total)
    out: Bytes = slices.data[at]
    return out


def validity_bitmap(validity: Mask | None) -> tuple[pa.Buffer | None, int]:
    """The Arrow validity bitmap and null count of a mask; no bitmap if nothing is null."""
    if validity is None:
        return None, 0
    nulls = len(validity) - int(np.count_nonzero(validity))
    if nulls == 0:
        return None, 0
    return pa.py_buffer(np.packbits(validity, bitorder="little")), nulls


def validity_mask(array: pa.Array) -> Mask:
    """A mask that is True where there is a value."""
    if array.null_count == 0:
        return np.ones(len(array), np.bool_)
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.bool_)
    return _bits(array.buffers()[0], array.offset, len(array))


def nulls_or_none(array: pa.Array) -> Mask | None:
    """The validity mask, or None if nothing is null."""
    return validity_mask(array) if array.null_count else None


def slices_of(array: pa.Array) -> Slices:
    """The byte strings of a string or binary array (also large and fixed-size ones).

    Cost: copies the bytes once to append the spare ones.
    """
    kind, count, offset = array.type, len(array), array.offset
    if pa.types.is_fixed_size_binary(kind):
        width = kind.byte_width
        first = offset * width
        starts = np.arange(count, dtype=np.int64) * width
        lengths = np.full(count, width, np.int64)
        data = _pad_buffer(array.buffers()[1], first, first + count * width)
    else:
        wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
        offsets = _offsets(array, np.int64 if wide else np.int32)
        lengths = np.diff(offsets)
        starts = offsets[:-1] - offsets[0]
        data = _pad_buffer(array.buffers()[2], int(offsets[0]), int(offsets[-1]))
    if array.null_count:
        lengths = np.where(validity_mask(array), lengths, 0)
    return Slices(data, starts, lengths)


def child_range(array: pa.Array) -> tuple[Ints, Ints | None, int, int]:
    """The child items of a list, list view or map array.

    Returns: sizes (0 for null lists); an index of the child items in use, or None if they are exactly the range
    `[first, last)`; first; last.
    """
    if is_list_view(array.type):
        width = np.int64 if pa.types.is_large_list_view(array.type) else np.int32
        starts, sizes = _integers(array, 1, width, len(array)), _integers(array, 2, width, len(array))
        sizes = np.where(validity_mask(array), sizes, 0)
        return sizes, ranges(starts, sizes), 0, 0
    offsets = _offsets(array, np.int64 if pa.types.is_large_list(array.type) else np.int32)
    sizes = np.diff(offsets)
    first, last = int(offsets[0]), int(offsets[-1])
    if array.null_count == 0:
        return sizes, None, first, last
    valid = validity_mask(array)
    hidden = int(sizes[~valid].sum())
    sizes = np.where(valid, sizes, 0)
    if hidden == 0:
        return sizes, None, first, last
    return sizes, ranges(offsets[:-1], sizes), first, last


def is_list_view(kind: pa.DataType) -> bool:
    """Whether the type is a list view, which stores both offsets and sizes."""
    return bool(pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind))


def ranges(starts: Ints, sizes: Ints) -> Ints:
    """The numbers starts[i] … starts[i] + sizes[i] − 1 for all i, concatenated."""
    ends = np.cumsum(sizes)
    out: Ints = np.repeat(starts - (ends - sizes), sizes)
    out += np.arange(int(ends[-1]) if len(ends) else 0)
    return out


def distinct_integers(values: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
    """The distinct values, ascending. (`np.unique` would import numpy.ma, 10 ms of CPU.)"""
    ordered = np.sort(values)
    distinct: npt.NDArray[_Scalar] = ordered[
        np.append(np.ones(min(1, len(ordered)), np.bool_), ordered[1:] != ordered[:-1])
    ]
    return distinct


def word_view(data: Bytes) -> Words:
    """The 8 bytes at every position of `data`, little-endian; the last readable position is len − 8."""
    words: Words = np.ndarray((max(len(data) - 7, 0),), np.dtype("<u8"), data, 0, (1,))
    return words


def pad(data: Bytes) -> Bytes:
    """A copy followed by the spare bytes."""
    return np.concatenate((data, np.zeros(SPARE_BYTES, np.uint8)))


def binary_array(values: Sequence[bytes | None], kind: pa.DataType | None = None) -> pa.Array:
    """A binary array (or one of string type `kind`) of Python byte strings, without `pa.array`."""
    valid = _present(values)
    filled = cast(Sequence[bytes], values) if valid is None else [value or b"" for value in values]
    offsets = _ends(filled)
    if int(offsets[-1]) > 0x7FFF_FFFF:
        raise OverflowError(f"{int(offsets[-1])} bytes do not fit into one array")
    bitmap, nulls = validity_bitmap(valid)
    buffers = [bitmap, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(b"".join(filled))]
    return pa.Array.from_buffers(kind or pa.binary(), len(values), buffers, null_count=nulls)


def _ends(values: Sequence[bytes]) -> Ints:
    """0, and where each value ends in all of them."""
    if len(values) < _FEW:
        return np.array(list(itertools.accumulate(map(len, values), initial=0)), np.int64)
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=offsets[1:])
    return offsets


def text_array(values: Sequence[str | None]) -> pa.Array:
    """A string array of Python strings, without `pa.array`."""
    return binary_array([None if value is None else value.encode() for value in values], pa.string())


def integer_array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """An array of a fixed-width type from its storage values as Python numbers, None for null, without `pa.array`.

    Storage values: integers for dates, times and timestamps, unscaled integers for decimals; booleans and floats as
    they are.
    Raises: OverflowError, TypeError or ValueError if a value does not fit the type.
    """
    valid = _present(values)
    filled = values if valid is None else [0 if value is None else value for value in values]
    if pa.types.is_decimal128(kind):
        raw = b"".join(value.to_bytes(16, "little", signed=True) for value in filled)
        return from_numpy(np.frombuffer(raw, np.uint64).reshape(-1, 2), kind, valid)
    dtype = np.dtype(np.bool_) if pa.types.is_boolean(kind) else _dtype(kind)
    return from_numpy(np.array(filled, dtype), kind, valid)


def _present(values: Sequence[object]) -> Mask | None:
    """A mask of the values that are not None; None if all are present."""
    if None not in values:
        return None
    return np.fromiter((value is not None for value in values), np.bool_, len(values))


def scalar_array(scalars: Sequence[pa.Scalar], kind: pa.DataType) -> pa.Array:
    """An array of scalars of type `kind`, without `pa.array`."""
    return pa.concat_arrays([pa.repeat(scalar, 1) for scalar in scalars]) if scalars else pa.nulls(0, kind)


def _pad_buffer(buffer: pa.Buffer | None, first: int, last: int) -> Bytes:
    out = np.zeros(last - first + SPARE_BYTES, np.uint8)
    if buffer is not None and last > first:
        out[: last - first] = np.frombuffer(buffer, np.uint8, count=last - first, offset=first)
    return out


def _offsets(array: pa.Array, dtype: type[np.int32] | type[np.int64]) -> Ints:
    return _integers(array, 1, dtype, len(array) + 1)


def _integers(array: pa.Array, buffer_index: int, dtype: type[np.int32] | type[np.int64], count: int) -> Ints:
    buffer = array.buffers()[buffer_index]
    if buffer is None or buffer.size == 0:
        return np.zeros(count, np.int64)
    width = np.dtype(dtype).itemsize
    return np.frombuffer(buffer, dtype, count=count, offset=array.offset * width).astype(np.int64)


def _bits(buffer: pa.Buffer | None, offset: int, count: int) -> Mask:
    if buffer is None or count == 0:
        return np.zeros(count, np.bool_)
    first = offset >> 3
    raw = np.frombuffer(buffer, np.uint8, count=((offset + count + 7) >> 3) - first, offset=first)
    skip = offset & 7
    return np.unpackbits(raw, bitorder="little")[skip : skip + count].view(np.bool_)


def _dtype(kind: pa.DataType) -> np.dtype[Any]:
    known = _DTYPES.get(kind.id)
    return _dtype_of(kind) if known is None else known


def _dtype_of(kind: pa.DataType) -> np.dtype[Any]:
    width = kind.bit_width
    if pa.types.is_floating(kind):
        return np.dtype(f"<f{width // 8}")
    if pa.types.is_unsigned_integer(kind):
        return np.dtype(f"<u{width // 8}")
    return np.dtype(f"<i{width // 8}")


_DTYPES = {
    kind.id: _dtype_of(kind)
    for kind in (
        pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
        pa.float32(), pa.float64(), pa.date32(), pa.time32("ms"), pa.timestamp("us"),
    )
}  # fmt: skip
"""Types by the id of the Arrow type: comparing types costs more than converting a small array."""
