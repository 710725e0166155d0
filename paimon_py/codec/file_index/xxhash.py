"""xxHash64 of many byte strings at once.

Source: the xxHash specification; Java's bloom filter hashes strings and binaries with it, seed 0.
"""

from __future__ import annotations

import numpy as np

from paimon_py.codec.columns import Bytes, Ints, Slices, Words, word_view

_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
_STRIPE = 32


def xxhash64(strings: Slices) -> Words:
    """The hash of every string.

    Shapes: in — n strings; out — (n,) uint64.
    Cost: a few array steps per 32 bytes of the longest string, each over the strings of at least that length.
    """
    order = np.argsort(-strings.lengths, kind="stable")
    starts, lengths = strings.starts[order], strings.lengths[order]
    words = word_view(strings.data)
    state = np.full(len(lengths), _P5, np.uint64)
    long = int(np.count_nonzero(lengths >= _STRIPE))
    if long:
        state[:long] = _stripes(words, starts[:long], lengths[:long] // _STRIPE)
    state += lengths.astype(np.uint64)
    state = _tail(words, strings.data, starts + lengths // _STRIPE * _STRIPE, lengths % _STRIPE, state)
    state ^= state >> np.uint64(33)
    state *= _P2
    state ^= state >> np.uint64(29)
    state *= _P3
    state ^= state >> np.uint64(32)
    out = np.empty_like(state)
    out[order] = state
    return out


def _stripes(words: Words, starts: Ints, counts: Ints) -> Words:
    """The state after all complete stripes of 32 bytes; strings are ordered longest first."""
    rows = len(starts)
    lanes = np.zeros((4, rows), np.uint64)
    with np.errstate(over="ignore"):
        lanes[0], lanes[1], lanes[3] = _P1 + _P2, _P2, np.uint64(0) - _P1
    for stripe in range(int(counts[0])):
        active = rows - int(np.searchsorted(counts[::-1], stripe, side="right"))
        at = starts[:active] + stripe * _STRIPE
        for lane in range(4):
            lanes[lane, :active] = _round(lanes[lane, :active], words[at + 8 * lane])
    state = _rotate(lanes[0], 1) + _rotate(lanes[1], 7) + _rotate(lanes[2], 12) + _rotate(lanes[3], 18)
    for lane in range(4):
        state = (state ^ _round(np.zeros(rows, np.uint64), lanes[lane])) * _P1 + _P4
    return state


def _tail(words: Words, data: Bytes, at: Ints, left: Ints, state: Words) -> Words:
    """The state after the last 0 to 31 bytes."""
    at, left = at.copy(), left.copy()
    for _ in range(3):
        rows = np.flatnonzero(left >= 8)
        mixed = state[rows] ^ _round(np.zeros(len(rows), np.uint64), words[at[rows]])
        state[rows] = _rotate(mixed, 27) * _P1 + _P4
        at[rows] += 8
        left[rows] -= 8
    rows = np.flatnonzero(left >= 4)
    mixed = state[rows] ^ ((words[at[rows]] & np.uint64(0xFFFFFFFF)) * _P1)
    state[rows] = _rotate(mixed, 23) * _P2 + _P3
    at[rows] += 4
    left[rows] -= 4
    for _ in range(3):
        rows = np.flatnonzero(left >= 1)
        mixed = state[rows] ^ (data[at[rows]].astype(np.uint64) * _P5)
        state[rows] = _rotate(mixed, 11) * _P1
        at[rows] += 1
        left[rows] -= 1
    return state


def _round(lane: Words, words: Words) -> Words:
    mixed: Words = _rotate(lane + words * _P2, 31) * _P1
    return mixed


def _rotate(values: Words, bits: int) -> Words:
    turned: Words = (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))
    return turned
