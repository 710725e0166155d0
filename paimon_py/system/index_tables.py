"""The metadata table of file indexes: one row for each column and type of each indexed file.

Source: Java `FileIndexesTable`.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.errors import CorruptionError
from paimon_py.files.file_index import index_file, read_index_head
from paimon_py.metadata.root import TableRoot
from paimon_py.scan.plan import data_files
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.snapshot import Base
from paimon_py.storage.store import FileMissingError
from paimon_py.system.file_tables import FilePart, file_parts
from paimon_py.system.metadata_table_def import Columns, MetadataTableDef, RowRequest, TableState, fields_of


class _Indexed(msgspec.Struct, frozen=True, kw_only=True):
    """One index of a data file; `place` is its container; None if it is in the manifest entry."""

    partition: str
    bucket: int
    path: str
    file: DataFile
    column: str
    kind: str
    place: str | None
    size_bytes: int
    container_bytes: int
    is_empty: bool


_FILE_INDEXES: Columns[_Indexed] = {
    "partition STRING": lambda one: one.partition,
    "bucket INT NOT NULL": lambda one: one.bucket,
    "file_path STRING NOT NULL": lambda one: one.path,
    "file_size_in_bytes BIGINT NOT NULL": lambda one: one.file.size_bytes,
    "record_count BIGINT NOT NULL": lambda one: one.file.row_count,
    "schema_id BIGINT NOT NULL": lambda one: one.file.schema_id,
    "column_name STRING NOT NULL": lambda one: one.column,
    "index_type STRING NOT NULL": lambda one: one.kind,
    "storage_type STRING NOT NULL": lambda one: "EMBEDDED" if one.place is None else "FILE",
    "index_file_path STRING": lambda one: one.place,
    "index_size_in_bytes BIGINT NOT NULL": lambda one: one.size_bytes,
    "index_container_size_in_bytes BIGINT NOT NULL": lambda one: one.container_bytes,
    "is_empty BOOLEAN NOT NULL": lambda one: one.is_empty,
}


def _file_indexes(request: RowRequest, state: TableState) -> Iterator[pa.RecordBatch]:
    """The indexes of live files that may match. Cost: a stat and the head of each index file"""
    for part in file_parts(request, state):
        extra_codes, extra = part.entries.lists("extra_files")
        beside = np.array([bool(names) for names in extra], np.bool_)[extra_codes]
        rows = np.flatnonzero((part.entries.slices("embedded_index").lengths >= 0) | beside)
        if len(rows):
            yield request.rows(list(_indexes(FilePart(state, part.entries.take(rows)))), _FILE_INDEXES)


def _indexes(part: FilePart) -> Iterator[_Indexed]:
    root, snapshot = part.state.root, part.state.snapshot
    assert snapshot is not None
    files = data_files(part.entries, indexed=True)
    names = zip(part.partition().to_pylist(), part.entries.bucket.tolist(), part.path().to_pylist(), files, strict=True)
    for partition, bucket, path, file in names:
        try:
            place = None if file.embedded_index is not None else index_file(path, file)
            head = read_index_head(root.files, path, file)
            size = len(file.embedded_index or b"") if place is None else _size(root, place)
        except FileMissingError as error:
            raise root.missing(Base.of(snapshot), error) from error
        for column, kinds in head.items():
            for kind, lies in kinds.items():
                yield _Indexed(
                    partition=partition, bucket=bucket, path=path, file=file, column=column, kind=kind, place=place,
                    size_bytes=lies.length, container_bytes=size, is_empty=lies.is_empty,
                )  # fmt: skip


def _size(root: TableRoot, place: str) -> int:
    status = root.files.stat(place)
    if status is None:
        raise CorruptionError(f"{place} disappeared while it was read", path=place)
    return status.size_bytes


INDEX_TABLES = (
    MetadataTableDef(
        name="file_indexes", fields=fields_of(_FILE_INDEXES), keys=("file_path", "column_name", "index_type"),
        make=_file_indexes, has_states=True,
    ),
)  # fmt: skip
