"""Options that define the meaning of a file's level: before one changes, all rows move to the top level.

Compactions of a table with `changelog-producer` = `lookup` emit a changelog for rows that leave level 0, those with
`full-compaction` for rows below the top level; readers of deletion vectors skip level 0. Rows in files from before such
a change would be emitted twice or never, or not be read.

Source: docs/decisions/0031-options-that-change-levels.md; Java does not handle such files.
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon_py.compaction.plan import plan_compaction
from paimon_py.errors import CommitRetriesExhaustedError
from paimon_py.logs import warn
from paimon_py.maintain.compact_table import compact_table
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.changed_schema import apply
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.schema_changes import RemoveOption, SchemaChange, SetOption
from paimon_py.spec.snapshot import Snapshot

_RULES = frozenset(("changelog-producer", "deletion-vectors.enabled"))
_ATTEMPTS = 5


def compact_lower_rows(root: TableRoot, changes: Sequence[SchemaChange]) -> TableSchema | None:
    """Compact everything with the current options, if the changes alter the meaning of levels.

    Returns: the schema under which it was done; None if it was not needed.

    Cost: none for other changes; else a plan and, if rows are below the top level, a full compaction.
    Raises:
        UsageError: a change breaks a rule; nothing was compacted.
        UnsupportedError: the table cannot be compacted.
        CommitRetriesExhaustedError: other writers kept adding rows; the schema is unchanged.
    """
    options = [change.name for change in changes if isinstance(change, (SetOption, RemoveOption))]
    if not any(isinstance(name, str) and name in _RULES for name in options):
        return None
    schema = root.schemas.latest()
    if not schema.primary_keys or root.latest() is None:
        return None
    after = apply(schema, changes, has_snapshots=True, time_millis=root.env.clock.millis())
    if not changes_levels(schema, after):
        return None
    table = OpenTable(root, schema)
    for _ in range(_ATTEMPTS):
        compact_table(
            table, full=True, partitions=None, where=None, order_by=None, strategy=None, progress=None
        )
        if not has_lower_rows(table):
            return schema
    raise CommitRetriesExhaustedError(
        f"{root.path}: before {', '.join(sorted(_RULES))} change, all rows must be compacted, and others wrote new rows"
        f" in {_ATTEMPTS} attempts; stop the writers, then alter the table"
    )


def warn_of_lower_rows(table: OpenTable) -> None:
    """Warn of rows that other writers committed between the compaction and the new schema.

    Args:
        table: opened under the schema before the change.

    Raises: PaimonWarning where warnings are errors; the schema has changed.
    """
    if has_lower_rows(table):
        warn(
            f"{table.root.path}: rows were committed while the options changed; streams may return them twice or not"
            " at all, and with deletion vectors they are not read before the next compaction. Call"
            " table.compact(full=True)"
        )


def warn_of_rules_before(root: TableRoot, snapshot: Snapshot, now: TableSchema) -> None:
    """Warn if a restored snapshot was written when levels had another meaning.

    Raises: PaimonWarning where warnings are errors.
    """
    if snapshot.schema_id == now.id:
        return
    before = root.schemas.get(snapshot.schema_id)
    if now.primary_keys and changes_levels(before, now) and has_lower_rows(OpenTable(root, now)):
        warn(
            f"{root.path}: snapshot {snapshot.id} was written under other options ({', '.join(sorted(_RULES))}):"
            " streams may return rows below the top level of its buckets again, and with deletion vectors these rows"
            " are not read before the next compaction. Call table.compact(full=True)"
        )


def changes_levels(before: TableSchema, after: TableSchema) -> bool:
    """Whether files below the top level have another meaning under another schema."""
    old, new = Options(before.options), Options(after.options)
    if old.get_bool("deletion-vectors.enabled") != new.get_bool("deletion-vectors.enabled"):
        return True
    producers = {old.get_enum("changelog-producer"), new.get_enum("changelog-producer")}
    return len(producers) > 1 and not producers <= {"none", "input"}


def has_lower_rows(table: OpenTable) -> bool:
    """Whether any files are below the top level of their bucket, or have deletion vectors.

    Cost: reads the manifests of the latest snapshot.
    """
    tasks = plan_compaction(table, full=True, chosen=None)
    return any(not task.rewrite_all or task.deletions for task in tasks)
