"""`MetadataScan`: a lazy read of a metadata table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from paimon_py.arguments import NameList, check_flag, decoding_metadata, with_location
from paimon_py.errors import UsageError
from paimon_py.expr.arrow import prepare
from paimon_py.expr.bind import all_of, bind, predicate_at
from paimon_py.expr.predicate import Predicate
from paimon_py.expr.references import columns_of
from paimon_py.html import preformat
from paimon_py.lazy import lazy_property
from paimon_py.scan.projection import Projection, listed_names, projection_of
from paimon_py.scan.request import keep
from paimon_py.scan.rows import row_count
from paimon_py.scan.split_rows import SplitRows
from paimon_py.spec.snapshot import Snapshot
from paimon_py.system.metadata_table_def import MetadataTableDef, Origin, RowRequest

_DERIVED = frozenset(("_projection",))


class MetadataSplit(msgspec.Struct, frozen=True):
    """The only split of a scan of a metadata table; can be sent as bytes.

    Attributes:
        table: the name of the system table, such as `snapshots`.
        snapshot: the state to which the rows belong; None if there is none.
    """

    table: str
    snapshot: Snapshot | None = None

    def __bytes__(self) -> bytes:
        return msgspec.msgpack.encode(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> MetadataSplit:
        """Decode the result of `bytes(split)`.

        Raises: UsageError for other bytes.
        """
        try:
            return msgspec.msgpack.decode(data, type=cls)
        except (msgspec.DecodeError, TypeError) as error:
            raise UsageError(f"not the bytes of a split of a system table: {error}") from error


class MetadataExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of a scan of a metadata table; prints as text.

    `rows_produced` and `rows_returned` are known if the scan was executed: the rows of the table, and those that match
    the predicate.
    """

    table: str
    snapshot_id: int | None
    columns: tuple[str, ...]
    predicate: str | None
    limit: int | None
    rows_produced: int | None = None
    rows_returned: int | None = None

    def _repr_html_(self) -> str:
        return preformat(str(self))

    def __str__(self) -> str:
        lines = [f"scan of {self.table}" + ("" if self.snapshot_id is None else f", snapshot {self.snapshot_id}")]
        lines.append(f"  columns: {', '.join(self.columns)}")
        if self.predicate is not None:
            lines.append(f"  predicate: {self.predicate}")
        if self.limit is not None:
            lines.append(f"  limit: {self.limit}")
        if self.rows_produced is not None:
            lines.append(f"  rows: {self.rows_produced} produced, {self.rows_returned} returned")
        return "\n".join(lines)


