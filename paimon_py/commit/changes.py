"""What writers did to a table, ready to be committed: values that travel as bytes.

Paimon's documentation calls them *commit messages*.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from paimon_py.errors import CorruptionError, UsageError
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.manifest import IndexEntry
from paimon_py.spec.snapshot import Base

VERSION = 2
_MAGIC = b"paimon-changes-2:"


class BucketChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What one writer did to one bucket.

    `partition`: serialized BinaryRow. `total_buckets`: buckets of the partition, −1 without fixed buckets.
    `new_files`, `deleted_files` and `changelog_files` make the first snapshot of a commit; the `compact_…` files its
    second one. `new_index` and `compact_new_index` are index files to add, `deleted_index` and `compact_deleted_index`
    those they take the place of, as the writer found them. `compact_snapshot_id` and `compact_mark`: where a writer
    compacted its own new files, the snapshot whose files it knew (0: an empty table); rows that others committed since
    then must not be passed over.
    """

    partition: bytes
    bucket: int
    total_buckets: int
    new_files: tuple[DataFile, ...] = ()
    deleted_files: tuple[DataFile, ...] = ()
    changelog_files: tuple[DataFile, ...] = ()
    compact_before: tuple[DataFile, ...] = ()
    compact_after: tuple[DataFile, ...] = ()
    compact_changelog: tuple[DataFile, ...] = ()
    new_index: tuple[IndexEntry, ...] = ()
    deleted_index: tuple[IndexEntry, ...] = ()
    compact_new_index: tuple[IndexEntry, ...] = ()
    compact_deleted_index: tuple[IndexEntry, ...] = ()
    compact_snapshot_id: int | None = None
    compact_mark: str | None = None

    @property
    def compact_base(self) -> Base | None:
        """The snapshot that a compaction of new files was based on, None if there was none."""
        return None if self.compact_snapshot_id is None else Base(self.compact_snapshot_id, self.compact_mark)

    @property
    def is_empty(self) -> bool:
        """Whether nothing happened."""
        return not (
            self.new_files
            or self.deleted_files
            or self.changelog_files
            or self.compact_before
            or self.compact_after
            or self.compact_changelog
            or self.new_index
            or self.deleted_index
            or self.compact_new_index
            or self.compact_deleted_index
        )

    @property
    def added_files(self) -> tuple[DataFile, ...]:
        """Every file that the writer made: what has to go if the changes are given up."""
        return self.new_files + self.changelog_files + self.compact_after + self.compact_changelog


class KeyBase(msgspec.Struct, frozen=True, kw_only=True):
    """What changes of a table whose keys move between partitions rely on: where all keys were.

    `writer`: who wrote. `snapshot_id` and `mark`: the state that the writer knew, 0 for an empty table. `files`: new
    files that it had handed over before these changes and after that snapshot; they must be in the table, and nothing
    else.
    """

    writer: str
    snapshot_id: int
    mark: str | None = None
    files: tuple[str, ...] = ()


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What one or more writers did; commit it with `Table.commit`.

    `bytes(changes)` travels between processes, `Changes.from_bytes` brings it back.

    Attributes:
        version: version of this value.
        schema_id: schema that the rows were written with (the newest, if writers differ).
        base_snapshot_id: latest snapshot when the (first) writer opened, None on an empty table.
        base_mark: what tells it from others of the same id, which come after a rollback.
        further_bases: those that other writers found.
        buckets: one value per writer and bucket; a bucket occurs again if several writers, or one writer at several
            times, wrote to it, the earlier first.
        watermark: event-time watermark in epoch milliseconds, None for unknown.
        keys: where all keys of the table were, if they can move between partitions.
    """

    version: int = VERSION
    schema_id: int
    base_snapshot_id: int | None
    base_mark: str | None = None
    further_bases: tuple[Base, ...] = ()
    buckets: tuple[BucketChanges, ...]
    watermark: int | None = None
    keys: KeyBase | None = None

    @property
    def base(self) -> Base:
        """The snapshot that the (first) writer found."""
        return Base(self.base_snapshot_id or 0, self.base_mark)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to commit."""
        return all(bucket.is_empty for bucket in self.buckets)

    @property
    def row_count(self) -> int:
        """Rows in the new files."""
        return sum(file.row_count for bucket in self.buckets for file in bucket.new_files)

    @property
    def file_count(self) -> int:
        """Number of new files."""
        return sum(len(bucket.new_files) for bucket in self.buckets)

    def __bytes__(self) -> bytes:
        return _MAGIC + msgspec.msgpack.encode(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Changes:
        """The changes that `bytes` made.

        Raises:
            CorruptionError: `data` is not a Changes value of this version.
            UsageError: `data` is not bytes.
        """
        if not isinstance(data, bytes):
            raise UsageError(f"from_bytes takes bytes, not {type(data).__name__}")
        if not data.startswith(_MAGIC):
            raise CorruptionError("these bytes are not changes of this version of paimon_py")
        try:
            return msgspec.msgpack.decode(data[len(_MAGIC) :], type=cls)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise CorruptionError(f"these bytes are not changes: {error}") from error

    @classmethod
    def concat(cls, parts: Iterable[Changes]) -> Changes:
        """All changes as one, in order.

        The base is the oldest one, the watermark the largest.

        Raises:
            UsageError: nothing is given, or several writers changed a table whose keys move between partitions.
        """
        parts = list(parts)
        if len(parts) == 1:
            return parts[0]
        if not parts:
            raise UsageError("nothing to commit: give at least one Changes value, as writer.changes() returns it")
        bases = {base: None for part in parts for base in (part.base, *part.further_bases)}
        base = min(bases, key=lambda one: one.id)
        watermarks = [part.watermark for part in parts if part.watermark is not None]
        return cls(
            schema_id=max(part.schema_id for part in parts),
            base_snapshot_id=base.id or None,
            base_mark=base.mark,
            further_bases=tuple(one for one in bases if one != base),
            buckets=tuple(bucket for part in parts for bucket in part.buckets),
            watermark=max(watermarks, default=None),
            keys=_joined([part.keys for part in parts if part.keys is not None], parts),
        )

    def __repr__(self) -> str:
        return (
            f"Changes(schema_id={self.schema_id}, base_snapshot_id={self.base_snapshot_id}, "
            f"buckets={len(self.buckets)}, files={self.file_count}, rows={self.row_count})"
        )


def _joined(bases: list[KeyBase], parts: list[Changes]) -> KeyBase | None:
    """What all parts rely on together: what one of them hands over, later ones of the same writer find there."""
    if not bases:
        return None
    if any(base.writer != bases[0].writer for base in bases):
        raise UsageError(
            "changes of several writers cannot be committed together where keys move between partitions: none of them "
            "knew where the others put their keys; write all rows with one writer, or commit one after the other"
        )
    own = {file.name for part in parts for bucket in part.buckets for file in bucket.new_files}
    files = {name for base in bases for name in base.files} - own
    first = min(bases, key=lambda base: base.snapshot_id)
    return msgspec.structs.replace(first, files=tuple(sorted(files)))
