"""Exports rows to plain Parquet files in directories named `key=value`, as Hive, Spark and DuckDB read them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paimon_py.codec.binary_row import encode
from paimon_py.codec.columns import combine
from paimon_py.codec.partition_text import partition_directory
from paimon_py.errors import AlreadyExistsError, StorageError
from paimon_py.formats.base import encoding
from paimon_py.spec.layout import join
from paimon_py.spec.schema import TableSchema
from paimon_py.storage.store import Store

FILE_BYTES = 128 << 20
_NAMED = {"partition.default-name": "__HIVE_DEFAULT_PARTITION__", "partition.legacy-name": "false"}


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an export.

    Attributes:
        snapshot_id: the snapshot of the rows; None for a table without snapshots.
        files, rows, size_bytes: the amount written.
    """

    snapshot_id: int | None
    files: int
    rows: int
    size_bytes: int


class ParquetDirectory:
    """A directory to which rows are written, one file at a time; after a failure the written files are deleted."""

    def __init__(self, store: Store, place: str, schema: TableSchema, *, file_bytes: int) -> None:
        """Raises: AlreadyExistsError if the directory contains a file."""
        if _holds_files(store, place):
            raise AlreadyExistsError(f"{place} is not empty: export writes into a new directory", path=place)
        self._store, self._place, self._file_bytes = store, place, file_bytes
        self._schema = msgspec.structs.replace(schema, options={**schema.options, **_NAMED})
        self._made: list[str] = []
        self._sink: BinaryIO | None = None
        self._writer: pq.ParquetWriter | None = None
        self._directory: str | None = None
        self._rows = self._size = 0

    def write(self, reader: pa.RecordBatchReader, keys: Iterable[str], snapshot_id: int | None) -> Exported:
        """Write all rows; `keys`: partition keys among the columns, which become directory names."""
        names = list(keys)
        plain = pa.schema([field for field in reader.schema if field.name not in names])
        try:
            for batch in reader:
                for directory, part in self._parts(batch, names):
                    self._add(directory, part.select(plain.names), plain)
            if not self._made and not names:
                self._begin("", plain)
            self._end()
            self._store.put(join(self._place, "_SUCCESS"), b"")
        except BaseException:
            self._give_up()
            raise
        return Exported(snapshot_id=snapshot_id, files=len(self._made), rows=self._rows, size_bytes=self._size)

    def _parts(self, batch: pa.RecordBatch, keys: list[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The rows of each partition, with its directory."""
        if not keys or not batch.num_rows:
            yield "", batch
            return
        fields = self._schema.partition_fields
        rows = encode([batch.column(field.name) for field in fields], [field.type for field in fields])
        for partition in rows.unique():
            part = batch.filter(pc.equal(rows, partition)) if len(rows.unique()) > 1 else batch
            yield partition_directory(self._schema, partition.as_py()), part

    def _add(self, directory: str, rows: pa.RecordBatch, schema: pa.Schema) -> None:
        if not rows.num_rows:
            return
        if self._writer is not None and self._directory != directory:
            self._end()
        if self._writer is None:
            self._begin(directory, schema)
        assert self._writer is not None
        assert self._sink is not None
        with encoding("parquet"):
            self._writer.write_table(pa.table([combine(column) for column in rows.columns], schema=schema))
        self._rows += rows.num_rows
        if self._sink.tell() >= self._file_bytes:
            self._end()

    def _begin(self, directory: str, schema: pa.Schema) -> None:
        path = join(self._place, directory, f"part-{len(self._made):05}.parquet")
        self._sink = self._store.open_write(path)
        self._made.append(path)
        self._directory = directory
        with encoding("parquet"):
            self._writer = pq.ParquetWriter(self._sink, schema, compression="zstd")

    def _end(self) -> None:
        if self._writer is None or self._sink is None:
            return
        self._writer.close()
        self._size += self._sink.tell()
        self._sink.close()
        self._writer = self._sink = None

    def _give_up(self) -> None:
        """Delete the written files, except those that the store does not delete."""
        sink, self._writer, self._sink = self._sink, None, None
        if sink is not None:
            with contextlib.suppress(StorageError):
                sink.close()
        for path in self._made:
            with contextlib.suppress(StorageError):
                self._store.delete(path)


def _holds_files(store: Store, directory: str) -> bool:
    return any(_holds_files(store, child.path) if child.is_directory else True for child in store.list(directory))
