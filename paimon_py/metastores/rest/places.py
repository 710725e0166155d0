"""The directories of tables of every type on a REST server, with the credentials for them."""

from __future__ import annotations

from collections.abc import Mapping

from paimon_py.errors import DatabaseNotFoundError, StorageError, UnsupportedError
from paimon_py.metastores.metastore import TableName
from paimon_py.metastores.options import flag
from paimon_py.metastores.rest.client import RestClient
from paimon_py.metastores.rest.messages import TableAnswer, TablePage
from paimon_py.metastores.rest.registration import RestTable
from paimon_py.metastores.rest.transport import RestRefusedError
from paimon_py.metastores.rest.vended import VendedStore
from paimon_py.storage.open import open_store
from paimon_py.storage.refreshing_store import RefreshingStore
from paimon_py.storage.store import Store

DATA_TOKENS = "data-token.enabled"
QUERY_AUTH = "query-auth.enabled"
"""An option that servers may set for a table although its schema files do not contain it."""


def open_place(client: RestClient, name: TableName, found: TableAnswer) -> tuple[Store, str]:
    """The store and the directory of a table of any type.

    Raises: UnsupportedError if the server restricts the visible rows and columns; StorageError
    """
    if (found.option(QUERY_AUTH) or "").strip().lower() == "true":
        raise UnsupportedError(
            f"{str(name)!r} has {QUERY_AUTH} = true: the server restricts the visible rows and columns, which"
            " paimon_py does not support; use an engine that does, or a view",
            feature=QUERY_AUTH,
        )
    if not found.path:
        raise StorageError(f"the server does not report the location of {str(name)!r}", operation="find")
    options: Mapping[str, str] = client.options()
    if flag(options, DATA_TOKENS, default=False) and not found.isExternal:
        return RefreshingStore.open(VendedStore(RestTable(client, name, found.id), found.path))
    return open_store(found.path, options)


def table_names(client: RestClient, database: str, queries: tuple[Mapping[str, str], ...] = ({},)) -> list[str]:
    """The names of the tables of a database, sorted: of all types, or those that fit any of the queries.

    Raises: DatabaseNotFoundError
    """
    path = client.path("databases", database, "tables")
    try:
        pages = [page for query in queries for page in client.pages(path, TablePage, query)]
        return sorted({name for page in pages for name in page.items()})
    except RestRefusedError as refused:
        if refused.status == 404:
            raise DatabaseNotFoundError(f"database {database!r} does not exist") from refused
        raise
