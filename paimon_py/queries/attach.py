"""Attaches tables of a catalog to the caller's DuckDB connection, as views."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from paimon_py.errors import UsageError
from paimon_py.queries.query import rows_of
from paimon_py.queries.session import Session, driver
from paimon_py.queries.sources import QuerySources, TableOpener
from paimon_py.table.table import Table

if TYPE_CHECKING:
    import duckdb


def attach_tables(connection: duckdb.DuckDBPyConnection, tables: Iterable[tuple[str, str, Table]]) -> list[str]:
    """Create a view `database.table` for each table; databases become schemas. Existing views are replaced.

    Args:
        tables: for each table, its database, its name and the table itself.

    Returns: the names of the views.
    """
    made = []
    for database, name, table in tables:
        _attach(connection, database, name, table.scan())
        made.append(f"{database}.{name}")
    return made


def attach_view(connection: duckdb.DuckDBPyConnection, catalog: TableOpener, name: str, spill: str) -> str:
    """Create a view of a catalog, and the tables and views that it uses.

    Returns: the name of the view.

    Raises: as `View.to_duckdb`
    """
    database, _, view = name.partition(".")
    with Session({}, spill) as session:
        sources = QuerySources(catalog, session)
        sources.add(f"SELECT * FROM {_quote(database)}.{_quote(view)}", None)
    for named, table in sources.tables:
        _attach(connection, named.database, named.view, rows_of(table, named))
    before = connection.execute("SELECT current_schema()").fetchall()[0][0]
    for one in sources.views:
        columns = ", ".join(map(_quote, one.columns))
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {_quote(one.database)}")
        connection.execute(f"SET schema = {_literal(one.database)}")
        try:
            connection.execute(f"CREATE OR REPLACE VIEW {_quote(one.view)} ({columns}) AS {one.text}")
        except driver().Error as error:
            raise UsageError(f"DuckDB rejects the query of view {one.database}.{one.view}: {error}") from error
        finally:
            connection.execute(f"SET schema = {_literal(before)}")
    return name


def _attach(connection: duckdb.DuckDBPyConnection, database: str, name: str, rows: Any) -> None:
    source = f"paimon_{database}_{name}"
    connection.register(source, rows.to_dataset())
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {_quote(database)}")
    view = f"{_quote(database)}.{_quote(name)}"
    connection.execute(f"CREATE OR REPLACE VIEW {view} AS SELECT * FROM {_quote(source)}")


def check_connection(given: Any) -> None:
    """Check that the argument is a DuckDB connection.

    Raises: UsageError
    """
    if isinstance(given, type) or not hasattr(given, "register") or not hasattr(given, "execute"):
        raise UsageError(f"to_duckdb takes a connection, such as duckdb.connect(), not {given!r}")


def check_names(names: Sequence[str] | None) -> None:
    """Check that databases are a list of names, or None.

    Raises: UsageError
    """
    if names is not None and (isinstance(names, str) or not all(isinstance(name, str) for name in names)):
        raise UsageError(f"databases must be a list of names, such as ['shop'], not {names!r}")


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(schema: str) -> str:
    """The value of the setting `schema`: a quoted name as text."""
    return "'" + _quote(schema).replace("'", "''") + "'"
