"""One bucket as seen by its writer: the live files, the writer's own files, and the results of compactions.

Source: Java `MergeTreeWriter.updateCompactResult`, `AppendOnlyWriter`, `Levels`.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from paimon_py.commit.changes import BucketChanges, Edit
from paimon_py.commit.deletion_index import BucketDeletions
from paimon_py.commit.index_plan import Index
from paimon_py.compaction.append_picker import AppendSettings, DeadCounts, bucket_tasks, next_window
from paimon_py.compaction.levels import LevelRun, level_runs
from paimon_py.compaction.picker import (
    Choice,
    Compact,
    PickerSettings,
    PickerState,
    compacts_by_lookup,
    drop_deletes,
    full_compaction_interval,
    pick,
    pick_full,
    writers_wait,
)
from paimon_py.compaction.plan import Moment
from paimon_py.compaction.task import CompactionTask
from paimon_py.lsm.order import key_ranks
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Base


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a table for compactions by its writers."""

    schema: TableSchema
    picker: PickerSettings
    append: AppendSettings
    looks_up: bool
    full_after: int | None

    @classmethod
    def of(cls, schema: TableSchema) -> Rules:
        """The settings in a table's options."""
        options = Options(schema.options)
        return cls(
            schema=schema,
            picker=PickerSettings.of(options) if schema.primary_keys else PickerSettings(),
            append=AppendSettings.of(options),
            looks_up=compacts_by_lookup(schema),
            full_after=full_compaction_interval(options),
        )

    def may_pick(self, run_count: int) -> bool:
        """Whether a bucket with `run_count` runs or files could need a compaction; its files are not examined."""
        if not self.schema.primary_keys:
            return run_count >= self.append.file_count_min
        picker = self.picker
        return run_count >= picker.compaction_trigger or picker.up_level_0 or picker.compacts_early


class Obsolete(msgspec.Struct, frozen=True):
    """Files that one compaction created and the next one replaced, before they were handed over."""

    files: tuple[DataFile, ...] = ()
    index: Index = ()


class BucketLevels:
    """The levels of a bucket between two hand-overs of its writer."""

    def __init__(
        self,
        rules: Rules,
        place: tuple[bytes, int, int],
        files: Iterable[DataFile],
        deletions: BucketDeletions,
        *,
        base: Base,
    ) -> None:
        """`place`: partition, bucket, number of buckets; `files`, `deletions`: of snapshot `base`."""
        self._rules = rules
        self._place = place
        self._snapshot = base
        self._files = {file.name: file for file in files}
        self._base = deletions.index
        self._found = frozenset((*self._files, *(entry.name for entry in deletions.index)))
        self._deletions = deletions
        self._before: dict[str, DataFile] = {}
        self._after: dict[str, DataFile] = {}
        self._changelog: list[DataFile] = []

    @property
    def size_bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.size_bytes for file in self._files.values())

    @property
    def writers_wait(self) -> bool:
        """Whether the bucket has so many runs that it must be compacted before more is written."""
        return bool(self._rules.schema.primary_keys) and writers_wait(self._runs(), self._rules.picker)

    def began_with(self, name: str) -> bool:
        """Whether a file belongs to the snapshot, and was not created by the writer."""
        return name in self._found

    def add(self, files: Iterable[DataFile]) -> None:
        """Add new files of the writer; known files are ignored."""
        for file in files:
            if file.name not in self._before:
                self._files.setdefault(file.name, file)

    def state(self, moment: Moment) -> PickerState:
        """The initial state of a picker on the current files."""
        return PickerState.of(list(self._files.values()), self._rules.picker, moment.zone_offset_millis)

    def next_task(
        self, state: PickerState, moment: Moment, *, full: bool = False
    ) -> tuple[CompactionTask | None, PickerState]:
        """The next compaction, if one is due, and the new state of the picker."""
        if not self._rules.schema.primary_keys:
            files = self._append_pick(full)
            return (self._task(files) if files else None), state
        runs = self._runs()
        choice: Choice
        if full:
            choice = pick_full(runs, self._rules.picker, deleted=self._deletions.places)
        else:
            choice, state = pick(runs, self._rules.picker, state, moment.now_millis, moment.hour)
        if not isinstance(choice, Compact):
            return None, state
        taken = {file.name for file in choice.files}
        above: tuple[DataFile, ...] = ()
        if self._rules.looks_up:
            rest = (file for file in self._files.values() if file.name not in taken)
            above = tuple(file for file in rest if file.level > choice.output_level)
        task = msgspec.structs.replace(
            self._task(choice.files),
            output_level=choice.output_level,
            drop_deletes=drop_deletes(choice.output_level, runs, self._rules.picker),
            rewrite_all=choice.rewrite_all,
            higher_files=above,
        )
        return task, state

    def apply(self, done: BucketChanges, deletions: BucketDeletions) -> Obsolete:
        """Apply the result of a compaction; `deletions` are valid after it. Returns the files no longer needed."""
        kept = {file.name for file in done.compacted.added}
        obsolete = []
        for file in done.compacted.deleted:
            self._files.pop(file.name, None)
            if self._after.pop(file.name, None) is None:
                self._before[file.name] = file
            elif file.name not in self._before and file.name not in kept:
                obsolete.append(file)
        for file in done.compacted.added:
            self._files[file.name] = self._after[file.name] = file
        self._changelog += done.compacted.changelog
        known = {entry.name for entry in (*self._base, *deletions.index)}
        index = tuple(entry for entry in self._deletions.index if entry.name not in known)
        self._deletions = deletions
        return Obsolete(tuple(obsolete), index)

    def changes(self, written: Edit) -> BucketChanges:
        """The changes to commit, including the new files of the writer."""
        partition, bucket, total_buckets = self._place
        changes = BucketChanges(partition=partition, bucket=bucket, total_buckets=total_buckets, written=written)
        if not self._before and not self._after:
            return changes
        compacted = Edit(
            deleted=tuple(self._before.values()),
            added=tuple(self._after.values()),
            changelog=tuple(self._changelog),
            added_index=self._deletions.index,
            deleted_index=self._base,
        )
        return msgspec.structs.replace(changes, compacted=compacted, compact_base=self._snapshot)

    def _runs(self) -> tuple[LevelRun, ...]:
        files = list(self._files.values())
        upper = [file for file in files if file.level]
        if upper:
            types = [field.type for field in self._rules.schema.key_fields]
            lows, _ = key_ranks([file.min_key for file in upper], [file.max_key for file in upper], types)
            upper = [upper[at] for at in lows.argsort(kind="stable").tolist()]
        return level_runs([*(file for file in files if not file.level), *upper])

    def _append_pick(self, full: bool) -> tuple[DataFile, ...]:
        files = list(self._files.values())
        if full:
            return next(iter(bucket_tasks(files, self._rules.append, DeadCounts(), full=True)), ())
        return next_window(files, self._rules.append)

    def _task(self, files: tuple[DataFile, ...]) -> CompactionTask:
        partition, bucket, total_buckets = self._place
        return CompactionTask(
            base=self._snapshot,
            schema_id=self._rules.schema.id,
            partition=partition,
            bucket=bucket,
            total_buckets=total_buckets,
            files=files,
            deletions=self._deletions.places,
            index=self._deletions.index,
        )
