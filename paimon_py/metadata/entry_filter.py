"""Selects the entries of a table that a plan needs, so that others can be skipped.

Entries that are skipped before folding must be skipped for ADDs and DELETEs alike, or deleted files would reappear. So
only the parts of a file's identifier are used before folding (partition, bucket, level); keys and statistics later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import Mask
from paimon_py.codec.manifest.columns import EntryColumns
from paimon_py.spec.manifest import ManifestFile


class EntryFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions that must all hold; None means no condition.

    `manifests`: a mask of the manifests that may contain a wanted partition, from their partition statistics.
    `partitions`: a mask of the wanted serialized partition rows; called with distinct ones. `buckets`: wanted buckets.
    `level_min`, `level_max`: wanted levels, both included. `keep`: a mask of the wanted live entries, by keys,
    statistics or other values; called after folding.
    """

    manifests: Callable[[Sequence[ManifestFile]], Mask] | None = None
    partitions: Callable[[pa.Array], Mask] | None = None
    buckets: frozenset[int] | None = None
    level_min: int | None = None
    level_max: int | None = None
    keep: Callable[[EntryColumns], Mask] | None = None


def wanted_manifests(files: Sequence[ManifestFile], entry_filter: EntryFilter | None) -> list[ManifestFile]:
    """The manifests that may contain wanted entries."""
    files = [file for file in files if file.added_files or file.deleted_files]
    if entry_filter is None:
        return files
    files = [file for file in files if _may_hold(file, entry_filter)]
    if entry_filter.manifests is not None and files:
        keep = entry_filter.manifests(files)
        files = [file for file, wanted in zip(files, keep.tolist(), strict=True) if wanted]
    return files


def before_folding(columns: EntryColumns, entry_filter: EntryFilter | None) -> EntryColumns:
    """Remove entries, ADD and DELETE alike, by partition, bucket and level."""
    if entry_filter is None or not len(columns):
        return columns
    wanted = np.ones(len(columns), np.bool_)
    if entry_filter.partitions is not None:
        codes, values = columns.distinct("partition")
        wanted &= np.asarray(entry_filter.partitions(values), np.bool_)[codes]
    if entry_filter.buckets is not None:
        wanted &= np.isin(columns.bucket, np.array(sorted(entry_filter.buckets), np.int64))
    if entry_filter.level_min is not None:
        wanted &= columns.level >= entry_filter.level_min
    if entry_filter.level_max is not None:
        wanted &= columns.level <= entry_filter.level_max
    return columns if bool(wanted.all()) else columns.take(wanted)


def after_folding(columns: EntryColumns, entry_filter: EntryFilter | None) -> EntryColumns:
    """Remove live entries by keys and statistics."""
    if entry_filter is None or entry_filter.keep is None or not len(columns):
        return columns
    wanted = entry_filter.keep(columns)
    return columns if bool(wanted.all()) else columns.take(wanted)


def _may_hold(file: ManifestFile, entry_filter: EntryFilter) -> bool:
    if entry_filter.buckets is not None and file.min_bucket is not None and file.max_bucket is not None:
        low, high = file.min_bucket, file.max_bucket
        if not any(low <= bucket <= high for bucket in entry_filter.buckets):
            return False
    least, most = entry_filter.level_min, entry_filter.level_max
    if least is not None and file.max_level is not None and file.max_level < least:
        return False
    return most is None or file.min_level is None or file.min_level <= most
