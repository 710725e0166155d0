"""The write buffer of one bucket: collects batches and returns one sorted merged run, spilling to disk if necessary.

Source: format.md §8.2, §12.1; Java `SortBufferWriteBuffer`, `MergeTreeWriter`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence

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
from paimon_py.spec.types import Atomic, Field, Root

WINDOW_ROWS = 131_072

_SEQUENCE = pa.field(SEQUENCE_NUMBER, pa.int64(), nullable=False)
_KIND = pa.field(VALUE_KIND, pa.int8(), nullable=False)

_OWNER = Field(0, "\0owner", Atomic(Root.BIGINT, nullable=False))
"""Never stored: the number of the buffer that a row belongs to. No column can have this name."""

TakeRows = Callable[[pa.RecordBatch], None]


class MergeBuffer:
    """Collects the rows of a bucket and assigns each a sequence number, in order of arrival.

    Batches are kept without a copy: the owner of their memory must not change it before `drain`. `spilled` takes the
        rows
    that `spill` moves out of memory; without it everything stays in memory. `keeps_versions`: all rows are kept until
    `drain`, which passes them on before they are merged.
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
        """The sequence number of the next row."""
        return self._first_sequence + self.row_count

    @property
    def can_spill(self) -> bool:
        """Whether `spill` may be called: there is a spill place, and the table's options allow more disk space."""
        return self._spilled is not None and not self._spilled.is_full

    @property
    def has_spilled(self) -> bool:
        """Whether rows are on disk."""
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
        """Move all rows from memory to sorted runs on disk.

        All versions of a key are kept, unless the engine always keeps the newest one and no other reader needs the
        rest.

        Cost: `run_bytes` of additional memory; sorting and compressing.
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

    @property
    def is_plain(self) -> bool:
        """Whether all rows are in memory, and only their merged versions are wanted."""
        return not self.has_spilled and not self._keeps_versions

    @classmethod
    def drain_together(cls, buffers: Sequence[MergeBuffer]) -> tuple[pa.RecordBatch, Ints]:
        """Sort, merge and empty plain buffers of one table at once: their rows one buffer after the other, and where
        each begins, and the last ends.

        Shapes: out — rows as those of `drain`, at least one of each buffer, since every key keeps a row.
        Cost: one key sort, and one copy of all rows.
        """
        counts = np.array([buffer.row_count for buffer in buffers], np.int64)
        ends = np.cumsum(counts)
        numbers = np.arange(ends[-1]) + np.repeat(
            np.array([buffer._first_sequence for buffer in buffers], np.int64) - (ends - counts), counts
        )
        owners = np.repeat(np.arange(len(buffers)), counts)
        batches: list[pa.RecordBatch] = []
        kinds: list[pa.Array | None] = []
        for buffer in buffers:
            batches += buffer._batches
            kinds += buffer._kinds
            buffer._batches, buffer._kinds = [], []
            buffer._reset()
        columns = _with_kinds(batches, kinds)
        order, engine = buffers[0]._order, buffers[0]._engine
        keys = {_OWNER.name: from_numpy(owners, pa.int64())}
        keys |= {field.name: columns[field.name] for field in (*order.keys, *order.sequence)}
        rows, starts = sort_batch(
            msgspec.structs.replace(order, keys=(_OWNER, *order.keys)), keys, runs_sorted=False
        )
        merged = engine(Groups(rows, starts), {name: pa.chunked_array([c]) for name, c in columns.items()})
        (batch,) = _windows(columns, merged, numbers, len(merged.rows))
        return batch, np.searchsorted(owners[merged.rows], np.arange(len(buffers) + 1))

    def drain(self, before_merging: TakeRows | None = None) -> Generator[pa.RecordBatch, None, None]:
        """Sort, merge and empty the buffer.

        Args:
            before_merging: receives every row, by key and then oldest version first, in batches like those of the
                result; only for a buffer that keeps versions.

        Shapes: out — batches of `_SEQUENCE_NUMBER`, `_VALUE_KIND` and the input columns, ordered by key over all
            of them, each key once, with the kind and sequence number of the row that represents it.
        Cost: one key sort; each column is made contiguous once, then gathered a window at a time. Rows that are
            already sorted and unique are not copied. Spilled rows are merged in windows.
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
        """Merge the spilled rows. If the last row always wins, a key never has to be in memory as a whole."""
        if before_merging is not None and self._newest_wins and not self._order.sequence:
            every_row = msgspec.structs.replace(self._order, keys=(*self._order.keys, SEQUENCE_FIELD))
            rows = spilled.merge(Plan(order=every_row, engine=EveryRow(), drop_deletes=False))
            return _newest(self._order, rows, before_merging)
        engine = self._engine if before_merging is None else _Shown(self._engine, before_merging)
        plan = Plan(order=self._order, engine=engine, drop_deletes=False, repeats=not self._reduces_early)
        return spilled.merge(plan)

    def clear(self) -> None:
        """Discard all rows and delete the spilled runs.

        Raises:
            StorageError: a spilled run could not be deleted.
        """
        self._batches, self._kinds = [], []
        self._reset()
        if self._spilled is not None:
            self._spilled.clear()

    @property
    def _reduces_early(self) -> bool:
        """Whether merging some versions of a key first gives the same result as merging all at once."""
        return isinstance(self._engine, Deduplicate) and not self._keeps_versions

    @property
    def _newest_wins(self) -> bool:
        """Whether the newest version of a key always represents it, regardless of its kind."""
        return isinstance(self._engine, Deduplicate) and not self._engine.ignore_delete

    def _reset(self) -> None:
        self._first_sequence, self.row_count, self.size_bytes, self._spilled_rows = self.next_sequence, 0, 0, 0

    def _leading(self, limit_bytes: int) -> int:
        """The number of batches to sort together: as many as the limit allows, at least one."""
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
        """Sort and merge rows by key; releases the batches. `first`: the sequence number of the first row."""
        columns = _with_kinds(batches, kinds)
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
    """An engine that passes its windows to a callback before they are merged."""

    def __init__(self, engine: Engine, take: TakeRows) -> None:
        self._engine = engine
        self._take = take

    def inputs(self, wanted: frozenset[str]) -> frozenset[str]:
        """The columns that the wrapped engine needs."""
        return self._engine.inputs(wanted)

    def __call__(self, groups: Groups, columns: Mapping[str, pa.ChunkedArray]) -> Merged:
        """The result of the wrapped engine."""
        for batch in gather(pa.table(dict(columns)), groups.order).to_batches():
            self._take(batch)
        return self._engine(groups, columns)


