"""A data file with its metadata, and a manifest entry that adds or deletes it.

Source: format.md §5.3; Java `DataFileMeta`, `ManifestEntry`.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence

import msgspec

from paimon_py.spec.bounds import Count, Level, Long

EMPTY_ROW = bytes(12)
"""A serialized BinaryRow without fields: four bytes of arity and eight of header."""

_NO_FIELDS = bytes(4)


class FileKind(enum.IntEnum):
    """Whether an entry adds or deletes its file."""

    ADD = 0
    DELETE = 1


class FileSource(enum.IntEnum):
    """The kind of writer that created a file."""

    APPEND = 0
    COMPACT = 1


class Stats(msgspec.Struct, frozen=True, gc=False):
    """Bounds of some columns: two serialized BinaryRows (arity prefix included) and a null count per column.

    A null bound means unknown; `null_counts` may hold None for unknown.
    """

    min_values: bytes = EMPTY_ROW
    max_values: bytes = EMPTY_ROW
    null_counts: tuple[Long | None, ...] | None = ()


EMPTY_STATS = Stats()


class DataFile(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A Parquet, ORC or Avro file of one partition and bucket.

    `min_key`, `max_key`: serialized BinaryRows of the trimmed primary key (EMPTY_ROW in append tables).
    `creation_time_millis`: local time of the writer, stored as if UTC. `delete_row_count`: rows of kind −U/−D, None if
    unknown. `value_stats_columns`: None if the value stats cover all columns of the file. `first_row_id`: the id of the
    first row, if ids are consecutive. `write_columns`: the columns of the file; None: those of its schema.
    """

    name: str
    size_bytes: Count
    row_count: Count
    min_key: bytes = EMPTY_ROW
    max_key: bytes = EMPTY_ROW
    key_stats: Stats = EMPTY_STATS
    value_stats: Stats = EMPTY_STATS
    min_sequence: Long
    max_sequence: Long
    schema_id: Count
    level: Level
    extra_files: tuple[str, ...] = ()
    creation_time_millis: Long | None = None
    delete_row_count: Long | None = None
    embedded_index: bytes | None = None
    source: FileSource | None = None
    value_stats_columns: tuple[str, ...] | None = None
    external_path: str | None = None
    first_row_id: Long | None = None
    write_columns: tuple[str, ...] | None = None

    @property
    def is_apart(self) -> bool:
        """Whether the file holds columns that are stored separately (BLOBs or vectors), maybe for some rows only."""
        return is_apart(self.name)

    @property
    def bounded_columns(self) -> tuple[str, ...] | None:
        """The columns that the value stats cover, in order; None: all columns of the file's schema."""
        if self.value_stats.min_values.startswith(_NO_FIELDS):
            return ()
        return self.write_columns if self.value_stats_columns is None else self.value_stats_columns


BLOB_SUFFIX = ".blob"
_APART = re.compile(r".*(?:\.blob|\.vector\.[^.]+)", re.DOTALL)


def is_apart(name: str) -> bool:
    """Whether a data file of this name holds columns that are stored separately from the others."""
    return _APART.fullmatch(name) is not None


def anchor_of(files: Sequence[DataFile]) -> DataFile:
    """The file that the deletion vector of some rows refers to: the oldest file with the complete rows."""
    whole = [file for file in files if not file.is_apart] or files
    return min(whole, key=lambda file: (file.max_sequence, file.name))


class ManifestEntry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """ADD or DELETE of one data file. `partition` is a serialized BinaryRow; `total_buckets` −1 without buckets."""

    kind: FileKind
    partition: bytes
    bucket: int
    total_buckets: int
    file: DataFile


EntryIdentifier = tuple[object, ...]
"""The value that distinguishes entries."""


def identifier(entry: ManifestEntry) -> EntryIdentifier:
    """The identifier of an entry, equal for all entries of the same file at the same level (docs/format.md §5.4)."""
    file = entry.file
    return (
        entry.partition,
        entry.bucket,
        file.level,
        file.name,
        file.extra_files,
        file.embedded_index,
        file.external_path,
    )
