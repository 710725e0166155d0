"""Adds the file indexes of a table's options to old files: only metadata changes, rows are not rewritten.

Source: Java `FileIndexProcessor`, `RewriteFileIndexProcedure`. Unlike in Java, existing indexes of a file are kept:
only missing ones are built, and those no longer in the options are removed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping

import msgspec

from paimon_py.codec.file_index.container import encode
from paimon_py.codec.partition_choice import PartitionChoice
from paimon_py.commit.changes import Bucket, BucketChanges, Changes, Edit
from paimon_py.commit.commit import commit
from paimon_py.commit.compact_manifests import compact_manifests
from paimon_py.commit.deletion_index import BucketDeletions, bucket_deletions
from paimon_py.commit.request import CommitRequest
from paimon_py.commit.result import CommitResult
from paimon_py.commit.rounds import on_latest
from paimon_py.commit.snapshot_delta import compact_part
from paimon_py.commit.state import State
from paimon_py.commit.uncommitted import discarding_on_failure
from paimon_py.errors import CommitConflictError, StorageError
from paimon_py.files.file_index import FileIndexWriter, Indexes, has_index, index_file, read_indexes
from paimon_py.metadata.entry_filter import EntryFilter
from paimon_py.metadata.history import SnapshotLog
from paimon_py.metadata.open_table import BucketFiles, OpenTable
from paimon_py.spec.commit_label import CommitLabel
from paimon_py.spec.data_file import DataFile, ManifestEntry
from paimon_py.spec.file_indexes import INDEX_SUFFIX, IndexColumn, allows, index_columns, indexed_type
from paimon_py.spec.layout import POSTPONE_BUCKET
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Base, Snapshot
from paimon_py.storage.store import new_file

ROUNDS = 20
"""The number of times that expired files are listed again."""


def rewrite_indexes(table: OpenTable, chosen: PartitionChoice | None) -> CommitResult:
    """Add missing indexes to the live files of a table and commit that; no snapshot if nothing is missing.

    A bucket whose files others replace in the meantime is left unchanged and reported in the result.

    Cost: reads the indexed columns of files with a missing index once.
    Raises:
        CommitUnknownError: nothing was deleted. After any other error no new file is left behind, if the store can
            still delete files.
    """

    request = CommitRequest(label=CommitLabel(table.root.env.ids.uuid()), is_new=True)

    def work(snapshot: Snapshot | None, _: int) -> CommitResult:
        return CommitResult() if snapshot is None else _Rewrite(table).run(snapshot, chosen, request)

    return on_latest(table.root, work, rounds=ROUNDS)


class _Rewrite:
    """One attempt to add the missing indexes."""

    def __init__(self, table: OpenTable) -> None:
        self._root = table.root
        self._schema = table.schema
        self._files = table
        self._wanted = index_columns(table.schema.options)
        self._limit = table.options.get_memory("file-index.in-manifest-threshold")
        self._made: dict[Bucket, list[str]] = {}

    def run(self, snapshot: Snapshot, chosen: PartitionChoice | None, request: CommitRequest) -> CommitResult:
        """Build the missing indexes of the partitions, and commit them."""
        with discarding_on_failure(self.discard):
            changes = self.changes(snapshot, chosen)
            if changes is not None and self._returns(snapshot, changes):
                compact_manifests(self._files)
            result = CommitResult() if changes is None else self._commit(changes, request)
        self.discard(result.dropped_buckets)
        return result

    def _commit(self, changes: Changes, request: CommitRequest) -> CommitResult:
        """The result of committing the changes: all buckets are dropped if none can be committed."""
        try:
            return commit(self._files, changes, request)
        except CommitConflictError as error:
            buckets = tuple((bucket.partition, bucket.bucket) for bucket in changes.buckets)
            return CommitResult(dropped_compaction=str(error), dropped_buckets=buckets)

    def _returns(self, snapshot: Snapshot, changes: Changes) -> bool:
        """Whether a file would get back an entry that it had before an index was built for it.

        Readers fold entries in any order and would consider such a file deleted; merged manifests contain no earlier
        entry.
        """
        part = compact_part(changes.buckets)
        return State(self._files, snapshot, SnapshotLog(self._root)).returning(part) is not None

    def changes(self, snapshot: Snapshot, chosen: PartitionChoice | None) -> Changes | None:
        """The changes to commit; None if there are none."""
        root = self._root
        entries = root.manifests.live_entries(snapshot, EntryFilter(partitions=chosen)).entries()
        deletions = bucket_deletions(OpenTable(root, self._schema), snapshot)
        buckets: dict[tuple[bytes, int, int], list[tuple[DataFile, DataFile]]] = {}
        for entry in entries:
            if entry.bucket == POSTPONE_BUCKET:
                continue
            file = self._build_indexes(entry)
            if file != entry.file:
                place = (entry.partition, entry.bucket, entry.total_buckets)
                buckets.setdefault(place, []).append((entry.file, file))
        if not buckets:
            return None
        return Changes(
            schema_id=self._schema.id,
            base=Base.of(snapshot),
            branch=self._root.branch,
            buckets=tuple(_bucket_changes(place, pairs, deletions) for place, pairs in sorted(buckets.items())),
        )

    def discard(self, buckets: Collection[Bucket] | None = None) -> None:
        """Delete the new index files of these buckets, or of all buckets."""
        for bucket, paths in self._made.items():
            for path in paths if buckets is None or bucket in buckets else ():
                with contextlib.suppress(StorageError):
                    self._root.files.delete(path)

    def _build_indexes(self, entry: ManifestEntry) -> DataFile:
        """The file with all indexes of the table's options."""
        files, file = self._files.bucket(entry.partition, entry.bucket), entry.file
        wanted = self._wanted_of(file, files.schema_of(file))
        if not wanted and not has_index(file):
            return file
        had = read_indexes(self._root.files, files.path(file), file)
        names = {(index.name, index.kind) for index in wanted}
        kept: Indexes = {}
        for name, kinds in had.items():
            found = {kind: data for kind, data in kinds.items() if (name, kind) in names}
            if found:
                kept[name] = found
        missing = [index for index in wanted if index.kind not in kept.get(index.name, {})]
        if missing:
            for name, kinds in _make_indexes(files, file, missing).items():
                kept[name] = {**kept.get(name, {}), **kinds}
        return file if kept == had else self._place(files, file, kept)

    def _wanted_of(self, file: DataFile, written: TableSchema) -> list[IndexColumn]:
        """The indexes that a file can have, under the column names of its schema."""
        ids = {field.name: field.id for field in self._schema.fields}
        names = written.names if file.write_columns is None else file.write_columns
        old = {field.id: field for field in written.fields if field.name in names}
        found = []
        for index in self._wanted:
            field = old.get(ids.get(index.column, -1))
            type_ = None if field is None else indexed_type(index, field.type)
            if field is not None and type_ is not None and allows(index.kind, type_):
                found.append(msgspec.structs.replace(index, column=field.name))
        return found

    def _place(self, files: BucketFiles, file: DataFile, indexes: Indexes) -> DataFile:
        """The file with these indexes, in its manifest entry or in a new index file.

        The new index file gets a unique name, since other processes may be doing the same.
        """
        others = tuple(name for name in file.extra_files if not name.endswith(INDEX_SUFFIX))
        data = encode(indexes) if indexes else None
        if data is None or len(data) <= self._limit:
            return msgspec.structs.replace(file, extra_files=others, embedded_index=data)
        name = f"{file.name}-{self._root.env.ids.uuid()}{INDEX_SUFFIX}"
        made = msgspec.structs.replace(file, extra_files=(*others, name), embedded_index=None)
        place = index_file(files.path(file), made)
        assert place is not None
        with new_file(self._root.files, place) as sink:
            sink.write(encode(indexes))
        self._made.setdefault((files.partition, files.bucket), []).append(place)
        return made


def _make_indexes(files: BucketFiles, file: DataFile, missing: list[IndexColumn]) -> Indexes:
    """Build indexes over the rows of a file, in the columns that the file has."""
    names = {index.column for index in missing}
    fields = tuple(field for field in files.schema_of(file).fields if field.name in names)
    writer = FileIndexWriter(fields, missing)
    for _, batch in files.reader(file, fields).positions():
        writer.add(batch)
    return writer.finish()


def _bucket_changes(
    place: tuple[bytes, int, int],
    pairs: list[tuple[DataFile, DataFile]],
    deletions: Mapping[Bucket, BucketDeletions],
) -> BucketChanges:
    """Replace old entries by new ones; the deletion vectors stay, and must be unchanged at the commit."""
    partition, bucket, total_buckets = place
    index = deletions[partition, bucket].index if (partition, bucket) in deletions else ()
    return BucketChanges(
        partition=partition,
        bucket=bucket,
        total_buckets=total_buckets,
        compacted=Edit(
            deleted=tuple(old for old, _ in pairs),
            added=tuple(new for _, new in pairs),
            added_index=index,
            deleted_index=index,
        ),
    )
