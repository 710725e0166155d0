"""A SQL database through SQLAlchemy: statements, and conversion of errors."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from paimon_py.env import Env
from paimon_py.errors import OptionError, StorageError, StorageUnknownError, UsageError
from paimon_py.metastores.jdbc.urls import database_url
from paimon_py.spec.redact import HIDDEN, harmless_options, shown_text

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection, Engine

URI = "uri"
POOL_SIZE = "client-pool-size"
_SQLITE_WAIT_SECONDS = 60
_BUSY_MYSQL = (1205, 1213)
_BUSY_POSTGRES = ("40001", "40P01")

Statement = tuple[str, Mapping[str, Any]]
Row = Sequence[Any]


class TakenError(StorageError):
    """A row with the same key exists."""

    kind = "row-taken"


class SqlDatabase:
    """Connections to one database, opened on demand.

    Can be pickled, without user and password.
    """

    __slots__ = ("__weakref__", "_engines", "_env", "_options", "_url")

    def __init__(self, options: Mapping[str, str], env: Env) -> None:
        """Raises: UsageError, OptionError, UnsupportedError as `database_url`; or the package is not installed."""
        try:
            self._url = database_url(options.get(URI), options)
        except ImportError as error:
            raise UsageError("JDBC catalogs need SQLAlchemy: pip install 'paimon-py[jdbc]'") from error
        self._options = options
        self._env = env
        self._engines: dict[int, Engine] = {}  # by process: connections do not survive a fork
        weakref.finalize(self, _close, self._engines, env)

    @property
    def dialect(self) -> str:
        """`postgresql`, `mysql`, `mariadb` or `sqlite`."""
        return str(self._url.get_backend_name())

    def rows(self, sql: str, **values: Any) -> list[Row]:
        """The rows of a query.

        Raises: StorageError if the query fails.
        """
        from sqlalchemy import text

        with self._translate_errors("read"), self._connection() as connection:
            return [tuple(row) for row in connection.execute(text(sql), values)]

    def write(self, *statements: Statement) -> int:
        """Execute all statements or none; returns the number of rows changed by the first one.

        Raises:
            TakenError: a row with the same key exists; nothing was done.
            StorageUnknownError: the outcome of the statements is unknown.
            StorageError: nothing was done.
        """
        from sqlalchemy import text

        with self._translate_errors("write"), self._connection() as connection:
            try:
                changed = [int(connection.execute(text(sql), values).rowcount) for sql, values in statements]
            except BaseException:
                connection.rollback()
                raise
            with self._translate_errors("commit"):
                connection.commit()
            return changed[0]

    def has_table(self, name: str) -> bool:
        """Whether a table of this name exists."""
        from sqlalchemy import inspect

        with self._translate_errors("read"), self._connection() as connection:
            return bool(inspect(connection).has_table(name))

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        process = self._env.ids.process()
        engine = self._engines.get(process)
        if engine is None:
            made = self._new_engine()
            engine = self._engines.setdefault(process, made)
            if engine is not made:
                made.dispose()
        with engine.connect() as connection:
            yield connection

    def _new_engine(self) -> Engine:
        from sqlalchemy import create_engine

        text = self._options.get(POOL_SIZE, "2")
        if not text.strip().isdecimal() or int(text) < 1:
            raise OptionError(f"option {POOL_SIZE} must be a whole number above 0, not {text!r}", option=POOL_SIZE)
        more = {"connect_args": {"timeout": _SQLITE_WAIT_SECONDS}} if self.dialect == "sqlite" else {}
        try:
            return create_engine(self._url, pool_size=int(text), max_overflow=-1, pool_pre_ping=True, **more)
        except ImportError as error:
            driver = self._url.drivername
            raise UsageError(f"the driver for {driver} is not installed: pip install 'paimon-py[jdbc]'") from error

    @contextmanager
    def _translate_errors(self, operation: str) -> Iterator[None]:
        """Convert SQLAlchemy errors, without the password. For `commit`, the outcome may be unknown."""
        from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

        try:
            yield
        except IntegrityError as error:
            raise TakenError(self._error_text(operation, error), operation=operation) from None
        except SQLAlchemyError as error:
            lost = isinstance(error, DBAPIError) and (error.connection_invalidated or _is_transient(error.orig))
            error_text = self._error_text(operation, error)
            if operation == "commit":
                raise StorageUnknownError(error_text, operation=operation, transient=True) from None
            raise StorageError(error_text, operation=operation, transient=lost) from None

    def _error_text(self, operation: str, error: Exception) -> str:
        cause = getattr(error, "orig", None) or error
        error_text = shown_text(str(cause).strip())
        password = self._url.password
        if password:
            error_text = error_text.replace(str(password), HIDDEN)
        shown = self._url.render_as_string(hide_password=True)
        return f"{operation} in the catalog's database {shown} failed: {type(cause).__name__}: {error_text}"

    def __reduce__(self) -> tuple[object, ...]:
        url = self._url.set(username=None, password=None).render_as_string(hide_password=False)
        return _reopen, ({**harmless_options(self._options), URI: url},)

    def __repr__(self) -> str:
        return f"SqlDatabase({self._url.render_as_string(hide_password=True)!r})"


def _close(engines: dict[int, Engine], env: Env) -> None:
    """Close the connections of this process."""
    engine = engines.pop(env.ids.process(), None)
    if engine is not None:
        engine.dispose()


def _is_transient(error: BaseException | None) -> bool:
    """Whether a database aborted because of concurrent transactions."""
    first = error.args[0] if error is not None and error.args else None
    return first in _BUSY_MYSQL or getattr(error, "sqlstate", None) in _BUSY_POSTGRES or "is locked" in str(first)


def _reopen(options: Mapping[str, str]) -> SqlDatabase:
    return SqlDatabase(options, Env())
