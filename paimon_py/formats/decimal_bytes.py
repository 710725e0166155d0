"""Decimals as big-endian two's complement bytes, like Java's `BigInteger.toByteArray`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import Slices, from_numpy, from_slices, nulls_or_none, numpy_values, slices_of

_WIDTH = 16


def to_bytes(array: pa.Array) -> pa.Array:
    """The minimal bytes of each unscaled value of a decimal128 array."""
    count = len(array)
    raw = np.ascontiguousarray(numpy_values(array)).view(np.uint8).reshape(count, _WIDTH)[:, ::-1]
    sign = np.where(raw[:, :1] > 127, np.uint8(255), np.uint8(0))
    filling = np.cumprod(raw == sign, axis=1).sum(axis=1)
    first = np.minimum(filling, _WIDTH - 1)
    leading = raw[np.arange(count), first]
    needs_sign = (filling > 0) & (filling < _WIDTH) & ((leading > 127) != (sign[:, 0] > 0))
    first = first - needs_sign
    lengths = (_WIDTH - first).astype(np.int64)
    validity = nulls_or_none(array)
    if validity is not None:
        lengths = np.where(validity, lengths, 0)
    starts = np.arange(count, dtype=np.int64) * _WIDTH + first
    data = np.concatenate((np.ascontiguousarray(raw).reshape(-1), np.zeros(8, np.uint8)))
    return from_slices(Slices(data, starts, lengths), pa.binary(), validity)


def from_bytes(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """A decimal128 array of type `kind` from the bytes of its unscaled values.

    Raises: ValueError if a value is empty or too large.
    """
    slices = slices_of(array)
    validity = nulls_or_none(array)
    lengths = slices.lengths
    shortest = lengths if validity is None else lengths[validity]
    if len(shortest) and (int(shortest.min()) < 1 or int(shortest.max()) > _WIDTH):
        raise ValueError("a decimal has no bytes, or more than 16")
    back = np.arange(_WIDTH)
    positions = (slices.starts + lengths - 1)[:, None] - back
    sign = np.where(slices.data[slices.starts] > 127, np.uint8(255), np.uint8(0))
    out = np.where(back < lengths[:, None], slices.data[np.maximum(positions, 0)], sign[:, None])
    wide = from_numpy(np.ascontiguousarray(out).view(np.uint64), pa.decimal128(38, kind.scale), validity)
    return wide.cast(kind)
