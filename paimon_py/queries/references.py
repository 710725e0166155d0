"""Rows for queries in which references to BLOBs are structs: a query can look at places and sizes without any bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from paimon_py.arguments import NameList
from paimon_py.codec.blob_refs import BlobRef, BlobViewRef
from paimon_py.errors import CorruptionError
from paimon_py.expr.predicate import Predicate
from paimon_py.scan.projection import Projection
from paimon_py.scan.rows import Rows
from paimon_py.spec.blobs import holds_blobs

REFERENCE = pa.struct([("uri", pa.string()), ("offset", pa.int64()), ("length", pa.int64())])
"""A reference in a query. `length`: NULL if it extends to the end of its file; `offset` and `length` of a view of
another table are NULL, and `uri` is `db.table/field id/row id`.
"""


class ReferenceRows(Rows):
    """Rows whose BLOB columns contain references as structs."""

    def __init__(self, rows: Rows) -> None:
        """`rows`: with references (`Rows._with_blobs`)."""
        self._source = rows
        self._names = {field.name for field in rows._projection.fields if holds_blobs(field.type)}

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([
            field.with_type(_reference_type(field.type)) if field.name in self._names else field
            for field in self._source.schema
        ])  # fmt: skip

    @property
    def limit(self) -> int | None:
        return self._source.limit

    @property
    def _place(self) -> str:
        return self._source._place

    def _rows(self, *, in_order: bool = True, keeps: bool = False) -> Iterator[pa.RecordBatch]:
        schema = self.schema
        for batch in self._source._rows(in_order=in_order, keeps=keeps):
            columns = [
                pa.array(map(_decode, column.to_pylist()), field.type) if field.name in self._names else column
                for field, column in zip(schema, batch.columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _limit_to(self, most: int) -> Rows:
        return ReferenceRows(self._source._limit_to(most))

    @property
    def _projection(self) -> Projection:
        """The other columns: conditions on a struct are none on the column, and are evaluated by the query."""
        found = self._source._projection
        pairs = zip(found.fields, found.paths, strict=True)
        kept = [(field, path) for field, path in pairs if field.name not in self._names]
        return Projection(fields=tuple(field for field, _ in kept), paths=tuple(path for _, path in kept))

    @property
    def _takes_conditions(self) -> bool:
        return self._source._takes_conditions

    def _narrow(self, columns: NameList | None, where: Predicate | None) -> Rows:
        return ReferenceRows(self._source._narrow(columns, where))

    def _description(self) -> dict[str, object]:
        return self._source._description()


def _reference_type(kind: pa.DataType) -> pa.DataType:
    """The type of references in place of BLOBs: also in lists and maps."""
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, REFERENCE)
    return pa.list_(REFERENCE) if pa.types.is_list(kind) else REFERENCE


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode(item) for item in value]
    if isinstance(value, tuple):
        return value[0], _decode(value[1])
    if value is None:
        return None
    try:
        ref = BlobRef.from_bytes(value)
    except CorruptionError:
        view = BlobViewRef.from_bytes(value)
        return {"uri": f"{view.table}/{view.field_id}/{view.row_id}", "offset": None, "length": None}
    return {"uri": ref.uri, "offset": ref.offset, "length": ref.length}
