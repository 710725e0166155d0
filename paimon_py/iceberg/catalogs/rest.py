"""Publishes each version to an Iceberg REST catalog: registers the table, then adds snapshots to it.

Each change asserts the values of the refs that were read, so that the server refuses a late publisher, which then reads
the table again. Before an entry is replaced or tags are changed, the newest version is read again from its file.

Source: docs/format.md §25.10; Apache Iceberg REST catalog specification.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paimon_py.errors import AlreadyExistsError, StorageError, StorageUnknownError
from paimon_py.iceberg.catalogs.catalog import CatalogedVersion
from paimon_py.iceberg.catalogs.rest_client import CatalogRefusedError, IcebergRestClient
from paimon_py.iceberg.catalogs.rest_updates import NothingToDo, OtherTable, Replace, Update, decide
from paimon_py.iceberg.history import TableHistory
from paimon_py.iceberg.metadata import plain_path
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metastores.rest.http import HttpSender, require_package
from paimon_py.spec.iceberg import iceberg_names, iceberg_options, rest_options

_ATTEMPTS = 12
_CONFLICT = 409
_MISSING = 404


class RestIcebergCatalog:
    """The entry of one table in an Iceberg REST catalog; see `IcebergCatalog`.

    Args:
        names: namespace and table.
        properties: properties of the table on the server, for engines that maintain Iceberg tables.
    """

    def __init__(self, client: IcebergRestClient, names: tuple[str, str], properties: Mapping[str, str]) -> None:
        self._client = client
        self._namespace, self._table = names
        self._properties = dict(properties)

    def publish(self, shown: CatalogedVersion, history: TableHistory) -> tuple[str, ...]:
        """See `IcebergCatalog.publish`. Cost: two requests; the first time up to five."""
        notes: tuple[str, ...] = ()
        unsure = False
        for _ in range(_ATTEMPTS):
            server = self._load_or_drop(shown)
            if server is None:
                shown = _as_written_now(shown, history)
                self._register(shown.path)
                continue
            decision = decide(server, shown, self._properties, history.has)
            if isinstance(decision, Replace) or (isinstance(decision, Update) and decision.changes_tags):
                shown = _as_written_now(shown, history)
                decision = decide(server, shown, self._properties, history.has)
            if isinstance(decision, NothingToDo):
                return notes
            if isinstance(decision, OtherTable):
                raise AlreadyExistsError(
                    f"{self} is another table, at {decision.location}: drop it there, or set metadata.iceberg.table or"
                    " metadata.iceberg.database to another name"
                )
            if isinstance(decision, Update):
                try:
                    if self._commit(decision):
                        return notes
                except StorageUnknownError:  # the next read shows whether the server accepted it
                    if unsure:
                        raise
                    unsure = True
                continue
            if not history.is_latest(shown.snapshot):  # only the publisher of the latest snapshot replaces the entry
                return notes
            notes = self._notes(decision) or notes
            self._drop()
        text = f"{self} was changed by others {_ATTEMPTS} times and does not show {shown.path}"
        raise StorageError(text, operation="publish")

    def shown_id(self) -> int | None:
        """See `IcebergCatalog.shown_id`. Cost: one request, two the first time."""
        server = self._load()
        found = None if server is None else server.get("current-snapshot-id")
        return None if found is None or found < 0 else int(found)

    def __str__(self) -> str:
        return f"the table {self._namespace}.{self._table} of {self._client.address}"

    # -- requests ------------------------------------------------------------------------------------------------------

    def _load(self) -> Mapping[str, Any] | None:
        """The metadata of the server's table; None if the server does not have it."""
        try:
            answer = self._client.ask("GET", self._client.table_path(self._namespace, self._table))
        except CatalogRefusedError as error:
            if error.status == _MISSING:
                return None
            raise self._refusal("load", error) from None
        found = answer.get("metadata")
        if not isinstance(found, dict):
            raise StorageError(f"{self}: the answer of the server contains no metadata", operation="load")
        return found

    def _load_or_drop(self, shown: CatalogedVersion) -> Mapping[str, Any] | None:
        """The metadata of the server's table; None if the server does not have it.

        An entry whose metadata file is missing from the directory of this table is dropped, because it belongs to a
        former table at this place.
        """
        try:
            return self._load()
        except StorageError as error:
            places = (shown.directory, str(shown.version.value["location"]).rstrip("/"))
            if not any(f"{plain_path(place)}/" in plain_path(str(error)) for place in places):
                raise
            self._drop()
            return None

    def _register(self, path: str) -> None:
        """Register the table and its namespace; the next read shows whether that succeeded."""
        body = {"name": self._table, "metadata-location": path}
        place = f"namespaces/{self._client.table_path(self._namespace).split('/')[1]}/register"
        for is_second in (False, True):
            try:
                self._client.ask("POST", place, body)
            except StorageUnknownError:
                if self._load() is None:
                    raise
            except CatalogRefusedError as error:
                if error.status == _MISSING and not is_second:
                    self._create_namespace()
                    continue
                if error.status != _CONFLICT:
                    raise self._refusal("register", error) from None
            return

    def _create_namespace(self) -> None:
        try:
            self._client.ask("POST", "namespaces", {"namespace": [self._namespace], "properties": {}})
        except CatalogRefusedError as error:
            if error.status != _CONFLICT:
                raise self._refusal("create the namespace of", error) from None

    def _commit(self, update: Update) -> bool:
        """Send an update. Returns: whether the server accepted it; if not, the next read shows why.

        Raises: StorageError; StorageUnknownError if the outcome is unknown.
        """
        body = {"requirements": list(update.requirements), "updates": list(update.updates)}
        try:
            self._client.ask("POST", self._client.table_path(self._namespace, self._table), body)
        except CatalogRefusedError as error:
            if error.status in (_CONFLICT, _MISSING):
                return False
            if any(one["action"] == "add-snapshot" for one in update.updates):  # a new entry needs no update
                self._drop()
                return False
            raise self._refusal("update", error) from None
        return True

    def _drop(self) -> None:
        """Drop the server's entry, but no file."""
        try:
            self._client.ask("DELETE", self._client.table_path(self._namespace, self._table) + "?purgeRequested=false")
        except CatalogRefusedError as error:
            if error.status != _MISSING:
                raise self._refusal("drop", error) from None
        except StorageUnknownError:
            if self._load() is not None:
                raise

    def _notes(self, decision: Replace) -> tuple[str, ...]:
        if not decision.foreign:
            return ()
        return (
            f"another writer had written to {self}: its rows are not rows of the Paimon table, and Iceberg readers no"
            " longer see them; write only through Paimon",
        )

    def _refusal(self, what: str, error: CatalogRefusedError) -> StorageError:
        return StorageError(f"the server refuses to {what} {self}: {error}", operation=what)


