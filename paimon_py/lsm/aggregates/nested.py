"""Tables inside a column: nested_update, nested_partial_update, merge_map_with_keytime.

Keys, times and sequence fields are first converted to numbers, all at once; the work of Java's hash maps is then done
with dictionaries from number to element. Where Java's order comes from a hash map, the order here is that of first
appearance.

Source: format.md §12.5; Java `FieldNestedUpdateAgg`, `FieldNestedPartialUpdateAgg`, `FieldMergeMapWithKeyTimeAgg`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.columns import Ints, Mask, child_range, from_numpy, numpy_values, validity_mask
from paimon_py.errors import SchemaError
from paimon_py.lsm.aggregates.base import ADD_REVERSED, RETRACT, SET, Fold, Steps
from paimon_py.lsm.aggregates.collections import histories_of
from paimon_py.lsm.aggregates.elements import assemble, elements_of, rebuilt
from paimon_py.lsm.aggregates.texts import in_rank
from paimon_py.lsm.codes import codes_of
from paimon_py.lsm.order import sort_parts
from paimon_py.lsm.sort_encoding import parts_of
from paimon_py.spec.aggregate_rules import Aggregate, nested_row
from paimon_py.spec.types import MapType, RowType

_Turn: TypeAlias = Callable[[Any, Any, int], Any]
"""Maps the state of a group, the elements of a step (None for null) and its action to the next state."""


def nested_update(made: Aggregate, values: pa.Array, fold: Fold) -> pa.Array:
    """Insert rows by their `nested-key`, or append them without one; retracted rows are removed.

    Cost: about 1 µs an element, a loop over elements: a later step can remove an inserted row, and limits and sequence
        fields depend on the rows that are present.
    Raises: SchemaError for a null in a key where `nested-key-null-strategy` is error.
    """
    steps = fold.steps
    elements = elements_of(values, steps)
    rows = values.values.take(from_numpy(elements.rows, pa.int64()))
    present = validity_mask(rows)
    if made.nested_key:
        keys, without = _keys(made, rows)
        _refuse_null_keys(made, present & without)
        counts = present & ~without if made.null_keys == "ignore" else present
        turn = _KeyedRows(keys.tolist(), counts.tolist(), _sequence(made, rows), made.count_limit).turn
    else:
        codes = _row_codes(made, rows).tolist() if fold.has_retracts else []
        turn = _AppendedRows(codes, present.tolist(), made.count_limit).turn
    return _fold(values, steps, elements.rows, turn)


def merge_map_with_keytime(made: Aggregate, values: pa.Array, fold: Fold) -> pa.Array:
    """The entry of every key with the largest time, compared as strings; a null entry removes its key.

    Times are compared by UTF-16 code units like Java's strings; an entry without a time changes nothing.
    Cost: about 1 µs an entry, a loop over entries.
    """
    assert isinstance(made.field.type, MapType)
    assert isinstance(made.field.type.value, RowType)
    steps = fold.steps
    elements = elements_of(values, steps)
    index = from_numpy(elements.rows, pa.int64())
    keys = codes_of([values.keys.take(index)], [made.field.type.key])
    rows = values.items.take(index)
    times = rows.field(made.time_field)
    timed = validity_mask(times) & validity_mask(rows)
    merged = _TimedEntries(keys.tolist(), validity_mask(rows).tolist(), timed.tolist(), _text_ranks(times).tolist())
    return _fold(values, steps, elements.rows, merged.turn)


def nested_partial_update(made: Aggregate, values: pa.Array, fold: Fold) -> pa.Array:
    """Rows by their `nested-key`; every field has its newest non-null value.

    Cost: about 300 ns an element, plus 20 a field.
    Raises: SchemaError for a null in a key where `nested-key-null-strategy` is error.
    """
    given = validity_mask(values)
    ranked = in_rank(fold.steps)
    steps = ranked.only(ranked.of(given))
    elements = elements_of(values, steps)
    rows = values.values.take(from_numpy(elements.rows, pa.int64()))
    keys, without = _keys(made, rows)
    present = validity_mask(rows)
    _refuse_null_keys(made, present & without)
    counts = np.flatnonzero(present & ~without if made.null_keys == "ignore" else present)
    rows, keys, groups = rows.take(from_numpy(counts, pa.int64())), keys[counts], elements.groups[counts]
    histories = histories_of(keys, groups)
    shown = np.argsort(histories.order[histories.starts], kind="stable") if len(counts) else counts
    children = []
    for number in range(rows.type.num_fields):
        column = rows.field(number)
        if len(counts):
            last = histories.last(validity_mask(column)[histories.order])
            found = np.where(last >= 0, histories.order[last], -1)[shown]
            column = column.take(from_numpy(found, pa.int64(), found >= 0))
        children.append(column)
    table = pa.StructArray.from_arrays(children, fields=list(rows.type))
    owners = groups[histories.order[histories.starts]][shown] if len(counts) else groups
    filled = steps.ends > steps.starts
    result = assemble(values.type, [table], np.bincount(owners, minlength=len(fold)), filled)
    return _keep_unmerged(values, fold.steps, steps, result)


def _keep_unmerged(values: pa.Array, every: Steps, steps: Steps, result: pa.Array) -> pa.Array:
    """Keep a value unchanged that was set, or added as an older one to null, if nothing is merged into it.

    An older value that arrives later is merged into it even if it is null.
    """
    if every.actions is None or steps.actions is None:
        return result
    alone = np.flatnonzero(steps.ends - steps.starts == 1)
    own = steps.starts[alone]
    rows = own if steps.rows is None else steps.rows[own]
    older = every.only(every.actions == ADD_REVERSED)
    latest = np.full(len(every.starts), -1, np.int64)
    if older.total:
        np.maximum.at(latest, older.groups(), np.arange(older.total) if older.rows is None else older.rows)
    kept = ((steps.actions[own] == SET) | (steps.actions[own] == ADD_REVERSED)) & (latest[alone] <= rows)
    if not kept.any():
        return result
    place = np.arange(len(every.starts))
    place[alone[kept]] = len(place) + rows[kept]
    return pa.concat_arrays([result, values]).take(from_numpy(place, pa.int64()))


class _KeyedRows:
    """Rows by key. The state is a dictionary from key to element, or a tuple of elements that was set unchanged."""

    def __init__(self, keys: list[int], counts: list[bool], sequence: list[int] | None, limit: int) -> None:
        self._keys = keys
        self._counts = counts
        self._sequence = sequence
        self._limit = limit

    def turn(self, state: Any, elements: Sequence[int] | None, action: int) -> Any:
        if action == SET:
            return None if elements is None else tuple(elements)
        if action == RETRACT:
            return state if state is None or elements is None else self._without(state, elements)
        if action == ADD_REVERSED:
            return elements if state is None else self._put(self._put({}, elements or ()), _of(state), self._limit)
        if elements is None:
            return state
        return self._put(self._table(state), elements, self._limit)

    def _table(self, state: Any) -> dict[int, int]:
        return state if isinstance(state, dict) else self._put({}, state or ())

    def _put(self, table: dict[int, int], elements: Sequence[int], limit: int = 2**63) -> dict[int, int]:
        for element in elements:
            if not self._counts[element]:
                continue
            key = self._keys[element]
            old = table.get(key)
            if old is None:
                if len(table) < limit:
                    table[key] = element
            elif self._sequence is None or self._sequence[element] >= self._sequence[old]:
                table[key] = element
        return table

    def _without(self, state: Any, elements: Sequence[int]) -> dict[int, int]:
        table = {self._keys[element]: element for element in _of(state) if self._counts[element]}
        for element in elements:
            if self._counts[element]:
                table.pop(self._keys[element], None)
        return table


class _AppendedRows:
    """Rows in order. The state is a list of elements, or a tuple of them that was set unchanged."""

    def __init__(self, codes: list[int], present: list[bool], limit: int) -> None:
        self._codes = codes
        self._present = present
        self._limit = limit

    def turn(self, state: Any, elements: Sequence[int] | None, action: int) -> Any:
        if action == SET:
            return None if elements is None else tuple(elements)
        if action == RETRACT:
            if state is None or elements is None:
                return state
            gone = {self._codes[element] for element in elements if self._present[element]}
            return [element for element in state if self._present[element] and self._codes[element] not in gone]
        if action == ADD_REVERSED:
            return self._join(None if elements is None else tuple(elements), state)
        return self._join(state, elements)

    def _join(self, older: Any, newer: Sequence[int] | None) -> Any:
        if newer is None:
            return older
        room = self._limit - len(older or ())
        if older is not None and room <= 0:
            return older
        rows = older if isinstance(older, list) else [element for element in older or () if self._present[element]]
        rows.extend([element for element in newer if self._present[element]][: max(room, 0)])
        return rows


class _TimedEntries:
    """Entries by key, each with a time. The state is a dictionary from key to element."""

    def __init__(self, keys: list[int], present: list[bool], timed: list[bool], times: list[int]) -> None:
        self._keys = keys
        self._present = present
        self._timed = timed
        self._times = times

    def turn(self, state: Any, elements: Sequence[int] | None, action: int) -> Any:
        given = None if elements is None else {self._keys[element]: element for element in elements}
        if action == SET:
            return given
        older, newer = (given, state) if action == ADD_REVERSED else (state, given)
        if older is None or newer is None:
            return newer if older is None else older
        entries = _of(state) if action == ADD_REVERSED else elements or ()
        return self._put(older, entries)

    def _put(self, table: dict[int, int], elements: Sequence[int]) -> dict[int, int]:
        for element in elements:
            key = self._keys[element]
            if not self._present[element]:
                table.pop(key, None)
            elif self._timed[element]:
                old = table.get(key)
                if old is None or not self._timed[old] or self._times[element] > self._times[old]:
                    table[key] = element
        return table


def _of(state: Any) -> Sequence[int]:
    return list(state.values()) if isinstance(state, dict) else tuple(state)


def _fold(values: pa.Array, steps: Steps, rows: Ints, turn: _Turn) -> pa.Array:
    """The state of every group after its last step. `rows`: the place in the child of each element of the steps."""
    places = np.arange(steps.total) if steps.rows is None else steps.rows
    sizes = child_range(values)[0][places]
    ends = np.cumsum(sizes)
    spans = list(zip((ends - sizes).tolist(), ends.tolist(), validity_mask(values)[places].tolist(), strict=True))
    actions = [1] * steps.total if steps.actions is None else steps.actions.tolist()
    chosen: list[int] = []
    counts, valid = np.zeros(len(steps.starts), np.int64), np.zeros(len(steps.starts), np.bool_)
    for group, (start, end) in enumerate(zip(steps.starts.tolist(), steps.ends.tolist(), strict=True)):
        state: Any = None
        for (first, last, given), action in zip(spans[start:end], actions[start:end], strict=True):
            state = turn(state, range(first, last) if given else None, action)
        if state is not None:
            before = len(chosen)
            chosen.extend(_of(state))
            counts[group], valid[group] = len(chosen) - before, True
    children = [values.keys, values.items] if pa.types.is_map(values.type) else [values.values]
    return rebuilt(values.type, children, rows[np.array(chosen, np.int64)], counts, valid)


def _keys(made: Aggregate, rows: pa.Array) -> tuple[Ints, Mask]:
    """The key of every row as a number, and a mask of the keys that contain a null."""
    types = nested_row(made.field)
    names = list(types)
    columns = [rows.field(names.index(name)) for name in made.nested_key]
    without = np.zeros(len(rows), np.bool_)
    for column in columns:
        without |= ~validity_mask(column)
    return codes_of(columns, [types[name] for name in made.nested_key]), without


def _row_codes(made: Aggregate, rows: pa.Array) -> Ints:
    types = nested_row(made.field)
    return codes_of([rows.field(number) for number in range(len(types))], list(types.values()))


def _sequence(made: Aggregate, rows: pa.Array) -> list[int] | None:
    """The rank of every row by the sequence fields, nulls first; None if there are none."""
    if not made.nested_sequence:
        return None
    names = list(nested_row(made.field))
    parts = [part for name in made.nested_sequence for part in parts_of(rows.field(names.index(name)))]
    order, starts = sort_parts(parts, len(rows), runs_sorted=False)
    ranks = np.empty(len(rows), np.int64)
    ranks[order] = np.cumsum(starts)
    return [int(rank) for rank in ranks]


def _text_ranks(texts: pa.Array) -> Ints:
    """Numbers that order like Java's strings; arbitrary numbers for nulls."""
    encoded = pc.dictionary_encode(texts)
    distinct = [scalar.as_py().encode("utf-16-be") for scalar in encoded.dictionary]
    ranks = np.empty(len(distinct) + 1, np.int64)
    ranks[sorted(range(len(distinct)), key=distinct.__getitem__)] = np.arange(len(distinct))
    return ranks[numpy_values(pc.fill_null(encoded.indices, len(distinct)))]


def _refuse_null_keys(made: Aggregate, wrong: Mask) -> None:
    if made.null_keys != "error" or not wrong.any():
        return
    name = made.field.name
    raise SchemaError(
        f"aggregate function {made.function} of column {name!r} found a null in 'fields.{name}.nested-key' = "
        f"{','.join(made.nested_key)!r}; do not write such rows, or set 'fields.{name}.nested-key-null-strategy' to "
        "'merge' or 'ignore'",
        fields=(name,),
    )
