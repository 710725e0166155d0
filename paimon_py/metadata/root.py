"""The metadata files of one table, bundled: the input of scans, writers and commits."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypedDict, TypeVar

import msgspec

from paimon_py.env import Env, is_distant
from paimon_py.errors import CorruptionError, SnapshotExpiredError
from paimon_py.metadata.changelogs import Changelogs
from paimon_py.metadata.committer import Committer, StoreCommitter
from paimon_py.metadata.consumers import Consumers
from paimon_py.metadata.cuts import Cuts
from paimon_py.metadata.entry_filter import EntryFilter
from paimon_py.metadata.maintenance_state import MaintenanceState
from paimon_py.metadata.missing import missing_change_error, missing_error, why_replaced
from paimon_py.metadata.schemas import Schemas
from paimon_py.metadata.snapshots import Snapshots, check_mark
from paimon_py.metadata.tags import Tags
from paimon_py.metadata.user_files import UserFiles
from paimon_py.spec.layout import MAIN_BRANCH, branch_root
from paimon_py.spec.snapshot import Base, Snapshot
from paimon_py.storage.data_store import DataStore
from paimon_py.storage.metered_store import metered_store
from paimon_py.storage.refreshing_store import open_related
from paimon_py.storage.store import FileMissingError, Store

if TYPE_CHECKING:
    from paimon_py.metadata.catalog_entry import CatalogEntry
    from paimon_py.metadata.manifests import Manifests
    from paimon_py.spec.schema import TableSchema

T = TypeVar("T")

SAME_AT_ONCE = 16
"""The number of files with names that another table may use too, which are deleted after one check of the table."""


class EventPlace(TypedDict):
    """The common fields of all events of a table."""

    path: str
    branch: str
    time_millis: int


class TableRoot:
    """A branch of a table with its store: `.snapshots`, `.schemas`, `.tags`, `.changelogs`, `.consumers`, `.manifests`,
    and `.files` for data files.

    `.path` is the directory of the table. All branches share the manifests, the data files and everything else in it.
    `.branch_path` is the directory of the schemas and snapshots of the branch, and its tags, changelogs and consumers:
    for the branch "main", the table's own directory.

    `.registration` is the table's entry in its catalog; None if a table is only its directory. `.history` manages
    the snapshots and branches; None if the directory does.

    Two roots with the same path, branch and store are the same table. Pickles carry these (without secrets);
    the receiving process gets the machine's own environment.
    """

    __slots__ = (
        "_manifests", "branch", "branch_path", "changelogs", "consumers", "cuts", "env", "files", "history",
        "maintenance", "path", "registration", "schemas", "snapshots", "store", "tags", "users", "warned_of",
    )  # fmt: skip

    def __init__(
        self,
        store: Store,
        path: str,
        env: Env,
        options: Mapping[str, str] | None = None,
        *,
        branch: str = MAIN_BRANCH,
        registration: CatalogEntry | None = None,
    ) -> None:
        """`options`: the options of the store; stores of external data files are opened with the same."""
        self.store = store = metered_store(store, env)
        self.path = path
        self.env = env
        self.branch = branch
        self.branch_path = home = branch_root(path, branch)
        self.history = None if registration is None else registration.history(branch)
        newest = None if self.history is None else self.history.newest
        self.snapshots = Snapshots(store, home, env, newest=newest)
        self.schemas = Schemas(store, home, is_branch=branch != MAIN_BRANCH)
        self.files = DataStore(
            store, path, options, roots=self.schemas.external_roots,
            kept=self.schemas.referenced_roots, opener=self._open_related,
        )  # fmt: skip
        self.tags = Tags(store, home)
        self.changelogs = Changelogs(store, home)
        self.consumers = Consumers(store, home, env.clock)
        self.cuts = Cuts(store, home)
        self.users = UserFiles(store, home)
        self._manifests: Manifests | None = None
        self.registration = registration
        self.maintenance = MaintenanceState()
        self.warned_of: set[tuple[str, str]] = set()  # each table object warns of an option once

    @property
    def manifests(self) -> Manifests:
        """The manifests of all branches."""
        if self._manifests is None:
            from paimon_py.metadata.manifests import Manifests

            self._manifests = Manifests(self.store, self.path, self.env)
        return self._manifests

    def on_branch(self, branch: str) -> TableRoot:
        """Another branch of the table, whether it exists or not.

        Raises: UsageError for an invalid name.
        """
        return TableRoot(
            self.store, self.path, self.env, self.files.options, branch=branch, registration=self.registration
        )

    def _open_related(self, url: str, options: Mapping[str, str]) -> tuple[Store, str]:
        store, place = open_related(self.store, url, options, self.env)
        return metered_store(store, self.env), place

    def committer(self) -> Committer:
        """Publishes snapshots: the catalog of the table, or otherwise the store."""
        if self.registration is not None:
            return self.registration.committer(self)
        return StoreCommitter(self)

    def event_place(self) -> EventPlace:
        """The common fields of events of this branch, now."""
        return {"path": self.path, "branch": self.branch, "time_millis": self.env.clock.millis()}

    def latest_schema_to_open(self) -> TableSchema:
        """The latest schema, for a table that is being opened; on distant stores, also reads the LATEST hint.

        Raises: TableNotFoundError if there is no table.
        """
        if is_distant(self.path):
            found: list[TableSchema] = []
            newest = [lambda: found.append(self.schemas.latest()), self.snapshots.ahead.look]
            self.env.at_once(self.path, newest)
            return found[0]
        return self.schemas.latest()

    def latest(self) -> Snapshot | None:
        """The newest snapshot; None if the table is empty.

        Raises: TableNotFoundError if the table no longer exists.
        """
        snapshot = self.snapshots.latest()
        if snapshot is None:
            self.schemas.latest()
        return snapshot

    def require_same(self, schema: TableSchema) -> TableSchema:
        """The latest schema, after checking that the table is still the one opened with a schema. Cost: a list, and
        a get the first time.

        Raises: TableNotFoundError if the table was dropped, renamed or created again, or its schema rolled back.
        """
        newest = self.schemas.latest()
        self.schemas.require_same(schema)
        return newest

    def require_own(self, *snapshots: Snapshot) -> None:
        """Check that snapshots belong to the table whose schema was read last.

        Cost: none for snapshots of the newest schema; a get for each other schema, once; a list if a snapshot does not
            say its schema, as those of other writers, and for a branch: those of one name have the same schemas.
        Raises: TableNotFoundError if another table, or another branch of the name, is at the path.
        """
        if self.branch != MAIN_BRANCH or any(one.schema_millis is None for one in snapshots):
            self.schemas.latest()
        for one in snapshots:
            self.schemas.require_own(one, self.schemas.newest_seen)

    def each_of_same(self, values: Iterable[T], *, is_checked: bool = False) -> Iterator[T]:
        """Yield values, such as the names of files to delete, while the table is still the one whose schema was read.

        Numbers and names mean other files in another table. `is_checked`: the caller has just checked the table, so
        the first values need no check. Cost: a list for each SAME_AT_ONCE values.
        Raises: TableNotFoundError if another table is at the path.
        """
        for place, value in enumerate(values):
            if place % SAME_AT_ONCE == 0 and not (is_checked and place == 0):
                self.schemas.latest()
            yield value

    def newest(self, schema: TableSchema) -> TableSchema:
        """The newest schema by the last listing, or one that this object created since; with the options that a schema
        overrides for one writer or reader.

        Cost: none after a commit or `require_same`; otherwise a list.
        """
        seen, stored = self.schemas.newest_seen, self.schemas.get(schema.id)
        newest = max(seen, stored, key=lambda one: one.id)
        own = {name: text for name, text in schema.options.items() if stored.options.get(name) != text}
        return msgspec.structs.replace(newest, options={**newest.options, **own}) if own else newest

    def check_listed(self, found: list[T]) -> list[T]:
        """A listing of the table. Cost: a list if it is empty.

        Raises: TableNotFoundError if it is empty because the table no longer exists.
        """
        if not found:
            self.schemas.latest()
        return found

    def find_kept(self, snapshot_id: int) -> Snapshot | None:
        """A snapshot, or its retained changelog; None if both have expired or never existed. Cost: one or two gets."""
        return self.snapshots.find(snapshot_id) or self.changelogs.find(snapshot_id)

    def snapshot_or_changelog(self, snapshot_id: int) -> Snapshot:
        """A snapshot, or its retained changelog (options `changelog.*`), for readers of its changes.

        Raises: as `snapshots.get`
        """
        found = self.find_kept(snapshot_id)
        if found is None:
            return self.snapshots.get(snapshot_id)
        check_mark(self.branch_path, snapshot_id, found)
        return found

    def missing(self, base: Base, error: FileMissingError) -> CorruptionError | SnapshotExpiredError:
        """The error for a missing file that a snapshot references. Cost: a get, and the tags."""
        return missing_error(self.store, self.branch_path, base, error, self.manifests.file_names)

    def missing_changes(self, since: int, last: int, error: FileMissingError) -> CorruptionError | SnapshotExpiredError:
        """The error for a missing file of the changes after snapshot `since` up to `last`.

        Cost: a get for each of the snapshots.
        """
        return missing_change_error(self.store, self.branch_path, since, last, error)

    @contextlib.contextmanager
    def reading(self, base: Base) -> Iterator[None]:
        """Distinguish missing files of a snapshot from expired ones while they are read."""
        try:
            yield
        except FileMissingError as error:
            raise self.missing(base, error) from error

    def replacement_reason(self, bucket: int, error: FileMissingError) -> str:
        """The reason why work on files of a bucket is pointless: others replaced a file, and expiry has deleted it.

        Cost: the manifests of the latest snapshot.
        Raises: CorruptionError if the file should exist.
        """
        latest, chosen = self.snapshots.latest(), EntryFilter(buckets=frozenset({bucket}))
        names = set() if latest is None else self.manifests.file_names(latest, chosen)
        return why_replaced(latest, names, error)

    def __reduce__(self) -> tuple[object, ...]:
        return _open, (self.store, self.path, self.files.public_options, self.branch, self.registration)


def _open(
    store: Store, path: str, options: Mapping[str, str], branch: str, registration: CatalogEntry | None
) -> TableRoot:
    return TableRoot(store, path, Env(), options, branch=branch, registration=registration)
