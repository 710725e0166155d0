"""Rows that are taken by position any number of times, held in memory or on local disk."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, ExitStack, suppress

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import Ints, from_numpy
from paimon_py.env import SpillFile, SpillPlace
from paimon_py.lsm.spill_errors import spilling
from paimon_py.write.streams import pieces


class KeptRows:
    """Rows in their order. The caller must call `close` at the end.

    Attributes:
        schema: of the rows.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._blocks: list[pa.RecordBatch] = []
        self._ends: Ints = np.zeros(0, np.int64)
        self._file: SpillFile | None = None
        self._reader: pa.ipc.RecordBatchFileReader | None = None
        self._open = ExitStack()
        self._last: tuple[int, pa.RecordBatch] | None = None

    def hold(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Keep rows in memory."""
        self._blocks = list(batches)
        self._ends = np.cumsum([block.num_rows for block in self._blocks], dtype=np.int64)

    def store(self, batches: Iterable[pa.RecordBatch], place: SpillPlace) -> None:
        """Keep rows on local disk.

        Raises: StorageError: the local disk failed.
        """
        counts = []
        with _explain("a temporary directory"):
            self._file = place.create()
        with _explain(self._file.path), self._file.open_write() as sink, pa.ipc.new_file(sink, self.schema) as writer:
            for batch in batches:
                for piece in pieces(batch):
                    writer.write_batch(piece)
                    counts.append(piece.num_rows)
        self._ends = np.cumsum(counts, dtype=np.int64)
        with _explain(self._file.path):
            self._reader = pa.ipc.open_file(self._open.enter_context(self._file.open_read()))

    def take(self, places: Ints) -> pa.RecordBatch:
        """The rows at some positions, which are ascending.

        Cost: for rows on disk, their blocks, one in memory at a time; the last one stays for the next call.
        Raises: StorageError: the local disk failed.
        """
        parts = []
        blocks = np.searchsorted(self._ends, places, side="right")
        for number in np.unique(blocks).tolist():
            block = self._block(number)
            first = int(self._ends[number]) - block.num_rows
            parts.append(block.take(from_numpy(places[blocks == number] - first, pa.int64())))
        rows = pa.Table.from_batches(parts, self.schema).combine_chunks().to_batches()
        return rows[0] if rows else pa.RecordBatch.from_arrays(
            [pa.nulls(0, kind) for kind in self.schema.types], schema=self.schema
        )  # fmt: skip

    def close(self) -> None:
        """Delete the rows on disk."""
        self._blocks, self._reader, self._last = [], None, None
        with suppress(OSError):
            self._open.close()
            if self._file is not None:
                self._file.delete()

    def _block(self, number: int) -> pa.RecordBatch:
        if self._reader is None or self._file is None:
            return self._blocks[number]
        if self._last is None or self._last[0] != number:
            with _explain(self._file.path):
                block = self._reader.get_batch(number)
                block.validate()
            self._last = (number, block)
        return self._last[1]


def _explain(path: str) -> AbstractContextManager[None]:
    return spilling("the values of update_rows", path, OSError, pa.ArrowException)
