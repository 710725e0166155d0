"""The names of databases and tables, as rows of a SQL database with one catalog key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from paimon_py.errors import OptionError
from paimon_py.metastores.jdbc import sql
from paimon_py.metastores.jdbc.database import SqlDatabase, Statement
from paimon_py.metastores.metastore import TableName
from paimon_py.spec.schema import TableSchema

SYNC = "sync-all-properties"


class Names(msgspec.Struct, frozen=True):
    """The rows of one catalog. `keeps_options`: whether the database stores a copy of table options.

    All methods raise as `SqlDatabase.rows` and `SqlDatabase.write`.
    """

    sql_database: SqlDatabase
    catalog_key: str
    keeps_options: bool

    def databases(self) -> list[str]:
        """Names of all databases, sorted."""
        return sorted(row[0] for row in self._rows(sql.LIST_DATABASES))

    def has_database(self, name: str) -> bool:
        """Whether a database exists because of a table, a view or an option."""
        return bool(self._rows(sql.FIND_DATABASE, database=name))

    def options_of_database(self, name: str) -> dict[str, str]:
        """The stored options of a database; may be empty."""
        return {row[0]: row[1] or "" for row in self._rows(sql.DATABASE_OPTIONS, database=name)}

    def add_database(self, name: str, options: Mapping[str, str]) -> None:
        """Store a database with its options.

        Raises: OptionError for a value that is too long.
        """
        _check_lengths(options)
        self._write(
            *((sql.ADD_DATABASE_OPTION, {"database": name, "key": key, "value": options[key]}) for key in options)
        )

    def drop_database(self, name: str) -> None:
        """Delete a database and everything in it."""
        self._write(*((statement, {"database": name}) for statement in sql.DROP_DATABASE))

    def tables(self, database: str) -> list[str]:
        """Names of the tables of a database, sorted."""
        return sorted(row[0] for row in self._rows(sql.LIST_TABLES, database=database))

    def has_table(self, name: TableName) -> bool:
        """Whether a table exists."""
        return bool(self._rows(sql.FIND_TABLE, **_keys(name)))

    def has_view(self, name: TableName) -> bool:
        """Whether a view exists."""
        return bool(self._rows(sql.FIND_VIEW, **_keys(name)))

    def add_table(self, name: TableName, schema: TableSchema) -> None:
        """Add a table, with its options."""
        self._write((sql.ADD_TABLE, _keys(name)), *self._options(name, schema))

    def keep_options(self, name: TableName, schema: TableSchema) -> None:
        """Update the options of a table."""
        if self.keeps_options:
            self._write(*self._options(name, schema))

    def drop_table(self, name: TableName) -> bool:
        """Delete a table; returns whether it existed."""
        return bool(self._write((sql.DROP_TABLE, _keys(name)), (sql.DROP_TABLE_OPTIONS, _keys(name))))

    def rename_table(self, name: TableName, to: TableName) -> None:
        """Rename a table."""
        keys = {**_keys(name), "to_database": to.database, "to_table": to.table}
        self._write((sql.RENAME_TABLE, keys), (sql.RENAME_TABLE_OPTIONS, keys))

    def options_of(self, schema: TableSchema) -> dict[str, str]:
        """The options of a schema that the database stores.

        Raises: OptionError for a value that is too long.
        """
        if not self.keeps_options:
            return {}
        keys = (
            ("primary-key", schema.primary_keys),
            ("partition", schema.partition_keys),
            ("bucket-key", schema.bucket_keys),
        )
        found = {**schema.options, **{name: ",".join(columns) for name, columns in keys if columns}}
        _check_lengths(found)
        return found

    def _options(self, name: TableName, schema: TableSchema) -> list[Statement]:
        options = self.options_of(schema)
        adding = [(sql.ADD_TABLE_OPTION, {**_keys(name), "key": key, "value": options[key]}) for key in options]
        return [(sql.DROP_TABLE_OPTIONS, _keys(name)), *adding]

    def _rows(self, statement: str, **keys: Any) -> list[Sequence[Any]]:
        return self.sql_database.rows(statement, catalog=self.catalog_key, **keys)

    def _write(self, *statements: Statement) -> int:
        return self.sql_database.write(*((text, {"catalog": self.catalog_key, **keys}) for text, keys in statements))


def _keys(name: TableName) -> dict[str, str]:
    return {"database": name.database, "table": name.table}


def _check_lengths(options: Mapping[str, str]) -> None:
    for name, value in options.items():
        if len(value) > sql.PROPERTY_LENGTH:
            raise OptionError(
                f"the value of {name!r} has {len(value)} characters, and the catalog's database stores"
                f" {sql.PROPERTY_LENGTH}; open the catalog with '{SYNC}' = 'false' to keep options with the table only",
                option=name,
            )
