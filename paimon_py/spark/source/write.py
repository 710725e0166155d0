"""Writes: the work of the executors from the options, and one commit of their results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import types as st

from paimon_py.distributed import (
    ROW_KIND_COLUMN,
    CommitLabel,
    DistributedWrite,
    Overwrite,
    SchemaMerging,
    commit_of,
    discard_changes,
    from_arrow_type,
    merge_columns,
    with_options,
)
from paimon_py.errors import OptionError, PaimonError, UsageError
from paimon_py.spark.assignment import assignable
from paimon_py.spark.case_rule import CASE, CaseRule
from paimon_py.spark.meaning import ZONE as SESSION_ZONE
from paimon_py.spark.replays import QUERY
from paimon_py.spark.source.assigning import StoreAssignment
from paimon_py.spark.source.creation import open_or_create
from paimon_py.spark.source.opening import write_to
from paimon_py.spark.source.options import (
    BATCH_WRITES,
    CAST,
    IDENTIFIER,
    MERGE,
    MODE,
    SPARK_MODE,
    USER,
    WIDEN,
    ZONE,
    SourceOptions,
    asked_of,
)  # fmt: skip
from paimon_py.spark.write import WriteRows, target_of

if TYPE_CHECKING:
    from paimon_py import Table


class WriteTaskResult(msgspec.Struct, frozen=True):
    """The result of a task: its changes as bytes, and its streaming query."""

    changes: bytes | None
    query: str | None


def prepare_write(options: Mapping[str, str], schema: st.StructType, overwrites: bool, use: str) -> WriteTask:
    """Runs next to the driver before there are rows: checks that they will fit, and evolves the table's schema if
    `write.merge-schema` is set.

    Raises: SchemaError, UsageError, UnsupportedError
    """
    asked = asked_of(options).only_for(use)
    overwrite = _overwrite(asked, overwrites)
    if use == BATCH_WRITES:
        _label_of(asked)
    table = open_or_create(asked, schema)
    if asked.flag(MERGE):
        table = _evolve(table, asked, schema)
    elif asked.flag(WIDEN) or asked.flag(CAST):
        raise UsageError(f"{WIDEN} and {CAST} say how schemas are merged: set {MERGE} as well")
    writing = DistributedWrite(table, overwrite, sends=False)
    writing.check()
    names = CaseRule()
    assignment = StoreAssignment(assignable(schema, table.schema, names), asked.own.get(ZONE))
    target = target_of(table.schema, assignment.types(schema), names)
    in_case = tuple(given for given, name in zip(schema.fieldNames(), target.names, strict=True) if given != name)
    return WriteTask(WriteRows(writing.part(target)), assignment, in_case)


class WriteTask:
    """Runs on an executor: writes the rows of one task, returns the changes.

    Args:
        in_case: columns whose names differ from the table's only in case; only the task knows whether case matters.
    """

    def __init__(self, write: WriteRows, assignment: StoreAssignment, in_case: Sequence[str]) -> None:
        self.write = write
        self.assignment = assignment
        self.in_case = in_case

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> bytes:
        """Raises: SchemaError for values that do not fit; UsageError for a column in a case that is not the table's."""
        local_property = TaskContext.get().getLocalProperty if TaskContext.get() is not None else lambda _: None
        if self.in_case and str(local_property(CASE)).lower() == "true":
            raise UsageError(
                f"no such column: {', '.join(self.in_case)} is in the table in another case, and {CASE} is true"
            )
        zone = local_property(SESSION_ZONE)
        rows = (self.assignment(batch, zone) for batch in batches) if self.assignment.casts else batches
        changes = next(iter(list(self.write(rows))), None)
        return msgspec.json.encode(WriteTaskResult(changes, local_property(QUERY)))


