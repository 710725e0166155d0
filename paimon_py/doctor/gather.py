"""Gathers the facts about a table once; nothing is changed."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.manifest.columns import EntryColumns
from paimon_py.compaction.plan import plan_compaction
from paimon_py.doctor.bucket_facts import count_buckets
from paimon_py.doctor.facts import Broken, Commit, ConsumerBacklog, Facts, FileHolder, ManifestFacts, OrphanFacts
from paimon_py.doctor.files import broken_files
from paimon_py.doctor.finding import bucket_label
from paimon_py.doctor.history_facts import gather_history
from paimon_py.errors import CorruptionError, NotFoundError, OptionError, SnapshotExpiredError, UsageError
from paimon_py.iceberg.state import IcebergState, iceberg_state
from paimon_py.maintain.cleanup.remove_orphans import limit_of, remove_orphans
from paimon_py.maintain.cleanup.retention import first_kept, retention_of
from paimon_py.metadata.manifest_merge import ManifestSettings
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.progress import Progress, ProgressCounter
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.file_indexes import check_file_indexes
from paimon_py.spec.iceberg import writes_iceberg
from paimon_py.spec.layout import MAIN_BRANCH, snapshot_path
from paimon_py.spec.manifest import IndexEntry
from paimon_py.spec.options import Options, check_values
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Snapshot
from paimon_py.spec.visibility import clusters_keys
from paimon_py.storage.store import FileMissingError

NEWEST = 100
"""The number of snapshots whose times are checked."""
_NO_LIMIT = 2**31 - 1


def gather(table: OpenTable, *, deep: bool, progress: Progress | None = None) -> Facts:
    """Gather all facts once; what cannot be read becomes a fact, too.

    Cost: as `Table.doctor`
    Raises: SnapshotExpiredError, UnsupportedError, StorageError
    """
    schema, senseless = _with_sense(table.schema)
    table = table.under(schema)
    broken = list[Broken]()
    latest, live, index = None, EntryColumns.empty(), list[IndexEntry]()
    try:
        latest = table.root.latest()
        live = live if latest is None else table.root.manifests.live_entries(latest)
        index = _index(table.root, latest)
    except (CorruptionError, FileMissingError) as error:
        broken.append(Broken(error.path or table.root.path, str(error)))
    repeated = list[str]()
    broken += broken_files(table, live, index, repeated, progress, deep=deep)
    if broken and latest is not None and table.root.snapshots.find(latest.id) is None:
        message = f"snapshot {latest.id} of {table.root.path} expired while its files were checked: call doctor() again"
        raise SnapshotExpiredError(message, snapshot_id=latest.id)
    commits = _commits(table.root, progress)
    holders = _holders(table.root, latest, live, broken, progress)
    orphans, history = _orphans(table.root, broken, progress), gather_history(table.root, broken)
    followers, waiting = _followers(table.root, latest, broken), _waiting(table, broken)
    options, keyed = Options(schema.options), bool(schema.primary_keys)
    return Facts(
        options=dict(schema.options), is_keyed=keyed, is_partitioned=bool(schema.partition_keys),
        is_dynamic=bucket_mode(schema) is BucketMode.DYNAMIC, now_millis=table.root.env.clock.millis(),
        live_files=len(live), live_bytes=int(live.size_bytes.sum()),
        buckets=count_buckets(live, index, table, is_keyed=keyed and not clusters_keys(schema)), waiting=waiting,
        broken=tuple({one.path: one for one in broken}.values()), repeated=tuple(repeated),
        unmarked=_buckets_without_vectors(table, live),
        manifests=manifest_facts(table.root, latest, options),
        snapshot_count=len(table.root.snapshots.ids()), senseless=senseless,
        expirable=_expirable(table, latest), commits=commits, holders=holders,
        followers=followers, orphans=orphans, history=history, iceberg=_iceberg(table, broken),
    )  # fmt: skip


def _with_sense(schema: TableSchema) -> tuple[TableSchema, Mapping[str, str]]:
    """The schema without options that have invalid values; and these options, with the reason for each."""
    senseless: dict[str, str] = {}
    for name, text in schema.options.items():
        try:
            check_values({name: text})
        except OptionError as error:
            senseless[name] = str(error)
    while True:
        options = {name: text for name, text in schema.options.items() if name not in senseless}
        found = msgspec.structs.replace(schema, options=options)
        try:
            check_file_indexes(found, Options(options))
        except OptionError as error:
            if error.option not in options:
                raise
            senseless[error.option] = str(error)
        else:
            return found, senseless


def _buckets_without_vectors(table: OpenTable, live: EntryColumns) -> tuple[str, ...]:
    """Buckets with several sorted runs, some of them from before deletion vectors were enabled."""
    name = "deletion-vectors.enabled"
    if not table.schema.primary_keys or not table.options.get_bool(name) or not len(live):
        return ()
    oldest = int(live.schema_id.min())
    without = [
        number
        for number in table.root.schemas.ids()
        if oldest <= number < table.schema.id and not Options(table.root.schemas.options(number)).get_bool(name)
    ]
    if not without:
        return ()
    upper = live.take(live.level > 0)
    return tuple(
        bucket_label(table.partition_directory(partition), number)
        for (partition, number), places in upper.by_bucket().items()
        if len(np.unique(upper.level[places])) > 1 and upper.schema_id[places].min() <= max(without)
    )


def _index(root: TableRoot, latest: Snapshot | None) -> list[IndexEntry]:
    return [] if latest is None or latest.index_manifest is None else root.manifests.read_index(latest.index_manifest)


def _waiting(table: OpenTable, broken: list[Broken]) -> pa.Table:
    """The number of files that `compact` would merge in each bucket of an append table; empty with a primary key."""
    counts: dict[tuple[bytes, int], int] = {}
    if not table.schema.primary_keys:
        try:
            tasks = plan_compaction(table, full=False, chosen=None)
        except CorruptionError as error:
            tasks = []
            broken.append(Broken(error.path or table.root.path, str(error)))
        for task in tasks:
            place = task.partition, task.bucket
            counts[place] = counts.get(place, 0) + len(task.files)
    names = pa.array([table.partition_directory(partition) for partition, _ in counts], pa.string())
    buckets = pa.array([bucket for _, bucket in counts], pa.int64())
    sums = pa.array(list(counts.values()), pa.int64())
    return pa.table({"partition": names, "bucket": buckets, "file_count": sums})


def manifest_facts(root: TableRoot, latest: Snapshot | None, options: Options) -> ManifestFacts:
    """The manifests of a snapshot; none if their lists cannot be read."""
    try:
        found = [] if latest is None else root.manifests.base_and_delta(latest)
    except (CorruptionError, FileMissingError, NotFoundError):
        return ManifestFacts()  # already among the broken files, since `live_entries` begins with these lists
    half = ManifestSettings.of(options).target_file_size_bytes // 2
    return ManifestFacts(
        count=len(found),
        small=sum(file.size_bytes < half for file in found),
        size_bytes=sum(file.size_bytes for file in found),
        entries=sum(file.added_files + file.deleted_files for file in found),
    )


def _commits(root: TableRoot, progress: Progress | None) -> tuple[Commit, ...]:
    found, ids = [], root.snapshots.ids()[-NEWEST:]
    tally = ProgressCounter(progress, len(ids), "snapshots")
    for number in ids:
        snapshot = root.snapshots.find(number)
        status = root.store.stat(snapshot_path(root.branch_path, number))
        if snapshot is not None:
            found.append(Commit(number, snapshot.time_millis, None if status is None else status.modified_millis))
        tally.add(1)
    return tuple(found)


def _expirable(table: OpenTable, latest: Snapshot | None) -> int:
    """The number of snapshots that may expire by the table's options, considering only their number and age."""
    earliest = table.root.snapshots.earliest_id()
    if latest is None or earliest is None:
        return 0
    try:
        retention = retention_of(table.schema.options, table.root.env.clock.millis(), "snapshot", limit=_NO_LIMIT)
    except UsageError:
        return 0  # contradicting options are a separate finding

    def time_of(number: int) -> int | None:
        snapshot = table.root.snapshots.find(number)
        return None if snapshot is None else snapshot.time_millis

    return first_kept(earliest, latest.id, retention, {}, time_of).snapshot_id - earliest


