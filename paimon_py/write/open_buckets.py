"""The open buckets of a writer: one bucket writer each, with a common bound on memory and open files."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar, Union

from sortedcontainers import SortedSet

from paimon_py.commit.changes import Bucket, Edit
from paimon_py.env import Pool
from paimon_py.errors import StorageError
from paimon_py.formats.base import SLICES_BYTES
from paimon_py.lsm.merge import WINDOW_BYTES
from paimon_py.parallel import Budget
from paimon_py.spec.data_file import DataFile
from paimon_py.write.bucket_writer import BucketWriter, Tell
from paimon_py.write.route import Routed

T = TypeVar("T")

OPEN_FILES_MAX = 64

_FLUSH_BYTES = 128 << 20
_WAITING_BYTES = 64 << 20
_FILE_COST = 1 << 20
_TOGETHER_MAX = 64
_SPILLED_COST = 3 * WINDOW_BYTES

Begin = Callable[[bytes, int, "int | None"], BucketWriter]
"""Opens a writer of a bucket, from partition, bucket and next sequence number (None: the bucket was never open)."""

Flush = Union[BucketWriter, "list[BucketWriter]"]
"""A bucket, or several small ones that are flushed together."""

Relieve = Callable[[Bucket, Iterable[DataFile]], None]
"""Called after a bucket was flushed to free memory, with its pending files."""


class OpenBuckets:
    """Writes routed rows to their buckets; if memory is short, the bucket with the most buffered rows is flushed.

    Attributes:
        buffered_bytes: memory of all rows that are not in files yet.
        tell: called with the number of rows written; None: no reports.
    """

    def __init__(self, begin: Begin, buffer_bytes: int, pool: Pool, relieve: Relieve | None = None) -> None:
        """`buffer_bytes`: the maximum memory of the rows of all buckets."""
        self._begin = begin
        self._pool = pool
        self._limit = buffer_bytes
        self._relieve = relieve
        self._writers: dict[Bucket, BucketWriter] = {}
        self._by_size = SortedSet()
        self._waiting: dict[Bucket, int] = {}
        self._waiting_limit = min(_WAITING_BYTES, buffer_bytes // 4)
        self._next_sequences: dict[Bucket, int] = {}
        self.buffered_bytes = 0
        self.tell: Tell | None = None

    def __len__(self) -> int:
        return len(self._writers)

    @property
    def finished_files(self) -> dict[Bucket, Edit]:
        """The finished files of every open bucket, in the order in which the buckets were opened."""
        return {
            place: Edit(added=writer.files, changelog=writer.changelog) for place, writer in self._writers.items()
        }

    def write(self, parts: Sequence[Routed]) -> None:
        """Add rows of some buckets. Encoding waits until several buckets can be encoded in parallel.

        Cost: logarithmic in the number of open buckets per bucket, plus the rows.
        """
        for routed in parts:
            self._add(routed)
            place = (routed.partition, routed.bucket)
            if waiting := self._writers[place].waiting_bytes:
                self._waiting[place] = waiting
        if sum(self._waiting.values()) > self._waiting_limit:
            places, self._waiting = self._waiting, {}
            working = [writer for place in places if (writer := self._writers[place]).waiting_bytes]
            self._together(_work, working, _waiting)

    def _add(self, routed: Routed) -> None:
        place = (routed.partition, routed.bucket)
        writer = self._writers.get(place)
        if writer is None:
            writer = self._begin(*place, self._next_sequences.get(place))
            writer.tell = self.tell
            self._writers[place] = writer
        before, had_file = writer.buffered_bytes, writer.has_open_file
        writer.write(routed.batch, routed.kinds)
        self._resize(place, before)
        if writer.has_open_file and not had_file:
            self._limit_open_files(place)
        while self.buffered_bytes > self._limit:
            self._make_room()

    def flush(self) -> None:
        """Write all rows to files, several buckets in parallel; rows on local disk come first.

        Raises: StorageError; call `abort`.
        """
        writers = sorted(self._writers.values(), key=lambda writer: not writer.has_spilled)
        self._together(_flush, _flushes(writers), _cost)
        self._by_size.clear()
        self._waiting = {}
        self.buffered_bytes = 0

    def _together(
        self,
        work: Callable[[T], Iterator[None]],
        items: Sequence[T],
        cost: Callable[[T], int],
    ) -> None:
        for _ in self._pool.streams(work, items, Budget(_FLUSH_BYTES, cost, _nothing)):
            pass

    def hand_over(self) -> None:
        """Close all buckets: their files then belong to another owner."""
        for place, writer in self._writers.items():
            self._next_sequences[place] = writer.next_sequence
            writer.take()
        self._writers = {}

    def abort(self) -> None:
        """Discard all rows, and delete everything that was not handed over, as far as the store allows."""
        writers, self._writers = list(self._writers.values()), {}
        self._by_size.clear()
        self._waiting = {}
        self.buffered_bytes = 0
        for writer in writers:
            with contextlib.suppress(StorageError):
                writer.abort()

    def _make_room(self) -> None:
        before, place = self._by_size[-1]
        writer = self._writers[place]
        writer.free_memory()
        self._resize(place, before)
        if self._relieve is not None:
            self._relieve(place, writer.files)

    def _limit_open_files(self, newest: Bucket) -> None:
        opened = [place for place, writer in self._writers.items() if writer.has_open_file]
        if len(opened) > OPEN_FILES_MAX:
            oldest = next(place for place in opened if place != newest)
            before = self._writers[oldest].buffered_bytes
            self._writers[oldest].flush()
            self._resize(oldest, before)

    def _resize(self, place: Bucket, before: int) -> None:
        """Record the current memory of a bucket."""
        now = self._writers[place].buffered_bytes
        self._by_size.discard((before, place))
        self._by_size.add((now, place))
        self.buffered_bytes += now - before


def _flushes(writers: Iterable[BucketWriter]) -> list[Flush]:
    """Groups of writers to flush together: large buckets one by one, then the small ones, many in a group."""
    flushes: list[Flush] = []
    small: list[BucketWriter] = []
    for writer in writers:
        if writer.is_small:
            small.append(writer)
        else:
            flushes.append(writer)
    group: list[BucketWriter] = []
    size = 0
    for writer in small:
        size += writer.flush_bytes
        if group and (size > SLICES_BYTES or len(group) == _TOGETHER_MAX):
            flushes.append(group)
            group, size = [], writer.flush_bytes
        group.append(writer)
    return [*flushes, group] if group else flushes


def _flush(item: Flush) -> Iterator[None]:
    if isinstance(item, list):
        type(item[0]).flush_together(item)
    else:
        item.flush()
    yield None


def _work(writer: BucketWriter) -> Iterator[None]:
    writer.work()
    yield None


def _waiting(writer: BucketWriter) -> int:
    return writer.waiting_bytes + _FILE_COST


def _cost(item: Flush) -> int:
    """The memory of a flush in addition to the rows, made contiguous, or merged from local disk."""
    if isinstance(item, list):
        return 2 * sum(writer.flush_bytes for writer in item) + _FILE_COST
    writer = item
    return _SPILLED_COST if writer.has_spilled else writer.buffered_bytes + _FILE_COST


def _nothing(_result: object) -> int:
    return 0
