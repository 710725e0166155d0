"""Maintenance methods of `Catalog`: work on all tables."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Literal

from paimon_py.arguments import check_flag, check_progress, way_of, with_location
from paimon_py.catalog.verbs import CatalogVerbs
from paimon_py.errors import CorruptionError, StorageError, TableNotFoundError, UnsupportedError, UsageError
from paimon_py.logs import warn
from paimon_py.maintain.cleanup.expired import RemovedOrphans
from paimon_py.metastores.metastore import TableName
from paimon_py.notebook import catalog_page
from paimon_py.progress import Progress, ProgressCounter
from paimon_py.spec.events import CatalogEvent, TableEvent


@with_location(lambda catalog: catalog.warehouse)
class CatalogMaintenance(CatalogVerbs):
    """Methods of `Catalog` that maintain its tables."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return catalog_page(self.warehouse, self.databases, self.tables)

    def remove_orphans(
        self,
        database: str | None = None,
        *,
        older_than: datetime | timedelta | str | int | None = None,
        dry_run: bool = True,
        progress: Callable[[int, int, str], object] | None = None,
    ) -> dict[str, RemovedOrphans]:
        """Run `Table.remove_orphans` for all tables, or those of one database. A dry run by default.

        Args:
            progress: called as by `Table.remove_orphans`, with the name of the table ("directories of d.t"), and after
                each table with the number done, the total, and "tables".

        Returns: what was found, by table name.

        Raises:
            DatabaseNotFoundError: the database does not exist.
            UsageError: `older_than` is not in the past.
            CorruptionError, StorageError: the references of a table cannot be read. All other tables were cleaned
                before.

        Warns: PaimonWarning for each table that a later release created and that cannot be read; it is skipped.
        """
        from paimon_py.maintain.cleanup.remove_orphans import limit_of, remove_orphans

        check_progress(progress)
        check_flag("dry_run", dry_run)
        limit = limit_of(self._env.clock, older_than)
        databases = self.databases() if database is None else [database]
        names = [f"{one}.{table}" for one in databases for table in self.tables(one)]
        found: dict[str, RemovedOrphans] = {}
        failed: CorruptionError | StorageError | None = None
        tally = ProgressCounter(progress, len(names), "tables")
        for name in names:
            try:
                found[name] = remove_orphans(
                    self.table(name)._root, limit, dry_run=dry_run, progress=_about(name, progress)
                )
            except TableNotFoundError:
                pass
            except UnsupportedError as error:
                warn(f"the orphans of {name} were skipped: {error}")
            except (CorruptionError, StorageError) as error:
                failed = failed or error
            tally.add(1)
        if failed is not None:
            raise failed
        return found

    def register_observer(self, observer: Callable[[TableEvent], object]) -> None:
        """Call a function with each event of the tables of this catalog, after it has happened.

        Events are values: `CommitEvent`, `ConflictEvent`, `TagEvent`, `RollbackEvent`, `ExpiryEvent`, `SchemaEvent` and
        others of `paimon_py.types`. Exceptions from the function do not affect the operation: they become a
        `PaimonWarning`, and a string in the `warnings` of the result. Tables that were opened before are observed too;
        actions of other processes are not seen, and pickled catalogs and tables do not contain observers. For a table
        that is opened without a catalog, `Env(observers=[function])` does the same.

        Args:
            observer: called by the thread that did the work, one event after the other, so it should be quick. Metrics
                (`paimon_py.metrics.Metrics`) are an observer.

        Cost: none for tables without observers.
        Raises: UsageError if the observer is not callable.
        """
        self._env.observers.register(observer)

    def remove_observer(self, observer: Callable[[TableEvent], object]) -> bool:
        """Remove an observer. Returns: whether it was registered."""
        return self._env.observers.remove(observer)

    def _path_for_observers(self, name: TableName) -> str:
        """Directory of a table, for events. Cost: none where there are no observers."""
        root = self._metastore.find(name) if self._env.observers else None
        return "" if root is None else root.path

    def _report(
        self, action: Literal["create", "drop", "rename"], name: str, path: str, old_name: str | None = None
    ) -> None:
        """Report an event of a table as a whole to observers."""
        if not self._env.observers:
            return
        now = self._env.clock.millis()
        event = CatalogEvent(path=path, time_millis=now, action=action, name=name, old_name=old_name)
        for text in self._env.observers.report(event):
            warn(f"{name}: {text}")

    def repair(self, name: str | None = None) -> None:
        """Synchronize the metastore with the file system: for all tables, a database, or one table.

        Raises:
            UnsupportedError: the catalog uses directories, so there is no separate metastore.
            TableNotFoundError: the table does not exist in the file system.
        """
        if name is not None and not isinstance(name, str):
            raise UsageError(f"repair takes 'database', 'database.table' or nothing, not {name!r}{way_of(name)}")
        database, _, table = (name or "").partition(".")
        self._metastore.repair(database or None, table or None)


def _about(name: str, progress: Progress | None) -> Progress | None:
    """The progress function with the table name added to the unit."""
    return None if progress is None else lambda done, total, what: progress(done, total, f"{what} of {name}")