def _as_written_now(shown: CatalogedVersion, history: TableHistory) -> CatalogedVersion:
    """The newest version as it is in its file now: another publisher may have replaced it, or written a later one.

    With their own copies two publishers would replace each other's entry again and again.
    """
    found = history.newest_now()
    if found is None:
        return shown
    version, snapshot = found
    return CatalogedVersion(version, snapshot, f"{shown.directory}/v{version.number}.metadata.json")


def open_rest(table: OpenTable) -> RestIcebergCatalog:
    """The REST catalog in the options of a table; its client is kept for the next commit of the table object.

    Raises: OptionError; UnsupportedError without urllib3
    """
    require_package()
    root, schema = table.root, table.schema
    rest_given, options = rest_options(schema), iceberg_options(schema)
    databases, name = iceberg_names(root.path, schema)
    key = tuple(sorted(rest_given.items()))
    client = root.maintenance.clients.get(key)
    if not isinstance(client, IcebergRestClient):
        client = IcebergRestClient(rest_given, HttpSender(ids=root.env.ids), root.env)
        root.maintenance.clients[key] = client
    properties = {
        "gc.enabled": "false",  # Iceberg's expiry and removal of orphans would delete files of Paimon
        "write.metadata.delete-after-commit.enabled": str(options.deletes_old).lower(),
        "write.metadata.previous-versions-max": str(options.previous_max),
    }
    return RestIcebergCatalog(client, (databases[0], name), properties)
