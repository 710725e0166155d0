"""Computes bucket numbers from bucket-key columns.

Source: format.md §7.1, §7.2; Java `DefaultBucketFunction`, `ModBucketFunction`, `HiveBucketFunction`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_py.codec.binary_row.hash import hash_rows
from paimon_py.codec.columns import (
    Int32s,
    Ints,
    Mask,
    Slices,
    Words,
    combine,
    nulls_or_none,
    numpy_values,
    slices_of,
    validity_mask,
)
from paimon_py.errors import UnsupportedError, UsageError
from paimon_py.spec.type_text import sql_type
from paimon_py.spec.types import Atomic, DataType, Root

UInt32s = npt.NDArray[np.uint32]

_SMALL = frozenset({Root.TINYINT, Root.SMALLINT, Root.INT, Root.DATE, Root.TIME})
_TEXTS = frozenset({Root.CHAR, Root.VARCHAR, Root.BINARY, Root.VARBINARY})
_LIMB = np.uint64(0xFFFF_FFFF)
_HALF = np.uint64(32)


def bucket_numbers(
    columns: Sequence[pa.Array | pa.ChunkedArray], types: Sequence[DataType], buckets: int, function: str = "default"
) -> Int32s:
    """The bucket of every row under the option `bucket-function.type`.

    Shapes: in — bucket-key columns of equal length n; out — (n,) int32 in [0, buckets).
    Cost: nothing is hashed if there is one bucket.
    Raises:
        UsageError: `mod` with anything but one INT or BIGINT column; an unknown function.
        UnsupportedError: a type that the hive function cannot hash.
    """
    if function not in ("default", "mod", "hive"):
        raise UsageError(f"bucket-function.type '{function}' is not one of default, mod, hive")
    if buckets == 1:
        return np.zeros(len(columns[0]), np.int32)
    if function == "default":
        numbers: Int32s = np.abs(np.fmod(hash_rows(columns, types), np.int32(buckets)))
        return numbers
    arrays = [combine(column) for column in columns]
    if function == "mod":
        return _mod(arrays, types, buckets)
    hashes = np.zeros(len(arrays[0]), np.uint32)
    for array, kind in zip(arrays, types, strict=True):
        hashes = hashes * np.uint32(31) + _clear_nulls(_hive(array, kind), array)
    positive: UInt32s = hashes & np.uint32(0x7FFF_FFFF)
    remainders: UInt32s = positive % np.uint32(buckets)
    return remainders.astype(np.int32)


def _mod(arrays: Sequence[pa.Array], types: Sequence[DataType], buckets: int) -> Int32s:
    kind = types[0]
    if len(arrays) != 1 or not isinstance(kind, Atomic) or kind.root not in (Root.INT, Root.BIGINT):
        raise UsageError("bucket-function.type 'mod' needs one bucket key of type INT or BIGINT")
    values = numpy_values(arrays[0])
    valid = nulls_or_none(arrays[0])
    out: Int32s = np.mod(values, values.dtype.type(buckets)).astype(np.int32)
    if valid is not None:
        out[~valid] = 0
    return out


def _clear_nulls(hashes: UInt32s, array: pa.Array) -> UInt32s:
    return np.where(validity_mask(array), hashes, np.uint32(0)) if array.null_count else hashes


def _hive(array: pa.Array, kind: DataType) -> UInt32s:
    """Hive's hash of each value; arbitrary for nulls."""
    if not isinstance(kind, Atomic):
        raise UnsupportedError(f"a bucket key of type {sql_type(kind)}", feature="hive bucket function")
    root = kind.root
    if root in _TEXTS:
        return _hive_bytes(slices_of(array))
    if root is Root.DECIMAL:
        return _hive_decimal(numpy_values(array), kind.scale or 0)
    values = numpy_values(array)
    if root is Root.BOOLEAN:
        return values.astype(np.uint32)
    if root in _SMALL:
        return values.astype(np.int32).view(np.uint32)
    if root is Root.BIGINT:
        return _fold(values.view(np.uint64))
    if root is Root.FLOAT:
        return _float_bits(values, np.uint32(0x7FC0_0000)).astype(np.uint32)
    if root is Root.DOUBLE:
        return _fold(_float_bits(values, np.uint64(0x7FF8_0000_0000_0000)))
    raise UnsupportedError(f"a bucket key of type {root.value}", feature="hive bucket function")


def _fold(words: Words) -> UInt32s:
    folded: Words = words ^ (words >> _HALF)
    return folded.astype(np.uint32)


def _float_bits(
    values: npt.NDArray[np.floating[npt.NBitBase]], nan: np.unsignedinteger[npt.NBitBase]
) -> npt.NDArray[np.uint64]:
    """Java's `floatToIntBits`: one bit pattern for all NaNs, one for both zeros."""
    bits = values.view(nan.dtype)
    bits = np.where(np.isnan(values), nan, bits)
    return np.where(values == 0, nan.dtype.type(0), bits)


def _hive_bytes(items: Slices) -> UInt32s:
    """r = 31·r + signed byte, over rows ordered longest first, so that each round works on a prefix."""
    lengths = items.lengths
    out = np.zeros(len(lengths), np.uint32)
    order = np.argsort(-lengths, kind="stable")
    order = order[: int(np.count_nonzero(lengths))]
    if not len(order):
        return out
    sizes, starts = lengths[order], items.starts[order]
    active = len(order) - np.searchsorted(sizes[::-1], np.arange(int(sizes[0])), "right")
    signed = items.data.view(np.int8)
    mixed = np.zeros(len(order), np.uint32)
    for index, alive in enumerate(active.tolist()):
        mixed[:alive] *= np.uint32(31)
        mixed[:alive] += signed[starts[:alive] + index].astype(np.int32).view(np.uint32)
    out[order] = mixed
    return out


def _hive_decimal(values: Words, scale: int) -> UInt32s:
    """`BigDecimal.hashCode` after trailing zeros of the fraction are dropped."""
    low, high = values[:, 0], values[:, 1]
    negative = high.view(np.int64) < 0
    magnitude_low = np.where(negative, ~low + np.uint64(1), low)
    carry = negative & (magnitude_low == 0)
    magnitude_high = np.where(negative, ~high + carry.astype(np.uint64), high)
    limbs = [magnitude_high >> _HALF, magnitude_high & _LIMB, magnitude_low >> _HALF, magnitude_low & _LIMB]
    scales = np.full(len(low), scale, np.int64)
    _strip_zeros(limbs, scales)
    zero = (limbs[0] | limbs[1] | limbs[2] | limbs[3]) == 0
    scales[zero] = 0
    hashes = np.zeros(len(low), np.uint32)
    for limb in limbs:
        hashes = hashes * np.uint32(31) + limb.astype(np.uint32)
    hashes = np.where(negative, ~hashes + np.uint32(1), hashes)
    out: UInt32s = hashes * np.uint32(31) + scales.astype(np.uint32)
    return out


def _strip_zeros(limbs: list[Words], scales: Ints) -> None:
    """Divide by ten in place while the scale is positive and the last digit is 0; limbs are 32 bits, highest first."""
    rows = np.flatnonzero(scales > 0)
    ten = np.uint64(10)
    while len(rows):
        rest = np.zeros(len(rows), np.uint64)
        divided: list[Words] = []
        for limb in limbs:
            current = (rest << _HALF) | limb[rows]
            divided.append(current // ten)
            rest = current % ten
        done: Mask = rest == 0
        rows = rows[done]
        for limb, quotient in zip(limbs, divided, strict=True):
            limb[rows] = quotient[done]
        scales[rows] -= 1
        rows = rows[scales[rows] > 0]
