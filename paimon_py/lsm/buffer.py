"""The write buffer of one bucket: batches in, one sorted merged run out, by way of the disk if there are many.

Source: format.md §8.2, §12.1; Java `SortBufferWriteBuffer`, `MergeTreeWriter`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import Ints, combine, from_numpy
from paimon_py.codec.row_size import row_bytes
from paimon_py.files.physical import SEQUENCE_FIELD
from paimon_py.lsm.engines.deduplicate import Deduplicate
from paimon_py.lsm.groups import Engine, Groups, Merged
from paimon_py.lsm.merge import Plan, gather
from paimon_py.lsm.order import MergeOrder, sort_batch
from paimon_py.lsm.spill import EveryRow, SpilledRuns
from paimon_py.spec.schema import SEQUENCE_NUMBER, VALUE_KIND

WINDOW_ROWS = 131_072

_SEQUENCE = pa.field(SEQUENCE_NUMBER, pa.int64(), nullable=False)
_KIND = pa.field(VALUE_KIND, pa.int8(), nullable=False)

TakeRows = Callable[[pa.RecordBatch], None]


class MergeBuffer:
    """Collects the rows of a bucket and gives each its sequence number, in order of arrival.

    Batches are kept as they come, without a copy: whoever owns their memory must not change it before `drain`.
    `spilled` takes what `spill` is told to take out of memory; without it everything stays. `keeps_versions`: all rows
    are kept until `drain`, which shows them before they are merged.
    """

    def __init__(
        self, order: MergeOrder, engine: Engine, first_sequence: int, spilled: SpilledRuns | None = None, *,
        keeps_versions: bool = False,
    ) -> None:  # fmt: skip
        self._order = order
        self._engine = engine
        self._keeps_versions = keeps_versions
        self._spilled = spilled
        self._batches: list[pa.RecordBatch] = []
        self._kinds: list[pa.Array | None] = []
        self._first_sequence = first_sequence
        self._spilled_rows = 0
        self.row_count = 0
        self.size_bytes = 0

    @property
    def next_sequence(self) -> int:
        """The sequence number that the next row gets."""
        return self._first_sequence + self.row_count

    @property
    def can_spill(self) -> bool:
        """Whether `spill` may be called: there is a place, and room for it as the table's options want."""
        return self._spilled is not None and not self._spilled.is_full

    @property
    def has_spilled(self) -> bool:
        """Whether rows lie on the disk."""
        return self._spilled_rows > 0

    def add(self, batch: pa.RecordBatch, kinds: pa.Array | None = None) -> None:
        """Append rows; `kinds` is int8, None when all are +I."""
        if batch.num_rows == 0:
            return
        self._batches.append(batch)
        self._kinds.append(kinds)
        self.row_count += batch.num_rows
        self.size_bytes += row_bytes(batch)

    def spill(self) -> None:
        """Move all rows from memory to sorted runs on the disk.

        All versions of a key are kept, unless the engine wants the newest one whatever comes later and nobody else
        wants them.

        Cost: `run_bytes` of memory more than there was; sorting, and compressing.
        Raises: StorageError: the local disk failed; call `clear`.
        """
        assert self._spilled is not None
        engine = self._engine if self._reduces_early else EveryRow()
        while self._batches:
            first = self._first_sequence + self._spilled_rows
            count = self._leading(self._spilled.settings.run_bytes)
            batches, self._batches = self._batches[:count], self._batches[count:]
            kinds, self._kinds = self._kinds[:count], self._kinds[count:]
            self._spilled_rows += sum(batch.num_rows for batch in batches)
            self._spilled.add(self._sort(batches, kinds, first, engine))
        self.size_bytes = 0

    def drain(self, before_merging: TakeRows | None = None) -> Generator[pa.RecordBatch, None, None]:
        """Sort, merge and empty the buffer.

        Args:
            before_merging: takes every row that came in, by key and then oldest version first, in batches like those
                of the result; only of a buffer that keeps versions.

        Shapes: out — batches of `_SEQUENCE_NUMBER`, `_VALUE_KIND` and the columns that came in, ordered by key over
            all of them, each key once, with the kind and sequence number of the row that stands for it.
        Cost: one key sort; each column is made contiguous once, then gathered a window at a time. Rows that are
            sorted and unique already are not copied. What was spilled is merged in windows.
        Raises: StorageError: the local disk failed; call `clear`.
        """
        assert before_merging is None or self._keeps_versions
        if self._spilled is not None and self._spilled_rows:
            self.spill()
            self._reset()
            yield from self._merge_spilled(self._spilled, before_merging)
            self._spilled.clear()
        elif self._batches:
            batches, kinds, first = self._batches, self._kinds, self._first_sequence
            self._batches, self._kinds = [], []
            self._reset()
            yield from self._sort(batches, kinds, first, self._engine, before_merging)

    def _merge_spilled(self, spilled: SpilledRuns, before_merging: TakeRows | None) -> Iterator[pa.RecordBatch]:
        """What was spilled, merged. Where the last row to come wins, no key need be whole in memory."""
        if before_merging is not None and self._newest_wins and not self._order.sequence:
            every_row = msgspec.structs.replace(self._order, keys=(*self._order.keys, SEQUENCE_FIELD))
            rows = spilled.merge(Plan(order=every_row, engine=EveryRow(), drop_deletes=False))
            return _newest(self._order, rows, before_merging)
        engine = self._engine if before_merging is None else _Shown(self._engine, before_merging)
        plan = Plan(order=self._order, engine=engine, drop_deletes=False, repeats=not self._reduces_early)
        return spilled.merge(plan)

    def clear(self) -> None:
        """Forget all rows, and delete what was spilled.

        Raises:
            StorageError: a spilled run could not be deleted.
        """
        self._batches, self._kinds = [], []
        self._reset()
        if self._spilled is not None:
            self._spilled.clear()

    @property
    def _reduces_early(self) -> bool:
        """Whether merging some versions of a key and then the rest is the same as merging all at once."""
        return isinstance(self._engine, Deduplicate) and not self._keeps_versions

    @property
    def _newest_wins(self) -> bool:
        """Whether the newest version of a key stands for it, whatever its kind."""
        return isinstance(self._engine, Deduplicate) and not self._engine.ignore_delete

    def _reset(self) -> None:
        self._first_sequence, self.row_count, self.size_bytes, self._spilled_rows = self.next_sequence, 0, 0, 0

    def _leading(self, limit_bytes: int) -> int:
        """How many batches are sorted together: as many as the limit allows, at least one."""
        total = 0
        for count, batch in enumerate(self._batches):
            total += row_bytes(batch)
            if total > limit_bytes:
                return max(1, count)
        return len(self._batches)

    def _sort(
        self, batches: list[pa.RecordBatch], kinds: list[pa.Array | None], first: int, engine: Engine,
        before_merging: TakeRows | None = None,
    ) -> Iterator[pa.RecordBatch]:  # fmt: skip
        """The rows by key as the engine merges them; lets go of the batches. `first`: number of the first row."""
        kind_column = None if all(part is None for part in kinds) else _kind_column(batches, kinds)
        columns = _contiguous(batches)
        if kind_column is not None:
            columns[VALUE_KIND] = kind_column
        needed = {field.name for field in (*self._order.keys, *self._order.sequence)}
        order, starts = sort_batch(
            self._order, {name: columns[name] for name in columns if name in needed}, runs_sorted=False
        )
        if before_merging is not None:
            for batch in _windows(columns, Merged(order), first):
                before_merging(batch)
        merged = engine(Groups(order, starts), {name: pa.chunked_array([c]) for name, c in columns.items()})
        del order, starts
        yield from _windows(columns, merged, first)


