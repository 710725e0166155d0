"""A compaction of one bucket as a value: the files to merge and their output. Any process can run it.

Source: format.md §13.2, §13.3; Java `CompactUnit`, `MergeTreeCompactTask`, `AppendCompactTask`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from paimon_py.spec.bounds import BucketNumber, Count, Level
from paimon_py.spec.clustering import Clustering
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.manifest import DeletionPlace, IndexEntry
from paimon_py.spec.serializable import Serializable
from paimon_py.spec.snapshot import Base


class CompactionTask(Serializable, frozen=True, kw_only=True):
    """Files of one bucket to be replaced by fewer files.

    Send `bytes(task)` to another process, and restore it there with `CompactionTask.from_bytes`.

    Attributes:
        base: the snapshot that the task was planned on.
        schema_id: the schema of the new files.
        partition: serialized BinaryRow.
        bucket, total_buckets: as in the files' manifest entries.
        files: the files to compact, with keys and statistics; in append tables in the order the rows were written.
        output_level: level of the new files; 0 in append tables that do not cluster incrementally.
        drop_deletes: rows of kind −U and −D are dropped.
        rewrite_all: every file is rewritten separately, even one that could be moved, to drop deleted or expired rows.
        higher_files: files of the levels above `output_level`, in which keys of level 0 are looked up; only in tables
            that compact by lookup.
        deletions: all deletion vectors of the bucket, by file name.
        index: the index entries that hold these deletion vectors.
        clustering: the order of the rows of the new files in an append table; None: unchanged.
        joins: if files may contain some columns of the same rows, how many of `files`, in order, each new file
            replaces.
    """

    kind: ClassVar[str] = "compaction"
    edition: ClassVar[int] = 4
    called: ClassVar[str] = "a compaction task"
    again: ClassVar[str] = "ask for tasks"

    base: Base
    schema_id: Count
    partition: bytes
    bucket: BucketNumber
    total_buckets: BucketNumber
    files: tuple[DataFile, ...]
    output_level: Level = 0
    drop_deletes: bool = False
    rewrite_all: bool = False
    higher_files: tuple[DataFile, ...] = ()
    deletions: Mapping[str, DeletionPlace] = {}
    index: tuple[IndexEntry, ...] = ()
    clustering: Clustering | None = None
    joins: tuple[Count, ...] = ()

    @property
    def size_bytes(self) -> int:
        """Bytes of the files to compact."""
        return sum(file.size_bytes for file in self.files)

    @property
    def row_count(self) -> int:
        """Rows of the files to compact."""
        return sum(file.row_count for file in self.files)

    def __repr__(self) -> str:
        return (
            f"CompactionTask(bucket={self.bucket}, files={len(self.files)}, rows={self.row_count}, "
            f"output_level={self.output_level})"
        )
