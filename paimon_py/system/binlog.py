"""`$binlog`: one row for each change; every column is a list of one value, or of an update's old and new value.

Source: Java `BinlogTable`, `PackChangelogReader`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import Ints, Mask, from_numpy, numpy_values
from paimon_py.expr.arrow import prepare
from paimon_py.expr.references import columns_of
from paimon_py.files.physical import TRACKED_FIELDS, tracks_rows
from paimon_py.lsm.same_values import same_values
from paimon_py.lsm.sort_encoding import combine_chunks
from paimon_py.scan.request import Request, keep
from paimon_py.scan.row_shape import WithKinds
from paimon_py.spec.schema import ROW_ID, ROW_KIND_COLUMN, ROW_KINDS, TableSchema
from paimon_py.spec.types import ArrayType, Field

_KINDS = WithKinds("rowkind", first=True)
_BEFORE, _AFTER = ROW_KINDS[1:3]


class Binlog(msgspec.Struct, frozen=True):
    """Every row is a change; −U and the following +U of the same key are one row of kind +U.

    Conditions apply to the returned rows: conditions on lists cannot skip files.
    """

    def shown_schema(self, schema: TableSchema) -> TableSchema:
        """The kind, and a list for every column."""
        fields = tuple(_list_field(field) for field in schema.fields)
        return _KINDS.shown_schema(msgspec.structs.replace(schema, fields=fields))

    def request_for(self, request: Request) -> Request:
        """The returned columns, those needed by conditions, and all that identify the rows of a key: key columns, or
        row ids.
        """
        wanted = dict.fromkeys((*request.columns, *self._asked_by_conditions(request)))
        fields = tuple(_single(field) for field in request.schema.fields if field.name != _KINDS.name)
        schema = msgspec.structs.replace(request.schema, fields=fields)
        if tracks_rows(schema):
            schema = msgspec.structs.replace(schema, fields=(*fields, *TRACKED_FIELDS))
        wanted |= dict.fromkeys(_identifying(schema))
        columns = tuple(name for name in wanted if name != _KINDS.name)
        return msgspec.structs.replace(request, schema=schema, columns=columns, predicate=None, kinds=True)

    def show(self, request: Request, batches: Iterable[pa.RecordBatch], /) -> Iterator[pa.RecordBatch]:
        """One row for each change; the old and the new row of an update may be in different batches."""
        mask = None if request.predicate is None else prepare(request.predicate)
        schema = request.arrow_schema
        names = dict.fromkeys((*request.columns, *self._asked_by_conditions(request)))
        keys = _identifying(request.schema)
        for batch in _whole_updates(batches):
            kept = keep(_pack(batch, keys, request.schema, tuple(names)), mask)
            if kept.num_rows:
                picked = kept.select(list(request.columns))
                yield pa.RecordBatch.from_arrays(picked.columns, schema=schema) if request.columns else picked

    def one_for_one(self, _request: Request, /) -> bool:
        """False: two rows of an update become one."""
        return False

    def _asked_by_conditions(self, request: Request) -> list[str]:
        return [] if request.predicate is None else sorted(columns_of(request.predicate))


def _identifying(schema: TableSchema) -> list[str]:
    """The columns that the old and the new row of an update have in common."""
    return [ROW_ID] if tracks_rows(schema) else list(schema.trimmed_primary_keys)


def _list_field(field: Field) -> Field:
    """The list of a column: its elements may be NULL, and the list stores whether the column may."""
    element = msgspec.structs.replace(field.type, nullable=True)
    return msgspec.structs.replace(field, type=ArrayType(element, nullable=field.type.nullable))


def _single(field: Field) -> Field:
    assert isinstance(field.type, ArrayType)
    kind = msgspec.structs.replace(field.type.element, nullable=field.type.nullable)
    return msgspec.structs.replace(field, type=kind)


def _whole_updates(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows in batches that never end between an old row and its new row."""
    held: pa.RecordBatch | None = None
    for batch in batches:
        rows = batch if held is None else pa.concat_batches([held, batch])
        held = None
        if rows.column(ROW_KIND_COLUMN)[rows.num_rows - 1].as_py() == _BEFORE:
            held = rows.slice(rows.num_rows - 1)
            rows = rows.slice(0, rows.num_rows - 1)
        if rows.num_rows:
            yield rows
    if held is not None:
        yield held


def _pack(batch: pa.RecordBatch, keys: list[str], shown: TableSchema, names: tuple[str, ...]) -> pa.RecordBatch:
    """Rows of lists: a list begins at every row except new rows of the update before them."""
    kinds = batch.column(ROW_KIND_COLUMN)
    texts = numpy_values(kinds.dictionary_encode().indices)
    values = kinds.dictionary_encode().dictionary.to_pylist()
    begins: Mask = np.ones(batch.num_rows, np.bool_)
    if _BEFORE in values and _AFTER in values and batch.num_rows > 1:
        follows = (texts[:-1] == values.index(_BEFORE)) & (texts[1:] == values.index(_AFTER))
        for name in keys:
            column = batch.column(name)
            follows &= same_values(column.slice(0, len(column) - 1), column.slice(1))
        begins[1:] = ~follows
    starts: Ints = np.flatnonzero(begins)
    ends = np.append(starts[1:], batch.num_rows)
    offsets = from_numpy(np.append(starts, batch.num_rows).astype(np.int32), pa.int32())
    columns = []
    fields = [shown.field(name) for name in names]
    schema = Request(schema=shown, columns=tuple(names)).arrow_schema
    for field in fields:
        if field.name == _KINDS.name:
            columns.append(combine_chunks(kinds.take(from_numpy(ends - 1, pa.int64()))))
        else:
            lists = pa.ListArray.from_arrays(offsets, batch.column(field.name))
            columns.append(lists.cast(schema.field(field.name).type))
    return pa.RecordBatch.from_arrays(columns, schema=schema) if columns else batch.slice(0, len(starts)).select([])
