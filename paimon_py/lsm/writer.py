"""The writer of one partition and bucket of a primary-key table: rows in, sorted level-0 files out.

Source: format.md §8.2, §12.1, §13; Java `MergeTreeWriter`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing

import pyarrow as pa

from paimon_py.errors import StorageError
from paimon_py.files.writer import RollingWriter
from paimon_py.lsm.buffer import MergeBuffer
from paimon_py.spec.data_file import DataFile


class LSMWriter:
    """Buffers rows of one bucket and flushes them as sorted runs of level 0.

    `Table.writer()` opens one per partition and bucket. Files of one flush do not overlap; every flush makes newer
    ones. Where the table wants its input as changelog, a flush also writes all rows as they came in.

    Attributes:
        partition: serialized BinaryRow.
        bucket: number of the bucket.
        tell: is told of rows that came in and are in files now, or were merged with others; by whoever flushes.
    """

    def __init__(
        self, partition: bytes, bucket: int, buffer: MergeBuffer, open_files: Callable[[], RollingWriter],
        open_changelog: Callable[[], RollingWriter] | None = None,
    ) -> None:  # fmt: skip
        """Write through `buffer` into files that `open_files` begins; the input into those of `open_changelog`, if
        the buffer keeps versions."""
        self.partition = partition
        self.bucket = bucket
        self.tell: Callable[[int], None] | None = None
        self._buffer = buffer
        self._open_files = open_files
        self._open_changelog = open_changelog
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
        """Nothing: rows are sorted and encoded when the buffer makes room."""

    @property
    def has_open_file(self) -> bool:
        """Never: files are begun and finished within one flush."""
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
        """Whether rows lie on the local disk."""
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
        """Move what is buffered to the local disk, or to level 0 if it may not be spilled.

        Raises:
            StorageError: the store or the local disk failed; call `abort`.
        """
        if self._buffer.can_spill:
            self._buffer.spill()
        else:
            self.flush()

    def flush(self) -> None:
        """Sort and merge what is buffered and write it to level 0; nothing happens if nothing is buffered.

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

    def take(self) -> tuple[DataFile, ...]:
        """Hand over the files that are finished, and those of `changelog`; they are the caller's from now on."""
        files, self._files, self._changelog, self._begun = tuple(self._files), [], [], []
        return files

    def abort(self) -> None:
        """Forget what is buffered and delete what was spilled and the files that were not handed over.

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
