"""Reads the difference of two states of a table without a primary key: deleted rows and added rows.

Rows are compared by all their values, and counted: if a row occurs three times in the earlier state and once in the
later one, two were deleted. Both states are read once. Rows are partitioned by hash until each part fits in memory; the
others are kept on local disk.

Source: docs/changes.md; Java returns only added rows (`RawFileSplitRead`, release 2.0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from itertools import chain

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import Ints, Mask, Words, from_numpy, numpy_values
from paimon_py.codec.row_size import row_bytes
from paimon_py.env import SpillFile, SpillPlace
from paimon_py.logs import SPILLS, fields
from paimon_py.lsm.row_hashes import row_hashes
from paimon_py.lsm.same_values import same_values
from paimon_py.lsm.sort_encoding import combine_chunks
from paimon_py.lsm.spill_errors import spilling
from paimon_py.scan.diff_read import ReadRun
from paimon_py.scan.request import Request
from paimon_py.scan.row_kinds import ROW_KIND_FIELD, texts_of
from paimon_py.scan.same_blobs import SameBlobs, hashed_columns
from paimon_py.scan.split import Compared
from paimon_py.spec.options import Options
from paimon_py.spec.schema import DELETE, INSERT, TableSchema

STATE = pa.field("_STATE", pa.int8(), nullable=False)
"""The state of a row: 0 for the earlier one, 1 for the later one."""

HASH = pa.field("_HASH", pa.uint64(), nullable=False)
"""The number by which rows are partitioned; rows to be compared with each other have the same."""

BATCH_ROWS = 65_536
_MEMORY_MAX = 256 << 20
_BITS = 5

Compare = Callable[[Sequence[pa.RecordBatch]], Iterator[tuple[pa.RecordBatch, Ints]]]
"""The difference of rows that fit in memory together, with their kinds. Shapes: batches with `STATE` and `HASH`."""


def read_bag_difference(
    request: Request, compared: Compared, read: ReadRun, place: SpillPlace, blobs: SameBlobs | None = None
) -> Iterator[pa.RecordBatch]:
    """Deleted rows, as −D, and added rows, as +I. `read`: reads the rows of one run.

    `blobs`: compares BLOBs that `read` returns as references.

    Shapes: out — non-empty batches of `request.arrow_schema` and `_row_kind`.
    Cost: `write-buffer-size`, at most 256 MiB, in memory, plus equal rows beyond that; the rest is written to local
      disk and read again, once per factor of 32.
    Raises: as `read_split`, and StorageError if the local disk is full.
    """
    asked = msgspec.structs.replace(request, columns=request.schema.names, kinds=False)
    schema = request.arrow_schema.append(ROW_KIND_FIELD)
    sides = ((0, compared.before), (1, compared.after))

    def number(batch: pa.RecordBatch) -> Words:
        return row_hashes(hashed_columns(batch, blobs), batch.num_rows)

    rows = chain.from_iterable(mark_rows(read(asked, run), state, number) for state, runs in sides for run in runs)

    def compare(batches: Sequence[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, Ints]]:
        yield from _difference(batches, blobs)

    for found, kinds in HashParts(place, memory_limit(request.schema), compare).differences(rows):
        picked = found.select(list(request.columns)).columns
        yield pa.RecordBatch.from_arrays([*picked, texts_of(kinds)], schema=schema)


def mark_rows(
    batches: Iterator[pa.RecordBatch], state: int, number: Callable[[pa.RecordBatch], Words]
) -> Iterator[pa.RecordBatch]:
    """The rows of a state with `STATE`, and with `HASH`, which `number` returns."""
    for batch in batches:
        states = from_numpy(np.full(batch.num_rows, state, np.int8), pa.int8())
        yield batch.append_column(STATE, states).append_column(HASH, from_numpy(number(batch), pa.uint64()))


def memory_limit(schema: TableSchema) -> int:
    """The number of bytes of rows that a comparison keeps in memory."""
    return max(1, min(Options(schema.options).get_memory("write-buffer-size"), _MEMORY_MAX))


class HashParts:
    """Partitions rows by their hashes, on local disk if they do not fit in memory."""

    def __init__(self, place: SpillPlace, limit: int, compare: Compare) -> None:
        """`limit`: bytes of rows in memory. `compare`: called for each part."""
        self._place = place
        self._limit = limit
        self._compare = compare

    def differences(self, batches: Iterator[pa.RecordBatch], used: int = 0) -> Iterator[tuple[pa.RecordBatch, Ints]]:
        """The differing rows, with their kinds. `used`: the number of hash bits that are already equal."""
        memory: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            memory.append(batch)
            size += row_bytes(batch)
            if size > self._limit and used + _BITS <= 64:
                yield from self._partition(chain(memory, batches), used)
                return
        if memory:
            yield from self._compare(memory)

    def _partition(self, batches: Iterator[pa.RecordBatch], used: int) -> Iterator[tuple[pa.RecordBatch, Ints]]:
        files: list[SpillFile] = []
        try:
            self._write(batches, used, files)
            said = fields(None, parts=len(files))
            SPILLS.info("the difference of two states went to disk, in %d parts", len(files), extra=said)
            for file in files:
                yield from self.differences(_read_back(file), used + _BITS)
        finally:
            for file in files:
                with suppress(OSError):
                    file.delete()

    def _write(self, batches: Iterator[pa.RecordBatch], used: int, files: list[SpillFile]) -> None:
        first = next(batches)
        with ExitStack() as stack:
            writers = []
            with _explain("a temporary directory"):
                for _ in range(1 << _BITS):
                    files.append(self._place.create())
                    sink = stack.enter_context(files[-1].open_write())
                    writers.append(stack.enter_context(pa.ipc.new_stream(sink, first.schema)))
            for batch in chain([first], batches):
                hashes = numpy_values(batch.column(HASH.name)).view(np.uint64)
                parts = (hashes >> np.uint64(64 - used - _BITS)) & np.uint64((1 << _BITS) - 1)
                with _explain(files[0].path):
                    for number in np.unique(parts).tolist():
                        writers[number].write_batch(batch.filter(from_numpy(parts == number, pa.bool_())))
            with _explain(files[0].path):
                stack.close()


class DeferredRows:
    """Rows to be returned after all others, on local disk if they do not fit in memory. A context manager, which
    deletes the file.
    """

    def __init__(self, place: SpillPlace, limit: int) -> None:
        """`limit`: bytes of rows in memory."""
        self._place = place
        self._limit = limit
        self._memory: list[pa.RecordBatch] = []
        self._size = 0
        self._file: SpillFile | None = None
        self._stack = ExitStack()
        self._writer: pa.RecordBatchWriter | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Hold a batch. Raises: StorageError if the local disk is full."""
        self._memory.append(batch)
        self._size += row_bytes(batch)
        if self._size > self._limit:
            self._spill()

    def rows(self) -> Iterator[pa.RecordBatch]:
        """All batches, in order."""
        if self._file is not None:
            with _explain(self._file.path):
                self._stack.close()
            yield from _read_back(self._file)
        yield from self._memory

    def _spill(self) -> None:
        if self._file is None:
            with _explain("a temporary directory"):
                self._file = self._place.create()
                sink = self._stack.enter_context(self._file.open_write())
                self._writer = self._stack.enter_context(pa.ipc.new_stream(sink, self._memory[0].schema))
        assert self._writer is not None
        with _explain(self._file.path):
            for batch in self._memory:
                self._writer.write_batch(batch)
        self._memory, self._size = [], 0

    def __enter__(self) -> DeferredRows:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._stack.close()
        if self._file is not None:
            with suppress(OSError):
                self._file.delete()


