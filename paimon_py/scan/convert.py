"""Rows for other libraries. Each is imported when it is asked for: none is needed otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paimon_py.errors import UsageError

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars


def to_pandas(table: pa.Table) -> pandas.DataFrame:
    """A table as a pandas frame."""
    try:
        return table.to_pandas()
    except ImportError as error:
        raise _absent("pandas") from error


def to_polars(table: pa.Table) -> polars.DataFrame:
    """A table as a polars frame."""
    try:
        import polars
    except ImportError as error:
        raise _absent("polars") from error
    return polars.from_arrow(table)


def to_duckdb(stream: Any, connection: duckdb.DuckDBPyConnection, name: str) -> duckdb.DuckDBPyRelation:
    """Register something with an Arrow C stream as a view of a connection."""
    connection.register(name, stream)
    return connection.view(name)


def _absent(library: str) -> UsageError:
    return UsageError(f"{library} is not installed: pip install {library}")