@with_location(lambda scan: scan._place)
class MetadataScan(SplitRows[MetadataSplit]):
    """Rows of a metadata table: some columns, the rows that match, possibly limited.

    Nothing is read until rows, a count or splits are requested. The snapshot is then looked up once and kept. Scans are
    immutable and can be pickled; secrets are omitted from pickles.
    """

    _title = "MetadataScan"

    def __init__(
        self,
        made: MetadataTableDef,
        source: Origin,
        *,
        columns: NameList | None = None,
        where: Predicate | str | None = None,
        limit: int | None = None,
    ) -> None:
        """A scan of the metadata table `made` of `source`; `Table.scan` explains the other arguments."""
        self._made = made
        self._source = source
        self._columns = listed_names(columns)
        self._predicate = None if where is None else bind(predicate_at(where, source.clock), made.fields)
        self._limit = None if limit is None else row_count(limit, "limit")
        self._found: tuple[Snapshot | None] | None = None
        _ = self._projection

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the returned columns."""
        return self._projection.arrow_schema

    @property
    def limit(self) -> int | None:
        """The maximum number of returned rows; None for all."""
        return self._limit

    def count(self) -> int:
        """The number of rows, at most the limit. Cost: the columns that the predicate needs."""
        total = 0
        for batch in self._rows_that_match(self._state, ()):
            total += batch.num_rows
            if self._limit is not None and total >= self._limit:
                return self._limit
        return total

    def splits(self) -> list[MetadataSplit]:
        """The splits of the scan, to be read anywhere with `read`: always one."""
        return [MetadataSplit(self._made.name, self._state)]

    def iter_splits(self) -> Iterator[MetadataSplit]:
        """The splits of the scan: always one."""
        return iter(self.splits())

    def read(self, split: MetadataSplit | bytes) -> pa.RecordBatchReader:
        """The rows of a split of this scan, also one that came from another process (as a value or its bytes).

        Raises: UsageError for a split of another system table.
        """
        value = split if isinstance(split, MetadataSplit) else MetadataSplit.from_bytes(split)
        if value.table != self._made.name:
            raise UsageError(f"the split belongs to ${value.table}, this scan to ${self._made.name}")
        return pa.RecordBatchReader.from_batches(self.schema, self._batches(value.snapshot))

    def explain(self, *, analyze: bool = False) -> MetadataExplanation:
        """The plan; with `analyze` the scan is also executed, and the rows are counted."""
        check_flag("analyze", analyze)
        state = self._state
        rows: list[int] = []
        returned = sum(batch.num_rows for batch in self._batches(state, rows)) if analyze else None
        return MetadataExplanation(
            table=f"{self._place} ${self._made.name}",
            snapshot_id=None if state is None else state.id,
            columns=tuple(self.schema.names),
            predicate=None if self._predicate is None else repr(self._predicate),
            limit=self._limit,
            rows_produced=sum(rows) if analyze else None,
            rows_returned=returned,
        )

    @property
    def _place(self) -> str:
        return self._source.path

    @property
    def _state(self) -> Snapshot | None:
        """The snapshot, looked up once."""
        if self._found is None:
            self._found = (self._source.find(),)
        return self._found[0]

    @lazy_property
    def _projection(self) -> Projection:
        return projection_of(self._columns, self._made.schema)

    def _rows(self, *, in_order: bool = True, keeps: bool = False) -> Iterator[pa.RecordBatch]:
        del in_order, keeps  # there is one split
        yield from self._batches(self._state)

    def _batches(self, state: Snapshot | None, made: list[int] | None = None) -> Iterator[pa.RecordBatch]:
        """The returned rows."""
        left, schema = self._limit, self.schema
        if left == 0:
            return
        for batch in self._rows_that_match(state, self._projection.columns, made):
            rows = self._projection.apply(batch)
            rows = pa.RecordBatch.from_arrays(rows.columns, schema=schema) if rows.num_columns else rows
            yield rows if left is None else rows.slice(0, left)
            if left is not None:
                left -= min(left, rows.num_rows)
                if not left:
                    return

    def _rows_that_match(
        self, state: Snapshot | None, columns: Sequence[str], made: list[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows that match, with these columns."""
        needed = frozenset(columns) | (frozenset() if self._predicate is None else columns_of(self._predicate))
        request = RowRequest(fields=self._made.fields, columns=needed, predicate=self._predicate)
        mask = None if self._predicate is None else prepare(self._predicate)
        with decoding_metadata(self._place):
            for batch in self._made.make(request, self._source.at(state)):
                if made is not None:
                    made.append(batch.num_rows)
                kept = keep(batch, mask)
                if kept.num_rows:
                    yield kept.select(list(columns))

    def _limit_to(self, most: int) -> MetadataScan:
        scan = MetadataScan.__new__(MetadataScan)
        scan.__dict__.update(self.__dict__)
        scan._limit = most
        return scan

    @property
    def _takes_conditions(self) -> bool:
        return self._limit is None

    def _narrow(self, columns: NameList | None, where: Predicate | None) -> MetadataScan:
        _ = self._state
        scan = MetadataScan.__new__(MetadataScan)
        scan.__dict__.update(self.__getstate__())
        if columns is not None:
            scan._columns = tuple(columns)
        if where is not None and self._takes_conditions:
            bound = bind(where, self._made.fields)
            scan._predicate = bound if self._predicate is None else all_of((self._predicate, bound))
        return scan

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in _DERIVED}

    def _description(self) -> dict[str, object]:
        table = f"{self._place} ${self._made.name}"
        return {"table": table, "columns": self._columns, "where": self._predicate, "limit": self._limit}
