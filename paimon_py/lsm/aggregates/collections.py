"""collect and merge_map: concatenate arrays, merge maps.

Elements are sorted by group and value; running numbers then give the outcome of each value's history in its group.
Where Java uses the order of a hash map, this module uses the order of first appearance.

Source: format.md §12.5; Java `FieldCollectAgg`, `FieldMergeMapAgg`. Java 2.0 compares binary elements and keys by
identity and so never finds one again; later releases compare their bytes, as this module does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import Ints, Mask, from_numpy, validity_mask
from paimon_py.lsm.aggregates.base import ADD_REVERSED, RETRACT, Fold
from paimon_py.lsm.aggregates.elements import Elements, elements_of, has_value, rebuilt
from paimon_py.lsm.aggregates.texts import in_rank
from paimon_py.lsm.codes import codes_of
from paimon_py.spec.aggregate_rules import Aggregate
from paimon_py.spec.types import ArrayType, DataType, MapType


class _Histories(NamedTuple):
    """Elements by group and value, oldest first: the history of a value in its group is the range from start to end."""

    order: Ints
    starts: Ints
    ends: Ints

    def each(self, per_history: Ints) -> Ints:
        """Repeat an item of every history for each of its elements."""
        return np.repeat(per_history, self.ends - self.starts)

    def last(self, marked: Mask) -> Ints:
        """The place of the last marked element of every history; -1 if there is none."""
        found: Ints = np.maximum.reduceat(np.where(marked, np.arange(len(marked)), -1), self.starts)
        return found

    def first(self, marked: Mask) -> Ints:
        """The place of the first marked element of every history; `len(order)` if there is none."""
        found: Ints = np.minimum.reduceat(np.where(marked, np.arange(len(marked)), len(marked)), self.starts)
        return found


def collect(made: Aggregate, values: pa.Array, fold: Fold) -> pa.Array:
    """All elements in the order of the versions; with `distinct`, each once.

    A retracted element removes one equal element, the first of them. Older values are added at the end like newer ones,
    unless the column ignores retracts: then Java puts them in front.
    Cost: 15 ns an element; with `distinct` or retracts about 250.
    """
    assert isinstance(made.field.type, ArrayType)
    steps = in_rank(fold.steps) if made.ignore_retract else fold.steps
    elements = elements_of(values, steps)
    retracts = np.zeros(len(elements.rows), np.bool_) if elements.actions is None else elements.actions == RETRACT
    if len(retracts) and (made.distinct or retracts.any()):
        histories = _histories(values.values, made.field.type.element, elements)
        own = retracts[histories.order]
        left = _distinct(histories, own) if made.distinct else _remaining(histories, own)
        kept = np.sort(histories.order[left])
    else:
        kept = np.arange(len(elements.rows))
    counts = np.bincount(elements.groups[kept], minlength=len(fold))
    valid = has_value(steps, validity_mask(values))
    return rebuilt(values.type, [values.values], elements.rows[kept], counts, valid)


def merge_map(made: Aggregate, values: pa.Array, fold: Fold) -> pa.Array:
    """The entries of all maps, the newest of every key; retracted maps remove their keys.

    Cost: about 250 ns an entry.
    """
    assert isinstance(made.field.type, MapType)
    steps = fold.steps
    elements = elements_of(values, steps)
    valid = has_value(steps, validity_mask(values))
    kept = elements.rows[:0]
    if len(elements.rows):
        histories = _histories(values.keys, made.field.type.key, elements)
        kept = np.sort(histories.order[_puts(histories, elements)])
    counts = np.bincount(elements.groups[kept], minlength=len(fold))
    return rebuilt(values.type, [values.keys, values.items], elements.rows[kept], counts, valid)


def _histories(child: pa.Array, data_type: DataType, elements: Elements) -> _Histories:
    codes = codes_of([child.take(from_numpy(elements.rows, pa.int64()))], [data_type])
    return histories_of(codes, elements.groups)


def histories_of(codes: Ints, groups: Ints) -> _Histories:
    """Elements by group and code."""
    order = np.lexsort((codes, groups))
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (groups[order][1:] != groups[order][:-1]) | (codes[order][1:] != codes[order][:-1])
    starts = np.flatnonzero(begins)
    return _Histories(order, starts, np.append(starts[1:], len(order)))


def _distinct(histories: _Histories, retracts: Mask) -> Ints:
    """The first element after the last retract of every history."""
    places = np.maximum(histories.last(retracts) + 1, histories.starts)
    return places[places < histories.ends]


def _remaining(histories: _Histories, retracts: Mask) -> Ints:
    """The newest elements of every history, as many as its retracts leave; retracts of absent elements are ignored."""
    total = np.cumsum(np.where(retracts, -1, 1))
    before = np.where(histories.starts > 0, total[histories.starts - 1], 0)
    balance = total - histories.each(before)
    lowest = np.minimum(np.minimum.reduceat(balance, histories.starts), 0)
    count = balance[histories.ends - 1] - lowest
    adds = np.cumsum(~retracts, dtype=np.int64)
    later = histories.each(adds[histories.ends - 1]) - adds
    return np.flatnonzero(~retracts & (later < histories.each(count)))


def _puts(histories: _Histories, elements: Elements) -> Ints:
    """The entry to keep of every history: the last one after its last retract, else the first of the older ones."""
    if elements.actions is None:
        return histories.ends - 1
    actions = elements.actions[histories.order]
    retracts = actions == RETRACT
    alive = np.arange(len(actions)) > histories.each(histories.last(retracts))
    older = actions == ADD_REVERSED
    last = histories.last(alive & ~older & ~retracts)
    first = histories.first(alive & older)
    places = np.where(last >= 0, last, first)
    return places[places < len(actions)]
