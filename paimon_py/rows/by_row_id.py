"""Values for rows that are identified by row ids."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.codec.columns import Ints, Mask, from_numpy, numpy_values
from paimon_py.errors import SchemaError, UsageError
from paimon_py.expr.bind import near_hint
from paimon_py.expr.predicate import Predicate, col
from paimon_py.files.physical import DATA_EVOLUTION, evolves_columns
from paimon_py.rows.decide import UPDATE, Decision
from paimon_py.scan.row_ids import with_row_id
from paimon_py.spec.schema import ROW_ID, TableSchema
from paimon_py.write.align import Alignment
from paimon_py.write.streams import open_stream

_SHOWN = 3
_MANY = 1000


class RowValues(msgspec.Struct, frozen=True):
    """Column values of rows by row id, ascending.

    Attributes:
        names: the columns, in table order; `values` contains them in the table's types.
    """

    ids: Ints
    names: tuple[str, ...]
    values: pa.Table

    @property
    def reach(self) -> Predicate:
        """A predicate that is true for the rows with these ids, and maybe for others if there are many."""
        if len(self.ids) <= _MANY:
            return with_row_id(None, self.ids)
        return col(ROW_ID).between(int(self.ids[0]), int(self.ids[-1]))

    @classmethod
    def of(cls, schema: TableSchema, data: object) -> RowValues:
        """Validate and sort the caller's data.

        Raises:
            UsageError: the table does not store columns separately, ids or columns are missing, or ids are repeated.
            SchemaError: columns that the table does not have, or values that do not fit.
        """
        if not evolves_columns(schema):
            raise UsageError(
                f"update_rows sets columns of tables that were made with {DATA_EVOLUTION!r} = 'true'; elsewhere "
                "update('_ROW_ID = …', values) and merge change rows"
            )
        given = open_stream(data, schema.fields).read_all()
        if given.column_names.count(ROW_ID) != 1:
            raise UsageError(f"update_rows takes data with one column {ROW_ID}, as scan(columns=[…, {ROW_ID!r}]) gives")
        ids = _ids_of(given.column(ROW_ID))
        others = given.drop_columns([ROW_ID])
        if not others.column_names:
            raise UsageError(f"update_rows takes the columns to set beside {ROW_ID}, and there is none")
        names = tuple(name for name in schema.names if name in others.column_names)
        narrow = msgspec.structs.replace(schema, fields=tuple(schema.field(name) for name in names))
        unknown = list(dict.fromkeys(name for name in others.column_names if name not in names))
        if unknown:
            near = near_hint(unknown, [name for name in schema.names if name not in names])
            raise SchemaError(
                f"the data have {', '.join(map(repr, unknown))}, which the table does not have; {near}leave them out, "
                "or add columns with table.alter(AddColumn(…)) first",
                fields=tuple(unknown),
            )
        alignment, batches = Alignment(narrow, others.schema, fills_nulls=False), others.to_batches()
        aligned = [alignment.apply(batch).batch for batch in batches]
        order = np.argsort(ids, kind="stable")
        values = pa.Table.from_batches(aligned, to_arrow_schema(narrow.fields))
        values = values.take(from_numpy(order, pa.int64())).combine_chunks()
        return cls(ids[order], names, values)


class SetRows:
    """An `Operation` that sets the values of rows with given ids."""

    names = frozenset((ROW_ID,))
    is_doubtful = True
    adds_rows = False
    inserts_last = False

    def __init__(self, given: RowValues) -> None:
        self._given = given
        self.seen: Mask = np.zeros(len(given.ids), np.bool_)

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Decide to update the rows with one of the ids."""
        places, found = self._places(batch)
        self.seen[places[found]] = True
        return Decision(found.astype(np.int8) * np.int8(UPDATE))

    def update(self, batch: pa.RecordBatch, decision: Decision) -> pa.RecordBatch:
        """The new values of rows, all of which have one of the ids."""
        del decision
        places, _ = self._places(batch)
        rows = self._given.values.take(from_numpy(places, pa.int64())).combine_chunks()
        return rows.to_batches()[0]

    def check(self) -> None:
        """Check that every id has a row.

        Raises: UsageError
        """
        lacking = self._given.ids[~self.seen]
        if len(lacking):
            shown = ", ".join(map(str, lacking[:_SHOWN].tolist())) + (", …" if len(lacking) > _SHOWN else "")
            raise UsageError(
                f"no row has the ids {shown} ({len(lacking)} in all): rows may have been deleted. Nothing was changed"
            )

    def inserts(self) -> Iterator[pa.RecordBatch]:
        """Adds no rows."""
        return iter(())

    def _places(self, batch: pa.RecordBatch) -> tuple[Ints, Mask]:
        ids, wanted = numpy_values(batch.column(ROW_ID)), self._given.ids
        places = np.searchsorted(wanted, ids)
        places[places == len(wanted)] = 0
        found: Mask = (wanted[places] == ids) if len(wanted) else np.zeros(len(ids), np.bool_)
        return places, found


def _ids_of(column: pa.ChunkedArray) -> Ints:
    """The row ids in a column.

    Raises: UsageError for values other than integers from 0, and for repeated ids.
    """
    if not (pa.types.is_integer(column.type) or pa.types.is_null(column.type)) or column.null_count:
        raise UsageError(f"{ROW_ID} takes whole numbers without NULL, not {column.type} with {column.null_count} NULL")
    ids = numpy_values(column.cast(pa.int64()).combine_chunks())
    distinct, counts = np.unique(ids, return_counts=True)
    if len(distinct) < len(ids):
        raise UsageError(f"{ROW_ID} {int(distinct[np.argmax(counts > 1)])} is given twice; leave one of the rows")
    if len(distinct) and distinct[0] < 0:
        raise UsageError(f"{ROW_ID} is a whole number from 0, not {int(distinct[0])}")
    return ids
