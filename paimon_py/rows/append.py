"""Row operations on tables without a primary key: by deletion vectors, or by rewriting the affected files.

Every file is read once for the columns that conditions need. Files with changed rows are read again; other files are
not. With deletion vectors, changed rows are marked dead and updated rows are written to new files; without, the
remaining rows of a touched file are rewritten. A file without remaining rows is deleted.

Source: Java `DeleteFromPaimonTableCommand`, `UpdatePaimonTableCommand`, `MergeIntoPaimonTable`,
`AppendDeleteFileMaintainer`, `BucketedAppendDeleteFileMaintainer`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.codec.binary_row import decode_one
from paimon_py.codec.columns import Ints, Mask, from_numpy
from paimon_py.codec.deletion_vectors import DeletionVector
from paimon_py.commit.changes import Bucket, BucketChanges, Edit
from paimon_py.commit.deletion_index import BucketDeletions, bucket_deletions
from paimon_py.expr.predicate import Predicate
from paimon_py.files.deletion_filter import LiveRows, living
from paimon_py.files.physical import with_row_ids
from paimon_py.formats.base import empty_rows
from paimon_py.lsm.same_values import same_values
from paimon_py.metadata.deletion_files import read_deletions
from paimon_py.metadata.open_table import OpenTable
from paimon_py.progress import ProgressCounter, ProgressShare
from paimon_py.rows.decide import DELETE, KEEP, UPDATE, Operation
from paimon_py.rows.evaluation import RowCounts, RowOutput, undone_by
from paimon_py.rows.files_read import Files, files_of, with_new_files
from paimon_py.rows.renewed_vectors import renewed_vectors
from paimon_py.rows.rules import keeps_deletion_vectors
from paimon_py.rows.writer_changes import WriterChanges
from paimon_py.scan.split import Split
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.manifest import IndexEntry
from paimon_py.spec.schema import ROW_ID
from paimon_py.spec.snapshot import Snapshot
from paimon_py.write.session import Writer
from paimon_py.write.settings import WriterSettings

_NONE = DeletionVector({})


class ChangedFile(msgspec.Struct):
    """A file with rows that change.

    `changed`: their positions, from all passes so far. `is_done`: everything is written. `owed`: the number of passes
    whose progress does not yet include writing its rows.
    """

    split: Split
    file: DataFile
    dead: DeletionVector
    changed: DeletionVector
    is_done: bool = False
    owed: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether no row of the file is left."""
        return len(self.dead) + len(self.changed) >= self.file.row_count


class _Writers(NamedTuple):
    """The writers of existing rows and of new rows; the same writer except for tables with row ids."""

    again: Writer
    new: Writer