class _Shown:
    """An engine whose windows somebody takes before they are merged."""

    def __init__(self, engine: Engine, take: TakeRows) -> None:
        self._engine = engine
        self._take = take

    def inputs(self, wanted: frozenset[str]) -> frozenset[str]:
        """What the engine wants."""
        return self._engine.inputs(wanted)

    def __call__(self, groups: Groups, columns: Mapping[str, pa.ChunkedArray]) -> Merged:
        """What the engine makes of the rows."""
        for batch in gather(pa.table(dict(columns)), groups.order).to_batches():
            self._take(batch)
        return self._engine(groups, columns)


def _newest(order: MergeOrder, rows: Iterable[pa.RecordBatch], before_merging: TakeRows) -> Iterator[pa.RecordBatch]:
    """The last row of every key, of rows by key and then oldest first; a key may go on in the next batch."""
    held: pa.Table | None = None
    for batch in rows:
        before_merging(batch)
        table = pa.Table.from_batches([batch])
        table = table if held is None else pa.concat_tables([held, table])
        found, starts = sort_batch(order, {field.name: table[field.name] for field in order.keys}, runs_sorted=True)
        newest = Groups(found, starts).newest_rows
        held = table.take(from_numpy(newest[-1:], pa.int64()))
        yield from gather(table, newest[:-1]).to_batches()
    if held is not None:
        yield from held.to_batches()


