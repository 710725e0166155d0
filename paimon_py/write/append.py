"""The writer of one partition and bucket of a table without a primary key: writes rows to files in arrival order.

Source: format.md §12.1; Java `AppendOnlyWriter`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import combine
from paimon_py.codec.row_size import row_bytes
from paimon_py.files.layout import FileLayout
from paimon_py.files.whole_files import is_whole_file, whole_files
from paimon_py.files.writer import RollingWriter
from paimon_py.formats.base import DEFAULT_BLOCK_BYTES, ROW_GROUP_ROWS
from paimon_py.lsm.writer import abort_all
from paimon_py.spec.data_file import DataFile


class AppendWriter:
    """Collects rows up to a row group, then streams them into a file: memory is one row group.

    Attributes:
        partition: serialized BinaryRow.
        bucket: number of the bucket; 0 in tables without buckets.
        next_sequence: the sequence number that the next row gets.
        waiting_bytes: memory of the rows that `work` will write.
        tell: called with the number of rows written, by the thread that writes.
    """

    def __init__(
        self, partition: bytes, bucket: int, first_sequence: int, open_files: Callable[[int], RollingWriter],
        layout: FileLayout | None = None,
    ) -> None:  # fmt: skip
        """`open_files` begins files whose first row has the sequence number given. `layout`: that of the files, if
        `flush_together` may write them.
        """
        self.partition = partition
        self.bucket = bucket
        self.next_sequence = first_sequence
        self.tell: Callable[[int], None] | None = None
        self._open_files = open_files
        self._layout = layout
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0
        self._pending_bytes = 0
        self._waiting: list[pa.RecordBatch] = []
        self.waiting_bytes = 0
        self._current: RollingWriter | None = None
        self._begun: list[RollingWriter] = []
        self._files: list[DataFile] = []

    @property
    def buffered_bytes(self) -> int:
        """Memory of rows that are not in a file yet."""
        return self._pending_bytes

    @property
    def has_open_file(self) -> bool:
        """Whether a file is begun and not finished."""
        return self._current is not None

    def write(self, batch: pa.RecordBatch, kinds: pa.Array | None = None) -> None:
        """Add rows of the table's schema, which have no kinds. Complete row groups are written by `work`."""
        assert kinds is None, "append tables have no row kinds"
        if batch.num_rows == 0:
            return
        self.next_sequence += batch.num_rows
        self._pending.append(batch)
        self._pending_rows += batch.num_rows
        self._pending_bytes += row_bytes(batch)
        if self._pending_rows >= ROW_GROUP_ROWS or self._pending_bytes >= DEFAULT_BLOCK_BYTES:
            self._hand_over()

    @property
    def has_spilled(self) -> bool:
        """Always False: rows are written to files in the order of arrival."""
        return False

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The finished files that were not handed over yet."""
        return tuple(self._files)

    @property
    def changelog(self) -> tuple[DataFile, ...]:
        """Always empty: rows without a key have no changelog."""
        return ()

    def free_memory(self) -> None:
        """Finish the current file.

        Raises:
            StorageError: the store failed; call `abort`.
        """
        self.flush()

    def flush(self) -> None:
        """Finish the current file with all rows that were written.

        Raises:
            StorageError: the store failed; call `abort`.
        """
        self._hand_over(all_rows=True)
        self.work()
        if self._current is not None:
            self._files += self._current.close()
            self._current = None

    @property
    def is_small(self) -> bool:
        """Whether `flush_together` may write the rows: they are few, and one file whose layout allows it."""
        return (
            self._layout is not None
            and self._current is None
            and is_whole_file(self._layout, self._pending_rows, self._pending_bytes)
        )

    @property
    def flush_bytes(self) -> int:
        """The memory of the buffered rows."""
        return self._pending_bytes

    @classmethod
    def flush_together(cls, writers: Sequence[AppendWriter]) -> None:
        """Flush small buckets of one table: rows of all are measured at once, then encoded file by file. The files are
        those that `flush` writes.

        Cost: a copy of all rows in memory.
        Raises: as `flush`.
        """
        cuts = np.cumsum([0, *(writer._pending_rows for writer in writers)])
        rows = pa.Table.from_batches([batch for writer in writers for batch in writer._pending])
        batch = pa.RecordBatch.from_arrays([combine(column) for column in rows.columns], rows.schema.names)
        layout = writers[0]._layout
        assert layout is not None
        for writer, file in zip(writers, whole_files(layout, batch, cuts), strict=True):
            count, end = writer._pending_rows, writer.next_sequence
            writer._pending, writer._pending_rows, writer._pending_bytes = [], 0, 0
            files = writer._open_files(end - count)
            writer._begun.append(files)
            entry = msgspec.structs.replace(file.entry, min_sequence=end - count, max_sequence=end - 1)
            files.add_whole(file.data, entry)
            writer._files += files.close()
            if writer.tell is not None:
                writer.tell(count)

    def work(self) -> None:
        """Write the queued rows to the current file; several buckets can do this in parallel.

        Raises:
            StorageError: the store failed; call `abort`.
        """
        waiting, self._waiting, self.waiting_bytes = self._waiting, [], 0
        for batch in waiting:
            assert self._current is not None
            self._current.write(batch)
            if self.tell is not None:
                self.tell(batch.num_rows)

    def take(self) -> tuple[DataFile, ...]:
        """Hand over the finished files; they then belong to the caller."""
        files, self._files, self._begun = tuple(self._files), [], []
        return files

    def abort(self) -> None:
        """Discard buffered rows and delete the files that were not handed over.

        Raises:
            StorageError: some could not be deleted; all were tried.
        """
        begun, self._begun, self._files = self._begun, [], []
        self._pending, self._pending_rows, self._pending_bytes = [], 0, 0
        self._waiting, self.waiting_bytes = [], 0
        self._current = None
        abort_all(begun)

    def _hand_over(self, *, all_rows: bool = False) -> None:
        """Pass complete row groups to the file, which encodes them immediately; or all rows."""
        if not self._pending_rows:
            return
        if self._current is None:
            self._current = self._open_files(self.next_sequence - self._pending_rows)
            self._begun.append(self._current)
        whole = self._pending_rows // ROW_GROUP_ROWS * ROW_GROUP_ROWS
        left = self._pending_rows if all_rows or not whole else whole
        pending, self._pending, self._pending_rows, self._pending_bytes = self._pending, [], 0, 0
        for batch in pending:
            if left >= batch.num_rows:
                self._wait(batch)
                left -= batch.num_rows
                continue
            if left:
                self._wait(batch.slice(0, left))
                batch = batch.slice(left)
                left = 0
            self._pending.append(batch)
            self._pending_rows += batch.num_rows
            self._pending_bytes += row_bytes(batch)

    def _wait(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self.waiting_bytes += row_bytes(batch)
