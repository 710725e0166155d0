"""Publishing the rows of postponed buckets: moves them to real buckets in one compaction.

Source: format.md §7.3; Java `CompactAction.buildForPostponeBucketCompaction`, `PostponeUtils`, `BucketFiles`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from paimon_py.codec.columns import numpy_values
from paimon_py.codec.partition_choice import PartitionChoice
from paimon_py.commit.attempts import Attempts
from paimon_py.commit.changes import BucketChanges
from paimon_py.commit.conflicts import Conflict
from paimon_py.commit.entry_lists import entries_of
from paimon_py.commit.index_plan import compacted_index, index_after
from paimon_py.commit.newer_files import require_known
from paimon_py.commit.next_snapshot import Author
from paimon_py.commit.result import CommitResult
from paimon_py.commit.rounds import on_latest
from paimon_py.commit.snapshot_delta import SnapshotDelta
from paimon_py.commit.state import Already, State, plan
from paimon_py.commit.uncommitted import discarding_on_failure
from paimon_py.errors import CommitConflictError, OptionError, UsageError
from paimon_py.files.layout import write_again
from paimon_py.files.physical import KIND_FIELD
from paimon_py.maintain.rescale import ROUNDS
from paimon_py.metadata.entry_filter import EntryFilter
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.postponed_order import oldest_first
from paimon_py.metadata.root import TableRoot
from paimon_py.progress import Progress, ProgressCounter, count_batches
from paimon_py.spec.data_file import DataFile, FileKind, ManifestEntry, identifier
from paimon_py.spec.layout import POSTPONE_BUCKET
from paimon_py.spec.options import Options
from paimon_py.spec.schema import VALUE_KIND, TableSchema
from paimon_py.spec.snapshot import BATCH_COMMIT_IDENTIFIER, Base, CommitKind, Snapshot, SnapshotId
from paimon_py.write.session import Writer
from paimon_py.write.settings import WriterSettings


def publish_postponed(
    table: OpenTable, chosen: PartitionChoice | None, progress: Progress | None = None
) -> CommitResult:
    """Assign postponed rows to their buckets, in the order of the commits that added them.

    A partition keeps its number of buckets; a new one gets the number from the options `postpone.default-bucket-num`,
    or else `postpone.target-row-num-per-bucket` or `postpone.target-size-per-bucket`. Buckets with enough runs are
    compacted at the same time, as writers do. The changelog is written now, not when the rows were first written.

    Args:
        progress: called with the postponed rows as they are read and written, and with rows that are compacted.

    Returns: a result without snapshots if there are no postponed rows.

    Raises:
        CommitConflictError: other writers always wrote to the same partitions; nothing was published.
        CommitUnknownError: nothing was deleted. Any other error: nothing was published, and all written files are
            deleted.
    """

    def work(snapshot: Snapshot | None, number: int) -> CommitResult:
        if snapshot is None:
            return CommitResult()

        def publish(schema: TableSchema) -> CommitResult:
            reported = progress if schema is table.schema else None
            return _Round(OpenTable(table.root, schema), snapshot, chosen).run(reported, number)

        return write_again(table.schema, publish)

    return on_latest(table.root, work, rounds=ROUNDS)


def require_none_waiting(root: TableRoot) -> None:
    """Refuse to continue while there are postponed rows that no later call would publish.

    Raises: UsageError
    """
    snapshot = root.snapshots.latest()
    live = () if snapshot is None else root.manifests.live_entries(snapshot).entries()
    if any(entry.bucket == POSTPONE_BUCKET for entry in live):
        raise UsageError("there are rows in postponed buckets ('bucket' = '-2'): publish them with compact() first")


class _Round:
    """One attempt, on one snapshot."""

    def __init__(self, table: OpenTable, snapshot: Snapshot, chosen: PartitionChoice | None) -> None:
        self._root = table.root
        self._schema = table.schema
        self._files = table
        self._snapshot = snapshot
        live = table.root.manifests.live_entries(snapshot, EntryFilter(partitions=chosen))
        waits = live.bucket == POSTPONE_BUCKET
        self._waiting = oldest_first(table.root, snapshot, live.take(waits)).entries()
        self._partitions = {entry.partition for entry in self._waiting}
        self._real = [entry for entry in live.take(~waits).entries() if entry.partition in self._partitions]

    def run(self, progress: Progress | None, attempt: int) -> CommitResult:
        if not self._waiting:
            return CommitResult()
        require_known(self._files, (entry.file for entry in self._waiting))
        by_count: dict[int, list[ManifestEntry]] = {}
        counts = bucket_counts(Options(self._schema.options), self._real, self._waiting)
        for entry in self._waiting:
            by_count.setdefault(counts[entry.partition], []).append(entry)
        rows = sum(entry.file.row_count for entry in self._waiting)
        tally = ProgressCounter(progress, rows, "waiting rows", steps=2, attempt=attempt)
        writers: list[Writer] = []
        try:
            for count, entries in sorted(by_count.items()):
                writers.append(self._write(count, entries, tally))
            changes = [writer.changes(is_new=True) for writer in writers]
        except BaseException:
            for writer in writers:
                writer.abort()
            raise
        buckets = [bucket for one in changes for bucket in one.buckets]

        def discard() -> None:
            for writer, one in zip(writers, changes, strict=True):
                writer.discard(one)

        with discarding_on_failure(discard):
            result = self._publish(buckets)
        for bucket in buckets:
            self._files.bucket(*bucket.place).delete(_obsolete(bucket))
        return result

    def _write(self, count: int, entries: Sequence[ManifestEntry], tally: ProgressCounter) -> Writer:
        """A writer that writes the rows of these files, oldest first, to `count` buckets."""
        settings = WriterSettings.of(self._schema, buckets=count, compacts=True, memory=self._root.env.memory)
        with Writer(self._files, settings) as writer:
            if writer.base != Base.of(self._snapshot):
                raise CommitConflictError("others committed while waiting rows were published", table=self._root.path)
            writer._count_by(tally)
            for entry in entries:
                self._replay(entry, writer, tally)
        return writer

    def _replay(self, entry: ManifestEntry, writer: Writer, tally: ProgressCounter) -> None:
        files, fields = self._files.bucket(entry.partition, entry.bucket), (KIND_FIELD, *self._schema.fields)
        for batch in count_batches(files.stored_rows(entry.file, fields), tally):
            kinds = batch.column(VALUE_KIND)
            writer.write_rows(batch.drop_columns([VALUE_KIND]), kinds if numpy_values(kinds).any() else None)

    # -- publishing -------------------------------------------------------------------------------------------------

    def _publish(self, buckets: Sequence[BucketChanges]) -> CommitResult:
        author = Author(user=self._root.env.ids.uuid(), identifier=BATCH_COMMIT_IDENTIFIER)
        attempts = Attempts(self._files, author)
        proposal = _Publication(self._snapshot, self._waiting, self._real, buckets)
        done = attempts.publish(lambda state: plan(proposal, state))
        assert not isinstance(done, Already)
        adds, number = done.part.adds, SnapshotId.of(done.snapshot)
        return CommitResult(
            snapshot_id=number, snapshot_ids=(number,), before=SnapshotId.of(done.parent),
            row_count=sum(entry.file.row_count for entry in adds), file_count=len(adds), attempts=attempts.count,
        )  # fmt: skip


class _Publication:
    """Proposes real buckets in place of postponed rows. Attempts do not change its state."""

    def __init__(
        self,
        snapshot: Snapshot,
        waiting: Sequence[ManifestEntry],
        real: Sequence[ManifestEntry],
        buckets: Sequence[BucketChanges],
    ) -> None:
        """`waiting`, `real`: live files of `snapshot` in the affected partitions."""
        self._snapshot = snapshot
        self._waiting = waiting
        self._real = real
        self._buckets = buckets
        self.requirements = (self._check_unchanged,)

    def part(self, state: State) -> SnapshotDelta:
        deletes = [msgspec.structs.replace(entry, kind=FileKind.DELETE) for entry in self._waiting]
        adds: list[ManifestEntry] = []
        changelog: list[ManifestEntry] = []
        for bucket in self._buckets:
            gone, come = replacement(bucket)
            deletes += gone
            adds += come
            changelogs = (*bucket.written.changelog, *bucket.compacted.changelog)
            changelog += entries_of(bucket, FileKind.ADD, changelogs)
        part = SnapshotDelta(
            kind=CommitKind.COMPACT, deletes=tuple(deletes), adds=tuple(adds), changelog=tuple(changelog)
        )
        changes = compacted_index(self._buckets)
        return (
            msgspec.structs.replace(part, index=index_after(state.index, changes, by_bucket=True)) if changes else part
        )

    def _check_unchanged(self, state: State) -> Conflict | None:
        """Check that the postponed files still exist, and that their partitions' buckets are unchanged."""
        if state.latest is None:
            return Conflict("the snapshots of the table no longer exist")
        if state.latest == self._snapshot:
            return None
        live = state.live(PartitionChoice.of_rows({entry.partition for entry in self._waiting}))
        now = {identifier(entry) for entry in live}
        if any(identifier(entry) not in now for entry in self._waiting):
            return Conflict("others published the waiting rows")
        real = {identifier(entry) for entry in live if entry.bucket != POSTPONE_BUCKET}
        if real != {identifier(entry) for entry in self._real}:
            return Conflict("others wrote to the buckets that waiting rows were written to")
        return None


