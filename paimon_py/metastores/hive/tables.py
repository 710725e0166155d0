"""The locations of tables in a metastore, and the objects for one table that all operations of a Hive catalog share."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from paimon_py.env import Env
from paimon_py.errors import DatabaseNotFoundError
from paimon_py.metadata.root import TableRoot
from paimon_py.metastores.hive.places import Places
from paimon_py.metastores.hive.records import Owner, database_of
from paimon_py.metastores.hive.registration import HiveRegistration
from paimon_py.metastores.hive.settings import HiveSettings
from paimon_py.metastores.hive.verbs import HiveVerbs
from paimon_py.metastores.metastore import TableName
from paimon_py.spec.layout import DATABASE_SUFFIX, MAIN_BRANCH
from paimon_py.storage.locked_store import LockedStore


class HiveTables:
    """The servers, the stores and the settings of one catalog."""

    __slots__ = ("env", "places", "settings", "verbs")

    def __init__(self, verbs: HiveVerbs, places: Places, settings: HiveSettings, env: Env) -> None:
        self.verbs = verbs
        self.places = places
        self.settings = settings
        self.env = env

    def registration(self, name: TableName, keys: tuple[str, ...]) -> HiveRegistration:
        """The entry of a table, with the keys of the partitions that the metastore stores."""
        return HiveRegistration(self.verbs, name, self.settings, self.env, keys)

    def root(self, name: TableName, location: str, keys: tuple[str, ...] = ()) -> TableRoot:
        """A table at a location of the metastore."""
        store, path = self.places.open(location)
        registration = self.registration(name, keys)
        guarded = store if registration.lock is None else LockedStore(store)
        return TableRoot(guarded, path, self.env, self.places.options, registration=registration)

    def hold_lock(self, name: TableName) -> AbstractContextManager[object]:
        """Hold the lock of a table, if the catalog uses locks."""
        lock = self.registration(name, ()).lock
        return nullcontext() if lock is None else lock.hold(MAIN_BRANCH)

    def owner(self) -> Owner:
        """The owner of records that are created now."""
        return Owner(self.settings.servers.user, self.env.clock.millis() // 1000)

    def location(self, name: TableName) -> str:
        """The default location of a table: below its database. Cost: one call."""
        return f"{self.database_location(name.database)}/{name.table}"

    def database_location(self, name: str) -> str:
        """The location of a database. Cost: one call.

        Raises: DatabaseNotFoundError
        """
        record = self.verbs.database(name)
        if record is None:
            raise DatabaseNotFoundError(f"database {name!r} does not exist")
        return (database_of(record).location or self.default_location(name)).rstrip("/")

    def default_location(self, database: str) -> str:
        """The default location of a database: below the warehouse."""
        return f"{self.places.written}/{database}{DATABASE_SUFFIX}"
