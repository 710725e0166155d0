"""Metadata tables of the contents of one snapshot: manifests, and index files of the table.

Source: Java `ManifestsTable`, `TableIndexesTable`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from paimon_py.metadata.root import TableRoot
from paimon_py.spec.manifest import GlobalIndex, IndexEntry, ManifestFile
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Base, Snapshot
from paimon_py.storage.store import FileMissingError
from paimon_py.system.metadata_table_def import Columns, MetadataTableDef, RowRequest, TableState, chunks, fields_of
from paimon_py.system.texts import partition_row_texts

_RANGES = "ARRAY<ROW<f0 STRING NOT NULL, f1 INT NOT NULL, f2 INT NOT NULL, _CARDINALITY BIGINT>>"


def _each(get: Callable[[Any], Any]) -> Callable[[tuple[TableSchema, Sequence[Any]]], list[Any]]:
    return lambda part: [get(one) for one in part[1]]


def _of_index(get: Callable[[GlobalIndex], Any]) -> Callable[[tuple[TableSchema, Sequence[IndexEntry]]], list[Any]]:
    return _each(lambda one: None if one.global_index is None else get(one.global_index))


def _partition_texts(get: Callable[[Any], bytes]) -> Callable[[tuple[TableSchema, Sequence[Any]]], pa.Array]:
    return lambda part: partition_row_texts(pa.array([get(one) for one in part[1]], pa.binary()), part[0])


_MANIFESTS: Columns[tuple[TableSchema, Sequence[ManifestFile]]] = {
    "file_name STRING NOT NULL": _each(lambda one: one.name),
    "file_size BIGINT NOT NULL": _each(lambda one: one.size_bytes),
    "num_added_files BIGINT NOT NULL": _each(lambda one: one.added_files),
    "num_deleted_files BIGINT NOT NULL": _each(lambda one: one.deleted_files),
    "schema_id BIGINT NOT NULL": _each(lambda one: one.schema_id),
    "min_partition_stats STRING": _partition_texts(lambda one: one.partition_stats.min_values),
    "max_partition_stats STRING": _partition_texts(lambda one: one.partition_stats.max_values),
    "min_row_id BIGINT": _each(lambda one: one.min_row_id),
    "max_row_id BIGINT": _each(lambda one: one.max_row_id),
}
_INDEXES: Columns[tuple[TableSchema, Sequence[IndexEntry]]] = {
    "partition STRING": _partition_texts(lambda one: one.partition),
    "bucket INT NOT NULL": _each(lambda one: one.bucket),
    "index_type STRING NOT NULL": _each(lambda one: one.index_type),
    "file_name STRING NOT NULL": _each(lambda one: one.name),
    "file_size BIGINT NOT NULL": _each(lambda one: one.size_bytes),
    "row_count BIGINT NOT NULL": _each(lambda one: one.row_count),
    f"dv_ranges {_RANGES}": _each(lambda one: _ranges(one)),
    "row_range_start BIGINT": _of_index(lambda index: index.row_range_start),
    "row_range_end BIGINT": _of_index(lambda index: index.row_range_end),
    "index_field_id INT": _of_index(lambda index: index.field_id),
    "index_field_name STRING": lambda part: [_indexed_columns(one, part[0]) for one in part[1]],
}


def _manifests(request: RowRequest, state: TableState) -> Iterator[pa.RecordBatch]:
    """The manifests in the manifest lists of the snapshot: base, delta, changelog. Cost: a get for each list."""
    if state.snapshot is not None:
        for part in chunks(_manifests_of(state.root, state.snapshot)):
            yield request.batch(len(part), (state.schema, part), _MANIFESTS)


def _manifests_of(root: TableRoot, snapshot: Snapshot) -> list[ManifestFile]:
    found = root.manifests.base_and_delta(snapshot)
    if snapshot.changelog_manifest_list is None:
        return found
    try:
        lists = root.manifests.read_list(snapshot.changelog_manifest_list, snapshot.changelog_manifest_list_size)
    except FileMissingError as error:
        raise root.missing(Base.of(snapshot), error) from error
    return found + lists


def _table_indexes(request: RowRequest, state: TableState) -> Iterator[pa.RecordBatch]:
    """The index files of the snapshot. Cost: a get"""
    snapshot = state.snapshot
    if snapshot is None or snapshot.index_manifest is None:
        return
    try:
        entries = state.root.manifests.read_index(snapshot.index_manifest)
    except FileMissingError as error:
        raise state.root.missing(Base.of(snapshot), error) from error
    for part in chunks(entries):
        yield request.batch(len(part), (state.schema, part), _INDEXES)


def _ranges(entry: IndexEntry) -> list[dict[str, object]] | None:
    if entry.deletion_vectors is None:
        return None
    return [
        {"f0": each.data_file, "f1": each.offset, "f2": each.length, "_CARDINALITY": each.cardinality}
        for each in entry.deletion_vectors
    ]


def _indexed_columns(entry: IndexEntry, schema: TableSchema) -> str | None:
    """The names of the columns that an index over row ids covers; None if one of them no longer exists."""
    index = entry.global_index
    if index is None:
        return None
    names = {field.id: field.name for field in schema.fields}
    ids = (index.field_id, *(index.extra_field_ids or ()))
    return ",".join(names[each] for each in ids) if all(each in names for each in ids) else None


MANIFEST_TABLES = (
    MetadataTableDef(
        name="manifests", fields=fields_of(_MANIFESTS), keys=("file_name",), make=_manifests, has_states=True
    ),
    MetadataTableDef(
        name="table_indexes", fields=fields_of(_INDEXES), keys=("file_name",), make=_table_indexes, has_states=True
    ),
)
