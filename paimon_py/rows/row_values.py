"""The data of `update_rows`: column values by row id, sorted, in memory or on local disk."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.codec.columns import Ints, numpy_values
from paimon_py.errors import SchemaError, UsageError
from paimon_py.expr.bind import near_hint
from paimon_py.expr.column import col
from paimon_py.expr.predicate import Predicate
from paimon_py.files.physical import DATA_EVOLUTION, evolves_columns, with_row_ids
from paimon_py.lsm.external_sort import ExternalSort
from paimon_py.lsm.merge import MergeWindow
from paimon_py.lsm.spill import SpilledRuns, SpillSettings
from paimon_py.metadata.open_table import OpenTable
from paimon_py.rows.kept_rows import KeptRows
from paimon_py.scan.row_ids import with_row_id
from paimon_py.spec.clustering import Clustering
from paimon_py.spec.schema import ROW_ID, TableSchema
from paimon_py.spec.types import Field
from paimon_py.write.align import Alignment
from paimon_py.write.streams import open_stream

_MANY = 1000


class RowValues:
    """Column values of rows by row id, ascending. The caller must call `close` at the end.

    Attributes:
        ids: the row ids.
        names: the columns, in table order, with values in the table's types.
    """

    def __init__(self, table: OpenTable, data: object) -> None:
        """Validate and sort the caller's data.

        Cost: 8 bytes per row in memory; values up to a fourth of `write-buffer-size`, at most 64 MB, and their sorted
            copy. More values are written to local disk, twice.
        Raises:
            UsageError: the table does not store columns separately, ids or columns are missing, or ids are repeated.
            SchemaError: columns that the table does not have, or values that do not fit.
            StorageError: the local disk failed.
        """
        if not evolves_columns(table.schema):
            raise UsageError(
                f"update_rows sets columns of tables that were made with {DATA_EVOLUTION!r} = 'true'; elsewhere "
                "update('_ROW_ID = …', values) and merge change rows"
            )
        reader = open_stream(data, table.schema.fields)
        fields = _fields_set(table.schema, reader.schema)
        self.names = tuple(field.name for field in fields)
        self._rows = KeptRows(to_arrow_schema(fields))
        self._found: list[Ints] = [np.zeros(0, np.int64)]
        memory = table.root.env.memory
        spilled = SpilledRuns(table.root.env.spill, SpillSettings.of(table.options).within(memory))
        narrow = msgspec.structs.replace(table.schema, fields=fields)
        shown = msgspec.structs.replace(narrow, fields=(*fields, with_row_ids(table.schema).field(ROW_ID)))
        sort = ExternalSort(shown, Clustering((ROW_ID,), "order"), spilled, MergeWindow().within(memory))
        try:
            values = self._without_ids(sort.sort(_align(reader, narrow)))
            first = next(values, None)
            batches = values if first is None else _chain(first, values)
            if len(spilled):
                self._rows.store(batches, table.root.env.spill)
            else:
                self._rows.hold(batches)
            self.ids = np.concatenate(self._found)
            _require_distinct(self.ids)
        except BaseException:
            self.close()
            raise
        finally:
            sort.clear()

    def close(self) -> None:
        """Delete the values on local disk."""
        self._rows.close()

    @property
    def reach(self) -> Predicate:
        """A predicate that is true for the rows with these ids, and maybe for others if there are many."""
        if len(self.ids) <= _MANY:
            return with_row_id(None, self.ids)
        return col(ROW_ID).between(int(self.ids[0]), int(self.ids[-1]))

    def take(self, places: Ints) -> pa.RecordBatch:
        """The values of the rows at some places among the ids, which are ascending."""
        return self._rows.take(places)

    def _without_ids(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The values of batches, whose ids are kept."""
        for batch in batches:
            if batch.num_rows:
                self._found.append(numpy_values(batch.column(ROW_ID)))
                yield pa.RecordBatch.from_arrays(batch.columns[:-1], schema=self._rows.schema)


def _chain(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


def _fields_set(schema: TableSchema, given: pa.Schema) -> tuple[Field, ...]:
    """The columns that the data set.

    Raises: UsageError, SchemaError
    """
    if given.names.count(ROW_ID) != 1:
        raise UsageError(f"update_rows takes data with one column {ROW_ID}, as scan(columns=[…, {ROW_ID!r}]) returns")
    others = [name for name in given.names if name != ROW_ID]
    if not others:
        raise UsageError(f"update_rows needs at least one column to set in addition to {ROW_ID}")
    unknown = list(dict.fromkeys(name for name in others if name not in schema.names))
    if unknown:
        near = near_hint(unknown, [name for name in schema.names if name not in others])
        raise SchemaError(
            f"the data have {', '.join(map(repr, unknown))}, which the table does not have; {near}leave them out, "
            "or add columns with table.alter(AddColumn(…)) first",
            fields=tuple(unknown),
        )
    return tuple(field for field in schema.fields if field.name in others)


def _align(reader: pa.RecordBatchReader, narrow: TableSchema) -> Iterator[pa.RecordBatch]:
    """The data in the types of the table, with their row ids last.

    Raises: UsageError, SchemaError
    """
    place = reader.schema.get_field_index(ROW_ID)
    alignment = Alignment(narrow, reader.schema.remove(place), fills_nulls=False)
    for batch in reader:
        ids = _ids_of(batch.column(place))
        values = alignment.apply(batch.drop_columns([ROW_ID])).batch
        yield pa.RecordBatch.from_arrays([*values.columns, ids], names=[*values.schema.names, ROW_ID])


def _ids_of(column: pa.Array) -> pa.Array:
    """The row ids in a column.

    Raises: UsageError for values other than integers from 0.
    """
    if not (pa.types.is_integer(column.type) or pa.types.is_null(column.type)) or column.null_count:
        raise UsageError(f"{ROW_ID} takes whole numbers without NULL, not {column.type} with {column.null_count} NULL")
    try:
        ids = column.cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise UsageError(f"{ROW_ID} is a whole number below 2**63: {error}") from error
    numbers = numpy_values(ids)
    if len(numbers) and numbers.min() < 0:
        raise UsageError(f"{ROW_ID} is a whole number from 0, not {int(numbers.min())}")
    return ids


def _require_distinct(ids: Ints) -> None:
    """Refuse repeated ids; `ids` are ascending.

    Raises: UsageError
    """
    again = np.flatnonzero(ids[1:] == ids[:-1])
    if len(again):
        raise UsageError(f"{ROW_ID} {int(ids[again[0]])} is given twice; keep one of the rows")
