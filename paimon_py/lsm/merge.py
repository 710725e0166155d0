"""Merges sorted runs in bounded memory: sorted runs → windows of complete keys → merged batches.

Every run is read a share at a time. The smallest of the runs' last buffered keys bounds a window: up to and including
this key every run is complete. The rows of a window are sorted once, an engine picks or computes one row per key, and
only the rows that it kept are gathered.

A run contains a key once. Runs of a write buffer may contain a key several times, and all its rows are versions of one
another (`Plan.repeats`): they are complete only below that bound. Files of an old SDK may contain a key several times,
too, and there Java never merges two rows of one run: the first rows of a key in the runs become one row, their second
rows another one, and so on. For the key at the bound, a window takes the first row of each run.

Source: Paimon "Primary Key Table / Merge Engine"; Java `SortMergeReader`; measurements in
benchmarks/README.md.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.columns import Ints, Mask, combine, from_numpy, numpy_values
from paimon_py.codec.row_size import row_bytes
from paimon_py.errors import CorruptionError
from paimon_py.lsm.groups import Engine, Groups, Merged
from paimon_py.lsm.order import MergeOrder, sort_batch
from paimon_py.lsm.probe import Key, KeyProbe
from paimon_py.lsm.sort_encoding import combine_chunks
from paimon_py.memory import MemoryShares
from paimon_py.spec.schema import VALUE_KIND

WINDOW_ROWS = 131_072
WINDOW_BYTES = 32 * 1024 * 1024
_FEW_ROWS = 4096
_GROWTH = 4
_LEAST_SHARE = 256
_LEAST_OF_WIDE = 4
_BATCH_ROWS = 65_536
_OF_WINDOWS = 32


class MergeWindow(msgspec.Struct, frozen=True):
    """The size of a window: the rows that are merged at once, and their bytes. Two of them are in memory."""

    rows: int = WINDOW_ROWS
    size_bytes: int = WINDOW_BYTES

    def within(self, memory: MemoryShares) -> MergeWindow:
        """A window with fewer rows and bytes, in proportion, where the process has little memory."""
        size = memory.cap(self.size_bytes, _OF_WINDOWS)
        return MergeWindow(max(_LEAST_SHARE, self.rows * size // self.size_bytes), size)


class RunSource(msgspec.Struct, frozen=True):
    """One sorted run to merge.

    `name`: for errors. `row_count`, `row_bytes`: estimates that determine the sizes of windows. `open(batch_rows)`: its
    batches in key order, with the same columns in every run.
    """

    name: str
    row_count: int
    row_bytes: int
    open: Callable[[int], Iterator[pa.RecordBatch]]


class ResultFilter(msgspec.Struct, frozen=True):
    """The condition that results have to meet: a mask of those that do, given the columns with these names."""

    columns: tuple[str, ...]
    mask: Callable[[pa.RecordBatch], pa.Array]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a merge: key order, engine, columns to return (None: all), and whether to drop −U and −D results.

    `condition`: other results are dropped before their other columns are gathered; on some of `columns`.
    `repeats`: a run may contain a key several times, its rows in order of their versions. `first_rows`: the caller may
    stop after this many rows, so windows begin small and grow.
    """

    order: MergeOrder
    engine: Engine
    columns: tuple[str, ...] | None = None
    drop_deletes: bool = True
    condition: ResultFilter | None = None
    repeats: bool = False
    window_rows: int = WINDOW_ROWS
    window_bytes: int = WINDOW_BYTES
    first_rows: int | None = None


