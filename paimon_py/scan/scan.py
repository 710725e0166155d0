"""`Scan`: a lazy read of one state of a table."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from paimon_py.arguments import NameList, check_flag, with_location
from paimon_py.errors import UsageError
from paimon_py.executors.executor import Executor
from paimon_py.expr.bind import bind, predicate_at
from paimon_py.expr.column_list import ColumnList
from paimon_py.expr.predicate import Predicate
from paimon_py.lazy import lazy_property
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.scan.between import Between
from paimon_py.scan.ends import Ends
from paimon_py.scan.given_options import like_given, options_of_reads, with_option, with_options
from paimon_py.scan.measure import ScanMeter
from paimon_py.scan.of_commit import OfCommit
from paimon_py.scan.parallel_read import alone, count_together, cut_to, in_parcels, read_together
from paimon_py.scan.plan_snapshot import Planned, SnapshotPlanner, is_large
from paimon_py.scan.projection import Projection, listed_names, projection_of, whole_columns, with_parts_of
from paimon_py.scan.read import count_split, estimate_split, read_parcel, read_split
from paimon_py.scan.read_estimate import ReadEstimate
from paimon_py.scan.request import RAW_BATCH_ROWS, FileChoice, Request, asked_bucket, join_choices
from paimon_py.scan.row_ids import RowIdList, in_order_of, names_row_ids, row_ids_of, with_row_id
from paimon_py.scan.row_shape import PlainRows, RowShape, SameShape, are_changes, shape_of
from paimon_py.scan.rows import limit_of
from paimon_py.scan.split import Split, require_split_of, split_from
from paimon_py.scan.split_rows import SplitRows
from paimon_py.scan.time_travel import FoundState, Travel, find_state, travel_of
from paimon_py.spec.blobs import AS_DESCRIPTOR
from paimon_py.spec.schema import ROW_ID, ROW_KIND_COLUMN, TableSchema
from paimon_py.spec.supported import check_scannable
from paimon_py.spec.types import Field

if TYPE_CHECKING:
    from paimon_py.scan.blob_rows import BlobRow
    from paimon_py.scan.explain import Explanation
    from paimon_py.scan.top_n import OrderColumn, TopN

Batches = Generator[pa.RecordBatch, None, None]

_ROWS_TO_SIFT = 16_384
"""Number of rows to read first when only a few matching rows are needed."""

_DERIVED = frozenset(("_whole_plan", "_projection_and_request", "_table_request", "_order"))


@with_location(lambda scan: scan._root.path, lambda scan: scan._root.schemas.latest())
class Scan(SplitRows[Split]):
    """Rows of a table as of one snapshot: selected columns, matching rows, and an optional limit.

    A scan can also return the changes between two states, as rows with their kinds (`Table.changes`, the options
    `incremental-*`), or the rows of a system table.

    Nothing is read until rows, a count or splits are requested. The snapshot is then looked up once and kept, so that
    everything a scan returns belongs to one state. A scan of the latest state has the table's current schema; a scan of
    a snapshot, tag, time or watermark has the schema of that snapshot. Scans are immutable and can be pickled; pickles
    contain no secrets.
    """

    _takes_shares = True  # the splits are those of one snapshot, which may be planned by shares

    def __init__(  # noqa: PLR0913
        self,
        root: TableRoot,
        schema: TableSchema,
        *,
        snapshot_id: int | None = None,
        tag: str | None = None,
        timestamp: datetime | str | int | None = None,
        watermark: int | None = None,
        columns: ColumnList | None = None,
        where: Predicate | str | None = None,
        limit: int | None = None,
        order_by: object = None,
        options: Mapping[str, str] | None = None,
        between: Between | OfCommit | None = None,
        view: RowShape | None = None,
        files: FileChoice | None = None,
        row_ids: RowIdList | None = None,
    ) -> None:
        """Create a scan of the table `root`; `Table.scan` explains the other arguments.

        Args:
            between: rows are the changes between two states.
            view: how rows are presented; None: unchanged, and changes with their kinds.
            files: read only these files of the state.
        """
        self._table_schema, self._given = with_options(schema, options), options_of_reads(options)
        self._extent = between or travel_of(
            snapshot_id=snapshot_id, tag=tag, timestamp=timestamp, watermark=watermark, options=options,
            stored=schema.options,
        )  # fmt: skip
        self._view: RowShape = view or PlainRows()
        self._columns = listed_names(columns)
        self._where = None if where is None else predicate_at(where, root.env.clock)
        self._limit, self._order_by = limit_of(limit, order_by), order_by
        self._row_ids = None if row_ids is None else row_ids_of(row_ids, order_by)
        if self._row_ids is not None:
            self._where = with_row_id(self._where, self._row_ids)
        names_ids = self._view == PlainRows() and names_row_ids(self._columns, self._where)
        self._columns = schema.names if names_ids and self._columns is None else self._columns
        self._view = shape_of(self._view, changes=self.reads_changes, row_ids=names_ids)
        self._files = files
        self._root = root
        self._check_extent()
        self._found: tuple[FoundState | Ends | None] | None = None
        if self.reads_changes or self.is_latest:
            _ = self._request, self._order

    # -- rows ---------------------------------------------------------------------------------------------------------

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns that are returned."""
        return self._projection.arrow_schema

    @property
    def limit(self) -> int | None:
        """The maximum number of rows returned, None for all."""
        return self._limit

    @property
    def is_ordered(self) -> bool:
        """Whether the rows are ordered, so that they are read as a whole."""
        return bool(self._order)

    @property
    def reads_changes(self) -> bool:
        """Whether the rows are changes between two states."""
        return not isinstance(self._extent, Travel)

    @property
    def is_latest(self) -> bool:
        """Whether the scan reads the latest state."""
        return isinstance(self._extent, Travel) and self._extent.is_latest

    def count(self) -> int:
        """The number of rows, at most the limit.

        Cost: metadata only if no filter and no merge can change the number; otherwise the columns of the filter are
            read and, if rows are merged, those of the key, no further than the limit.
        """
        total = 0

        def count_one(split: Split) -> int:
            return self._count(split, None if self._limit is None else self._limit - total)

        table = OpenTable(self._root, self._table_schema)
        with closing(count_together(table, count_one, self._plan_lazily())) as counts:
            for count in counts:
                total += count
                if self._limit is not None and total >= self._limit:
                    return self._limit
        return total

    def blobs(self, column: str) -> Iterator[BlobRow]:
        """The rows with a BLOB that is read on demand: `row.open().read(4096)`. Memory: a batch of references.

        Raises: UsageError if the scan does not return this column.
        """
        from paimon_py.scan.blob_rows import blob_rows

        return blob_rows(self, column)

    # -- splits -------------------------------------------------------------------------------------------------------

    def iter_splits(self, *, executor: Executor | None = None) -> Iterator[Split]:
        """The splits, planned while they are taken: memory does not grow with the number of files.

        Large plans return the splits in another order than `splits`, and may pack the files differently; the rows are
        the same. A plan with a condition on partitions, keys, or columns with statistics holds the files that remain.

        Args:
            executor: its tasks make plans of many manifests (`scan.plan.executor-manifests`); None: this process does.

        Cost: as `splits`; entries of manifests that do not fit into memory are written to local disk.
        Raises: as `splits`; StorageError if the local disk is full.
        """
        self._require_parts()
        if executor is None:
            return self._plan_lazily()
        from paimon_py.scan.plan_tasks import iter_planned

        return iter_planned(self, executor)

    def splits(self) -> list[Split]:
        """Independent parts of the scan, which any process can read with `read`. The limit applies to each of them.

        Raises: UsageError for a scan with `order_by`, which has no independent parts.
        """
        self._require_parts()
        return list(self._whole_plan.splits)

    def read(self, split: Split | bytes) -> pa.RecordBatchReader:
        """The rows of one split of this scan, which may come from another process (as a value or its bytes)."""
        value = split_from(split)
        self._require_own(value)
        return pa.RecordBatchReader.from_batches(self.schema, cut_to(self._one_by_one([value]), self._limit))

    def _require_parts(self) -> None:
        if self._order:
            raise UsageError("a scan with order_by is read as a whole, by to_arrow() or to_reader()")

    def _require_own(self, split: Split) -> None:
        require_split_of(split, self._request.schema.id, self._root.branch)

    def _count(self, split: Split, most: int | None) -> int:
        if self._view.one_for_one(self._request):
            return count_split(self._root, self._table_request, split, most)
        total = 0
        for batch in self._read(split):
            total += batch.num_rows
            if most is not None and total >= most:
                break
        return total

    def explain(self, *, analyze: bool = False) -> Explanation:
        """Explain what would be read and why the rest would not; prints as text.

        With `analyze` the scan is also run, as `to_reader` does it, and `.analysis` reports what was opened, read,
        merged and returned; the rows are discarded.

        Cost: as `splits`; the footers of all planned files that the scan would open, and index files that the predicate
            needs, are read. With `analyze` also the cost of the scan.
        """
        from paimon_py.scan.explain_scan import explain_scan

        check_flag("analyze", analyze)
        return explain_scan(self, analyze=analyze)

    def _estimate(self, split: Split) -> ReadEstimate:
        return estimate_split(self._root, self._table_request, split)

    # -- how it is found ----------------------------------------------------------------------------------------------

    def _check_extent(self) -> None:
        """Reject options that apply only to states if the scan reads changes."""
        of_table = isinstance(self._extent, Travel) and isinstance(self._view, SameShape)
        if not of_table and self._order_by is not None:
            raise UsageError("order_by applies to rows of a table, not to changes or system tables")
        if self._row_ids is not None and self.reads_changes:
            raise UsageError("row_ids selects rows of a state: write where=col('_ROW_ID').isin(…) for changes")

    @property
    def _state(self) -> FoundState | Ends | None:
        """The state, or the two ends of the span; None if there are no changes. Looked up once."""
        if self._found is None:
            if isinstance(self._extent, Travel):
                state = find_state(self._root, self._extent, self._table_schema)
                if state.snapshot is not None:
                    self._root.schemas.require_own(state.snapshot, self._table_schema)
                self._found = (state,)
            else:
                ends = self._extent.ends(OpenTable(self._root, self._table_schema))
                if ends is not None and not are_changes(self._view) and self._table_schema.primary_keys:
                    ends = msgspec.structs.replace(ends, removals=True)
                self._found = (ends,)
        return self._found[0]

    @property
    def _place(self) -> str:
        return self._root.path

    @property
    def _state_schema(self) -> TableSchema:
        """The schema of the state that is read."""
        schema = self._table_schema
        state = self._state if isinstance(self._extent, Travel) and not self._extent.is_latest else None
        if isinstance(state, FoundState) and state.snapshot is not None and state.snapshot.schema_id != schema.id:
            schema = like_given(self._root.schemas.get(state.snapshot.schema_id), schema, self._given)
            check_scannable(schema)
        return schema

    @lazy_property
    def _projection_and_request(self) -> tuple[Projection, Request]:
        state = self._state if isinstance(self._extent, Travel) and not self._extent.is_latest else None
        files = self._files
        if isinstance(state, FoundState) and state.files is not None:
            files = join_choices(files, state.files)
        schema = self._view.shown_schema(self._state_schema)
        predicate = None if self._where is None else bind(self._where, schema.fields, takes_parts=True)
        compares = not isinstance(self._extent, Travel)
        whole = frozenset(schema.names) if compares else whole_columns(predicate)
        projection = projection_of(self._returned_columns, schema, takes_parts=True)
        projection = with_parts_of(projection, predicate, keeps_whole=compares)
        narrowed = projection.narrow(schema, whole)
        bucket, columns = asked_bucket(self._table_schema), projection.columns
        return projection, Request(schema=narrowed, columns=columns, predicate=predicate, files=files, bucket=bucket)

    @property
    def _returned_columns(self) -> tuple[str, ...] | None:
        """The requested columns; changes always include their kinds, last."""
        changes = are_changes(self._view)
        if self._columns is None or not changes or ROW_KIND_COLUMN in self._columns:
            return self._columns
        return (*self._columns, ROW_KIND_COLUMN)

    @property
    def _projection(self) -> Projection:
        return self._projection_and_request[0]

    @property
    def _request(self) -> Request:
        """The rows and columns to return."""
        return self._projection_and_request[1]

    @lazy_property
    def _table_request(self) -> Request:
        """The rows and columns to read from the table."""
        asked = self._view.request_for(self._request)
        if self._limit is None or self._limit > RAW_BATCH_ROWS:
            return asked
        first_rows = self._limit if asked.predicate is None else max(self._limit, _ROWS_TO_SIFT)
        return msgspec.structs.replace(asked, first_rows=first_rows)

    @lazy_property
    def _whole_plan(self) -> Planned:
        return Planned.nothing() if self._limit == 0 else self._plan().up_to(self._enough)

    @property
    def _enough(self) -> int | None:
        """The number of rows in the files to read, if the scan returns all of their rows; None: read all files."""
        some = self._order or self._where is not None or not self._view.one_for_one(self._request)
        return None if some else self._limit

    def _plan_lazily(self) -> Iterator[Split]:
        """The splits, without a limit all planned first if they fit into memory, and kept for the next call."""
        planner = None if "_whole_plan" in self.__dict__ or self._limit == 0 else self._planner(self._table_request)
        if planner is None or (self._limit is None and not is_large(planner)):
            yield from self._whole_plan.splits
            return
        from paimon_py.scan.lazy_plan import plan_first, plan_lazily

        yield from plan_lazily(planner) if self._limit is None else plan_first(planner, self._enough)

    def _plan(self) -> Planned:
        state = self._state
        if isinstance(state, Ends):
            return self._plan_changes(state)
        planner = self._planner(self._table_request)
        return Planned.nothing() if planner is None else planner.plan()

    def _planner(self, request: Request, without: pa.Array | None = None) -> SnapshotPlanner | None:
        """The planner of the state, None if there is none. `without`: partitions to exclude."""
        state = self._state
        if not isinstance(state, FoundState) or state.snapshot is None:
            return None
        return SnapshotPlanner(self._root, request, state.snapshot, without)

    def _plan_changes(self, ends: Ends) -> Planned:
        if ends.mode == "diff":
            from paimon_py.scan.diff_plan import plan_diff

            return plan_diff(self._root, self._table_request, ends)
        from paimon_py.scan.change_plan import plan_between

        return plan_between(self._root, self._table_request, ends)

    @lazy_property
    def _order(self) -> tuple[OrderColumn, ...]:
        if self._order_by is None:
            return ()
        from paimon_py.scan.top_n import order_columns

        return order_columns(self._order_by, self._request.schema)

    def _rows(
        self, *, in_order: bool = True, keeps: bool = False, meter: ScanMeter | None = None
    ) -> Iterator[pa.RecordBatch]:
        if self._row_ids is not None:
            yield from in_order_of(self._row_ids, self._with_ids.to_arrow(), self.schema.names, self._limit)
            return
        if not self._order or not self._limit:
            splits = self._plan_lazily()
            found = self._one_by_one(splits, meter) if meter else self._together(splits, in_order=in_order, keeps=keeps)
            yield from cut_to(found, self._limit)
            return
        from paimon_py.scan.top_n import TopN

        first = TopN(self._order, self._limit)
        self._collect(first, meter)
        if meter is not None:
            meter.files_by_order = first.skipped_files
        if first.rows is not None:
            for batch in first.rows.select(list(self._request.columns)).to_batches():
                rows = self._projection.apply(batch)
                yield pa.RecordBatch.from_arrays(rows.columns, schema=self.schema) if rows.num_columns else rows

    @property
    def _with_ids(self) -> Scan:
        scan = self._narrow(dict.fromkeys((*(self._columns or ()), ROW_ID)), None)
        scan._row_ids = scan._limit = None
        return scan

    def _collect(self, first: TopN, meter: ScanMeter | None) -> None:
        """Collect the first rows by the order."""
        planner = self._planner(self._ordered_request)
        if planner is not None:
            ordered = planner.plan_ordered(self._order[0].field)
            first.collect(ordered, lambda split, threshold: self._read_ordered(split, threshold, meter))

    @property
    def _ordered_request(self) -> Request:
        """The rows and columns to return, plus the columns to order by."""
        names = dict.fromkeys([*self._request.columns, *(column.field.name for column in self._order)])
        return msgspec.structs.replace(self._request, columns=tuple(names))

    def _read_ordered(
        self, split: Split, threshold: Predicate | None, meter: ScanMeter | None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a split that may be among the first."""
        from paimon_py.scan.top_n import both

        request = self._ordered_request
        asked = msgspec.structs.replace(request, predicate=both(request.predicate, threshold))
        return read_split(self._root, asked, split, meter)

    def _read(self, split: Split, meter: ScanMeter | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of a split as the scan presents them."""
        return self._view.show(self._request, read_split(self._root, self._table_request, split, meter))

    def _one_by_one(self, splits: Iterable[Split], meter: ScanMeter | None = None) -> Batches:
        for split in splits:
            yield from map(self._projection.apply, self._read(split, meter))

    def _together(self, splits: Iterable[Split], *, in_order: bool, keeps: bool) -> Batches:
        """The rows of splits read in parallel, unless a few rows of the first ones are enough."""
        if self._limit is not None and self._limit <= RAW_BATCH_ROWS:
            return self._one_by_one(splits)
        parcels = in_parcels(self._root, splits) if isinstance(self._view, SameShape) else alone(splits)
        table = OpenTable(self._root, self._table_schema)
        return read_together(table, self._parcel, parcels, in_order=in_order, keeps=keeps)

    def _parcel(self, splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
        if isinstance(self._view, SameShape):
            return map(self._projection.apply, read_parcel(self._root, self._table_request, splits))
        return self._one_by_one(splits)

    def _limit_to(self, most: int) -> Scan:
        scan = object.__new__(type(self))
        scan.__dict__.update(self.__dict__)
        for derived in ("_whole_plan", "_table_request"):
            scan.__dict__.pop(derived, None)
        scan._limit = most
        return scan

    @property
    def _takes_conditions(self) -> bool:
        return self._limit is None and not self._order

    def _narrow(self, columns: NameList | None, where: Predicate | None) -> Scan:
        scan = self._again()
        if columns is not None:
            scan._columns = tuple(columns)
        if where is not None and self._takes_conditions:
            scan._where = where if self._where is None else self._where & where
        return scan

    def _again(self, **changes: object) -> Scan:
        _ = self._state
        scan = object.__new__(type(self))
        scan.__dict__.update({**self.__getstate__(), **changes})
        return scan

    def _read_as(self, meaning: Callable[[Predicate, Sequence[Field]], Predicate]) -> Scan:
        """A copy of the scan whose condition `meaning` has reinterpreted for these columns."""
        if self._where is None:
            return self
        return self._again(_where=meaning(self._where, self._view.shown_schema(self._state_schema).fields))

    def _showing_blobs(self, *, as_refs: bool) -> Scan:
        return self._again(_table_schema=with_option(self._table_schema, AS_DESCRIPTOR, str(as_refs).lower()))

    def _seen_plan(self) -> dict[str, object]:
        from paimon_py.scan.seen_plan import seen_plan

        return seen_plan(self)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in _DERIVED}

    def _description(self) -> dict[str, object]:
        given = msgspec.structs.asdict(self._extent).items()
        state = ", ".join(f"{name}={value!r}" for name, value in given if value is not None and value is not False)
        return {
            "table": self._root.path, "state": state or "latest", "columns": self._columns, "where": self._where,
            "order_by": self._order_by, "limit": self._limit,
        }  # fmt: skip
