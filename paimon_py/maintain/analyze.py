"""ANALYZE: computes the row count of a table and statistics of its columns.

The table is read once, a batch at a time. The result is written to a file, which a snapshot of kind ANALYZE references;
the snapshot changes nothing else. Later snapshots keep the reference as long as the schema is the same.

Source: format.md §4.2; Java `FileStoreCommitImpl.commitStatistics`; Spark's `PaimonAnalyzeTableColumnCommand` and
`CommandUtils.computeColumnStats`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.arguments import NameList
from paimon_py.codec.columns import scalar_array
from paimon_py.codec.distinct import DistinctCount
from paimon_py.codec.statistics_json import bound_text, statistics_from_json, statistics_to_json
from paimon_py.commit.attempts import Attempts, Published
from paimon_py.commit.next_snapshot import Author
from paimon_py.commit.rounds import on_latest
from paimon_py.commit.snapshot_delta import SnapshotDelta
from paimon_py.commit.uncommitted import discarding_on_failure
from paimon_py.errors import UnsupportedError, UsageError
from paimon_py.executors.executor import Executor, run_tasks
from paimon_py.executors.job import Job, TaskKind
from paimon_py.maintain.observers import notify_commits
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.partition_files import partition_files
from paimon_py.metadata.statistics import delete_statistics, write_statistics
from paimon_py.parallel import Budget
from paimon_py.progress import Progress, ProgressCounter, ProgressShare, count_batches
from paimon_py.scan.plan_snapshot import plan_snapshot
from paimon_py.scan.projection import listed_names
from paimon_py.scan.read import count_split, read_split
from paimon_py.scan.request import Request
from paimon_py.scan.split import Split
from paimon_py.spec.option_names import did_you_mean
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.serializable import Serializable
from paimon_py.spec.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot, SnapshotId
from paimon_py.spec.statistics import ColumnStatistics, Statistics, can_be_analyzed, has_bounds, size_of
from paimon_py.spec.type_text import sql_type
from paimon_py.spec.types import Atomic, Field

_TASK_BYTES = 256 << 20
"""Size of the files that one task reads."""
_ROUNDS = 3
"""The maximum number of reads of the table if the snapshot expires meanwhile."""


def columns_to_analyze(schema: TableSchema, columns: NameList | None, *, all_columns: bool) -> tuple[Field, ...]:
    """The columns to analyze: the given ones, or all that support it.

    Raises:
        UsageError: a name is not a column, or both `columns` and `all_columns` are given.
        UnsupportedError: a column does not support statistics.
    """
    if all_columns:
        if columns is not None:
            raise UsageError("analyze takes columns=[…] or all_columns=True, not both")
        return tuple(field for field in schema.fields if can_be_analyzed(field.type))
    names = listed_names(columns) or ()
    for name in names:
        if name not in schema.names:
            near = did_you_mean(name, schema.names) if isinstance(name, str) else ""
            raise UsageError(f"the table has no column {name!r}{near}")
    found = tuple(schema.field(name) for name in dict.fromkeys(names))
    for field in found:
        if not can_be_analyzed(field.type):
            raise UnsupportedError(
                f"column {field.name!r} is {sql_type(field.type)}: only numbers, strings, binaries, dates, times have "
                "statistics; leave the column out",
                feature=f"statistics of {sql_type(field.type)}",
            )
    return found


def analyze(
    table: OpenTable, columns: Sequence[Field], progress: Progress | None = None, *,
    executor: Executor | None = None,
) -> Statistics | None:  # fmt: skip
    """Analyze the latest snapshot and publish the statistics. Returns None, and publishes no snapshot, if it is empty.

    Args:
        executor: runs the tasks that read rows; None: this process.

    Cost: without columns, metadata alone if no merge is needed; otherwise the columns are read, and merged. Memory
      for a batch, plus 128 kB per column.
    Raises:
        CommitRetriesExhaustedError, CommitUnknownError: see `Attempts.publish`.
        SnapshotExpiredError: the snapshot expired while it was read, three times.
        StorageError, CorruptionError: nothing was published.
    """

    def found_in(latest: Snapshot | None, attempt: int) -> Statistics | None:
        return _statistics(table, columns, latest, progress, attempt, executor)

    found = on_latest(table.root, found_in, rounds=_ROUNDS)
    if found is None:
        return None
    name = write_statistics(table.root, found)
    author = Author(user=table.root.env.ids.uuid(), identifier=BATCH_COMMIT_IDENTIFIER)
    with discarding_on_failure(lambda: delete_statistics(table.root, name)):
        done = Attempts(table, author).publish(lambda _: SnapshotDelta(kind=CommitKind.ANALYZE, statistics=name))
    if isinstance(done, Published):
        notify_commits(table.newest(), (SnapshotId.of(done.snapshot),))
    return statistics_from_json(statistics_to_json(found), name, table.schema)


def _statistics(
    table: OpenTable, columns: Sequence[Field], snapshot: Snapshot | None,
    progress: Progress | None, attempt: int, executor: Executor | None,
) -> Statistics | None:  # fmt: skip
    if snapshot is None:
        return None
    splits = plan_snapshot(table.root, _request(table.schema, columns), snapshot).splits
    total = Measured(columns)
    tally = ProgressCounter(progress, sum(split.row_count for split in splits), "rows", attempt=attempt)
    names = tuple(field.name for field in columns)
    tasks = [AnalyzeTask(splits=part, columns=names) for part in _parts(splits)]
    for found in run_tasks(executor, Job(ANALYZE, table, tally=tally), tasks):
        total.join(found, columns)
    size = pc.sum(partition_files(table.root, snapshot)["file_size_in_bytes"]).as_py() or 0
    records = snapshot.total_record_count or 0
    return Statistics(
        snapshot_id=snapshot.id,
        schema_id=table.schema.id,
        merged_record_count=total.rows,
        merged_record_size=int(size * total.rows / records) if records else 0,
        columns={name: counter.result() for name, counter in total.counters.items()},
    )


class AnalyzeTask(Serializable, frozen=True, kw_only=True):
    """Splits whose rows are analyzed."""

    kind: ClassVar[str] = "analysis"
    edition: ClassVar[int] = 1
    called: ClassVar[str] = "a task that analyzes splits"
    again: ClassVar[str] = "ask for tasks"

    splits: tuple[Split, ...]
    columns: tuple[str, ...]


def _parts(splits: Sequence[Split]) -> list[tuple[Split, ...]]:
    """Groups of adjacent splits, up to a size."""
    parts: list[list[Split]] = []
    room = 0
    for split in splits:
        if not parts or split.size_bytes > room:
            parts.append([])
            room = _TASK_BYTES
        parts[-1].append(split)
        room -= split.size_bytes
    return [tuple(part) for part in parts]


def _analyze_splits(job: Job[AnalyzeTask, FoundValues], task: AnalyzeTask) -> FoundValues:
    columns = [job.table.schema.field(name) for name in task.columns]
    found, request = Measured(columns), _request(job.table.schema, columns)
    tally = job.tally or ProgressCounter(None, 0, "rows")
    for split in task.splits:
        part = ProgressShare(tally, split.row_count)
        if columns:
            for batch in count_batches(read_split(job.table.root, request, split), part):
                found.add(batch)
        else:
            found.rows += count_split(job.table.root, request, split)
        part.end()
    return found.values()


def _request(schema: TableSchema, columns: Sequence[Field]) -> Request:
    return Request(schema=schema, columns=tuple(field.name for field in columns))


class Measured:
    """The number of analyzed rows, and the statistics of some columns."""

    def __init__(self, columns: Sequence[Field]) -> None:
        self.counters = {field.name: _Counter(field) for field in columns}
        self.rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        self.rows += batch.num_rows
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            self.counters[name].add(column)

    def values(self) -> FoundValues:
        """The result, to be joined in another process."""
        return FoundValues(rows=self.rows, columns={name: counter.totals() for name, counter in self.counters.items()})

    def join(self, found: FoundValues, columns: Sequence[Field]) -> None:
        """Add the result of a task."""
        self.rows += found.rows
        for field in columns:
            other = _Counter(field)
            other.take(found.columns[field.name])
            self.counters[field.name].join(other)


class ColumnValues(msgspec.Struct, frozen=True, kw_only=True):
    """The statistics of one column. `bounds`: an Arrow stream of one column; None: there are none."""

    rows: int
    nulls: int
    length: int
    longest: int
    has_nan: bool
    distinct: tuple[bytes, int | None]
    bounds: bytes | None


class FoundValues(Serializable, frozen=True, kw_only=True):
    """The statistics of some splits: the number of rows, and the statistics of each column."""

    kind: ClassVar[str] = "analyzed"
    edition: ClassVar[int] = 1
    called: ClassVar[str] = "the result of a task that analyzes splits"
    again: ClassVar[str] = "run the task"

    rows: int
    columns: dict[str, ColumnValues]


ANALYZE = TaskKind(
    task=AnalyzeTask,
    result=FoundValues,
    run=_analyze_splits,
    steps=lambda task: sum(split.row_count for split in task.splits),
    budget=Budget(1, lambda _: 1, lambda _: 0, lanes=1),
)


class _Counter:
    """The statistics of one column."""

    def __init__(self, field: Field) -> None:
        assert isinstance(field.type, Atomic)
        self._field, self._kind = field, field.type
        self._distinct = DistinctCount()
        self._bounds: list[pa.Scalar] = []
        self._rows = self._nulls = self._length = self._longest = 0
        self._has_nan = False

    def add(self, column: pa.Array) -> None:
        """Add values and nulls."""
        self._rows += len(column)
        self._nulls += column.null_count
        self._distinct.add(column)
        if column.null_count == len(column):
            return
        if not has_bounds(self._kind):
            lengths = pc.utf8_length(column) if pa.types.is_string(column.type) else pc.binary_length(column)
            self._length += pc.sum(lengths).as_py()
            self._longest = max(self._longest, pc.max(lengths).as_py())
            return
        if pa.types.is_floating(column.type):
            nan = pc.is_nan(column)
            self._has_nan |= bool(pc.any(nan).as_py())
            column = column.filter(pc.invert(nan))
        found = pc.min_max(column)
        self._bounds += [bound for bound in (found["min"], found["max"]) if bound.is_valid]

    def join(self, other: _Counter) -> None:
        """Add the statistics of another counter."""
        self._distinct.join(other._distinct)
        self._bounds += other._bounds
        self._rows += other._rows
        self._nulls += other._nulls
        self._length += other._length
        self._longest = max(self._longest, other._longest)
        self._has_nan |= other._has_nan

    def totals(self) -> ColumnValues:
        """The current result."""
        bounds = None
        if self._bounds:
            sink = pa.BufferOutputStream()
            batch = pa.record_batch([scalar_array(self._bounds, self._bounds[0].type)], names=["bound"])
            with pa.ipc.new_stream(sink, batch.schema) as stream:
                stream.write_batch(batch)
            bounds = sink.getvalue().to_pybytes()
        return ColumnValues(
            rows=self._rows, nulls=self._nulls, length=self._length, longest=self._longest, has_nan=self._has_nan,
            distinct=self._distinct.state(), bounds=bounds,
        )  # fmt: skip

    def take(self, found: ColumnValues) -> None:
        """Start from the result of another counter."""
        self._rows, self._nulls, self._length = found.rows, found.nulls, found.length
        self._longest, self._has_nan = found.longest, found.has_nan
        self._distinct = DistinctCount.of(*found.distinct)
        if found.bounds is not None:
            with pa.ipc.open_stream(found.bounds) as stream:
                self._bounds = list(stream.read_all().column("bound"))

    def result(self) -> ColumnStatistics:
        """The current statistics, with bounds as strings."""
        known = self._rows - self._nulls
        fixed = has_bounds(self._kind)
        least, greatest = self._texts() if fixed else (None, None)
        size = size_of(self._kind) if fixed else 0
        return ColumnStatistics(
            column_id=self._field.id,
            distinct_count=min(self._distinct.result(), known),
            min=least,
            max=greatest,
            null_count=self._nulls,
            avg_len=size if fixed else -(-self._length // max(known, 1)),
            max_len=size if fixed else self._longest,
        )

    def _texts(self) -> tuple[str | None, str | None]:
        """The minimum and the maximum; NaN is greater than all other values."""
        if not self._bounds:
            return ("NaN", "NaN") if self._has_nan else (None, None)
        found = pc.min_max(scalar_array(self._bounds, self._bounds[0].type))
        greatest = bound_text(found["max"], self._kind)
        return bound_text(found["min"], self._kind), "NaN" if self._has_nan else greatest
