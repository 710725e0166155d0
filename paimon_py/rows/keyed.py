"""Row operations on primary-key tables: merged rows are read, and changed rows are written with their kind.

Source: Java `DeleteFromPaimonTableCommand`, `UpdatePaimonTableCommand`, `MergeIntoPaimonTable`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.columns import Ints, Mask, combine, from_numpy, numpy_values, text_array
from paimon_py.codec.row_size import row_bytes
from paimon_py.commit.changes import Bucket, Changes
from paimon_py.errors import UsageError
from paimon_py.files.physical import KIND_FIELD
from paimon_py.lookup.lookups import Lookups
from paimon_py.lsm.engines import combines_rows
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.progress import ProgressCounter, ProgressShare, count_batches
from paimon_py.rows.decide import DELETE, UPDATE, Operation
from paimon_py.rows.evaluation import RowCounts, RowOutput
from paimon_py.rows.files_read import Files, changed_buckets
from paimon_py.rows.keys_written import late_keys
from paimon_py.rows.live_keys import live_keys
from paimon_py.rows.matches import Probe
from paimon_py.rows.update_check import UpdateCheck
from paimon_py.rows.writer_changes import WriterChanges
from paimon_py.scan.blob_values import BlobValues
from paimon_py.scan.read import read_split
from paimon_py.scan.request import Request
from paimon_py.scan.row_kinds import row_kinds, texts_of
from paimon_py.scan.split import Split
from paimon_py.spec.blobs import packed_fields
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.engine_rules import sequence_groups
from paimon_py.spec.options import Options
from paimon_py.spec.schema import ROW_KIND_COLUMN, ROW_KINDS, TableSchema
from paimon_py.spec.snapshot import Base, Snapshot
from paimon_py.write.align import kind_field
from paimon_py.write.dynamic import BucketCursor, GivenBuckets, Share
from paimon_py.write.session import Writer

_LATE_SHARE = 4
"""The share of late rows (one in this number) above which evaluating all rows again is cheaper than finding them."""
_TOGETHER_ROWS = 8192
_TOGETHER_BYTES = 16 << 20
"""Small batches are processed together up to about this number of rows and bytes, since files may have few rows."""


class _Gathered(NamedTuple):
    """Consecutive rows of several buckets. `ends`: the end of each bucket's rows."""

    rows: pa.RecordBatch
    buckets: tuple[Bucket, ...]
    ends: Ints

    def counts(self, places: Ints) -> list[int]:
        """The number of the given rows (ascending positions) in each bucket."""
        found: list[int] = np.diff(np.searchsorted(places, self.ends), prepend=0).tolist()
        return found


class RowSink(Protocol):
    """Takes the rows of an evaluation in place of a writer, to be written elsewhere."""

    def write_arrow(self, data: pa.RecordBatch) -> None:
        """Take new rows; see `Writer.write_arrow`."""
        ...

    def write_again(self, batch: pa.RecordBatch, known_blobs: Container[str] = ()) -> None:
        """Take rows that were read; see `Writer.write_again`."""
        ...


