"""Automatic maintenance after commits, by table options: notifies observers, creates tags, marks partitions as done,
and expires tags, partitions and snapshots.

A commit with nothing to expire makes no store requests: earlier observations are cached
(`metadata/maintenance_state.py`), with the time of the next due work. The commit is already published: failures here
are reported and never replace its result.

Source: Java `TableCommitImpl.maintain`, `AbstractFileStoreTable.newCommit`; Spark `WriteHelper.postCommit`;
Flink `PartitionMarkDoneListener`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from paimon_py.errors import PaimonError
from paimon_py.logs import warn
from paimon_py.maintain.auto_tags import tag_batch, tag_by_time
from paimon_py.maintain.cleanup.expire_changelogs import expire_changelogs
from paimon_py.maintain.cleanup.expire_consumers import expire_consumers
from paimon_py.maintain.cleanup.expire_partitions import PartitionExpiry, expire_partitions
from paimon_py.maintain.cleanup.expire_snapshots import expire_snapshots
from paimon_py.maintain.cleanup.retention import RetainedChanges, Retention, may_go, retained_changes, retention_of
from paimon_py.maintain.mark_done import mark_written
from paimon_py.maintain.observers import Result, notify
from paimon_py.maintain.tags import expire_tags_by_commit
from paimon_py.metadata.maintenance_state import Oldest
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.options import Options
from paimon_py.spec.snapshot import Snapshot
from paimon_py.spec.tag_periods import TagRule


def run_auto_maintenance(table: OpenTable, result: Result, *, of_batch: bool = False) -> Result:
    """The result of a commit, after observers were notified and the configured maintenance was run.

    Tables with the option `write-only` skip all maintenance except tags and marks of batches. With
    `snapshot.expire.execution-mode` = `async` the maintenance of streams runs while the caller continues.

    The current options of the table apply, not those from when the table object was opened.

    Args:
        of_batch: the committed rows belong to no stream of commits.

    Cost: none while nothing is due; for the first commit of a table object a list, and a few gets once the table has
        more snapshots than `snapshot.num-retained.min`.
    Raises: PaimonWarning where warnings are errors, if maintenance or an observer fails; the commit stays published.
    """
    schema = table.schema
    latest = result.snapshot_id
    if latest is None:
        return result
    schema = table.root.newest(schema)
    result = notify(table.under(schema), result)
    care = _Care(table.under(schema), latest, of_batch=of_batch)
    if of_batch and Options(schema.options).get_bool("partition.end-input-to-done"):
        care.mark(result.snapshot_ids)
    if not of_batch and Options(schema.options).get_enum("snapshot.expire.execution-mode") == "async":
        care.begin()
    else:
        care.take()
    return result


class _Care:
    """The maintenance after one commit."""

    def __init__(self, table: OpenTable, latest: int, *, of_batch: bool) -> None:
        """`latest`: the newest snapshot of the commit."""
        self._table = table
        self._root = table.root
        self._schema = table.schema
        self._options = table.options
        self._latest = latest
        self._of_batch = of_batch
        self._memory = table.root.maintenance

    def begin(self) -> None:
        """Run the maintenance in the background, unless that of an earlier commit is still running."""
        if not self._memory.at_work:
            self._memory.at_work = True
            self._root.env.pool.behind(self._run)

    def _run(self) -> None:
        try:
            self.take()
        finally:
            self._memory.at_work = False

    def take(self) -> None:
        """Do what is due. Create tags first, since they protect snapshots; expire consumers before snapshots."""
        if not self._options.get_bool("write-only"):
            self._attempt("no tag was created", self._tag)
            self._attempt("tags did not expire", self._tags)
            self._attempt("partitions did not expire", self._partitions)
            self._attempt("consumers did not expire", self._consumers)
            self._attempt("snapshots did not expire", self._snapshots)
        if self._of_batch and self._options.get_enum("tag.automatic-creation") == "batch":
            self._attempt("no tag was created", lambda: tag_batch(self._table))

    def mark(self, snapshot_ids: Sequence[int]) -> None:
        """Mark the partitions that received files in these snapshots as done."""
        duty = lambda: mark_written(self._table, snapshot_ids)  # noqa: E731
        self._attempt("partitions were not marked as done", duty)

    def _attempt(self, what: str, duty: Callable[[], None]) -> None:
        try:
            duty()
        except PaimonError as error:
            done = f"{self._root.path}: snapshot {self._latest} was committed"
            warn(f"{done}, but {what}: {error}; a later commit tries again")

    def _tag(self) -> None:
        rule = TagRule.of(self._options)
        if rule is not None:
            tag_by_time(self._table, rule, self._latest)

    def _tags(self) -> None:
        if self._options.get_bool("tag.time-expire-enabled"):
            expire_tags_by_commit(self._table, is_first=self._latest == 1)

    def _partitions(self) -> None:
        """Check for expired partitions once per interval, starting at a random offset."""
        env, interval = self._root.env, self._options.get_duration("partition.expiration-check-interval")
        expiry = PartitionExpiry.of(self._schema, self._schema.options, env.clock)
        if expiry is None:
            return
        now, last = env.clock.millis(), self._memory.partitions_checked
        if last is None:
            last = self._memory.partitions_checked = now - int(interval * env.ids.jitter())
        at_once = self._of_batch and self._options.get_bool("end-input.check-partition-expire")
        if at_once or interval == 0 or now > last + interval:
            done = expire_partitions(self._table, expiry, dry_run=False)
            self._memory.partitions_checked = now
            self._latest = max(self._latest, *done.snapshot_ids, 0)

    def _consumers(self) -> None:
        life = self._options.find_duration("consumer.expiration-time")
        now, due = self._root.env.clock.millis(), self._memory.consumers_due
        if life is None or (due is not None and now < due <= now + life + 1):
            return
        self._memory.consumers_due = expire_consumers(self._root, life).due_millis

    def _snapshots(self) -> None:
        retention = self._retention("snapshot")
        is_due, seen = self._is_due(retention)
        went = is_due and self._expire(retention, seen)
        lasting = retained_changes(self._schema.options)
        if lasting is not RetainedChanges.NOTHING:
            self._changelogs(self._retention("changelog"), went=went)

    def _retention(self, what: str) -> Retention:
        return retention_of(self._schema.options, self._root.env.clock.millis(), what)

    def _is_due(self, retention: Retention) -> tuple[bool, Snapshot | None]:
        """Whether retention allows the oldest snapshot to expire. Uses cached values where possible.

        Returns the snapshot after the oldest one too, if it was read.
        """
        if self._latest <= retention.count_min:
            return False, None
        memory, snapshots = self._memory, self._root.snapshots
        if memory.snapshot is None or memory.snapshot.id > self._latest:
            earliest, following = snapshots.oldest_two()
            memory.snapshot = Oldest(earliest or self._latest, None if following is None else following.time_millis)
        oldest = memory.snapshot
        answer = may_go(oldest.id, oldest.millis, self._latest, retention)
        if answer is not None:
            return answer, None
        following = snapshots.find(oldest.id + 1)
        if following is None:  # another process expired it
            return True, None
        memory.snapshot = Oldest(oldest.id, following.time_millis)
        return bool(may_go(oldest.id, following.time_millis, self._latest, retention)), following

    def _expire(self, retention: Retention, seen: Snapshot | None) -> bool:
        """Expire snapshots. Returns whether any were deleted."""
        done = expire_snapshots(self._table, retention, dry_run=False, seen=seen)
        remembered = self._memory.snapshot
        if done.earliest_id is not None and (remembered is None or remembered.id != done.earliest_id):
            self._memory.snapshot = Oldest(done.earliest_id)
        return bool(done.snapshot_ids)

    def _changelogs(self, retention: Retention, *, went: bool) -> None:
        """Expire changelogs after snapshots were deleted, or if the oldest cached one may expire."""
        if self._latest <= retention.count_min:
            return
        oldest = self._memory.changelog
        if not went and oldest is not None and may_go(oldest.id, oldest.millis, self._latest, retention) is False:
            return
        done = expire_changelogs(self._table, retention, dry_run=False)
        earliest = None if done.earliest_id == done.latest_id else done.earliest_id
        found = None if earliest is None else self._root.changelogs.find(earliest)
        self._memory.changelog = Oldest(self._latest) if found is None else Oldest(found.id, found.time_millis)
