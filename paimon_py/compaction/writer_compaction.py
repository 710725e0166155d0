"""Compaction by a writer in the buckets it writes to: files of a snapshot and its own, one pick per hand-over.

Source: Java `MergeTreeWriter.prepareCommit`, `AbstractFileStoreWrite`, `GlobalFullCompactionSinkWrite`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping

import numpy as np

from paimon_py.codec.manifest.columns import EntryColumns
from paimon_py.commit.changes import Bucket, BucketChanges, Edit
from paimon_py.commit.deletion_index import BucketDeletions, bucket_deletions
from paimon_py.commit.newer_files import is_narrower
from paimon_py.commit.uncommitted import delete_compaction
from paimon_py.compaction.bucket_levels import BucketLevels, Rules
from paimon_py.compaction.live_files import LiveFiles
from paimon_py.compaction.picker import PickerState
from paimon_py.compaction.plan import moment_of
from paimon_py.compaction.task import CompactionTask
from paimon_py.compaction.together import compaction_budget
from paimon_py.errors import SnapshotExpiredError
from paimon_py.metadata.history import HistoryGap, SnapshotLog
from paimon_py.metadata.open_table import OpenTable
from paimon_py.progress import ProgressCounter
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.snapshot import Base
from paimon_py.storage.store import FileMissingError


class WriterCompaction:
    """Compacts the buckets of one writer before it hands over its changes.

    A bucket is skipped while files that the writer handed over earlier are not in the table and are not known to have
    been: a compaction must not bypass older rows that may still be committed. It is skipped until the next hand-over if
    its files were deleted because others compacted them and they expired, or if they have a later schema than the
    writer's.
    """

    def __init__(
        self,
        table: OpenTable,
        live: LiveFiles,
        *,
        total_buckets: int,
        replaces: bool = False,
        writes_changelog: bool = True,
    ) -> None:
        """`live`: the files the writer started from. A writer that `replaces` the table's content compacts only its
        own files. `writes_changelog`: compactions write the changelog of the table's options."""
        self._root = table.root
        self._schema = table.schema
        self._files = table
        self._rules = Rules.of(table.schema)
        self._total_buckets = total_buckets
        self._replaces = replaces
        self._emits_changelog = writes_changelog
        self._base: _Base | None = _Base(table, live)
        self._began = Base(0)
        self._levels: dict[Bucket, BucketLevels] = {}
        self._states: dict[Bucket, PickerState] = {}
        self._unsettled: dict[Bucket, _Unsettled] = {}
        self._run_counts: dict[Bucket, int] = {}
        self._waiting: set[Bucket] = set()
        self._given_up: set[Bucket] = set()
        self._hand_overs = 0

    def relieve(self, key: Bucket, files: Iterable[DataFile]) -> None:
        """Compact a bucket that has more runs than a writer may accumulate, during a load.

        Args:
            files: all files of the writer in the bucket.
        """
        files = tuple(files)
        if not self._schema.primary_keys or self._current().run_count(key) + len(files) <= self._stop_trigger:
            return
        levels = self._open(key)
        if levels is None:
            return
        levels.add(files)
        if levels.writers_wait:
            task = self._pick(key, levels, full=False)
            if task is not None:
                self._compact(key, levels, task)

    def finish(self, written: Mapping[Bucket, Edit], before: ProgressCounter) -> list[BucketChanges]:
        """Compact the buckets that need it and return the changes to commit; `written`: all new files, by bucket.

        The progress of the compacted rows is counted after that of `before`.

        Raises:
            StorageError: the store failed; call `abort`. CorruptionError: a file is damaged.
        """
        self._hand_overs += 1
        files = {key: new.added for key, new in written.items()}
        self._waiting.update(key for key, new in files.items() if new)
        every = self._rules.full_after
        full = every is not None and self._hand_overs % every == 0
        due = sorted(self._waiting) if full else [key for key, new in files.items() if new]
        chosen = {key: levels for key in due if (levels := self._due(key, files.get(key, ()), full)) is not None}
        picked = {key: self._pick(key, levels, full=full) for key, levels in chosen.items()}
        tasks = {key: task for key, task in picked.items() if task is not None}
        tally = before.then(sum(task.row_count for task in tasks.values()), "rows compacted", steps=2)
        for _ in self._root.env.pool.streams(
            lambda key: self._compact_bucket(key, chosen[key], tasks[key], tally), list(tasks),
            compaction_budget(lambda key: chosen[key].size_bytes),
        ):  # fmt: skip
            pass
        tally.end()
        found = [self._changes(key, written.get(key, Edit())) for key in dict.fromkeys([*written, *due])]
        self._hand_over(found, chosen if full else ())
        return [changes for changes in found if not changes.is_empty]

    def forget(self, changes: Iterable[BucketChanges]) -> None:
        """Forget changes that were handed over but will never be committed, since their files were deleted."""
        for bucket in changes:
            pending = self._unsettled.get((bucket.partition, bucket.bucket))
            if pending is not None:
                pending.leave_out({file.name for file in bucket.written.added})
                if not pending.files:
                    del self._unsettled[(bucket.partition, bucket.bucket)]

    def abort(self) -> None:
        """Delete the files of compactions that were not handed over, if the store can still delete files."""
        levels, self._levels = self._levels, {}
        for one in levels.values():
            self._delete(one)

    # -- inside -----------------------------------------------------------------------------------------------------

    @property
    def _stop_trigger(self) -> int:
        return self._rules.picker.stop_trigger

    def _due(self, key: Bucket, files: tuple[DataFile, ...], full: bool) -> BucketLevels | None:
        """The levels of a bucket that may need a compaction now."""
        if key not in self._levels and not full and not self._may_pick(key, len(files)):
            return None
        levels = self._open(key)
        if levels is not None:
            levels.add(files)
        return levels

    def _may_pick(self, key: Bucket, count: int) -> bool:
        """Whether a bucket with `count` new files could need a compaction; often the last known count rules it out."""
        known = self._run_counts.get(key) if self._base is None else None
        if known is not None and not self._rules.may_pick(known + count):
            return False
        return self._rules.may_pick(self._current().run_count(key) + count)

    def _open(self, key: Bucket) -> BucketLevels | None:
        """The levels of a bucket; None while it is unknown whether older files of this writer were committed."""
        levels = self._levels.get(key)
        if levels is None and key not in self._given_up:
            base = self._current()
            if key in self._unsettled:
                return None
            try:
                levels = base.levels(self._rules, key, self._total_buckets)
            except SnapshotExpiredError:
                levels = None
            if levels is None:
                self._given_up.add(key)
            else:
                self._levels[key] = levels
        return levels

    def _current(self) -> _Base:
        """The snapshot to start from; after a hand-over the latest one."""
        if self._base is None:
            snapshot = None if self._replaces else self._root.snapshots.latest()
            self._base = _Base(self._files, LiveFiles(self._root, snapshot))
            if not self._replaces:
                self._settle(self._base)
        return self._base

    def _settle(self, base: _Base) -> None:
        """Forget files handed over earlier that are or were in the table, or can no longer be committed.

        Cost: one stat for each file that no snapshot mentions.
        """
        for key, pending in list(self._unsettled.items()):
            pending.leave_out(base.added_since(pending.since))
            if pending.files:
                pending.leave_out(base.names(key))
            files = self._files.bucket(*key)
            pending.leave_out({name for name, file in pending.files.items() if files.stat(file) is None})
            if not pending.files:
                del self._unsettled[key]

    def _pick(self, key: Bucket, levels: BucketLevels, *, full: bool) -> CompactionTask | None:
        """The next compaction of a bucket, if one is due."""
        moment = moment_of(self._root.env.clock)
        state = self._states.get(key) or levels.state(moment)
        task, self._states[key] = levels.next_task(state, moment, full=full)
        return task

    def _compact_bucket(
        self, key: Bucket, levels: BucketLevels, task: CompactionTask, tally: ProgressCounter
    ) -> Iterator[None]:
        self._compact(key, levels, task, tally)
        yield None

    def _compact(
        self, key: Bucket, levels: BucketLevels, task: CompactionTask, tally: ProgressCounter | None = None
    ) -> None:
        """Run one compaction."""
        from paimon_py.compaction.run import run_task

        try:
            done = run_task(self._files, task, emits_changelog=self._emits_changelog, tally=tally)
        except FileMissingError as error:
            if not levels.began_with(str(error.path).rpartition("/")[2]):
                raise
            self._root.replacement_reason(key[1], error)
            self._given_up.add(key)
            self._delete(self._levels.pop(key))
            return
        index = done.compacted.added_index
        places = self._files.deletion_places(index).get(key, {})
        obsolete = levels.apply(done, BucketDeletions(places, index))
        self._files.bucket(*key).delete(obsolete.files)
        self._files.delete_index(obsolete.index)

    def _delete(self, levels: BucketLevels) -> None:
        """Delete the files that compactions created in a bucket."""
        delete_compaction(self._files, levels.changes(Edit()))

    def _changes(self, key: Bucket, written: Edit) -> BucketChanges:
        if key in self._levels:
            return self._levels[key].changes(written)
        return BucketChanges(partition=key[0], bucket=key[1], total_buckets=self._total_buckets, written=written)

    def _hand_over(self, found: Iterable[BucketChanges], compacted: Iterable[Bucket]) -> None:
        if self._base is not None:
            self._began = self._base.base
        for changes in found:
            key = (changes.partition, changes.bucket)
            known = self._run_counts.pop(key, None) if self._base is None else self._base.run_count(key)
            if known is not None and not changes.compacted.deleted:
                self._run_counts[key] = known + len(changes.written.added)
            else:
                self._run_counts.pop(key, None)
            if changes.written.added:
                pending = self._unsettled.setdefault(key, _Unsettled(self._began))
                pending.files.update({file.name: file for file in changes.written.added})
        self._waiting.difference_update(set(compacted) - self._given_up)
        self._given_up = set()
        self._levels = {}
        self._base = None


