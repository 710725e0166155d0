"""Runs a compaction task: reads files of one bucket, returns the changes to commit. Runs in any process.

The new files are not visible before the changes are committed; if anything fails, they are deleted.

Source: format.md §13.3, §13.4; Java `MergeTreeCompactTask`, `BaseAppendFileStoreWrite.compactRewrite`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import pyarrow as pa

from paimon_py.codec.deletion_vectors import DeletionVector
from paimon_py.commit.changes import BucketChanges, Edit
from paimon_py.commit.deletion_index import renew
from paimon_py.compaction.by_lookup import Bounds, LevelsAbove, LookupRules
from paimon_py.compaction.changelog import ChangelogEmitter
from paimon_py.compaction.join_columns import JoinedColumns
from paimon_py.compaction.rewrite import Merging, emit_unmerged, merged_rows, rewrite
from paimon_py.compaction.steps import Rewrite, StepSettings, Upgrade, steps_of
from paimon_py.compaction.task import CompactionTask
from paimon_py.errors import StorageError, UsageError
from paimon_py.expr.bind import bind
from paimon_py.expr.column import col
from paimon_py.files.constant_columns import ConstantColumns
from paimon_py.files.deletion_filter import POSITION_FIELD, alive, with_positions
from paimon_py.files.expiry import RecordExpiry
from paimon_py.files.layout import changelog_layout, file_layout, whole_layout, write_again
from paimon_py.files.physical import with_row_ids
from paimon_py.files.prefetch import FilePrefetcher
from paimon_py.files.reader import BATCH_ROWS
from paimon_py.files.writer import RollingWriter
from paimon_py.logs import COMPACTIONS, fields
from paimon_py.lsm.changelog import ChangeRules
from paimon_py.lsm.engines import engine_of
from paimon_py.lsm.external_sort import ExternalSort
from paimon_py.lsm.merge import MergeWindow
from paimon_py.lsm.order import key_ranks, merge_order
from paimon_py.lsm.spill import SpilledRuns, SpillSettings
from paimon_py.lsm.writer import abort_all
from paimon_py.metadata.deletion_files import DeletionWriter, read_deletions
from paimon_py.metadata.new_files import NewFiles
from paimon_py.metadata.open_table import OpenTable
from paimon_py.progress import ProgressCounter, ProgressShare, count_batches
from paimon_py.spec.data_file import DataFile, FileSource
from paimon_py.spec.events import CompactionEvent
from paimon_py.spec.manifest import IndexEntry
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.types import Field


def run_task(
    table: OpenTable, task: CompactionTask, *,
    emits_changelog: bool = True, tally: ProgressCounter | None = None,
) -> BucketChanges:
    """Run a compaction task.

    Args:
        table: under the schema with the id in the task.
        emits_changelog: write the changelog of the table's options; overwrites write none.
        tally: counts two steps for each row: reading it and, if rows are sorted, writing it.

    Existing rows with times that no ORC file holds are written to Parquet files, also if the table writes ORC.

    Cost: reads every file that is not merely moved, once, and again if it has such rows; memory does not depend on the
        file sizes.
    Raises:
        CorruptionError: a file is damaged. StorageError: the store failed. Both leave no new file behind, if the store
            can still delete files.
        UsageError: the task is of another schema.
    """
    if task.schema_id != table.schema.id:
        raise UsageError(f"the task was planned under schema {task.schema_id}, not {table.schema.id}; plan it again")
    began = table.root.env.clock.elapsed() if table.root.env.observers else 0.0
    counted = tally or ProgressCounter(None, 0, "rows")

    def work(schema: TableSchema) -> _Result:
        once = counted if schema is table.schema else ProgressCounter(None, 0, "rows")
        return _Work(OpenTable(table.root, schema), task, emits_changelog=emits_changelog, tally=once).run()

    before, after, changelog, index = write_again(table.schema, work)
    _report(table, task, table.bucket(task.partition, task.bucket).directory, (before, after), began)
    return BucketChanges(
        partition=task.partition,
        bucket=task.bucket,
        total_buckets=task.total_buckets,
        compacted=Edit(deleted=before, added=after, changelog=changelog, added_index=index, deleted_index=task.index),
    )


Compacted = tuple[tuple[DataFile, ...], tuple[DataFile, ...]]
"""The files that a compaction replaces, and the new ones."""


class _Result(NamedTuple):
    """The result of a task: the files that it replaces, the new ones, those of the changelog, and deletion vectors."""

    before: tuple[DataFile, ...]
    after: tuple[DataFile, ...]
    changelog: tuple[DataFile, ...]
    vectors: tuple[IndexEntry, ...]


def _report(table: OpenTable, task: CompactionTask, directory: str, files: Compacted, began: float) -> None:
    """Log a compaction, and report it to the observers. `began`: the elapsed time of the clock at its begin."""
    before, after = files
    COMPACTIONS.info(
        "%s: %d files became %d on level %d (%d rows, %d bytes were read)", directory, len(before), len(after),
        task.output_level, task.row_count, task.size_bytes,
        extra=fields(
            table.root, directory=directory, level=task.output_level, before_files=len(before),
            after_files=len(after), rows=task.row_count, size_bytes=task.size_bytes,
        ),
    )  # fmt: skip
    if table.root.env.observers:
        table.root.env.observers.report_and_log(CompactionEvent(
            **table.root.event_place(), directory=directory, output_level=task.output_level,
            before_files=len(before), after_files=len(after), read_rows=task.row_count, read_bytes=task.size_bytes,
            seconds=table.root.env.clock.elapsed() - began,
        ))  # fmt: skip


class _Work:
    """One running task."""

    def __init__(
        self, table: OpenTable, task: CompactionTask, *, emits_changelog: bool, tally: ProgressCounter
    ) -> None:
        self._table = table
        self._root = table.root
        self._schema = table.schema
        self._task = task
        sorts = task.clustering is not None
        self._reading = ProgressShare(tally, task.row_count, steps=1 if sorts else 2)
        self._writing = ProgressShare(tally, task.row_count if sorts else 0)
        ahead = FilePrefetcher(table.root.files, table.root.env)
        self._files = OpenTable(table.root, table.schema, ahead).bucket(task.partition, task.bucket)
        ahead.announce((file.external_path or self._files.path(file), file.size_bytes) for file in task.files)
        written_level = task.output_level if table.schema.primary_keys else 0
        self._stored = with_row_ids(table.schema)
        self._layout = file_layout(self._stored, level=written_level, source=FileSource.COMPACT)
        self._new_files = NewFiles(self._files)
        self._writers: list[RollingWriter] = []
        self._dead = read_deletions(table.root.files, task.deletions)
        self._found: Mapping[str, DeletionVector] = {}
        self._settings = StepSettings.of(table.schema, emits_changelog=emits_changelog)
        self._rules = LookupRules.of(table.schema, emits_changelog=self._settings.emits_changelog)
        self._changelog: RollingWriter | None = None
        self._stamps = ConstantColumns.of(table.schema)
        self._expiry = RecordExpiry.of(table.schema, table.root.env.clock.millis())

    def run(self) -> _Result:
        """The files before and after, the changelog and the deletion vectors; if it fails, no new file stays."""
        try:
            if self._task.joins:
                before, after = self.compact_columns()
            else:
                before, after = self.compact_keyed() if self._schema.primary_keys else self.compact_append()
            index = self.write_deletions(before, after)
            return _Result(before, after, self.finish_changelog(), index)
        except BaseException:
            self.discard()
            raise
        finally:
            self.end()

    def compact_keyed(self) -> Compacted:
        """Move the files that can be moved, and merge the others."""
        task = self._task
        merging = Merging(
            order=merge_order(self._schema),
            engine=engine_of(self._schema),
            fields=self._schema.fields,
            read=self._read,
            drop_deletes=task.drop_deletes,
            window=MergeWindow().within(self._root.env.memory),
        )
        lookup = LevelsAbove(self._rules, task.files, task.higher_files, self._read_above, self._schema.key_fields)
        before: list[DataFile] = []
        after: list[DataFile] = []
        for step in self._steps():
            emitter = self._changelog_emitter() if step.emits_changelog else None
            merging = msgspec.structs.replace(merging, emitter=emitter)
            if isinstance(step, Upgrade):
                if step.lookup:
                    lookup.look_up(step.file, merging)
                elif step.emits_changelog:
                    emit_unmerged(step.file, merging)
                before.append(step.file)
                after.append(msgspec.structs.replace(step.file, level=task.output_level))
                continue
            merging = msgspec.structs.replace(merging, drop_deletes=step.drop_deletes)
            before += step.files
            rows = lookup.rows if step.lookup else merged_rows
            after += rewrite(step.sections, merging, self._open(), rows)
        self._found = lookup.found.vectors
        return tuple(before), tuple(after)

    def finish_changelog(self) -> tuple[DataFile, ...]:
        """Close the changelog; returns its files."""
        return () if self._changelog is None else self._changelog.close()

    def write_deletions(self, before: Sequence[DataFile], after: Sequence[DataFile]) -> tuple[IndexEntry, ...]:
        """Write the bucket's deletion vectors as they are after the compaction."""
        task, writer = self._task, DeletionWriter(self._files)
        gone = {file.name for file in before} - {file.name for file in after}
        return renew(task.index, self._dead, gone, self._found, writer, keyed=bool(self._schema.primary_keys))

    def compact_append(self) -> Compacted:
        """Write the rows of all files one after the other, in the given order, or sorted if the task has an order."""
        task = self._task
        writer = self._open(task.files[0].min_sequence)
        if task.clustering is None:
            for batch in self._append_rows():
                writer.write(batch)
        else:
            memory = self._root.env.memory
            settings = SpillSettings.of(Options(self._schema.options)).within(memory)
            spilled = SpilledRuns(self._root.env.spill, settings)
            sort = ExternalSort(self._stored, task.clustering, spilled, MergeWindow().within(memory))
            try:
                for batch in sort.sort(self._append_rows()):
                    writer.write(batch)
                    self._writing.add(batch.num_rows)
            finally:
                sort.clear()
        made = writer.close()
        return task.files, tuple(msgspec.structs.replace(file, level=task.output_level) for file in made)

    def compact_columns(self) -> Compacted:
        """Join the columns of all rows of each range, including deleted rows, and join neighbouring ranges."""
        rest, after = list(self._task.files), []
        moved: dict[str, DeletionVector] = {}
        for count in self._task.joins:
            files, rest = rest[:count], rest[count:]
            joined = JoinedColumns(self._files, files, self._schema)
            file, dead = joined.write(self._open_columns(joined.names), self._dead, self._reading)
            after.append(file)
            moved |= {file.name: dead} if len(dead) else {}
        self._found = moved
        return self._task.files, tuple(after)

    def _open_columns(self, names: frozenset[str]) -> RollingWriter:
        layout = whole_layout(self._schema, source=FileSource.COMPACT, inline=names)
        self._writers.append(self._new_files.begin(layout))
        return self._writers[-1]

    def _append_rows(self) -> Iterator[pa.RecordBatch]:
        for file in self._task.files:
            yield from self._read(file, self._stored.fields, BATCH_ROWS)

    def end(self) -> None:
        """Count the rows that were not read as done."""
        self._reading.end()
        self._writing.end()

    def discard(self) -> None:
        """Delete the new files; the original error matters more than one that occurs here."""
        with contextlib.suppress(StorageError):
            abort_all(self._writers)

    def _steps(self) -> Sequence[Upgrade | Rewrite]:
        types = [field.type for field in self._schema.key_fields]
        files = self._task.files
        lows, highs = key_ranks([file.min_key for file in files], [file.max_key for file in files], types)
        schemas = {file.schema_id: self._files.schema_of(file) for file in files} if self._expiry else {}
        expired = self._expiry.find_expired(files, schemas.__getitem__) if self._expiry else frozenset()
        return steps_of(self._task, lows, highs, settings=self._settings, expired=expired)

    def _open(self, first_sequence: int = 0) -> RollingWriter:
        self._writers.append(self._new_files.begin(self._layout, first_sequence))
        return self._writers[-1]

    def _changelog_emitter(self) -> ChangelogEmitter:
        """The emitter of all steps: one writer, since the steps are in key order."""
        if self._changelog is None:
            layout = changelog_layout(self._schema, level=self._task.output_level)
            self._changelog = self._new_files.begin(layout)
            self._writers.append(self._changelog)
        rules = ChangeRules.of(self._schema)
        return ChangelogEmitter(rules=rules, top=self._task.output_level, write=self._changelog.write)

    def _read(self, file: DataFile, fields: Sequence[Field], batch_rows: int) -> Iterator[pa.RecordBatch]:
        pieces = self._files.reader(file, self._stamps.stored_fields(file, fields)).positions(batch_rows=batch_rows)
        batches = self._stamps.complete(file, fields, alive(pieces, self._dead.get(file.name)))
        batches = count_batches(batches, self._reading)
        return self._expiry.alive(batches) if self._expiry else batches

    def _read_above(
        self, file: DataFile, fields: Sequence[Field], batch_rows: int, bounds: Bounds | None
    ) -> Iterator[pa.RecordBatch]:
        predicate = None
        if bounds is not None:
            key = col(self._schema.key_fields[0].name)
            predicate = bind((key >= bounds[0]) & (key <= bounds[1]), self._schema.fields)
        reader = self._files.reader(file, self._stamps.stored_fields(file, fields))
        pieces = reader.positions(batch_rows=batch_rows, predicate=predicate)
        batches = with_positions(pieces, self._dead.get(file.name))
        batches = self._stamps.complete(file, (*fields, POSITION_FIELD), batches)
        # An expired row must still be marked when it is replaced, or its key would have two live rows; and in a
        # first-row table it precedes later rows until a compaction drops it, as in Java.
        stays = self._rules.marks or self._rules.first_wins
        return batches if self._expiry is None or stays else self._expiry.alive(batches)
