"""Writes DataFrames: executors write files and return their changes, the driver commits all of them once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as st

from paimon_py import CommitResult, Table
from paimon_py.distributed import (
    ROW_KIND_COLUMN,
    DistributedWrite,
    Overwrite,
    RowRouting,
    WritePart,
    commit_of,
    to_arrow_schema,
)
from paimon_py.errors import UsageError
from paimon_py.spark.assigned_write import write_assigned
from paimon_py.spark.assignment import assign_types
from paimon_py.spark.case_rule import CaseRule
from paimon_py.spark.convert import fit
from paimon_py.spark.jobs import Failed, Results, gather, new_job
from paimon_py.spark.moving_keys import write_shares
from paimon_py.spark.partitioner import send_to_tasks
from paimon_py.spark.places import places
from paimon_py.spark.replays import label_of
from paimon_py.spark.session import shuffle_tasks
from paimon_py.spark.shuffle import open_parcels
from paimon_py.spark.types import arrow_type
from paimon_py.types import Atomic, Root

if TYPE_CHECKING:
    from paimon_py.types import TableSchema

_MODES: dict[str, Overwrite] = {"append": None, "overwrite": {}, "dynamic": "dynamic"}


def write(
    table: Table, df: DataFrame, mode: Mapping[str, object] | str, identifier: int | None, user: str | None,
    tasks: int | None,
) -> CommitResult:  # fmt: skip
    """See `write_spark`."""
    overwrite = _overwrite(mode)
    tasks = _check(table, df, tasks)
    names, job = CaseRule.of(df.sparkSession), new_job()
    df = assign_types(df, table.schema, names, job)
    writing = DistributedWrite(table, overwrite)
    writing.check()
    target = target_of(table.schema, df.schema, names)
    wanted = tasks or shuffle_tasks(df.sparkSession)
    count = writing.writers(wanted)
    part = writing.part(target, count)
    label = label_of("write_spark", table, df.sparkSession, user, identifier)
    known = commit_of(table, label, overwrite)
    if known is not None:
        return known
    plain = df.toDF(*map(str, range(len(target))))  # mapInArrow cannot find columns with dots in their names
    if writing.shares_keys(wanted):
        routing = RowRouting(table.schema, target, wanted)
        return writing.commit(write_shares(writing, plain, routing, target, wanted, job), label)
    if count:
        plain = send_to_tasks(plain, table.schema, target, count, job)
    elif tasks is not None:
        plain = plain.repartition(tasks)
    if writing.takes_two_steps(count):
        return writing.commit(write_assigned(writing, plain, target, count, job), label)
    try:
        done = gather(plain, WriteRows(part), job)
    except Failed as failed:
        writing.discard(failed.done)
        raise failed.error from None
    return writing.commit(done, label)


def _overwrite(mode: Mapping[str, object] | str) -> Overwrite:
    if isinstance(mode, Mapping):
        return mode
    if not isinstance(mode, str) or mode not in _MODES:
        raise UsageError(
            f'mode is "append", "overwrite" (the whole table), "dynamic" (the partitions of the rows) or a partition '
            f'such as {{"month": 3}}, not {mode!r}'
        )
    return _MODES[mode]


def _check(table: Table, df: DataFrame, tasks: int | None) -> int | None:
    """Check the arguments before anything runs. Returns: `tasks` as a Python integer."""
    if not isinstance(table, Table):
        raise UsageError(f"write_spark writes to a Table, not {type(table).__name__}")
    if not hasattr(df, "mapInArrow"):
        raise UsageError(f"write_spark takes a DataFrame of Spark, not {type(df).__name__}; see Table.write_arrow")
    if tasks is None:
        return None
    count = int(tasks) if isinstance(tasks, (int, np.integer)) and not isinstance(tasks, (bool, np.timedelta64)) else 0
    if count < 1:
        raise UsageError(f"tasks is how many tasks write, at least 1, not {tasks!r}")
    return count


def target_of(schema: TableSchema, given: st.StructType, names: CaseRule) -> pa.Schema:
    """The columns of a DataFrame with the table's names; TIME for Spark's milliseconds of the day.

    Raises:
        UsageError: two columns refer to the same column of the table.
        UnsupportedError: a column has a type that Arrow does not have.
    """
    known = names.rename(given.fieldNames(), [*schema.names, ROW_KIND_COLUMN])
    wanted = pa.struct(list(to_arrow_schema(schema.fields)))
    renamed = st.StructType([
        st.StructField(name, field.dataType, field.nullable) for name, field in zip(known, given, strict=True)
    ])  # fmt: skip
    times = {
        field.name for field in schema.fields if isinstance(field.type, Atomic) and field.type.root is Root.TIME
    }
    return pa.schema([
        field.with_type(pa.time32("ms")) if field.name in times and pa.types.is_int32(field.type) else field
        for field in arrow_type(renamed, wanted)
    ])  # fmt: skip


class WriteRows:
    """Runs on an executor: writes the rows of one task, returns the changes."""

    def __init__(self, part: WritePart) -> None:
        self.part = part

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Results:
        return self.part(self._rows(batches))

    def _rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int | None, pa.RecordBatch]]:
        """Rows, with the number of the task to which they were sent if it is needed; see `WritePart`."""
        target = self.part.target
        if not self.part.writers:
            for batch in batches:
                for rows in fit(batch, target, False):
                    yield None, rows
            return
        numbers = {place: number for number, place in enumerate(places(self.part.writers))}
        for place, rows in open_parcels(batches, target):
            yield numbers[place], rows
