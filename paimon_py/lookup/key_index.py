"""Finds the rows of a key in several files: one sorted list for all files of a bucket, searched once.

Keys of at most eight bytes are in the list themselves. Other keys are hashed, and since hashes can collide, the caller
must compare the keys of the rows that are found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.binary_row.hash import hash_rows
from paimon_py.codec.columns import Ints, Mask, Words
from paimon_py.lsm.sort_encoding import fits_word, pack
from paimon_py.spec.types import Atomic, Field, Root

ROW_BYTES = 12
"""The maximum memory per row."""
_MANY = 1 << 19

Rows = npt.NDArray[np.uint32]

_LOW = np.uint64(32)
_LOW_BITS = np.uint64(0xFFFF_FFFF)
_FLOATS = frozenset({Root.FLOAT, Root.DOUBLE})


class Located(NamedTuple):
    """Rows of a file that have the word of a key: positions, ascending, and the number of the key."""

    positions: Ints
    keys: Ints


class EncodedKeys(NamedTuple):
    """The words of all keys of a file, by position."""

    name: str
    words: Words


class KeyIndex(NamedTuple):
    """Rows of files by the words of their keys.

    `words`: ascending, minus `base`; uint32 if they fit. `rows`: the row of each. `names`, `starts`: the files, and the
    number of the first row of each, plus one entry for the end. `is_sure`: whether located rows certainly have the key.
    `cells`, if there are many words: the number of words less than each multiple of 2 ** `shift`.
    """

    words: Rows | Words
    base: np.uint64
    rows: Rows
    names: tuple[str, ...]
    starts: Ints
    is_sure: bool
    cells: Rows | None = None
    shift: int = 0

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self.words.nbytes + self.rows.nbytes + (0 if self.cells is None else self.cells.nbytes)

    @property
    def row_count(self) -> int:
        """The number of rows of all files."""
        return len(self.words)

    def locate(self, asked: Words) -> dict[str, Located]:
        """The candidate rows of keys, for every file of the index.

        Shapes: `asked` — the word of each key, fastest if ascending.
        Cost: a binary search per key, another for keys with several rows, and a few ns per row found.
        """
        wanted, numbers = self._within(asked)
        first = self._less(wanted, np.less)
        counts = self._has(first, wanted).astype(np.int64)
        several = np.flatnonzero(self._has(first + counts, wanted))
        counts[several] = self._less(wanted[several], np.less_equal) - first[several]
        places = np.arange(counts.sum()) + np.repeat(first - (np.cumsum(counts) - counts), counts)
        return self._by_file(np.sort(self.rows[places].astype(np.uint64) << _LOW | np.repeat(numbers, counts)))

    def _less(self, wanted: Rows | Words, compare: np.ufunc) -> Ints:
        """The number of words that are less than each wanted one, or at most equal.

        Many words do not fit into the cache of a processor: a binary search over all of them waits for memory at every
        step, a search within one cell only at the last steps.
        """
        if self.cells is None:
            side: Literal["left", "right"] = "left" if compare is np.less else "right"
            found: Ints = np.searchsorted(self.words, wanted, side=side).astype(np.int64)
            return found
        cell = np.minimum(wanted >> self.words.dtype.type(self.shift), len(self.cells) - 2)
        low: Ints = self.cells[cell].astype(np.int64)
        high: Ints = self.cells[cell + 1].astype(np.int64)
        while (within := low < high).any():
            middle = (low + high) >> 1
            less = within & compare(self.words[np.minimum(middle, len(self.words) - 1)], wanted)
            low = np.where(less, middle + 1, low)
            high = np.where(within & ~less, middle, high)
        return low

    def _has(self, places: Ints, wanted: Rows | Words) -> Mask:
        """Whether words are at these places, which may be past the end."""
        there: Mask = places < len(self.words)
        there[there] = self.words[places[there]] == wanted[there]
        return there

    def _within(self, asked: Words) -> tuple[Rows | Words, Words]:
        """The words in the encoding of this index, ascending, and their numbers."""
        numbers = np.arange(len(asked), dtype=np.uint64)
        wanted: Rows | Words = asked - self.base
        if self.words.dtype == np.uint32:
            possible = wanted <= _LOW_BITS
            wanted, numbers = wanted[possible].astype(np.uint32), numbers[possible]
        if not (wanted[1:] >= wanted[:-1]).all():
            order = np.argsort(wanted)
            wanted, numbers = wanted[order], numbers[order]
        return wanted, numbers

    def _by_file(self, found: Words) -> dict[str, Located]:
        """Split combined rows and keys, ascending, by file."""
        rows, keys = (found >> _LOW).view(np.int64), (found & _LOW_BITS).view(np.int64)
        ends = np.searchsorted(rows, self.starts).tolist()
        return {
            name: Located(rows[low:high] - start, keys[low:high])
            for name, start, low, high in zip(self.names, self.starts.tolist(), ends, ends[1:], strict=False)
        }


def can_index(fields: Sequence[Field]) -> bool:
    """Whether equal keys have equal words: floats have no hash, since NaN has many encodings, and NULL has no word."""
    kinds = [field.type for field in fields]
    if not all(isinstance(kind, Atomic) and not kind.nullable for kind in kinds):
        return False
    return _are_words(fields) or not any(isinstance(kind, Atomic) and kind.root in _FLOATS for kind in kinds)


def key_words(columns: Sequence[pa.Array], fields: Sequence[Field]) -> Words:
    """A number for every key.

    Cost: 1-5 ns a row for keys of at most eight bytes, 5-120 ns for others.
    """
    if not _are_words(fields):
        return hash_rows(columns, [field.type for field in fields]).view(np.uint32).astype(np.uint64)
    return pack(columns)


def extend(
    index: KeyIndex | None, more: Sequence[EncodedKeys], living: Iterable[str], fields: Sequence[Field]
) -> KeyIndex | None:
    """Extend an index by at least one file, and drop its files that are no longer alive.

    Returns: None if there are too many rows for one index.
    Cost: 10 ns a row of the resulting index, up to 100 ns if its words do not fit into 32 bits; 20 ns more if a file
        is dropped.
    """
    parts: list[tuple[Rows | Words, Rows | None]] = []
    names: list[str] = []
    counts: list[int] = []
    if index is not None:
        kept = np.isin(np.array(index.names), np.array(list(living)))
        places, numbers = _living(index, kept)
        parts.append((index.words[places], numbers))
        names += [name for name, lives in zip(index.names, kept.tolist(), strict=True) if lives]
        counts += np.diff(index.starts)[kept].tolist()
    for file in more:
        parts.append((file.words, None))
        names.append(file.name)
        counts.append(len(file.words))
    starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    if starts[-1] > _LOW_BITS:
        return None
    words: Words = np.empty(starts[-1], np.uint64)
    rows = np.arange(starts[-1], dtype=np.uint32)
    at = 0
    for held, numbered in parts:
        here = slice(at, at + len(held))
        words[here] = held
        if numbered is not None and index is not None:
            words[here] += index.base
            rows[here] = numbered
        at = here.stop
    ascending, base, order = _sort(words, rows)
    return KeyIndex(ascending, base, order, tuple(names), starts, _are_words(fields), *_cells(ascending))


def _cells(words: Rows | Words) -> tuple[Rows | None, int]:
    """One cell per about four words, and the number of bits to shift; None for few or scattered words."""
    if len(words) < _MANY or words.dtype != np.uint32:
        return None, 0
    shift = max(0, int(words[-1]).bit_length() - (len(words) // 4).bit_length())
    cells = np.zeros((int(words[-1]) >> shift) + 2, np.uint32)
    np.cumsum(np.bincount(words >> np.uint32(shift)), out=cells[1:])
    return cells, shift


def _sort(words: Words, rows: Rows) -> tuple[Rows | Words, np.uint64, Rows]:
    """Rows in the order of their words; rows of a file ascend already. The arguments are overwritten."""
    base = words.min() if len(words) else np.uint64(0)
    words -= base
    if len(words) and words.max() > _LOW_BITS:
        order = np.argsort(words, kind="stable")
        return words[order], base, rows[order]
    words <<= _LOW
    words |= rows
    words.sort()
    rows[:] = words & _LOW_BITS
    words >>= _LOW
    return words.astype(np.uint32), base, rows


def _living(index: KeyIndex, kept: Mask) -> tuple[Ints | slice, Rows]:
    """The places in the index of the rows of the kept files, and their new row numbers."""
    if kept.all():
        return slice(None), index.rows
    counts = np.where(kept, np.diff(index.starts), 0)
    moves = index.starts[:-1] - (np.cumsum(counts) - counts)
    files = np.searchsorted(index.starts, index.rows, side="right") - 1
    places = np.flatnonzero(kept[files])
    return places, (index.rows[places] - moves[files[places]]).astype(np.uint32)


def _are_words(fields: Sequence[Field]) -> bool:
    return fits_word(to_arrow_type(field.type) for field in fields)
