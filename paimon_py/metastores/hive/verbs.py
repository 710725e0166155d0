"""Operations on the records of a Hive Metastore, for servers of Hive 2.3 to 4.0, including recovery of lost answers.

Hive 4 lacks some calls of Hive 2, and vice versa: the newer call is tried first, until a server reports that it does
not have it. After a lost answer the current state is read from the metastore.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paimon_py.errors import StorageError, StorageUnknownError
from paimon_py.metastores.hive import thrift
from paimon_py.metastores.hive.calls import ALREADY_EXISTS, NO_SUCH_OBJECT
from paimon_py.metastores.hive.connection import Client, MissingCallError, RefusedError
from paimon_py.metastores.hive.records import T_KEYS, T_PARAMETERS, T_SD, location_of
from paimon_py.metastores.hive.thrift import BOOL, I16, STRUCT, Struct
from paimon_py.metastores.metastore import TableName

_CAPABILITIES = (STRUCT, {1: (thrift.LIST, thrift.Items(thrift.I32, [2]))})
"""Insert-only tables, without which databases that contain one cannot be listed: only records are read here."""

_TABLES_AT_ONCE = 300
_PARTITIONS_AT_ONCE = 300


class HiveVerbs:
    """Reads and writes the records of a metastore."""

    __slots__ = ("client",)

    def __init__(self, client: Client) -> None:
        self.client = client

    # -- databases --------------------------------------------------------------------------------------------------

    def databases(self) -> list[str]:
        """Names of all databases. Cost: one call."""
        return thrift.texts(_of(self.client.call("get_all_databases")), 0)

    def database(self, name: str) -> Struct | None:
        """The record of a database, None if it does not exist. Cost: one call."""
        return self._find("get_database", thrift.of_text(name), target=name)

    def create_database(self, name: str, record: Struct) -> bool:
        """Create a database; False if it exists.

        Raises: StorageError
        """
        try:
            self._call("create_database", (STRUCT, record), target=name)
        except RefusedError as error:
            if error.name == ALREADY_EXISTS:
                return False
            raise _failure("create_database", name, error) from error
        except StorageUnknownError:
            if self.database(name) is None:
                raise
        return True

    def drop_database(self, name: str) -> None:
        """Delete the record of a database without tables.

        Raises: RefusedError (InvalidOperationException) if it has tables.
        """
        try:
            self._call("drop_database", thrift.of_text(name), (BOOL, False), (BOOL, False), target=name)
        except RefusedError as error:
            if error.name != NO_SUCH_OBJECT:
                raise
        except StorageUnknownError:
            if self.database(name) is not None:
                raise

    # -- tables -----------------------------------------------------------------------------------------------------

    def tables(self, database: str) -> list[Struct]:
        """The records of all tables of a database. Cost: one call, and one per 300 tables."""
        names = thrift.texts(_of(self.client.call("get_all_tables", thrift.of_text(database))), 0)
        found: list[Struct] = []
        for start in range(0, len(names), _TABLES_AT_ONCE):
            found += self._tables(database, names[start : start + _TABLES_AT_ONCE])
        return found

    def _tables(self, database: str, names: Sequence[str]) -> list[Struct]:
        named = thrift.of_texts(names)
        try:
            if self.client.has("get_table_objects_by_name_req"):
                request = (STRUCT, {1: thrift.of_text(database), 2: named, 3: _CAPABILITIES})
                answer = self._call("get_table_objects_by_name_req", request, target=database)
                return thrift.structs(thrift.inner(_of(answer), 0), 1)
        except MissingCallError:
            pass
        answer = self._call("get_table_objects_by_name", thrift.of_text(database), named, target=database)
        return thrift.structs(_of(answer), 0)

    def table(self, name: TableName) -> Struct | None:
        """The record of a table or view, None if it does not exist. Cost: one call."""
        database, table = thrift.of_text(name.database), thrift.of_text(name.table)
        try:
            if self.client.has("get_table_req"):
                request = (STRUCT, {1: database, 2: table, 3: _CAPABILITIES})
                answer = self._find("get_table_req", request, target=str(name))
                return None if answer is None else thrift.inner(answer, 1)
        except MissingCallError:
            pass
        return self._find("get_table", database, table, target=str(name))

    def create_table(self, name: TableName, record: Struct) -> bool:
        """Add the record of a table; False if another table has the name.

        Raises:
            StorageUnknownError: the outcome is unknown; the table did not exist when it was checked.
            StorageError: the metastore refuses the record.
        """
        try:
            self._call("create_table", (STRUCT, record), target=str(name))
        except RefusedError as error:
            if error.name == ALREADY_EXISTS:
                return False
            raise _failure("create_table", str(name), error) from error
        except StorageUnknownError:
            there = self.table(name)
            if there is None:
                raise
            return location_of(there) == location_of(record)
        return True

    def drop_table(self, name: TableName) -> bool:
        """Delete the record of a table, but no data; False if it does not exist.

        Raises: StorageUnknownError if the outcome is unknown and the record still exists.
        """
        try:
            self._call(
                "drop_table", thrift.of_text(name.database), thrift.of_text(name.table), (BOOL, False), target=str(name)
            )
        except RefusedError as error:
            if error.name == NO_SUCH_OBJECT:
                return False
            raise _failure("drop_table", str(name), error) from error
        except StorageUnknownError:
            if self.table(name) is not None:
                raise
        return True

    def alter_table(self, name: TableName, record: Struct, settings: Mapping[str, str]) -> None:
        """Replace the record of a table, optionally by one with another name.

        Raises:
            RefusedError: the metastore refuses.
            StorageUnknownError: the outcome is unknown, and the current record is not the new one.
        """
        context = (STRUCT, {1: thrift.of_mapping(settings)})
        new = TableName(thrift.text(record, 2) or "", thrift.text(record, 1) or "")
        try:
            self._call(
                "alter_table_with_environment_context", thrift.of_text(name.database), thrift.of_text(name.table),
                (STRUCT, record), context, target=str(name),
            )  # fmt: skip
        except StorageUnknownError:
            there = self.table(new)
            if there is None or not _is_same_record(there, record):
                raise

    # -- partitions -------------------------------------------------------------------------------------------------

    def partition_names(self, name: TableName) -> list[str]:
        """The partitions of a table as `key=value/…`, empty if the table does not exist. Cost: one call."""
        try:
            answer = self._call(
                "get_partition_names", thrift.of_text(name.database), thrift.of_text(name.table), (I16, -1),
                target=str(name),
            )  # fmt: skip
        except RefusedError:
            return []
        return thrift.texts(_of(answer), 0)

    def partitions(self, name: TableName) -> list[Struct]:
        """The records of all partitions of a table. Cost: one call."""
        answer = self._call(
            "get_partitions", thrift.of_text(name.database), thrift.of_text(name.table), (I16, -1), target=str(name)
        )
        return thrift.structs(_of(answer), 0)

    def partition(self, name: TableName, values: Sequence[str]) -> Struct | None:
        """The record of one partition, None if it does not exist."""
        return self._find(
            "get_partition", thrift.of_text(name.database), thrift.of_text(name.table), thrift.of_texts(values),
            target=str(name),
        )  # fmt: skip

    def add_partitions(self, name: TableName, records: Sequence[Struct]) -> None:
        """Add partitions; existing ones are not changed.

        Raises: StorageError
        """
        for start in range(0, len(records), _PARTITIONS_AT_ONCE):
            request: Struct = {
                1: thrift.of_text(name.database),
                2: thrift.of_text(name.table),
                3: thrift.of_structs(records[start : start + _PARTITIONS_AT_ONCE]),
                4: (BOOL, True),
                5: (BOOL, False),
            }
            try:
                self._call("add_partitions_req", (STRUCT, request), target=str(name))
            except RefusedError as error:
                if error.name != ALREADY_EXISTS:
                    raise _failure("add_partitions", str(name), error) from error

    def change_partitions(self, name: TableName, records: Sequence[Struct]) -> None:
        """Replace the records of existing partitions.

        Raises: StorageError
        """
        for start in range(0, len(records), _PARTITIONS_AT_ONCE):
            try:
                self._call(
                    "alter_partitions", thrift.of_text(name.database), thrift.of_text(name.table),
                    thrift.of_structs(records[start : start + _PARTITIONS_AT_ONCE]), target=str(name),
                )  # fmt: skip
            except RefusedError as error:
                raise _failure("alter_partitions", str(name), error) from error

    def drop_partition(self, name: TableName, values: Sequence[str]) -> None:
        """Delete the record of a partition, but no data; does nothing if it does not exist.

        Raises: StorageError
        """
        try:
            self._call(
                "drop_partition", thrift.of_text(name.database), thrift.of_text(name.table), thrift.of_texts(values),
                (BOOL, False), target=str(name),
            )  # fmt: skip
        except RefusedError as error:
            if error.name != NO_SUCH_OBJECT:
                raise _failure("drop_partition", str(name), error) from error

    # -- parts ------------------------------------------------------------------------------------------------------

    def _call(self, name: str, *arguments: tuple[int, Any] | None, target: str = "") -> Any:
        return self.client.call(name, *arguments, target=target)

    def _find(self, name: str, *arguments: tuple[int, Any] | None, target: str) -> Struct | None:
        try:
            found = self._call(name, *arguments, target=target)
        except RefusedError as error:
            if error.name == NO_SUCH_OBJECT:
                return None
            raise _failure(name, target, error) from error
        return thrift.inner(_of(found), 0)


def _of(answer: Any) -> Struct:
    """An answer as field 0 of a struct, so that the field readers check its type."""
    return {} if answer is None else {0: (STRUCT, answer)}


def _failure(operation: str, target: str, error: RefusedError) -> StorageError:
    return StorageError(f"the metastore refused {operation} of {target}: {error}", path=target, operation=operation)


def _is_same_record(there: Struct, wanted: Struct) -> bool:
    """Whether a record that was read equals one that was sent, except for parameters that the metastore added."""
    stored, asked = thrift.mapping(there, T_PARAMETERS), thrift.mapping(wanted, T_PARAMETERS)
    columns = [thrift.items(thrift.inner(record, T_SD), 1) for record in (there, wanted)]
    keys = [thrift.items(record, T_KEYS) for record in (there, wanted)]
    return (
        columns[0] == columns[1]
        and keys[0] == keys[1]
        and location_of(there) == location_of(wanted)
        and all(stored.get(name) == value for name, value in asked.items() if name != "transient_lastDdlTime")
    )
