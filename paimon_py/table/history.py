"""History methods of `Table`: tags, rollback, expiry."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

from paimon_py.arguments import check_flag, check_progress, way_of
from paimon_py.commit.result import CommitResult
from paimon_py.errors import SnapshotNotFoundError, UsageError
from paimon_py.executors.executor import Executor, require_executor
from paimon_py.maintain.cleanup.expired import ExpiredChangelogs, ExpiredSnapshots, RolledBack
from paimon_py.spec.commit_label import CommitLabel
from paimon_py.spec.layout import check_name
from paimon_py.spec.snapshot import Snapshot, SnapshotId
from paimon_py.table.snapshots import Tag
from paimon_py.table.verbs import TableVerbs, at_table_door, commits, cuts_history, reads


@at_table_door
class TableKeeping(TableVerbs):
    """Methods of `Table` that retain states of the table, roll back to one, and expire old ones."""

    # -- tags ---------------------------------------------------------------------------------------------------------

    def create_tag(self, name: str, snapshot_id: int | None = None, *, retain: timedelta | str | None = None) -> Tag:
        """Tag a snapshot (default: the latest); expiry does not delete tagged snapshots.

        Args:
            snapshot_id: the snapshot; it may have expired if another tag retains it.
            retain: `expire_tags` deletes the tag after this time, an age or a string such as "7d"; None: after
                `tag.default-time-retained`, or never.

        Raises:
            UsageError: the name is unsafe, the table is empty, or `retain` is not a duration.
            AlreadyExistsError: a tag of this name exists.
            SnapshotNotFoundError: the snapshot does not exist.
        """
        from paimon_py.maintain.tags import make_tag

        value = self._to_tag(name, snapshot_id)
        return Tag(self._root, make_tag(self._newest_table, name, value, _kept_for(retain)))

    def replace_tag(self, name: str, snapshot_id: int | None = None, *, retain: timedelta | str | None = None) -> Tag:
        """Move a tag to another snapshot (default: the latest), atomically for readers.

        If the snapshot that it referenced before has expired, the files that only the tag retained are deleted.

        Args:
            snapshot_id, retain: as in `create_tag`; the retention of the old tag is ignored.

        Raises:
            TagNotFoundError: the tag does not exist.
            SnapshotNotFoundError: the snapshot does not exist.
            UsageError: as `create_tag`
        """
        from paimon_py.maintain.tags import replace_tag

        value = self._to_tag(name, snapshot_id)
        return Tag(self._root, replace_tag(self._newest_table, name, value, _kept_for(retain)))

    def rename_tag(self, name: str, new_name: str) -> Tag:
        """Rename a tag. If the process is interrupted, the tag may exist under both names: call the method again.

        Raises:
            TagNotFoundError: the tag `name` does not exist.
            AlreadyExistsError: another tag `new_name` exists.
            UsageError: the name is unsafe.
        """
        from paimon_py.maintain.tags import rename_tag

        check_name("tag", new_name)
        return Tag(self._root, rename_tag(self._newest_table, name, new_name))

    def _to_tag(self, name: str, snapshot_id: int | None) -> Snapshot:
        """The snapshot to tag."""
        check_name("tag", name)
        value = self._root.latest() if snapshot_id is None else self._find_kept(snapshot_id)
        if value is None:
            raise UsageError(f"{self._root.path} has no snapshot to tag yet")
        return value

    @reads
    def tags(self) -> list[Tag]:
        """All tags, by name."""
        return [Tag(self._root, value) for value in self._root.check_listed(self._root.tags.list())]

    def delete_tag(self, name: str) -> None:
        """Delete a tag and, if its snapshot has expired, the files that only the tag retained.

        Cost: if the snapshot has expired, the manifests of all tags, and of the oldest and the latest snapshot.
        Raises:
            TagNotFoundError: the tag does not exist.
            StorageError, CorruptionError: metadata that may reference a file cannot be read; nothing was deleted.
        """
        from paimon_py.maintain.tags import delete_tag

        delete_tag(self._newest_table, self._root.tags.get(name))

    def expire_tags(
        self,
        *,
        older_than: datetime | timedelta | str | int | None = None,
        progress: Callable[[int, int, str], object] | None = None,
    ) -> list[str]:
        """Delete tags whose retention has ended, and the files that only they retained.

        Args:
            older_than: also delete tags created before this time, or longer ago than this age; for tags without
                retention, the time when their file was written counts.
            progress: called with the number of tags checked, the total, and "tags".

        Returns: the names of the deleted tags.

        Raises: as `delete_tag`
        """
        from paimon_py.maintain.tags import expire_tags

        check_progress(progress)
        return self._root.check_listed(expire_tags(self._newest_table, older_than, progress))

    # -- going back ---------------------------------------------------------------------------------------------------

    @cuts_history
    def rollback_to(self, target: int | str | datetime) -> RolledBack:
        """Roll the table back to an older state: deletes all later snapshots, changelogs and tags.

        Their files become orphans. Streams that had read further detect the rollback and fail, and so do commits of
        changes that need deleted files; changes that only add rows can still be committed. Consumers that have read
        further cause a warning: reset them.

        Args:
            target: a snapshot id, the name of a tag (its snapshot may have expired), or a time: the latest snapshot at
                that time.

        Returns: the snapshot that is now the latest, the deleted snapshots and tags, and consumers to reset.

        Raises:
            SnapshotNotFoundError, SnapshotExpiredError, TagNotFoundError: the state does not exist.
        """
        from paimon_py.maintain.level_rules import warn_of_rules_before
        from paimon_py.maintain.observers import notify_move
        from paimon_py.maintain.rollback import rollback, rollback_event

        snapshot = self._target(target)
        done = rollback(self._root, snapshot, tag=target if isinstance(target, str) else None)
        said = notify_move(self._newest_table, lambda: rollback_event(self._root, done))
        done = msgspec.structs.replace(done, warnings=said)
        warn_of_rules_before(self._root, snapshot, self._rules)
        return done

    @commits
    def restore(
        self, target: int | str | datetime, *, user: str | None = None, identifier: int | None = None,
        progress: Callable[[int, int, str], object] | None = None,
    ) -> CommitResult:  # fmt: skip
        """Bring the rows of an older state back in a new commit; unlike `rollback_to`, no history is deleted.

        `table.restore(result.before)` undoes it. The rows keep the current columns: those added since the older state
        are NULL. Partitions whose files are the same as then are not written. Rows that others commit until this commit
        are replaced, too, and are part of `result.before`.

        Args:
            target: a snapshot id, the name of a tag, or a time, as in `rollback_to`; 0 is the empty table.
            user, identifier: make the call repeatable, as in `write_arrow`.
            progress: called with the number of rows read, their total, and "rows".

        Returns: the commit; `snapshot_id` is None if the table is in this state already.

        Cost: reads and writes all rows of the partitions that differ.
        Raises:
            SnapshotNotFoundError, SnapshotExpiredError, TagNotFoundError: the state does not exist.
            UnsupportedError: the table has BLOB columns or postponed buckets.
            CommitConflictError: others changed further partitions in every attempt.
        """
        from paimon_py.table.restoring import restore

        check_progress(progress)
        snapshot = None if type(target) is not str and target == 0 else self._target(target)
        return restore(self._open_table, snapshot, label=CommitLabel(user, identifier), progress=progress)

    def _target(self, target: int | str | datetime) -> Snapshot:
        """The snapshot to roll back to."""
        from paimon_py.scan.moments import as_moment, millis_of

        if isinstance(target, str):
            return self._root.tags.get(target).snapshot
        moment = as_moment("target", target)
        if isinstance(moment, datetime):
            return self._root.snapshots.by_time(millis_of("target", moment))
        if not isinstance(target, int) or isinstance(target, bool):
            raise UsageError(
                f"target is a snapshot id, the name of a tag or a datetime, not {target!r}{way_of(target)}"
            )
        return self._find_kept(target)

    # -- expiry -------------------------------------------------------------------------------------------------------

    @cuts_history
    def expire_snapshots(
        self,
        *,
        retain_min: int | None = None,
        retain_max: int | None = None,
        older_than: datetime | timedelta | str | int | None = None,
        max_deletes: int | None = None,
        dry_run: bool = False,
        progress: Callable[[int, int, str], object] | None = None,
        executor: Executor | None = None,
    ) -> ExpiredSnapshots:
        """Expire old snapshots and delete the files that only they reference. Arguments default to the table's options.

        Tags, branches and consumers protect what they reference; changelogs remain where the options `changelog.*`
        retain them longer. A crash may leave orphan files, but never a snapshot with missing files.

        Args:
            retain_min: the minimum number of snapshots to retain (`snapshot.num-retained.min`).
            retain_max: the maximum number of snapshots to retain; older ones expire regardless of their age
                (`snapshot.num-retained.max`).
            older_than: between these limits, a snapshot expires if it is older than this age, or if its successor was
                committed before this time (`snapshot.time-retained`).
            max_deletes: the maximum number of snapshots to expire in this call (`snapshot.expire.limit`).
            dry_run: delete nothing; report what would be deleted.
            progress: called with the number checked, the total, and "snapshots"; then, while files are deleted, with
                "files".
            executor: deletes files, see `paimon_py.executors`; None: this process.

        Returns: what expired, what remains, and what protects the oldest remaining snapshot.

        Cost: two or three gets for each expired snapshot, and a delete for each file.
        Raises:
            UsageError: the numbers contradict each other.
            StorageError, CorruptionError: metadata that may reference a file cannot be read; nothing was deleted.
        """
        from paimon_py.maintain.cleanup.expire_snapshots import expire_snapshots
        from paimon_py.maintain.cleanup.retention import retention_of

        retention = retention_of(
            self._newest.options, self._root.env.clock.millis(), "snapshot", count_min=retain_min,
            count_max=retain_max, older_than=older_than, limit=max_deletes,
        )  # fmt: skip
        check_progress(progress)
        check_flag("dry_run", dry_run)
        require_executor(executor)
        return expire_snapshots(
            self._newest_table, retention, dry_run=dry_run, progress=progress, executor=executor
        )

    def expire_changelogs(
        self,
        *,
        retain_min: int | None = None,
        retain_max: int | None = None,
        older_than: datetime | timedelta | str | int | None = None,
        max_deletes: int | None = None,
        dry_run: bool = False,
        progress: Callable[[int, int, str], object] | None = None,
    ) -> ExpiredChangelogs:
        """Expire changelogs that outlived their snapshots, and delete the files that only they reference.

        Changelogs outlive snapshots where the options `changelog.*` retain more of them, or retain them longer, than
        the options `snapshot.*` retain snapshots. Arguments default to the table's options. The newest changelog is
        kept.

        Args:
            retain_min: retain the changes of at least this many of the newest snapshots (`changelog.num-retained.min`).
            retain_max: retain the changes of at most this many of the newest snapshots, regardless of their age
                (`changelog.num-retained.max`).
            older_than: between these limits, a changelog expires if it is older than this age, or was created before
                this time (`changelog.time-retained`).
            max_deletes: the maximum number of changelogs to expire in this call (`snapshot.expire.limit`).
            dry_run: delete nothing; report what would be deleted.
            progress: called with the number of changelogs checked, with "changelogs"; then with the number of files
                deleted, with "files".

        Returns: what expired, what remains, and what protects the oldest remaining changelog.

        Raises:
            UsageError: the numbers contradict each other.
            StorageError, CorruptionError: metadata that may reference a file cannot be read; nothing was deleted.
        """
        from paimon_py.maintain.cleanup.expire_changelogs import expire_changelogs
        from paimon_py.maintain.cleanup.retention import retention_of

        retention = retention_of(
            self._newest.options, self._root.env.clock.millis(), "changelog", count_min=retain_min,
            count_max=retain_max, older_than=older_than, limit=max_deletes,
        )  # fmt: skip
        check_progress(progress)
        check_flag("dry_run", dry_run)
        return expire_changelogs(self._newest_table, retention, dry_run=dry_run, progress=progress)

    def _find_kept(self, snapshot_id: int) -> Snapshot:
        """A snapshot, including an expired one that a tag or an unfinished rollback still retains."""
        try:
            return self._root.snapshots.get(snapshot_id)
        except SnapshotNotFoundError:
            tags, is_cut = self._root.tags.beside_cut()
            cut = self._root.cuts.find() if is_cut else None
            for snapshot in (*(() if cut is None else cut.snapshots), *(tag.snapshot for tag in tags)):
                if SnapshotId.of(snapshot).is_same(snapshot_id):
                    return snapshot
            raise


def _kept_for(retain: timedelta | str | None) -> timedelta | None:
    """The retention of a tag.

    Raises: UsageError if it is not an age above 0.
    """
    from paimon_py.scan.moments import as_age

    age = as_age(retain)
    if age is not None and (not isinstance(age, timedelta) or age <= timedelta(0)):
        raise UsageError(f"retain must be a timedelta above 0 or a string such as '7d', not {retain!r}")
    return age
