"""Roaring bitmaps of 32-bit positions, from and to numpy arrays and their portable bytes.

Source: Java `RoaringBitmap32`; the portable format of the Roaring libraries.
"""

from __future__ import annotations

import array

import numpy as np
from pyroaring import BitMap

from paimon_py.codec.columns import Ints


def bitmap_of(positions: Ints) -> BitMap:
    """The bitmap of positions in any order, of which the lower 32 bits count."""
    low = np.sort(positions & 0xFFFFFFFF).astype(np.uint32)
    return BitMap(array.array("I", low.tobytes()))


def positions_of(bitmap: BitMap) -> Ints:
    """The positions, ascending."""
    return np.frombuffer(bitmap.to_array(), np.uint32).astype(np.int64)


def bitmap_bytes(bitmap: BitMap) -> bytes:
    """The bytes that Java would write: runs where they are shorter."""
    copy = BitMap(bitmap)
    copy.run_optimize()
    data: bytes = copy.serialize()
    return data


def whole_bitmap(data: bytes) -> BitMap:
    """The bitmap that fills `data`.

    Raises: ValueError if the bytes are not in order, or more than the bitmap has.
    """
    part, size = read_bitmap(data)
    if size != len(data):
        raise ValueError(f"{len(data) - size} bytes follow its bitmap")
    return part


def read_bitmap(data: bytes) -> tuple[BitMap, int]:
    """A bitmap at the beginning of `data`, and its size in bytes. Written again, the bitmap must give the same bytes.

    Raises: ValueError if the bytes are not in order.
    """
    if not data:
        raise ValueError("there are no bytes")
    part = BitMap.deserialize(data)
    again = part.serialize()
    if data[: len(again)] != again:
        raise ValueError("its bitmap is not in order")
    return part, len(again)
