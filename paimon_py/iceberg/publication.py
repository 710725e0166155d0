"""Publishes Iceberg metadata: after a commit, a change of tags, or a rollback, and from scratch.

Every publication can be repeated, and begins with a look at the directory: a version is valid only if it was made for
the very snapshot that the table has under its number. So the next publication replaces a version of a history that was
rolled back or of another writer, and makes a version that is missing because a process died.

The order of writing is: manifests, list, version, hint, the Iceberg catalog if there is one; old files are deleted
last. Readers see either the old or the new snapshot. If the catalog cannot be updated, nothing is deleted, because its
readers still need the files.

Several publishers can work on one table at the same time. Each makes its version from the previous one, and makes that
one, too, if it is missing. Versions are created exclusively, and the slower publisher continues from the existing one.
Only the publisher of the latest snapshot changes what readers find, and deletes files. A publisher that finds later
that its snapshot is no longer the latest one shows readers the newest version.

Source: docs/format.md §25.8, §25.9; Java 2.1 `IcebergCommitCallback`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from functools import partial
from typing import Any, Literal

import msgspec

from paimon_py.errors import CorruptionError, PaimonError
from paimon_py.iceberg.bases import BaseFinder, VersionBase
from paimon_py.iceberg.catalogs.catalog import CatalogedVersion
from paimon_py.iceberg.catalogs.open import open_catalog
from paimon_py.iceberg.cleanup import VersionCleanup
from paimon_py.iceberg.directory import IcebergDirectory
from paimon_py.iceberg.early_versions import EarlyVersion, EarlyVersions
from paimon_py.iceberg.expiry import find_expired
from paimon_py.iceberg.found_versions import FoundVersions
from paimon_py.iceberg.history import TableHistory
from paimon_py.iceberg.metadata import (
    IcebergSnapshot,
    IcebergVersion,
    KnownVersion,
    encode,
    refs_of,
    stands_for,
    with_tags,
)
from paimon_py.iceberg.versions import VersionMaker, WholeVersion, with_schemas
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.iceberg import iceberg_directory, iceberg_options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Snapshot, TagValue
from paimon_py.storage.store import FileMissingError

_ATTEMPTS = 10
"""The maximum number of times that a publication starts again because other publishers changed the versions."""


class PublishedVersion(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a publication.

    Attributes:
        version: the version of the Iceberg metadata, which is the id of the Paimon snapshot.
        path: the metadata file of the version.
        made: "next": from the previous version; "anew": from the table alone; "restored": from a version that was
            written before a rollback; "there": the version already existed.
        notes: messages for users of the Iceberg table.
    """

    version: int
    path: str
    made: Literal["next", "anew", "restored", "there"]
    notes: tuple[str, ...] = ()


