"""Attaches tables of a catalog to the caller's DuckDB connection, as views."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from paimon_py.errors import UsageError
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
        source = f"paimon_{database}_{name}"
        connection.register(source, table.scan().to_dataset())
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {_quote(database)}")
        view = f"{_quote(database)}.{_quote(name)}"
        connection.execute(f"CREATE OR REPLACE VIEW {view} AS SELECT * FROM {_quote(source)}")
        made.append(f"{database}.{name}")
    return made


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
