"""Statements of a JDBC catalog: Java's tables and keys, with `:name` placeholders for values. Pure.

Source: Java `JdbcUtils`, `AbstractDistributedLockDialect` and its subclasses, release 2.0.
"""

from __future__ import annotations

TABLES = "paimon_tables"
DATABASE_PROPERTIES = "paimon_database_properties"
TABLE_PROPERTIES = "paimon_table_properties"
VIEWS = "paimon_views"
LOCKS = "paimon_distributed_locks"

_NAME = "VARCHAR(255) NOT NULL"

CREATE: dict[str, str] = {
    TABLES: f"CREATE TABLE {TABLES} (catalog_key {_NAME}, database_name {_NAME}, table_name {_NAME},"
    " PRIMARY KEY (catalog_key, database_name, table_name))",
    DATABASE_PROPERTIES: f"CREATE TABLE {DATABASE_PROPERTIES} (catalog_key {_NAME}, database_name {_NAME},"
    " property_key VARCHAR(255), property_value VARCHAR(1000), PRIMARY KEY (catalog_key, database_name, property_key))",
    TABLE_PROPERTIES: f"CREATE TABLE {TABLE_PROPERTIES} (catalog_key {_NAME}, database_name {_NAME},"
    f" table_name {_NAME}, property_key {_NAME}, property_value VARCHAR(1000),"
    " PRIMARY KEY (catalog_key, database_name, table_name, property_key))",
    VIEWS: f"CREATE TABLE {VIEWS} (catalog_key {_NAME}, database_name {_NAME}, view_name {_NAME},"
    " view_schema TEXT NOT NULL, PRIMARY KEY (catalog_key, database_name, view_name))",
}
"""The CREATE statement of each table."""

PROPERTY_LENGTH = 1000
"""The maximum number of characters of a property value."""

OF_MYSQL = " DEFAULT CHARACTER SET utf8mb3"
"""A character set that makes keys of four names short enough for MySQL and MariaDB; the default exceeds their 3,072
bytes."""


def create_locks(key_length: int) -> str:
    """The CREATE statement of the table of locks."""
    return (
        f"CREATE TABLE {LOCKS} (lock_id VARCHAR({key_length}) NOT NULL,"
        " acquired_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL, expire_time_seconds BIGINT DEFAULT 0 NOT NULL,"
        " PRIMARY KEY (lock_id))"
    )


_OF_DATABASE = " WHERE catalog_key = :catalog AND database_name = :database"
_OF_TABLE = _OF_DATABASE + " AND table_name = :table"

LIST_DATABASES = " UNION ".join(
    f"SELECT database_name FROM {table} WHERE catalog_key = :catalog" for table in (TABLES, DATABASE_PROPERTIES, VIEWS)
)
FIND_DATABASE = " UNION ".join(
    f"SELECT database_name FROM {table}{_OF_DATABASE}" for table in (TABLES, DATABASE_PROPERTIES, VIEWS)
)
DATABASE_OPTIONS = f"SELECT property_key, property_value FROM {DATABASE_PROPERTIES}{_OF_DATABASE}"
ADD_DATABASE_OPTION = f"INSERT INTO {DATABASE_PROPERTIES} VALUES (:catalog, :database, :key, :value)"
DROP_DATABASE = tuple(
    f"DELETE FROM {table}{_OF_DATABASE}" for table in (TABLES, DATABASE_PROPERTIES, TABLE_PROPERTIES, VIEWS)
)

LIST_TABLES = f"SELECT table_name FROM {TABLES}{_OF_DATABASE}"
FIND_TABLE = f"SELECT table_name FROM {TABLES}{_OF_TABLE}"
FIND_VIEW = f"SELECT view_name FROM {VIEWS}{_OF_DATABASE} AND view_name = :table"
LIST_VIEWS = f"SELECT view_name FROM {VIEWS}{_OF_DATABASE}"
_OF_VIEW = _OF_DATABASE + " AND view_name = :table"
GET_VIEW = f"SELECT view_schema FROM {VIEWS}{_OF_VIEW}"
ADD_VIEW = f"INSERT INTO {VIEWS} VALUES (:catalog, :database, :table, :schema)"
CHANGE_VIEW = f"UPDATE {VIEWS} SET view_schema = :schema{_OF_VIEW} AND view_schema = :before"
DROP_VIEW = f"DELETE FROM {VIEWS}{_OF_VIEW}"
RENAME_VIEW = f"UPDATE {VIEWS} SET database_name = :to_database, view_name = :to_table{_OF_VIEW}"
ADD_TABLE = f"INSERT INTO {TABLES} VALUES (:catalog, :database, :table)"
DROP_TABLE = f"DELETE FROM {TABLES}{_OF_TABLE}"
RENAME_TABLE = f"UPDATE {TABLES} SET database_name = :to_database, table_name = :to_table{_OF_TABLE}"
ADD_TABLE_OPTION = f"INSERT INTO {TABLE_PROPERTIES} VALUES (:catalog, :database, :table, :key, :value)"
DROP_TABLE_OPTIONS = f"DELETE FROM {TABLE_PROPERTIES}{_OF_TABLE}"
RENAME_TABLE_OPTIONS = f"UPDATE {TABLE_PROPERTIES} SET database_name = :to_database, table_name = :to_table{_OF_TABLE}"

TAKE_LOCK = f"INSERT INTO {LOCKS} (lock_id, expire_time_seconds) VALUES (:lock, :seconds)"
SEE_LOCK = f"SELECT acquired_at FROM {LOCKS} WHERE lock_id = :lock"
GIVE_LOCK = f"DELETE FROM {LOCKS} WHERE lock_id = :lock AND acquired_at = :since"
_QUARTER = 900
_DAY_OF_ZONES = 26 * 3600
_POSTGRES_AGE = "EXTRACT(EPOCH FROM (CAST(NOW() AS timestamp) - acquired_at))"
_STALE = {
    "sqlite": "strftime('%s', 'now') - strftime('%s', acquired_at) > expire_time_seconds",
    "mysql": "TIMESTAMPDIFF(SECOND, acquired_at, NOW()) > expire_time_seconds",
    "postgresql": f"((expire_time_seconds < {_QUARTER}"
    f" AND MOD(MOD({_POSTGRES_AGE}, {_QUARTER}) + {_QUARTER}, {_QUARTER}) > expire_time_seconds)"
    f" OR {_POSTGRES_AGE} > expire_time_seconds + {_DAY_OF_ZONES})",
}
_STALE["mariadb"] = _STALE["mysql"]


def drop_stale_lock(dialect: str) -> str:
    """Delete a lock that was held for longer than its declared lifetime, by the clock of the database.

    PostgreSQL stores the time in the zone of the holder's session, and Java's sessions use the zone of the machine.
    Zones differ by whole quarters of an hour: a lock is deleted if the remainder exceeds its lifetime. A lock that is
    held is therefore never deleted, and a stale one within a quarter of an hour.
    """
    return f"DELETE FROM {LOCKS} WHERE {_STALE[dialect]} AND lock_id = :lock"
