"""The tables and views that a query needs, views before those that use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from paimon_py.errors import NotFoundError, TableNotFoundError, UnsupportedError, UsageError
from paimon_py.queries.statement import NamedTable, find_tables
from paimon_py.queries.time_travel import with_states_in_names

if TYPE_CHECKING:
    from paimon_py.queries.session import Session

_DIALECT = "duckdb"
_DEEPEST = 32
"""The maximum number of views inside of each other."""


class StoredView(Protocol):
    """A view of a catalog; see `CatalogView`."""

    @property
    def fields(self) -> Sequence[Any]:
        """The columns."""

    @property
    def query(self) -> str:
        """The query in no particular dialect."""

    @property
    def dialects(self) -> Mapping[str, str]:
        """The queries for single engines."""


class TableOpener(Protocol):
    """Opens the tables and views of a catalog."""

    def table(self, name: str) -> Any:
        """Open a table, a system table or a branch by its full name."""

    def view(self, name: str) -> StoredView:
        """Get a view by its full name."""


class ViewText(msgspec.Struct, frozen=True):
    """A view in a query: database and name, columns, and the query in the dialect of DuckDB."""

    database: str
    view: str
    columns: tuple[str, ...]
    text: str


class QuerySources:
    """Collects the tables and views of a statement.

    `.tables`: each table once, with the opened table; `.views`: in the order in which they can be created.
    """

    def __init__(self, catalog: TableOpener, session: Session) -> None:
        self._catalog = catalog
        self._session = session
        self._tables: dict[str, tuple[NamedTable, Any]] = {}
        self._views: dict[str, ViewText] = {}

    @property
    def tables(self) -> list[tuple[NamedTable, Any]]:
        """The names in the statement, and the opened tables."""
        return list(self._tables.values())

    @property
    def views(self) -> list[ViewText]:
        """The views, each after those that its query uses."""
        return list(self._views.values())

    def add(self, text: str, database: str | None, depth: int = 0) -> str:
        """Add the tables of a statement. Returns: the statement with states as parts of names.

        Raises: UsageError, UnsupportedError, TableNotFoundError, StorageError
        """
        if depth > _DEEPEST:
            raise UsageError("sql: a view uses itself, or views are nested too deeply")
        tree = self._session.parse(with_states_in_names(text))
        tables, is_changed = find_tables(tree, database)
        for named in tables:
            self._add(named, depth)
        return self._session.unparse(tree) if is_changed else text

    def _add(self, named: NamedTable, depth: int) -> None:
        key = f"{named.database}.{named.view}".lower()
        known, table = self._tables.get(key, (None, None))
        if known is not None and known.name != named.name:
            raise UnsupportedError(
                f"sql cannot distinguish {known.name!r} and {named.name!r}: DuckDB ignores the case of names",
                feature="names that differ in case",
            )
        if known is not None:
            self._tables[key] = (msgspec.structs.replace(known, limit=None), table)
            return
        if key in self._views:
            return
        try:
            self._tables[key] = (named, self._catalog.table(named.name))
        except TableNotFoundError:
            view = self._find_view(named)
            if view is None:
                raise
            text = self.add(view.dialects.get(_DIALECT, view.query), named.database, depth + 1)
            columns = tuple(field.name for field in view.fields)
            self._views[key] = ViewText(named.database, named.view, columns, text)

    def _find_view(self, named: NamedTable) -> StoredView | None:
        """The view of a name; None if the catalog has none of it, or stores no views."""
        if "$" in named.table or named.state is not None:
            return None
        try:
            return self._catalog.view(named.name)
        except (NotFoundError, UnsupportedError):
            return None
