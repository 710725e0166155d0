"""The views of a Hive Metastore, with records as Java's catalog writes them.

Source: Java `HiveCatalog`, `HiveTableUtils`, main of August 2026; Hive's `Table.getEmptyTable`.
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon_py.errors import AlreadyExistsError, StorageError, UnsupportedError, UsageError
from paimon_py.metastores.hive import thrift
from paimon_py.metastores.hive.connection import RefusedError
from paimon_py.metastores.hive.hive_types import paimon_type
from paimon_py.metastores.hive.records import (
    SD_COLUMNS,
    SD_INPUT,
    SD_OUTPUT,
    SD_SERDE,
    SERDE_LIBRARY,
    SERDE_PARAMETERS,
    T_ACCESSED,
    T_CREATED,
    T_DATABASE,
    T_KEYS,
    T_NAME,
    T_OWNER,
    T_PARAMETERS,
    T_SD,
    T_TYPE,
    columns_of,
    parameters,
    renamed_table,
)
from paimon_py.metastores.hive.tables import HiveTables
from paimon_py.metastores.hive.thrift import I32, STRUCT, Struct
from paimon_py.metastores.metastore import TableName
from paimon_py.spec.new_schema import assign_ids
from paimon_py.spec.types import Field
from paimon_py.spec.views_and_functions import CatalogView, ViewChange

_T_ORIGINAL, _T_EXPANDED = 10, 11
_VIEW = "VIRTUAL_VIEW"
_COMMENT = "comment"
_INPUT = "org.apache.hadoop.mapred.SequenceFileInputFormat"
_OUTPUT = "org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat"
_SERDE = "org.apache.hadoop.hive.serde2.MetadataTypedColumnsetSerDe"


class HiveViewStore:
    """The views of a metastore. See `ViewStore` for the methods. Cost: one or two calls."""

    __slots__ = ("_tables",)

    def __init__(self, tables: HiveTables) -> None:
        self._tables = tables

    def views(self, database: str) -> list[str]:
        """See `ViewStore.views`. Cost: one call, and one for each 300 tables of any kind."""
        records = self._tables.verbs.tables(database)
        return sorted(thrift.text(record, T_NAME) or "" for record in records if _is_view(record))

    def view(self, name: TableName) -> CatalogView | None:
        """See `ViewStore.view`."""
        record = self._tables.verbs.table(name)
        return _view_of(name, record) if record is not None and _is_view(record) else None

    def create_view(self, name: TableName, view: CatalogView) -> bool:
        """See `ViewStore.create_view`.

        Raises:
            AlreadyExistsError: a table has the name.
            UnsupportedError: the view has dialects.
        """
        _check_case(name)
        if view.dialects:
            raise UnsupportedError(
                "a Hive Metastore stores one query per view, and Java's catalog drops the others: leave dialects out",
                feature="dialects of a view in a Hive Metastore",
            )
        there = self._tables.verbs.table(name)
        if there is not None:
            _require_view(there, name)
            return False
        return self._tables.verbs.create_table(name, self._record(name, view))

    def alter_view(self, name: TableName, changes: Sequence[ViewChange]) -> CatalogView | None:  # noqa: ARG002
        """See `ViewStore.alter_view`."""
        raise UnsupportedError(
            f"views of a Hive catalog cannot be changed, nor in Java: drop {str(name)!r} and create it again",
            feature="alter_view in a Hive Metastore",
        )

    def drop_view(self, name: TableName) -> bool:
        """See `ViewStore.drop_view`."""
        record = self._tables.verbs.table(name)
        return record is not None and _is_view(record) and self._tables.verbs.drop_table(name)

    def rename_view(self, name: TableName, to: TableName) -> bool:
        """See `ViewStore.rename_view`."""
        _check_case(to)
        record = self._tables.verbs.table(name)
        if record is None or not _is_view(record):
            return False
        there = self._tables.verbs.table(to)
        if there is not None:
            _require_view(there, to)
            raise AlreadyExistsError(f"view {str(to)!r} already exists", table=str(to))
        try:
            self._tables.verbs.alter_table(name, renamed_table(record, to), {})
        except RefusedError as error:
            message = f"the metastore refuses to rename view {name} to {to}: {error.message}"
            raise StorageError(message, operation="rename_view") from error
        return True

    def _record(self, name: TableName, view: CatalogView) -> Struct:
        owner = self._tables.owner()
        comment = {} if view.comment is None else {_COMMENT: view.comment}
        serde_options = thrift.of_mapping({"serialization.format": "1"})
        serde = {SERDE_LIBRARY: thrift.of_text(_SERDE), SERDE_PARAMETERS: serde_options}
        return {
            T_NAME: thrift.of_text(name.table),
            T_DATABASE: thrift.of_text(name.database),
            T_OWNER: thrift.of_text(owner.user),
            T_CREATED: (I32, owner.seconds),
            T_ACCESSED: (I32, owner.seconds),
            T_SD: (STRUCT, {
                SD_COLUMNS: columns_of(view.fields), SD_INPUT: thrift.of_text(_INPUT),
                SD_OUTPUT: thrift.of_text(_OUTPUT), SD_SERDE: (STRUCT, serde),
            }),
            T_KEYS: thrift.of_structs(()),
            T_PARAMETERS: thrift.of_mapping({**view.options, **comment}),
            _T_ORIGINAL: thrift.of_text(view.query),
            _T_EXPANDED: thrift.of_text(view.query),
            T_TYPE: thrift.of_text(_VIEW),
        }  # fmt: skip


def _view_of(name: TableName, record: Struct) -> CatalogView:
    options = parameters(record)
    columns = [*thrift.structs(thrift.inner(record, T_SD), SD_COLUMNS), *thrift.structs(record, T_KEYS)]
    fields = [
        Field(id=0, name=thrift.text(one, 1) or "", type=paimon_type(thrift.text(one, 2) or ""),
              description=thrift.text(one, 3))
        for one in columns
    ]  # fmt: skip
    return CatalogView(
        name=str(name), fields=assign_ids(fields)[0], query=thrift.text(record, _T_EXPANDED) or "",
        comment=options.pop(_COMMENT, None), options=options,
    )  # fmt: skip


def _is_view(record: Struct) -> bool:
    return thrift.text(record, T_TYPE) == _VIEW


def _require_view(record: Struct, name: TableName) -> None:
    if not _is_view(record):
        raise AlreadyExistsError(f"{str(name)!r} is a table", table=str(name))


def _check_case(name: TableName) -> None:
    if name.table != name.table.lower():
        raise UsageError(
            f"view name {name.table!r}: a Hive Metastore keeps names in lower case; write {name.table.lower()!r}"
        )
