"""The place of every key: an index of any size in bounded memory.

New places are stored in sorted runs in memory, the newest of which is the smallest, so that adding keys is cheap. When
they exceed the limit they are merged into one sorted run on local disk, in blocks that are read only if a requested key
may be in them. If several runs contain a key, the newest one is right.

Source: Java `GlobalIndexAssigner`, which keeps this in RocksDB; docs/decisions/0016.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any

import msgspec
import numpy as np

from paimon_py.codec.columns import Ints
from paimon_py.env import MAP_ALIGNMENT, SpillFile, SpillPlace
from paimon_py.errors import StorageError
from paimon_py.lsm.key_runs import Keys, Run, find, join_keys, merge_runs
from paimon_py.lsm.spill_errors import spilling

_BLOCK_KEYS = 1 << 18


class _Block(msgspec.Struct, frozen=True):
    """A block of keys of a run on disk. `parts`: type and length of the arrays, stored one after the other."""

    offset: int
    size_bytes: int
    first: int
    last: int
    parts: tuple[tuple[str, int], ...]


class _SpilledRun(msgspec.Struct, frozen=True):
    file: SpillFile
    blocks: tuple[_Block, ...]

    def find(self, asked: Keys) -> Ints:
        """Find keys as `key_runs.find` does; the keys must be in the order of their words."""
        found = np.full(len(asked.words), -1, np.int64)
        for block in self.blocks:
            start = int(np.searchsorted(asked.words, np.array(block.first, asked.words.dtype)))
            stop = int(np.searchsorted(asked.words, np.array(block.last, asked.words.dtype), side="right"))
            if stop > start:
                own = find(self.load(block), asked.slice(start, stop))
                found[start:stop] = np.where(own >= 0, own, found[start:stop])
        return found

    @property
    def size_bytes(self) -> int:
        """Disk space without the padding that aligns the blocks."""
        return sum(block.size_bytes for block in self.blocks)

    def pieces(self) -> Iterator[Run]:
        """All keys."""
        return map(self.load, self.blocks)

    def load(self, block: _Block) -> Run:
        """Map the keys of a block; only the parts that are used are read."""
        with _explain(self.file.path):
            data = self.file.map(block.offset, block.size_bytes)
        arrays: list[Any] = []
        at = 0
        for dtype, count in block.parts:
            arrays.append(np.frombuffer(data, dtype, count, at))
            at += _round_up(arrays[-1].nbytes, 8)
        return Run(Keys(arrays[0], *arrays[2:]), arrays[1])


class KeyPlaces:
    """Places of keys. The caller must call `clear` at the end."""

    def __init__(self, place: SpillPlace, limit_bytes: int) -> None:
        """`limit_bytes`: memory limit of the sorted runs; merging them takes up to three times as much."""
        self._place = place
        self._limit = limit_bytes
        self._memory: list[Run] = []
        self._spilled: list[_SpilledRun] = []

    def find(self, asked: Keys) -> Ints:
        """The place of each key; −1 if it has none.

        Shapes: keys in the order of their words.
        Cost: 0.1-0.5 µs a key in memory; every block of a run on disk that may contain one of the keys is mapped.
        Raises: StorageError: the local disk failed.
        """
        found = np.full(len(asked.words), -1, np.int64)
        left = np.arange(len(found))
        runs: list[Run | _SpilledRun] = [*reversed(self._memory), *reversed(self._spilled)]
        for run in runs:
            if not len(left):
                break
            rest = asked if len(left) == len(found) else asked.take(left)
            own = find(run, rest) if isinstance(run, Run) else run.find(rest)
            found[left] = own
            left = left[own < 0]
        return found

    def put(self, run: Run) -> None:
        """Assign new places to keys.

        Raises: StorageError: the local disk failed.
        """
        if not len(run.places):
            return
        newer = [run]
        size = len(run.places)
        while self._memory and len(self._memory[-1].places) <= 2 * size:
            newer.append(self._memory.pop())
            size += len(newer[-1].places)
        self._memory.append(merge_runs(newer[::-1]))
        if sum(each.size_bytes for each in self._memory) > self._limit:
            self._spill()

    def clear(self) -> None:
        """Discard all keys and delete the runs on disk, ignoring errors of the disk."""
        spilled, self._spilled, self._memory = self._spilled, [], []
        for run in spilled:
            _delete(run)

    def _spill(self) -> None:
        """Move the runs from memory to disk, as one run together with those on disk that are not much larger."""
        older: list[_SpilledRun] = []
        size = sum(run.size_bytes for run in self._memory)
        while self._spilled and self._spilled[-1].size_bytes <= 2 * size:
            older.append(self._spilled.pop())
            size += older[-1].size_bytes
        older.reverse()
        try:
            united = self._write(_merge([*(run.pieces() for run in older), *map(_pieces, self._memory)]))
        finally:
            for run in older:
                _delete(run)
        self._spilled.append(united)
        self._memory = []

    def _write(self, runs: Iterator[Run]) -> _SpilledRun:
        with _explain("a temporary directory"):
            file = self._place.create()
        blocks: list[_Block] = []
        try:
            with _explain(file.path), file.open_write() as sink:
                offset = 0
                for run in runs:
                    arrays = [run.keys.words, run.places]
                    arrays += [part for part in (run.keys.data, run.keys.ends) if part is not None]
                    data = b"".join(array.tobytes().ljust(_round_up(array.nbytes, 8), b"\0") for array in arrays)
                    parts = tuple((array.dtype.str, len(array)) for array in arrays)
                    first, last = int(run.keys.words[0]), int(run.keys.words[-1])
                    blocks.append(_Block(offset, len(data), first, last, parts))
                    sink.write(data.ljust(_round_up(len(data), MAP_ALIGNMENT), b"\0"))
                    offset += _round_up(len(data), MAP_ALIGNMENT)
        except BaseException:
            with suppress(OSError, StorageError):
                file.delete()
            raise
        return _SpilledRun(file, tuple(blocks))


class _Cursor:
    """The remaining part of one run during a merge."""

    def __init__(self, pieces: Iterator[Run]) -> None:
        self._pieces = pieces
        self.has_more = True
        self.run: Run | None = None
        self.load()

    def load(self) -> None:
        """Load the next piece as well."""
        piece = next(self._pieces, None)
        if piece is None:
            self.has_more = False
        elif self.run is None or not len(self.run.places):
            self.run = piece
        else:
            keys = join_keys([self.run.keys, piece.keys])
            self.run = Run(keys, np.concatenate([self.run.places, piece.places]))

    def take(self, bound: int | None) -> Run | None:
        """Remove and return the keys with words below a bound; None: all."""
        run = self.run
        if run is None or not len(run.places):
            return None
        words = run.keys.words
        count = len(words) if bound is None else int(np.searchsorted(words, np.array(bound, words.dtype)))
        self.run = Run(run.keys.slice(count, len(words)), run.places[count:])
        return Run(run.keys.slice(0, count), run.places[:count]) if count else None


def _merge(sources: Sequence[Iterator[Run]]) -> Iterator[Run]:
    """Merge runs, oldest first, into one, piece by piece.

    Words that a run may continue in its next piece wait for that piece.
    """
    cursors = [_Cursor(source) for source in sources]
    while True:
        waiting = [cursor for cursor in cursors if cursor.has_more]
        bound = min((_last(cursor) for cursor in waiting), default=None)
        taken = [run for cursor in cursors if (run := cursor.take(bound)) is not None]
        if taken:
            yield from _pieces(merge_runs(taken))
        if bound is None:
            return
        for cursor in waiting:
            if _last(cursor) == bound:
                cursor.load()


def _last(cursor: _Cursor) -> int:
    assert cursor.run is not None
    return int(cursor.run.keys.words[-1])


def _pieces(run: Run) -> Iterator[Run]:
    for start in range(0, len(run.places), _BLOCK_KEYS):
        stop = min(start + _BLOCK_KEYS, len(run.places))
        yield Run(run.keys.slice(start, stop), run.places[start:stop])


def _round_up(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def _delete(run: _SpilledRun) -> None:
    with suppress(OSError, StorageError):
        run.file.delete()


def _explain(path: str) -> AbstractContextManager[None]:
    return spilling("the key index", path, OSError)
