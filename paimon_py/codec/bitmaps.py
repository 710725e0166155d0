"""Roaring bitmaps of 32-bit positions, to and from numpy arrays and their portable bytes.

Source: Java `RoaringBitmap32`; the portable format of the Roaring libraries.
"""

from __future__ import annotations

import array

import numpy as np
from pyroaring import BitMap

from paimon_py.codec.columns import Ints


def bitmap_of(positions: Ints) -> BitMap:
    """The bitmap of positions in any order; only the lower 32 bits are used."""
    low = np.sort(positions & 0xFFFFFFFF).astype(np.uint32)
    return BitMap(array.array("I", low.tobytes()))


def positions_of(bitmap: BitMap) -> Ints:
    """The positions, ascending."""
    return np.frombuffer(bitmap.to_array(), np.uint32).astype(np.int64)


def bitmap_bytes(bitmap: BitMap) -> bytes:
    """The bytes that Java would write: run containers where they are shorter."""
    copy = BitMap(bitmap)
    copy.run_optimize()
    data: bytes = copy.serialize()
    return data


def whole_bitmap(data: bytes) -> BitMap:
    """Decode a bitmap that fills `data`.

    Raises: ValueError if the bytes are invalid, or longer than the bitmap.
    """
    part, size = read_bitmap(data)
    if size != len(data):
        raise ValueError(f"{len(data) - size} bytes follow its bitmap")
    return part


def read_bitmap(data: bytes) -> tuple[BitMap, int]:
    """Decode a bitmap at the beginning of `data`; returns it and its size in bytes. Encoding it again must give the
    same bytes.

    Raises: ValueError if the bytes are invalid.
    """
    if not data:
        raise ValueError("there are no bytes")
    part = BitMap.deserialize(data)
    again = part.serialize()
    if data[: len(again)] != again:
        raise ValueError("its bitmap is not in order")
    return part, len(again)
