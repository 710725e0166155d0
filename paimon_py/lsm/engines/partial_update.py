"""The partial-update merge engine: every column keeps its newest non-null value.

Columns of a sequence group change together instead, by the group's own order. All keys of a window are processed at
once: the result of a column is the row number of the version that provides each key's value.

Source: format.md §12.4; Java `PartialUpdateMergeFunction`, release 2.0.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import Ints, Mask, numpy_values, validity_mask
from paimon_py.errors import SchemaError, UsageError
from paimon_py.lazy import lazy_property
from paimon_py.lsm.aggregates.base import ADD, ADD_REVERSED, RETRACT, SET, SKIP, Aggregator, Fold
from paimon_py.lsm.groups import Groups, Merged
from paimon_py.lsm.order import comparable
from paimon_py.lsm.sort_encoding import combine_chunks
from paimon_py.lsm.versions import Versions
from paimon_py.spec.engine_rules import NO_RETRACTS, SequenceGroup
from paimon_py.spec.schema import DELETE, INSERT, LEVEL, SEQUENCE_NUMBER, VALUE_KIND

_SYSTEM = frozenset((SEQUENCE_NUMBER, VALUE_KIND, LEVEL))
_NUMBER_BITS = 63


class Retracts(enum.Enum):
    """The effect of −U and −D rows.

    REFUSE: they are an error. IGNORE: none. REMOVE: −D removes the row, −U has no effect. GROUPS: they retract the
        columns
    of the sequence groups for which they are not too old.
    """

    REFUSE = enum.auto()
    IGNORE = enum.auto()
    REMOVE = enum.auto()
    GROUPS = enum.auto()


class PartialUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the engine.

    `keys`: columns that are the same in all versions. `required`: columns declared NOT NULL. `removing`: groups in
    which a −D removes the row. `aggregators`: functions of columns that sequence groups protect.
    """

    keys: frozenset[str]
    required: frozenset[str] = frozenset()
    retracts: Retracts = Retracts.REFUSE
    groups: tuple[SequenceGroup, ...] = ()
    removing: tuple[SequenceGroup, ...] = ()
    aggregators: Mapping[str, Aggregator] = {}

    def inputs(self, wanted: frozenset[str]) -> frozenset[str]:
        """The wanted columns, their sequence fields, and the fields that decide whether a row is removed."""
        found = {name for group in self.groups if not wanted.isdisjoint(group.members) for name in group.fields}
        return wanted | found | {name for group in self.removing for name in group.fields}

    def __call__(self, groups: Groups, columns: Mapping[str, pa.ChunkedArray]) -> Merged:
        """One row per key: its newest version, with values of older ones where the newest has none.

        Cost: per row of a key with several rows, 10 ns for a column with nulls and 20 for a sequence group.
        Raises: UsageError for −U and −D that the options do not allow; SchemaError for null in a NOT NULL column.
        """
        if not len(groups.multiple):
            return Merged(groups.newest_rows)
        return _Merge(self, Versions(groups), columns).result(groups)


class _Order(NamedTuple):
    """The order of the versions in one sequence group: numbers of `bits` bits, 0 where a version does not count."""

    numbers: Ints
    bits: int

    def accept(self, segments: Ints, rows: Ints | slice = slice(None)) -> Mask:
        """A mask of the versions that count and are at least as new as all before them in their segment."""
        numbers = self.numbers[rows]
        placed = segments << self.bits | numbers
        newest: Mask = placed == np.maximum.accumulate(placed)
        return newest & (numbers > 0)