def _newest(order: MergeOrder, rows: Iterable[pa.RecordBatch], before_merging: TakeRows) -> Iterator[pa.RecordBatch]:
    """The last row of every key, from rows by key and then oldest first; a key may continue in the next batch."""
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


def _windows(
    columns: Mapping[str, pa.Array], merged: Merged, numbers: int | Ints, size: int = WINDOW_ROWS
) -> Iterator[pa.RecordBatch]:
    """Rows with their system columns, a window at a time. `numbers`: the sequence number of row 0, or of all rows."""
    computed = dict(merged.columns)
    kinds = computed.pop(VALUE_KIND, None)
    names = [name for name in columns if name != VALUE_KIND]
    schema = pa.schema([_SEQUENCE, _KIND, *(pa.field(name, columns[name].type) for name in names)])
    known = {*computed, *(() if kinds is None else (VALUE_KIND,))}
    given = [name for name in columns if name not in known]
    source = pa.RecordBatch.from_arrays([columns[name] for name in given], given)
    for start in range(0, len(merged.rows), size):
        rows = merged.rows[start : start + size]
        picked = _pick(source, rows)
        arrays = [from_numpy(rows + numbers if isinstance(numbers, int) else numbers[rows], pa.int64())]
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


def _with_kinds(batches: list[pa.RecordBatch], kinds: Sequence[pa.Array | None]) -> dict[str, pa.Array]:
    """The columns as one array each, and the kinds unless all are +I; releases the batches."""
    kind_column = None if all(part is None for part in kinds) else _kind_column(batches, kinds)
    columns = _contiguous(batches)
    return columns if kind_column is None else {**columns, VALUE_KIND: kind_column}


def _contiguous(batches: list[pa.RecordBatch]) -> dict[str, pa.Array]:
    """Combine every column into one array; releases the batches a column at a time."""
    if len(batches) == 1:
        return dict(zip(batches[0].schema.names, batches.pop().columns, strict=True))
    table = pa.Table.from_batches(batches)
    batches.clear()
    columns = {}
    for name in table.column_names:
        columns[name] = combine(table.column(name))
        table = table.drop_columns([name])
    return columns


def _kind_column(batches: list[pa.RecordBatch], kinds: Sequence[pa.Array | None]) -> pa.Array:
    return pa.concat_arrays(
        [
            from_numpy(np.zeros(batch.num_rows, np.int8), pa.int8()) if part is None else part
            for batch, part in zip(batches, kinds, strict=True)
        ]
    )


def _is_range(rows: Ints) -> bool:
    """Whether the row numbers are consecutive."""
    return int(rows[-1]) - int(rows[0]) == len(rows) - 1 and bool((rows[1:] > rows[:-1]).all())


def _pick(batch: pa.RecordBatch, rows: Ints) -> dict[str, pa.Array]:
    """The given rows of all columns; consecutive rows are not copied."""
    if not batch.num_columns:
        return {}
    near = _is_range(rows)
    picked = batch.slice(int(rows[0]), len(rows)) if near else batch.take(from_numpy(rows, pa.int64()))
    return dict(zip(batch.schema.names, picked.columns, strict=True))
