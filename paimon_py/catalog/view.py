"""A view of a catalog together with the catalog, so that its rows can be queried."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from paimon_py.spec.views_and_functions import CatalogView

if TYPE_CHECKING:
    import duckdb


class View(CatalogView, frozen=True, kw_only=True, eq=False):
    """A view that `Catalog.view` returns: a `CatalogView` with the catalog that has its tables. Compared as a value."""

    catalog: Any

    @classmethod
    def of(cls, view: CatalogView, catalog: object) -> View:
        """The view with its catalog."""
        return cls(**msgspec.structs.asdict(view), catalog=catalog)

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection) -> str:
        """Create this view, and the tables and views that it uses, in a DuckDB connection of your own.

        Databases become schemas; a view of the same name is replaced. The query is the one for the dialect `duckdb`,
        else the plain one. No row is read before a query does; columns and filters are pushed into the scans, and
        tables show their state at the time a query first uses them.

        Returns: the name of the view, `database.view`.

        Cost: that of opening each table in the view.
        Raises:
            UsageError: the argument is not a connection, or DuckDB rejects the query of the view.
            TableNotFoundError: a table of the view does not exist.
            UnsupportedError: DuckDB is not installed; a table uses a feature that paimon_py cannot read.
        """
        from paimon_py.queries.attach import attach_view, check_connection

        check_connection(connection)
        return attach_view(connection, self.catalog, self.name, self.catalog._env.spill.create().path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CatalogView) and _parts(self) == _parts(other)

    def __hash__(self) -> int:
        return hash((self.name, self.query))

    def __repr__(self) -> str:
        return CatalogView.__repr__(self)


def _parts(view: CatalogView) -> tuple[object, ...]:
    return view.name, view.fields, view.query, dict(view.dialects), view.comment, dict(view.options)
