"""Scans of several branches of a table, whose splits record the branch that they belong to."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import cast

import pyarrow as pa

from paimon_py.arguments import NameList
from paimon_py.errors import SnapshotExpiredError, SnapshotNotFoundError, UsageError
from paimon_py.expr.predicate import Predicate
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.scan.ends import Ends
from paimon_py.scan.measure import ScanMeter
from paimon_py.scan.read_estimate import ReadEstimate
from paimon_py.scan.request import Request
from paimon_py.scan.scan import Scan
from paimon_py.scan.split import Split
from paimon_py.scan.time_travel import FoundState, Travel, find_state
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.type_text import sql_type
from paimon_py.spec.types import Field


class BranchesScan(Scan):
    """A scan of this branch and of others, with the same columns, which may differ in nullability."""

    _others: tuple[Scan, ...]
    _takes_shares = False

    @property
    def _state(self) -> FoundState | Ends | None:
        """The state of this branch; empty at a time before its first snapshot."""
        if self._found is None:
            self._found = (state_at(self._root, self._extent, self._table_schema),)
        return self._found[0]

    @property
    @abstractmethod
    def _other_states(self) -> tuple[Scan, ...]:
        """The scans of the other branches, at the states that correspond to the one of this branch."""

    def _plan_lazily(self) -> Iterator[Split]:
        """The splits of all branches: which partitions the next one gives is known when the one before is planned."""
        yield from self._whole_plan.splits

    # -- reading ------------------------------------------------------------------------------------------------------

    def _of(self, split: Split) -> Scan | None:
        """The other scan if the split belongs to another branch."""
        return next((other for other in self._other_states if other._root.branch == split.branch), None)

    def _require_own(self, split: Split) -> None:
        other = self._of(split)
        if other is None:
            super()._require_own(split)
        else:
            other._require_own(split)

    def _count(self, split: Split, most: int | None) -> int:
        other = self._of(split)
        return super()._count(split, most) if other is None else other._count(split, most)

    def _estimate(self, split: Split) -> ReadEstimate:
        other = self._of(split)
        return super()._estimate(split) if other is None else other._estimate(split)

    def _read(self, split: Split, meter: ScanMeter | None = None) -> Iterator[pa.RecordBatch]:
        other = self._of(split)
        if other is None:
            yield from super()._read(split, meter)
        else:
            yield from self._alike(other._read(split, meter), self._request)

    def _parcel(self, splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
        return self._one_by_one(splits)

    def _alike(self, batches: Iterator[pa.RecordBatch], request: Request) -> Iterator[pa.RecordBatch]:
        """Rows of any branch in the types of this branch."""
        return (in_types(batch, request.arrow_schema) for batch in batches)

    # -- other requests -----------------------------------------------------------------------------------------------

    def _narrow(self, columns: NameList | None, where: Predicate | None) -> Scan:
        found = super()._narrow(columns, where)
        return self._with_others(found, lambda other: other._narrow(columns, where))

    def _read_as(self, meaning: Callable[[Predicate, Sequence[Field]], Predicate]) -> Scan:
        return self._with_others(super()._read_as(meaning), lambda other: other._read_as(meaning))

    def _showing_blobs(self, *, as_refs: bool) -> Scan:
        found = super()._showing_blobs(as_refs=as_refs)
        return self._with_others(found, lambda other: other._showing_blobs(as_refs=as_refs))

    def _with_others(self, found: Scan, change: Callable[[Scan], Scan]) -> Scan:
        """`found`, a changed copy of this scan, with the same change to the scans of the other branches."""
        if found is not self:
            cast(BranchesScan, found)._others = tuple(change(other) for other in self._other_states)
        return found


def in_types(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch with the same columns in the types of a schema, from which they may differ in nullability."""
    if not batch.num_columns or batch.schema.equals(schema):
        return batch
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def state_at(root: TableRoot, extent: object, schema: TableSchema) -> FoundState:
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


def require_alike(table: OpenTable, other: TableRoot, other_schema: TableSchema) -> None:
    """Refuse branches with different columns or partition keys, whose values would be confused.

    Raises: UsageError
    """
    mine, others = _columns(table.schema), _columns(other_schema)
    if mine != others or table.schema.partition_keys != other_schema.partition_keys:
        raise UsageError(
            f"{table.root.path} cannot be read from the branches {table.root.branch!r} and {other.branch!r}, whose"
            f" columns or partitions differ: {mine}, {list(table.schema.partition_keys)} and {others},"
            f" {list(other_schema.partition_keys)}; alter one of them"
        )


def _columns(schema: TableSchema) -> list[str]:
    return [f"{field.name} {sql_type(field.type).replace(' NOT NULL', '')}" for field in schema.fields]
