"""All system tables, each as a value.

Source: Java `SystemTableLoader`, `AuditLogTable`, `ReadOptimizedTable`, release 2.0.
"""

from __future__ import annotations

import difflib

from paimon_py.errors import UsageError
from paimon_py.metadata.open_table import OpenTable
from paimon_py.scan.row_shape import PlainRows, WithKinds, WithRowIds
from paimon_py.system.binlog import Binlog
from paimon_py.system.file_tables import FILE_TABLES
from paimon_py.system.index_tables import INDEX_TABLES
from paimon_py.system.manifest_tables import MANIFEST_TABLES
from paimon_py.system.metadata_table import MetadataTable
from paimon_py.system.metadata_table_def import MetadataTableDef, TableSource
from paimon_py.system.metadata_tables import METADATA_TABLES
from paimon_py.system.table import Kind, SystemTable

KINDS = {
    kind.name: kind
    for kind in (
        Kind(name="audit_log", view=WithKinds("rowkind", first=True)),
        Kind(name="binlog", view=Binlog()),
        Kind(name="ro", view=PlainRows(), top_level=True),
        Kind(name="row_tracking", view=WithRowIds()),
    )
}
MADE = {made.name: made for made in (*METADATA_TABLES, *FILE_TABLES, *INDEX_TABLES, *MANIFEST_TABLES)}


def system_table(opened: OpenTable, table: str, name: str) -> SystemTable | MetadataTable:
    """The system table `name` of a table.

    Raises: UsageError if there is no system table with this name.
    """
    kind = kind_of(name)
    if isinstance(kind, MetadataTableDef):
        return MetadataTable(kind, TableSource(opened.root, opened.schema), f"{table}$")
    return SystemTable(opened.root, opened.schema, table, kind)


def kind_of(name: str) -> Kind | MetadataTableDef:
    """The kind of system table with this name.

    Raises: as `system_table`
    """
    if not isinstance(name, str):
        raise UsageError(f"the name of a system table is a string such as 'audit_log', not {name!r}")
    found = KINDS.get(name.lower()) or MADE.get(name.lower())
    if found is not None:
        return found
    names = [*KINDS, *MADE]
    near = difflib.get_close_matches(name, names, 1)
    known = ", ".join("$" + each for each in names)
    hint = f"; did you mean ${near[0]}?" if near else f"; the system tables are {known}"
    raise UsageError(f"the system table ${name} does not exist{hint}")
