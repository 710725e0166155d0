"""The hash indexes of dynamic buckets in a commit: the index to publish if others committed keys in the meantime.

A writer assigns keys by the index it found. Hashes that others added since are united with its own; the commit is
refused only if a key was assigned two buckets: no hash is ever lost, no key is in two buckets. The writer's own file is
then useless, and deleted. A writer that continues may reference it again: its contents are then read from the keys of
the rows that rely on it.

Source: format.md §7.4, §10.1; Java `IndexManifestFileHandler` (which keeps only the last index).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from paimon_py.codec.columns import Int32s
from paimon_py.commit.changes import Bucket, BucketChanges, Changes, Edit
from paimon_py.commit.concurrent_commits import joint_base
from paimon_py.commit.conflicts import Conflict
from paimon_py.commit.deletion_index import index_entries
from paimon_py.commit.index_plan import Index, IndexChange, index_after, index_part
from paimon_py.commit.state import State
from paimon_py.errors import SnapshotExpiredError
from paimon_py.metadata.hash_files import key_hashes, read_hashes, write_hashes
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.manifest import HASH, IndexEntry
from paimon_py.spec.snapshot import Base
from paimon_py.storage.store import FileMissingError

Change = tuple[IndexChange, tuple[DataFile, ...]]
"""The change of the index of a bucket by writing, and the new files that rely on it."""

_NONE = np.empty(0, np.int32)


class HashIndexes:
    """The changes of one commit to the hash indexes of its table."""

    def __init__(self, table: OpenTable) -> None:
        self._root = table.root
        self._schema = table.schema
        self._files = table
        self._made: list[IndexEntry] = []

    def after(self, index: Index, state: State, changes: Changes) -> Index | Conflict:
        """The index files of the table after the changes; merged files are rewritten.

        Cost: reads hashes only of partitions whose index others changed, and keys of new files only if a writer's
            index file is missing.
        Raises: SnapshotExpiredError, CorruptionError, StorageError
        """
        self.discard()
        hashed = hash_changes(changes.buckets)
        if not hashed:
            return index
        stale = stale_partitions(index, self._find(state, changes), [change for change, _ in hashed])
        united: list[IndexChange] = []
        for partition in sorted(stale):
            found = self._unite(partition, index, state, [one for one in hashed if one[0][0][0] == partition])
            if isinstance(found, Conflict):
                return found
            united += found
        fresh = [(place, edit) for (place, edit), _ in hashed if place[0] not in stale]
        fresh = [(place, edit) for place, edit in fresh if edit.deleted_index != edit.added_index]
        return index_after(index, [*fresh, *united], by_bucket=True)

    def discard(self) -> None:
        """Delete the created files; no snapshot references them."""
        made, self._made = self._made, []
        self._files.delete_index(made)

    def _find(self, state: State, changes: Changes) -> Index | None:
        """The index that the writers found; None if it can no longer be read."""
        base = joint_base(state.snapshot_log, changes, state.latest)
        if base.is_of(None):
            return ()
        snapshot = state.snapshot_log.at(base, state.latest)
        try:
            return None if snapshot is None else index_entries(self._root, snapshot)
        except SnapshotExpiredError:
            return None

    def _unite(
        self, partition: bytes, index: Index, state: State, changes: Sequence[Change]
    ) -> list[IndexChange] | Conflict:
        entries = {e.bucket: e for e in index if e.index_type == HASH and e.partition == partition}
        now = {bucket: np.unique(self._read_latest(entry, state)) for bucket, entry in entries.items()}
        place = self._files.label(partition)
        result: dict[int, Edit] = {}
        for ((_, bucket), edit), files in changes:
            own, hashes = self._own((partition, bucket), edit, files)
            current = now.get(bucket, _NONE)
            added = np.setdiff1d(hashes, current)
            for other, known in now.items():
                if other != bucket and len(np.intersect1d(added, known)):
                    return Conflict(
                        f"another writer assigned bucket {other} to a key of {place} in the meantime, and this one"
                        f" bucket {bucket}; "
                        "write the rows again with a new writer"
                    )
            if len(added):
                now[bucket] = np.union1d(current, added)
                old = (entries[bucket],) if bucket in entries else ()
                result[bucket] = Edit(deleted_index=old, added_index=own)
        return [
            ((partition, bucket), self._write_edit(partition, bucket, edit, now[bucket]))
            for bucket, edit in result.items()
        ]

    def _write_edit(self, partition: bytes, bucket: int, edit: Edit, hashes: Int32s) -> Edit:
        """An edit of a bucket whose index is `hashes`: uses the writer's own file if that contains all of them."""
        if edit.added_index and edit.added_index[0].row_count == len(hashes):
            return edit
        entry = write_hashes(self._files.bucket(partition, bucket), hashes)
        self._made.append(entry)
        return Edit(deleted_index=edit.deleted_index, added_index=(entry,))

    def _own(self, place: Bucket, edit: Edit, files: Sequence[DataFile]) -> tuple[Index, Int32s]:
        """A writer's index file and the hashes that it gave this bucket; without the file, those of its new rows."""
        try:
            found = [read_hashes(self._files, entry) for entry in edit.added_index]
        except FileMissingError:
            found = [key_hashes(self._files.bucket(*place), file) for file in files]
            return (), np.unique(np.concatenate([_NONE, *found]))
        return edit.added_index, np.unique(np.concatenate([_NONE, *found]))

    def _read_latest(self, entry: IndexEntry, state: State) -> Int32s:
        try:
            return read_hashes(self._files, entry)
        except FileMissingError as error:
            raise self._root.missing(Base.of(state.latest), error) from error


def hash_changes(buckets: Iterable[BucketChanges]) -> list[Change]:
    """The changes of hash indexes by writing, or the indexes it relied on, with the new files."""
    edits = ((bucket.place, index_part(bucket.written, hashes=True), bucket.written.added) for bucket in buckets)
    return [((place, edit), files) for place, edit, files in edits if edit.changes_index]


def replaced_hashes(index: Index, buckets: Iterable[BucketChanges]) -> Index:
    """The index files of a table after an overwrite that left `index`, with those of the new rows."""
    changes = [(place, Edit(added_index=edit.added_index)) for (place, edit), _ in hash_changes(buckets)]
    return index_after(index, changes, by_bucket=True)


def stale_partitions(index: Index, base: Index | None, changes: Sequence[IndexChange]) -> set[bytes]:
    """The partitions whose index is not the one on which the changes were made.

    Args:
        index: the current index files. base: those that the writers found; None if unknown.
    """
    partitions = {partition for (partition, _), _ in changes}
    if base is None:
        return partitions
    now = _by_bucket(index, partitions)
    stale = {partition for (partition, _), _ in now.items() ^ _by_bucket(base, partitions).items()}
    for place, edit in changes:
        expected = edit.deleted_index[0].name if edit.deleted_index else None
        if now.get(place) != expected:
            stale.add(place[0])
        if edit.added_index:
            now[place] = edit.added_index[0].name
    return stale


def _by_bucket(index: Iterable[IndexEntry], partitions: set[bytes]) -> dict[Bucket, str]:
    return {
        (entry.partition, entry.bucket): entry.name
        for entry in index
        if entry.index_type == HASH and entry.partition in partitions
    }
