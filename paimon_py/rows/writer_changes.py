"""The output of the writers of one evaluation, until it is committed or discarded."""

from __future__ import annotations

from collections.abc import Iterator, Set

import msgspec
import pyarrow as pa

from paimon_py.commit.changes import Bucket, BucketChanges, Changes, Edit
from paimon_py.commit.uncommitted import delete_made
from paimon_py.files.physical import KIND_FIELD
from paimon_py.metadata.open_table import OpenTable
from paimon_py.write.session import Writer


class WriterChanges:
    """Changes, each with the writer that produced them."""

    def __init__(self, table: OpenTable) -> None:
        self._table = table
        self._root = table.root
        self._schema = table.schema
        self._parts: list[tuple[Writer, Changes]] = []
        self._packs: list[BucketChanges] = []

    def take(self, writer: Writer) -> None:
        """Take over the output of a writer since the previous call.

        Raises: the errors of `Writer.changes`.
        """
        self._parts.append((writer, writer.changes(is_new=True)))

    def changes(self) -> Changes:
        """All changes."""
        return Changes.concat(changes for _, changes in self._parts)

    def rows(self, bucket: Bucket) -> Iterator[pa.RecordBatch]:
        """The rows written to a bucket of a primary-key table: its columns, and `_VALUE_KIND`.

        Raises: FileMissingError, CorruptionError, StorageError
        """
        fields = (*self._schema.fields, KIND_FIELD)
        files = OpenTable(self._root, self._schema).bucket(*bucket)
        for _, changes in self._parts:
            for one in changes.buckets:
                if (one.partition, one.bucket) == bucket:
                    for file in one.written.added:
                        yield from files.stored_rows(file, fields)

    def drop(self, buckets: Set[Bucket]) -> None:
        """Delete the output for some buckets, but not the packs of BLOBs that rows written again may refer to."""
        parts, self._parts = self._parts, []
        for writer, changes in parts:
            gone = tuple(each for each in changes.buckets if (each.partition, each.bucket) in buckets)
            rest = tuple(each for each in changes.buckets if (each.partition, each.bucket) not in buckets)
            self._parts.append((writer, msgspec.structs.replace(changes, buckets=rest)))
            self._packs += (msgspec.structs.replace(each, written=Edit(), compacted=Edit()) for each in gone)
            gone = tuple(msgspec.structs.replace(each, packs=()) for each in gone)
            writer.discard(msgspec.structs.replace(changes, buckets=gone))

    def discard(self) -> None:
        """Delete all output."""
        parts, self._parts = self._parts, []
        for writer, changes in parts:
            writer.discard(changes)
        delete_made(self._table, self._packs)
        self._packs = []
