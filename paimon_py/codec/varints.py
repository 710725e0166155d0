"""Decodes Avro varints in bulk; each fits in one 8-byte word.

Source: Avro 1.11 specification, "Binary Encoding".
"""

from __future__ import annotations

import numpy as np

from paimon_py.codec.columns import Ints, Mask, Words

_STOP_BITS = np.uint64(0x8080_8080_8080_8080)
_DATA_BITS = np.uint64(0x7F7F_7F7F_7F7F_7F7F)
_ONE = np.uint64(1)
_GAPS = (
    (np.uint64(0x007F_007F_007F_007F), np.uint64(0x7F00_7F00_7F00_7F00), np.uint64(1)),
    (np.uint64(0x0000_3FFF_0000_3FFF), np.uint64(0x3FFF_0000_3FFF_0000), np.uint64(2)),
    (np.uint64(0x0000_0000_0FFF_FFFF), np.uint64(0x0FFF_FFFF_0000_0000), np.uint64(4)),
)
"""Masks and shifts that close the gaps between the 7-bit groups of a varint: 7 → 14 → 28 → 56 bits."""


def varints(words: Words) -> tuple[Words, Ints, Mask]:
    """The varints, still zigzag-encoded; their sizes in bytes; and a mask of those longer than eight bytes.

    Longer ones count as nine bytes, and only their first 56 bits are returned.
    """
    size, mask, is_long = _ends(words)
    values = words & mask & _DATA_BITS
    for keep, move, shift in _GAPS:
        values = (values & keep) | ((values & move) >> shift)
    return values, size, is_long


def _ends(words: Words) -> tuple[Ints, Words, Mask]:
    """The sizes, the bits of each word that belong to the varint, and whether the varint does not end in its word."""
    stop = ~words & _STOP_BITS
    low = stop & (~stop + _ONE)
    below = low - _ONE
    return (np.bitwise_count(below) >> 3).astype(np.int64) + 1, below | low, stop == 0


def unzigzag(values: Words) -> Ints:
    """Decode zigzag: the signed 64-bit numbers."""
    found: Ints = (values >> _ONE).view(np.int64) ^ -(values & _ONE).view(np.int64)
    return found
