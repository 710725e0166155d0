"""The row operations that a table allows. Pure.

Source: Java `RowLevelOp`, `PrimaryKeyTableUtils.validatePKUpsertDeletable`, `SupportsRowLevelOperationFlinkTableSink`.
"""

from __future__ import annotations

from collections.abc import Iterable

from paimon_py.arguments import as_names
from paimon_py.errors import UnsupportedError, UsageError
from paimon_py.files.physical import DATA_EVOLUTION, evolves_columns
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.supported import check_readable, check_writable

_UPDATABLE = ("deduplicate", "partial-update")
_REMOVING = {
    "partial-update": ("partial-update.remove-record-on-delete", "partial-update.remove-record-on-sequence-group"),
    "aggregation": ("aggregation.remove-record-on-delete",),
}


def check_one_process(schema: TableSchema, verb: str) -> None:
    """Refuse tables whose files of the same rows must come from one process, if other processes change rows.

    Raises: UnsupportedError
    """
    if evolves_columns(schema):
        raise UnsupportedError(
            f"{verb} does not change rows of tables with {DATA_EVOLUTION} yet; the verb of the table itself does, in"
            " this process",
            feature=f"{verb} with {DATA_EVOLUTION}",
        )


def check_deletable(schema: TableSchema) -> None:
    """Refuse to delete rows if a row of kind −D does not remove its key.

    Raises:
        UnsupportedError: the table uses an unsupported feature.
        UsageError: the merge engine does not support deletes, or the options ignore them.
    """
    _check_both(schema)
    if evolves_columns(schema) and not keeps_deletion_vectors(schema):
        raise UnsupportedError(
            f"rows of a table with {DATA_EVOLUTION} are deleted only by deletion vectors, and it was created without"
            " 'deletion-vectors.enabled' = 'true'",
            feature="deletes without deletion vectors",
        )
    if not schema.primary_keys:
        return
    options = Options(schema.options)
    engine = options.get_enum("merge-engine")
    if options.get_bool("ignore-delete"):
        raise UsageError("rows cannot be deleted from a table with 'ignore-delete': its writers drop deletes")
    if engine == "deduplicate":
        return
    switches = _REMOVING.get(engine, ())
    if not switches:
        raise UsageError(f"rows cannot be deleted from a table with merge-engine={engine}")
    if not any(_is_on(options, name) for name in switches):
        names = " or ".join(map(repr, switches))
        raise UsageError(f"rows can be deleted from a table with merge-engine={engine} only if {names} is set")


def check_updatable(schema: TableSchema, verb: str) -> None:
    """Refuse to set columns if the merge engine does not keep rows as they are written.

    Raises:
        UnsupportedError: the table uses an unsupported feature.
        UsageError: the merge engine does not support updates.
    """
    _check_both(schema)
    check_replacing(schema, verb)


def check_replacing(schema: TableSchema, verb: str) -> None:
    """Refuse to replace rows if the merge engine does not keep rows as they are written.

    Raises:
        UsageError: the merge engine does not support updates.
    """
    engine = Options(schema.options).get_enum("merge-engine")
    if schema.primary_keys and engine not in _UPDATABLE:
        raise UsageError(
            f"{verb} is not defined for merge-engine={engine}, only for {' and '.join(_UPDATABLE)}; write_arrow adds"
            " rows that the engine merges"
        )


def check_assigned(schema: TableSchema, names: Iterable[str], verb: str) -> None:
    """Refuse missing columns, and columns that determine the location of a row in a primary-key table.

    Raises:
        UsageError: the message names all of them.
    """
    wanted = as_names(f"{verb} takes names of columns", list(names))
    unknown = [name for name in wanted if name not in schema.names]
    if unknown:
        shown = ", ".join(map(repr, unknown))
        inner = any(str(name).partition(".")[0] in schema.names for name in unknown)
        hint = "; a ROW is set as a whole" if inner else "; table.refresh() sees columns that others added"
        columns = ", ".join(schema.names)
        raise UsageError(f"{verb} sets {shown}, which the table does not have; the columns are {columns}{hint}")
    kinds = Options(schema.options).find_str("rowkind.field")
    if schema.primary_keys and kinds in wanted:
        raise UsageError(
            f"{verb} cannot set {kinds!r}: the column contains the kinds of rows (option 'rowkind.field'), which"
            " decide whether a row exists"
        )
    fixed = [name for name in wanted if name in schema.primary_keys or name in schema.partition_keys]
    if fixed and evolves_columns(schema):
        raise UsageError(
            f"{verb} cannot set {', '.join(map(repr, fixed))}: in a table with {DATA_EVOLUTION} no row moves to another"
            " partition; delete the row and write a new one"
        )
    if fixed and schema.primary_keys:
        shown = ", ".join(map(repr, fixed))
        way_out = "upsert without on=" if verb == "upsert" else "delete the row and write a new one"
        raise UsageError(
            f"{verb} cannot set {shown}: columns of the primary key and partition keys decide where a row is; {way_out}"
        )


def keeps_deletion_vectors(schema: TableSchema) -> bool:
    """Whether rows of an append table are deleted by deletion vectors instead of rewriting files."""
    return Options(schema.options).get_bool("deletion-vectors.enabled")


def _check_both(schema: TableSchema) -> None:
    check_readable(schema)
    check_writable(schema)
    if bucket_mode(schema) is BucketMode.POSTPONED:
        raise UsageError(
            "rows in postponed buckets ('bucket' = '-2') are invisible until compact() publishes them, so they cannot "
            "be changed by a condition; use write_arrow, with '-D' in a column '_row_kind' to delete rows"
        )


def _is_on(options: Options, name: str) -> bool:
    value = options.find_str(name)
    return value is not None and value.lower() != "false"