def _windows(columns: Mapping[str, pa.Array], merged: Merged, first: int) -> Iterator[pa.RecordBatch]:
    """Rows with their system columns, a window at a time. `first`: sequence number of row 0."""
    computed = dict(merged.columns)
    kinds = computed.pop(VALUE_KIND, None)
    names = [name for name in columns if name != VALUE_KIND]
    schema = pa.schema([_SEQUENCE, _KIND, *(pa.field(name, columns[name].type) for name in names)])
    known = {*computed, *(() if kinds is None else (VALUE_KIND,))}
    given = [name for name in columns if name not in known]
    source = pa.RecordBatch.from_arrays([columns[name] for name in given], given)
    for start in range(0, len(merged.rows), WINDOW_ROWS):
        rows = merged.rows[start : start + WINDOW_ROWS]
        picked = _pick(source, rows)
        arrays = [from_numpy(rows + first, pa.int64())]
        if kinds is not None:
            arrays.append(kinds.slice(start, len(rows)))
        elif VALUE_KIND in columns:
            arrays.append(picked[VALUE_KIND])
        else:
            arrays.append(from_numpy(np.zeros(len(rows), np.int8), pa.int8()))
        for name in names:
            made = computed.get(name)
            arrays.append(picked[name] if made is None else made.slice(start, len(rows)))
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _contiguous(batches: list[pa.RecordBatch]) -> dict[str, pa.Array]:
    """Every column as one array; lets go of the batches a column at a time."""
    if len(batches) == 1:
        return dict(zip(batches[0].schema.names, batches.pop().columns, strict=True))
    table = pa.Table.from_batches(batches)
    batches.clear()
    columns = {}
    for name in table.column_names:
        columns[name] = combine(table.column(name))
        table = table.drop_columns([name])
    return columns


def _kind_column(batches: list[pa.RecordBatch], kinds: list[pa.Array | None]) -> pa.Array:
    return pa.concat_arrays(
        [
            from_numpy(np.zeros(batch.num_rows, np.int8), pa.int8()) if part is None else part
            for batch, part in zip(batches, kinds, strict=True)
        ]
    )


def _is_range(rows: Ints) -> bool:
    """Whether these are consecutive row numbers."""
    return int(rows[-1]) - int(rows[0]) == len(rows) - 1 and bool((rows[1:] > rows[:-1]).all())


def _pick(batch: pa.RecordBatch, rows: Ints) -> dict[str, pa.Array]:
    """Some rows of all columns, of consecutive rows without a copy."""
    if not batch.num_columns:
        return {}
    near = _is_range(rows)
    picked = batch.slice(int(rows[0]), len(rows)) if near else batch.take(from_numpy(rows, pa.int64()))
    return dict(zip(batch.schema.names, picked.columns, strict=True))
