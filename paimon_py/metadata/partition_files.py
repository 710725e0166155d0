"""The number of rows, files and bytes of each partition of a snapshot, and the creation time of its newest file.

Source: Java `PartitionEntry`, `AbstractFileStoreScan.readPartitionEntries`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.binary_row import decode
from paimon_py.codec.manifest.columns import ABSENT, EntryColumns
from paimon_py.codec.partition_choice import PartitionChoice
from paimon_py.metadata.entry_filter import EntryFilter
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.data_file import FileKind
from paimon_py.spec.layout import POSTPONE_BUCKET
from paimon_py.spec.partition import Partition
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Base, Snapshot
from paimon_py.storage.store import FileMissingError

_MANIFESTS_AT_ONCE = 64
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the wall clock of the file's writer
_SUMS = ("record_count", "file_size_in_bytes", "file_count")


def partition_files(root: TableRoot, snapshot: Snapshot, chosen: PartitionChoice | None = None) -> pa.Table:
    """The partitions of a snapshot that have files, or a subset, one per row.

    Returns: `partition` (serialized), and as int64 `record_count`, `file_size_in_bytes`, `file_count`,
            `creation_time_millis` (of the newest file ever, by the wall clock of its writer; ABSENT if unknown) and
            `total_buckets`.

    Cost: all manifests that may contain the partitions; memory for the entries of 64 of them besides the cache.
    Raises: SnapshotExpiredError, CorruptionError
    """
    return counted_files(root, snapshot, EntryFilter(partitions=chosen), by=("partition",))


def counted_files(
    root: TableRoot, snapshot: Snapshot, wanted: EntryFilter | None, *, by: Sequence[str], waiting: bool = True
) -> pa.Table:
    """Count files as `partition_files` does, by partition, or with `by` of "partition" and "bucket" by bucket.

    Args:
        waiting: count files of postponed buckets, whose rows readers do not see yet.
    """
    try:
        files = root.manifests.base_and_delta(snapshot)
        parts = [
            _count(entries if waiting else entries.take(entries.bucket != POSTPONE_BUCKET), by)
            for at in range(0, len(files), _MANIFESTS_AT_ONCE)
            for entries in (root.manifests.read_entries(files[at : at + _MANIFESTS_AT_ONCE], wanted),)
        ]
    except FileMissingError as error:
        raise root.missing(Base.of(snapshot), error) from error
    counted = _join(pa.concat_tables([_count(EntryColumns.empty(), by), *parts]), by)
    return counted.filter(pc.greater(counted["file_count"], 0))


def partition_changes(root: TableRoot, snapshot: Snapshot) -> pa.Table:
    """The additions and deletions of a snapshot by partition, one per row; see `partition_files`.

    Cost: its delta manifests, unless they were just read or written.
    Raises: CorruptionError, StorageError
    """
    files = root.manifests.delta(snapshot)
    return _count(root.manifests.read_entries(files), ("partition",))


def list_partitions(table: OpenTable, snapshot: Snapshot | None) -> list[Partition]:
    """The partitions of a snapshot, in the order of their values. Cost, Raises: as `partition_files`"""
    if snapshot is None:
        return []
    found = partition_files(table.root, snapshot)
    columns = partition_columns(table.schema, found["partition"])
    if columns.num_columns:
        order = pc.sort_indices(columns, [(name, "ascending") for name in columns.column_names])
        found, columns = found.take(order), columns.take(order)
    values = columns.to_pylist() if columns.num_columns else [{}] * found.num_rows
    return [
        Partition(
            partition=value,
            last_file_creation_time=None if made == ABSENT else _EPOCH + timedelta(milliseconds=made),
            **{name: row[name] for name in (*_SUMS, "total_buckets")},
        )
        for value, made, row in zip(values, found["creation_time_millis"].to_pylist(), found.to_pylist(), strict=True)
    ]


def partition_columns(schema: TableSchema, partitions: pa.ChunkedArray) -> pa.Table:
    """Serialized partitions as one column per key."""
    fields = schema.partition_fields
    columns = decode(partitions.to_pylist(), [field.type for field in fields])
    return pa.table(dict(zip([field.name for field in fields], columns, strict=True)))


def _count(entries: EntryColumns, by: Sequence[str]) -> pa.Table:
    sign = 1 - 2 * (entries.kind == FileKind.DELETE).astype("int64")
    keys = {"partition": entries.partitions(), "bucket": entries.bucket}
    return _join(
        pa.table(
            {
                **{name: keys[name] for name in by},
                "record_count": sign * entries.row_count,
                "file_size_in_bytes": sign * entries.size_bytes,
                "file_count": sign,
                "creation_time_millis": entries.creation_time_millis,
                "total_buckets": entries.total_buckets,
            }
        ),
        by,
    )


def _join(rows: pa.Table, by: Sequence[str]) -> pa.Table:
    """Combine rows of the same partition or bucket."""
    grouped = rows.group_by(list(by), use_threads=False).aggregate(
        [*((name, "sum") for name in _SUMS), ("creation_time_millis", "max"), ("total_buckets", "last")]
    )
    names = {f"{name}_sum": name for name in _SUMS}
    names |= {"creation_time_millis_max": "creation_time_millis", "total_buckets_last": "total_buckets"}
    return grouped.rename_columns([names.get(name, name) for name in grouped.column_names]).select(rows.column_names)
