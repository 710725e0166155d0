"""Which system tables there are, each as a value.

Source: Java `SystemTableLoader`, `AuditLogTable`, `ReadOptimizedTable`, release 2.0.
"""

from __future__ import annotations

import difflib

import msgspec

from paimon_py.errors import UnsupportedError, UsageError
from paimon_py.scan.request import FileChoice
from paimon_py.scan.view import AsIs, View, WithKinds
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.system.binlog import Binlog


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """What a system table shows of a table, and of which files.

    Attributes:
        name: what follows the `$`.
        view: how rows are shown. A scan or a stream of the system table is one of the table with this view.
        top_level: of tables with a primary key only files of the top level are read, whose rows need no merging; what
            changed cannot be told from them.
    """

    name: str
    view: View
    top_level: bool = False

    def files(self, schema: TableSchema) -> FileChoice | None:
        """The files that are read, None for all."""
        if not self.top_level or not schema.primary_keys:
            return None
        options = Options(schema.options)
        levels = options.find_int("num-levels") or options.get_int("num-sorted-run.compaction-trigger") + 1
        return FileChoice(level=levels - 1)

    def tells_changes(self, schema: TableSchema) -> bool:
        """Whether changes can be read, and streamed."""
        return not self.top_level or not schema.primary_keys


KINDS = {
    kind.name: kind
    for kind in (
        Kind(name="audit_log", view=WithKinds("rowkind", first=True)),
        Kind(name="binlog", view=Binlog()),
        Kind(name="ro", view=AsIs(), top_level=True),
    )
}
_OF_JAVA = (
    "manifests", "snapshots", "options", "schemas", "partitions", "buckets", "files", "file_indexes", "file_key_ranges",
    "tags", "branches", "consumers", "aggregation_fields", "statistics", "table_indexes", "row_tracking",
)  # fmt: skip


def kind_of(name: str) -> Kind:
    """The system table of this name.

    Raises:
        UnsupportedError: a system table that is not built.
        UsageError: there is no system table of this name.
    """
    if not isinstance(name, str):
        raise UsageError(f"a system table is called by its name, such as 'audit_log', not {name!r}")
    found = KINDS.get(name.lower())
    if found is not None:
        return found
    if name.lower() in _OF_JAVA:
        raise UnsupportedError(f"the system table ${name} is not supported yet", feature=f"system table ${name}")
    near = difflib.get_close_matches(name, KINDS, 1)
    hint = f"; did you mean ${near[0]}?" if near else f"; there are {', '.join('$' + each for each in KINDS)}"
    raise UsageError(f"there is no system table ${name}{hint}")