class _Unsettled:
    """Files that were handed over, by name, and a snapshot before which none of them was in the table."""

    def __init__(self, since: Base) -> None:
        self.since = since
        self.files: dict[str, DataFile] = {}

    def leave_out(self, names: Container[str]) -> None:
        """Forget files."""
        self.files = {name: file for name, file in self.files.items() if name not in names}


class _Base:
    """The live files of one snapshot by bucket, read when they are needed."""

    def __init__(
        self,
        table: OpenTable,
        live: LiveFiles,
    ) -> None:
        self._table = table
        self._root = table.root
        self._schema = table.schema
        self._live = live
        self._added: dict[Base, set[str]] = {}
        self._columns: EntryColumns | None = None
        self._places: dict[Bucket, np.ndarray] = {}
        self._deletions: dict[Bucket, BucketDeletions] | None = None

    @property
    def base(self) -> Base:
        """The snapshot as a base of changes."""
        self._live.columns()
        return Base.of(self._live.snapshot)

    def added_since(self, earlier: Base) -> set[str]:
        """The names of the files added after a snapshot up to this one, as far as they are known."""
        if earlier not in self._added:
            history = SnapshotLog(self._root).after(earlier, self._live.snapshot)
            names = history if isinstance(history, HistoryGap) else history.added_names()
            self._added[earlier] = set() if isinstance(names, HistoryGap) else set(names.to_pylist())
        return self._added[earlier]

    def run_count(self, key: Bucket) -> int:
        """The number of sorted runs of a bucket, or of files in an append table."""
        columns = self._entries(key)
        if columns is None:
            return 0
        if not self._schema.primary_keys:
            return len(columns)
        level_0 = int(np.count_nonzero(columns.level == 0))
        return level_0 + len(set(columns.level[columns.level > 0].tolist()))

    def names(self, key: Bucket) -> set[str]:
        """Names of the live files of a bucket."""
        columns = self._entries(key)
        return set() if columns is None else set(columns.names().to_pylist())

    def levels(self, rules: Rules, key: Bucket, total_buckets: int) -> BucketLevels | None:
        """The levels of a bucket; None if it has files of a later schema than the writer's."""
        columns = self._entries(key)
        files = [] if columns is None else [entry.file for entry in columns.entries()]
        if is_narrower(self._table, files) is not None:
            return None
        snapshot = self._live.snapshot
        if self._deletions is None and snapshot:  # a bucket may have an index and no file
            self._deletions = bucket_deletions(self._table, snapshot)
        known = (self._deletions or {}).get(key, BucketDeletions())
        return BucketLevels(rules, (*key, total_buckets), files, known, base=self.base)

    def _entries(self, key: Bucket) -> EntryColumns | None:
        if self._columns is None:
            self._columns = self._live.columns()
            self._places = self._columns.by_bucket()
        places = self._places.get(key)
        return None if places is None else self._columns.take(places)
