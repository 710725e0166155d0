"""The changes of writers to a table, ready to be committed: values that can be sent as bytes.

Paimon's documentation calls them *commit messages*.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

import msgspec

from paimon_py.arguments import as_items
from paimon_py.errors import UsageError
from paimon_py.spec.bounds import BucketNumber, Count, Long
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.layout import MAIN_BRANCH
from paimon_py.spec.manifest import IndexEntry
from paimon_py.spec.packed import PackedType, pack_list, with_label
from paimon_py.spec.serializable import Serializable
from paimon_py.spec.snapshot import Base

Bucket = tuple[bytes, int]
"""Partition and number of a bucket."""


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of one snapshot to one bucket: files and index files that are added and deleted together.

    A file that only moves to another level is deleted and added under one name. `deleted_index`: the entries that
    `added_index` replaces, as the author of the edit found them.
    """

    added: tuple[DataFile, ...] = ()
    deleted: tuple[DataFile, ...] = ()
    changelog: tuple[DataFile, ...] = ()
    added_index: tuple[IndexEntry, ...] = ()
    deleted_index: tuple[IndexEntry, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the edit does nothing."""
        return self == _NOTHING

    @property
    def changes_index(self) -> bool:
        """Whether the edit mentions index files, even if they stay unchanged."""
        return bool(self.added_index or self.deleted_index)

    @property
    def made_files(self) -> tuple[DataFile, ...]:
        """The data and changelog files that were created for the edit."""
        moved = {file.name for file in self.deleted}
        return tuple(file for file in self.added + self.changelog if file.name not in moved)

    @property
    def made_index(self) -> tuple[IndexEntry, ...]:
        """The index files that were created for the edit."""
        before = {entry.name for entry in self.deleted_index}
        return tuple(entry for entry in self.added_index if entry.name not in before)


_NOTHING = Edit()


class BucketChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of one writer to one bucket: what was written, and what was compacted afterwards.

    Attributes:
        partition: serialized BinaryRow.
        total_buckets: number of buckets of the partition, −1 without fixed buckets.
        written: becomes the first snapshot of a commit.
        compacted: becomes the second one.
        compact_base: if a writer compacted its own new files, the snapshot whose files the writer knew; rows that
            others committed since then must not be bypassed.
        packs: names of the packs of BLOBs that the writer created.
    """

    partition: bytes
    bucket: BucketNumber
    total_buckets: BucketNumber
    written: Edit = _NOTHING
    compacted: Edit = _NOTHING
    compact_base: Base | None = None
    packs: tuple[str, ...] = ()

    @property
    def place(self) -> Bucket:
        """Partition and number of the bucket."""
        return self.partition, self.bucket

    @property
    def is_empty(self) -> bool:
        """Whether nothing was changed."""
        return self.written.is_empty and self.compacted.is_empty

    @property
    def made_files(self) -> tuple[DataFile, ...]:
        """Every data and changelog file that the writer created: to delete if the changes are discarded."""
        moved = {file.name for file in self.written.deleted + self.compacted.deleted}
        made = {file.name: file for file in self.written.added + self.written.changelog}
        for file in self.compacted.added + self.compacted.changelog:
            if file.name not in moved:
                made.setdefault(file.name, file)
        return tuple(made.values())

    @property
    def compaction_files(self) -> tuple[DataFile, ...]:
        """The data and changelog files that only the compaction created."""
        new = {file.name for file in self.written.added}
        return tuple(file for file in self.compacted.made_files if file.name not in new)

    def without_compaction(self) -> BucketChanges:
        """The changes without their compaction."""
        return msgspec.structs.replace(self, compacted=_NOTHING, compact_base=None)


_INDEX, _COMPACTION = "index", "compaction"


def _weigh(bucket: BucketChanges) -> int:
    return 1 + sum(len(files) for edit in (bucket.written, bucket.compacted) for files in _files_of(edit))


def _files_of(edit: Edit) -> tuple[tuple[DataFile, ...], ...]:
    return edit.added, edit.deleted, edit.changelog


def _label(bucket: BucketChanges) -> frozenset[str]:
    index = bucket.written.changes_index or bucket.compacted.changes_index
    found = {_INDEX: index, _COMPACTION: not bucket.compacted.is_empty}
    return frozenset(label for label, holds in found.items() if holds)


_BUCKETS = PackedType(BucketChanges, _weigh, _label)


def pack_buckets(buckets: Iterable[BucketChanges]) -> Sequence[BucketChanges]:
    """The changes of buckets as a list, packed if they have very many files."""
    return pack_list(buckets, _BUCKETS)


def with_index(buckets: Sequence[BucketChanges]) -> Iterable[BucketChanges]:
    """All changes of buckets that mention index files; others may be among them."""
    return with_label(buckets, _INDEX)


def with_compaction(buckets: Sequence[BucketChanges]) -> Iterable[BucketChanges]:
    """All changes of buckets that contain a compaction; others may be among them."""
    return with_label(buckets, _COMPACTION)


class KeyBase(msgspec.Struct, frozen=True, kw_only=True):
    """The state of all keys that changes rely on, in a table whose keys move between partitions.

    `writer`: the writer. `base`: the state that the writer knew. `files`: new files that the writer had handed over
    before these changes and after that snapshot; they must be in the table, and nothing else may have been added.
    """

    writer: str
    base: Base
    files: tuple[str, ...] = ()


class Changes(Serializable, frozen=True, kw_only=True):
    """The changes of one or more writers; commit them with `Table.commit`.

    `bytes(changes)` can be sent to another process, `Changes.from_bytes` restores it.

    Attributes:
        schema_id: schema that the rows were written with (the newest, if writers differ).
        base: latest snapshot when the (first) writer opened.
        further_bases: the bases of the other writers.
        made_after: a snapshot that existed before the last of the files was created: no snapshot up to it contains them
            all.
        buckets: one value per writer and bucket; a bucket occurs again if several writers, or one writer at several
            times, wrote to it, the earlier first. Very many files are kept packed (`spec/packed.py`).
        watermark: event-time watermark in epoch milliseconds; None if unknown.
        keys: the base of all keys of the table, if they can move between partitions.
        branch: the branch that was written to.
    """

    kind: ClassVar[str] = "changes"
    edition: ClassVar[int] = 6
    called: ClassVar[str] = "changes"
    again: ClassVar[str] = "write the rows"
    compresses: ClassVar[bool] = True
    inner: ClassVar[frozenset[str]] = frozenset(("further_bases", "keys", "made_after"))

    schema_id: Count
    base: Base
    further_bases: tuple[Base, ...] = ()
    made_after: Base | None = None
    buckets: Sequence[BucketChanges]
    watermark: Long | None = None
    keys: KeyBase | None = None
    branch: str = MAIN_BRANCH

    @property
    def is_empty(self) -> bool:
        """Whether the changes are empty."""
        return all(bucket.is_empty for bucket in self.buckets)

    @property
    def row_count(self) -> int:
        """The number of rows in the new files, without files that contain BLOBs or vectors of these rows."""
        return sum(file.row_count for bucket in self.buckets for file in bucket.written.added if not file.is_apart)

    @property
    def file_count(self) -> int:
        """The number of new files."""
        return sum(len(bucket.written.added) for bucket in self.buckets)

    @classmethod
    def from_bytes(cls, data: bytes) -> Changes:
        """The inverse of `bytes`. Cost, Raises: as `Serializable.from_bytes`"""
        found = super().from_bytes(data)
        return msgspec.structs.replace(found, buckets=pack_buckets(found.buckets))

    @classmethod
    def concat(cls, parts: Iterable[Changes]) -> Changes:
        """Combine changes in order, one after the other.

        The base is the oldest one, the watermark the largest.

        Raises:
            UsageError: no changes are given, or several writers changed a table whose keys move between partitions.
        """
        heads: list[Changes] = []
        buckets = pack_buckets(_buckets_of(as_items("concat takes a list of changes", parts), heads))
        if not heads:
            raise UsageError("nothing to commit: give at least one Changes value, as writer.changes() returns it")
        if len(heads) == 1:
            return msgspec.structs.replace(heads[0], buckets=buckets)
        return cls._with_heads(heads, buckets)

    @classmethod
    def _with_heads(cls, parts: Sequence[Changes], buckets: Sequence[BucketChanges]) -> Changes:
        bases = {base: None for part in parts for base in (part.base, *part.further_bases)}
        base = min(bases, key=lambda one: one.id)
        if len({part.branch for part in parts}) > 1:
            raise UsageError(f"nothing was committed: changes of the branches {parts[0].branch!r} and others are given")
        watermarks = [part.watermark for part in parts if part.watermark is not None]
        return cls(
            schema_id=max(part.schema_id for part in parts),
            base=base,
            further_bases=tuple(one for one in bases if one != base),
            made_after=min((part.made_after or part.base for part in parts), key=lambda one: one.id),
            buckets=buckets,
            watermark=max(watermarks, default=None),
            keys=_join_bases([part.keys for part in parts if part.keys is not None], buckets),
            branch=parts[0].branch,
        )

    def __repr__(self) -> str:
        return (
            f"Changes(schema_id={self.schema_id}, base={self.base.id}, "
            f"buckets={len(self.buckets)}, files={self.file_count}, rows={self.row_count})"
        )


def _buckets_of(parts: Iterable[object], heads: list[Changes]) -> Iterator[BucketChanges]:
    """The buckets of all changes; adds their other attributes to `heads`."""
    for part in parts:
        if not isinstance(part, Changes):
            raise UsageError(f"concat takes a list of changes, as writer.changes() returns them, not {part!r:.200}")
        heads.append(msgspec.structs.replace(part, buckets=()))
        yield from part.buckets


def _join_bases(bases: list[KeyBase], buckets: Iterable[BucketChanges]) -> KeyBase | None:
    """The combined base: later parts of one writer build on its earlier parts."""
    if not bases:
        return None
    if any(base.writer != bases[0].writer for base in bases):
        raise UsageError(
            "changes of several writers cannot be committed together where keys move between partitions: no writer"
            " knows where the others put their keys; write all rows with one writer, or commit one after the other"
        )
    own = {file.name for bucket in buckets for file in bucket.written.added}
    files = {name for base in bases for name in base.files} - own
    first = min(bases, key=lambda one: one.base.id)
    return msgspec.structs.replace(first, files=tuple(sorted(files)))
