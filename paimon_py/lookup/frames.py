"""A bounded cache of decoded rows. Data files never change, so a file and its columns identify an item."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

import pyarrow as pa

from paimon_py.lookup.key_index import KeyIndex
from paimon_py.spec.types import Field

_LOOSE_MAX = 4
"""The number of files outside a block that cause it to be rebuilt with them, which copies all of it."""
_BLOCK_MAX = 1 << 31
"""The maximum size in bytes of the strings of an Arrow array."""


class FrameId(NamedTuple):
    """Columns of a file, or of a bucket, in the types they are read with. `number`: that of `Columns`."""

    path: str
    number: int


class Columns(NamedTuple):
    """Columns, and a number that identifies them."""

    fields: tuple[Field, ...]
    number: int


class RowRange(NamedTuple):
    """Consecutive rows of a file; `start` is the position of the first."""

    start: int
    rows: pa.RecordBatch

    @property
    def stop(self) -> int:
        """The position after the last row."""
        stop: int = self.start + self.rows.num_rows
        return stop


class BucketBlock(NamedTuple):
    """The same columns of several files, concatenated. `places`: the first row and the number of rows of each file."""

    rows: pa.RecordBatch
    places: Mapping[FrameId, tuple[int, int]]

    def of(self, frame: FrameId) -> tuple[RowRange, ...]:
        """All rows of one file; empty if the block does not contain it."""
        place = self.places.get(frame)
        return () if place is None else (RowRange(0, self.rows.slice(*place)),)


class _Frame(NamedTuple):
    row_ranges: tuple[RowRange, ...]
    nbytes: int
    block: BucketBlock | None = None


class Frames:
    """Caches decoded columns of files, at most `max_bytes`; the least recently used items are evicted first.

    Indexes of keys use the remaining space, and are evicted first. The files of a block are evicted together.

    Threads may share the cache: a race only costs a second read.
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
        """Memory of all cached items."""
        return self._decoded_bytes.now() + self._index_bytes.now()

    def columns(self, fields: tuple[Field, ...]) -> Columns:
        """The columns with their number."""
        return Columns(fields, self._columns.setdefault(fields, next(self._numbers)))

    def get(self, frame: FrameId) -> tuple[RowRange, ...]:
        """The cached row ranges of these columns, by position; no two overlap."""
        held = self._use(frame)
        if held is not None:
            return held.row_ranges
        name = self._block_of.get(frame)
        block = None if name is None else self.block(name)
        return () if block is None else block.of(frame)

    def add(self, frame: FrameId, row_ranges: Iterable[RowRange]) -> None:
        """Cache more of some columns, unless these alone would exceed the limit; cached ranges are kept."""
        held = self._frames.get(frame, _Frame((), 0))
        before = held.nbytes
        for row_range in row_ranges:
            start, stop = row_range.start, row_range.stop
            kept = tuple(old for old in held.row_ranges if not (start <= old.start and old.stop <= stop))
            size = sum(old.rows.nbytes for old in kept) + row_range.rows.nbytes
            if row_range.rows.num_rows and size <= self.max_bytes:
                new = _outside(row_range, kept)
                together = tuple(sorted((*kept, new) if new.rows.num_rows else kept, key=_start))
                held = _Frame(together, sum(part.rows.nbytes for part in together))
        self._frames.pop(frame, None)
        self._frames[frame] = held
        self._decoded_bytes.add(held.nbytes - before)
        self._make_room()

    def block(self, bucket: FrameId) -> BucketBlock | None:
        """The joined columns of the files of a bucket, if any. `bucket`: its directory, and the columns."""
        held = self._use(bucket)
        return None if held is None else held.block

    def join(self, bucket: FrameId, files: Mapping[FrameId, int], living: Callable[[], Collection[str]]) -> None:
        """Concatenate columns of files of a bucket, so that rows of many files are taken at once.

        Only files that are cached whole are joined; joined files are kept while they are alive. Without memory for a
        copy, or with too few new files, nothing happens.

        Args:
            files: the number of rows of each. living: names of all files of the bucket.
        """
        known = self.block(bucket)
        lying = known.places if known is not None else {}
        whole = {
            frame: held.row_ranges[0].rows
            for frame, row_count in files.items()
            if frame not in lying and (held := self._frames.get(frame)) is not None
            if len(held.row_ranges) == 1 and is_whole(held.row_ranges, row_count)
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
        """The index of the keys of a bucket, if it is cached. `bucket`: its directory, and the columns of the key."""
        return self._indexes.get(bucket)

    def searches(self, bucket: FrameId) -> int:
        """The number of keys that were searched for file by file since the index of the bucket was built."""
        return self._searches.get(bucket, 0)

    def note_searches(self, bucket: FrameId, count: int) -> None:
        """Count searches for keys in a file."""
        self._searches[bucket] = self._searches.get(bucket, 0) + count

    def hold_index(self, bucket: FrameId, index: KeyIndex | None) -> None:
        """Cache an index in place of the existing one, unless it needs more space than decoded rows leave."""
        before = self._indexes.pop(bucket, None)
        self._index_bytes.add(0 if before is None else -before.nbytes)
        self._searches.pop(bucket, None)
        if index is not None and index.nbytes <= self.max_bytes - self.nbytes:
            self._indexes[bucket] = index
            self._index_bytes.add(index.nbytes)
            self._make_room()

    def room(self, bucket: FrameId) -> int:
        """The number of bytes that the index of a bucket may take."""
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
    """The total bytes of the items of a dictionary, without summing all of them after each change.

    The sum is recomputed after as many changes as there are items, which corrects updates lost by racing threads.
    """

    def __init__(self, held: Mapping[FrameId, _Frame | KeyIndex]) -> None:
        self._held = held
        self._nbytes = 0
        self._changes = 0

    def add(self, nbytes: int) -> None:
        """Record a change."""
        self._nbytes += nbytes
        self._changes += 1

    def now(self) -> int:
        """The total in bytes."""
        if self._changes > len(self._held):
            self._changes = 0
            self._nbytes = sum(item.nbytes for item in list(self._held.values()))
        return self._nbytes


def _block(files: Mapping[FrameId, pa.RecordBatch]) -> BucketBlock:
    """Copy files into one block, in order."""
    parts = list(files.values())
    columns = [pa.concat_arrays([part.column(at) for part in parts]) for at in range(parts[0].num_columns)]
    starts = itertools.accumulate((part.num_rows for part in parts), initial=0)
    places = {frame: (start, rows.num_rows) for (frame, rows), start in zip(files.items(), starts, strict=False)}
    return BucketBlock(pa.RecordBatch.from_arrays(columns, schema=parts[0].schema), places)


def _outside(row_range: RowRange, others: Iterable[RowRange]) -> RowRange:
    """The part of a row range outside of others, if it contains none of them; empty if one of them contains it."""
    start, stop = row_range.start, row_range.stop
    for other in others:
        if other.start <= start < other.stop:
            start = min(stop, other.stop)
        elif other.start < stop <= other.stop:
            stop = other.start
    return RowRange(start, row_range.rows.slice(start - row_range.start, stop - start))


def is_whole(row_ranges: Iterable[RowRange], row_count: int) -> bool:
    """Whether row ranges of a frame are all rows of its file."""
    held: int = sum(row_range.rows.num_rows for row_range in row_ranges)
    return held == row_count


def _start(row_range: RowRange) -> int:
    return row_range.start


def join_row_ranges(pieces: Iterable[RowRange]) -> list[RowRange]:
    """Join consecutive row ranges."""
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