class IcebergPublisher:
    """Publishes the Iceberg metadata of one table, in the place and form that its options determine."""

    def __init__(self, table: OpenTable) -> None:
        """`table`: under its latest schema. Raises: OptionError"""
        self._table = table
        self._root = table.root
        self._schema = table.schema
        self._options = iceberg_options(table.schema)
        path = iceberg_directory(table.root.path, self._options)
        within = None if self._options.in_catalog else table.root.path
        self.directory = IcebergDirectory(table.root.store, path, table.root.env, within)
        self.catalog_error: PaimonError | None = None
        """The error with which the last update of the Iceberg catalog failed; None if it succeeded."""

        self._said: tuple[str, ...] = ()
        self._latest: Snapshot | None = None  # the snapshot that was the latest one while its version was written
        self._history = TableHistory(table.root, self.directory)
        self._bases = BaseFinder(table, self._options, self._restore)
        self.early = EarlyVersions(table, self.directory, self._options)
        self._cleanup = VersionCleanup(self.directory, table.schema, self._options, self._history)

    # -- the verbs -----------------------------------------------------------------------------------------------------

    def publish(
        self, snapshot: Snapshot, found: FoundVersions | None = None, early: EarlyVersion | None = None
    ) -> PublishedVersion:
        """Make the version of a committed snapshot, unless it or a later one exists.

        If another publisher is faster at any step, the publication starts again from the versions that now exist.

        Args:
            found: the contents of the directory, if they were read just before.
            early: a version that is published if its base is found; otherwise the caller discards it.

        Raises: SnapshotExpiredError, CorruptionError, UnsupportedError, StorageError
        """
        for is_last_attempt in (*[False] * _ATTEMPTS, True):
            found, self._latest = found or FoundVersions(self.directory), None
            newer = self._history.newest(found, above=snapshot.id)
            if newer is not None:
                return self._result(newer.number, "there")
            there = self._history.find(found, snapshot)
            if there is not None:
                self._finish(found, snapshot, there)
                return self._result(snapshot.id, "there")
            done = self._publish(found, snapshot, early, may_begin=is_last_attempt)
            if done is not None:
                return done
            found = early = None
        raise AssertionError("the last attempt makes the version from the table alone")

    def publish_anew(self, snapshot: Snapshot) -> PublishedVersion:
        """Make the version of the latest snapshot from the table alone, and replace an existing one; the uuid remains.

        The files of the replaced version remain for its readers until orphans are removed.

        Raises: as `publish`
        """
        found = FoundVersions(self.directory)
        newest = found.newest()
        uuid = self._root.env.ids.uuid() if newest is None else newest.uuid
        whole = WholeVersion(uuid=uuid, first_row_id=found.first_row_id(), top_levels=True)
        maker = self._maker(snapshot)
        value = self._whole(maker, whole)
        version = self._replace(IcebergVersion(snapshot.id, value), maker.writer.discard)
        self._finish(found, snapshot, version)
        return self._result(snapshot.id, "anew")

    def tags_changed(self) -> tuple[str, ...]:
        """Write the refs of the newest version again, in place. Returns: messages for users.

        A version that another publisher is about to write is written here, because that publisher may have read the
        tags before they changed.

        Raises: CorruptionError, StorageError
        """
        for _ in range(_ATTEMPTS):
            latest = self._root.snapshots.latest()
            if latest is None:
                break
            version = self.directory.version(latest.id)
            if version is None or not version.is_of(latest):
                if not self._history.shows_number(latest.id - 1):
                    break
                self.publish(latest)
                continue
            renewed = with_tags(version, self._root.tags.list())
            if renewed is not version:
                renewed = self._replace(renewed)
            self._update_catalog(renewed, latest)
            if not self._history.is_latest(latest):
                self._catch_up_with_others(latest)
            break
        said, self._said = self._said, ()
        return said

    def follow_move(self) -> PublishedVersion | None:
        """Follow the table after a rollback or fast-forward: publish its latest snapshot and delete the versions above.

        The version of a snapshot that is the latest one again is made from the versions above it, so that readers see
        the same rows as before, with the history up to that snapshot.

        Raises: as `publish`
        """
        done: PublishedVersion | None = None
        for _ in range(_ATTEMPTS):
            latest = self._root.snapshots.latest()
            if latest is None:
                return None
            found = FoundVersions(self.directory)
            there = self._history.find(found, latest)
            made: Literal["there", "restored"] = "there"
            if there is not None and there.current and _is_whole(self.directory, there.current, self._schema):
                version: IcebergVersion | None = self._without_gone(found, latest, there)
            else:
                version, made = self._restore(found, latest), "restored"
            if version is None:
                done = self._publish(found, latest, None, may_begin=True)
            else:
                if there is None or version.value != there.value:
                    version = self._replace(version)
                self._finish(found, latest, version)
                done = self._result(latest.id, made)
            if self._history.is_latest(latest):
                break
        return done

    # -- steps ---------------------------------------------------------------------------------------------------------

    def _publish(
        self, found: FoundVersions, snapshot: Snapshot, early: EarlyVersion | None, *, may_begin: bool
    ) -> PublishedVersion | None:
        """Make a snapshot's version from the previous one or the table alone; None if others changed the versions."""
        base = self._bases.find(found, snapshot)
        version = None if base is None else self._follow(found, base, snapshot, early)
        if version is None:
            if not may_begin and FoundVersions(self.directory).numbers != found.numbers:
                return None
            return self._begin(found, snapshot)
        there = found.get(snapshot.id)
        notes = _notes_on(there, self.directory.version_path(snapshot.id))
        self._finish(found, snapshot, version, replaced=there)
        return self._result(snapshot.id, "next", notes)

    def _follow(
        self, found: FoundVersions, base: VersionBase, snapshot: Snapshot, early: EarlyVersion | None
    ) -> IcebergVersion | None:
        """Write the missing versions before a snapshot, then its own version; None if the base cannot be used."""
        version, before = base.version, base.snapshot
        value: dict[str, Any] | None
        if version is not None and before is not None and base.is_restored:
            version = self._replace(version)
        for one in (*base.missing, snapshot):
            maker = self._maker(one)
            if one is snapshot and early is not None and early.take(version, before, found.names):
                maker, value = early.maker, early.value
            elif version is None or before is None:
                value = self._whole(maker, WholeVersion(uuid=self._root.env.ids.uuid()))
            else:
                value = self._next(maker, version, before)
            version = None if value is None else self._put(maker, one, value, replace=one.id in found.numbers)
            if version is None or not self._bases.continues(version, one):
                return None
            before = one
        return version

    def _begin(self, found: FoundVersions, snapshot: Snapshot) -> PublishedVersion:
        """Make a version from the table alone. The uuid remains if the version continues another one."""
        is_taken = snapshot.id in found.numbers
        there = found.get(snapshot.id)
        newest = found.newest() if is_taken or found.get(snapshot.id - 1) is not None else None
        keeps = newest is not None and newest.format_version == self._options.format_version and snapshot.id > 1
        uuid = newest.uuid if newest is not None and keeps else self._root.env.ids.uuid()
        first_row_id = found.first_row_id() if snapshot.id > 1 else 0
        maker, whole = self._maker(snapshot), WholeVersion(uuid=uuid, first_row_id=first_row_id)
        value = self._whole(maker, whole)
        version = self._put(maker, snapshot, value, replace=is_taken)
        if version is not None:
            is_stale = there is not None and not there.is_of(snapshot)
            self._finish(found, snapshot, version, replaced=there if is_stale else None)
        return self._result(snapshot.id, "anew", _notes_on(there, self.directory.version_path(snapshot.id)))

    def _next(self, maker: VersionMaker, base: IcebergVersion, before: Snapshot) -> dict[str, Any] | None:
        """The version that continues a base; None if files of the base are broken or missing, or the schemas differ."""
        now = self._root.env.clock.millis()
        gone = find_expired(base.snapshots, maker.snapshot.id, now, self._options)
        try:
            return maker.on(base, before, len(gone))
        except PaimonError as error:
            maker.writer.discard()
            is_broken = isinstance(error, (CorruptionError, FileMissingError))
            if not is_broken or not str(error.path or "").startswith(self.directory.path):
                raise
            return None

    def _restore(self, found: FoundVersions, snapshot: Snapshot) -> IcebergVersion | None:
        """The version of a snapshot, from the newest version that contains it; None without one with all its files."""
        for number in reversed(found.numbers):
            version = found.get(number)
            there = None if version is None else version.find(snapshot.id)
            if version is None or there is None or not stands_for(there, snapshot):
                continue
            if version.format_version != self._options.format_version or not version.lies_at(self._root.path):
                continue
            if _is_whole(self.directory, there, self._schema):
                return self._cut(version, snapshot, found)
        return None

    def _without_gone(self, found: FoundVersions, snapshot: Snapshot, there: IcebergVersion) -> IcebergVersion:
        """An existing version with the current tags and schemas, without the snapshots whose files are missing."""
        if not there.list_names().issubset(found.names):
            return self._cut(there, snapshot, found)
        return with_tags(with_schemas(there, self._table), self._root.tags.list())

    def _cut(self, version: IcebergVersion, latest: Snapshot, found: FoundVersions) -> IcebergVersion:
        """The version of a snapshot from another version, without later snapshots and those whose files are missing.

        The version may be newer than the list of names, so the directory is listed again if a name is missing.
        """
        names: Container[str] = found.names
        if not version.list_names().issubset(found.names):
            names = self.directory.list_names()
        value = _cut(version, latest, self._table, self._root.tags.list(), names)
        return IcebergVersion(latest.id, value)

    # -- writing -------------------------------------------------------------------------------------------------------

    def _maker(self, snapshot: Snapshot) -> VersionMaker:
        return VersionMaker(self._root, self.directory, self._schema, self._options, snapshot)

    def _whole(self, maker: VersionMaker, how: WholeVersion) -> dict[str, Any]:
        """A version made from the table alone; if that fails, its files are deleted."""
        try:
            return maker.whole(how)
        except PaimonError:
            maker.writer.discard()
            raise

    def _put(
        self, maker: VersionMaker, snapshot: Snapshot, value: dict[str, Any], *, replace: bool
    ) -> IcebergVersion | None:
        """Write a version. Returns: the version in the file; None if another one existed and is gone again.

        If another publication of the same snapshot was faster, or the version was certainly not written, the files that
        only this version references are deleted.

        Raises: StorageError
        """
        made = IcebergVersion(snapshot.id, value)
        if not replace:
            data = encode(value)
            put = partial(self.directory.put_version, snapshot.id, data, replace=False, discard=maker.writer.discard)
            is_new, is_latest = self.directory.at_once([put, partial(self._history.is_latest, snapshot)])
            if is_new:
                self._latest = snapshot if is_latest else None
                self.early.remember(KnownVersion(made, data), snapshot, maker.writer)
                return made
            there = self.directory.version(snapshot.id)
            if there is None or there.is_of(snapshot):
                maker.writer.discard()
                return there
        return self._replace(made, maker.writer.discard)

    def _replace(self, version: IcebergVersion, discard: Callable[[], None] | None = None) -> IcebergVersion:
        """Write a version over an existing one, again if tags changed meanwhile, because others may have written those.

        Args:
            discard: called before a failure is raised, if the version certainly was not written.

        Raises: StorageError
        """
        for _ in range(_ATTEMPTS):
            self.directory.put_version(version.number, encode(version.value), replace=True, discard=discard)
            renewed = with_tags(version, self._root.tags.list())
            if renewed is version:
                break
            version, discard = renewed, None
        self.early.remember_renewed(version)
        return version

    def _finish(
        self, found: FoundVersions, snapshot: Snapshot, version: IcebergVersion,
        replaced: IcebergVersion | None = None,
    ) -> None:  # fmt: skip
        """Let readers find a version if its snapshot is the latest one, then delete the files that it replaces.

        Args:
            found: the versions that existed before.
            replaced: see `VersionCleanup.delete_old`.
        """
        if self._latest is not snapshot and not self._history.is_latest(snapshot):
            self._catch_up_with_others(snapshot)
            return
        self.directory.put_hint(snapshot.id)
        is_updated = self._update_catalog(version, snapshot)
        if not self._history.is_latest(snapshot):
            self._catch_up_with_others(snapshot)
            return
        if not is_updated:
            return
        moved = self._cleanup.delete_above(found, snapshot.id)
        deleted = self._cleanup.delete_old(found, version, replaced)
        # After a rollback in the meantime readers may need a version that was deleted as old.
        if (moved and not self._history.is_latest(snapshot)) or (deleted and not self._history.has_snapshot(snapshot)):
            self._catch_up_with_others(snapshot)

    def _catch_up_with_others(self, snapshot: Snapshot) -> None:
        """Let readers find the newest version, after others committed or rolled the table back in the meantime."""
        if not self._history.has_snapshot(snapshot):
            self.follow_move()
            return
        shown: int | None = None
        while True:
            found = FoundVersions(self.directory)
            newest = self._history.newest(found)
            if newest is None or newest.number == shown:
                return
            shown = newest.number
            latest = self._root.snapshots.find(shown)
            if latest is not None:
                self.directory.put_hint(shown)
                self._update_catalog(newest, latest)

    def _result(
        self, number: int, made: Literal["next", "anew", "restored", "there"], notes: tuple[str, ...] = ()
    ) -> PublishedVersion:
        said, self._said = self._said, ()
        return PublishedVersion(
            version=number, path=self.directory.version_path(number), made=made, notes=notes + said
        )

    def _update_catalog(self, version: IcebergVersion, snapshot: Snapshot) -> bool:
        """Let readers of the catalog see a version. Returns: False if that failed; `catalog_error` is the reason."""
        self.catalog_error = None
        number = version.number
        try:
            catalog = open_catalog(self._table)
            if catalog is not None:
                shown = CatalogedVersion(version, snapshot, self.directory.version_path(number))
                self._said += catalog.publish(shown, self._history)
        except PaimonError as error:
            self.catalog_error = error
            return False
        return True