class AppendRows:
    """One evaluation of operations on the rows of a table."""

    def __init__(
        self,
        table: OpenTable,
        predicate: Predicate | None,
        operations: Callable[[], Iterable[Operation]],
        *,
        alone: bool,
        tally: ProgressCounter,
    ) -> None:
        """`predicate`: true for all rows that can change; `alone`: there is only one operation; `tally` counts three
        steps per row and operation: the dry run, the decision, and the writing."""
        self._tally = tally
        self._root = table.root
        self._schema = table.schema
        self._files = table
        self._predicate = predicate
        self._operations = operations
        self._alone = alone
        self._marks = keeps_deletion_vectors(table.schema)
        self._stored = with_row_ids(table.schema)
        self._written = WriterChanges(table)
        self._touched: dict[tuple[bytes, int, str], ChangedFile] = {}
        self._seen: list[Mask] = []
        self._made: list[IndexEntry] = []
        self._counts = RowCounts()

    def evaluate(self, snapshot: Snapshot | None, splits: Sequence[Split]) -> RowOutput:
        """Write the changes, without committing them. `splits` contain all rows that can change.

        Raises: the errors of reading and writing; written files are deleted first.
        """
        with self._writing(snapshot) as writers:
            for operation in self._operations():
                if operation.is_doubtful:
                    self._rehearse(operation, splits)
            for operation in self._operations():
                self._pass(operation, splits, writers.again)
                for batch in operation.inserts():
                    self._counts = self._counts.plus(inserted=batch.num_rows)
                    writers.new.write_arrow(batch)
                self._seen.append(operation.seen.copy())
            return self._evaluation(snapshot, writers)

    def carry_on(self, snapshot: Snapshot, splits: Sequence[Split], known: Files) -> RowOutput | None:
        """Write the changes in files that are new since `known`. None: everything was deleted, because other commits
        did more than add files, or added a row with a key that this operation inserts.

        Raises: as `evaluate`.
        """
        if not known <= files_of(splits):
            self.discard()
            return None
        with self._writing(snapshot) as writers:
            for operation, seen in zip(self._operations(), self._seen, strict=True):
                self._pass(operation, with_new_files(splits, known), writers.again)
                if operation.adds_rows and bool((operation.seen & ~seen).any()):
                    writers.again.abort()
                    writers.new.abort()
                    self.discard()
                    return None
            return self._evaluation(snapshot, writers)

    def discard(self) -> None:
        """Delete the written files."""
        self._delete_made()
        self._written.discard()

    def _delete_made(self) -> None:
        """Delete index files, which are rebuilt for every snapshot."""
        made, self._made = self._made, []
        self._files.delete_index(made)

    @contextlib.contextmanager
    def _writing(self, snapshot: Snapshot | None) -> Iterator[_Writers]:
        """Writers of changes relative to a snapshot; everything is deleted if the block fails."""
        settings = WriterSettings.of(self._schema, compacts=False, memory=self._root.env.memory)
        with undone_by(self.discard, self._root, snapshot), contextlib.ExitStack() as stack:
            again = new = stack.enter_context(Writer(self._files.under(self._stored), settings))
            if self._stored is not self._schema:
                new = stack.enter_context(Writer(self._files, settings))
            yield _Writers(again, new)

    def _evaluation(self, snapshot: Snapshot | None, writers: _Writers) -> RowOutput:
        """All written files, with the files to remove and the index files for a snapshot."""
        for touched in self._touched.values():
            if not self._marks and not touched.is_done:
                self._write_all(touched, None, touched.changed, _NONE, writers.again)
        self._written.take(writers.again)
        if writers.new is not writers.again:
            self._written.take(writers.new)
        self._tally.end()
        self._delete_made()
        changes = self._written.changes()
        changes = msgspec.structs.replace(changes, buckets=(*self._replacements(snapshot), *changes.buckets))
        return RowOutput(changes, self._counts, self.discard, self.carry_on)

    # -- rows -------------------------------------------------------------------------------------------------------

    def _rehearse(self, operation: Operation, splits: Sequence[Split]) -> None:
        """Decide on all rows, so that invalid operations are refused before a file is written."""
        for split in splits:
            vectors = read_deletions(self._root.files, split.deletions)
            for file in split.files:
                self._decide(operation, split, file, vectors.get(file.name, _NONE), steps=1)
        operation.check()

    def _pass(self, operation: Operation, splits: Sequence[Split], writer: Writer) -> None:
        """Apply one operation. If it is the only one, touched files are rewritten immediately."""
        for split in splits:
            vectors = read_deletions(self._root.files, split.deletions)
            for file in split.files:
                dead = vectors.get(file.name, _NONE)
                steps = 1 if operation.is_doubtful else 2
                deleted, updated = self._decide(operation, split, file, dead, steps=steps)
                if not len(deleted) and not len(updated):
                    self._tally.add(file.row_count)
                    continue
                key = (split.partition, split.bucket, file.name)
                touched = self._touched.setdefault(key, ChangedFile(split, file, dead, _NONE))
                touched.changed = touched.changed.union(DeletionVector.of(np.concatenate([deleted, updated])))
                touched.owed += 1
                self._counts = self._counts.plus(deleted=len(deleted), updated=len(updated))
                if self._alone and not self._marks:
                    self._write_all(touched, operation, DeletionVector.of(deleted), DeletionVector.of(updated), writer)
                elif len(updated):
                    self._write_updated(operation, touched, DeletionVector.of(updated), writer)
                elif self._marks:
                    self._share_of_writing(touched).end()

    def _decide(
        self, operation: Operation, split: Split, file: DataFile, dead: DeletionVector, *, steps: int
    ) -> tuple[Ints, Ints]:
        """The positions of the rows to delete, and of those to update. `steps`: progress steps per row."""
        part = ProgressShare(self._tally, file.row_count, steps=steps)
        deleted: list[Ints] = [np.empty(0, np.int64)]
        updated: list[Ints] = [np.empty(0, np.int64)]
        if operation.names <= set(self._schema.partition_keys):
            part.end()
            return self._decided_together(operation, split, file, dead)
        for found in self._rows(split, file, operation.names, dead, self._predicate):
            actions = operation.decide(found.rows).actions
            if actions.any():
                deleted.append(found.positions(np.flatnonzero(actions == DELETE)))
                updated.append(found.positions(np.flatnonzero(actions == UPDATE)))
            part.reach(found.end)
        part.end()
        return np.concatenate(deleted), np.concatenate(updated)

    def _decided_together(
        self, operation: Operation, split: Split, file: DataFile, dead: DeletionVector
    ) -> tuple[Ints, Ints]:
        """The same if the partition alone decides; nothing is read."""
        fields = self._schema.partition_fields
        columns = decode_one(split.partition, [field.type for field in fields])
        batch = pa.RecordBatch.from_arrays(columns, names=[field.name for field in fields]) if fields else empty_rows(1)
        action = int(operation.decide(batch).actions[0])
        none = np.empty(0, np.int64)
        if action == KEEP:
            return none, none
        alive = np.setdiff1d(np.arange(file.row_count), dead.positions, assume_unique=True)
        return (alive, none) if action == DELETE else (none, alive)

    def _write_updated(
        self, operation: Operation, touched: ChangedFile, wanted: DeletionVector, writer: Writer
    ) -> None:
        """Write the updated versions of the rows at some positions of a file."""
        names = frozenset(self._stored.names)
        part = self._share_of_writing(touched) if self._marks else ProgressShare(self._tally, 0)
        for found in self._rows(touched.split, touched.file, names, touched.dead, self._predicate, wanted):
            places = found.find(wanted)
            if len(places):
                chosen = found.rows.take(from_numpy(places, pa.int64()))
                writer.write_again(self._update(operation, chosen))
            part.reach(found.end)
        part.end()

    def _update(self, operation: Operation, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Updated rows; they keep their row ids, and get the sequence number of the next snapshot."""
        updated = operation.update(rows, operation.decide(rows))
        if self._stored is self._schema:
            return updated
        columns = [*updated.columns, rows.column(ROW_ID), pa.nulls(rows.num_rows, pa.int64())]
        return pa.RecordBatch.from_arrays(columns, schema=to_arrow_schema(self._stored.fields))

    def _share_of_writing(self, touched: ChangedFile) -> ProgressShare:
        """The progress share for writing a file."""
        owed, touched.owed = touched.owed, 0
        return ProgressShare(self._tally, touched.file.row_count, steps=owed)

    def _write_all(
        self,
        touched: ChangedFile,
        operation: Operation | None,
        gone: DeletionVector,
        updated: DeletionVector,
        writer: Writer,
    ) -> None:
        """Write the remaining rows of a file, with those at some positions updated."""
        names = frozenset(self._stored.names)
        gone = touched.dead.union(gone)
        touched.is_done = True
        part = self._share_of_writing(touched)
        if len(gone) >= touched.file.row_count:
            part.end()
            return
        for found in self._rows(touched.split, touched.file, names, gone, None):
            batch, places = found.rows, found.find(updated)
            if operation is not None and len(places):
                chosen = batch.take(from_numpy(places, pa.int64()))
                batch = _replace_rows(batch, places, self._update(operation, chosen), chosen)
            writer.write_again(batch)
            part.reach(found.end)
        part.end()

    def _rows(
        self,
        split: Split,
        file: DataFile,
        names: frozenset[str],
        dead: DeletionVector,
        predicate: Predicate | None,
        wanted: DeletionVector | None = None,
    ) -> Iterator[LiveRows]:
        """The live rows of a file.

        Rows outside `wanted`, and rows for which `predicate` is not true, may be missing.
        """
        fields = [field for field in self._stored.fields if field.name in names]
        rows = wanted.bitmap(0) if wanted is not None and len(wanted.highs) == 1 else None
        files = self._files.bucket(split.partition, split.bucket)
        return living(files.reader(file, fields).positions(predicate=predicate, rows=rows), dead)

    # -- files ------------------------------------------------------------------------------------------------------

    def _replacements(self, snapshot: Snapshot | None) -> list[BucketChanges]:
        """The removed files and changed index files of every bucket."""
        if not self._touched:
            return []
        assert snapshot is not None
        by_bucket: dict[Bucket, list[ChangedFile]] = {}
        for touched in self._touched.values():
            by_bucket.setdefault((touched.split.partition, touched.split.bucket), []).append(touched)
        entries = self._root.manifests.live_entries(snapshot)
        wanted = {touched.file.name for touched in self._touched.values()}
        rows = np.array([name in wanted for name in entries.names().to_pylist()], np.bool_)
        whole = {(e.partition, e.bucket, e.file.name): e.file for e in entries.take(np.flatnonzero(rows)).entries()}
        index = bucket_deletions(self._files, snapshot)
        return [
            self._replaced_in(bucket, files, whole, index.get(bucket, BucketDeletions()))
            for bucket, files in by_bucket.items()
        ]

    def _replaced_in(
        self,
        bucket: Bucket,
        files: Sequence[ChangedFile],
        whole: dict[tuple[bytes, int, str], DataFile],
        known: BucketDeletions,
    ) -> BucketChanges:
        partition, number = bucket
        total = files[0].split.total_buckets
        gone = [each for each in files if each.is_empty or not self._marks]
        marked = {each.file.name: each.changed for each in files if self._marks and not each.is_empty}
        lost = {each.file.name for each in gone}
        old, new = renewed_vectors(self._files, bucket, lost, marked, known, with_buckets=total > 0)
        self._made += new
        return BucketChanges(
            partition=partition,
            bucket=number,
            total_buckets=total,
            written=Edit(
                deleted=tuple(whole[partition, number, each.file.name] for each in gone),
                deleted_index=old,
                added_index=new,
            ),
        )


def _replace_rows(batch: pa.RecordBatch, places: Ints, new: pa.RecordBatch, old: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with some rows replaced; unchanged columns are not copied."""
    order = np.arange(batch.num_rows)
    order[places] = batch.num_rows + np.arange(len(places))
    index = from_numpy(order, pa.int64())
    columns = [
        column if same_values(was, now).all() else pa.concat_arrays([column, now]).take(index)
        for column, was, now in zip(batch.columns, old.columns, new.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=new.schema)
