"""Reads the difference between two states: one net change per key, in key order.

Both states are read merged, and then merged with each other: a key has a row of the earlier state, of the later one, or
of both. Memory is that of a merge with the same number of runs, independent of the size of the states.

Source: Java `IncrementalDiffSplitRead`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.columns import Ints, Mask, from_numpy, numpy_values, text_array
from paimon_py.errors import CorruptionError
from paimon_py.expr.arrow import prepare
from paimon_py.lsm.groups import Groups, Merged
from paimon_py.lsm.merge import RunSource, merge
from paimon_py.lsm.order import MergeOrder
from paimon_py.lsm.same_values import same_values
from paimon_py.lsm.sort_encoding import combine_chunks
from paimon_py.memory import MemoryShares
from paimon_py.scan.request import Request, keep, keys_only
from paimon_py.scan.row_kinds import ROW_KIND_FIELD, row_kinds, texts_of
from paimon_py.scan.split import Compared, Split
from paimon_py.scan.windows import read_plan
from paimon_py.spec.schema import DELETE, INSERT, ROW_KIND_COLUMN, UPDATE_AFTER, UPDATE_BEFORE

_Tell = Literal["net", "old", "new", "stored"]
ReadRun = Callable[[Request, Split], Iterator[pa.RecordBatch]]

_STATE = "_STATE"
_STATE_FIELD = pa.field(_STATE, pa.int8(), nullable=False)
_ALIVE = text_array(["+I", "+U"])


def read_difference(
    request: Request, compared: Compared, read: ReadRun, memory: MemoryShares
) -> Iterator[pa.RecordBatch]:
    """The changes of keys between two states. `read`: reads the rows of one run. `memory`: what the process has.

    Shapes: out — non-empty batches of `request.arrow_schema` and `_row_kind`.
    Cost: two merge windows in memory plus the readers of the runs; with old rows everything is read twice.
    Raises: as `read_split`
    """
    stored = not compared.removals
    asked = msgspec.structs.replace(keys_only(request), kinds=stored)
    if compared.old_rows:
        tells: tuple[_Tell, ...] = ("old", "new")
    else:
        tells = ("stored" if stored else "net",)
    for tell in tells:
        yield from _differences(request, asked, compared, read, tell, memory)


def _differences(
    request: Request, asked: Request, compared: Compared, read: ReadRun, tell: _Tell, memory: MemoryShares
) -> Iterator[pa.RecordBatch]:
    sources = [
        _source(asked, run, state, read)
        for state, runs in enumerate((compared.before, compared.after))
        for run in runs
    ]
    engine = _Difference(frozenset(request.schema.names) - set(request.schema.trimmed_primary_keys), tell)
    order = MergeOrder(keys=request.schema.key_fields)
    columns = (*request.schema.names, ROW_KIND_COLUMN)
    mask = None if request.predicate is None else prepare(request.predicate)
    schema = request.arrow_schema.append(ROW_KIND_FIELD)
    names = [*request.columns, ROW_KIND_COLUMN]
    plan = read_plan(order, engine, columns, drop_deletes=False, memory=memory)
    for batch in merge(sources, plan):
        changed = keep(batch.filter(pc.is_valid(batch.column(ROW_KIND_COLUMN))), mask)
        if changed.num_rows:
            yield pa.RecordBatch.from_arrays(changed.select(names).columns, schema=schema)


def _source(asked: Request, run: Split, state: int, read: ReadRun) -> RunSource:
    def batches(batch_rows: int) -> Iterator[pa.RecordBatch]:
        for batch in read(asked, run):
            if asked.kinds:
                batch = batch.filter(pc.is_in(batch.column(ROW_KIND_COLUMN), _ALIVE))
            else:
                batch = batch.append_column(ROW_KIND_FIELD, row_kinds(batch))
            states = from_numpy(np.full(batch.num_rows, state, np.int8), pa.int8())
            marked = batch.append_column(_STATE_FIELD, states)
            for start in range(0, marked.num_rows, batch_rows):
                yield marked.slice(start, batch_rows)

    row_bytes = max(16, 3 * run.size_bytes // max(1, run.row_count)) + 8 * len(asked.columns)
    return RunSource(run.files[0].name, run.row_count, row_bytes, batches)


class _Difference(msgspec.Struct, frozen=True):
    """A merge engine for rows of two states: the change of every key, as its row kind.

    `values`: the columns that are compared. `tell`: "net" returns one change per key. "old" returns the earlier rows
    that were deleted or changed, "new" the later rows that are new or changed. "stored" uses the stored kinds of the
    rows, and a missing key is not a change.
    """

    values: frozenset[str]
    tell: _Tell

    def inputs(self, wanted: frozenset[str]) -> frozenset[str]:
        """All values."""
        return wanted | self.values

    def __call__(self, groups: Groups, columns: Mapping[str, pa.ChunkedArray]) -> Merged:
        """The later row of every key, and its kind; NULL for keys that did not change."""
        # Example: key 1 is a, then a; key 2 is a, then b; key 3 was deleted; key 4 is new.
        #   "net": 2 +U b, 3 -D, 4 +I.   "old": 2 -U a, 3 -D.   "new": 2 +U b, 4 +I.
        #   "stored": the later rows of 2 and 4, each with the kind that is stored with it.
        states = numpy_values(combine_chunks(columns[_STATE]))
        newest, both = groups.newest_rows, groups.multiple
        oldest = groups.oldest_rows[both]
        if (groups.ends - groups.firsts).max() > 2 or (states[oldest] == states[newest[both]]).any():
            raise CorruptionError("two rows of one state have the same key, which is in two buckets or runs")
        changed: Mask = np.ones(len(newest), np.bool_)
        changed[both] = ~self._same(columns, oldest, newest[both])
        gone = states[newest] == 0
        if self.tell == "stored":
            shown = np.where(changed & ~gone, newest, -1)
            kinds = combine_chunks(columns[ROW_KIND_COLUMN]).take(from_numpy(shown, pa.int64(), shown >= 0))
            return Merged(newest, {ROW_KIND_COLUMN: kinds})
        kind = np.where(gone, DELETE, INSERT)
        kind[both] = UPDATE_AFTER
        rows = newest
        if self.tell == "old":
            rows = groups.oldest_rows
            kind[both] = UPDATE_BEFORE
            there: Mask = gone.copy()
            there[both] = True
            changed &= there
        elif self.tell == "new":
            changed &= ~gone
        return Merged(rows, {ROW_KIND_COLUMN: texts_of(kind, changed)})

    def _same(self, columns: Mapping[str, pa.ChunkedArray], before: Ints, after: Ints) -> Mask:
        found: Mask = np.ones(len(before), np.bool_)
        one, other = from_numpy(before, pa.int64()), from_numpy(after, pa.int64())
        for name in self.values:
            left, right = (combine_chunks(columns[name].take(rows)) for rows in (one, other))
            found &= same_values(left, right)
        return found


