"""Counts what a read does. A reader without a meter counts nothing."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import BinaryIO, cast

from pyroaring import BitMap

from paimon_py.expr.predicate import Predicate
from paimon_py.formats.base import OpenFile
from paimon_py.formats.parts import Parts
from paimon_py.storage.range_reader import WrappedFile
from paimon_py.storage.store import OpenRead


class Meter:
    """Counters of a read; they grow while batches are produced.

    Attributes:
        files_opened: data files opened.
        files_by_index: files skipped because, by their index, no live row can match.
        files_by_key: files skipped because they follow the last matching key of their run.
        files_by_metadata: files skipped because only their row count is needed.
        groups: row groups or stripes of the opened files; Avro has none.
        groups_by_statistics, groups_by_index: row groups skipped by statistics (checked first) or by the index.
        groups_read: row groups from which rows were read.
        rows_read: rows read from files, including dead ones, before merging and filtering.
        rows_merged: rows left after merging equal keys and dropping dead rows.
        bytes_read: bytes of data files, their indexes and deletion vectors.
    """

    def __init__(self) -> None:
        self.files_opened = self.files_by_index = self.files_by_key = self.files_by_metadata = 0
        self.groups = self.groups_by_statistics = self.groups_by_index = self.groups_read = 0
        self.rows_read = self.rows_merged = self.bytes_read = 0

    def watch(self, store: OpenRead) -> OpenRead:
        """A wrapper of the store that counts bytes read through it."""
        return _WatchedStore(store, self)

    def on_open(self, file: OpenFile, predicate: Predicate | None, rows: BitMap | None) -> FileMeter:
        """Count an opened data file from which rows will be read. Bytes read to list its parts do not count."""
        bytes_read = self.bytes_read
        parts = file.parts(predicate, rows)
        self.bytes_read = bytes_read
        self.files_opened += 1
        self.groups += len(parts.row_counts)
        self.groups_by_statistics += parts.left_by_statistics
        self.groups_by_index += parts.left_by_positions
        return FileMeter(self, parts)


class FileMeter:
    """Counts the rows and parts of one file as they are read, in file order."""

    def __init__(self, meter: Meter, parts: Parts) -> None:
        self._meter = meter
        self._ends = list(accumulate(parts.row_counts))
        self._counted = 0

    def took(self, position: int, count: int) -> None:
        """Count rows that were read, starting at `position`."""
        self._meter.rows_read += count
        if not self._ends or not count:
            return
        first = max(bisect_right(self._ends, position), self._counted)
        self._counted = bisect_left(self._ends, position + count) + 1
        self._meter.groups_read += self._counted - first


class _WatchedStore:
    """Opens files of another store and counts the bytes read."""

    def __init__(self, store: OpenRead, meter: Meter) -> None:
        self._store = store
        self._meter = meter

    def open_read(self, path: str) -> BinaryIO:
        return cast(BinaryIO, _WatchedSource(self._store.open_read(path), self._meter))


class _WatchedSource(WrappedFile):
    """An open file whose bytes are counted as they are read."""

    def __init__(self, source: BinaryIO, meter: Meter) -> None:
        super().__init__(source)
        self._meter = meter

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self._meter.bytes_read += len(data)
        return data
