"""Plans the compaction of a table: from the live files of a snapshot to independent tasks.

Source: format.md §13.2, §13.4; Java `MergeTreeCompactManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping

import msgspec
import numpy as np

from paimon_py.codec.partition_choice import PartitionChoice
from paimon_py.commit.changes import Bucket
from paimon_py.commit.deletion_index import BucketDeletions, bucket_deletions
from paimon_py.commit.newer_files import require_known
from paimon_py.compaction.append_picker import AppendSettings, DeadCounts, age, bucket_tasks, unaware_tasks
from paimon_py.compaction.cluster_plan import ClusterPlan
from paimon_py.compaction.levels import LevelRun, level_runs
from paimon_py.compaction.picker import (
    Compact,
    PickerSettings,
    PickerState,
    compacts_by_lookup,
    drop_deletes,
    pick,
    pick_full,
)
from paimon_py.compaction.range_picker import range_bins
from paimon_py.compaction.task import CompactionTask
from paimon_py.env import Clock
from paimon_py.errors import UnsupportedError
from paimon_py.files.expiry import RecordExpiry
from paimon_py.files.physical import DATA_EVOLUTION, evolves_columns
from paimon_py.lsm.order import key_ranks
from paimon_py.metadata.entry_filter import EntryFilter
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.clustering import Clustering
from paimon_py.spec.data_file import DataFile, ManifestEntry
from paimon_py.spec.layout import POSTPONE_BUCKET
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Base, Snapshot

_HOUR_MILLIS = 3_600_000
_MINUTE_MILLIS = 60_000


class Moment(msgspec.Struct, frozen=True):
    """A time at which compactions are planned: epoch milliseconds, and the offset of local time from UTC."""

    now_millis: int
    zone_offset_millis: int = 0

    @property
    def hour(self) -> int:
        """Hour of the day in local time."""
        return (self.now_millis + self.zone_offset_millis) // _HOUR_MILLIS % 24


class _Bucket(msgspec.Struct, frozen=True):
    """The live files of one bucket; in tables with a primary key ordered by their smallest key."""

    partition: bytes
    bucket: int
    total_buckets: int
    files: tuple[DataFile, ...]


def plan_compaction(
    table: OpenTable,
    *,
    full: bool,
    chosen: PartitionChoice | None,
    clustering: Clustering | None = None,
) -> list[CompactionTask]:
    """The compaction tasks of the latest snapshot, at most one per bucket of a table with a primary key.

    Args:
        chosen: plan for these partitions only.
        clustering: sort all rows of every partition or bucket, instead of using the table's options.

    Cost: reads the manifests; a few µs per live file.
    Raises:
        CorruptionError: broken metadata.
        CommitConflictError: there are files of a later schema, whose rows would lose values.
        UnsupportedError: rows whose columns are in several files would be sorted.
    """
    snapshot = table.root.latest()
    if snapshot is None:
        return []
    if clustering is not None and evolves_columns(table.schema):
        raise UnsupportedError(
            f"rows of a table with {DATA_EVOLUTION} stay in the order of their ids: call compact() without an order",
            feature=f"sorting of tables with {DATA_EVOLUTION}",
        )
    entries = table.root.manifests.live_entries(snapshot, EntryFilter(partitions=chosen)).entries()
    require_known(table, (entry.file for entry in entries))
    moment = moment_of(table.root.env.clock)
    deletions = bucket_deletions(table, snapshot)
    expiry = RecordExpiry.of(table.schema, moment.now_millis)
    files = [entry.file for entry in entries]
    expired = expiry.find_expired(files, table.root.schemas.get) if expiry and full else frozenset()
    clusters = ClusterPlan.of(table.schema, clustering, files, table.root.schemas.get)
    return tasks_of(
        table.schema, snapshot, entries, full=full, moment=moment, deletions=deletions, expired=expired,
        clusters=clusters,
    )


def moment_of(clock: Clock) -> Moment:
    """The current time."""
    now, local = clock.millis(), clock.local_millis()
    return Moment(now, round((local - now) / _MINUTE_MILLIS) * _MINUTE_MILLIS)


def tasks_of(
    schema: TableSchema,
    snapshot: Snapshot,
    entries: Iterable[ManifestEntry],
    *,
    full: bool,
    moment: Moment,
    deletions: Mapping[Bucket, BucketDeletions] | None = None,
    expired: Container[str] = frozenset(),
    clusters: ClusterPlan | None = None,
) -> list[CompactionTask]:
    """The tasks for live files and their deletion vectors. Pure.

    Args:
        expired: names of the files with expired rows.
        clusters: the clustering of an append table, if there is one.
    """
    planner = _Planner(schema, snapshot, full, moment, deletions or {}, expired)
    if clusters is not None:
        return [task for bucket in _buckets(schema, entries) for task in planner.cluster_tasks(bucket, clusters)]
    return [task for bucket in _buckets(schema, entries) for task in planner.tasks(bucket)]


def _buckets(schema: TableSchema, entries: Iterable[ManifestEntry]) -> list[_Bucket]:
    entries = [entry for entry in entries if entry.bucket != POSTPONE_BUCKET]
    if schema.primary_keys and entries:
        types = [field.type for field in schema.key_fields]
        lows, _ = key_ranks([e.file.min_key for e in entries], [e.file.max_key for e in entries], types)
        entries = [entries[at] for at in np.argsort(lows, kind="stable").tolist()]
    found: dict[tuple[bytes, int, int], list[DataFile]] = {}
    for entry in entries:
        found.setdefault((entry.partition, entry.bucket, entry.total_buckets), []).append(entry.file)
    return [_Bucket(*key, tuple(files)) for key, files in sorted(found.items())]


class _Planner:
    """Plans one bucket at a time."""

    def __init__(
        self,
        schema: TableSchema,
        snapshot: Snapshot,
        full: bool,
        moment: Moment,
        deletions: Mapping[Bucket, BucketDeletions],
        expired: Container[str],
    ) -> None:
        options = Options(schema.options)
        self._schema = schema
        self._snapshot = snapshot
        self._full = full
        self._moment = moment
        self._deletions = deletions
        self._expired = expired
        self._looks_up = compacts_by_lookup(schema)
        self._append = AppendSettings.of(options)
        self._picker = PickerSettings.of(options) if schema.primary_keys else PickerSettings()
        self.tasks: Callable[[_Bucket], list[CompactionTask]] = self._append_tasks
        if schema.primary_keys:
            self.tasks = self._keyed_tasks
        elif evolves_columns(schema):
            self.tasks = self._range_tasks

    def _keyed_tasks(self, bucket: _Bucket) -> list[CompactionTask]:
        runs = level_runs(bucket.files)
        choice = self._choice(bucket, runs)
        if choice is None:
            return []
        taken = {file.name for file in choice.files}
        higher: tuple[DataFile, ...] = ()
        if self._looks_up:
            above = [file for file in bucket.files if file.level > choice.output_level and file.name not in taken]
            higher = tuple(above)
        return [
            msgspec.structs.replace(
                self._task(bucket, choice.files),
                output_level=choice.output_level,
                drop_deletes=drop_deletes(choice.output_level, runs, self._picker),
                rewrite_all=choice.rewrite_all,
                higher_files=higher,
            )
        ]

    def _choice(self, bucket: _Bucket, runs: tuple[LevelRun, ...]) -> Compact | None:
        """The files to compact. Java picks twice, on request and at the commit; a gentle lookup counts both picks."""
        if self._full:
            full = pick_full(runs, self._picker, deleted=self._deletions_of(bucket).places, expired=self._expired)
            return full if isinstance(full, Compact) else None
        state = PickerState.of(bucket.files, self._picker, self._moment.zone_offset_millis)
        for _ in range(2):
            choice, state = pick(runs, self._picker, state, self._moment.now_millis, self._moment.hour)
            if isinstance(choice, Compact):
                return choice
        return None

    def _append_tasks(self, bucket: _Bucket) -> list[CompactionTask]:
        plan = bucket_tasks if bucket.total_buckets > 0 else unaware_tasks
        known = self._deletions_of(bucket)
        index_files = {part.data_file: entry.name for entry in known.index for part in entry.deletion_vectors or ()}
        dead = DeadCounts({name: place.cardinality for name, place in known.places.items()}, index_files)
        groups = plan(bucket.files, self._append, dead, full=self._full)
        return [_with_own_deletions(self._task(bucket, files)) for files in groups]

    def _range_tasks(self, bucket: _Bucket) -> list[CompactionTask]:
        """Tasks that join neighbouring rows; files whose deletion vectors share an index file form one task."""
        places = {
            part.data_file: entry.name
            for entry in self._deletions_of(bucket).index for part in entry.deletion_vectors or ()
        }  # fmt: skip
        together: list[tuple[set[str], list[tuple[DataFile, ...]]]] = []
        for files in range_bins(bucket.files, self._append, full=self._full):
            index_files, bins = {places[file.name] for file in files if file.name in places}, [files]
            apart = []
            for known, others in together:
                if known & index_files:
                    index_files, bins = known | index_files, [*others, *bins]
                else:
                    apart.append((known, others))
            together = [*apart, (index_files, bins)]
        return [
            msgspec.structs.replace(
                _with_own_deletions(self._task(bucket, tuple(file for files in bins for file in files))),
                joins=tuple(len(files) for files in bins),
            )
            for _, bins in together
        ]

    def cluster_tasks(self, bucket: _Bucket, clusters: ClusterPlan) -> list[CompactionTask]:
        """The task that sorts files of a bucket together, if there is one."""
        choice = clusters.choice(bucket.files, full=self._full)
        if choice is None:
            return []
        task = _with_own_deletions(self._task(bucket, tuple(sorted(choice.files, key=age))))
        return [msgspec.structs.replace(task, output_level=choice.output_level, clustering=clusters.clustering)]

    def _deletions_of(self, bucket: _Bucket) -> BucketDeletions:
        return self._deletions.get((bucket.partition, bucket.bucket), BucketDeletions())

    def _task(self, bucket: _Bucket, files: tuple[DataFile, ...]) -> CompactionTask:
        known = self._deletions_of(bucket)
        return CompactionTask(
            base=Base.of(self._snapshot),
            schema_id=self._schema.id,
            partition=bucket.partition,
            bucket=bucket.bucket,
            total_buckets=bucket.total_buckets,
            files=files,
            deletions=known.places,
            index=known.index,
        )


def _with_own_deletions(task: CompactionTask) -> CompactionTask:
    """The task with only the index files of its own files, so that tasks share none."""
    names = {file.name for file in task.files}
    own = [{part.data_file for part in entry.deletion_vectors or ()} for entry in task.index]
    index = tuple(entry for entry, held in zip(task.index, own, strict=True) if held & names)
    wanted = {name for held in own if held & names for name in held}
    deletions = {name: place for name, place in task.deletions.items() if name in wanted}
    return msgspec.structs.replace(task, index=index, deletions=deletions)