def bucket_counts(
    options: Options, real: Iterable[ManifestEntry], waiting: Iterable[ManifestEntry]
) -> dict[bytes, int]:
    """The number of buckets of each partition with postponed files, existing or new. Pure.

    Raises: OptionError for numbers below 1.
    """
    known = {entry.partition: entry.total_buckets for entry in real if entry.total_buckets > 0}
    default = options.find_int("postpone.default-bucket-num")
    target_rows = options.find_int("postpone.target-row-num-per-bucket")
    target_bytes = options.get_memory("postpone.target-size-per-bucket")
    _check_positive("postpone.default-bucket-num", default)
    _check_positive("postpone.target-row-num-per-bucket", target_rows)
    _check_positive("postpone.target-size-per-bucket", target_bytes)
    amounts: dict[bytes, int] = {}
    for entry in waiting:
        amount = entry.file.size_bytes if target_rows is None else entry.file.row_count
        amounts[entry.partition] = amounts.get(entry.partition, 0) + amount
    target = target_bytes if target_rows is None else target_rows
    return {
        partition: known.get(partition) or default or max(1, -(-amount // target))
        for partition, amount in amounts.items()
    }


def replacement(bucket: BucketChanges) -> tuple[list[ManifestEntry], list[ManifestEntry]]:
    """The deleted and added entries of one bucket: new files count as results of the compaction. Pure."""
    new = {file.name for file in bucket.written.added}
    compacted = {file.name for file in bucket.compacted.deleted}
    gone = [file for file in bucket.compacted.deleted if file.name not in new]
    come = [file for file in bucket.written.added if file.name not in compacted]
    return entries_of(bucket, FileKind.DELETE, gone), entries_of(bucket, FileKind.ADD, [*come, *bucket.compacted.added])


def _obsolete(bucket: BucketChanges) -> list[DataFile]:
    """New files that were compacted immediately."""
    after = {file.name for file in bucket.compacted.added}
    compacted = {file.name for file in bucket.compacted.deleted} - after
    return [file for file in bucket.written.added if file.name in compacted]


def _check_positive(name: str, value: int | None) -> None:
    if value is not None and value < 1:
        raise OptionError(f"option {name!r} is {value}; it must be at least 1", option=name, value=str(value))
