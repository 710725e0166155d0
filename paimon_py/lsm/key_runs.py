"""Keys as numbers for lookups in large sorted sets: sorted, compared exactly, each with its place.

A key whose columns take at most 64 bits together is one number. Any other key is its BinaryRow, and its hash says where
to search; the candidates are compared byte by byte.

Source: format.md §6, §7.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_py.codec.binary_row import encode, hash_rows
from paimon_py.codec.columns import (
    Int32s,
    Ints,
    Mask,
    Slices,
    Words,
    from_slices,
    gather_bytes,
    numpy_values,
    one_nan,
    ranges,
    slices_of,
)
from paimon_py.lsm.sort_encoding import fits_word, pack
from paimon_py.spec.types import DataType

AnyWords = npt.NDArray[np.unsignedinteger]

_PREFIX = 4
_WORD = 8
_NOTHING = np.empty(0, np.uint64)


class Keys(NamedTuple):
    """A sequence of keys.

    `words`: one number per key; the whole key (uint64) or its hash (uint32). With hashes, `data` contains the
    BinaryRows as words of eight bytes, one after the other, and `ends` the end of each.
    """

    words: AnyWords
    data: Words | None = None
    ends: Ints | None = None

    @property
    def starts(self) -> Ints:
        """The start of each row in `data`."""
        assert self.ends is not None
        starts = np.empty(len(self.ends), np.int64)
        starts[:1] = 0
        starts[1:] = self.ends[:-1]
        return starts

    @property
    def size_bytes(self) -> int:
        """Memory in bytes."""
        rest = 0 if self.data is None or self.ends is None else self.data.nbytes + self.ends.nbytes
        return self.words.nbytes + rest

    def take(self, rows: Ints) -> Keys:
        """The keys at the given rows, in this order."""
        if self.data is None or self.ends is None:
            return Keys(self.words[rows])
        starts = self.starts[rows]
        sizes = self.ends[rows] - starts
        return Keys(self.words[rows], self.data[ranges(starts, sizes)], np.cumsum(sizes))

    def slice(self, start: int, stop: int) -> Keys:
        """A range of the keys; shares memory, except for `ends`."""
        if self.data is None or self.ends is None:
            return Keys(self.words[start:stop])
        first = int(self.ends[start - 1]) if start else 0
        last = int(self.ends[stop - 1]) if stop else 0
        return Keys(self.words[start:stop], self.data[first:last], self.ends[start:stop] - first)


class Run(NamedTuple):
    """Keys in the order of their words, each once, and the place of each."""

    keys: Keys
    places: Ints

    @property
    def size_bytes(self) -> int:
        """Memory in bytes."""
        return self.keys.size_bytes + self.places.nbytes


Hash = Callable[[Sequence[pa.Array], Sequence[DataType]], Int32s]


def keys_of(columns: Sequence[pa.Array], types: Sequence[DataType], hashed: Hash = hash_rows) -> Keys:
    """The keys of rows.

    Shapes: columns without nulls.
    Cost: 2 ns a row and column for numbers of at most 64 bits together; otherwise that of a BinaryRow and its hash.
    """
    if fits_word(column.type for column in columns):
        return Keys(pack(columns))
    columns = [one_nan(column) for column in columns]
    rows = slices_of(encode(columns, types))
    sizes = rows.lengths - _PREFIX
    data = gather_bytes(Slices(rows.data, rows.starts + _PREFIX, sizes)).view(np.uint64)
    return Keys(hashed(columns, types).view(np.uint32), data, np.cumsum(sizes // _WORD))


def join_keys(parts: Sequence[Keys]) -> Keys:
    """Concatenate keys."""
    words = np.concatenate([part.words for part in parts])
    if parts[0].data is None:
        return Keys(words)
    data = np.concatenate([_NOTHING if part.data is None else part.data for part in parts])
    sizes = [0 if part.data is None else len(part.data) for part in parts]
    offsets = np.cumsum([0, *sizes[:-1]])
    ends = [part.ends + offset for part, offset in zip(parts, offsets.tolist(), strict=True) if part.ends is not None]
    return Keys(words, data, np.concatenate(ends))


def group_keys(keys: Keys) -> tuple[Ints, Mask]:
    """Rows in the order of their words, equal keys in order of arrival; and a mask of where keys begin in it."""
    order = np.argsort(keys.words, kind="stable")
    words = keys.words[order]
    same = words[1:] == words[:-1]
    if keys.data is not None and bool(same.any()):
        at = np.flatnonzero(same)
        equal = _equal(keys, order[at], keys, order[at + 1])
        if not equal.all():
            order, same = _sorted_out(keys, order, same)
    starts = np.ones(len(order), np.bool_)
    starts[1:] = ~same
    return order, starts


def merge_runs(runs: Sequence[Run]) -> Run:
    """Merge runs, oldest first, into one: if several contain a key, the newest place is kept.

    Cost: 20-40 ns a key; inputs and output are in memory at once.
    """
    if len(runs) == 1:
        return runs[0]
    keys = join_keys([run.keys for run in runs])
    places = np.concatenate([run.places for run in runs])
    order, starts = group_keys(keys)
    last = np.ones(len(order), np.bool_)
    last[:-1] = starts[1:]
    kept = order[last]
    return Run(keys.take(kept), places[kept])


def find(run: Run, asked: Keys) -> Ints:
    """The place of each key; −1 if the run does not contain it.

    Cost: 0.05-0.3 µs a key; less if the keys are in order.
    """
    found = np.full(len(asked.words), -1, np.int64)
    known = run.keys.words
    if not len(known):
        return found
    at = np.searchsorted(known, asked.words).astype(np.int64)
    rows = np.flatnonzero(at < len(known))
    rows = rows[known[at[rows]] == asked.words[rows]]
    if run.keys.data is None:
        found[rows] = run.places[at[rows]]
        return found
    while len(rows):
        equal = _equal(asked, rows, run.keys, at[rows])
        found[rows[equal]] = run.places[at[rows[equal]]]
        rows = rows[~equal]
        at[rows] += 1
        rows = rows[at[rows] < len(known)]
        rows = rows[known[at[rows]] == asked.words[rows]]
    return found


def _equal(left: Keys, left_rows: Ints, right: Keys, right_rows: Ints) -> Mask:
    """Whether rows with the same hashes are equal, pairwise."""
    assert left.data is not None and right.data is not None and left.ends is not None and right.ends is not None
    first, second = left.starts[left_rows], right.starts[right_rows]
    sizes = left.ends[left_rows] - first
    equal: Mask = sizes == right.ends[right_rows] - second
    rows = np.flatnonzero(equal)
    for word in range(int(sizes.max()) if len(sizes) else 0):
        rows = rows[sizes[rows] > word]
        differ = left.data[first[rows] + word] != right.data[second[rows] + word]
        equal[rows[differ]] = False
        rows = rows[~differ]
    return equal


def _sorted_out(keys: Keys, order: Ints, same: Mask) -> tuple[Ints, Mask]:
    """Resolve hash collisions: equal keys together, and a mask of the rows that equal the one before them."""
    assert keys.data is not None and keys.ends is not None
    in_company = np.zeros(len(order), np.bool_)
    in_company[1:] = same
    in_company[:-1] |= same
    at = np.flatnonzero(in_company)
    rows = order[at]
    starts = keys.starts[rows] * _WORD
    data = np.concatenate([keys.data, np.zeros(1, np.uint64)]).view(np.uint8)
    texts = from_slices(Slices(data, starts, keys.ends[rows] * _WORD - starts), pa.binary())
    codes = numpy_values(texts.dictionary_encode().indices).astype(np.int64)
    again = np.lexsort((codes, keys.words[rows]))
    order = order.copy()
    order[at] = rows[again]
    numbers = np.full(len(order), -1, np.int64)
    numbers[at] = codes[again]
    return order, same & (numbers[1:] == numbers[:-1])
