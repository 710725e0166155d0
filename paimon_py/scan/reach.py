"""Computes where matches end in a sorted run: the largest leading key that the predicate allows."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from paimon_py.expr.arrays import column_type, literal_array
from paimon_py.expr.literal import LiteralValue
from paimon_py.expr.predicate import And, Compare, In, Or, Predicate
from paimon_py.lsm.probe import Key, KeyProbe


def reach(predicate: Predicate, column: str) -> Callable[[pa.RecordBatch], bool] | None:
    """A test whether a batch, and therefore the rest of its run, is after the last key that can match.

    Shapes: batches in key order that contain `column`, the leading key column.
    Cost: a few µs per batch, which reads its first key.
    Returns: None if the predicate has no upper bound for the column.
    """
    last = _largest(predicate, column)
    if last is None:
        return None

    def beyond(batch: pa.RecordBatch) -> bool:
        return batch.num_rows > 0 and (KeyProbe([batch.column(column).slice(0, 1)]).key(0), False) >= last

    return beyond


def _largest(predicate: Predicate, column: str) -> tuple[Key, bool] | None:
    """The largest value of the column in a matching row, and whether it may match itself; None if unbounded."""
    if isinstance(predicate, (And, Or)):
        found = [_largest(part, column) for part in predicate.parts]
        known = [key for key in found if key is not None]
        if isinstance(predicate, And):
            return min(known, default=None)
        return max(known) if known and len(known) == len(found) else None
    literals: tuple[LiteralValue, ...]
    inclusive = True
    if isinstance(predicate, Compare) and predicate.operator in ("==", "<", "<="):
        literals = (predicate.literal,)
        inclusive = predicate.operator != "<"
    elif isinstance(predicate, In) and not predicate.negated:
        literals = predicate.literals
    else:
        return None
    if predicate.column.path != (column,):
        return None
    probe = KeyProbe([literal_array(literals, column_type(predicate.column))])
    return probe.largest(), inclusive
