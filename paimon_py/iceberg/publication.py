"""Publishes Iceberg metadata: after a commit, after tags changed, after the table went back, and anew.

Every publication can be repeated, and finds out what is there: a version counts only if it was made for the very
snapshot that the table has under its number. So a version of a history that was rolled back, of another writer, or none
at all where a process ended on the way, is replaced or made by the next publication.

The order of writing: manifests, list, version, hint, the catalog of Iceberg if there is one; then what is old goes.
Readers see the old or the new snapshot. If the catalog cannot be updated, nothing is deleted, since its readers still
need it.

Source: docs/format.md §25.8, §25.9; Java 2.1 `IcebergCommitCallback`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from paimon_py.errors import CorruptionError, PaimonError
from paimon_py.iceberg.catalogs.catalog import CatalogedVersion
from paimon_py.iceberg.catalogs.open import open_catalog
from paimon_py.iceberg.directory import RETIRE_MARK, IcebergDirectory, named_files, version_numbers
from paimon_py.iceberg.expiry import find_expired, old_versions
from paimon_py.iceberg.found_versions import FoundVersions
from paimon_py.iceberg.metadata import IcebergSnapshot, IcebergVersion, refs_of, stands_for
from paimon_py.iceberg.versions import VersionMaker, WholeVersion
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.iceberg import iceberg_directory, iceberg_options
from paimon_py.spec.snapshot import Snapshot, Tag
from paimon_py.storage.store import FileMissingError

_CATCH_UP_MAX = 100
"""The most versions that are made because they are missing, one after the other, for tables with keys."""


class PublishedVersion(msgspec.Struct, frozen=True, kw_only=True):
    """What a publication did.

    Attributes:
        version: the version of the Iceberg metadata, which is the id of the Paimon snapshot.
        path: where the version lies.
        made: from the version before, anew, from a version of before a rollback, or not at all: it was there.
        notes: what users of the Iceberg table should know.
    """

    version: int
    path: str
    made: Literal["next", "anew", "restored", "there"]
    notes: tuple[str, ...] = ()


class IcebergPublisher:
    """Publishes the Iceberg metadata of one table; its options say where and how."""

    def __init__(self, table: OpenTable) -> None:
        """`schema`: the latest one.

        Raises: OptionError
        """
        self._table = table
        self._root = table.root
        self._schema = table.schema
        self._options = iceberg_options(table.schema)
        path = iceberg_directory(table.root.path, self._options)
        self.directory = IcebergDirectory(table.root.store, path, None if self._options.in_catalog else table.root.path)
        self.catalog_error: PaimonError | None = None
        """The error that kept the last version from the Iceberg catalog; None if it was published there."""

        self._said: tuple[str, ...] = ()

    # -- the verbs -----------------------------------------------------------------------------------------------------

    def publish(self, snapshot: Snapshot) -> PublishedVersion:
        """Make the version of a snapshot that was committed, if it is not there.

        Raises: SnapshotExpiredError, CorruptionError, UnsupportedError, StorageError
        """
        found = FoundVersions(self.directory)
        if snapshot.id == 1 and not found.holds(snapshot):
            self.directory.clear()
            found = FoundVersions(self.directory, empty=True)
        return self._publish(found, snapshot, is_last=not _is_followed(self._root, snapshot))

    def publish_anew(self, snapshot: Snapshot) -> PublishedVersion:
        """Make the version of the latest snapshot from what the table says, whatever is there; readers keep the uuid.

        Raises: as `publish`
        """
        found = FoundVersions(self.directory)
        newest = found.newest()
        uuid = self._root.env.ids.uuid() if newest is None else newest.uuid
        whole = WholeVersion(uuid=uuid, first_row_id=found.first_row_id(), top_levels=True)
        maker = self._maker(snapshot)
        value = self._make(maker, lambda: maker.whole(whole))
        self._put(maker, snapshot, value, replace=True)
        self._finish(found, snapshot, value, found.lists())
        return self._result(snapshot, "anew")

    def tags_changed(self) -> tuple[str, ...]:
        """Write the refs of the newest version again, in place; what users should know.

        Raises: CorruptionError, StorageError
        """
        latest = self._root.snapshots.latest()
        version = None if latest is None else self.directory.version(latest.id)
        if latest is None or version is None or not version.is_of(latest):
            return ()
        refs = refs_of(version.snapshots, latest.id, self._root.tags.list())
        value = {**version.value, "refs": refs}
        if refs != version.value.get("refs"):
            self.directory.put_version(latest.id, value, replace=True)
        self._update_catalog(latest.id, value)
        said, self._said = self._said, ()
        return said

    def follow_move(self) -> PublishedVersion | None:
        """Follow the table after it went back, or on to a branch: the version of its latest snapshot, and none above.

        The version of a snapshot that is there again is made of what the versions above say of it. So readers see what
        they saw then, and keep the history up to there.

        Raises: as `publish`
        """
        latest = self._root.snapshots.latest()
        if latest is None:
            return None
        found = FoundVersions(self.directory)
        there = found.get(latest.id)
        is_here = there is not None and there.is_of(latest) and there.lies_at(self._root.path)
        if there is not None and is_here and there.current and self._is_whole(there.current):
            self._finish(found, latest, there.value, found.lists(above=latest.id))
            self.tags_changed()
            return self._result(latest, "there")
        value = self._restore(found, latest)
        if value is None:
            return self._anew(found, latest, is_last=True)
        self.directory.put_version(latest.id, value, replace=True)
        self._finish(found, latest, value, found.lists())
        return self._result(latest, "restored")

    # -- steps ---------------------------------------------------------------------------------------------------------

    def _publish(self, found: FoundVersions, snapshot: Snapshot, *, is_last: bool) -> PublishedVersion:
        there = found.get(snapshot.id)
        if there is not None and there.is_of(snapshot) and there.lies_at(self._root.path):
            if is_last:
                self._finish(found, snapshot, there.value, found.lists(above=snapshot.id))
            return self._result(snapshot, "there")
        is_taken = snapshot.id in found.numbers
        notes = _notes_on(there, self.directory.version_path(snapshot.id)) if is_taken else ()
        base = self._base(found, snapshot)
        maker = self._maker(snapshot)
        if base is not None and maker.knows_schemas_of(base[0]):
            version, before = base
            gone = find_expired(version.snapshots, snapshot.id, self._root.env.clock.millis(), self._options)
            count = len(gone) if is_last else 0
            value = self._next(maker, version, before, count)
            if value is not None:
                self._put(maker, snapshot, value, replace=is_taken)
                if is_last:
                    oldest, above = [one["manifest-list"] for one in gone], found.lists(above=snapshot.id)
                    self._finish(found, snapshot, value, oldest + above, are_oldest=not above)
                return self._result(snapshot, "next", notes)
        return self._anew(found, snapshot, is_last=is_last, notes=notes)

    def _anew(
        self, found: FoundVersions, snapshot: Snapshot, *, is_last: bool, notes: tuple[str, ...] = ()
    ) -> PublishedVersion:
        """Make a version from what the table says. Readers keep the uuid where the version goes on from another one."""
        is_taken = snapshot.id in found.numbers
        newest = found.newest() if is_taken or found.get(snapshot.id - 1) is not None else None
        keeps = newest is not None and newest.format_version == self._options.format_version
        uuid = newest.uuid if newest is not None and keeps else self._root.env.ids.uuid()
        maker, whole = self._maker(snapshot), WholeVersion(uuid=uuid, first_row_id=found.first_row_id())
        value = self._make(maker, lambda: maker.whole(whole))
        self._put(maker, snapshot, value, replace=is_taken)
        if is_last:
            self._finish(found, snapshot, value, found.lists())
        return self._result(snapshot, "anew", notes)

    def _next(self, maker: VersionMaker, base: IcebergVersion, before: Snapshot, count: int) -> dict[str, Any] | None:
        """The version that goes on from a base; None where the files of the base are broken or gone."""
        try:
            return self._make(maker, lambda: maker.on(base, before, count))
        except (CorruptionError, FileMissingError) as error:
            if not str(error.path or "").startswith(self.directory.path):
                raise
            return None

    def _base(self, found: FoundVersions, snapshot: Snapshot) -> tuple[IcebergVersion, Snapshot] | None:
        """The version of the snapshot before, and that snapshot, if it can be gone on from."""
        if snapshot.id == 1:
            return None
        before = self._root.snapshots.find(snapshot.id - 1)
        if before is None or snapshot.follows(before) is False:
            return None
        version = found.get(before.id)
        if version is not None and self._continues(version, before):
            return version, before
        catches_up = bool(self._schema.primary_keys) or self._options.catalog is not None
        return self._caught_up(found, before) if catches_up and version is None else None

    def _caught_up(self, found: FoundVersions, last: Snapshot) -> tuple[IcebergVersion, Snapshot] | None:
        """The version of a snapshot whose publication was left out, made now from those before, one after the other.

        Made from nothing, the version would lack the rows of a table with keys that have to be merged; and a catalog
        could not go on from what it has.
        """
        start = max((number for number in found.numbers if number < last.id), default=0)
        if not start or last.id - start > _CATCH_UP_MAX:
            return None
        before, version = self._root.snapshots.find(start), found.get(start)
        if before is None or version is None or not self._continues(version, before):
            return None
        for number in range(start + 1, last.id + 1):
            snapshot = self._root.snapshots.find(number)
            if snapshot is None or snapshot.follows(before) is False:
                return None
            maker = self._maker(snapshot)
            value = self._next(maker, version, before, 0) if maker.knows_schemas_of(version) else None
            if value is None:
                return None
            self._put(maker, snapshot, value, replace=False)
            before, version = snapshot, IcebergVersion(number, value)
            found.add(version)
        return version, before

    def _continues(self, version: IcebergVersion, before: Snapshot) -> bool:
        """Whether a version is of a snapshot, and of the format that is written now."""
        same = version.format_version == self._options.format_version and version.lies_at(self._root.path)
        return same and version.is_of(before) and (version.format_version < 3 or version.next_row_id is not None)

    def _restore(self, found: FoundVersions, latest: Snapshot) -> dict[str, Any] | None:
        """The version of a snapshot, from the newest version that still holds it; None if none does, or files went."""
        for number in reversed(found.numbers):
            version = found.get(number)
            there = None if version is None else version.find(latest.id)
            if version is None or there is None or not stands_for(there, latest):
                continue
            if version.format_version != self._options.format_version or not version.lies_at(self._root.path):
                continue
            if not self._is_whole(there):
                continue
            return _cut(version, latest, self._table, self._root.tags.list())
        return None

    def _is_whole(self, snapshot: IcebergSnapshot) -> bool:
        """Whether the list and the manifests of a snapshot can be read."""
        try:
            for manifest in self.directory.manifests(snapshot["manifest-list"]):
                self.directory.entries(manifest, self._schema)
        except (CorruptionError, FileMissingError):
            return False
        return True

    # -- writing -------------------------------------------------------------------------------------------------------

    def _maker(self, snapshot: Snapshot) -> VersionMaker:
        return VersionMaker(self._root, self.directory, self._schema, self._options, snapshot)

    def _make(self, maker: VersionMaker, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What is made; what was written for it goes if that fails."""
        try:
            return make()
        except PaimonError:
            maker.writer.discard()
            raise

    def _put(self, maker: VersionMaker, snapshot: Snapshot, value: dict[str, Any], *, replace: bool) -> None:
        """Write a version. Where another publication of the same snapshot was faster, or the version certainly was not
        written, the files that it names go.

        Raises: StorageError
        """
        number = snapshot.id
        if self.directory.put_version(number, value, replace=replace, discard=maker.writer.discard):
            return
        there = self.directory.version(number)
        if there is not None and there.is_of(snapshot):
            maker.writer.discard()
        else:
            self.directory.put_version(number, value, replace=True, discard=maker.writer.discard)

    def _finish(
        self, found: FoundVersions, snapshot: Snapshot, value: Any, dropped: Sequence[str], *, are_oldest: bool = False
    ) -> None:
        """Let readers find the version, then delete what is old: versions, and the files that lists name which went.

        Where the next snapshot is there already, its publication does the latter.

        Args:
            are_oldest: the lists that went are those of the oldest snapshots, so that what they share with others they
                share with the first that stays.
        """
        self.directory.put_hint(snapshot.id)
        is_updated = self._update_catalog(snapshot.id, value)
        if _is_followed(self._root, snapshot):  # who publishes the next one may have moved hint and catalog before
            newest = max(version_numbers(self.directory.list_names()), default=snapshot.id)
            self.directory.put_hint(newest)
            version = self.directory.version(newest) if newest > snapshot.id else None
            if version is not None:
                self._update_catalog(newest, version.value)
            return
        if not is_updated:
            return
        for number in reversed(found.numbers):  # readers go on from the hint to the versions above
            if number > snapshot.id:
                self.directory.delete_version(number)
        names = [f"v{number}.metadata.json" for number in old_versions(found.numbers, snapshot.id, self._options)]
        lists = [one["manifest-list"] for one in value["snapshots"]]
        gone = sorted(set(dropped) - set(lists))
        if gone:
            vectors = self._options.shows_vectors
            beside = lists[:1] if are_oldest else lists
            kept = named_files(self.directory, beside, self._schema, vectors=vectors)
            old = named_files(self.directory, gone, self._schema, vectors=vectors, ignores_broken=True)
            names += sorted(old - kept)
        if RETIRE_MARK in found.names:
            names.append(RETIRE_MARK)
        self.directory.delete(names)

    def _result(
        self, snapshot: Snapshot, made: Literal["next", "anew", "restored", "there"], notes: tuple[str, ...] = ()
    ) -> PublishedVersion:
        path = self.directory.version_path(snapshot.id)
        said, self._said = self._said, ()
        return PublishedVersion(version=snapshot.id, path=path, made=made, notes=notes + said)

    def _update_catalog(self, number: int, value: Mapping[str, Any]) -> bool:
        """Let readers of the catalog see a version. False if that failed: `catalog_error` says why."""
        self.catalog_error = None
        try:
            catalog = open_catalog(self._table)
            if catalog is not None:
                before = self.directory.version_path(number - 1)
                shown = CatalogedVersion(IcebergVersion(number, value), self.directory.version_path(number), before)
                self._said += catalog.publish(shown, self._is_there)
        except PaimonError as error:
            self.catalog_error = error
            return False
        return True

    def _is_there(self, one: IcebergSnapshot) -> bool:
        """Whether the table has the Paimon snapshot that an Iceberg snapshot was made for."""
        snapshot = self._root.snapshots.find(int(one["snapshot-id"]))
        return snapshot is not None and stands_for(one, snapshot)


