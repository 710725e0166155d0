"""The columns and rows to read of every step of a stream, and the conversion of splits to batches with kinds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from paimon_py.errors import UsageError
from paimon_py.expr.bind import bind, predicate_at
from paimon_py.expr.column_list import ColumnList
from paimon_py.expr.predicate import Predicate
from paimon_py.lazy import lazy_property
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.scan.parallel_read import alone, read_together
from paimon_py.scan.projection import Projection, listed_names, projection_of, whole_columns, with_parts_of
from paimon_py.scan.read import read_split
from paimon_py.scan.request import FileChoice, Request, asked_bucket
from paimon_py.scan.row_ids import names_row_ids
from paimon_py.scan.row_kinds import ROW_KIND_FIELD, row_kinds
from paimon_py.scan.row_shape import PlainRows, RowShape, are_changes, shape_of
from paimon_py.scan.split import Split
from paimon_py.spec.options import Options
from paimon_py.spec.schema import ROW_KIND_COLUMN, TableSchema


class Reading:
    """The columns and rows of a table that a stream reads. Values can be pickled; secrets are omitted."""

    def __init__(
        self,
        root: TableRoot,
        schema: TableSchema,
        columns: ColumnList | None,
        where: Predicate | str | None,
        view: RowShape | None = None,
    ) -> None:
        """`view`: how rows are presented; None: unchanged, with their kinds.

        Raises: UsageError for unknown columns, or a condition that does not fit.
        """
        self._root = root
        self._table_schema = schema
        self._columns = listed_names(columns)
        self._where = None if where is None else predicate_at(where, root.env.clock)
        names_ids = view is None and names_row_ids(self._columns, self._where)
        if names_ids and self._columns is None:
            self._columns = schema.names
        self._view: RowShape = shape_of(view or PlainRows(), changes=True, row_ids=names_ids)
        self._is_plain = are_changes(self._view)
        _ = self._projection_and_request

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns of a step; `_row_kind` last in a stream of a table."""
        return self._projection_and_request[0].arrow_schema

    @property
    def request(self) -> Request:
        """The request for planning and reading the table."""
        return self._view.request_for(self._projection_and_request[1])

    @property
    def whole_request(self) -> Request:
        """The request for planning and reading a whole snapshot with which a stream begins.

        A system table also shows deleted rows. Rows that are not compacted yet are omitted only if the compaction will
        report them in its changelog: no later step would return them otherwise, even if a scan hides them.

        Source: Java `DataTableStreamScan.tryFirstPlan`.
        """
        options = Options(self._table_schema.options)
        producer, files = options.get_enum("changelog-producer"), None
        if producer == "lookup":
            files = FileChoice(above_level=0)
        if producer == "full-compaction":
            levels = options.find_int("num-levels") or options.get_int("num-sorted-run.compaction-trigger") + 1
            files = FileChoice(level=levels - 1)
        return msgspec.structs.replace(self.request, files=files, kinds=not self._is_plain, every_level=True)

    def as_split(self, split: Split | bytes) -> Split:
        """A split of a step, or of its bytes.

        Raises: UsageError for other values.
        """
        if isinstance(split, Split):
            return split
        if not isinstance(split, bytes):
            raise UsageError(f"read takes one of step.splits(), or its bytes, not {type(split).__name__}")
        return Split.from_bytes(split)

    def batches(self, split: Split | bytes) -> Iterator[pa.RecordBatch]:
        """The rows of a split of a step, also one that came from another process (as a value or its bytes).

        Shapes: out — batches of `schema`, none empty; rows of a whole snapshot of a table are additions. (In Java they
        are +I or +U, depending on how far their files are compacted.)
        Raises: UsageError for a split of a stream of another schema; otherwise as `read_split`.
        """
        value = self.as_split(split)
        if value.schema_id != self.request.schema.id:
            raise UsageError(
                f"the split returns rows of schema {value.schema_id}, this stream those of {self.request.schema.id}: "
                "read a split with a step of the stream that made it"
            )
        found = read_split(self._root, self.whole_request if value.since is None else self.request, value)
        if value.since is None and self._is_plain:
            found = (batch.append_column(ROW_KIND_FIELD, row_kinds(batch)) for batch in found)
        yield from map(self._projection_and_request[0].apply, self._view.show(self._projection_and_request[1], found))

    def together(self, splits: Sequence[Split], *, in_order: bool, keeps: bool) -> Iterator[pa.RecordBatch]:
        """The rows of several splits, read in parallel; see `read_together`."""
        table = OpenTable(self._root, self._table_schema)
        return read_together(
            table, lambda parcel: self.batches(parcel[0]), alone(splits), in_order=in_order, keeps=keeps
        )

    @lazy_property
    def _projection_and_request(self) -> tuple[Projection, Request]:
        """The returned columns, in terms of the view."""
        schema = self._view.shown_schema(self._table_schema)
        predicate = None if self._where is None else bind(self._where, schema.fields, takes_parts=True)
        whole = whole_columns(predicate)
        projection = with_parts_of(projection_of(self._returned_columns, schema, takes_parts=True), predicate)
        narrowed = projection.narrow(schema, whole)
        request = Request(
            schema=narrowed, columns=projection.columns, predicate=predicate, bucket=asked_bucket(self._table_schema)
        )
        return projection, request

    @property
    def _returned_columns(self) -> tuple[str, ...] | None:
        """The requested columns; rows of a table always have their kinds, last."""
        if self._columns is None or not self._is_plain or ROW_KIND_COLUMN in self._columns:
            return self._columns
        return (*self._columns, ROW_KIND_COLUMN)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_projection_and_request"}
