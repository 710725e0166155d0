"""Counting what a read does. A reader that is given no meter counts nothing."""

from __future__ import annotations

import io
from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import BinaryIO, cast

from pyroaring import BitMap

from paimon_py.expr.predicate import Predicate
from paimon_py.formats.base import OpenFile
from paimon_py.formats.parts import Parts
from paimon_py.storage.store import OpenRead


class Meter:
    """What was read so far; the numbers grow while batches come.

    Attributes:
        files_opened: data files opened.
        files_by_index: not opened: no living row can match by the file's index.
        files_by_key: not opened: they follow the last key of their run that can match.
        files_by_metadata: not opened: they hold no column that is wanted, their row count is all that counts.
        groups: row groups or stripes of the opened files; Avro has none.
        groups_by_statistics, groups_by_index: those of them that were left out, by what told so; statistics come first.
        groups_read: those of which rows came.
        rows_read: rows that came out of files, dead ones included, before anything was merged or filtered.
        rows_merged: rows that were left of them where each key has one row and the dead are gone.
        bytes_read: bytes of data files, their indexes and deletion vectors.
    """

    def __init__(self) -> None:
        self.files_opened = self.files_by_index = self.files_by_key = self.files_by_metadata = 0
        self.groups = self.groups_by_statistics = self.groups_by_index = self.groups_read = 0
        self.rows_read = self.rows_merged = self.bytes_read = 0

    def watch(self, store: OpenRead) -> OpenRead:
        """The same store; bytes that are read through it are counted."""
        return _WatchedStore(store, self)

    def on_open(self, file: OpenFile, predicate: Predicate | None, rows: BitMap | None) -> FileMeter:
        """Count an opened data file, from which rows will be asked. Bytes that tell its parts do not count."""
        bytes_read = self.bytes_read
        parts = file.parts(predicate, rows)
        self.bytes_read = bytes_read
        self.files_opened += 1
        self.groups += len(parts.row_counts)
        self.groups_by_statistics += parts.left_by_statistics
        self.groups_by_index += parts.left_by_positions
        return FileMeter(self, parts)


class FileMeter:
    """Counts the rows and parts of one file as they come, in file order."""

    def __init__(self, meter: Meter, parts: Parts) -> None:
        self._meter = meter
        self._ends = list(accumulate(parts.row_counts))
        self._counted = 0

    def took(self, position: int, count: int) -> None:
        """Count rows that came, the first of them from `position`."""
        self._meter.rows_read += count
        if not self._ends or not count:
            return
        first = max(bisect_right(self._ends, position), self._counted)
        self._counted = bisect_left(self._ends, position + count) + 1
        self._meter.groups_read += self._counted - first


class _WatchedStore:
    """Opens files of another store and counts what is read of them."""

    def __init__(self, store: OpenRead, meter: Meter) -> None:
        self._store = store
        self._meter = meter

    def open_read(self, path: str) -> BinaryIO:
        return cast(BinaryIO, _WatchedSource(self._store.open_read(path), self._meter))


class _WatchedSource(io.RawIOBase):
    """An open file whose bytes are counted as they are read."""

    def __init__(self, source: BinaryIO, meter: Meter) -> None:
        self._source = source
        self._meter = meter

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._source.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._source.seek(offset, whence)
        return self._source.tell()

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(size)
        self._meter.bytes_read += len(data)
        return data

    def close(self) -> None:
        if not self.closed:
            self._source.close()
        super().close()
