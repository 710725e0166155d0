"""The verbs of a table's history: tags, rollback, expiry."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

from paimon_py.arguments import check_flag, check_progress, way_of
from paimon_py.errors import SnapshotNotFoundError, UsageError
from paimon_py.executors.executor import Executor, require_executor
from paimon_py.maintain.cleanup.expired import ExpiredChangelogs, ExpiredSnapshots, RolledBack
from paimon_py.spec.layout import check_name
from paimon_py.spec.snapshot import Snapshot
from paimon_py.table.snapshots import Tag
from paimon_py.table.verbs import TableVerbs, at_table_door, cuts_history, reads


@at_table_door
class TableKeeping(TableVerbs):
    """What `Table` offers to keep states of the table, to go back to one, and to let old ones go."""

    # -- tags ---------------------------------------------------------------------------------------------------------

    def create_tag(self, name: str, snapshot_id: int | None = None, *, retain: timedelta | str | None = None) -> Tag:
        """Keep a snapshot (default: the latest) under a name; expiry spares it.

        Args:
            snapshot_id: the snapshot, also one that has expired if another tag keeps it.
            retain: `expire_tags` deletes the tag after this time, an age or a text such as "7d"; None: after
                `tag.default-time-retained`, or never.

        Raises:
            UsageError: a hostile name, or an empty table, or a time that is not a time.
            AlreadyExistsError: there is a tag of this name.
            SnapshotNotFoundError: there is no such snapshot.
        """
        from paimon_py.maintain.tags import make_tag

        value = self._to_tag(name, snapshot_id)
        return Tag(self._root, make_tag(self._newest_table, name, value, _kept_for(retain)))

    def replace_tag(self, name: str, snapshot_id: int | None = None, *, retain: timedelta | str | None = None) -> Tag:
        """Let a tag name another snapshot (default: the latest), in one step for readers.

        If the snapshot that it named has expired, the files that only the tag kept are deleted.

        Args:
            snapshot_id, retain: as of `create_tag`; how long the old tag was kept does not matter.

        Raises:
            TagNotFoundError: there is no such tag.
            SnapshotNotFoundError: there is no such snapshot.
            UsageError: as `create_tag`
        """
        from paimon_py.maintain.tags import replace_tag

        value = self._to_tag(name, snapshot_id)
        return Tag(self._root, replace_tag(self._newest_table, name, value, _kept_for(retain)))

    def rename_tag(self, name: str, new_name: str) -> Tag:
        """Give a tag another name. If the process ends on the way, the tag may have both: call again.

        Raises:
            TagNotFoundError: there is no tag `name`.
            AlreadyExistsError: there is another tag `new_name`.
            UsageError: a hostile name.
        """
        from paimon_py.maintain.tags import rename_tag

        check_name("tag", new_name)
        return Tag(self._root, rename_tag(self._newest_table, name, new_name))

    def _to_tag(self, name: str, snapshot_id: int | None) -> Snapshot:
        """The snapshot that is to have a name."""
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
        """Remove a tag, and if its snapshot has expired, the files that only the tag kept.

        Cost: without the snapshot the manifests of all tags, and of the oldest and the latest snapshot.
        Raises:
            TagNotFoundError: there is no such tag.
            StorageError, CorruptionError: something that may name a file cannot be read; nothing was deleted.
        """
        from paimon_py.maintain.tags import delete_tag

        delete_tag(self._newest_table, self._root.tags.get(name))

    def expire_tags(
        self,
        *,
        older_than: datetime | timedelta | str | int | None = None,
        progress: Callable[[int, int, str], object] | None = None,
    ) -> list[str]:
        """Remove the tags whose time is over, and the files that only they kept.

        Args:
            older_than: also tags that were made before this time, or longer ago than this; those without retention
                count from when their file was written.
            progress: called with how many tags were looked at, how many there are, and "tags".

        Returns: the names of the tags that went.

        Raises: as `delete_tag`
        """
        from paimon_py.maintain.tags import expire_tags

        check_progress(progress)
        return self._root.check_listed(expire_tags(self._newest_table, older_than, progress))

    # -- going back ---------------------------------------------------------------------------------------------------

    @cuts_history
    def rollback_to(self, target: int | str | datetime) -> RolledBack:
        """Make an older state the latest one: all snapshots, changelogs and tags after it go; their files are orphans.

        Streams that had read further notice and are refused, and so are changes that need files which went; changes
        that add rows alone may still be committed. Consumers that have read further are warned of: reset them.

        Args:
            target: a snapshot id, the name of a tag (its snapshot may have expired), or a time: what was the latest
                snapshot then.

        Returns: the snapshot that is the latest one now, the snapshots and tags that went, and consumers to reset.

        Raises:
            SnapshotNotFoundError, SnapshotExpiredError, TagNotFoundError: there is no such state.
        """
        from paimon_py.maintain.level_rules import warn_of_rules_before
        from paimon_py.maintain.observers import tell_moved
        from paimon_py.maintain.rollback import rollback, rollback_event

        snapshot = self._target(target)
        done = rollback(self._root, snapshot, tag=target if isinstance(target, str) else None)
        said = tell_moved(self._newest_table, lambda: rollback_event(self._root, done))
        done = msgspec.structs.replace(done, warnings=said)
        warn_of_rules_before(self._root, snapshot, self._rules)
        return done

    def _target(self, target: int | str | datetime) -> Snapshot:
        """The snapshot that a call goes back to."""
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
        """Let old snapshots go, and the files that only they name. What is not said is what the table's options say.

        Tags, branches and consumers keep what they name; changelogs stay where the options `changelog.*` keep them
        longer. Whoever dies on the way leaves files that nobody names, never a snapshot without its files.

        Args:
            retain_min: so many of the newest snapshots stay (`snapshot.num-retained.min`).
            retain_max: older snapshots than so many go whatever their age (`snapshot.num-retained.max`).
            older_than: the others go if they are older than this age, or were followed before this moment
                (`snapshot.time-retained`).
            max_deletes: the most snapshots that go in this call (`snapshot.expire.limit`).
            dry_run: delete nothing, say what would go.
            progress: called with how many were looked at, how many will be, and "snapshots"; then, while files are
                deleted, with "files".
            executor: who deletes files, see `paimon_py.executors`; None: this process.

        Returns: what went, what is left, and what keeps the oldest snapshot that is left.

        Cost: two or three gets for each snapshot that goes, and a delete for each file.
        Raises:
            UsageError: the numbers contradict each other.
            StorageError, CorruptionError: something that may name a file cannot be read; nothing was deleted.
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
        """Let changelogs go that outlived their snapshots, and the files that only they name.

        Changelogs outlive snapshots where the options `changelog.*` keep more of them, or keep them longer, than the
        options `snapshot.*` keep snapshots. What is not said is what the table's options say. The newest one stays.

        Args:
            retain_min: the changes of so many of the newest snapshots stay (`changelog.num-retained.min`).
            retain_max: changes of older snapshots than so many go whatever their age (`changelog.num-retained.max`).
            older_than: the others go if they are older than this age, or were made before this moment
                (`changelog.time-retained`).
            max_deletes: the most changelogs that go in this call (`snapshot.expire.limit`).
            dry_run: delete nothing, say what would go.
            progress: called with how many changelogs are looked at, with "changelogs"; then with how many files are
                deleted, with "files".

        Returns: what went, what is left, and what keeps the oldest changelog that is left.

        Raises:
            UsageError: the numbers contradict each other.
            StorageError, CorruptionError: something that may name a file cannot be read; nothing was deleted.
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
        """A snapshot, or what a tag keeps of one that has expired, or a rollback that was left in the middle."""
        try:
            return self._root.snapshots.get(snapshot_id)
        except SnapshotNotFoundError:
            tags, is_cut = self._root.tags.beside_cut()
            cut = self._root.cuts.find() if is_cut else None
            for snapshot in (*(() if cut is None else cut.snapshots), *(tag.snapshot for tag in tags)):
                if snapshot.id == snapshot_id:
                    return snapshot
            raise


def _kept_for(retain: timedelta | str | None) -> timedelta | None:
    """How long a tag is kept.

    Raises: UsageError for what is not an age above 0.
    """
    from paimon_py.scan.moments import as_age

    age = as_age(retain)
    if age is not None and (not isinstance(age, timedelta) or age <= timedelta(0)):
        raise UsageError(f"retain is how long the tag is kept, a timedelta above 0 or a text like '7d', not {retain!r}")
    return age