def merge(sources: Sequence[RunSource], plan: Plan) -> Iterator[pa.RecordBatch]:
    """Merge sorted runs, oldest first, into batches with at most one row per key, ordered by key.

    Shapes: in — batches with the key columns, the sequence fields, `_SEQUENCE_NUMBER` unless the order of runs is the
        order of sequence numbers, `_VALUE_KIND` if a row may be −U or −D; out — `plan.columns` of the results.
    Cost: two windows in memory besides the readers, regardless of the size of the runs; 50-250 ns a row on top of
        decoding. With `plan.repeats` a window holds all rows of its keys, however many.
    Raises: CorruptionError if the keys of a run descend.
    """
    budget, least = _first_budget(sources, plan), _least_share(sources, plan)
    total = max(1, sum(source.row_count for source in sources))
    weights = [source.row_count / total for source in sources]
    cursors = [
        _Cursor(source, plan, batch_rows=min(_BATCH_ROWS, max(least, int(budget * weight))))
        for source, weight in zip(sources, weights, strict=True)
    ]
    try:
        while True:
            for cursor, weight in zip(cursors, weights, strict=True):
                cursor.fill(max(least, int(budget * weight)))
            slices = _window(cursors)
            _extend(cursors, slices, budget, repeats=plan.repeats)
            table = pa.Table.from_batches([batch for part in slices for batch in part]) if any(slices) else None
            if table is None:
                return
            fitting = min(plan.window_rows, plan.window_bytes * table.num_rows // max(1, row_bytes(table)))
            budget = fitting if plan.first_rows is None else min(fitting, _GROWTH * budget)
            unproven = None if all(cursor.is_proven for cursor in cursors) else sources
            yield from _reduce(table, slices, unproven, plan).to_batches()
    finally:
        for cursor in cursors:
            cursor.close()


def gather(table: pa.Table, rows: Ints) -> pa.Table:
    """The given rows of a table; consecutive rows are a slice, without a copy."""
    if not len(rows):
        return table.slice(0, 0)
    first, last = int(rows[0]), int(rows[-1])
    if last - first == len(rows) - 1 and bool((rows[1:] > rows[:-1]).all()):
        return table.slice(first, len(rows))
    return pc.take(table, from_numpy(rows, pa.int64()), boundscheck=False)


def _first_budget(sources: Sequence[RunSource], plan: Plan) -> int:
    widest = max((source.row_bytes for source in sources), default=1)
    most = plan.window_rows if plan.first_rows is None else min(plan.window_rows, max(_FEW_ROWS, 2 * plan.first_rows))
    return min(most, max(_LEAST_SHARE, plan.window_bytes // max(1, widest)))


def _least_share(sources: Sequence[RunSource], plan: Plan) -> int:
    """Rows that are buffered of every run, regardless of the number of runs; few if rows are wide."""
    together = sum(source.row_bytes for source in sources)
    return min(_LEAST_SHARE, max(_LEAST_OF_WIDE, plan.window_bytes // max(1, together)))


class _Cursor:
    """The buffered batches of a run that no window has taken yet."""

    def __init__(self, source: RunSource, plan: Plan, *, batch_rows: int) -> None:
        self._source = source
        self._keys = [field.name for field in plan.order.keys]
        self._repeats = plan.repeats
        self._batches = source.open(batch_rows)
        self._pieces: deque[tuple[pa.RecordBatch, KeyProbe]] = deque()
        self._rows = 0
        self._newest: Key | None = None
        self.finished = False
        self.is_proven = True

    def fill(self, rows: int) -> None:
        """Buffer at least `rows` rows, or all that are left."""
        while self._rows < rows and not self.finished:
            batch = next(self._batches, None)
            if batch is None:
                self.finished = True
            elif batch.num_rows:
                self._append(batch)

    def _append(self, batch: pa.RecordBatch) -> None:
        probe = KeyProbe([batch.column(name) for name in self._keys])
        if self._newest is not None and probe.key(0) < self._newest:
            raise _backwards(self._source.name)
        ascends = probe.ascends(strictly=not self._repeats)
        if ascends is False and (self._repeats or probe.ascends(strictly=False) is False):
            raise _backwards(self._source.name)
        self.is_proven = self.is_proven and bool(ascends) and not self._repeats_newest(probe)
        self._newest = probe.key(len(probe) - 1)
        self._pieces.append((batch, probe))
        self._rows += batch.num_rows

    def _repeats_newest(self, probe: KeyProbe) -> bool:
        """Whether a batch begins with the last key of the previous one, so that the run contains this key twice."""
        return not self._repeats and self._newest is not None and probe.key(0) == self._newest

    def read_on(self) -> None:
        """Buffer one more batch, if any."""
        self.fill(self._rows + 1)

    def first(self) -> Key | None:
        """The first buffered key; None if nothing is buffered."""
        return self._pieces[0][1].key(0) if self._pieces else None

    def last_key(self) -> Key | None:
        """The last buffered key if more rows may follow; otherwise None."""
        return None if self.finished else self._newest

    def take(self, bound: Key | None) -> list[pa.RecordBatch]:
        """Hand over the rows below `bound` (None: all) and, except in a run that repeats keys, the first one at it."""
        taken = []
        while self._pieces:
            batch, probe = self._pieces[0]
            count = len(probe) if bound is None else self._count_up_to(probe, bound)
            if count:
                taken.append(batch.slice(0, count))
                self._rows -= count
            if count < len(probe):
                if count:
                    self._keep(batch.slice(count), probe.key(count - 1))
                break
            self._pieces.popleft()
            if bound is not None and probe.key(count - 1) == bound:
                break
        return taken

    def _count_up_to(self, probe: KeyProbe, bound: Key) -> int:
        """The number of rows of a piece that belong to the window that ends at `bound`."""
        if probe.key(len(probe) - 1) < bound:
            return len(probe)
        count = probe.count_up_to(bound, included=False)
        at_bound = not self._repeats and count < len(probe) and probe.key(count) == bound
        return count + at_bound

    def take_piece_below(self, limit: Key | None, rows: int) -> pa.RecordBatch | None:
        """Hand over the first buffered batch, reading it if needed, if its keys are below `limit` (None: no limit)."""
        self.fill(1)
        if not self._pieces:
            return None
        batch, probe = self._pieces[0]
        if len(probe) > rows or (limit is not None and probe.key(len(probe) - 1) >= limit):
            return None
        self._pieces.popleft()
        self._rows -= len(probe)
        return batch

    def _keep(self, rest: pa.RecordBatch, before: Key) -> None:
        probe = KeyProbe([rest.column(name) for name in self._keys])
        if probe.key(0) < before:
            raise _backwards(self._source.name)
        self._pieces[0] = (rest, probe)

    def close(self) -> None:
        """Release the file."""
        close = getattr(self._batches, "close", None)
        if close is not None:
            close()


def _window(cursors: Sequence[_Cursor]) -> list[list[pa.RecordBatch]]:
    """The complete rows of every run, by run; reads more batches if one key fills the whole buffer."""
    # Example: buffered keys are A: 1 3 5 ..., B: 2 4 9 ..., C: 6 7 (its end). Rows that are not read yet are at or
    # above the last key of A and B, so min(5, 9) = 5 is the bound: 1 2 3 4 5 are complete and make the window; 9, 6 and
    # 7 stay buffered, and A is read further. In a run that repeats keys, more rows of key 5 may follow, so 5 stays as
    # well; if A has buffered only key 5, no run returns rows, and A is read until another key follows.
    while True:
        bounds = [bound for cursor in cursors if (bound := cursor.last_key()) is not None]
        bound = min(bounds, default=None)
        slices = [cursor.take(bound) for cursor in cursors]
        if bound is None or any(slices):
            return slices
        for cursor in cursors:
            if cursor.last_key() == bound:
                cursor.read_on()


def _extend(cursors: Sequence[_Cursor], slices: list[list[pa.RecordBatch]], budget: int, *, repeats: bool) -> None:
    """Extend a window that contains rows of only one run up to where another run begins, within the budget."""
    holders = [number for number, part in enumerate(slices) if part]
    if len(holders) != 1:
        return
    (alone,) = holders
    others = [key for number, cursor in enumerate(cursors) if number != alone and (key := cursor.first()) is not None]
    limit = min(others, default=None)
    if repeats:
        cursors[alone].fill(budget)
        bound = cursors[alone].last_key()
        slices[alone] += cursors[alone].take(min(limit, bound) if limit and bound else limit or bound)
        return
    rows = budget - sum(batch.num_rows for batch in slices[alone])
    while (batch := cursors[alone].take_piece_below(limit, rows)) is not None:
        slices[alone].append(batch)
        rows -= batch.num_rows


def _reduce(
    table: pa.Table, slices: Sequence[Sequence[pa.RecordBatch]], unproven: Sequence[RunSource] | None, plan: Plan
) -> pa.Table:
    """Reduce a window to one row per key. `unproven`: the runs, if their keys are not yet known to ascend."""
    for key in plan.order.keys:  # joined once for sorting and gathering
        at = table.schema.get_field_index(key.name)
        table = table.set_column(at, table.schema.field(at), combine_chunks(table.column(at)))
    columns = dict(zip(table.column_names, table.columns, strict=True))
    order, starts = sort_batch(plan.order, columns, runs_sorted=True)
    if unproven is not None:
        order, starts = _check(order, starts, slices, unproven, repeats=plan.repeats)
    merged = plan.engine(Groups(order, starts), columns)
    keep = _additions(merged, columns) if plan.drop_deletes else None
    names = plan.columns if plan.columns is not None else tuple(table.column_names)
    if plan.condition is None or len(names) == len(plan.condition.columns):
        return _results(table, merged, keep, names)
    asked = _results(table, merged, keep, plan.condition.columns)
    matches = combine(plan.condition.mask(_as_batch(asked)))
    found: Mask = numpy_values(matches)
    if not found.all():
        asked = asked.filter(matches)
        if keep is None:
            keep = found
        else:
            keep[keep] = found
    others = _results(table, merged, keep, [name for name in names if name not in plan.condition.columns])
    of_name = {name: part for part in (asked, others) for name in part.column_names}
    schema = pa.schema([of_name[name].schema.field(name) for name in names], table.schema.metadata)
    return pa.Table.from_arrays([of_name[name].column(name) for name in names], schema=schema)


def _as_batch(table: pa.Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([combine(column) for column in table.columns], schema=table.schema)


def _results(table: pa.Table, merged: Merged, keep: Mask | None, names: Sequence[str]) -> pa.Table:
    """The named columns of the results. `keep`: a mask of those that remain; None: all."""
    rows = merged.rows if keep is None else merged.rows[keep]
    kept = gather(table.select([name for name in names if name not in merged.columns]), rows)
    if not merged.columns:
        return kept
    computed = {name: merged.columns[name] for name in names if name in merged.columns}
    if keep is not None:
        computed = {name: column.filter(from_numpy(keep, pa.bool_())) for name, column in computed.items()}
    return pa.table({name: computed[name] if name in computed else kept.column(name) for name in names})


def _additions(merged: Merged, columns: dict[str, pa.ChunkedArray]) -> Mask | None:
    """A mask of the results that are +I or +U; None if all are."""
    if VALUE_KIND not in columns:
        return None
    if VALUE_KIND in merged.columns:
        kinds = numpy_values(combine_chunks(merged.columns[VALUE_KIND]))
    else:
        kinds = numpy_values(combine_chunks(columns[VALUE_KIND]))[merged.rows]
    adds: Mask = (kinds & 1) == 0
    return None if adds.all() else adds


def _check(
    order: Ints,
    starts: Mask,
    slices: Sequence[Sequence[pa.RecordBatch]],
    sources: Sequence[RunSource],
    *,
    repeats: bool,
) -> tuple[Ints, Mask]:
    """The order and a mask of where groups begin in it; rows of one run with the same key are in different groups.

    Raises: CorruptionError if the keys of a run descend.
    """
    group = np.empty(len(order), np.int64)
    group[order] = np.cumsum(starts)
    ends = np.cumsum([sum(batch.num_rows for batch in part) for part in slices])
    borders = ends[(ends > 0) & (ends < len(order))] - 1
    back = group[1:] < group[:-1]
    back[borders] = False
    if back.any():
        raise _backwards(sources[int(np.searchsorted(ends, int(np.argmax(back)), side="right"))].name)
    same = group[1:] == group[:-1]
    same[borders] = False
    if repeats or not same.any():
        return order, starts
    return _in_rounds(order, group, same)


def _in_rounds(order: Ints, group: Ints, same: Mask) -> tuple[Ints, Mask]:
    """Group rows of a key by their turn in their runs.

    Keys of three runs: `a a b`, `a c` and `a a` have the groups (a, a, a), (a, a), (b), (c).

    Args:
        group: the number of each row's key.
        same: whether the next row in the run of a row, from the first row on, has the same key.
    """
    numbers = np.arange(len(group))
    follows = np.concatenate(([False], same))
    turn = numbers - np.maximum.accumulate(np.where(follows, 0, numbers))
    key = group[order] * (int(turn.max()) + 1) + turn[order]
    places = np.argsort(key, kind="stable")
    starts = np.concatenate(([True], key[places][1:] != key[places][:-1]))
    return order[places], starts


def _backwards(name: str) -> CorruptionError:
    return CorruptionError(f"keys are not in ascending order in the sorted run that begins with {name}", path=name)