def publish(
    options: Mapping[str, str], overwrites: bool, messages: Sequence[bytes], batch: int | None = None
) -> None:
    """Runs next to the driver: commits the results of the tasks, once.

    Args:
        batch: the number of a batch of a stream. A batch that was committed before is not committed again; its new
            files are deleted.

    Raises:
        UsageError: the user has committed a larger number; nothing was committed, no file is left.
        CommitConflictError, CommitUnknownError: as `Table.commit`.
    """
    asked = asked_of(options)
    table, overwrite = write_to(asked), _overwrite(asked, overwrites)
    handed = [msgspec.json.decode(message, type=WriteTaskResult) for message in messages]
    written = [one.changes for one in handed if one.changes is not None]
    try:
        label = _label_of(asked) if batch is None else CommitLabel(_user_of(asked, handed), batch)
        known = commit_of(table, label)
    except PaimonError:
        discard_changes(table, written)
        raise
    if known is not None:
        discard_changes(table, written)
        return
    DistributedWrite(table, overwrite, sends=False).commit(written, label)


def abandon(options: Mapping[str, str], messages: Sequence[bytes | None]) -> None:
    """Runs next to the driver after a failure: deletes the files of all tasks, if a task failed.

    If no task failed, the commit did: a commit deletes files that it certainly did not publish, and leaves files that a
    snapshot may reference.
    """
    if None not in messages:
        return
    handed = [msgspec.json.decode(message, type=WriteTaskResult) for message in messages if message is not None]
    table = write_to(asked_of(options))
    discard_changes(table, [one.changes for one in handed if one.changes is not None])


def _overwrite(asked: SourceOptions, overwrites: bool) -> Overwrite:
    """The part of the table to replace: nothing, all rows, or the partitions of the new rows.

    Raises: OptionError
    """
    modes = {name: asked.own[name].strip().lower() for name in (MODE, SPARK_MODE) if name in asked.own}
    for name, mode in modes.items():
        if mode not in ("static", "dynamic"):
            raise OptionError(f"option {name} is static or dynamic, not {mode!r}", option=name, value=mode)
    if len(set(modes.values())) > 1:
        raise UsageError(f"{MODE} and {SPARK_MODE} are the same option: give one of them")
    if modes and not overwrites:
        raise UsageError(f'{next(iter(modes))} says what mode("overwrite") replaces, this write appends')
    if not overwrites:
        return None
    return "dynamic" if "dynamic" in modes.values() else {}


def _label_of(asked: SourceOptions) -> CommitLabel:
    """The user and identifier of a batch write.

    Raises: OptionError, UsageError
    """
    user, text = asked.own.get(USER), asked.own.get(IDENTIFIER)
    if text is not None and not text.isdigit():
        raise OptionError(f"option {IDENTIFIER} is a number, not {text!r}", option=IDENTIFIER, value=text)
    if text is not None and user is None:
        raise UsageError(f"{IDENTIFIER} counts the commits of one user: give {USER}, too")
    return CommitLabel(user, None if text is None else int(text))


def _user_of(asked: SourceOptions, handed: Sequence[WriteTaskResult]) -> str:
    """The user of a stream: the given one, or the query, whose id is kept in its checkpoint.

    Raises: UsageError if the query is unknown.
    """
    user = asked.own.get(USER) or next((f"paimon_py-{one.query}" for one in handed if one.query), None)
    if user is None:
        raise UsageError(f"Spark does not say which streaming query this is: give {USER}, a name of its own")
    return user


def _evolve(table: Table, asked: SourceOptions, given: st.StructType) -> Table:
    """The table with the columns of the data.

    Raises: SchemaError, UsageError
    """
    if asked.flag(CAST) and not asked.flag(WIDEN):
        raise UsageError(f"{CAST} says how types are widened: set {WIDEN} as well")
    columns = [
        (field.name, from_arrow_type(field.type))
        for field in target_of(table.schema, given, CaseRule())
        if field.name != ROW_KIND_COLUMN
    ]
    changes: Any = merge_columns(table.schema.fields, columns, SchemaMerging(asked.flag(WIDEN), asked.flag(CAST)))
    if not changes:
        return table
    stored = with_options(write_to(msgspec.structs.replace(asked, table={})), {})
    stored.alter(*changes)
    return with_options(stored, asked.table)