def _read_back(file: SpillFile) -> Iterator[pa.RecordBatch]:
    with _explain(file.path), file.open_read() as stream:
        yield from pa.ipc.open_stream(stream)


def _difference(batches: Sequence[pa.RecordBatch], blobs: SameBlobs | None) -> Iterator[tuple[pa.RecordBatch, Ints]]:
    """The difference of rows that fit in memory together."""
    rows = pa.Table.from_batches(batches)
    states = numpy_values(combine_chunks(rows[STATE.name]))
    hashes = numpy_values(combine_chunks(rows[HASH.name])).view(np.uint64)
    order = np.lexsort((states, hashes))
    values = {
        name: combine_chunks(column) for name, column in zip(rows.column_names, rows.columns, strict=True)
        if name not in (STATE.name, HASH.name)
    }  # fmt: skip

    def same(one: Ints, other: Ints) -> Mask:
        return _same(values, one, other, blobs)

    group = _groups(same, hashes, order)
    order = order[np.lexsort((states[order], group))]
    group = np.sort(group)
    after = states[order] == 1
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    counts = np.diff(np.append(starts, len(group)))
    came = np.add.reduceat(after.astype(np.int64), starts)
    went = counts - came
    place = np.arange(len(group)) - np.repeat(starts, counts)
    balanced = np.where(after, np.repeat(2 * went, counts), np.repeat(came, counts))
    extra = place >= balanced
    picked = order[np.flatnonzero(extra)]
    picked = picked[np.argsort(states[picked], kind="stable")]
    for start in range(0, len(picked), BATCH_ROWS):
        some = picked[start : start + BATCH_ROWS]
        found = rows.take(from_numpy(some, pa.int64())).combine_chunks().to_batches()[0]
        yield found, np.where(states[some] == 1, INSERT, DELETE)


def _groups(are_same: Callable[[Ints, Ints], Mask], hashes: Words, order: Ints) -> Ints:
    """A group number for every row in hash order; equal rows get the same number. `are_same`: compares rows."""
    group = np.full(len(order), -1, np.int64)
    left, known = np.arange(len(order)), 0
    while len(left):
        starts: Mask = np.ones(len(left), np.bool_)
        starts[1:] = hashes[order[left[1:]]] != hashes[order[left[:-1]]]
        number = np.cumsum(starts) - 1
        first = left[np.flatnonzero(starts)][number]
        same: Mask = starts.copy()
        others = np.flatnonzero(~starts)
        same[others] = are_same(order[first[others]], order[left[others]])
        group[left[same]] = known + number[same]
        known += int(number[-1]) + 1
        left = left[~same]
    return group


def _same(values: Mapping[str, pa.Array], one: Ints, other: Ints, blobs: SameBlobs | None) -> Mask:
    """A mask of the pairs of equal rows; BLOBs are compared last, since their bytes may have to be read."""
    found: Mask = np.ones(len(one), np.bool_)
    before, after = from_numpy(one, pa.int64()), from_numpy(other, pa.int64())
    last = frozenset[str]() if blobs is None else blobs.names
    for name, column in values.items():
        if name not in last:
            found &= same_values(column.take(before), column.take(after))
    if blobs is not None:
        for name in last:
            left = np.flatnonzero(found)
            rows = (values[name].take(from_numpy(side[left], pa.int64())) for side in (one, other))
            found[left] = blobs.same(*rows)
    return found


def _explain(path: str) -> AbstractContextManager[None]:
    return spilling("the difference of two states", path, OSError, pa.ArrowException)
