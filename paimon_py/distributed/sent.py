"""Values that the processes of one step send to those of the next one: bytes, and what they are."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import BinaryIO, NamedTuple

import pyarrow as pa

from paimon_py.codec.row_size import pieces_of
from paimon_py.env import SpillFile, SpillPlace
from paimon_py.lsm.spill_errors import spilling

ROWS, KEYS, DONE, FAILED = b"rows", b"keys", b"done", b"fail"
"""Rows and keys as Arrow streams, the result of a process, or its error."""

CHANGED, NEW = b"chng", b"newr"
"""Rows to write, as Arrow streams: changed ones, and new ones, which come after all changed ones."""

RUN = b"runs"
"""A run of a process that assigned rows to buckets."""

COUNT = b"many"
"""The number of keys in a bucket."""

ENTRIES = b"entr"
"""Entries of manifests, as a manifest, with the place of the work that read them."""

_SENT_BYTES = 1 << 20
"""The approximate size of the rows that are sent together."""

_HEAD = struct.Struct(">i4sQ")


class Sent(NamedTuple):
    """Bytes for a process of the next step, and what they are."""

    process: int
    kind: bytes
    data: bytes


def send_rows(process: int, kind: bytes, rows: pa.RecordBatch) -> Iterator[Sent]:
    """Rows for a process, in pieces."""
    for piece in pieces_of(rows, _SENT_BYTES):
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
            writer.write_batch(piece)
        yield Sent(process, kind, sink.getvalue())


class HeldMessages:
    """Messages that are sent later, in their order: in memory, and beyond a limit on local disk."""

    def __init__(self, place: SpillPlace, limit_bytes: int) -> None:
        self._place = place
        self._limit = limit_bytes
        self._memory: list[Sent] = []
        self._size = 0
        self._file: SpillFile | None = None
        self._sink: BinaryIO | None = None

    def add(self, messages: Iterable[Sent]) -> None:
        """Keep messages. Raises: StorageError if the local disk is full."""
        for one in messages:
            self._memory.append(one)
            self._size += len(one.data)
            if self._size > self._limit:
                self._spill()

    def __iter__(self) -> Iterator[Sent]:
        """All messages; none can be added afterwards."""
        if self._file is not None and self._sink is not None:
            with spilling("rows to be sent", self._file.path, OSError):
                self._sink.close()
            with self._file.open_read() as source:
                while head := source.read(_HEAD.size):
                    process, kind, size = _HEAD.unpack(head)
                    yield Sent(process, kind, source.read(size))
        yield from self._memory

    def close(self) -> None:
        """Delete what is on disk."""
        if self._file is not None and self._sink is not None:
            with suppress(OSError):
                self._sink.close()
            with suppress(OSError):
                self._file.delete()
        self._memory, self._file, self._sink = [], None, None

    def _spill(self) -> None:
        with spilling("rows to be sent", "a temporary directory", OSError):
            if self._file is None or self._sink is None:
                self._file = self._place.create()
                self._sink = self._file.open_write()
            for process, kind, data in self._memory:
                self._sink.write(_HEAD.pack(process, kind, len(data)))
                self._sink.write(data)
        self._memory, self._size = [], 0
