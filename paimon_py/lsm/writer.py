"""`LSMWriter` writes one partition and bucket of a primary-key table: takes rows and produces sorted level-0 files.

Source: format.md §8.2, §12.1, §13; Java `MergeTreeWriter`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing

import pyarrow as pa

from paimon_py.errors import StorageError
from paimon_py.files.layout import FileLayout
from paimon_py.files.whole_files import is_whole_file, whole_files
from paimon_py.files.writer import RollingWriter
from paimon_py.lsm.buffer import MergeBuffer
from paimon_py.spec.data_file import DataFile

_SYSTEM_BYTES = 16


class LSMWriter:
    """Buffers rows of one bucket and flushes them as sorted runs of level 0.

    `Table.writer()` opens one per partition and bucket. Files of one flush do not overlap; every flush creates newer
    ones. If the table uses its input as changelog, a flush also writes all rows as they came in.

    Attributes:
        partition: serialized BinaryRow.
        bucket: number of the bucket.
        tell: called during a flush with the number of rows written to files or merged with others.
    """

    def __init__(
        self, partition: bytes, bucket: int, buffer: MergeBuffer, open_files: Callable[[], RollingWriter],
        open_changelog: Callable[[], RollingWriter] | None = None, layout: FileLayout | None = None,
    ) -> None:  # fmt: skip
        """Write through `buffer` to files that `open_files` creates.

        `open_changelog`: creates the files for the input, if the buffer keeps versions. `layout`: that of the files, if
        `flush_together` may write them.
        """
        self.partition = partition
        self.bucket = bucket
        self.tell: Callable[[int], None] | None = None
        self._buffer = buffer
        self._open_files = open_files
        self._open_changelog = open_changelog
        self._layout = layout
        self._begun: list[RollingWriter] = []
        self._files: list[DataFile] = []
        self._changelog: list[DataFile] = []

    @property
    def buffered_bytes(self) -> int:
        """Memory of rows that are not in a file yet."""
        return self._buffer.size_bytes

    @property
    def waiting_bytes(self) -> int:
        """Always 0: this writer has no background work."""
        return 0

    def work(self) -> None:
        """Does nothing: rows are sorted and encoded when the buffer makes room."""

    @property
    def has_open_file(self) -> bool:
        """Always False: files are opened and finished within one flush."""
        return False

    @property
    def next_sequence(self) -> int:
        """The sequence number that the next row gets."""
        return self._buffer.next_sequence

    def write(self, batch: pa.RecordBatch, kinds: pa.Array | None = None) -> None:
        """Add rows of the table's schema; `kinds` is int8 (0 +I, 1 −U, 2 +U, 3 −D), None when all are +I."""
        self._buffer.add(batch, kinds)

    @property
    def has_spilled(self) -> bool:
        """Whether rows are stored on the local disk."""
        return self._buffer.has_spilled

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The finished files that were not handed over yet."""
        return tuple(self._files)

    @property
    def changelog(self) -> tuple[DataFile, ...]:
        """The finished changelog files that were not handed over yet."""
        return tuple(self._changelog)

    def free_memory(self) -> None:
        """Move buffered rows to the local disk, or to level 0 if the buffer cannot spill.

        Raises:
            StorageError: the store or the local disk failed; call `abort`.
        """
        if self._buffer.can_spill:
            self._buffer.spill()
        else:
            self.flush()

    def flush(self) -> None:
        """Sort and merge buffered rows and write them to level 0; does nothing if the buffer is empty.

        Raises:
            StorageError: the store or the local disk failed; call `abort`.
        """
        left = self._buffer.row_count
        if not left:
            return
        files, changelog = self._open_files(), None if self._open_changelog is None else self._open_changelog()
        self._begun += [files] if changelog is None else [files, changelog]
        with closing(self._buffer.drain(None if changelog is None else changelog.write)) as batches:
            for batch in batches:
                files.write(batch)
                if self.tell is not None:
                    self.tell(batch.num_rows)
                    left -= batch.num_rows
        new = files.close()
        if self.tell is not None:
            self.tell(left)
        if changelog is not None:
            self._changelog += changelog.close()
        self._files += new

    @property
    def is_small(self) -> bool:
        """Whether `flush_together` may write the rows: they are few, and one file whose layout allows it."""
        return (
            self._layout is not None
            and self._buffer.is_plain
            and is_whole_file(self._layout, self._buffer.row_count, self.flush_bytes)
        )

    @property
    def flush_bytes(self) -> int:
        """The memory of the buffered rows with their system columns."""
        return self._buffer.size_bytes + _SYSTEM_BYTES * self._buffer.row_count

    @classmethod
    def flush_together(cls, writers: Sequence[LSMWriter]) -> None:
        """Flush small buckets of one table: rows of all are sorted, merged and measured at once, then encoded file by
        file. The files are those that `flush` writes.

        Cost: two copies of all rows in memory.
        Raises: as `flush`.
        """
        counts = [writer._buffer.row_count for writer in writers]
        batch, cuts = MergeBuffer.drain_together([writer._buffer for writer in writers])
        layout = writers[0]._layout
        assert layout is not None
        for writer, file, count in zip(writers, whole_files(layout, batch, cuts), counts, strict=True):
            files = writer._open_files()
            writer._begun.append(files)
            files.add_whole(file.data, file.entry)
            writer._files += files.close()
            if writer.tell is not None:
                writer.tell(count)

    def take(self) -> tuple[DataFile, ...]:
        """Hand over the finished files, and those of `changelog`; they then belong to the caller."""
        files, self._files, self._changelog, self._begun = tuple(self._files), [], [], []
        return files

    def abort(self) -> None:
        """Discard buffered rows and delete spilled data and the files that were not handed over.

        Raises:
            StorageError: some could not be deleted; all were tried.
        """
        begun, self._begun, self._files, self._changelog = self._begun, [], [], []
        try:
            self._buffer.clear()
        finally:
            abort_all(begun)


def abort_all(writers: Iterable[RollingWriter]) -> None:
    """Abort every writer, even if some fail.

    Raises:
        StorageError: the first failure.
    """
    failed: StorageError | None = None
    for files in writers:
        try:
            files.abort()
        except StorageError as error:
            failed = failed or error
    if failed is not None:
        raise failed
