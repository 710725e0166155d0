"""The URL of a database: converts Java's `jdbc:` form, or SQLAlchemy's own, for SQLAlchemy.

Source: Java `JdbcClientPool`, `JdbcUtils.extractJdbcConfiguration`; the documentation of the JDBC drivers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from paimon_py.errors import OptionError, UnsupportedError, UsageError
from paimon_py.spec.redact import shown_url

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

PROPERTY_PREFIX = "jdbc."
"""Catalog options with this prefix are driver properties in Java, like the parameters of a JDBC URL."""

DIALECTS = {
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mysql+pymysql",
    "sqlite": "sqlite",
}
"""The supported databases, and their drivers, which the extra `jdbc` installs."""

_OF_JAVA_DRIVERS = frozenset((
    "allowPublicKeyRetrieval", "ApplicationName", "autoReconnect", "characterEncoding", "rewriteBatchedStatements",
    "serverTimezone", "tcpKeepAlive", "useUnicode", "zeroDateTimeBehavior",
))  # fmt: skip
"""Parameters of Java's drivers that do not affect stored data."""


def database_url(uri: str | None, options: Mapping[str, str]) -> URL:
    """The URL to connect to; the options `jdbc.<parameter>` override those in the URL.

    Raises:
        UsageError: the URL is missing or invalid.
        UnsupportedError: a database other than PostgreSQL, MySQL, MariaDB and SQLite.
        OptionError: an unknown parameter of a Java driver, in the URL or as an option.
    """
    if not uri:
        raise UsageError(
            "a JDBC catalog needs the option 'uri': jdbc:postgresql://host/database, jdbc:mysql://host/database,"
            " jdbc:sqlite:/path, or a SQLAlchemy URL"
        )
    url = _from_java(uri[len("jdbc:") :]) if uri.lower().startswith("jdbc:") else _parse_url(uri)
    name, plus, _ = url.drivername.partition("+")
    if name not in DIALECTS:
        raise UnsupportedError(
            f"JDBC catalogs are stored in PostgreSQL, MySQL, MariaDB or SQLite, not in {name!r}", feature=f"jdbc:{name}"
        )
    if name == "sqlite" and (not url.database or ":memory:" in url.database):
        raise UsageError("a catalog in SQLite needs a file: jdbc:sqlite:/path or sqlite:////path")
    url = url if plus else url.set(drivername=DIALECTS[name])
    for option, value in options.items():
        parameter = option.removeprefix(PROPERTY_PREFIX)
        if parameter != option and (name != "sqlite" or parameter not in ("user", "password")):
            url = _with_parameter(url, parameter, value, option)
    return url


def _from_java(rest: str) -> URL:
    """Convert the part after `jdbc:`."""
    from sqlalchemy.engine import URL

    name, _, tail = rest.partition(":")
    if name == "sqlite":
        return URL.create("sqlite", database=tail.removeprefix("file:") or None)
    place, _, query = tail.partition("?")
    url = _parse_url(f"{name}:{place}")
    for parameter, value in parse_qsl(query, keep_blank_values=True):
        url = _with_parameter(url, parameter, value, "uri")
    return url


def _with_parameter(url: URL, parameter: str, value: str, option: str) -> URL:
    """The URL with a parameter of Java's driver, from an option."""
    is_postgres = url.drivername.startswith("postgres")
    if parameter == "user":
        return url.set(username=value)
    if parameter == "password":
        return url.set(password=value)
    if parameter == "currentSchema" and is_postgres:
        return url.update_query_dict({"options": f"-csearch_path={value}"})
    if parameter == "sslmode" and is_postgres:
        return url.update_query_dict({"sslmode": value})
    if parameter in _OF_JAVA_DRIVERS or (parameter == "useSSL" and value == "false"):
        return url
    raise OptionError(
        f"parameter {parameter!r} of {'the JDBC URL' if option == 'uri' else f'option {option!r}'} is not supported;"
        " leave it out, or give 'uri' as a SQLAlchemy URL with parameters of the Python driver",
        option=option,
    )


def _parse_url(text: str) -> URL:
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(text)
    except (ArgumentError, ValueError) as error:
        raise UsageError(f"'uri' is not a URL of a database: {shown_url(text)!r}") from error
