"""The views of a catalog in a SQL database, in Java's table `paimon_views`.

Source: Java `JdbcCatalog`, `JdbcUtils`, `ViewSchema`, main of August 2026.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import msgspec

from paimon_py.arguments import decoding_metadata
from paimon_py.errors import AlreadyExistsError, CommitConflictError, StorageUnknownError
from paimon_py.metastores.jdbc import sql
from paimon_py.metastores.jdbc.database import TakenError
from paimon_py.metastores.jdbc.names import Names
from paimon_py.metastores.metastore import TableName
from paimon_py.spec.type_text import parse_field, print_field
from paimon_py.spec.views_and_functions import CatalogView, ViewChange, changed_view


class JdbcViewStore:
    """The views of one catalog. See `ViewStore` for the methods. Cost: one or two statements, and the lock."""

    __slots__ = ("_hold", "_names")

    def __init__(self, names: Names, hold: Callable[[TableName], AbstractContextManager[object]]) -> None:
        """`hold`: holds the lock of a name, if the catalog has locks."""
        self._names = names
        self._hold = hold

    def views(self, database: str) -> list[str]:
        """See `ViewStore.views`."""
        return sorted(row[0] for row in self._rows(sql.LIST_VIEWS, database=database))

    def view(self, name: TableName) -> CatalogView | None:
        """See `ViewStore.view`."""
        text = self._text(name)
        return None if text is None else _decode(name, text)

    def create_view(self, name: TableName, view: CatalogView) -> bool:
        """See `ViewStore.create_view`.

        Raises: AlreadyExistsError if a table has the name.
        """
        with self._hold(name):
            self._require_no_table(name)
            try:
                self._write(sql.ADD_VIEW, name, schema=_encode(view))
            except TakenError:
                return False
            except StorageUnknownError:
                if self.view(name) != view:
                    raise
        return True

    def alter_view(self, name: TableName, changes: Sequence[ViewChange]) -> CatalogView | None:
        """See `ViewStore.alter_view`.

        Raises: CommitConflictError if another process changes the view at the same time.
        """
        with self._hold(name):
            text = self._text(name)
            if text is None:
                return None
            before = _decode(name, text)
            wanted = changed_view(before, changes)
            if wanted == before:
                return wanted
            if not self._write(sql.CHANGE_VIEW, name, schema=_encode(wanted), before=text):
                raise CommitConflictError(f"view {str(name)!r} was changed by another process; repeat the call")
            return wanted

    def drop_view(self, name: TableName) -> bool:
        """See `ViewStore.drop_view`."""
        with self._hold(name):
            return bool(self._write(sql.DROP_VIEW, name))

    def rename_view(self, name: TableName, to: TableName) -> bool:
        """See `ViewStore.rename_view`."""
        with ExitStack() as locks:
            for each in sorted({name, to}):
                locks.enter_context(self._hold(each))
            if not self._names.has_view(name):
                return False
            self._require_no_table(to)
            try:
                return bool(self._write(sql.RENAME_VIEW, name, to_database=to.database, to_table=to.table))
            except TakenError as error:
                raise AlreadyExistsError(f"view {str(to)!r} already exists", table=str(to)) from error

    def _text(self, name: TableName) -> str | None:
        found = self._rows(sql.GET_VIEW, database=name.database, table=name.table)
        return str(found[0][0]) if found else None

    def _rows(self, statement: str, **keys: str) -> list[Sequence[Any]]:
        return self._names.sql_database.rows(statement, catalog=self._names.catalog_key, **keys)

    def _write(self, statement: str, name: TableName, **more: str) -> int:
        """Returns: the number of changed rows."""
        keys = {"catalog": self._names.catalog_key, "database": name.database, "table": name.table, **more}
        return self._names.sql_database.write((statement, keys))

    def _require_no_table(self, name: TableName) -> None:
        if self._names.has_table(name):
            raise AlreadyExistsError(f"{str(name)!r} is a table", table=str(name))


def _encode(view: CatalogView) -> str:
    comment = {} if view.comment is None else {"comment": view.comment}
    value = {
        "fields": [print_field(field) for field in view.fields], "query": view.query, "dialects": dict(view.dialects),
        **comment, "options": dict(view.options),
    }  # fmt: skip
    return msgspec.json.encode(value).decode()


def _decode(name: TableName, text: str) -> CatalogView:
    with decoding_metadata(f"the view {name} in the catalog's database"):
        value = msgspec.json.decode(text)
        return CatalogView(
            name=str(name), fields=tuple(map(parse_field, value["fields"])), query=value["query"],
            dialects=value.get("dialects") or {}, comment=value.get("comment"), options=value.get("options") or {},
        )  # fmt: skip