class KeyedRows:
    """One evaluation of operations on rows. `request`: what to read from splits."""

    def __init__(
        self, root: TableRoot, request: Request, schema: TableSchema, operations: Callable[[], Iterable[Operation]],
        tally: ProgressCounter, share: Share | GivenBuckets | None = None, sink: RowSink | None = None,
        *, uses: Container[str] = (),
    ) -> None:
        """`operations` returns the operations for the check, for changing rows, and for adding rows. `tally` counts
        three steps per row and operation: the dry run, the decision, and the writing. `share`: as for `Writer`; rows
        stay in the buckets where they are read if it is a `BucketCursor`. `sink`: takes the rows, which are not written
        here. `uses`: the columns that operations set or that values depend on; other BLOBs are not read."""
        packed = [field.name for field in packed_fields(schema)]
        self._known_blobs = frozenset(name for name in packed if name not in uses and sink is None)
        self._read_blobs = tuple(name for name in packed if name not in self._known_blobs)
        self._sink = sink
        self._tally = tally
        self._share = share
        self._root = root
        self._request = request.with_references() if request.returns_blobs else request
        self._schema = schema
        self._operations = operations
        self._kind_field = kind_field(schema)
        self._update_check = UpdateCheck.of(schema)
        self._left_out = _left_out(schema)
        self._written = WriterChanges(OpenTable(root, schema))
        self._lookups = Lookups(root, every_level=True)
        self._snapshot: Snapshot | None = None
        self._adds_rows = False
        self._inserted = 0
        self._counts: dict[Bucket, RowCounts] = {}

    def evaluate(self, snapshot: Snapshot | None, splits: Sequence[Split]) -> RowOutput:
        """Write the changes, without committing them.

        Raises: the errors of reading and writing; written files are deleted first.
        """
        self._snapshot = snapshot
        if self._sink is not None:
            self._run(splits, self._sink)
            changes = Changes(
                schema_id=self._schema.id, base=Base.of(snapshot), buckets=(), branch=self._root.branch
            )
            return RowOutput(changes, self._total(), lambda: None, lambda *_: None)
        with self._writing() as writer:
            self._run(splits, writer)
            return self._evaluation(writer)

    def carry_on(self, snapshot: Snapshot, splits: Sequence[Split], known: Files) -> RowOutput | None:
        """The same for a later snapshot: evaluates keys that other commits have written since, or whole buckets if
        there are too many or the keys are unknown. None: everything was deleted, because inserted rows, or rows that
        may move to other buckets, depend on all others.

        Raises: as `evaluate`.
        """
        if self._adds_rows or bucket_mode(self._schema) is BucketMode.CROSS_PARTITION:
            self._written.discard()
            return None
        changed = changed_buckets(splits, known)
        again = [split for split in splits if (split.partition, split.bucket) in changed]
        with self._writing() as writer:
            late = self._late_keys(snapshot, again)
            self._snapshot = snapshot
            for bucket in changed - late.keys():
                self._counts.pop(bucket, None)
            for bucket, keys in late.items():
                self._keep_others(bucket, keys, writer)
            self._written.drop(changed)
            whole = [split for split in again if (split.partition, split.bucket) not in late]
            for operation in self._operations():
                self._pass(operation, whole, writer)
                for bucket, keys in late.items():
                    self._look_again(operation, bucket, keys, writer)
            return self._evaluation(writer)

    def _run(self, splits: Sequence[Split], writer: Writer | RowSink) -> None:
        """Run all operations."""
        noted: list[Mask] = []
        for operation in self._operations():
            self._adds_rows = self._adds_rows or operation.adds_rows
            if operation.is_doubtful:
                self._rehearse(operation, splits)
        for operation in self._operations():
            self._pass(operation, splits, writer)
            if operation.inserts_last:
                noted.append(operation.seen)
            else:
                self._insert(operation, writer)
        if noted:
            for operation, seen in zip(self._operations(), noted, strict=True):
                operation.seen = seen
                self._insert(operation, writer)

    def _total(self) -> RowCounts:
        total = RowCounts(inserted=self._inserted)
        for counts in self._counts.values():
            total = total.plus(deleted=counts.deleted, updated=counts.updated)
        return total

    def _late_keys(self, snapshot: Snapshot, splits: Sequence[Split]) -> dict[Bucket, pa.Table]:
        """The keys that other commits wrote since the last snapshot, for buckets with few of them."""
        limits: dict[Bucket, int] = {}
        for split in splits:
            bucket = (split.partition, split.bucket)
            limits[bucket] = limits.get(bucket, 0) + split.row_count // _LATE_SHARE
        if self._snapshot is None or not limits:
            return {}
        return late_keys(OpenTable(self._root, self._schema), self._snapshot, snapshot, limits)

    def _keep_others(self, bucket: Bucket, keys: pa.Table, writer: Writer) -> None:
        """Write the output for a bucket again, without some keys."""
        late = Probe([combine(column) for column in keys.columns])
        counts = self._counts.get(bucket, RowCounts())
        for batch in self._written.rows(bucket):
            found = late.find([batch.column(name) for name in keys.column_names]) >= 0
            kinds = batch.column(KIND_FIELD.name)
            gone = int(np.count_nonzero(numpy_values(kinds)[found] == ROW_KINDS.index("-D")))
            counts = counts.plus(deleted=-gone, updated=gone - int(np.count_nonzero(found)))
            others = _take(batch, np.flatnonzero(~found))
            writer.write_rows(others.drop_columns([KIND_FIELD.name]), others.column(KIND_FIELD.name))
        self._counts[bucket] = counts

    def _look_again(self, operation: Operation, bucket: Bucket, keys: pa.Table, writer: Writer) -> None:
        """Evaluate the rows with some keys again."""
        assert self._snapshot is not None
        for batch in self._lookups.rows_at(self._snapshot, self._request.schema, keys).to_batches(_TOGETHER_ROWS):
            self._change(operation, _Gathered(batch, (bucket,), np.array([batch.num_rows])), writer)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Writer]:
        """A writer; everything is deleted if the block fails."""
        try:
            table = OpenTable(self._root, self._schema)
            with Writer(table, share=self._share, read_keys=live_keys(table)) as writer:
                writer._count_by(self._tally)
                yield writer
        except BaseException:
            self._written.discard()
            raise

    def _evaluation(self, writer: Writer) -> RowOutput:
        self._written.take(writer)
        changes = self._written.changes()
        if changes.further_bases:  # the output of earlier rounds is for buckets that have not changed since
            base = Base.of(self._snapshot)
            changes = msgspec.structs.replace(changes, base=base, further_bases=())
        return RowOutput(changes, self._total(), self._written.discard, self.carry_on)

    def _rehearse(self, operation: Operation, splits: Sequence[Split]) -> None:
        """Decide on all rows, so that invalid operations are refused before a row is written."""
        for gathered in self._rows(splits, steps=1):
            operation.decide(gathered.rows)
        operation.check()

    def _insert(self, operation: Operation, writer: Writer | RowSink) -> None:
        for batch in operation.inserts():
            inserts = batch if self._kind_field is None else _without_kinds(batch, self._kind_field)
            self._inserted += inserts.num_rows
            self._write(inserts, "+I", writer)

    def _pass(self, operation: Operation, splits: Sequence[Split], writer: Writer | RowSink) -> None:
        left = sum(split.row_count for split in splits)
        for gathered in self._rows(splits, steps=1 if operation.is_doubtful else 2):
            left -= gathered.rows.num_rows
            self._tally.add(gathered.rows.num_rows - self._change(operation, gathered, writer))
        self._tally.add(left)

    def _rows(self, splits: Sequence[Split], *, steps: int) -> Iterator[_Gathered]:
        """The rows of splits. `steps`: progress steps per row in their files."""

        def pieces(splits: Iterable[Split]) -> Iterator[tuple[Bucket, pa.RecordBatch]]:
            for split in splits:
                yield from (((split.partition, split.bucket), batch) for batch in self._read(split, steps))

        if not isinstance(self._share, BucketCursor):
            yield from _gather(pieces(splits))
            return
        for split in splits:
            self._share.bucket = split.bucket
            yield from _gather(pieces([split]))

    def _read(self, split: Split, steps: int) -> Iterator[pa.RecordBatch]:
        part = ProgressShare(self._tally, split.row_count, steps=steps)
        yield from count_batches(read_split(self._root, self._request, split), part)
        part.end()

    def _change(self, operation: Operation, gathered: _Gathered, writer: Writer | RowSink) -> int:
        """Write the rows that change. Returns: their number."""
        batch = gathered.rows
        decision = operation.decide(batch)
        deleted, updated = np.flatnonzero(decision.actions == DELETE), np.flatnonzero(decision.actions == UPDATE)
        for bucket, gone, changed in zip(
            gathered.buckets, gathered.counts(deleted), gathered.counts(updated), strict=True
        ):
            self._counts[bucket] = self._counts.get(bucket, RowCounts()).plus(deleted=gone, updated=changed)
        if len(deleted):
            self._write(self._bare(_take(batch, deleted)), "-D", writer)
        if len(updated):
            for old, rows in self._with_blobs(batch, updated):
                new = operation.update(old, decision.of(rows))
                self._update_check.require(old, new)
                self._write(new, "+U", writer)
        return len(deleted) + len(updated)

    def _with_blobs(self, batch: pa.RecordBatch, rows: Ints) -> Iterator[tuple[pa.RecordBatch, Ints]]:
        """Some rows, with the bytes of BLOBs that operations set: all at once, or about 32 MB of bytes at a time."""
        taken = _take(batch, rows)
        if not self._read_blobs:
            yield taken, rows
            return
        snapshots = () if self._snapshot is None else (self._snapshot.id,)
        start = 0
        for part in BlobValues(self._root, self._read_blobs, (), snapshots).fill(taken):
            yield part, rows[start : start + part.num_rows]
            start += part.num_rows

    def _bare(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Rows to delete, without values that a later row of the key would inherit."""
        for name in self._left_out:
            place = batch.schema.get_field_index(name)
            nothing = pa.nulls(batch.num_rows, batch.column(place).type)
            batch = batch.set_column(place, batch.schema.field(place), nothing)
        return batch

    def _write(self, batch: pa.RecordBatch, kind: str, writer: Writer | RowSink) -> None:
        """Write rows of one kind; if a column holds the kinds, deletes are marked in it."""
        numbers = np.full(batch.num_rows, ROW_KINDS.index(kind), np.int8)
        if self._kind_field is None:
            kinds = from_numpy(numbers, pa.int8())
            batch = pa.RecordBatch.from_arrays([*batch.columns, kinds], names=[*batch.schema.names, ROW_KIND_COLUMN])
        elif kind == "-D":
            place = batch.schema.get_field_index(self._kind_field)
            batch = batch.set_column(place, self._kind_field, texts_of(numbers))
        if kind == "+I":
            writer.write_arrow(batch)
        else:
            writer.write_again(batch, self._known_blobs)


def _left_out(schema: TableSchema) -> tuple[str, ...]:
    """Columns that a −D may omit, in tables that combine several rows: rows start again from the values in the −D.

    Java 0.9 cannot read rows without the time of `record-level.time-field`.

    Source: Java `AggregateMergeFunction.initRow`, `PartialUpdateMergeFunction.initRow`.
    """
    if not combines_rows(schema):
        return ()
    options = Options(schema.options)
    needed = {*schema.primary_keys, *schema.partition_keys, *options.get_list("sequence.field")}
    needed.add(options.find_str("record-level.time-field") or "")
    needed.update(name for group in sequence_groups(options) for name in group.fields)
    return tuple(field.name for field in schema.fields if field.type.nullable and field.name not in needed)


def _without_kinds(batch: pa.RecordBatch, field: str) -> pa.RecordBatch:
    """Rows to insert into a table in which a column holds the kinds."""
    place = batch.schema.get_field_index(field)
    if place < 0:
        return batch.append_column(field, row_kinds(batch))
    if pc.any(pc.is_in(batch.column(place), value_set=text_array(["-U", "-D"]))).as_py():
        raise UsageError(
            f"a row to insert has '-U' or '-D' in column {field!r}, which contains the kinds of rows (option"
            " 'rowkind.field'); leave it out. Nothing was changed"
        )
    return batch


def _take(batch: pa.RecordBatch, rows: Ints) -> pa.RecordBatch:
    return batch if len(rows) == batch.num_rows else batch.take(from_numpy(rows, pa.int64()))


def _gather(pieces: Iterable[tuple[Bucket, pa.RecordBatch]]) -> Iterator[_Gathered]:
    """The rows in order, with small batches combined."""
    pending: list[tuple[Bucket, pa.RecordBatch]] = []
    row_count = size_bytes = 0
    for bucket, batch in pieces:
        if pending and size_bytes + row_bytes(batch) > _TOGETHER_BYTES:
            yield _together(pending)
            pending, row_count, size_bytes = [], 0, 0
        pending.append((bucket, batch))
        row_count += batch.num_rows
        size_bytes += row_bytes(batch)
        if row_count >= _TOGETHER_ROWS:
            yield _together(pending)
            pending, row_count, size_bytes = [], 0, 0
    if pending:
        yield _together(pending)


def _together(pieces: Sequence[tuple[Bucket, pa.RecordBatch]]) -> _Gathered:
    buckets, batches = zip(*pieces, strict=True)
    ends = np.cumsum([batch.num_rows for batch in batches])
    rows = batches[0] if len(batches) == 1 else pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
    return _Gathered(rows, buckets, ends)
