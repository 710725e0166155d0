"""The number of files, rows and bytes on each level of each bucket of a snapshot.

Source: Java system tables `$buckets`, `$file_key_ranges`; format.md §13.1.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.manifest.columns import EntryColumns
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.row_ranges import rows_of_files
from paimon_py.spec.snapshot import Snapshot

_KEYS = ["partition", "bucket", "level"]
_SUMS = ("file_count", "record_count", "delete_count", "file_size_in_bytes")


def levels_of(table: OpenTable, snapshot: Snapshot | None) -> pa.Table:
    """The non-empty levels, as `count_levels`, with the directories of partitions as their names.

    Cost: all manifests of the snapshot that were not read before.
    Raises: SnapshotExpiredError, CorruptionError
    """
    entries = EntryColumns.empty() if snapshot is None else table.root.manifests.live_entries(snapshot)
    levels, files = count_levels(entries), table
    names = pc.dictionary_encode(levels["partition"].combine_chunks())
    texts = pa.array([files.partition_directory(one) for one in names.dictionary.to_pylist()], pa.string())
    labelled = levels.set_column(0, "partition", texts.take(names.indices))
    return labelled.sort_by([(name, "ascending") for name in _KEYS])


def count_levels(entries: EntryColumns) -> pa.Table:
    """The non-empty levels, from the live files of a snapshot.

    Returns: `partition` (serialized), `bucket`, `level`, `file_count`, `record_count`, `delete_count` (rows that
        delete, as far as files contain it), `file_size_in_bytes`. Columns of the same rows in several files (data
        evolution) count as one record.
    """
    rows = pa.table(
        {
            "partition": entries.partitions(),
            "bucket": entries.bucket,
            "level": entries.level,
            "file_count": (entries.size_bytes >= 0).astype("int64"),
            "record_count": rows_of_files(entries),
            "delete_count": entries.delete_row_count.clip(min=0),
            "file_size_in_bytes": entries.size_bytes,
        }
    )
    grouped = rows.group_by(_KEYS, use_threads=False).aggregate([(name, "sum") for name in _SUMS])
    return grouped.select([*_KEYS, *(f"{name}_sum" for name in _SUMS)]).rename_columns([*_KEYS, *_SUMS])
