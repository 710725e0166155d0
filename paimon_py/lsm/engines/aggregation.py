"""The aggregation merge engine: every column has a function that computes one value from a key's versions.

Source: format.md §12.5; Java `AggregateMergeFunction`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import Ints, Mask, combine, from_numpy, numpy_values, ranges, validity_mask
from paimon_py.errors import SchemaError
from paimon_py.lsm.aggregates import aggregator_of
from paimon_py.lsm.aggregates.base import ADD, RETRACT, SET, Actions, Aggregator, Fold, Pick, take_or_null
from paimon_py.lsm.groups import Groups, Merged
from paimon_py.lsm.sort_encoding import combine_chunks
from paimon_py.spec.aggregate_rules import column_function
from paimon_py.spec.schema import DELETE, VALUE_KIND, TableSchema


class Aggregation:
    """Fold the versions of every key, column by column.

    −U and −D rows are retracted. With `remove_on_delete` a −D row instead replaces the record by its own values, and
    the key is deleted if that row is the newest.
    """

    def __init__(self, schema: TableSchema, *, remove_on_delete: bool) -> None:
        self._schema = schema
        self._remove_on_delete = remove_on_delete
        self._columns = frozenset(schema.names)
        self._aggregators: dict[str, Aggregator] = {}

    def inputs(self, wanted: frozenset[str]) -> frozenset[str]:
        """Only the wanted columns: no function reads another column."""
        return wanted

    def __call__(self, groups: Groups, columns: Mapping[str, pa.ChunkedArray]) -> Merged:
        """Compute one value per key and column; the sequence number is that of the newest row.

        Cost: a column whose result is its newest value for all keys is not read; for the others, the rows of keys with
            several versions are gathered, then folded.
        Raises: SchemaError as the functions do.
        """
        newest = groups.newest_rows
        multiple = groups.multiple
        if not len(multiple):
            return Merged(newest)
        window = _Window(groups, newest, multiple)
        kinds = numpy_values(combine(columns[VALUE_KIND])) if VALUE_KIND in columns else None
        fold = Fold(*window.bounds, self._actions(None if kinds is None else kinds[window.rows], len(window.rows)))
        made = {}
        for name, column in columns.items():
            if name in self._columns:
                result = self._merge(name, column, fold, window)
                if result is not None:
                    made[name] = result
        if kinds is not None:
            made[VALUE_KIND] = self._kinds(kinds, window)
        return Merged(newest, made)

    def _actions(self, kinds: Actions | None, count: int) -> Actions:
        if kinds is None:
            return np.full(count, ADD, np.int8)
        actions = np.where(kinds & 1, RETRACT, ADD).astype(np.int8)
        if self._remove_on_delete:
            actions[kinds == DELETE] = SET
        return actions

    def _kinds(self, kinds: Actions, window: _Window) -> pa.Array:
        found = kinds[window.newest]
        deleted = self._remove_on_delete & (found[window.multiple] == DELETE)
        found[window.multiple] = np.where(deleted, DELETE, 0)
        return from_numpy(found, pa.int8())

    def _merge(self, name: str, column: pa.ChunkedArray, fold: Fold, window: _Window) -> pa.Array | None:
        """A column with one value per key; None if it is the value of the newest row."""
        aggregator = self._aggregators.get(name)
        if aggregator is None:
            aggregator = aggregator_of(self._schema, name, column_function(self._schema, name))
            self._aggregators[name] = aggregator
        if column.null_count and not self._schema.field(name).type.nullable:
            _refuse_nulls(name, validity_mask(combine(column))[window.rows], fold)
        if not isinstance(aggregator, Pick):
            return window.spread_results(column, aggregator(window.gather(column), fold))
        if aggregator.newest and fold.only_adds and (aggregator.looks_at == "nothing" or not column.null_count):
            return None
        values = _NOTHING if aggregator.looks_at == "nothing" else combine_chunks(column)
        return window.pick(column, aggregator.rows(values, fold, window.rows))


class _Window:
    """The rows of a window's keys with several versions, and the mapping back to all keys."""

    def __init__(self, groups: Groups, newest: Ints, multiple: Ints) -> None:
        self.newest = newest
        self.multiple = multiple
        lengths = (groups.ends - groups.firsts)[multiple]
        ends = np.cumsum(lengths)
        self.bounds = ends - lengths, ends
        whole = len(multiple) == len(groups)
        self.rows = groups.order if whole else groups.order[ranges(groups.firsts[multiple], lengths)]
        self._all = whole

    def gather(self, column: pa.ChunkedArray) -> pa.Array:
        """The values of these rows."""
        return _gather(column, self.rows)

    def pick(self, column: pa.ChunkedArray, places: Ints) -> pa.Array | None:
        """One value per key, from the row at each key's place, null where negative; None if every row is the newest."""
        rows = np.where(places >= 0, self.rows[places], -1)
        if np.array_equal(rows, self.newest[self.multiple]):
            return None
        every = self.newest.copy()
        every[self.multiple] = rows
        return combine(take_or_null(column, every))

    def spread_results(self, column: pa.ChunkedArray, results: pa.Array) -> pa.Array:
        """One value per key, from the results of the keys with several versions."""
        if self._all:
            return results
        alone = np.ones(len(self.newest), np.bool_)
        alone[self.multiple] = False
        if not _has_width(column.type):
            singles = combine(column.take(from_numpy(self.newest[alone], pa.int64())))
            place = np.empty(len(self.newest), np.int64)
            place[alone] = np.arange(len(singles))
            place[self.multiple] = len(singles) + np.arange(len(results))
            return pa.concat_arrays([singles, results]).take(from_numpy(place, pa.int64()))
        whole = combine(column)
        values = numpy_values(whole)[self.newest]
        values[self.multiple] = numpy_values(results)
        if not whole.null_count and not results.null_count:
            return from_numpy(values, column.type)
        valid = validity_mask(whole)[self.newest]
        valid[self.multiple] = validity_mask(results)
        return from_numpy(values, column.type, valid)


def _has_width(kind: pa.DataType) -> bool:
    return bool(pa.types.is_primitive(kind) or pa.types.is_decimal128(kind))


def _gather(column: pa.ChunkedArray, rows: Ints) -> pa.Array:
    if not _has_width(column.type):
        return combine(column.take(from_numpy(rows, pa.int64())))
    whole = combine(column)
    valid = validity_mask(whole)[rows] if whole.null_count else None
    return from_numpy(numpy_values(whole)[rows], column.type, valid)


_NOTHING = pa.nulls(0)


def _refuse_nulls(name: str, present: Mask, fold: Fold) -> None:
    """Refuse a −D row that becomes the record without a value in a NOT NULL column."""
    if ((fold.actions == SET) & ~present).any():
        raise SchemaError(
            f"column {name!r} is NOT NULL, but a -D row that removes its record (option "
            "'aggregation.remove-record-on-delete') has no value for it",
            fields=(name,),
        )
