"""Deletes, updates and merges rows on the executors: each evaluates some buckets or files, the driver commits once.

The files that were read must still exist when the driver commits, as in one process; after a conflict all work is
repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from paimon_py.distributed import (
    AssignedMergePart,
    BucketRouting,
    CommitLabel,
    DistributedMerge,
    MergeClauses,
    MergePart,
    run_once,
)
from paimon_py.errors import UsageError
from paimon_py.spark.assigned_write import merge_assigned
from paimon_py.spark.assignment import assign_types
from paimon_py.spark.care import require_table
from paimon_py.spark.executor import SparkExecutor
from paimon_py.spark.jobs import Failed, gather, new_job
from paimon_py.spark.meaning import Meaning
from paimon_py.spark.partitioner import send_to_tasks
from paimon_py.spark.replays import label_of
from paimon_py.spark.session import session, shuffle_tasks
from paimon_py.spark.spread_merge import MergeRows, SpreadMerge
from paimon_py.spark.write import target_of

if TYPE_CHECKING:
    from paimon_py import Predicate, RowsResult, Table
    from paimon_py.types import Split

Asked = tuple[Union[str, None], Union[int, None]]
"""The user and identifier arguments of a call."""


def delete(table: Table, where: Predicate | str, asked: Asked, spark: SparkSession | None) -> RowsResult:
    """See `delete_spark`."""
    require_table(table, "delete_spark")
    meant = _interpret(where, table, spark)
    label = label_of("delete_spark", table, session(spark), *asked)
    return table.delete(meant, user=label.user, identifier=label.identifier, executor=SparkExecutor(spark))


def update(
    table: Table, where: Predicate | str, values: Mapping[str, object], asked: Asked, spark: SparkSession | None
) -> RowsResult:
    """See `update_spark`."""
    require_table(table, "update_spark")
    meant = _interpret(where, table, spark)
    set_to: Any = Meaning.of(session(spark)).values(values, table.schema.fields)
    label = label_of("update_spark", table, session(spark), *asked)
    return table.update(meant, set_to, user=label.user, identifier=label.identifier, executor=SparkExecutor(spark))


def merge(
    table: Table, source: DataFrame, on: object, clauses: MergeClauses, asked: Asked, tasks: int | None
) -> RowsResult:
    """See `merge_spark`."""
    require_table(table, "merge_spark")
    if not hasattr(source, "mapInArrow"):
        raise UsageError(f"merge_spark takes a DataFrame of Spark, not {type(source).__name__}; see Table.merge")
    label = label_of("merge_spark", table, source.sparkSession, *asked)
    return run_once(table, label, lambda: _merge(table, source, on, clauses, label, tasks))


def _interpret(where: Predicate | str, table: Table, spark: SparkSession | None) -> Predicate | str:
    """A condition with its meaning in the session; anything else is left unchanged, for the verb to refuse."""
    return where if where is None else Meaning.of(session(spark)).condition(where, table.schema.fields)


def _merge(
    table: Table, source: DataFrame, on: object, asked: MergeClauses, label: CommitLabel, tasks: int | None
) -> RowsResult:
    schema = table.schema
    meaning = Meaning.of(source.sparkSession)
    job = new_job()
    source = assign_types(source, schema, meaning.names, job)
    target = target_of(schema, source.schema, meaning.names)
    on = meaning.keys(on, schema.names, target.names)
    merging = DistributedMerge("merge_spark", table, target, on, meaning.clauses(asked, schema.fields, target))
    plain = source.toDF(*map(str, range(len(target))))
    most = shuffle_tasks(source.sparkSession)
    if merging.spreads:
        return merging.run(label, SpreadMerge(merging, plain, job, tasks=tasks, most=most))
    in_steps = merging.takes_two_steps(tasks or most)
    routing = BucketRouting(schema, merging.parts(tasks or most))
    renamed = pa.schema([field.with_name(merging.keys.get(field.name, f"source.{field.name}")) for field in target])

    def run_parts(part: MergePart, splits: Sequence[Split]) -> list[bytes]:
        homes = [routing.of_bucket(one.partition, one.bucket) for one in splits]
        given = list(zip(homes, map(bytes, splits), strict=True))
        if in_steps:
            rows = send_to_tasks(plain, schema, renamed, routing.processes, job)
            return merge_assigned(merging, AssignedMergePart(part, renamed, routing.processes), rows, given, job)
        rows = send_to_tasks(plain, schema, renamed, routing.processes, job, work=given)
        try:
            return gather(rows, MergeRows(part), job)
        except Failed as failed:
            merging.discard(failed.done)
            raise failed.error from None

    return merging.run(label, run_parts)
