"""Plans the changes of snapshots: manifests → added files → pruned files → splits whose rows are changes.

Rows of changes are read as stored and never merged, so a file can be skipped as soon as none of its rows matches.

Source: format.md §17; Java `IncrementalDeltaStartingScanner`, `DeltaFollowUpScanner`, `ChangelogFollowUpScanner`.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from paimon_py.codec.columns import Mask
from paimon_py.codec.manifest.columns import ABSENT, EntryColumns
from paimon_py.codec.partition_choice import PartitionChoice
from paimon_py.errors import CorruptionError, UnsupportedError, UsageError
from paimon_py.expr.predicate import Predicate
from paimon_py.expr.split import split_conjuncts
from paimon_py.files.physical import evolves_columns
from paimon_py.metadata.entry_filter import EntryFilter
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.postponed_order import WAITING, oldest_first
from paimon_py.metadata.root import TableRoot
from paimon_py.metadata.row_ranges import files_apart, row_ranges
from paimon_py.scan import prune_entries as prune
from paimon_py.scan.diff_plan import plan_diff
from paimon_py.scan.ends import Ends
from paimon_py.scan.explain import Pushed, Skipped
from paimon_py.scan.plan import Grouped, Packing, PlanOrigin, aligned_sections, change_sections, splits_of
from paimon_py.scan.plan_snapshot import Planned, packing_of
from paimon_py.scan.removals import changes_rows, identifies_removals, require_no_removals
from paimon_py.scan.request import Request
from paimon_py.scan.split import Split, may_delete
from paimon_py.spec.bucket_mode import is_cross_partition
from paimon_py.spec.data_file import FileKind
from paimon_py.spec.layout import POSTPONE_BUCKET
from paimon_py.spec.manifest import ManifestFile
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Base, CommitKind, Snapshot
from paimon_py.storage.store import FileMissingError


class ChangeSource(enum.Enum):
    """The files of a snapshot that contain its changes: those that its delta adds, or its changelog files."""

    DELTA = "delta"
    CHANGELOG = "changelog"


def source_of(snapshot: Snapshot, *, makes_changelog: bool, overwrites: bool) -> ChangeSource | None:
    """The source of a snapshot's changes; None if it has none.

    `makes_changelog`: whether the table produced changelogs when the snapshot was committed. `overwrites`: whether the
    new rows of an overwrite count. An existing changelog is always read.
    """
    if snapshot.has_same_rows:
        return None
    if overwrites and snapshot.commit_kind is CommitKind.OVERWRITE:
        return ChangeSource.DELTA
    if snapshot.changelog_manifest_list is not None:
        return ChangeSource.CHANGELOG
    if makes_changelog:
        return None
    return ChangeSource.DELTA if snapshot.commit_kind is CommitKind.APPEND else None


def makes_changelog(schema: TableSchema) -> bool:
    """Whether a table produces changelog files."""
    return Options(schema.options).get_enum("changelog-producer") != "none"


def plan_step(
    root: TableRoot, request: Request, snapshot: Snapshot, source: ChangeSource, *, waiting: bool = False
) -> Planned:
    """Plan the changes of one snapshot. `waiting`: also rows in postponed buckets.

    Cost: two uncached gets, plus one per additional manifest of the snapshot; about 5 µs per file.
    Raises:
        SnapshotExpiredError: the snapshot has expired in the meantime.
        UnsupportedError: files that need an unsupported feature; no data file is read.
    """
    return _plan_changes(root, request, [(snapshot, source)], snapshot.id - 1, waiting=waiting)


def plan_waiting(root: TableRoot, request: Request, snapshot: Snapshot) -> Planned:
    """Plan the rows of a snapshot in postponed buckets, as changes.

    Cost: like a plan of the snapshot.
    Raises: as `plan_step`
    """
    return _Planner(root, request, waiting=True).plan_waiting(snapshot)


def plan_span(
    root: TableRoot, request: Request, snapshots: Sequence[tuple[Snapshot, ChangeSource]], *, since: int
) -> Planned:
    """Plan the changes of some snapshots, all later than `since`, in ascending order.

    The files of a bucket are read in the order of their snapshots, and those of one snapshot in the order in which they
    were written, so that the changes of a key are returned in the order in which they happened.

    Cost: like `plan_step` for every snapshot.
    Raises: as `plan_step`
    """
    return _plan_changes(root, request, snapshots, since) if snapshots else Planned.nothing()


def _plan_changes(
    root: TableRoot,
    request: Request,
    snapshots: Sequence[tuple[Snapshot, ChangeSource]],
    since: int,
    *,
    waiting: bool = False,
) -> Planned:
    """Plan the changes of some snapshots. If keys move between partitions, all are in one split, snapshot by snapshot:
    files do not tell which bucket had a key first.
    """
    if not is_cross_partition(request.schema):
        return _Planner(root, request, waiting=waiting).plan(snapshots, since)
    plans = [_Planner(root, request, waiting=waiting).plan([each], each[0].id - 1) for each in snapshots]
    groups = tuple(planned.splits for planned in plans if planned.splits)
    skipped = functools.reduce(Skipped.plus, (planned.skipped for planned in plans))
    splits = tuple(split for group in groups for split in group)
    if len(splits) > 1 and (len(groups) > 1 or may_delete(splits)):
        splits = (msgspec.structs.replace(splits[-1], sections=(), since=since, moving=groups),)
    return Planned(splits, plans[-1].pushed, skipped)


def plan_between(root: TableRoot, request: Request, ends: Ends) -> Planned:
    """Plan the changes between two ends: from deltas, from changelogs, or from what each snapshot has.

    Cost: a get per snapshot, in parallel if requests have high latency; then like `plan_span`.
    Raises:
        SnapshotExpiredError: a snapshot in the range has expired.
        UsageError: a snapshot with rows has no changelog, and the ends require one.
        UnsupportedError: files that need an unsupported feature, commits that deleted rows from a table without a
            primary key, or overwrites that the table's streams report; no data file is read.
    """
    table, snapshots = OpenTable(root, request.schema), _span(root, ends)
    if ends.mode == "auto" and ends.refuses_removals and identifies_removals(request.schema):
        return _plan_identified(root, request, ends, snapshots)
    if ends.refuses_none:
        _require_changelog(table, snapshots)
    if ends.refuses_removals:
        for snapshot in snapshots:
            require_no_removals(root, snapshot)
    chosen = ((each, _source(table, each, ends)) for each in snapshots)
    return plan_span(root, request, [(each, source) for each, source in chosen if source is not None], since=ends.since)


def _plan_identified(root: TableRoot, request: Request, ends: Ends, snapshots: Sequence[Snapshot]) -> Planned:
    """Plan the changes of each snapshot of a table with row tracking: rows as they were written, and where a snapshot
    changes rows, the difference from the previous one.
    """
    splits: list[Split] = []
    pushed, skipped = Pushed(), Skipped()
    written: list[tuple[Snapshot, ChangeSource]] = []
    before = ends.start
    for number, snapshot in enumerate(snapshots):
        changes = changes_rows(root, snapshot)
        source = None if changes else _source(OpenTable(root, request.schema), snapshot, ends)
        written += [] if source is None else [(snapshot, source)]
        plans = []
        if written and (changes or number == len(snapshots) - 1):
            plans.append(plan_span(root, request, written, since=written[0][0].id - 1))
            written = []
        if changes:
            plans.append(plan_replacement(root, request, snapshot, before))
        for planned in plans:
            splits += planned.splits
            pushed, skipped = planned.pushed, skipped.plus(planned.skipped)
        before = snapshot
    return Planned(tuple(splits), pushed, skipped)


def plan_replacement(root: TableRoot, request: Request, snapshot: Snapshot, before: Snapshot | None = None) -> Planned:
    """Plan what a snapshot removed, added or changed, with the old values. `before`: the previous snapshot, if known.

    Cost: like planning a scan of both snapshots.
    Raises: SnapshotExpiredError: the previous snapshot has expired.
    """
    since = snapshot.id - 1
    if since and (before is None or before.id != since):
        before = root.snapshots.get(since)
    ends = Ends(since=since, start=before if since else None, last=snapshot, mode="diff", of_step=True)
    return plan_diff(root, request, ends)


def _span(root: TableRoot, ends: Ends) -> list[Snapshot]:
    """The snapshots of a range, in order."""
    numbers = range(ends.since + 1, ends.last.id)
    found: Iterable[Snapshot] = map(root.snapshot_or_changelog, numbers)
    if ends.own is not None:
        found = ends.own[:-1]
    elif "://" in root.path:
        found = root.env.pool.map(root.snapshot_or_changelog, numbers)
    return [*found, ends.last]


def _source(table: OpenTable, snapshot: Snapshot, ends: Ends) -> ChangeSource | None:
    """The source of a snapshot's changes; None if it is skipped.

    Source: Java `IncrementalDeltaStartingScanner`: a delta counts if rows were written, a changelog unless rows were
      overwritten.
    """
    kind, is_overwrite = snapshot.commit_kind, snapshot.commit_kind is CommitKind.OVERWRITE
    if ends.mode == "auto":
        own = table.schema if snapshot.schema_id == table.schema.id else table.root.schemas.get(snapshot.schema_id)
        reads = table.options.get_bool(
            "streaming-read-overwrite" if table.schema.primary_keys else "streaming-read-append-overwrite"
        )
        if reads and is_overwrite and table.schema.primary_keys and not snapshot.has_same_rows:
            raise UnsupportedError(
                f"snapshot {snapshot.id} of {table.root.path} overwrote rows, which the table's streams report "
                "(streaming-read-overwrite) and a scan of changes cannot: read table.stream(), or compare the states "
                "with mode='diff'; mode='delta' and mode='changelog' skip it",
                feature="changes of overwrites",
            )
        return source_of(snapshot, makes_changelog=makes_changelog(own), overwrites=reads or ends.refuses_removals)
    source = ChangeSource(ends.mode)
    if ends.refuses_removals:
        counts = source is ChangeSource.CHANGELOG or kind is CommitKind.APPEND or is_overwrite
    else:
        counts = kind is CommitKind.APPEND if source is ChangeSource.DELTA else not is_overwrite
    return source if counts and not snapshot.has_same_rows else None


def _require_changelog(table: OpenTable, snapshots: Sequence[Snapshot]) -> None:
    """Refuse a range that changelogs do not cover completely.

    Raises: UsageError
    """
    if not makes_changelog(table.schema) and all(snapshot.changelog_manifest_list is None for snapshot in snapshots):
        raise UsageError(
            "the table writes no changelog (option changelog-producer), and there is none between the two ends: "
            "mode='delta' reads what was written, mode='diff' compares both states"
        )
    for snapshot in snapshots:
        if snapshot.commit_kind is not CommitKind.APPEND or snapshot.changelog_manifest_list is not None:
            continue
        if not makes_changelog(table.root.schemas.get(snapshot.schema_id)):
            raise UsageError(
                f"snapshot {snapshot.id} was committed while the table wrote no changelog (option changelog-producer): "
                "mode='auto' reads what each snapshot has, mode='diff' compares both states"
            )


class _Planner:
    def __init__(self, root: TableRoot, request: Request, *, waiting: bool = False) -> None:
        self._root = root
        self._waiting = waiting
        self._schema = request.schema
        self._predicate = request.predicate
        self._bucket = request.bucket
        self._counts: dict[str, int] = {}
        self._asks_indexes = request.predicate is not None and Options(request.schema.options).get_bool(
            "file-index.read.enabled"
        )

    def plan(self, snapshots: Sequence[tuple[Snapshot, ChangeSource]], since: int) -> Planned:
        entries = self._entries(snapshots)
        total = len(entries)
        if not self._waiting:
            entries = self._drop(entries, entries.bucket != POSTPONE_BUCKET, "uncompacted")
        return self._plan(entries, total, snapshots[-1][0].id, since)

    def plan_waiting(self, snapshot: Snapshot) -> Planned:
        wanted = EntryFilter(manifests=self._wanted_manifests, buckets=WAITING.buckets)
        entries = oldest_first(self._root, snapshot, self._root.manifests.live_entries(snapshot, wanted))
        return self._plan(entries, len(entries), snapshot.id, snapshot.id - 1)

    def _plan(self, entries: EntryColumns, total: int, last: int, since: int) -> Planned:
        if self._bucket is not None:
            entries = self._drop(entries, entries.bucket == self._bucket, "choice")
        prune.check_entries(entries, self._schema, self._root.schemas.get)
        in_parts = evolves_columns(self._schema) and bool(files_apart(entries).any() or _repeats_rows(entries))
        entries, pushed = self._of_partitions(entries) if in_parts else self._prune(entries)
        grouped = _rows_in_parts(entries) if in_parts else change_sections(entries, indexed=self._asks_indexes)
        place = PlanOrigin(snapshot_id=last, schema_id=self._schema.id, since=since, branch=self._root.branch)
        splits = splits_of(entries, grouped, None, place, _packing(self._schema))
        return Planned(tuple(splits), pushed, Skipped(all_files=total, **self._counts))

    def _entries(self, snapshots: Sequence[tuple[Snapshot, ChangeSource]]) -> EntryColumns:
        """The files that the snapshots add, in order."""
        manifests: list[ManifestFile] = []
        for snapshot, source in snapshots:
            name, size = snapshot.delta_manifest_list, snapshot.delta_manifest_list_size
            if source is ChangeSource.CHANGELOG:
                if snapshot.changelog_manifest_list is None:
                    continue
                name, size = snapshot.changelog_manifest_list, snapshot.changelog_manifest_list_size
            with self._root.reading(Base.of(snapshot)):
                manifests += self._root.manifests.read_list(name, size)
        try:
            found = self._root.manifests.read_entries(manifests, EntryFilter(manifests=self._wanted_manifests))
        except FileMissingError as error:
            raise self._root.missing_changes(snapshots[0][0].id - 1, snapshots[-1][0].id, error) from error
        added: Mask = found.kind == FileKind.ADD
        return found if bool(added.all()) else found.take(np.flatnonzero(added))

    def _wanted_manifests(self, files: Sequence[ManifestFile]) -> Mask:
        """A mask of the manifests to read."""
        by_partition = self._only(self._schema.partition_keys)
        keep: Mask = np.ones(len(files), np.bool_)
        if by_partition is not None:
            keep = PartitionChoice.where(self._schema, by_partition).of_manifests(files)
        self._counts |= {"all_manifests": len(files), "manifests": len(files) - int(np.count_nonzero(keep))}
        return keep

    def _of_partitions(self, entries: EntryColumns) -> tuple[EntryColumns, Pushed]:
        """The files of partitions that may match; files of the same rows stay together."""
        by_partition = self._only(self._schema.partition_keys)
        if by_partition is None:
            return entries, Pushed()
        chosen = PartitionChoice.where(self._schema, by_partition)
        return self._drop(entries, entries.in_partitions(chosen), "partition"), Pushed(partition=repr(by_partition))

    def _prune(self, entries: EntryColumns) -> tuple[EntryColumns, Pushed]:
        """The files that may contain a matching row."""
        predicate, schema, schema_of = self._predicate, self._schema, self._root.schemas.get
        if predicate is None or not len(entries):
            return entries, Pushed()
        by_partition = self._only(schema.partition_keys)
        by_key = self._only(schema.trimmed_primary_keys)
        if by_partition is not None:
            chosen = PartitionChoice.where(schema, by_partition)
            entries = self._drop(entries, entries.in_partitions(chosen), "partition")
        pinned = prune.bucket_mask(entries, predicate, schema, schema_of)
        if pinned is not None:
            entries = self._drop(entries, pinned, "bucket")
        if by_key is not None:
            entries = self._drop(entries, prune.key_mask(entries, by_key, schema, schema_of), "key")
        entries = self._drop(entries, prune.stats_mask(entries, predicate, schema, schema_of), "stats")
        if self._asks_indexes:
            kept = prune.index_mask(entries, predicate, self._root.files, schema_of)
            entries = self._drop(entries, kept, "index")
        pushed = Pushed(
            partition=None if by_partition is None else repr(by_partition),
            bucket=pinned is not None,
            key=None if by_key is None else repr(by_key),
            stats=repr(predicate),
        )
        return entries, pushed

    def _only(self, columns: tuple[str, ...]) -> Predicate | None:
        if self._predicate is None or not columns:
            return None
        return split_conjuncts(self._predicate, columns)[0]

    def _drop(self, entries: EntryColumns, keep: Mask, reason: str) -> EntryColumns:
        dropped = len(entries) - int(np.count_nonzero(keep))
        self._counts[reason] = self._counts.get(reason, 0) + dropped
        return entries.take(np.flatnonzero(keep)) if dropped else entries


def _repeats_rows(entries: EntryColumns) -> bool:
    """Whether several files contain columns of the same new rows, as commits of several writers can add them."""
    starts = np.stack([entries.distinct("partition")[0], entries.first_row_id])[:, entries.first_row_id != ABSENT]
    return bool(np.unique(starts, axis=1).shape[1] < starts.shape[1])


def _rows_in_parts(entries: EntryColumns) -> Grouped:
    """New rows, each with all files that contain columns of it.

    Raises: UnsupportedError if such columns of existing rows were set.
    """
    try:
        return aligned_sections(entries, row_ranges(entries))
    except CorruptionError as error:
        raise UnsupportedError(
            f"the changes set columns of existing rows: {error}; mode='diff' compares the states",
            feature="changes of commits that set columns",
        ) from error


def _packing(schema: TableSchema) -> Packing:
    """The packing of splits: all changes of a key stay in one split, so that they are read in order.

    Source: Java `SplitGenerator.splitForStreaming`.
    """
    return Packing(target_bytes=1 << 62, open_file_bytes=1) if schema.primary_keys else packing_of(schema)
