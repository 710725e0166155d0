"""Operations that only a server supports: tables by id, partition statistics, options of databases.

Source: Java `RESTApi.getTableById`, `listPartitions`, `markDonePartitions`, `alterDatabase`, main of August 2026.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

from paimon_py.errors import DatabaseNotFoundError, StorageError, TableNotFoundError, UnsupportedError
from paimon_py.metadata.root import TableRoot
from paimon_py.metastores.metastore import Database, TableName
from paimon_py.metastores.rest.client import RestClient
from paimon_py.metastores.rest.messages import PartitionPage, TableAnswer
from paimon_py.metastores.rest.new_tables import server_schema, was_created
from paimon_py.metastores.rest.places import open_place, table_names
from paimon_py.metastores.rest.transport import RestRefusedError
from paimon_py.metastores.server import CatalogPartition
from paimon_py.spec.schema import TableSchema
from paimon_py.storage.store import Store

COMMENT = "comment"


class RestServer(ABC):
    """The methods of `ServerMetastore`."""

    __slots__ = ()

    client: RestClient

    @abstractmethod
    def database(self, name: str) -> Database | None:
        """One database."""

    @abstractmethod
    def answer(self, name: TableName) -> TableAnswer | None:
        """The server's description of a table."""

    @abstractmethod
    def root(self, name: TableName, found: TableAnswer) -> TableRoot:
        """The location of a table."""

    def place(self, name: TableName) -> tuple[Store, str] | None:
        """See `ServerMetastore.place`. Cost: one request, and one for credentials."""
        found = self.answer(name)
        return None if found is None else open_place(self.client, name, found)

    def all_tables(self, database: str) -> list[str]:
        """See `ServerMetastore.all_tables`. Cost: a request per page."""
        return table_names(self.client, database)

    def find_by_id(self, table_id: str) -> tuple[TableName, TableRoot] | None:
        """See `ServerMetastore.find_by_id`. Cost: one request."""
        try:
            found = self.client.get(self.client.path("tables", "id", table_id), TableAnswer)
        except RestRefusedError as refused:
            if refused.status == 404:
                return None
            raise
        if not found.database:
            raise StorageError(f"the server does not report the database of {found.name!r}", operation="find_by_id")
        name = TableName(found.database, found.name)
        return name, self.root(name, found)

    def replace_table(self, name: TableName, schema: TableSchema) -> TableRoot | None:
        """See `ServerMetastore.replace_table`. Cost: three requests."""
        known = self.answer(name)
        if known is None:
            return None
        wanted, before = server_schema(schema, self.client.options()), known.schemaId

        def is_done() -> bool:
            found = self.answer(name)
            return found is not None and found.schemaId > before and was_created(found, wanted, schema)

        path = self.client.path("databases", name.database, "tables", name.table, "replace")
        try:
            self.client.change(path, {"schema": wanted}, is_done)
        except RestRefusedError as refused:
            if refused.status != 404:
                raise
            if self.answer(name) is None:
                return None
            text = f"this server does not replace tables: {refused}"
            raise UnsupportedError(text, feature="replace_table") from refused
        found = self.answer(name)
        return None if found is None else self.root(name, found)

    def register_table(self, name: TableName, path: str) -> bool:
        """See `ServerMetastore.register_table`. Cost: one request."""

        def is_done() -> bool:
            found = self.answer(name)
            return found is not None and (found.path or "").rstrip("/") == path.rstrip("/")

        body = {"identifier": {"database": name.database, "object": name.table}, "path": path}
        try:
            self.client.change(self.client.path("databases", name.database, "register"), body, is_done)
        except RestRefusedError as refused:
            if refused.status == 409:
                return False
            if refused.status == 404 and refused.resource == "DATABASE":
                raise DatabaseNotFoundError(f"database {name.database!r} does not exist") from refused
            if refused.status == 404:
                text = f"this server does not register tables: {refused}"
                raise UnsupportedError(text, feature="register_table") from refused
            raise
        return True

    def new_location(self, name: TableName) -> TableRoot | None:
        """See `Metastore.new_location`."""
        raise UnsupportedError(
            f"a REST server creates tables itself and does not adopt the files of {str(name)!r}; create the table"
            " and write the rows",
            feature="clone into a REST catalog",
        )

    def adopt_table(self, name: TableName, root: TableRoot, publish: Callable[[], bool]) -> bool:  # noqa: ARG002
        """See `Metastore.adopt_table`."""
        raise UnsupportedError(f"a REST server does not adopt {root.path}", feature="clone into a REST catalog")

    def partitions(self, name: TableName) -> list[CatalogPartition] | None:
        """See `ServerMetastore.partitions`."""
        return _kept_partitions(self.client, name)

    def mark_partitions_done(self, name: TableName, specs: Sequence[Mapping[str, str]]) -> None:
        """See `ServerMetastore.mark_partitions_done`."""
        _mark_done(self.client, name, specs)

    def alter_database(self, name: str, updates: Mapping[str, str], removals: Sequence[str]) -> bool:
        """See `ServerMetastore.alter_database`. Cost: one request."""

        def is_done() -> bool:
            found = self.database(name)
            there = {} if found is None else {**found.options, COMMENT: found.comment}
            return all(there.get(key) == text for key, text in updates.items()) and not set(removals) & there.keys()

        try:
            body = {"removals": list(removals), "updates": dict(updates)}
            self.client.change(self.client.path("databases", name), body, is_done)
        except RestRefusedError as refused:
            if refused.status == 404:
                return False
            raise
        return True


def _kept_partitions(client: RestClient, name: TableName) -> list[CatalogPartition] | None:
    """See `ServerMetastore.partitions`. Cost: a request per page."""
    path = client.path("databases", name.database, "tables", name.table, "partitions")
    try:
        partitions = [one for page in client.pages(path, PartitionPage) for one in page.items()]
    except UnsupportedError:
        return None
    except RestRefusedError as refused:
        if refused.status == 404:
            raise TableNotFoundError(f"table {str(name)!r} does not exist", table=str(name)) from refused
        raise
    return [
        CatalogPartition(
            spec=one.spec,
            record_count=one.recordCount,
            file_size_in_bytes=one.fileSizeInBytes,
            file_count=one.fileCount,
            last_file_creation_millis=one.lastFileCreationTime,
            total_buckets=one.totalBuckets,
            done=one.done,
        )
        for one in partitions
    ]


def _mark_done(client: RestClient, name: TableName, specs: Sequence[Mapping[str, str]]) -> None:
    """See `ServerMetastore.mark_partitions_done`. Cost: one request; a call whose answer was lost may be repeated."""
    path = client.path("databases", name.database, "tables", name.table, "partitions", "mark")
    try:
        client.post(path, {"specs": [dict(spec) for spec in specs]})
    except RestRefusedError as refused:
        if refused.status == 404:
            raise TableNotFoundError(f"table {str(name)!r} does not exist", table=str(name)) from refused
        raise
