"""A bounded cache of decoded rows. Data files never change, so a file and its columns are name enough."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

import pyarrow as pa

from paimon_py.lookup.key_index import KeyIndex
from paimon_py.spec.types import Field

_LOOSE_MAX = 4
"""Files that may lie beside a block before the block is made anew with them, which copies the whole block."""
_BLOCK_MAX = 1 << 31
"""Bytes of the text of an Arrow array."""


class FrameId(NamedTuple):
    """Some columns of a file, or of a bucket, in the types they are read with. `number`: that of `Columns`."""

    path: str
    number: int


class Columns(NamedTuple):
    """Some columns, and a number that stands for them."""

    fields: tuple[Field, ...]
    number: int


class RowRange(NamedTuple):
    """Neighbouring rows of a file; `start` is the position of the first."""

    start: int
    rows: pa.RecordBatch

    @property
    def stop(self) -> int:
        """The position behind the last row."""
        stop: int = self.start + self.rows.num_rows
        return stop


class BucketBlock(NamedTuple):
    """The same columns of several files, one after the other. `places`: the first row of each, and how many it has."""

    rows: pa.RecordBatch
    places: Mapping[FrameId, tuple[int, int]]

    def of(self, frame: FrameId) -> tuple[RowRange, ...]:
        """All rows of one file; nothing if it is not here."""
        place = self.places.get(frame)
        return () if place is None else (RowRange(0, self.rows.slice(*place)),)


class _Frame(NamedTuple):
    stretches: tuple[RowRange, ...]
    nbytes: int
    block: BucketBlock | None = None


class Frames:
    """What was decoded of files, at most `max_bytes` of it; what was not used for longest goes first.

    Indexes of keys lie in the room that is left, and go before anything else. Files that lie in a block go together.

    Threads may share it: a race costs a second read, nothing else.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._frames: dict[FrameId, _Frame] = {}
        self._block_of: dict[FrameId, FrameId] = {}
        self._indexes: dict[FrameId, KeyIndex] = {}
        self._decoded_bytes = _Total(self._frames)
        self._index_bytes = _Total(self._indexes)
        self._searches: dict[FrameId, int] = {}
        self._columns: dict[tuple[Field, ...], int] = {}
        self._numbers = itertools.count()

    @property
    def nbytes(self) -> int:
        """Memory of everything held."""
        return self._decoded_bytes.now() + self._index_bytes.now()

    def columns(self, fields: tuple[Field, ...]) -> Columns:
        """Some columns with their number."""
        return Columns(fields, self._columns.setdefault(fields, next(self._numbers)))

    def get(self, frame: FrameId) -> tuple[RowRange, ...]:
        """What is held of these columns, by position; no two overlap."""
        held = self._use(frame)
        if held is not None:
            return held.stretches
        name = self._block_of.get(frame)
        block = None if name is None else self.block(name)
        return () if block is None else block.of(frame)

    def add(self, frame: FrameId, stretches: Iterable[RowRange]) -> None:
        """Hold more of some columns, as far as these alone do not exceed the limit; what is held already stays."""
        held = self._frames.get(frame, _Frame((), 0))
        before = held.nbytes
        for stretch in stretches:
            kept = tuple(old for old in held.stretches if not (stretch.start <= old.start and old.stop <= stretch.stop))
            size = sum(old.rows.nbytes for old in kept) + stretch.rows.nbytes
            if stretch.rows.num_rows and size <= self.max_bytes:
                new = _outside(stretch, kept)
                together = tuple(sorted((*kept, new) if new.rows.num_rows else kept, key=_start))
                held = _Frame(together, sum(part.rows.nbytes for part in together))
        self._frames.pop(frame, None)
        self._frames[frame] = held
        self._decoded_bytes.add(held.nbytes - before)
        self._make_room()

    def block(self, bucket: FrameId) -> BucketBlock | None:
        """Columns of the files of a bucket, if they were joined. `bucket`: its directory, and the columns."""
        held = self._use(bucket)
        return None if held is None else held.block

    def join(self, bucket: FrameId, files: Mapping[FrameId, int], living: Callable[[], Collection[str]]) -> None:
        """Put columns of files of a bucket one after the other, so that rows of many are taken at once.

        Only of those that are held whole; what lies there already stays if it lives. Without room for a copy, or if it
        is too early to make one, nothing happens.

        Args:
            files: how many rows each has. living: names of all files of the bucket.
        """
        known = self.block(bucket)
        lying = known.places if known is not None else {}
        whole = {
            frame: held.stretches[0].rows
            for frame, row_count in files.items()
            if frame not in lying and (held := self._frames.get(frame)) is not None
            if len(held.stretches) == 1 and is_whole(held.stretches, row_count)
        }
        if len(whole) < (2 if known is None else _LOOSE_MAX):
            return
        if known is not None:
            names = frozenset(living())
            kept = (frame for frame in lying if frame.path.rpartition("/")[2] in names)
            whole = {frame: known.rows.slice(*lying[frame]) for frame in kept} | whole
        nbytes = sum(rows.nbytes for rows in whole.values())
        if nbytes > min(self.max_bytes - self.nbytes, _BLOCK_MAX):
            return
        block = _block(whole)
        self._drop(bucket)
        for frame in whole:
            self._drop(frame)
            self._block_of[frame] = bucket
        self._frames[bucket] = held = _Frame((), block.rows.nbytes, block)
        self._decoded_bytes.add(held.nbytes)

    def index(self, bucket: FrameId) -> KeyIndex | None:
        """The index of the keys of a bucket, if one is held. `bucket`: its directory, and the columns of the key."""
        return self._indexes.get(bucket)

    def searches(self, bucket: FrameId) -> int:
        """How many keys were searched for file by file since the bucket has its index."""
        return self._searches.get(bucket, 0)

    def note_searches(self, bucket: FrameId, count: int) -> None:
        """Count searches for keys in a file."""
        self._searches[bucket] = self._searches.get(bucket, 0) + count

    def hold_index(self, bucket: FrameId, index: KeyIndex | None) -> None:
        """Hold an index instead of the one that is there, unless it needs more than what decoded rows leave."""
        before = self._indexes.pop(bucket, None)
        self._index_bytes.add(0 if before is None else -before.nbytes)
        self._searches.pop(bucket, None)
        if index is not None and index.nbytes <= self.max_bytes - self.nbytes:
            self._indexes[bucket] = index
            self._index_bytes.add(index.nbytes)
            self._make_room()

    def room(self, bucket: FrameId) -> int:
        """How many bytes the index of a bucket may have."""
        held = self._indexes.get(bucket)
        return self.max_bytes - self.nbytes + (held.nbytes if held is not None else 0)

    def _make_room(self) -> None:
        if self.nbytes <= self.max_bytes:
            return
        for bucket in list(self._indexes):
            if self.nbytes <= self.max_bytes:
                return
            index = self._indexes.pop(bucket, None)
            self._index_bytes.add(0 if index is None else -index.nbytes)
        for frame in list(self._frames):
            if self.nbytes <= self.max_bytes:
                return
            self._drop(frame)

    def _use(self, frame: FrameId) -> _Frame | None:
        held = self._frames.pop(frame, None)
        if held is not None:
            self._frames[frame] = held
        return held

    def _drop(self, frame: FrameId) -> None:
        dropped = self._frames.pop(frame, None)
        if dropped is None:
            return
        self._decoded_bytes.add(-dropped.nbytes)
        if dropped.block is not None:
            for each in dropped.block.places:
                self._block_of.pop(each, None)


