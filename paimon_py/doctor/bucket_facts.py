"""Counts the files of a snapshot by bucket."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.columns import Mask
from paimon_py.codec.manifest.columns import EntryColumns
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.manifest import HASH, IndexEntry

_BUCKET = ["partition", "bucket"]
_SUMS = ("file_count", "level0_count", "record_count", "delete_count", "file_size_in_bytes")


def count_buckets(entries: EntryColumns, index: list[IndexEntry], files: OpenTable, *, is_keyed: bool) -> pa.Table:
    """One row for each bucket that has files; see `Facts.buckets`.

    Cost: some columns of all files in memory.
    """
    rows = _file_rows(entries)
    runs = rows.group_by([*_BUCKET, "run"], use_threads=False).aggregate(
        [*((name, "sum") for name in _SUMS), ("total_buckets", "max")]
    )
    runs = runs.rename_columns([name.removesuffix("_sum") for name in runs.column_names])
    found = runs.group_by(_BUCKET, use_threads=False).aggregate(
        [*((name, "sum") for name in _SUMS), ("run", "count"), ("record_count", "max"), ("total_buckets_max", "max")]
    )
    names = {f"{name}_sum": name for name in _SUMS}
    names |= {"run_count": "run_count", "record_count_max": "largest_run", "total_buckets_max_max": "total_buckets"}
    found = found.rename_columns([names.get(name, name) for name in found.column_names])
    found = found.join(_count_single_keys(entries, is_keyed), _BUCKET).join(_hash_counts(index), _BUCKET)
    found = found.set_column(
        found.column_names.index("repeated_count"), "repeated_count", pc.fill_null(found["repeated_count"], 0)
    )
    labels = pc.dictionary_encode(found["partition"].combine_chunks())
    texts = pa.array([files.partition_directory(one) for one in labels.dictionary.to_pylist()], pa.string())
    at = found.column_names.index("partition")
    return found.set_column(at, "partition", texts.take(labels.indices)).sort_by(
        [(name, "ascending") for name in _BUCKET]
    )


def _file_rows(entries: EntryColumns) -> pa.Table:
    """One row per file. `run`: the level; for files of level 0, each its own run, a unique negative number."""
    level = entries.level
    return pa.table(
        {
            "partition": entries.partitions(),
            "bucket": entries.bucket,
            "run": np.where(level > 0, level, -1 - np.arange(len(entries))),
            "file_count": np.ones(len(entries), np.int64),
            "level0_count": (level == 0).astype(np.int64),
            "record_count": entries.row_count,
            "delete_count": entries.delete_row_count.clip(min=0),
            "file_size_in_bytes": entries.size_bytes,
            "total_buckets": entries.total_buckets,
        }
    )


def _count_single_keys(entries: EntryColumns, is_keyed: bool) -> pa.Table:
    """The number of files in each bucket that contain a single key, the same in all of them."""
    keys, last = entries.array("min_key", pa.binary()), entries.array("max_key", pa.binary())
    alone: Mask = np.asarray(pc.equal(keys, last).to_numpy(zero_copy_only=False), np.bool_) & is_keyed
    rows = pa.table({"partition": entries.partitions(), "bucket": entries.bucket, "key": keys}).filter(pa.array(alone))
    counted = rows.group_by([*_BUCKET, "key"], use_threads=False).aggregate([([], "count_all")])
    largest = counted.group_by(_BUCKET, use_threads=False).aggregate([("count_all", "max")])
    return largest.rename_columns([*_BUCKET, "repeated_count"])


def _hash_counts(index: list[IndexEntry]) -> pa.Table:
    found = [entry for entry in index if entry.index_type == HASH]
    rows = pa.table(
        {
            "partition": pa.array([entry.partition for entry in found], pa.binary()),
            "bucket": pa.array([entry.bucket for entry in found], pa.int64()),
            "hash_count": pa.array([entry.row_count for entry in found], pa.int64()),
        }
    )
    counted = rows.group_by(_BUCKET, use_threads=False).aggregate([("hash_count", "sum")])
    return counted.rename_columns([*_BUCKET, "hash_count"])
