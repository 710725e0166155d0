"""The distinct values of a column with the rows of each: the input of bitmap indexes.

Source: Java `BitmapFileIndex.Writer`, `RangeBitmap.Appender`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.columns import Bytes, Ints, Mask, Slices, combine, numpy_values, pad, slices_of, validity_mask
from paimon_py.codec.file_index.keys import KeyKind

_LENGTH_BYTES = 4


class DistinctKeys(NamedTuple):
    """The distinct keys of a column in ascending order, and the rows of each.

    Attributes:
        numbers: keys that are numbers; empty otherwise.
        strings: keys that are byte strings; empty otherwise.
        codes: the number of its key for every row, −1 for NULL.
    """

    numbers: Ints
    strings: Slices
    codes: Ints

    @property
    def key_count(self) -> int:
        """The number of keys."""
        return len(self.numbers) or len(self.strings.starts)

    @property
    def nulls(self) -> Ints:
        """Rows without a value."""
        return np.flatnonzero(self.codes < 0)

    def rows(self) -> tuple[Ints, Ints]:
        """All rows with a value, ordered by key, and the start of each key's rows (plus the end)."""
        order = np.argsort(self.codes, kind="stable")
        starts = np.searchsorted(self.codes[order], np.arange(self.key_count + 1))
        return order, starts


class Collector:
    """Collects the values of one column of a file, batch by batch.

    Memory: 8 bytes per number; 4 bytes per string, plus each distinct string of a batch once.
    """

    def __init__(self, kind: KeyKind) -> None:
        self._kind = kind
        self._parts: list[pa.Array] = []
        self._numbers: list[Ints] = []
        self._valid: list[Mask] = []

    def add(self, column: pa.Array) -> None:
        """Add the next rows."""
        if self._kind.is_text:
            self._parts.append(column.dictionary_encode())
            return
        self._numbers.append(self._kind.numbers(column).copy())
        self._valid.append(validity_mask(column))

    def groups(self) -> DistinctKeys:
        """The distinct keys of the collected rows."""
        if self._kind.is_text:
            return _text_groups(self._parts)
        numbers = np.concatenate([*self._numbers, np.empty(0, np.int64)])
        valid = np.concatenate([*self._valid, np.empty(0, np.bool_)])
        keys, codes = np.unique(numbers[valid], return_inverse=True)
        all_codes = np.full(len(numbers), -1, np.int64)
        all_codes[valid] = codes
        return DistinctKeys(keys, _no_strings(), all_codes)


def stored_keys(groups: DistinctKeys, kind: KeyKind, tails: Bytes) -> tuple[Bytes, Ints]:
    """Every key in stored form followed by its row of `tails`, all concatenated, and the size of each.

    Cost: no Python code per key.
    """
    if not kind.is_text:
        rows = np.concatenate([kind.store(groups.numbers), tails], axis=1)
        return rows.reshape(-1), np.full(len(rows), rows.shape[1], np.int64)
    lengths, width = groups.strings.lengths, tails.shape[1]
    sizes = lengths + _LENGTH_BYTES + width
    ends = np.cumsum(sizes)
    starts = ends - sizes
    out = np.zeros(int(ends[-1]) if len(ends) else 0, np.uint8)
    prefix = lengths.astype(">i4").view(np.uint8).reshape(-1, _LENGTH_BYTES)
    out[starts[:, None] + np.arange(_LENGTH_BYTES)] = prefix
    inside = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    out[np.repeat(starts + _LENGTH_BYTES, lengths) + inside] = groups.strings.data[
        np.repeat(groups.strings.starts, lengths) + inside
    ]
    out[(ends - width)[:, None] + np.arange(width)] = tails
    return out, sizes


def big_endian(*columns: Ints) -> Bytes:
    """Columns of 32-bit numbers side by side, as rows of bytes."""
    return np.stack(columns, axis=1).astype(">i4").view(np.uint8).reshape(len(columns[0]), 4 * len(columns))


def _no_strings() -> Slices:
    empty = np.empty(0, np.int64)
    return Slices(pad(np.empty(0, np.uint8)), empty, empty)


def _text_groups(parts: list[pa.Array]) -> DistinctKeys:
    if not parts:
        return DistinctKeys(np.empty(0, np.int64), _no_strings(), np.empty(0, np.int64))
    encoded: pa.DictionaryArray = combine(pa.chunked_array(parts).unify_dictionaries())
    dictionary = encoded.dictionary
    bare = dictionary.cast(pa.binary())
    order = numpy_values(pc.sort_indices(bare)).astype(np.int64)
    ranks = np.empty(len(order) + 1, np.int64)
    ranks[order] = np.arange(len(order))
    ranks[-1] = -1
    places = numpy_values(encoded.indices).astype(np.int64)
    codes = ranks[np.where(validity_mask(encoded.indices), places, -1)]
    strings = slices_of(bare)
    strings = Slices(strings.data, strings.starts[order], strings.lengths[order])
    return DistinctKeys(np.empty(0, np.int64), strings, codes)
