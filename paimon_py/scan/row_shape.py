"""The presentation of a table's rows: unchanged, with their kinds, or as rows of a system table.

A row shape defines the presented columns, the columns to read from the table for them, and the conversion of the rows.
Planning and reading are independent of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

import msgspec
import pyarrow as pa

from paimon_py.errors import UnsupportedError, UsageError
from paimon_py.expr.arrow import prepare
from paimon_py.expr.predicate import Predicate
from paimon_py.expr.references import columns_of
from paimon_py.expr.split import split_conjuncts
from paimon_py.files.physical import ROW_TRACKING, TRACKED_FIELDS, tracks_rows
from paimon_py.scan.request import Request, keep
from paimon_py.spec.schema import ROW_ID, ROW_KIND_COLUMN, SEQUENCE_NUMBER, TableSchema
from paimon_py.spec.types import Atomic, Field, Root

KIND_FIELD_ID = 2_147_483_643


class RowShape(Protocol):
    """The presentation of a table's rows."""

    def shown_schema(self, schema: TableSchema) -> TableSchema:
        """The schema of the presented rows for a table with this schema; its fields can be returned and filtered by."""

    def request_for(self, request: Request) -> Request:
        """The request to the table for a `request` in terms of the presented columns."""

    def show(self, request: Request, batches: Iterable[pa.RecordBatch], /) -> Iterator[pa.RecordBatch]:
        """Convert the rows of one split.

        Shapes: in — batches of `request_for(request).arrow_schema`, with `_row_kind` if it was requested;
          out — batches of `request.arrow_schema`, exactly the matching rows.
        """

    def one_for_one(self, request: Request, /) -> bool:
        """Whether every row that is read becomes one presented row, so that counts need no read."""


class SameShape(msgspec.Struct, frozen=True):
    """Rows of the table as they are read, with any columns."""

    def request_for(self, request: Request) -> Request:
        """The unchanged request."""
        return request

    def show(self, _request: Request, batches: Iterable[pa.RecordBatch], /) -> Iterator[pa.RecordBatch]:
        """The unchanged rows."""
        yield from batches

    def one_for_one(self, _request: Request, /) -> bool:
        """Always True: every row is presented."""
        return True


class PlainRows(SameShape, frozen=True):
    """Rows of the table, unchanged."""

    def shown_schema(self, schema: TableSchema) -> TableSchema:
        """The table's own schema."""
        return schema


class WithRowIds(SameShape, frozen=True):
    """Rows of a table with row tracking, with their ids and the snapshots that wrote them as last columns."""

    def shown_schema(self, schema: TableSchema) -> TableSchema:
        """The table's schema plus both columns.

        Raises: UsageError if the table does not track rows.
        """
        if not tracks_rows(schema):
            raise UsageError(
                f"rows have {ROW_ID} and {SEQUENCE_NUMBER} only in tables that were made with options="
                f"{{{ROW_TRACKING!r}: 'true'}}"
            )
        return msgspec.structs.replace(schema, fields=(*schema.fields, *TRACKED_FIELDS))


class WithKinds(msgspec.Struct, frozen=True):
    """Rows with their kinds, as a first or last column `name`; deletes are included.

    `row_ids`: also with their ids and the snapshots that wrote them, in a table with row tracking.
    """

    name: str = ROW_KIND_COLUMN
    first: bool = False
    row_ids: bool = False

    @property
    def field(self) -> Field:
        """The column of kinds."""
        return Field(KIND_FIELD_ID, self.name, Atomic(Root.VARCHAR, nullable=False, length=2_147_483_647))

    def shown_schema(self, schema: TableSchema) -> TableSchema:
        """The table's schema plus the column of kinds.

        Raises:
            UnsupportedError: the table has a column of that name.
            UsageError: row ids are requested, and the table does not track rows.
        """
        if self.row_ids:
            schema = WithRowIds().shown_schema(schema)
        taken = {self.name, ROW_KIND_COLUMN} & set(schema.names)
        if taken:
            name = taken.pop()
            raise UnsupportedError(f"row kinds cannot be shown in addition to a column called {name}", feature=name)
        fields = (self.field, *schema.fields) if self.first else (*schema.fields, self.field)
        return msgspec.structs.replace(schema, fields=fields)

    def request_for(self, request: Request) -> Request:
        """The other columns, those that conditions on kinds need, and the conditions that do not use kinds."""
        fields = tuple(field for field in request.schema.fields if field.name != self.name)
        wanted = dict.fromkeys(name for name in request.columns if name != self.name)
        pushed, rest = self._conditions(request)
        if rest is not None:
            wanted |= dict.fromkeys(sorted(columns_of(rest) - {self.name}))
        schema = msgspec.structs.replace(request.schema, fields=fields)
        return msgspec.structs.replace(request, schema=schema, columns=tuple(wanted), predicate=pushed, kinds=True)

    def show(self, request: Request, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the requested kinds, with their columns in order."""
        rest = self._conditions(request)[1]
        mask = None if rest is None else prepare(rest)
        schema = request.arrow_schema
        for batch in batches:
            names = [self.name if name == ROW_KIND_COLUMN else name for name in batch.schema.names]
            kept = keep(batch.rename_columns(names), mask)
            if kept.num_rows:
                picked = kept.select(list(request.columns))
                yield pa.RecordBatch.from_arrays(picked.columns, schema=schema) if request.columns else picked

    def one_for_one(self, request: Request) -> bool:
        """True unless rows are selected by their kind."""
        return self._conditions(request)[1] is None

    def _conditions(self, request: Request) -> tuple[Predicate | None, Predicate | None]:
        """The predicate in two parts: the part on the table's columns alone, and the rest."""
        if request.predicate is None:
            return None, None
        return split_conjuncts(request.predicate, [name for name in request.schema.names if name != self.name])


def shape_of(view: RowShape, *, changes: bool, row_ids: bool) -> RowShape:
    """The presentation of rows or changes: changes have kinds as the last column, unless the view has its own.

    `row_ids`: columns or a condition use row ids.
    """
    if changes and isinstance(view, WithRowIds):
        return WithKinds(row_ids=True)
    if view != PlainRows():
        return view
    if changes:
        return WithKinds(row_ids=row_ids)
    return WithRowIds() if row_ids else view


def are_changes(view: RowShape) -> bool:
    """Whether rows of a table are presented as changes, with their kinds as the last column."""
    return isinstance(view, WithKinds) and not view.first
