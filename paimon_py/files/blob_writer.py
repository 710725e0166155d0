"""Writes `.blob` files: one column each, next to the data file with the other columns.

Source: format.md §26; Java `RollingBlobFileWriter`, `BlobFormatWriter`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO

import pyarrow as pa

from paimon_py.codec.blobs import NULL, PLACEHOLDER, NestedBlobs, encode_index, encode_nested, entry_parts
from paimon_py.codec.columns import Mask
from paimon_py.files.naming import FileNames
from paimon_py.files.places import BucketPlace
from paimon_py.spec.blobs import is_blob
from paimon_py.spec.data_file import DataFile, FileSource
from paimon_py.spec.types import Field, MapType
from paimon_py.storage.store import Create, FileTakenError

_NO_COMPRESSION = "none"


class BlobFileWriter:
    """Writes one column of rows to consecutive files; at most one is open.

    Attributes:
        paths: the paths of all started files, for clean-up.
    """

    def __init__(
        self, store: Create, place: BucketPlace, names: FileNames, field: Field, *, schema_id: int, target_bytes: int
    ) -> None:
        """`target_bytes`: the size at which the next file begins."""
        self._store = store
        self._place = place
        self._names = names
        self._field = field
        self._schema_id = schema_id
        self._target = target_bytes
        self._open: tuple[str, str | None, BinaryIO] | None = None
        self._lengths: list[int] = []
        self._size = 0
        self._files: list[DataFile] = []
        self.paths: list[str] = []

    def add(self, column: pa.Array, now_millis: int, elsewhere: Mask | None = None) -> None:
        """Write the values of some rows.

        Args:
            elsewhere: a mask of rows whose value stays in an older file.
        """
        for row, payload in enumerate(self._payloads(column)):
            if self._open is None:
                self._begin()
            if elsewhere is not None and elsewhere[row]:
                self._lengths.append(PLACEHOLDER)
            elif payload is None:
                self._lengths.append(NULL)
            else:
                self._write(payload)
            if self._size >= self._target:
                self._finish(now_millis)

    def close(self, now_millis: int) -> tuple[DataFile, ...]:
        """Finish the last file, and return all files, in order."""
        if self._open is not None:
            self._finish(now_millis)
        files, self._files = tuple(self._files), []
        return files

    def abort(self) -> None:
        """Close the open file; the caller deletes `paths`.

        Raises: StorageError
        """
        if self._open is not None:
            (_, _, sink), self._open = self._open, None
            sink.close()

    def _begin(self) -> None:
        name = self._names.data("blob", _NO_COMPRESSION)
        path, external_path = self._place.locate(name)
        self.paths.append(path)
        try:
            self._open = (name, external_path, self._store.open_write(path))
        except FileTakenError:
            self.paths.pop()  # the file belongs to another writer
            raise

    def _write(self, payload: bytes | memoryview) -> None:
        assert self._open is not None
        head, tail = entry_parts(payload)
        for part in (head, payload, tail):
            self._open[2].write(part)
        length = len(head) + len(payload) + len(tail)
        self._lengths.append(length)
        self._size += length

    def _finish(self, now_millis: int) -> None:
        assert self._open is not None
        (name, external_path, sink), self._open = self._open, None
        index = encode_index(self._lengths)
        sink.write(index)
        sink.close()
        self._files.append(
            DataFile(
                name=name,
                size_bytes=self._size + len(index),
                row_count=len(self._lengths),
                min_sequence=0,
                max_sequence=0,
                schema_id=self._schema_id,
                level=0,
                creation_time_millis=now_millis,
                delete_row_count=0,
                source=FileSource.APPEND,
                value_stats_columns=(),
                external_path=external_path,
                write_columns=(self._field.name,),
            )
        )
        self._lengths, self._size = [], 0

    def _payloads(self, column: pa.Array) -> Iterator[bytes | memoryview | None]:
        kind = self._field.type
        if is_blob(kind):
            yield from (memoryview(value.as_buffer()) if value.is_valid else None for value in column)
            return
        for value in column:
            if not value.is_valid:
                yield None
            elif isinstance(kind, MapType):
                pairs = value.as_py()
                yield encode_nested(kind, NestedBlobs([key for key, _ in pairs], [blob for _, blob in pairs]))
            else:
                yield encode_nested(kind, NestedBlobs(None, value.as_py()))


class BlobColumnsWriter:
    """Writes the separately stored columns of one data file at a time."""

    def __init__(
        self, store: Create, place: BucketPlace, names: FileNames, fields: Sequence[Field], *, schema_id: int,
        target_bytes: int,
    ) -> None:  # fmt: skip
        self._writers = {
            field.name: BlobFileWriter(store, place, names, field, schema_id=schema_id, target_bytes=target_bytes)
            for field in fields
        }

    @property
    def paths(self) -> list[str]:
        """The paths of all started files."""
        return [path for writer in self._writers.values() for path in writer.paths]

    def add(self, batch: pa.RecordBatch, now_millis: int) -> None:
        """Write the columns for rows of the data file."""
        for name, writer in self._writers.items():
            writer.add(batch.column(name), now_millis)

    def finish(self, now_millis: int) -> list[DataFile]:
        """The files for the data file, column by column."""
        return [file for writer in self._writers.values() for file in writer.close(now_millis)]

    def abort(self) -> None:
        """Close all open files.

        Raises: StorageError
        """
        for writer in self._writers.values():
            writer.abort()
