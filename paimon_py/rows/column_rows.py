"""Row operations on tables with `data-evolution.enabled`: only the columns that an operation sets are written.

Rows with the same range of ids are processed together. If some of them are updated, a file with the set columns for all
rows of the range is added next to the existing files. Deleted rows are marked in the deletion vector of the range. New
rows are written to separate files.

Source: format.md §24; Java `MergeIntoPaimonDataEvolutionTable`, `DataEvolutionPartialWriter`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from paimon_py.codec.columns import Ints, from_numpy
from paimon_py.codec.deletion_vectors import DeletionVector
from paimon_py.commit.changes import Bucket, BucketChanges, Edit
from paimon_py.commit.deletion_index import BucketDeletions, bucket_deletions, index_entries
from paimon_py.errors import UnsupportedError
from paimon_py.expr.predicate import Predicate
from paimon_py.files.column_files import ColumnFiles, Pieces, behind
from paimon_py.files.deletion_filter import LiveRows, living
from paimon_py.files.physical import with_row_ids
from paimon_py.metadata.deletion_files import read_deletions
from paimon_py.metadata.new_files import NewFiles
from paimon_py.metadata.open_table import BucketFiles, OpenTable
from paimon_py.progress import ProgressCounter, ProgressShare
from paimon_py.rows.blob_values import write_blobs
from paimon_py.rows.columns_writer import ColumnParts, ColumnsWriter, column_parts
from paimon_py.rows.decide import DELETE, UPDATE, Operation
from paimon_py.rows.evaluation import RowCounts, RowOutput, undone_by
from paimon_py.rows.files_read import Files, files_of, with_new_files
from paimon_py.rows.renewed_vectors import renewed_vectors
from paimon_py.rows.writer_changes import WriterChanges
from paimon_py.scan.aligned_rows import AlignedRows
from paimon_py.scan.request import Request
from paimon_py.scan.split import Section, Split
from paimon_py.spec.blobs import fields_apart
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.manifest import IndexEntry
from paimon_py.spec.schema import ROW_ID
from paimon_py.spec.snapshot import Snapshot
from paimon_py.spec.types import Field
from paimon_py.write.align import Alignment
from paimon_py.write.session import Writer
from paimon_py.write.settings import WriterSettings

_NONE = DeletionVector({})
_NO_ROWS: Ints = np.empty(0, np.int64)


class ColumnWork(msgspec.Struct, frozen=True):
    """The effect of operations on columns.

    Attributes:
        predicate: true for all rows that can change; None: all.
        operations: returns the passes over the rows; `updated` of each returns the columns `sets`.
        sets: the columns that operations set, in table order.
        needs: the columns that new values depend on, and those that some clause does not change.
    """

    predicate: Predicate | None
    operations: Callable[[], Iterable[Operation]]
    sets: tuple[str, ...]
    needs: frozenset[str]

    @property
    def adds_rows(self) -> bool:
        """Whether an operation inserts rows."""
        return any(operation.adds_rows for operation in self.operations())


class _Range:
    """Rows with the same range of ids, some of which change.

    Attributes:
        changed: positions of updated rows, and their new values, pass by pass.
        killed: positions of deleted rows.
    """

    def __init__(self, split: Split, files: BucketFiles, section: Section, dead: DeletionVector) -> None:
        self.bucket: Bucket = (split.partition, split.bucket)
        self.total_buckets = split.total_buckets
        self.files = files
        self.columns = ColumnFiles(section.files, files.schema_of)
        self.dead = dead
        self.changed: list[tuple[Ints, pa.RecordBatch]] = []
        self.killed = _NONE

    def rows(self, fields: Sequence[Field], rows: BitMap | None = None) -> Pieces:
        """Columns of the current rows, including dead ones; with `rows`, other rows may be missing."""

        def read(file: DataFile, own: Sequence[Field], offset: int) -> Pieces:
            return self.files.reader(file, own).positions(rows=behind(rows, offset, file))

        def read_blobs(field: Field, files: Sequence[DataFile]) -> Pieces:
            column = self.files.blob_column(field, files, self.columns.first_row_id, self.columns.row_count)
            return column.pieces(rows, as_refs=False)

        return self.columns.rows(fields, read, read_blobs)


class ColumnRows:
    """One evaluation of operations on the rows of a table."""

    def __init__(self, table: OpenTable, work: ColumnWork, *, alone: bool, tally: ProgressCounter) -> None:
        """`alone`: there is only one operation; `tally` counts three steps per row and operation: the dry run, the
        decision, and the writing."""
        self._root = table.root
        self._schema = table.schema
        self._work = work
        self._alone = alone
        self._tally = tally
        self._files = table
        self._shown = with_row_ids(table.schema)
        self._set_fields = tuple(field for field in table.schema.fields if field.name in work.sets)
        apart = fields_apart(table.schema)
        self._plain_fields = tuple(field for field in self._set_fields if field not in apart)
        self._blob_fields = tuple(field for field in self._set_fields if field in apart)
        self._narrow = msgspec.structs.replace(table.schema, fields=self._set_fields)
        self._written = WriterChanges(table)
        self._ranges: dict[tuple[Bucket, int], _Range] = {}
        self._columns: list[tuple[_Range, DataFile]] = []
        self._made: list[IndexEntry] = []
        self._counts = RowCounts()

    def evaluate(self, snapshot: Snapshot | None, splits: Sequence[Split]) -> RowOutput:
        """Write the changes, without committing them. `splits` contain all rows that can change.

        Raises: the errors of reading and writing; written files are deleted first. UnsupportedError for columns with an
            index over row ids.
        """
        _require_no_index(index_entries(self._root, snapshot), self._set_fields)
        with self._writing(snapshot) as writer:
            for operation in self._work.operations():
                if operation.is_doubtful:
                    self._rehearse(operation, splits)
            for operation in self._work.operations():
                self._pass(operation, splits)
                for batch in operation.inserts():
                    self._counts = self._counts.plus(inserted=batch.num_rows)
                    writer.write_arrow(batch)
            return self._evaluation(snapshot, writer)

    def carry_on(self, snapshot: Snapshot, splits: Sequence[Split], known: Files) -> RowOutput | None:
        """Process rows that are new since `known`. None: everything was deleted, because other commits did more than
        add rows, or added a row that this operation would change instead of inserting its own.

        Raises: as `evaluate`.
        """
        later = with_new_files(splits, known)
        if not known <= files_of(splits) or files_of(later) & known or self._work.adds_rows:
            self.discard()
            return None
        with self._writing(snapshot) as writer:
            for operation in self._work.operations():
                self._pass(operation, later)
            return self._evaluation(snapshot, writer)

    def discard(self) -> None:
        """Delete the written files."""
        self._delete_made()
        columns, self._columns = self._columns, []
        for place, file in columns:
            place.files.delete([file])
        self._written.discard()

    def _delete_made(self) -> None:
        """Delete index files, which are rebuilt for every snapshot."""
        made, self._made = self._made, []
        self._files.delete_index(made)

    @contextlib.contextmanager
    def _writing(self, snapshot: Snapshot | None) -> Iterator[Writer]:
        """A writer of new rows relative to a snapshot; everything is deleted if the block fails."""
        settings = WriterSettings.of(self._schema, compacts=False, memory=self._root.env.memory)
        with undone_by(self.discard, self._root, snapshot), Writer(self._files, settings) as writer:
            yield writer

    def _evaluation(self, snapshot: Snapshot | None, writer: Writer) -> RowOutput:
        """All written files, with the index files for a snapshot."""
        for place in self._ranges.values():
            if place.changed:
                self._write_columns(place)
        self._written.take(writer)
        self._tally.end()
        self._delete_made()
        changes = self._written.changes()
        changes = msgspec.structs.replace(changes, buckets=(*self._bucket_changes(snapshot), *changes.buckets))
        return RowOutput(changes, self._counts, self.discard, self.carry_on)

    # -- rows -------------------------------------------------------------------------------------------------------

    def _sections(self, splits: Sequence[Split]) -> Iterator[tuple[Split, Section, DeletionVector]]:
        for split in splits:
            vectors = read_deletions(self._root.files, split.deletions)
            for section in split.sections:
                (anchor,) = section.counted_files
                yield split, section, vectors.get(anchor.name, _NONE)

    def _rehearse(self, operation: Operation, splits: Sequence[Split]) -> None:
        """Decide on all rows, so that invalid operations are refused before a file is written."""
        for split, section, dead in self._sections(splits):
            self._decide(operation, split, section, dead, steps=1)
        operation.check()

    def _pass(self, operation: Operation, splits: Sequence[Split]) -> None:
        """Apply one operation. If it is the only one, columns are written range by range."""
        for split, section, dead in self._sections(splits):
            steps = 1 if operation.is_doubtful else 2
            deleted, updated = self._decide(operation, split, section, dead, steps=steps)
            self._counts = self._counts.plus(deleted=len(deleted), updated=len(updated))
            if not self._set_fields:  # the data have only the columns that rows are found by
                updated = _NO_ROWS
            if len(deleted) or len(updated):
                files = self._files.bucket(split.partition, split.bucket)
                fresh = _Range(split, files, section, dead)
                place = self._ranges.setdefault((fresh.bucket, fresh.columns.first_row_id), fresh)
                if len(deleted):
                    place.killed = place.killed.union(DeletionVector.of(deleted))
                if len(updated) and self._alone and not self._blob_fields:
                    self._write_through(operation, place, updated)
                elif len(updated):
                    place.changed.append((updated, self._values(operation, place, updated)))
                    if self._alone:
                        self._write_columns(place)
            self._tally.add(section.counted_files[0].row_count)

    def _decide(
        self, operation: Operation, split: Split, section: Section, dead: DeletionVector, *, steps: int
    ) -> tuple[Ints, Ints]:
        """The positions of the rows to delete, and of those to update. `steps`: progress steps per row."""
        part = ProgressShare(self._tally, section.counted_files[0].row_count, steps=steps)
        deleted, updated = [_NO_ROWS], [_NO_ROWS]
        for found in self._living(split, section, operation.names, dead):
            actions = operation.decide(found.rows).actions
            if actions.any():
                deleted.append(found.positions(np.flatnonzero(actions == DELETE)))
                updated.append(found.positions(np.flatnonzero(actions == UPDATE)))
            part.reach(found.end)
        part.end()
        return np.concatenate(deleted), np.concatenate(updated)

    def _living(
        self, split: Split, section: Section, names: frozenset[str], dead: DeletionVector
    ) -> Iterator[LiveRows]:
        fields = tuple(field for field in self._shown.fields if field.name in names)
        request = Request(schema=self._shown, columns=(), predicate=self._work.predicate)
        rows = AlignedRows(self._files.bucket(split.partition, split.bucket), request, None)
        (anchor,) = section.counted_files
        return living(rows.read_with_positions(section, fields, {anchor.name: dead} if len(dead) else {}), dead)

    def _values(self, operation: Operation, place: _Range, updated: Ints) -> pa.RecordBatch:
        """The new values of the set columns for the rows at some positions.

        Raises: SchemaError for a value that the column cannot hold.
        """
        names = operation.names | self._work.needs
        fields = tuple(field for field in self._shown.fields if field.name in names)
        wanted, parts = DeletionVector.of(updated), []
        rows = wanted.bitmap(0) if len(wanted.highs) == 1 else None
        for found in living(place.rows(fields, rows), _NONE):
            at = found.find(wanted)
            if len(at):
                parts.append(self._new_values(operation, found.rows, at))
        return pa.Table.from_batches(parts).combine_chunks().to_batches()[0]

    def _new_values(self, operation: Operation, rows: pa.RecordBatch, updated: Ints) -> pa.RecordBatch:
        """The new values of the set columns for some rows of a batch."""
        chosen = rows.take(from_numpy(updated, pa.int64()))
        values = operation.update(chosen, operation.decide(chosen))
        return Alignment(self._narrow, values.schema, fills_nulls=False).apply(values).batch

    # -- files ------------------------------------------------------------------------------------------------------

    def _write_through(self, operation: Operation, place: _Range, updated: Ints) -> None:
        """Write the set columns of a range, batch by batch, with new values at some positions."""
        parts = column_parts(self._schema, self._plain_fields, place.columns)
        kept = [field.name for field in parts.fields]
        wanted, whole = DeletionVector.of(updated), len(updated) == place.columns.row_count
        whole = whole and len(kept) == len(self._plain_fields)
        names = operation.names | self._work.needs | frozenset([ROW_ID] if whole else kept)
        fields = tuple(field for field in self._shown.fields if field.name in names)
        with self._column_file(place, parts) as writer:
            for start, batch in place.rows(fields):
                at = wanted.within(start, start + batch.num_rows) - start
                new = self._new_values(operation, batch, at) if len(at) else None
                if whole and new is not None:
                    writer.write(new)
                else:
                    writer.write(_with_values(batch.select(kept), at, new))

    def _write_columns(self, place: _Range) -> None:
        """Write the set columns for all rows of a range."""
        positions = np.concatenate([rows for rows, _ in place.changed])
        order = np.argsort(positions, kind="stable")
        values = pa.Table.from_batches([batch for _, batch in place.changed]).combine_chunks()
        values = values.take(from_numpy(order, pa.int64())).combine_chunks()
        place.changed, positions = [], positions[order]
        if self._plain_fields:
            self._write_plain(place, positions, values.select([field.name for field in self._plain_fields]))
        for field in self._blob_fields:
            made = write_blobs(place.files, self._schema, field, positions, values.column(field.name), place.columns)
            self._columns += [(place, file) for file in made]

    def _write_plain(self, place: _Range, positions: Ints, values: pa.Table) -> None:
        """Write the columns that are not BLOBs."""
        parts = column_parts(self._schema, self._plain_fields, place.columns)
        with self._column_file(place, parts) as writer:
            if len(positions) == place.columns.row_count and len(parts.fields) == len(self._plain_fields):
                for batch in values.to_batches():
                    writer.write(batch)
                return
            for start, batch in place.rows(parts.fields):
                low, high = np.searchsorted(positions, [start, start + batch.num_rows]).tolist()
                (new,) = values.slice(low, high - low).combine_chunks().to_batches() or [None]
                writer.write(_with_values(batch, positions[low:high] - start, new))

    @contextlib.contextmanager
    def _column_file(self, place: _Range, parts: ColumnParts) -> Iterator[ColumnsWriter]:
        """New files with columns of all rows of a range."""
        with ColumnsWriter(NewFiles(place.files), self._schema, parts, place.columns) as writer:
            yield writer
        self._columns += [(place, file) for file in writer.files]

    def _bucket_changes(self, snapshot: Snapshot | None) -> list[BucketChanges]:
        """The added files and changed index files of every bucket."""
        if not self._ranges:
            return []
        assert snapshot is not None
        index = bucket_deletions(self._files, snapshot)
        by_bucket: dict[Bucket, list[_Range]] = {}
        for place in self._ranges.values():
            by_bucket.setdefault(place.bucket, []).append(place)
        return [self._changed_in(bucket, places, index) for bucket, places in by_bucket.items()]

    def _changed_in(
        self, bucket: Bucket, places: Sequence[_Range], index: dict[Bucket, BucketDeletions]
    ) -> BucketChanges:
        marked = {place.columns.anchor.name: place.killed for place in places if len(place.killed)}
        known = index.get(bucket, BucketDeletions())
        old, new = renewed_vectors(self._files, bucket, frozenset(), marked, known, with_buckets=False)
        self._made += new
        added = tuple(file for place, file in self._columns if place.bucket == bucket)
        edit = Edit(added=added, deleted_index=old, added_index=new)
        total = places[0].total_buckets
        return BucketChanges(partition=bucket[0], bucket=bucket[1], total_buckets=total, written=edit)


def _require_no_index(index: Sequence[IndexEntry], fields: Sequence[Field]) -> None:
    """Refuse columns whose index would return old values."""
    ids = {one.global_index.field_id for one in index if one.global_index is not None}
    found = [field.name for field in fields if field.id in ids]
    if found:
        raise UnsupportedError(
            f"column {found[0]} has an index over row ids, which would return old values: drop the index first",
            feature="global-index.column-update-action",
        )


def _with_values(batch: pa.RecordBatch, places: Ints, values: pa.RecordBatch | None) -> pa.RecordBatch:
    """The batch with the values of some rows replaced."""
    if values is None:
        return batch
    order = np.arange(batch.num_rows)
    order[places] = batch.num_rows + np.arange(len(places))
    index = from_numpy(order, pa.int64())
    columns = [
        pa.chunked_array([old, values.column(name)], old.type).take(index).combine_chunks()
        if name in values.schema.names
        else old
        for name, old in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)
