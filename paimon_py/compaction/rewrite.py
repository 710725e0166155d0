"""Rewriting sorted runs: sections of runs in, files of one level out, in bounded memory.

Sections follow each other in key order, so one rolling writer takes them all: small neighbours end up in one file.
Where a section is a single run its rows pass as they are; where runs overlap they are merged in windows by the table's
engine.

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
"""Runs up to which windows keep their size; the readers of more runs take so much memory that windows shrink."""

ReadFile = Callable[[DataFile, Sequence[Field], int], Iterator[pa.RecordBatch]]
"""The rows of a data file that are alive, in file order: the wanted columns in the table's current schema (`_LEVEL` is
that of the file), at most so many rows at a time."""


class Merging(msgspec.Struct, frozen=True, kw_only=True):
    """How rows of one bucket become the rows of a compacted file.

    `fields`: all columns of the table. `read`: opens a file. `drop_deletes`: rows of kind −U and −D end here.
    `telling`: where the changes are told, if they are. `window`: the rows that are merged at once.
    """

    order: MergeOrder
    engine: Engine
    fields: tuple[Field, ...]
    read: ReadFile
    drop_deletes: bool
    telling: ChangelogEmitter | None = None
    window: MergeWindow = MergeWindow()

    @property
    def file_fields(self) -> tuple[Field, ...]:
        """The columns that go from file to file: the system columns, then the table's."""
        return (SEQUENCE_FIELD, KIND_FIELD, *self.fields)


RowsOf = Callable[[Sequence[SortedRun], Merging], Iterator[pa.RecordBatch]]
"""The rows that one section leaves: the columns `file_fields`, ordered by key, each key at most once."""


def rewrite(
    sections: Sequence[Sequence[SortedRun]], merging: Merging, files: RollingWriter, rows: RowsOf | None = None
) -> tuple[DataFile, ...]:
    """Write the rows of sections, which are given in key order, as files that do not overlap.

    Args:
        rows: what a section leaves, if not its `merged_rows`.

    Cost: every input is read once and every result written once; two merge windows and one row group in memory, and
        the reader of every run of a section.
    Raises:
        CorruptionError: an input is damaged, or its keys do not grow.
        StorageError: the store failed; `files.abort()` deletes what was begun.
    """
    for section in sections:
        for batch in (rows or merged_rows)(section, merging):
            files.write(batch)
    return files.close()


def merged_rows(section: Sequence[SortedRun], merging: Merging) -> Iterator[pa.RecordBatch]:
    """The rows that one section leaves.

    Shapes: out — `merging.file_fields`, ordered by key, each key at most once.
    """
    if len(section) == 1:
        yield from _single(section[0], merging)
        return
    fields, engine = merging.file_fields, merging.engine
    if merging.telling is not None:
        engine = ChangelogEngine(engine, merging.telling)
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


def tell_alone(file: DataFile, merging: Merging) -> None:
    """Tell what the rows of a file change that stays as it is and meets no other."""
    for _ in _single(SortedRun((file,)), merging):
        pass


def guessed_row_bytes(file: SortedRun, columns: int) -> int:
    """A guess at the memory of one row, from what it takes compressed."""
    return max(16, 3 * file.size_bytes // max(1, file.row_count)) + 8 * columns


def _single(run: SortedRun, merging: Merging) -> Iterator[pa.RecordBatch]:
    fields = merging.file_fields
    batch_rows = min(BATCH_ROWS, max(_LEAST_ROWS, merging.window.size_bytes // guessed_row_bytes(run, len(fields))))
    drops = merging.drop_deletes and run.may_delete
    for file in run.files:
        for batch in merging.read(file, fields, batch_rows):
            if merging.telling is not None:
                merging.telling.alone(batch, file.level)
            yield additions(batch) if drops else batch


def _source(run: SortedRun, merging: Merging, fields: Sequence[Field]) -> RunSource:
    return RunSource(
        run.files[0].name,
        run.row_count,
        guessed_row_bytes(run, len(fields)),
        lambda batch_rows: _rows(run, merging, fields, batch_rows),
    )


def _rows(run: SortedRun, merging: Merging, fields: Sequence[Field], batch_rows: int) -> Iterator[pa.RecordBatch]:
    for file in run.files:
        yield from merging.read(file, fields, batch_rows)


def additions(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of kind +I and +U."""
    adds = (numpy_values(batch.column(VALUE_KIND)) & 1) == 0
    return batch if np.all(adds) else batch.filter(from_numpy(adds, pa.bool_()))
