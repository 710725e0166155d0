"""Writing DataFrames: executors write files and hand their changes over, the driver commits all of them once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Union

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as st

from paimon_py import Changes, CommitResult, Table
from paimon_py.arguments import as_python
from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.commit.overwrite import overwrite_of
from paimon_py.distributed import commit_changes, commit_of, discard_changes
from paimon_py.errors import UsageError
from paimon_py.spark.assignment import assign_types
from paimon_py.spark.case_rule import CaseRule
from paimon_py.spark.convert import fit
from paimon_py.spark.jobs import Failed, Results, gather, new_job
from paimon_py.spark.partitioner import send_to_tasks, tasks_of
from paimon_py.spark.places import places
from paimon_py.spark.replays import label_of
from paimon_py.spark.session import shuffle_tasks
from paimon_py.spark.shuffle import open_parcels
from paimon_py.spark.types import arrow_type
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.schema import ROW_KIND_COLUMN, TableSchema
from paimon_py.spec.supported import check_writable
from paimon_py.spec.types import Atomic, Root
from paimon_py.write.align import Alignment

if TYPE_CHECKING:
    from paimon_py.types import Writer

Overwrite = Union[Mapping[str, object], str, None]

_MODES: dict[str, Overwrite] = {"append": None, "overwrite": {}, "dynamic": "dynamic"}


def write(
    table: Table, df: DataFrame, mode: Mapping[str, object] | str, identifier: int | None, user: str | None,
    tasks: int | None,
) -> CommitResult:  # fmt: skip
    """See `write_spark`."""
    overwrite = _overwrite(mode)
    tasks = as_python(tasks)
    _check(table, df, tasks)
    names, job = CaseRule.of(df.sparkSession), new_job()
    df = assign_types(df, table.schema, names, job)
    target = taken_columns(table.schema, df.schema, overwrite, names)
    label = label_of("write_spark", table, df.sparkSession, user, identifier)
    known = commit_of(table, label)
    if known is not None:
        return known
    done = _write(table, df, target, overwrite, tasks, job)
    changes = Changes.concat([Changes.from_bytes(one) for one in done] or [nothing(table, overwrite)])
    return commit_changes(table, changes, label, overwrite)


def _overwrite(mode: Mapping[str, object] | str) -> Overwrite:
    if isinstance(mode, Mapping):
        return mode
    if not isinstance(mode, str) or mode not in _MODES:
        raise UsageError(
            f'mode is "append", "overwrite" (the whole table), "dynamic" (the partitions of the rows) or a partition '
            f'such as {{"month": 3}}, not {mode!r}'
        )
    return _MODES[mode]


def _check(table: Table, df: DataFrame, tasks: int | None) -> None:
    """Refuse what is not what it should be, before anything runs."""
    if not isinstance(table, Table):
        raise UsageError(f"write_spark writes to a Table, not {type(table).__name__}")
    if not hasattr(df, "mapInArrow"):
        raise UsageError(f"write_spark takes a DataFrame of Spark, not {type(df).__name__}; see Table.write_arrow")
    if tasks is not None and (not isinstance(tasks, int) or isinstance(tasks, bool) or tasks < 1):
        raise UsageError(f"tasks is how many tasks write, at least 1, not {tasks!r}")


def taken_columns(schema: TableSchema, given: st.StructType, overwrite: Overwrite, names: CaseRule) -> pa.Schema:
    """The columns of a DataFrame as a table takes them.

    Raises: SchemaError, UsageError, UnsupportedError for what can be refused before there are rows.
    """
    check_writable(schema)
    overwrite_of(schema, overwrite)
    target = target_of(schema, given, names)
    Alignment(schema, target)
    return target


def target_of(schema: TableSchema, given: st.StructType, names: CaseRule) -> pa.Schema:
    """The columns of a DataFrame by the table's names; TIME where Spark has none and holds milliseconds of the day.

    Raises:
        UsageError: two columns are one of the table.
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


def nothing(table: Table, overwrite: Overwrite) -> Changes:
    """What a writer without rows hands over."""
    with table.writer(overwrite=overwrite is not None) as writer:
        return writer.changes()


def _write(
    table: Table, df: DataFrame, target: pa.Schema, overwrite: Overwrite, tasks: int | None, job: str
) -> list[bytes]:
    """What all tasks wrote; if one failed by an error of ours, what the others wrote is deleted.

    Raises: PaimonError
    """
    plain = df.toDF(*map(str, range(len(target))))  # mapInArrow cannot find columns with dots in their names
    count = 0
    if bucket_mode(table.schema) not in (BucketMode.NONE, BucketMode.POSTPONED):
        count = tasks_of(table.schema, tasks or shuffle_tasks(df.sparkSession))
        plain = send_to_tasks(plain, table.schema, target, count, job)
    elif tasks is not None:
        plain = plain.repartition(tasks)
    try:
        return gather(plain, WriteRows(table, target, overwrite, count), job)
    except Failed as failed:
        discard_changes(table, failed.done)
        raise failed.error from None


class WriteRows:
    """Runs on an executor: the rows of one task in, what was written out.

    Args:
        tasks: how many tasks there are, to which rows were sent in parcels; 0: rows come as they are. Where several
            tasks fill dynamic buckets, a parcel says which of their shares it belongs to.
    """

    def __init__(self, table: Table, target: pa.Schema, overwrite: Overwrite, tasks: int) -> None:
        self.table = table
        self.target = target
        self.overwrite = overwrite
        self.tasks = tasks

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Results:
        with contextlib.ExitStack() as used:
            writers: dict[int | None, Writer] = {}
            for number, rows in self._rows(batches):
                if number not in writers:
                    writers[number] = used.enter_context(self._writer(number))
                writers[number].write_arrow(rows)
            for writer in writers.values():
                yield bytes(writer.changes())

    def _rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int | None, pa.RecordBatch]]:
        """Rows, with the number of their share; None if nothing is shared."""
        if not self.tasks:
            for batch in batches:
                for part in fit(batch, self.target, False):
                    yield None, part
            return
        shared = self.tasks > 1 and bucket_mode(self.table.schema) is BucketMode.DYNAMIC
        number_of = {place: number for number, place in enumerate(places(self.tasks))} if shared else {}
        for place, rows in open_parcels(batches, self.target):
            yield number_of.get(place), rows

    def _writer(self, number: int | None) -> Writer:
        share = None if number is None else (number, self.tasks)
        writer = self.table.writer(overwrite=self.overwrite is not None, share=share)
        if self.overwrite and isinstance(self.overwrite, Mapping):
            writer.restrict(self.overwrite)
        return writer
