"""The hash of BinaryRows, computed from columns without building the rows.

Source: format.md §7.1; Java `BinaryRow.hashCode`, `MurmurHashUtils.hashBytesByWords`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_py.codec.binary_row.encode import column_slots, header_words, place
from paimon_py.codec.binary_row.slots import Slots
from paimon_py.codec.columns import Int32s, Ints, Slices, Words, combine, word_view
from paimon_py.spec.types import DataType

Hashes = npt.NDArray[np.uint32]

SEED = 42
CHUNK_ROWS = 65_536
_C1 = np.uint32(0xCC9E2D51)
_C2 = np.uint32(0x1B873593)
_ADD = np.uint32(0xE6546B64)
_F1 = np.uint32(0x85EBCA6B)
_F2 = np.uint32(0xC2B2AE35)
_FEW = 8
_TAIL_MASKS = np.array([0xFFFF_FFFF_FFFF_FFFF] + [(1 << (8 * n)) - 1 for n in range(1, 8)], np.uint64)


def hash_rows(columns: Sequence[pa.Array | pa.ChunkedArray], types: Sequence[DataType]) -> Int32s:
    """`BinaryRow.hashCode` of every row of the given columns.

    Shapes: in — columns of equal length n ≥ 0, at least one; out — (n,) int32.
    Cost: 5–120 ns per row; works in chunks, so memory stays small.
    """
    arrays = [combine(column) for column in columns]
    count = len(arrays[0])
    out = np.empty(count, np.uint32)
    for start in range(0, count, CHUNK_ROWS):
        slots = [column_slots(a.slice(start, CHUNK_ROWS), t) for a, t in zip(arrays, types, strict=True)]
        out[start : start + CHUNK_ROWS] = _hash_chunk(slots, min(CHUNK_ROWS, count - start))
    return out.view(np.int32)


def hash_row(row: bytes) -> int:
    """`BinaryRow.hashCode` of one serialized row (with its arity prefix)."""
    words = np.frombuffer(row, "<u4", offset=4)
    hashes = np.full(1, SEED, np.uint32)
    for at in range(len(words)):
        hashes = _mix(hashes, words[at : at + 1].copy())
    return int(_finish(hashes, 4 * len(words)).view(np.int32)[0])


def hash_words(words: Hashes) -> Int32s:
    """The hash of rows of four bytes each, as Spark hashes an INT column; `words` is overwritten."""
    return _finish(_mix(np.full(len(words), SEED, np.uint32), words), 4).view(np.int32)


def _hash_chunk(slots: Sequence[Slots], count: int) -> Hashes:
    hashes = np.full(1, SEED, np.uint32)
    for header in header_words(slots):
        hashes = _mix_zero(_mix_zero(hashes)) if header is None else _mix_words(hashes, header)
    placed, length = place(slots)
    for words, _ in placed:
        hashes = _mix_words(hashes, words)
    hashes = np.broadcast_to(hashes, (count,)) if len(hashes) != count else hashes
    for column in slots:
        if column.tail is not None:
            for k in range(column.tail.shape[1]):
                hashes = _mix_words(hashes, column.tail[:, k])
        elif column.items is not None:
            hashes = _mix_items(hashes, column.items)
    return _finish(hashes, length)


def _mix(hashes: Hashes, words: Hashes) -> Hashes:
    """One Murmur round; `words` is overwritten."""
    words *= _C1
    turned = words >> np.uint32(17)
    words <<= np.uint32(15)
    words |= turned
    words *= _C2
    words ^= hashes
    return _stir(words)


def _mix_zero(hashes: Hashes) -> Hashes:
    return _stir(hashes.copy())


def _stir(hashes: Hashes) -> Hashes:
    turned = hashes >> np.uint32(19)
    hashes <<= np.uint32(13)
    hashes |= turned
    hashes *= np.uint32(5)
    hashes += _ADD
    return hashes


def _mix_words(hashes: Hashes, words: Words) -> Hashes:
    """Mix both halves of 8-byte words, the low half first."""
    low = _mix(hashes, words.astype(np.uint32))
    high = (words >> np.uint64(32)).astype(np.uint32)
    return _mix(low, high) if high.any() else _stir(low)


def _mix_items(hashes: Hashes, items: Slices) -> Hashes:
    """Mix all words of each item, zero-padded, into the hash of its row.

    Rows are ordered longest first, so that each round works on a shrinking prefix; the last few are hashed one by one.
    """
    rows = np.flatnonzero(items.lengths)
    if not len(rows):
        return hashes
    counts = (items.lengths[rows] + 7) >> 3
    order = _longest_first(counts)
    rows, counts = rows[order], counts[order]
    starts, lengths = items.starts[rows], items.lengths[rows]
    active = len(rows) - np.searchsorted(counts[::-1], np.arange(int(counts[0]) + 1), "right")
    view = word_view(items.data)
    masks = _TAIL_MASKS[lengths & 7]
    mixed = hashes[rows]
    rounds = int(counts[0])
    for index in range(rounds):
        alive, ending = int(active[index]), int(active[index + 1])
        if alive <= _FEW and rounds - index > _FEW:
            _mix_few(mixed, items, rows[:alive], index)
            break
        words = view[starts[:alive] + 8 * index]
        words[ending:] &= masks[ending:alive]
        mixed[:alive] = _mix_words(mixed[:alive], words)
    out: Hashes = hashes.copy()
    out[rows] = mixed
    return out


def _longest_first(counts: Ints) -> Ints:
    """The order of falling counts, by radix sort if numpy has one."""
    most = int(counts.max())
    keys = most - counts
    if most < 0x100:
        return np.argsort(keys.astype(np.uint8), kind="stable")
    return np.argsort(keys.astype(np.uint16) if most < 0x1_0000 else keys, kind="stable")


def _mix_few(mixed: Hashes, items: Slices, rows: Ints, done: int) -> None:
    """Mix the remaining words of a few very long items, as plain integers."""
    for position, row in enumerate(rows):
        start, length = int(items.starts[row]) + 8 * done, int(items.lengths[row]) - 8 * done
        data = items.data[start : start + length].tobytes()
        data += bytes(-len(data) % 8)
        value = int(mixed[position])
        for word in np.frombuffer(data, "<u4").tolist():
            word = word * 0xCC9E2D51 & 0xFFFF_FFFF
            word = (word << 15 | word >> 17) & 0xFFFF_FFFF
            value ^= word * 0x1B873593 & 0xFFFF_FFFF
            value = (value << 13 | value >> 19) & 0xFFFF_FFFF
            value = (value * 5 + 0xE6546B64) & 0xFFFF_FFFF
        mixed[position] = value


def _finish(hashes: Hashes, length: int | Ints) -> Hashes:
    out: Hashes = hashes ^ np.asarray(length, np.uint32)
    out ^= out >> np.uint32(16)
    out *= _F1
    out ^= out >> np.uint32(13)
    out *= _F2
    out ^= out >> np.uint32(16)
    return out