def _is_whole(directory: IcebergDirectory, snapshot: IcebergSnapshot, schema: TableSchema) -> bool:
    """Whether the list and the manifests of a snapshot can be read."""
    try:
        for manifest in directory.manifests(snapshot["manifest-list"]):
            directory.entries(manifest, schema)
    except (CorruptionError, FileMissingError):
        return False
    return True


def _notes_on(there: IcebergVersion | None, path: str) -> tuple[str, ...]:
    """The message about an existing version that another writer made."""
    if there is None or there.value.get("current-snapshot-id") == there.number:
        return ()
    return (
        f"another writer had written {path}: its rows are not rows of the Paimon table, and Iceberg readers no longer"
        " see them; write only through Paimon",
    )


def _cut(
    version: IcebergVersion, latest: Snapshot, table: OpenTable, tags: Sequence[TagValue], names: Container[str]
) -> dict[str, Any]:
    """A version without the snapshots after `latest` and those whose manifest lists are not among the file names."""
    kept = [
        one
        for one in version.snapshots
        if one["snapshot-id"] <= latest.id and one["manifest-list"].rpartition("/")[2] in names
    ]
    log = [{"snapshot-id": one["snapshot-id"], "timestamp-ms": one["timestamp-ms"]} for one in kept]
    return {
        **with_schemas(version, table).value, "snapshots": kept, "current-snapshot-id": latest.id,
        "last-sequence-number": latest.id, "snapshot-log": log, "last-updated-ms": table.root.env.clock.millis(),
        "refs": refs_of(kept, latest.id, tags),
    }  # fmt: skip