class _Total:
    """The bytes of what a dictionary holds, without adding all of it up after each change.

    It is added up after as many changes as there are items: what racing threads failed to note does not stay.
    """

    def __init__(self, held: Mapping[FrameId, _Frame | KeyIndex]) -> None:
        self._held = held
        self._nbytes = 0
        self._changes = 0

    def add(self, nbytes: int) -> None:
        """Note a change."""
        self._nbytes += nbytes
        self._changes += 1

    def now(self) -> int:
        """All bytes."""
        if self._changes > len(self._held):
            self._changes = 0
            self._nbytes = sum(item.nbytes for item in list(self._held.values()))
        return self._nbytes


def _block(files: Mapping[FrameId, pa.RecordBatch]) -> BucketBlock:
    """Copies, one after the other."""
    parts = list(files.values())
    columns = [pa.concat_arrays([part.column(at) for part in parts]) for at in range(parts[0].num_columns)]
    starts = itertools.accumulate((part.num_rows for part in parts), initial=0)
    places = {frame: (start, rows.num_rows) for (frame, rows), start in zip(files.items(), starts, strict=False)}
    return BucketBlock(pa.RecordBatch.from_arrays(columns, schema=parts[0].schema), places)


def _outside(stretch: RowRange, others: Iterable[RowRange]) -> RowRange:
    """What of a stretch lies outside of others, of which it holds none whole; empty if one of them holds it."""
    start, stop = stretch.start, stretch.stop
    for other in others:
        if other.start <= start < other.stop:
            start = min(stop, other.stop)
        elif other.start < stop <= other.stop:
            stop = other.start
    return RowRange(start, stretch.rows.slice(start - stretch.start, stop - start))


def is_whole(stretches: Iterable[RowRange], row_count: int) -> bool:
    """Whether stretches of a frame are all rows of its file."""
    held: int = sum(stretch.rows.num_rows for stretch in stretches)
    return held == row_count


def _start(stretch: RowRange) -> int:
    return stretch.start


def join_stretches(pieces: Iterable[RowRange]) -> list[RowRange]:
    """Neighbouring stretches as one each."""
    out: list[RowRange] = []
    together: list[RowRange] = []
    for piece in pieces:
        if together and together[-1].stop != piece.start:
            out.append(_one(together))
            together = []
        together.append(piece)
    if together:
        out.append(_one(together))
    return out


def _one(together: list[RowRange]) -> RowRange:
    if len(together) == 1:
        return together[0]
    table = pa.Table.from_batches([piece.rows for piece in together]).combine_chunks()
    return RowRange(together[0].start, table.to_batches()[0])