def _holders(
    root: TableRoot, latest: Snapshot | None, live: EntryColumns, broken: list[Broken], progress: Progress | None
) -> tuple[FileHolder, ...]:
    """The files that the oldest snapshot and each tag keep in addition to the latest snapshot."""
    earliest = root.snapshots.earliest_id()
    names, found = live.names(), []
    kept = [("tag", tag.name, tag.snapshot) for tag in root.tags.list()]
    oldest = None if earliest is None else root.snapshots.find(earliest)
    if oldest is not None and latest is not None and oldest.id != latest.id:
        kept.append(("snapshot", str(oldest.id), oldest))
    tally = ProgressCounter(progress, len(kept), "tags")
    for kind, name, snapshot in kept:
        tally.add(1)
        try:
            entries = root.manifests.live_entries(snapshot)
        except (CorruptionError, FileMissingError, NotFoundError) as error:
            broken.append(Broken(error.path or root.path, f"{kind} {name} cannot be read: {error}"))
            continue
        others = ~np.asarray(pc.is_in(entries.names(), value_set=names).to_numpy(zero_copy_only=False), np.bool_)
        found.append(FileHolder(kind, name, int(entries.size_bytes[others].sum())))
    return tuple(found)


def _orphans(root: TableRoot, broken: list[Broken], progress: Progress | None) -> OrphanFacts | None:
    """The orphan files; None if something that may reference files cannot be read."""
    try:
        found = remove_orphans(root, limit_of(root.env.clock, None), dry_run=True, progress=progress)
    except CorruptionError as error:
        broken.append(Broken(error.path or root.path, str(error)))
        return None
    return OrphanFacts(found.files, found.size_bytes, found.paths, found.users)


def _iceberg(table: OpenTable, broken: list[Broken]) -> IcebergState | None:
    """The state of the Iceberg metadata; None if the table itself cannot be read."""
    if table.root.branch != MAIN_BRANCH or not writes_iceberg(table.schema) or broken:
        return None
    return iceberg_state(table)


def _followers(root: TableRoot, latest: Snapshot | None, broken: list[Broken]) -> tuple[ConsumerBacklog, ...]:
    try:
        consumers = root.consumers.all()
    except CorruptionError as error:
        broken.append(Broken(error.path or root.path, str(error)))
        return ()
    last = 0 if latest is None else latest.id
    return tuple(ConsumerBacklog(one.name, max(0, last + 1 - one.next_snapshot_id)) for one in consumers)