def _notes_on(there: IcebergVersion | None, path: str) -> tuple[str, ...]:
    """What to say of a version that is not of the snapshot with its number."""
    if there is None or there.value.get("current-snapshot-id") == there.number:
        return ()
    return (
        f"another writer had written {path}: its rows are not rows of the Paimon table, and Iceberg readers do not see"
        " them any more; write through Paimon alone",
    )


def _is_followed(root: TableRoot, snapshot: Snapshot) -> bool:
    return root.snapshots.find(snapshot.id + 1) is not None


def _cut(version: IcebergVersion, latest: Snapshot, table: OpenTable, tags: Sequence[Tag]) -> dict[str, Any]:
    """A version without the snapshots after one."""
    kept = [one for one in version.snapshots if one["snapshot-id"] <= latest.id]
    schemas = [one for one in version.schemas if one["schema-id"] <= table.schema.id]
    log = [{"snapshot-id": one["snapshot-id"], "timestamp-ms": one["timestamp-ms"]} for one in kept]
    return {
        **version.value, "schemas": schemas, "current-schema-id": table.schema.id, "snapshots": kept,
        "current-snapshot-id": latest.id, "last-sequence-number": latest.id, "snapshot-log": log,
        "last-updated-ms": table.root.env.clock.millis(), "refs": refs_of(kept, latest.id, tags),
    }  # fmt: skip
