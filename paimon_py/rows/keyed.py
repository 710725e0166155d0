"""Row operations on tables with a primary key: changed rows are read merged and written again with their kind.

Source: Java `DeleteFromPaimonTableCommand`, `UpdatePaimonTableCommand`, `MergeIntoPaimonTable`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.columns import Ints, Mask, from_numpy
from paimon_py.commit.changes import Changes
from paimon_py.errors import UsageError
from paimon_py.lsm.engines import combines_rows
from paimon_py.metadata.root import TableRoot
from paimon_py.rows.attempts import Counts, Evaluated
from paimon_py.rows.decide import DELETE, UPDATE, Operation
from paimon_py.rows.effect import Effect
from paimon_py.rows.live_keys import live_keys
from paimon_py.scan.read import Request, read_split
from paimon_py.scan.split import Split
from paimon_py.spec.engine_rules import sequence_groups
from paimon_py.spec.options import Options
from paimon_py.spec.schema import ROW_KIND_COLUMN, TableSchema
from paimon_py.write.session import Writer

_KINDS = {"+I": 0, "+U": 2, "-D": 3}


class KeyedRows:
    """One evaluation of operations on rows. `request`: what to read of splits."""

    def __init__(self, root: TableRoot, request: Request, schema: TableSchema) -> None:
        self._root = root
        self._request = request
        self._schema = schema
        self._writer = Writer(root, schema, read_keys=live_keys(root, schema))
        self._kind_field = Options(schema.options).find_str("rowkind.field")
        self._effect = Effect.of(schema)
        self._left_out = _left_out(schema)
        self._counts = Counts()

    def evaluate(self, operations: Callable[[], Iterable[Operation]], splits: Sequence[Split]) -> Evaluated:
        """Write what changes; nobody sees it before it is committed.

        Args:
            operations: gives them to be checked, to change rows, and to add rows.

        Raises: whatever reading and writing raise; then what was written is deleted.
        """
        noted: list[Mask] = []
        with self._writer as writer:
            for operation in operations():
                if operation.is_doubtful:
                    self._rehearse(operation, splits)
            for operation in operations():
                for batch in self._rows(splits):
                    self._change(operation, batch)
                if operation.inserts_last:
                    noted.append(operation.seen)
                else:
                    self._insert(operation)
            if noted:
                for operation, seen in zip(operations(), noted, strict=True):
                    operation.seen = seen
                    self._insert(operation)
            changes = writer.changes()
        return Evaluated(changes, self._counts, lambda: self._discard(changes))

    def _rows(self, splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
        for split in splits:
            yield from read_split(self._root, self._request, split)

    def _rehearse(self, operation: Operation, splits: Sequence[Split]) -> None:
        """Decide on all rows, so that what is refused is refused before a row is written."""
        for batch in self._rows(splits):
            operation.decide(batch)
        operation.check()

    def _insert(self, operation: Operation) -> None:
        for batch in operation.inserts():
            told = batch if self._kind_field is None else _told(batch, self._kind_field)
            self._counts = self._counts.plus(inserted=told.num_rows)
            self._write(told, "+I")

    def _change(self, operation: Operation, batch: pa.RecordBatch) -> None:
        decision = operation.decide(batch)
        deleted, updated = np.flatnonzero(decision.actions == DELETE), np.flatnonzero(decision.actions == UPDATE)
        if len(deleted):
            self._counts = self._counts.plus(deleted=len(deleted))
            self._write(self._bare(_taken(batch, deleted)), "-D")
        if len(updated):
            old = _taken(batch, updated)
            new = operation.updated(old, decision.of(updated))
            self._effect.require(old, new)
            self._counts = self._counts.plus(updated=len(updated))
            self._write(new, "+U")

    def _bare(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Rows to delete, without the values that their key would go on with."""
        for name in self._left_out:
            place = batch.schema.get_field_index(name)
            nothing = pa.nulls(batch.num_rows, batch.column(place).type)
            batch = batch.set_column(place, batch.schema.field(place), nothing)
        return batch

    def _write(self, batch: pa.RecordBatch, kind: str) -> None:
        """Rows of one kind; where a column holds the kinds, a delete is told there."""
        if self._kind_field is None:
            kinds = from_numpy(np.full(batch.num_rows, _KINDS[kind], np.int8), pa.int8())
            batch = pa.RecordBatch.from_arrays([*batch.columns, kinds], names=[*batch.schema.names, ROW_KIND_COLUMN])
        elif kind == "-D":
            place = batch.schema.get_field_index(self._kind_field)
            batch = batch.set_column(place, self._kind_field, pa.repeat(pa.scalar(kind), batch.num_rows))
        self._writer.write_arrow(batch)

    def _discard(self, changes: Changes) -> None:
        self._writer.discard(changes)


def _left_out(schema: TableSchema) -> tuple[str, ...]:
    """Columns that a −D need not tell, in tables that make rows of several: they begin anew with what it tells.

    Source: Java `AggregateMergeFunction.initRow`, `PartialUpdateMergeFunction.initRow`.
    """
    if not combines_rows(schema):
        return ()
    options = Options(schema.options)
    told = {*schema.primary_keys, *schema.partition_keys, *options.get_list("sequence.field")}
    told.update(name for group in sequence_groups(options) for name in group.fields)
    return tuple(field.name for field in schema.fields if field.type.nullable and field.name not in told)


def _told(batch: pa.RecordBatch, field: str) -> pa.RecordBatch:
    """New rows in a table where a column holds the kinds."""
    place = batch.schema.get_field_index(field)
    if place < 0:
        return batch.append_column(field, pa.repeat(pa.scalar("+I"), batch.num_rows))
    if pc.any(pc.is_in(batch.column(place), value_set=pa.array(["-U", "-D"]))).as_py():
        raise UsageError(
            f"a row to insert has '-U' or '-D' in column {field!r}, which holds the kinds of rows (option"
            " 'rowkind.field'); leave it out. Nothing was changed"
        )
    return batch


def _taken(batch: pa.RecordBatch, rows: Ints) -> pa.RecordBatch:
    return batch if len(rows) == batch.num_rows else batch.take(from_numpy(rows, pa.int64()))
