"""An in-memory DuckDB connection that can read only tables of a catalog: no files and no Python variables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paimon_py.errors import PaimonError, ResourceError, UnsupportedError, UsageError
from paimon_py.scan.dataset import ScanDataset, ScanScanner
from paimon_py.scan.rows import Rows

if TYPE_CHECKING:
    import duckdb

    from paimon_py.queries.sources import ViewText

Parameters = Sequence[object] | Mapping[str, object] | None
"""Values of `?`, `$1` or `$name` in a query."""

RELEASE = (2, 0)
"""The first release of DuckDB that streams queries with parameters."""
_BATCH_ROWS = 65_536
_SETTING = re.compile(r"[A-Za-z_]\w*")
_LOCKED = (
    "SET TimeZone = 'UTC'", "SET python_enable_replacements = false", "SET enable_external_access = false",
    "SET lock_configuration = true",
)  # fmt: skip
_WAYS = {
    "INSERT": "table.write_arrow(catalog.sql('SELECT …')) writes", "UPDATE": "table.update changes rows",
    "DELETE": "table.delete deletes rows", "MERGE_INTO": "table.merge merges", "CREATE": "catalog.create_table creates",
    "DROP": "catalog.drop_table drops", "ALTER": "table.alter changes columns", "SET": "settings= takes settings",
    "VARIABLE_SET": "settings= takes settings", "EXPLAIN": "catalog.sql('SELECT …').explain() shows a plan",
    "MULTI": "a PIVOT without IN (…) is several statements: name its values",
}  # fmt: skip


def driver() -> Any:
    """The package `duckdb`.

    Raises: UnsupportedError if it is not installed, or too old.
    """
    try:
        import duckdb
    except ImportError as error:
        raise UnsupportedError("sql needs DuckDB: pip install 'paimon-py[duckdb]'", feature="sql") from error
    found = tuple(int(part) for part in re.findall(r"\d+", duckdb.__version__)[:2])
    if found < RELEASE:
        raise UnsupportedError(
            f"sql needs DuckDB {'.'.join(map(str, RELEASE))} or later, {duckdb.__version__} is installed:"
            " pip install -U duckdb", feature="sql",
        )  # fmt: skip
    return duckdb


class Session:
    """A connection, closed at the end of a `with`. One thread at a time uses it."""

    def __init__(self, settings: Mapping[str, str], spill: str) -> None:
        """`settings`: DuckDB settings; `spill`: a directory that DuckDB creates when memory is full, and removes.

        Raises: UsageError for settings that DuckDB rejects; UnsupportedError as `driver`.
        """
        self._driver = driver()
        self.connection: duckdb.DuckDBPyConnection = self._driver.connect(":memory:")
        self._failures: list[BaseException] = []
        self._count = 0
        with self.translate_errors("settings"):
            for name, value in {"temp_directory": spill, **settings}.items():
                if not _SETTING.fullmatch(name) or not isinstance(value, (str, int, bool)):
                    raise UsageError(f"settings of DuckDB must be names and strings, not {name!r}: {value!r}")
                self._run(f"SET {name} = {_literal(str(value))}")
            for statement in _LOCKED:
                self._run(statement)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection and cancel running queries."""
        self.connection.close()

    def parse(self, query: str) -> dict[str, Any]:
        """The syntax tree of a query, in DuckDB's JSON form.

        Raises: UsageError if it is not SQL, UnsupportedError for statements that do more than read.
        """
        with self.translate_errors("sql"):
            for statement in self.connection.extract_statements(query):
                kind = statement.type.name.upper()
                if kind != "SELECT":
                    way = f"; {_WAYS[kind]}" if kind in _WAYS else ""
                    raise UnsupportedError(f"sql only reads tables, {kind} is refused{way}", feature=kind)
            tree: dict[str, Any] = json.loads(self._ask("SELECT json_serialize_sql(?)", [query]))
            if tree.get("error"):
                raise UsageError(f"sql: {tree.get('error_message')}")
        return tree

    def unparse(self, tree: Mapping[str, Any]) -> str:
        """The SQL text of a syntax tree."""
        with self.translate_errors("sql"):
            return str(self._ask("SELECT json_deserialize_sql(?)", [json.dumps(tree)]))

    def add(self, database: str, view: str, rows: Rows) -> None:
        """Create a view over rows, which are read each time a query reads the view.

        Raises: UnsupportedError for columns that DuckDB cannot distinguish.
        """
        names = [name.lower() for name in rows.schema.names]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise UnsupportedError(
                f"sql cannot read {database}.{view}: DuckDB ignores the case of names, and the table has several"
                f" columns {twice[0]!r}", feature="names that differ in case",
            )  # fmt: skip
        self._count += 1
        source = f"rows_{self._count}"
        with self.translate_errors("sql"):
            self.connection.register(source, _WatchedDataset(rows, self._failures))
            self._run(f"CREATE SCHEMA IF NOT EXISTS {_quote(database)}")
            self._run(f"CREATE VIEW {_quote(database)}.{_quote(view)} AS SELECT * FROM {source}")

    def add_view(self, view: ViewText) -> None:
        """Create a view of a catalog, whose tables were added before.

        Raises: UsageError if DuckDB rejects its query.
        """
        columns = ", ".join(map(_quote, view.columns))
        self.use(view.database)
        with self.translate_errors(f"sql: view {view.database}.{view.view}"):
            self._run(f"CREATE VIEW {_quote(view.view)} ({columns}) AS {view.text}")

    def use(self, database: str) -> None:
        """Use this database for tables without one."""
        with self.translate_errors("sql"):
            self._run(f"CREATE SCHEMA IF NOT EXISTS {_quote(database)}")
            self.connection.execute(f"SET schema = {_literal(_quote(database))}").fetchall()

    def schema(self, query: str, parameters: Parameters) -> pa.Schema:
        """Names and types of the result columns of a query. Cost: no row is read."""
        with self.translate_errors("sql"):
            relation = self.connection.sql(query, params=parameters)
            names = relation.columns
            types = relation.limit(0).to_arrow_table().schema.types
        return pa.schema(list(zip(names, types, strict=True)))

    def explain(self, query: str, parameters: Parameters) -> str:
        """DuckDB's plan for a query. Cost: no row is read."""
        with self.translate_errors("sql"):
            return "\n".join(row[1] for row in self.connection.execute(f"EXPLAIN {query}", parameters).fetchall())

    def batches(self, query: str, parameters: Parameters) -> Iterator[pa.RecordBatch]:
        """The result rows of a query, as a stream."""
        with self.translate_errors("sql"):
            yield from self.connection.sql(query, params=parameters).to_arrow_reader(_BATCH_ROWS)

    @contextmanager
    def translate_errors(self, what: str) -> Iterator[None]:
        """Re-raise errors from reading tables unchanged, and translate errors of DuckDB to PaimonErrors.

        Raises: ResourceError if memory or space to spill ran out, UsageError for all other errors of DuckDB.
        """
        try:
            yield
        except PaimonError:
            raise
        except (self._driver.Error, pa.ArrowException, OSError) as error:
            if self._failures:
                raise self._failures[0] from error
            text = _first_part(str(error))
            if isinstance(error, self._driver.OutOfMemoryException) or "Out of Memory Error" in text:
                raise ResourceError(f"{what}: {text}") from error
            if isinstance(error, self._driver.PermissionException):
                text += "; sql reads only the tables of the catalog, not files"
            raise UsageError(f"{what}: {text}") from error

    def _run(self, statement: str) -> None:
        self.connection.execute(statement).fetchall()

    def _ask(self, statement: str, values: Sequence[object]) -> Any:
        return self.connection.execute(statement, values).fetchall()[0][0]


class _WatchedDataset(ScanDataset):
    """A dataset that records errors while it is read, since DuckDB passes on only their text."""

    def __init__(self, rows: Rows, failures: list[BaseException]) -> None:
        super().__init__(rows)
        self._failures = failures

    def scanner(self, *args: Any, **kwargs: Any) -> Any:
        """Read some columns; errors while reading are recorded."""
        try:
            return _WatchedScanner(super().scanner(*args, **kwargs), self._failures)
        except PaimonError as error:
            self._failures.append(error)
            raise


class _WatchedScanner:
    """The part of Arrow's scanner interface that DuckDB uses."""

    def __init__(self, scanner: ScanScanner, failures: list[BaseException]) -> None:
        self._scanner, self._failures = scanner, failures
        self.projected_schema = scanner.projected_schema

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self._watch())

    def _watch(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._scanner.to_batches()
        except PaimonError as error:
            self._failures.append(error)
            raise


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _first_part(message: str) -> str:
    """DuckDB's message, without the Python tracebacks that it repeats."""
    return message.partition(" Detail: Python exception")[0].strip()
