"""The first rows in an order: reads the most promising splits first, and stops when no better rows can follow.

NULL is last in either direction. Otherwise values compare as in filters: NaN is the largest float, and −0.0 is less
than 0.0. Among rows that are equal in all columns of the order, any may be the last one returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import Ints, combine, from_numpy, nulls_or_none, validity_mask
from paimon_py.errors import UsageError
from paimon_py.expr.arrow import prepare
from paimon_py.expr.bind import all_of, bind
from paimon_py.expr.column import col
from paimon_py.expr.predicate import Predicate
from paimon_py.expr.prune import Bounds, may_match
from paimon_py.lsm.order import dense_ranks
from paimon_py.scan.plan_snapshot import Ordered
from paimon_py.scan.projection import column_hint
from paimon_py.scan.request import keep
from paimon_py.scan.split import Split
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.types import Atomic, Field

_UNKNOWN = -(1 << 62)
_DIRECTIONS = ("ascending", "descending")


class OrderColumn(NamedTuple):
    """One column of an order."""

    field: Field
    descending: bool


ReadSplit = Callable[[Split, Predicate | None], Iterable[pa.RecordBatch]]
"""The rows of a split that match a predicate."""


def order_columns(order_by: object, schema: TableSchema) -> tuple[OrderColumn, ...]:
    """Parse `order_by`: a column, `(column, "descending")`, or a list of these.

    Raises: UsageError
    """
    given = order_by if isinstance(order_by, list) else [order_by]
    found = []
    for item in given:
        name, direction = item if isinstance(item, tuple) and len(item) == 2 else (item, "ascending")
        if not isinstance(name, str) or direction not in _DIRECTIONS:
            raise UsageError(f'order_by takes "c", ("c", "descending") or a list of these, not {item!r}')
        if name not in schema.names:
            raise UsageError(f"order_by: column {name!r} does not exist; {column_hint(name, schema)}")
        field = schema.field(name)
        if not isinstance(field.type, Atomic):
            raise UsageError(f"order_by: values of {name!r} have no order")
        found.append(OrderColumn(field, direction == "descending"))
    if not found or len({column.field.id for column in found}) < len(found):
        raise UsageError(f"order_by names no column, or one twice: {order_by!r}")
    return tuple(found)


class TopN:
    """Collects the first `limit` rows of an order.

    `rows`: those found so far, in order; None for none. `skipped_files`: the number of files that were not read.
    """

    def __init__(self, order: Sequence[OrderColumn], limit: int) -> None:
        self._order = tuple(order)
        self._limit = limit
        self.rows: pa.Table | None = None
        self.skipped_files = 0

    def collect(self, plan: Ordered, read: ReadSplit) -> None:
        """Search a plan for such rows; may be called for several plans.

        Shapes: `plan` is ordered by the leading column of the order.
        Cost: `limit` rows and one batch in memory; a sort of the candidate rows of each batch.
        """
        for place in _promising(plan, self._order[0]):
            threshold = self._threshold()
            if threshold is not None and plan.files[place]:
                slots = from_numpy(np.array(plan.files[place], np.int64), pa.int64())
                known = {self._order[0].field.name: _at(plan.bounds, slots)}
                if not may_match(threshold, known, plan.rows.take(slots)).any():
                    self.skipped_files += len(plan.planned.splits[place].files)
                    continue
            for batch in read(plan.planned.splits[place], threshold):
                self._add(batch)

    def _add(self, batch: pa.RecordBatch) -> None:
        threshold = self._threshold()
        if threshold is not None:
            batch = keep(batch, prepare(threshold))
        if not batch.num_rows:
            return
        new = pa.Table.from_batches([batch])
        table = new if self.rows is None else pa.concat_tables([self.rows, new])
        first = from_numpy(_sort(table, self._order)[: self._limit], pa.int64())
        self.rows = table.take(first).combine_chunks()

    def _threshold(self) -> Predicate | None:
        """The condition for rows that precede the last row kept; None if every row may."""
        if self.rows is None or self.rows.num_rows < self._limit:
            return None
        field, descending = self._order[0]
        last = self.rows.column(field.name)[self._limit - 1]
        if not last.is_valid:
            return None
        column = col(field.name)
        if len(self._order) > 1:
            return bind(column >= last if descending else column <= last, [field])
        return bind(column > last if descending else column < last, [field])


def both(predicate: Predicate | None, threshold: Predicate | None) -> Predicate | None:
    """The conjunction of both conditions."""
    parts = [part for part in (predicate, threshold) if part is not None]
    return all_of(parts) if parts else None


def _promising(plan: Ordered, lead: OrderColumn) -> list[int]:
    """The indexes of the splits by the best value that they may contain, unknown ones first."""
    best = plan.bounds.max if lead.descending else plan.bounds.min
    if not len(best):
        return list(range(len(plan.planned.splits)))
    ranks = -dense_ranks([best]) if lead.descending else dense_ranks([best])
    ranks[~validity_mask(best)] = _UNKNOWN
    keys = [min((int(ranks[slot]) for slot in slots), default=_UNKNOWN) for slots in plan.files]
    return sorted(range(len(keys)), key=keys.__getitem__)


def _sort(table: pa.Table, order: Sequence[OrderColumn]) -> Ints:
    """The row numbers in sorted order."""
    words = []
    for field, descending in order:
        column = combine(table.column(field.name))
        ranks = dense_ranks([column])
        ranks = -ranks if descending else ranks
        valid = nulls_or_none(column)
        words.append(ranks if valid is None else np.where(valid, ranks, np.iinfo(np.int64).max))
    return np.lexsort(words[::-1])


def _at(bounds: Bounds, slots: pa.Array) -> Bounds:
    counts = bounds.null_count
    return Bounds(
        min=bounds.min.take(slots),
        max=bounds.max.take(slots),
        null_count=None if counts is None else counts.take(slots),
    )
