"""Writes batches to data files of a target size.

Source: format.md §8, §9, §12.1; Java `RollingFileWriter`, `KeyValueDataFileWriter`, `RowDataFileWriter`.
"""

from __future__ import annotations

from typing import BinaryIO

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.binary_row import encode_few
from paimon_py.codec.columns import from_numpy, numpy_values
from paimon_py.codec.file_index.container import encode as encode_indexes
from paimon_py.codec.pack_references import Pack, encode_packs, packs_of
from paimon_py.codec.row_size import row_bytes
from paimon_py.env import Clock
from paimon_py.errors import PaimonError
from paimon_py.files.blob_writer import BlobColumnsWriter
from paimon_py.files.file_index import FileIndexWriter, Indexes
from paimon_py.files.layout import FileLayout
from paimon_py.files.naming import FileNames
from paimon_py.files.physical import key_copy
from paimon_py.files.places import BucketPlace
from paimon_py.files.stats import stats_of
from paimon_py.formats.base import ColumnBounds, FileWriter, encoding
from paimon_py.spec.blobs import REFERENCES_SUFFIX
from paimon_py.spec.data_file import EMPTY_ROW, EMPTY_STATS, DataFile, Stats
from paimon_py.spec.file_indexes import INDEX_SUFFIX
from paimon_py.spec.schema import SEQUENCE_NUMBER, VALUE_KIND
from paimon_py.spec.types import Field
from paimon_py.storage.store import Create, FileTakenError, new_file

MIN_STEP_ROWS = 1000
"""The size of a file is checked after at least this number of rows, as in Java."""

_STEPS_PER_FILE = 32


