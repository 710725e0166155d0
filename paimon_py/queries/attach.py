"""Tables of a catalog as views of a DuckDB connection of the caller's own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from paimon_py.errors import UsageError
from paimon_py.table.table import Table

if TYPE_CHECKING:
    import duckdb


def attach_tables(connection: duckdb.DuckDBPyConnection, tables: Iterable[tuple[str, str, Table]]) -> list[str]:
    """Make each table a view `database.table`; databases become schemas. A view that is there is replaced.

    Args:
        tables: database, name, and the table.

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
    """Make sure that a caller gives a connection.

    Raises: UsageError
    """
    if isinstance(given, type) or not hasattr(given, "register") or not hasattr(given, "execute"):
        raise UsageError(f"to_duckdb takes a connection, such as duckdb.connect(), not {given!r}")


def check_names(names: Sequence[str] | None) -> None:
    """Make sure that databases are a list of names, or nothing.

    Raises: UsageError
    """
    if names is not None and (isinstance(names, str) or not all(isinstance(name, str) for name in names)):
        raise UsageError(f"databases is a list of names, such as ['shop'], not {names!r}")


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
