"""What the processes of one step send to those of the next one: bytes, and what they are."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from paimon_py.codec.row_size import pieces_of

ROWS, KEYS, DONE, FAILED = b"rows", b"keys", b"done", b"fail"
"""Rows and keys as Arrow streams, the result of a process, or its error."""

_SENT_BYTES = 1 << 20
"""The approximate size of the rows that are sent together."""


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
