"""Writes: options → what executors run, and one commit of what they hand over."""

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
from paimon_py.spark.case_rule import CaseRule
from paimon_py.spark.replays import QUERY
from paimon_py.spark.source.creation import written_to
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
    SourceOptions,
    asked_of,
)  # fmt: skip
from paimon_py.spark.write import WriteRows, target_of

if TYPE_CHECKING:
    from paimon_py import Table


class Handed(msgspec.Struct, frozen=True):
    """What a task hands over: what was written, as bytes, and the streaming query that the task is of."""

    changes: bytes | None
    query: str | None


def prepare_write(options: Mapping[str, str], schema: st.StructType, overwrites: bool, use: str) -> WriteTask:
    """Runs beside the driver, before there are rows: looks whether they will fit, and lets the table's schema follow
    where `write.merge-schema` says so.

    Raises: SchemaError, UsageError, UnsupportedError
    """
    asked = asked_of(options).only_for(use)
    overwrite = _overwrite(asked, overwrites)
    if use == BATCH_WRITES:
        _label_of(asked)
    table = written_to(asked, schema)
    if asked.flag(MERGE):
        table = _evolve(table, asked, schema)
    elif asked.flag(WIDEN) or asked.flag(CAST):
        raise UsageError(f"{WIDEN} and {CAST} say how schemas are merged: set {MERGE} as well")
    writing = DistributedWrite(table, overwrite, sends=False)
    writing.check()
    return WriteTask(WriteRows(writing.part(target_of(table.schema, schema, CaseRule()))))


class WriteTask:
    """Runs on an executor: the rows of one task in, what was written out."""

    def __init__(self, write: WriteRows) -> None:
        self.write = write

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> bytes:
        context = TaskContext.get()
        query = None if context is None else context.getLocalProperty(QUERY)
        changes = next(iter(list(self.write(batches))), None)
        return msgspec.json.encode(Handed(changes, query))


def publish(
    options: Mapping[str, str], overwrites: bool, messages: Sequence[bytes], batch: int | None = None
) -> None:
    """Runs beside the driver: commit what tasks handed over, once.

    Args:
        batch: of a stream, its number. A batch that was committed before is not again; its new files are deleted.

    Raises:
        UsageError: the user has committed a larger number; nothing was committed, no file is left.
        CommitConflictError, CommitUnknownError: as `Table.commit`.
    """
    asked = asked_of(options)
    table, overwrite = write_to(asked), _overwrite(asked, overwrites)
    handed = [msgspec.json.decode(message, type=Handed) for message in messages]
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
    """Runs beside the driver after a failure: delete what tasks wrote, if some task failed.

    Where all tasks are done it was the commit that failed: a commit deletes what it certainly did not publish, and
    leaves what a snapshot may name.
    """
    if None not in messages:
        return
    handed = [msgspec.json.decode(message, type=Handed) for message in messages if message is not None]
    table = write_to(asked_of(options))
    discard_changes(table, [one.changes for one in handed if one.changes is not None])


def _overwrite(asked: SourceOptions, overwrites: bool) -> Overwrite:
    """What is replaced: nothing, all rows, or the partitions that occur.

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


def _user_of(asked: SourceOptions, handed: Sequence[Handed]) -> str:
    """The user of a stream: the one that is given, or the query, whose id is kept in its checkpoint.

    Raises: UsageError where the query is not known.
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
