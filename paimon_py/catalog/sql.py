"""SQL methods of `Catalog`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from paimon_py.arguments import as_mapping, with_location
from paimon_py.catalog.verbs import CatalogVerbs
from paimon_py.errors import UsageError
from paimon_py.spec.layout import check_text

if TYPE_CHECKING:
    import duckdb

    from paimon_py.queries.query import SqlQuery


@with_location(lambda catalog: catalog.warehouse)
class CatalogSql(CatalogVerbs):
    """Methods of `Catalog` that query its tables."""

    __slots__ = ()

    def to_duckdb(
        self, connection: duckdb.DuckDBPyConnection, databases: Sequence[str] | None = None
    ) -> list[str]:
        """Create views of all tables in a DuckDB connection of your own: `SELECT … FROM shop.orders`.

        Databases become schemas; a view of the same name is replaced. Columns and filters of a query are pushed into
        the scan. A view shows the state of the table at the time a query first uses it: call the method again for newer
        rows. The views end with the connection.

        Args:
            databases: only the tables of these; None: of all.

        Returns: the names of the views.

        Cost: that of opening each table; no row is read.
        Raises:
            UsageError: the argument is not a connection.
            DatabaseNotFoundError: the database does not exist.
            UnsupportedError: a table uses a feature that paimon_py cannot read.
        """
        from paimon_py.queries.attach import attach_tables, check_connection, check_names

        check_connection(connection)
        check_names(databases)
        chosen = self.databases() if databases is None else databases
        names = [(database, table) for database in chosen for table in self.tables(database)]
        return attach_tables(connection, ((one, table, self.table(f"{one}.{table}")) for one, table in names))

    def sql(
        self,
        query: str,
        *,
        parameters: Sequence[object] | Mapping[str, object] | None = None,
        database: str | None = None,
        settings: Mapping[str, str] | None = None,
        blobs: Literal["bytes", "refs"] | None = None,
    ) -> SqlQuery:
        """A read-only query over the tables of the catalog, run by DuckDB.

        Tables are `db.t`, `db."t$files"` (system tables), `db."t$branch_b"` (branches) or `sys.tables`. A state of a
        table is `db.t FOR VERSION AS OF 3` (a snapshot or, in quotes, a tag) or `FOR TIMESTAMP AS OF '2024-01-31'`,
        before its alias. A view is run by its query for the dialect `duckdb`, else by its plain query.
        Columns, conditions and limits are pushed into the scans; rows stream through DuckDB. All tables are read in
        their state at the time of this call.

        Args:
            query: one `SELECT`, in the DuckDB dialect.
            parameters: values for `?`, or by name for `$name`.
            database: the database of tables that the query gives without one.
            settings: DuckDB settings, such as `{"memory_limit": "1GB", "threads": "2"}`.
            blobs: read BLOBs as bytes, or only where they are stored: structs of `uri`, `offset` and `length`, such as
                `sum(image.length)`. None: as the option `blob-as-descriptor` says; the default is bytes.

        Cost: the schema and latest snapshot of each table in the query; no row is read yet.

        Raises:
            UsageError: DuckDB rejects the query: syntax, columns, functions, settings.
            TableNotFoundError, DatabaseNotFoundError: a table does not exist.
            UnsupportedError: a statement that is not a query, by its name; DuckDB is not installed.
            SnapshotNotFoundError, SnapshotExpiredError, TagNotFoundError: when rows of such a state are requested.
        """
        from paimon_py.queries.query import check_parameters, open_query

        if not isinstance(query, str) or not query.strip():
            raise UsageError(f"sql takes the text of a query, not {query!r}")
        check_text("the query", query)
        if database is not None:
            self._require_database(database)
        return open_query(
            self, query, parameters=check_parameters(parameters), database=database,
            settings=as_mapping("settings", settings), spill=self._env.spill.create().path, place=self.warehouse,
            blobs=blobs,
        )  # fmt: skip
