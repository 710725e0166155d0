"""What is read of every step of a stream: which columns and rows, and how a split becomes batches with kinds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from paimon_py.errors import UsageError
from paimon_py.expr.bind import bind, predicate_of
from paimon_py.expr.predicate import Predicate
from paimon_py.expr.split import columns_of
from paimon_py.lazy import lazy_property
from paimon_py.metadata.root import TableRoot
from paimon_py.scan.projection import Projection, listed_names, projection_of
from paimon_py.scan.read import Request, read_split
from paimon_py.scan.row_kinds import ROW_KIND_FIELD
from paimon_py.scan.split import Split
from paimon_py.spec.schema import TableSchema


class Reading:
    """Columns and rows of a table that a stream wants. Values can be pickled; secrets are left out."""

    def __init__(
        self, root: TableRoot, schema: TableSchema, columns: Sequence[str] | None, where: Predicate | str | None
    ) -> None:
        """Raises: UsageError for unknown columns, or a condition that does not fit."""
        self.root = root
        self.table_schema = schema
        self._columns = listed_names(columns)
        self._where = None if where is None else predicate_of(where)
        _ = self._asked

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns of a step, `_row_kind` last."""
        return self._asked[0].arrow_schema.append(ROW_KIND_FIELD)

    @property
    def request(self) -> Request:
        """What to plan and to read of the table."""
        return self._asked[1]

    @property
    def whole_request(self) -> Request:
        """What to plan and to read of a whole snapshot with which a stream begins.

        Rows that a compaction has yet to see are left out where the compaction will tell of them in its changelog.

        Source: Java `DataTableStreamScan.tryFirstPlan`.
        """
        return self.request

    def batches(self, split: Split | bytes) -> Iterator[pa.RecordBatch]:
        """The rows of a split of a step, also one that came from another process (as a value or its bytes).

        Shapes: out — batches of `schema`, none empty; rows of a whole snapshot are additions.
        Raises: UsageError for a split of a stream of another schema; else as `read_split`.
        """
        value = split if isinstance(split, Split) else Split.from_bytes(split)
        if value.schema_id != self.request.schema.id:
            raise UsageError(
                f"the split returns rows of schema {value.schema_id}, this stream those of {self.request.schema.id}: "
                "read a split with a step of the stream that made it"
            )
        for batch in read_split(self.root, self.request, value):
            kinds = pa.array(["+I"] * batch.num_rows, pa.string()) if value.since is None else batch.column(-1)
            rows = self._asked[0].apply(batch.select(list(self.request.columns)))
            yield pa.RecordBatch.from_arrays([*rows.columns, kinds], schema=self.schema)

    @lazy_property
    def _asked(self) -> tuple[Projection, Request]:
        schema = self.table_schema
        predicate = None if self._where is None else bind(self._where, schema.fields)
        whole = frozenset() if predicate is None else frozenset(columns_of(predicate))
        projection = projection_of(self._columns, schema)
        narrowed = projection.narrowed(schema, whole)
        return projection, Request(schema=narrowed, columns=projection.columns, predicate=predicate)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_asked"}
