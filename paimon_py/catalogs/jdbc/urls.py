"""The URL of a database: Java's `jdbc:` form or SQLAlchemy's own, as SQLAlchemy takes it.

Source: Java `JdbcClientPool`, `JdbcUtils.extractJdbcConfiguration`; the documentation of the JDBC drivers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from paimon_py.errors import OptionError, UnsupportedError, UsageError
from paimon_py.spec.shown import shown_url

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

PROPERTY_PREFIX = "jdbc."
"""Catalog options with this prefix are properties of a driver in Java; `user` and `password` are ours, too."""

DIALECTS = {
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mysql+pymysql",
    "sqlite": "sqlite",
}
"""Names of databases, and the drivers that the extra `jdbc` installs."""

_OF_JAVA_DRIVERS = frozenset((
    "allowPublicKeyRetrieval", "ApplicationName", "autoReconnect", "characterEncoding", "rewriteBatchedStatements",
    "serverTimezone", "tcpKeepAlive", "useUnicode", "zeroDateTimeBehavior",
))  # fmt: skip
"""Parameters of Java's drivers that change nothing of what is stored."""


def database_url(uri: str | None, options: Mapping[str, str]) -> URL:
    """The URL to connect to, with user and password from the options `jdbc.user` and `jdbc.password` if given there.

    Raises:
        UsageError: there is no URL, or one that cannot be read.
        UnsupportedError: a database other than PostgreSQL, MySQL, MariaDB and SQLite.
        OptionError: a parameter of a Java driver that is not known here.
    """
    if not uri:
        raise UsageError(
            "a JDBC catalog needs the option 'uri': jdbc:postgresql://host/database, jdbc:mysql://host/database,"
            " jdbc:sqlite:/path, or a SQLAlchemy URL"
        )
    url = _from_java(uri[len("jdbc:") :]) if uri.lower().startswith("jdbc:") else _parsed(uri)
    name, plus, _ = url.drivername.partition("+")
    if name not in DIALECTS:
        raise UnsupportedError(
            f"JDBC catalogs are kept in PostgreSQL, MySQL, MariaDB or SQLite, not in {name!r}", feature=f"jdbc:{name}"
        )
    if name == "sqlite" and (not url.database or ":memory:" in url.database):
        raise UsageError("a catalog in SQLite needs a file: jdbc:sqlite:/path or sqlite:////path")
    url = url if plus else url.set(drivername=DIALECTS[name])
    if name == "sqlite":
        return url
    user, password = options.get(PROPERTY_PREFIX + "user"), options.get(PROPERTY_PREFIX + "password")
    url = url if user is None else url.set(username=user)
    return url if password is None else url.set(password=password)


def _from_java(rest: str) -> URL:
    """What follows `jdbc:`."""
    from sqlalchemy.engine import URL

    name, _, tail = rest.partition(":")
    if name == "sqlite":
        return URL.create("sqlite", database=tail.removeprefix("file:") or None)
    place, _, query = tail.partition("?")
    url = _parsed(f"{name}:{place}")
    for parameter, value in parse_qsl(query, keep_blank_values=True):
        if parameter == "user":
            url = url.set(username=value)
        elif parameter == "password":
            url = url.set(password=value)
        elif parameter == "currentSchema" and name.startswith("postgres"):
            url = url.update_query_dict({"options": f"-csearch_path={value}"})
        elif parameter == "sslmode" and name.startswith("postgres"):
            url = url.update_query_dict({"sslmode": value})
        elif not (parameter in _OF_JAVA_DRIVERS or (parameter == "useSSL" and value == "false")):
            raise OptionError(
                f"parameter {parameter!r} of the JDBC URL is not known here; leave it out, or give 'uri' as a"
                " SQLAlchemy URL with what the Python driver takes",
                option="uri",
            )
    return url


def _parsed(text: str) -> URL:
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(text)
    except (ArgumentError, ValueError) as error:
        raise UsageError(f"'uri' is no URL of a database: {shown_url(text)!r}") from error
