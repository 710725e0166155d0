"""Scans of tables that read missing partitions from a second branch.

Each branch is planned as a separate scan; a partition is read from the first branch with visible files for it. Splits
record their branch.

Source: Java `FallbackReadFileStoreTable`, `FileStoreTableFactory`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paimon_py.errors import SnapshotExpiredError, SnapshotNotFoundError, TableNotFoundError, UsageError
from paimon_py.metadata.branches import FALLBACK, PRIMARY
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.scan.ends import Ends
from paimon_py.scan.foreseen import Foreseen
from paimon_py.scan.measure import ScanMeter
from paimon_py.scan.plan_snapshot import Planned
from paimon_py.scan.request import Request
from paimon_py.scan.scan import Scan
from paimon_py.scan.split import Split
from paimon_py.scan.time_travel import FoundState, Travel, find_state
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.supported import check_readable
from paimon_py.spec.type_text import sql_type

if TYPE_CHECKING:
    from paimon_py.scan.top_n import TopN


def open_scan(table: OpenTable, *, options: Mapping[str, str] | None = None, **asked: Any) -> Scan:
    """The scan of a table, with a second branch if options name one. Changes are always those of the branch alone.

    Cost: for a second branch, a list and a get.
    Raises: as `Scan`, and UsageError for branches with different columns.
    Warns: PaimonWarning if the other branch does not exist; only the rows of this branch are read, as in Java.
    """
    found = Scan(table.root, table.schema, options=options, **asked)
    named = {**table.schema.options, **(options or {})}
    option = next((option for option in (FALLBACK, PRIMARY) if named.get(option, "").strip()), None)
    if option is None or found.reads_changes or named[option] == table.root.branch:
        return found
    other = table.root.on_branch(named[option])
    try:
        other_schema = other.schemas.latest()
    except TableNotFoundError:
        from paimon_py.logs import warn

        warn(
            f"{table.root.path} has no branch {named[option]!r}, which {option} names: {table.root.branch!r} is read"
            " alone"
        )
        return found
    check_readable(other_schema)
    if found.is_latest:
        _require_alike(table, other, other_schema)
    return FallbackScan(found, Scan(other, other_schema, options=options, **asked), wins=option == PRIMARY)


class FallbackScan(Scan):
    """A scan of two branches with the same columns, which may differ in nullability."""

    def __init__(self, own: Scan, other: Scan, *, wins: bool) -> None:
        """`wins`: the partitions of the other branch take precedence."""
        self.__dict__.update(own.__dict__)
        self._other = other
        self._wins = wins

    # -- states -------------------------------------------------------------------------------------------------------

    @property
    def _state(self) -> FoundState | Ends | None:
        """The state of this branch; empty at a time before its first snapshot."""
        if self._found is None:
            self._found = (_at(self._root, self._extent, self._table_schema),)
        return self._found[0]

    @property
    def _beside(self) -> Scan:
        """The scan of the other branch, at the state that corresponds to the one of this branch."""
        if self._other._found is None:
            self._other._found = (self._state_beside(),)
        return self._other

    def _state_beside(self) -> FoundState:
        """Snapshots of branches are unrelated: a snapshot is matched by its time.

        If the other branch is younger, its first snapshot is used, as in Java.
        """
        other, extent, own = self._other, self._other._extent, self._state
        assert isinstance(extent, Travel)
        version = extent.version or ""
        by_id = extent.snapshot_id is not None or (version.isascii() and version.isdigit())
        if not by_id or extent != self._extent or not isinstance(own, FoundState) or own.snapshot is None:
            return _at(other._root, extent, other._table_schema)
        try:
            return FoundState(other._root.snapshots.by_time(own.snapshot.time_millis))
        except SnapshotExpiredError:
            raise
        except SnapshotNotFoundError:
            return FoundState(other._root.snapshots.find(1))

    # -- planning -----------------------------------------------------------------------------------------------------

    def _plan(self) -> Planned:
        splits: list[Split] = []
        pushed, skipped, given = Planned.nothing().pushed, Planned.nothing().skipped, None
        for scan in self._in_order():
            planner = Scan._planner(scan, scan._table_request, given)
            if planner is not None:
                planned = planner.plan()
                splits += planned.splits
                pushed, skipped, given = planned.pushed, skipped.plus(planned.skipped), planner.partitions()
        return Planned(tuple(splits), pushed, skipped)

    def _plan_lazily(self) -> Iterator[Split]:
        """The splits of both branches: which partitions the second one gives is known when the first one is planned."""
        yield from self._whole_plan.splits

    def _collect(self, first: TopN, meter: ScanMeter | None) -> None:
        given = None
        for scan in self._in_order():
            planner = Scan._planner(scan, scan._ordered_request, given)
            if planner is not None:
                ordered = planner.plan_ordered(scan._order[0].field)
                first.collect(ordered, lambda split, threshold, scan=scan: self._alike(  # type: ignore[misc]
                    scan._read_ordered(split, threshold if scan is self else None, meter), self._ordered_request
                ))  # fmt: skip
                given = planner.partitions()

    def _in_order(self) -> tuple[Scan, Scan]:
        """The scans of both branches, the one whose partitions take precedence first."""
        other = self._beside
        _require_alike(OpenTable(self._root, self._state_schema), other._root, other._state_schema)
        return (other, self) if self._wins else (self, other)

    # -- reading ------------------------------------------------------------------------------------------------------

    def _of(self, split: Split) -> Scan | None:
        """The other scan if the split belongs to the other branch."""
        return self._beside if split.branch == self._other._root.branch else None

    def _require_own(self, split: Split) -> None:
        other = self._of(split)
        if other is None:
            super()._require_own(split)
        else:
            other._require_own(split)

    def _count(self, split: Split, most: int | None) -> int:
        other = self._of(split)
        return super()._count(split, most) if other is None else other._count(split, most)

    def _foreseen(self, split: Split) -> Foreseen:
        other = self._of(split)
        return super()._foreseen(split) if other is None else other._foreseen(split)

    def _read(self, split: Split, meter: ScanMeter | None = None) -> Iterator[pa.RecordBatch]:
        other = self._of(split)
        if other is None:
            yield from super()._read(split, meter)
        else:
            yield from self._alike(other._read(split, meter), self._request)

    def _alike(self, batches: Iterator[pa.RecordBatch], request: Request) -> Iterator[pa.RecordBatch]:
        """Rows of either branch in the types of this branch."""
        schema = request.arrow_schema
        for batch in batches:
            if not batch.num_columns or batch.schema.equals(schema):
                yield batch
                continue
            columns = [
                column if column.type == field.type else column.cast(field.type)
                for column, field in zip(batch.columns, schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _at(root: TableRoot, extent: object, schema: TableSchema) -> FoundState:
    """The state of a branch; empty at a time before its first snapshot."""
    assert isinstance(extent, Travel)
    try:
        return find_state(root, extent, schema)
    except SnapshotExpiredError:
        raise
    except SnapshotNotFoundError:
        if extent.timestamp_millis is None:
            raise
        return FoundState(None)


def _require_alike(table: OpenTable, other: TableRoot, other_schema: TableSchema) -> None:
    """Refuse branches with different columns or partition keys, whose values would be confused."""
    mine, others = _columns(table.schema), _columns(other_schema)
    if mine != others or table.schema.partition_keys != other_schema.partition_keys:
        raise UsageError(
            f"{table.root.path} cannot be read from the branches {table.root.branch!r} and {other.branch!r}, whose"
            " columns or"
            f" partitions differ: {mine}, {list(table.schema.partition_keys)} and {others},"
            f" {list(other_schema.partition_keys)}; alter one of them"
        )


def _columns(schema: TableSchema) -> list[str]:
    return [f"{field.name} {sql_type(field.type).replace(' NOT NULL', '')}" for field in schema.fields]