class _Merge:
    """The merge of one window. Masks and positions are over the versions of the keys that need merging."""

    def __init__(self, settings: PartialUpdate, versions: Versions, columns: Mapping[str, pa.ChunkedArray]) -> None:
        self._settings = settings
        self._versions = versions
        self._columns = columns
        self._kinds = None
        self._retracts: Mask | None = None
        self._orders: dict[SequenceGroup, _Order] = {}
        if VALUE_KIND in columns:
            self._kinds = numpy_values(combine_chunks(columns[VALUE_KIND]))[versions.rows]
            retracts = (self._kinds & 1) == 1
            if retracts.any():
                self._retracts = retracts
        if self._retracts is not None and settings.retracts is Retracts.REFUSE:
            raise UsageError(NO_RETRACTS["partial-update"])

    def result(self, groups: Groups) -> Merged:
        """The window rows of the keys, and all columns that differ from them."""
        versions, settings = self._versions, self._settings
        rows = groups.newest_rows
        if self._retracts is not None and settings.retracts is Retracts.IGNORE:
            counted = versions.last(~self._retracts)
            rows = versions.row_numbers(np.where(counted >= 0, counted, versions.ends - 1))
        computed: dict[str, pa.Array] = {}
        grouped: set[str] = set()
        for group in settings.groups:
            grouped.update(group.members)
            if self._columns.keys() >= set(group.fields):
                computed.update(self._group(group))
        for name, column in self._columns.items():
            if name in grouped or name in settings.keys or name in _SYSTEM:
                continue
            source = self._newest_values(name, column)
            if source is not None:
                computed[name] = versions.pick(column, source)
        kinds = self._result_kinds(groups)
        if kinds is not None:
            computed[VALUE_KIND] = kinds
        return Merged(rows, computed)

    # -- rows that count ---

    @lazy_property
    def _removes(self) -> Mask | None:
        """A mask of the −D rows that remove their row; None if there are none."""
        settings = self._settings
        if self._retracts is None or self._kinds is None:
            return None
        deletes = self._kinds == DELETE
        if settings.retracts is Retracts.GROUPS and deletes.any():
            orders = [self._order(group) for group in settings.removing]
            deletes = _removals(deletes, self._versions.begins, orders)
        elif settings.retracts is not Retracts.REMOVE:
            return None
        return deletes if deletes.any() else None

    @lazy_property
    def _fresh(self) -> Mask | None:
        """A mask of the versions that set every column, also to null: first versions that retract, and removals."""
        if self._retracts is None:
            return None
        fresh = self._retracts & self._versions.begins
        if self._removes is not None:
            fresh |= self._removes
        return fresh if fresh.any() else None

    @lazy_property
    def _segments(self) -> Ints:
        """A number for every range of versions within which sequence fields only grow."""
        begins = self._versions.begins
        segments: Ints = np.cumsum(begins if self._fresh is None else begins | self._fresh)
        return segments

    @lazy_property
    def _plain(self) -> Mask | None:
        """A mask of the versions that set columns without nulls; None if all do."""
        if self._retracts is None:
            return None
        return ~self._retracts if self._fresh is None else ~self._retracts | self._fresh

    # -- columns outside groups ---

    def _newest_values(self, name: str, column: pa.ChunkedArray) -> Ints | None:
        """The window row with the newest value of each key; None if these are the rows that represent the keys."""
        versions = self._versions
        valid = versions.valid(column)
        if valid is not None and name in self._settings.required:
            self._refuse_null(name, valid)
        if valid is None:
            if self._plain is None:
                return None
            return self._plain_rows
        setting = valid if self._retracts is None else valid & ~self._retracts
        if self._fresh is not None:
            setting = setting | self._fresh
        found = versions.last(setting)
        return versions.row_numbers(np.where(found >= 0, found, versions.firsts))

    @lazy_property
    def _plain_rows(self) -> Ints:
        assert self._plain is not None
        return self._versions.row_numbers(self._versions.last(self._plain))

    def _refuse_null(self, name: str, valid: Mask) -> None:
        """Refuse null in a NOT NULL column; with sequence groups only if a version sets the whole row, as in Java."""
        setting = self._fresh if self._settings.groups else self._plain
        if self._settings.groups and setting is None:
            return
        bad = ~valid if setting is None else ~valid & setting
        if bad.any():
            raise SchemaError(f"column {name!r} is NOT NULL, but a version of a row has null in it", fields=(name,))

    # -- sequence groups ---

    def _order(self, group: SequenceGroup) -> _Order:
        """The order of the versions by the sequence fields of a group; 0 for versions that do not count."""
        if group in self._orders:
            return self._orders[group]
        fields = [self._versions.take(self._columns[name]) for name in group.fields]
        room = _NUMBER_BITS - 1 - len(self._versions).bit_length()
        numbers, bits = comparable(fields, room)
        numbers = numbers + 1
        if all(field.null_count for field in fields):
            speaking = np.logical_or.reduce([validity_mask(field) for field in fields])
            numbers[~speaking] = 0
        if self._retracts is not None and self._settings.retracts is not Retracts.GROUPS:
            numbers[self._retracts & ~self._versions.begins] = 0
        self._orders[group] = _Order(numbers, bits + 1)
        return self._orders[group]

    def _group(self, group: SequenceGroup) -> dict[str, pa.Array]:
        """The columns of one group."""
        versions = self._versions
        order = self._order(group)
        accepted = order.accept(self._segments)
        touched = accepted if self._fresh is None else accepted | self._fresh
        found = versions.last(touched)
        rows = versions.row_numbers(np.where(found >= 0, found, versions.firsts))
        computed = {name: versions.pick(self._columns[name], rows) for name in group.fields}
        given = found >= 0
        if self._retracts is not None and self._settings.retracts is Retracts.GROUPS:
            taken_back = self._retracts & accepted
            if self._removes is not None:
                taken_back &= ~self._removes
            given &= ~taken_back[found]
        fold: tuple[Ints, Fold] | None = None
        for name in group.columns:
            column = self._columns.get(name)
            if column is None:
                continue
            aggregator = self._settings.aggregators.get(name)
            if aggregator is None:
                computed[name] = versions.pick(column, rows, given)
                continue
            if fold is None:
                fold = self._fold(order.numbers > 0, accepted)
            computed[name] = versions.compute(column, aggregator(versions.take(column, fold[0]), fold[1]))
        return computed

    def _fold(self, speaking: Mask, accepted: Mask) -> tuple[Ints, Fold]:
        """The actions of every version for the aggregate functions of a group, and the positions of these versions.

        A retracting first version occurs twice: it sets the value of the column, then retracts it.
        """
        versions = self._versions
        actions = np.where(speaking, np.where(accepted, ADD, ADD_REVERSED), SKIP).astype(np.int8)
        positions = np.arange(len(versions))
        if self._retracts is None:
            return positions, Fold(versions.firsts, versions.ends, actions)
        in_groups = self._settings.retracts is Retracts.GROUPS
        actions[self._retracts] = np.where(speaking[self._retracts] & in_groups, RETRACT, SKIP)
        if self._removes is not None:
            actions[self._removes] = SET
        first = self._retracts & versions.begins
        twice = first & (actions == RETRACT)
        actions[first & ~twice] = SET
        if not twice.any():
            return positions, Fold(versions.firsts, versions.ends, actions)
        positions = np.repeat(positions, 1 + twice)
        actions = actions[positions]
        shifts = np.cumsum(twice)
        actions[(np.arange(len(twice)) + shifts - 1)[twice]] = SET
        ends = versions.ends + shifts[versions.ends - 1]
        return positions, Fold(np.append(0, ends[:-1]), ends, actions)

    # -- kinds ---

    def _result_kinds(self, groups: Groups) -> pa.Array | None:
        """−D for keys whose last version removed the row or that had no add, +I for others; None if unchanged."""
        if self._kinds is None or not self._kinds.any():
            return None
        versions = self._versions
        gone = np.zeros(len(versions.firsts), np.bool_)
        if self._retracts is not None:
            gone = versions.last(~self._retracts) < 0
        if self._removes is not None:
            gone |= self._removes[versions.ends - 1]
        column = self._columns[VALUE_KIND]
        merged = np.where(gone, DELETE, INSERT).astype(np.int8)
        kinds = versions.spread_items(numpy_values(combine_chunks(column))[groups.newest_rows], merged)
        return pa.Array.from_buffers(pa.int8(), len(kinds), [None, pa.py_buffer(np.ascontiguousarray(kinds))])


def _removals(deletes: Mask, begins: Mask, orders: list[_Order]) -> Mask:
    """A mask of the −D rows that are new enough for one of the removing groups.

    With one group, its order alone decides. With several, a removal also resets the order of the other groups, so
    rounds are needed: each determines the next removal of every key.
    """
    if not orders:
        return np.zeros(len(deletes), np.bool_)
    keys: Ints = np.cumsum(begins)
    if len(orders) == 1:
        return deletes & orders[0].accept(keys)
    removed: Mask = np.zeros(len(deletes), np.bool_)
    rows = np.arange(len(deletes))
    while len(rows):
        segments: Ints = np.cumsum(begins[rows] | removed[rows])
        hits = np.logical_or.reduce([order.accept(segments, rows) for order in orders])
        found = np.flatnonzero(hits & deletes[rows] & ~removed[rows])
        key = keys[rows]
        found = found[np.append(True, key[found][1:] != key[found][:-1])] if len(found) else found
        removed[rows[found]] = True
        from_here = np.full(int(keys[-1]) + 1, len(rows))
        from_here[key[found]] = found
        rows = rows[np.arange(len(rows)) >= from_here[key]]
    return removed
