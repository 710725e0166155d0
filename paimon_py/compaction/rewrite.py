"""Rewrites sections of sorted runs as files of one level, in bounded memory.

Sections are in key order, so one rolling writer writes all of them, and small neighbours end up in one file. The rows
of a section with a single run are copied; overlapping runs are merged in windows by the table's merge engine.

Source: format.md §13.3; Java `MergeTreeCompactRewriter`, `MergeTreeReaders`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import from_numpy, numpy_values
from paimon_py.compaction.changelog import ChangelogEmitter, ChangelogEngine
from paimon_py.files.physical import KIND_FIELD, LEVEL_FIELD, SEQUENCE_FIELD
from paimon_py.files.writer import RollingWriter
from paimon_py.lsm.groups import Engine
from paimon_py.lsm.merge import MergeWindow, Plan, RunSource, merge
from paimon_py.lsm.order import MergeOrder
from paimon_py.lsm.runs import SortedRun, oldest_first
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.schema import VALUE_KIND
from paimon_py.spec.types import Field

BATCH_ROWS = 65_536
_LEAST_ROWS = 256
_MANY_RUNS = 20
"""The number of runs above which windows shrink, because the readers of so many runs need much memory."""

ReadFile = Callable[[DataFile, Sequence[Field], int], Iterator[pa.RecordBatch]]
"""Reads the live rows of a data file, in file order: the given columns in the table's current schema (`_LEVEL` is that
of the file), in batches of at most the given number of rows."""


class Merging(msgspec.Struct, frozen=True, kw_only=True):
    """The rules by which rows of one bucket become the rows of a compacted file.

    `fields`: all columns of the table. `read`: reads a file. `drop_deletes`: rows of kind −U and −D are dropped.
    `emitter`: writes the changelog, if there is one. `window`: the rows that are merged at once.
    """

    order: MergeOrder
    engine: Engine
    fields: tuple[Field, ...]
    read: ReadFile
    drop_deletes: bool
    emitter: ChangelogEmitter | None = None
    window: MergeWindow = MergeWindow()

    @property
    def file_fields(self) -> tuple[Field, ...]:
        """The columns to copy: the system columns, then those of the table."""
        return (SEQUENCE_FIELD, KIND_FIELD, *self.fields)


RowsOf = Callable[[Sequence[SortedRun], Merging], Iterator[pa.RecordBatch]]
"""The output rows of one section: the columns `file_fields`, ordered by key, each key at most once."""


def rewrite(
    sections: Sequence[Sequence[SortedRun]], merging: Merging, files: RollingWriter, rows: RowsOf | None = None
) -> tuple[DataFile, ...]:
    """Write the rows of sections, which are given in key order, as files that do not overlap.

    Args:
        rows: the output rows of a section; by default `merged_rows`.

    Cost: every input is read once and every result written once; two merge windows and one row group in memory, and
        the reader of every run of a section.
    Raises:
        CorruptionError: an input is damaged, or its keys are not in ascending order.
        StorageError: the store failed; `files.abort()` deletes the new files.
    """
    for section in sections:
        for batch in (rows or merged_rows)(section, merging):
            files.write(batch)
    return files.close()


def merged_rows(section: Sequence[SortedRun], merging: Merging) -> Iterator[pa.RecordBatch]:
    """The output rows of one section.

    Shapes: out — `merging.file_fields`, ordered by key, each key at most once.
    """
    if len(section) == 1:
        yield from _single(section[0], merging)
        return
    fields, engine = merging.file_fields, merging.engine
    if merging.emitter is not None:
        engine = ChangelogEngine(engine, merging.emitter)
    columns = tuple(field.name for field in fields)
    if LEVEL_FIELD.name in engine.inputs(frozenset()):
        fields = (*fields, LEVEL_FIELD)
    sources = [_source(run, merging, fields) for run in oldest_first(section)]
    plan = Plan(
        order=merging.order,
        engine=engine,
        columns=columns,
        drop_deletes=merging.drop_deletes,
        window_rows=merging.window.rows if len(sources) <= _MANY_RUNS else merging.window.rows // 2,
        window_bytes=merging.window.size_bytes,
    )
    yield from merge(sources, plan)


def emit_unmerged(file: DataFile, merging: Merging) -> None:
    """Emit the changes of a file that is moved unchanged and overlaps no other file."""
    for _ in _single(SortedRun((file,)), merging):
        pass


def estimate_row_bytes(file: SortedRun, columns: int) -> int:
    """An estimate of the memory of one row, from its compressed size."""
    return max(16, 3 * file.size_bytes // max(1, file.row_count)) + 8 * columns


def _single(run: SortedRun, merging: Merging) -> Iterator[pa.RecordBatch]:
    fields = merging.file_fields
    batch_rows = min(BATCH_ROWS, max(_LEAST_ROWS, merging.window.size_bytes // estimate_row_bytes(run, len(fields))))
    drops = merging.drop_deletes and run.may_delete
    for file in run.files:
        for batch in merging.read(file, fields, batch_rows):
            if merging.emitter is not None:
                merging.emitter.emit_unmerged(batch, file.level)
            yield additions(batch) if drops else batch


def _source(run: SortedRun, merging: Merging, fields: Sequence[Field]) -> RunSource:
    return RunSource(
        run.files[0].name,
        run.row_count,
        estimate_row_bytes(run, len(fields)),
        lambda batch_rows: _rows(run, merging, fields, batch_rows),
    )


def _rows(run: SortedRun, merging: Merging, fields: Sequence[Field], batch_rows: int) -> Iterator[pa.RecordBatch]:
    for file in run.files:
        yield from merging.read(file, fields, batch_rows)


def additions(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of kind +I and +U."""
    adds = (numpy_values(batch.column(VALUE_KIND)) & 1) == 0
    return batch if np.all(adds) else batch.filter(from_numpy(adds, pa.bool_()))