class RollingWriter:
    """Writes batches to consecutive files; at most one is open.

    After an error only `abort` may be called.
    """

    def __init__(
        self,
        store: Create,
        place: BucketPlace | str,
        names: FileNames,
        layout: FileLayout,
        clock: Clock,
        *,
        first_sequence: int = 0,
    ) -> None:
        """Write files to `place`; a string is a directory of `store`.

        `first_sequence`: the sequence number of the first row of an append table; rows of primary-key tables have their
        own.
        """
        self._store = store
        self._place = BucketPlace(place) if isinstance(place, str) else place
        self._names = names
        self._layout = layout
        self._clock = clock
        self._next_sequence = first_sequence
        self._open: _OpenFile | None = None
        self._beside: BlobColumnsWriter | None = None
        if layout.apart:
            self._beside = BlobColumnsWriter(
                store, self._place, names, layout.apart, schema_id=layout.schema_id,
                target_bytes=layout.apart_target_bytes,
            )  # fmt: skip
        self._vectors: RollingWriter | None = None
        self._paths: list[str] = []
        self._files: list[DataFile] = []

    @property
    def row_count(self) -> int:
        """Rows written so far."""
        return sum(file.row_count for file in self._files if not file.is_apart) + (self._open.rows if self._open else 0)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows; begins a new file when the current one is large enough.

        Shapes: append tables — the table's columns; primary-key tables — `_SEQUENCE_NUMBER`, `_VALUE_KIND` and the
            table's columns, sorted by key, without repeated keys except in changelog files.
        Cost: no copies; one pass over sequence numbers and kinds.
        """
        if batch.num_rows == 0:
            return
        step = self._step(batch)
        start = 0
        while start < batch.num_rows:
            if self._open is None:
                self._open = self._begin()
            count = min(step, self._layout.target_rows - self._open.rows, batch.num_rows - start)
            piece = batch.slice(start, count) if count < batch.num_rows else batch
            self._open.add(piece, self._layout.physical(piece))
            if self._beside is not None:
                self._beside.add(piece, self._clock.local_millis())
            if self._layout.vectors is not None:
                self._vectors = self._vectors or self._begin_vectors(self._layout.vectors)
                self._vectors.write(piece)
            start += count
            if self._open.is_full():
                self._finish()

    def add_whole(self, data: bytes, entry: DataFile) -> None:
        """Write a file that is already encoded; its entry lacks name, place and time."""
        name, external_path, sink = self._new_sink()
        try:
            sink.write(data)
        finally:
            sink.close()
        now = self._clock.local_millis()
        self._files.append(msgspec.structs.replace(
            entry, name=name, size_bytes=len(data), external_path=external_path, creation_time_millis=now
        ))  # fmt: skip

    def close(self) -> tuple[DataFile, ...]:
        """Finish the last file and return all files, in order; empty if there were no rows."""
        if self._open is not None:
            self._finish()
        return tuple(self._files)

    def abort(self) -> None:
        """Delete every started file; a file that already existed under the name belongs to another writer and is kept.

        Raises:
            StorageError: some could not be deleted; all were tried.
        """
        failed: PaimonError | None = None
        if self._open is not None:
            opened, self._open = self._open, None
            opened.writer.abort()
            try:
                opened.sink.close()
            except PaimonError as error:
                failed = error
        paths, self._paths, self._files = self._paths, [], []
        if self._beside is not None:
            try:
                self._beside.abort()
            except PaimonError as error:
                failed = failed or error
            paths += self._beside.paths
        if self._vectors is not None:
            try:
                self._vectors.abort()
            except PaimonError as error:
                failed = failed or error
        for path in paths:
            try:
                self._store.delete(path)
            except PaimonError as error:
                failed = failed or error
        if failed is not None:
            raise failed

    def _begin(self) -> _OpenFile:
        name, external_path, sink = self._new_sink()
        try:
            return _OpenFile(name, external_path, sink, self._layout)
        except BaseException:
            sink.close()
            raise

    def _new_sink(self) -> tuple[str, str | None, BinaryIO]:
        """The name of the next file, its external path if any, and a sink."""
        layout = self._layout
        name_of = self._names.changelog if layout.is_changelog else self._names.data
        kind = f"vector.{layout.format_name}" if layout.is_vectors else layout.format_name
        name = name_of(kind, layout.settings.compression)
        path, external_path = self._place.locate(name)
        self._paths.append(path)
        try:
            return name, external_path, self._store.open_write(path)
        except FileTakenError:
            self._paths.pop()  # the file belongs to another writer
            raise

    def _finish(self) -> None:
        assert self._open is not None
        file = self._open.finish(self._clock.local_millis(), self._next_sequence)
        opened, self._open = self._open, None
        if opened.index is not None:
            file = self._build_indexes(file, opened.index.finish())
        if self._layout.packed:
            file = self._add_extra(file, REFERENCES_SUFFIX, encode_packs(opened.packs))
        self._next_sequence += file.row_count
        self._files.append(file)
        if self._beside is not None:
            self._files += self._beside.finish(self._clock.local_millis())
        if self._vectors is not None:
            self._files += self._vectors.close()
            self._paths += self._vectors._paths
            self._vectors = None

    def _begin_vectors(self, layout: FileLayout) -> RollingWriter:
        """A writer of the vectors of one file."""
        return RollingWriter(self._store, self._place, self._names, layout, self._clock)

    def _build_indexes(self, file: DataFile, indexes: Indexes) -> DataFile:
        """The file with its indexes, in its entry or in a separate file."""
        if not indexes:
            return file
        data = encode_indexes(indexes)
        if len(data) <= self._layout.index_limit_bytes:
            return msgspec.structs.replace(file, embedded_index=data)
        return self._add_extra(file, INDEX_SUFFIX, data)

    def _add_extra(self, file: DataFile, suffix: str, data: bytes) -> DataFile:
        """The file with an extra file next to it, which is written."""
        path = next(path for path in reversed(self._paths) if path.endswith(f"/{file.name}")) + suffix
        with new_file(self._store, path) as sink:
            sink.write(data)
        self._paths.append(path)
        return msgspec.structs.replace(file, extra_files=(*file.extra_files, file.name + suffix))

    def _step(self, batch: pa.RecordBatch) -> int:
        """The number of rows to write before the next size check: a small part of the maximum."""
        if batch.num_rows <= MIN_STEP_ROWS:
            return MIN_STEP_ROWS
        of_each = max(row_bytes(batch) // batch.num_rows, 1)
        by_size = self._layout.target_size_bytes // (_STEPS_PER_FILE * of_each)
        return int(max(MIN_STEP_ROWS, by_size))

class _OpenFile:
    """The file that is being written, and the content of its manifest entry."""

    def __init__(self, name: str, external_path: str | None, sink: BinaryIO, layout: FileLayout) -> None:
        self.name = name
        self.external_path = external_path
        self.sink = sink
        self.layout = layout
        self.index = FileIndexWriter(layout.fields, layout.indexes) if layout.indexes else None
        self.writer: FileWriter = layout.encoder(sink)
        self.rows = 0
        self._first_key: list[pa.Array] = []
        self._last: pa.RecordBatch | None = None
        self._sequences: list[int] = []
        self._deletes = 0
        self._is_changed = False
        self.packs: set[Pack] = set()

    def add(self, batch: pa.RecordBatch, physical: pa.RecordBatch) -> None:
        with encoding(self.layout.format_name):
            self.writer.write(physical)
            if self.index is not None:
                self.index.add(batch)
        self.rows += batch.num_rows
        if not self.layout.key_fields:
            if self.layout.holds_row_ids:
                self._add_numbers(batch.column(SEQUENCE_NUMBER))
            return
        if self._last is not None and not self._first_key:
            self._first_key = _keys_at(self._last, self.layout.key_fields, 0)
        self._last = batch
        sequences = numpy_values(batch.column(SEQUENCE_NUMBER))
        self._sequences += [int(sequences.min()), int(sequences.max())]
        retracts = numpy_values(batch.column(VALUE_KIND)) & 1
        self._deletes += int(np.count_nonzero(retracts))
        if self.layout.packed:
            self._add_packs(batch.filter(from_numpy(retracts == 0, pa.bool_())))

    def _add_packs(self, rows: pa.RecordBatch) -> None:
        """Record the packs that rows refer to; rows that retract others need none."""
        for name in self.layout.packed:
            self.packs.update(packs_of(rows.column(name)))

    def _add_numbers(self, numbers: pa.Array) -> None:
        """Record the snapshots that wrote rows; NULL stands for the next one."""
        self._is_changed = self._is_changed or numbers.null_count > 0
        known = numbers.drop_null()
        if len(known):
            values = numpy_values(known)
            self._sequences += [int(values.min()), int(values.max())]

    def is_full(self) -> bool:
        return self.rows >= self.layout.target_rows or self.writer.bytes_written >= self.layout.target_size_bytes

    def finish(self, now_millis: int, first_sequence: int) -> DataFile:
        layout = self.layout
        with encoding(layout.format_name):
            bounds = self.writer.close()
        size_bytes = self.sink.tell()
        self.sink.close()
        values = bounds[len(bounds) - len(layout.fields) :]
        low, high = self._key_range()
        low_number, high_number = self._numbers(first_sequence)
        names = tuple(field.name for field in layout.fields)
        return DataFile(
            name=self.name,
            size_bytes=size_bytes,
            row_count=self.rows,
            min_key=low,
            max_key=high,
            key_stats=self._key_stats(bounds),
            value_stats=EMPTY_STATS
            if layout.is_vectors
            else stats_of(values, [field.type for field in layout.fields], layout.modes),
            min_sequence=low_number,
            max_sequence=high_number,
            schema_id=layout.schema_id,
            level=layout.level,
            creation_time_millis=now_millis,
            delete_row_count=self._deletes,
            source=layout.source,
            value_stats_columns=() if layout.is_vectors else None,
            external_path=self.external_path,
            write_columns=names if layout.holds_row_ids or layout.is_part else None,
        )

    def _numbers(self, first_sequence: int) -> tuple[int, int]:
        """The smallest and largest sequence number; 0 stands for the snapshot that will add the file."""
        known = self._sequences
        if self.layout.holds_row_ids:
            return min(known, default=0), 0 if self._is_changed else max(known)
        known = known or [first_sequence, first_sequence + self.rows - 1]
        return min(known), max(known)

    def _key_range(self) -> tuple[bytes, bytes]:
        if self._last is None:
            return EMPTY_ROW, EMPTY_ROW
        keys, end = self.layout.key_fields, self._last.num_rows - 1
        if self._first_key:
            last = _keys_at(self._last, keys, end)
            columns = [pa.concat_arrays(pair) for pair in zip(self._first_key, last, strict=True)]
        else:
            columns = _keys_at(self._last, keys, 0, end)
        low, high = encode_few(columns, [field.type for field in keys])
        return low, high

    def _key_stats(self, bounds: list[ColumnBounds]) -> Stats:
        keys = self.layout.key_fields
        if not keys:
            return EMPTY_STATS
        by_name = dict(zip((field.name for field in self.layout.file_fields), bounds, strict=True))
        names = [key_copy(field).name if self.layout.repeats_keys else field.name for field in keys]
        modes = [self.layout.key_mode] * len(keys)
        return stats_of([by_name[name] for name in names], [field.type for field in keys], modes)


def _keys_at(batch: pa.RecordBatch, keys: tuple[Field, ...], *rows: int) -> list[pa.Array]:
    return [pa.concat_arrays([batch.column(field.name).slice(row, 1) for row in rows]) for field in keys]
