"""Manifests and index manifests, as values.

Source: format.md §5, §10.1; Java `ManifestFileMeta`, `FileEntry.mergeEntries`, `IndexManifestEntry`.
"""

from __future__ import annotations

import msgspec

from paimon_py.spec.bounds import BucketNumber, Count, Long
from paimon_py.spec.data_file import EMPTY_STATS, FileKind, Stats

DELETION_VECTORS = "DELETION_VECTORS"
"""Index type of deletion vectors in index manifests."""

HASH = "HASH"
"""Index type of the key hashes of a dynamic bucket."""


class ManifestFile(msgspec.Struct, frozen=True, kw_only=True):
    """One record of a manifest list: a manifest and a summary of its content."""

    name: str
    size_bytes: int
    added_files: int
    deleted_files: int
    partition_stats: Stats = EMPTY_STATS
    schema_id: int
    min_bucket: int | None = None
    max_bucket: int | None = None
    min_level: int | None = None
    max_level: int | None = None
    min_row_id: int | None = None
    max_row_id: int | None = None


class DeletionVectorRange(msgspec.Struct, frozen=True, kw_only=True):
    """The location of the deletion vector of one data file in its index file."""

    data_file: str
    offset: Count
    length: Count
    cardinality: Count | None = None


class DeletionPlace(msgspec.Struct, frozen=True, kw_only=True):
    """The location of a data file's deletion vector: `path` of the index file, and the stored range in it."""

    path: str
    offset: Count
    length: Count
    cardinality: Count | None = None


class GlobalIndex(msgspec.Struct, frozen=True, kw_only=True):
    """The coverage of an index over row ids; preserved, but not used."""

    row_range_start: Long
    row_range_end: Long
    field_id: Long
    extra_field_ids: tuple[int, ...] | None = None
    index_meta: bytes | None = None
    source_meta: bytes | None = None


class IndexEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One record of an index manifest."""

    kind: FileKind
    partition: bytes
    bucket: BucketNumber
    index_type: str
    name: str
    size_bytes: Count
    row_count: Count
    deletion_vectors: tuple[DeletionVectorRange, ...] | None = None
    external_path: str | None = None
    global_index: GlobalIndex | None = None
