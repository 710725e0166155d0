"""Deleting, updating and merging on the executors: each evaluates some buckets or files, the driver publishes once.

What was read must still be there when the driver commits, as in one process; if others were faster, all is done anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Union

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from paimon_py.errors import UsageError
from paimon_py.maintain.after_commit import cared_for
from paimon_py.maintain.observers import observed_again
from paimon_py.rows import verbs
from paimon_py.rows.clauses import MergeClauses, join_keys
from paimon_py.rows.row_tasks import RowTaskResult, evaluated
from paimon_py.rows.rules import check_one_process
from paimon_py.scan.split import Split
from paimon_py.spark.assignment import assigned
from paimon_py.spark.care import require_table
from paimon_py.spark.executor import SparkExecutor
from paimon_py.spark.jobs import Failed, Results, gathered, new_job
from paimon_py.spark.meaning import Meaning
from paimon_py.spark.parcels import opened
from paimon_py.spark.placing import TaskNumbers, placed, tasks_of
from paimon_py.spark.replays import label_of
from paimon_py.spark.session import session, shuffle_tasks
from paimon_py.spark.write import target_of
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.table_writing import discard

if TYPE_CHECKING:
    from paimon_py import Predicate, RowsResult, Table
    from paimon_py.rows.evaluation import Evaluated
    from paimon_py.spec.commit_label import CommitLabel
    from paimon_py.types import SnapshotValue as Snapshot

Asked = tuple[Union[str, None], Union[int, None]]
"""The user and identifier that a call names."""


def delete(table: Table, where: Predicate | str, asked: Asked, spark: SparkSession | None) -> RowsResult:
    """See `delete_spark`."""
    require_table(table, "delete_spark")
    meant = _meant(where, table, spark)
    label = label_of("delete_spark", table, session(spark), *asked)
    return table.delete(meant, user=label.user, identifier=label.identifier, executor=SparkExecutor(spark))


def update(
    table: Table, where: Predicate | str, values: Mapping[str, object], asked: Asked, spark: SparkSession | None
) -> RowsResult:
    """See `update_spark`."""
    require_table(table, "update_spark")
    meant = _meant(where, table, spark)
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
    return _once(table, label, lambda: _merged(table, source, on, clauses, label, tasks))


def _meant(where: Predicate | str, table: Table, spark: SparkSession | None) -> Predicate | str:
    """A condition as its session means it; what is none is left as it is, for the verb to refuse."""
    return where if where is None else Meaning.of(session(spark)).condition(where, table.schema.fields)


def _once(table: Table, label: CommitLabel, verb: Callable[[], RowsResult]) -> RowsResult:
    """Carry a verb out, unless its number was committed before; and then the care that the table asks for."""
    done = verbs.once(table._root, table.schema, label, verb)
    if done.already_committed:
        return observed_again(table._root, table.schema, done)
    return cared_for(table._root, table.schema, done, of_batch=True)


def _merged(
    table: Table, source: DataFrame, on: object, asked: MergeClauses, label: CommitLabel, tasks: int | None
) -> RowsResult:
    schema = table.schema
    check_one_process(schema, "merge_spark")
    meaning = Meaning.of(source.sparkSession)
    job = new_job()
    source = assigned(source, schema, meaning.names, job)
    target = target_of(schema, source.schema, meaning.names)
    on = meaning.keys(on, schema.names, target.names)
    names = {key: field.name for key, field in join_keys(schema, on)}
    asked = meaning.clauses(asked, schema.fields, target)
    with verbs.merge_work(table._root, schema, target.empty_table(), on, asked) as work:
        wanted = tasks or shuffle_tasks(source.sparkSession)
        routed = bucket_mode(schema) is BucketMode.FIXED and set(names.values()) == set(schema.primary_keys)
        slots = TaskNumbers(schema, tasks_of(schema, wanted) if routed else 1)
        plain = source.toDF(*map(str, range(len(target))))
        renamed = pa.schema([field.with_name(names.get(field.name, f"source.{field.name}")) for field in target])
        by_source = asked.by_source_update is not None or asked.by_source_delete is not None

        def evaluate(snapshot: Snapshot | None, splits: Sequence[Split]) -> Evaluated:
            homes = [slots.of_bucket(one.partition, one.bucket) if slots.tasks > 1 else 0 for one in splits]
            given = list(zip(homes, map(bytes, splits), strict=True))
            rows = placed(plain, schema, renamed, slots.tasks, job, work=given)
            try:
                done = gathered(rows, _MergePart(table, snapshot, target, on, asked, by_source=by_source), job)
            except Failed as failed:
                for one in failed.done:
                    discard(table._root, schema, RowTaskResult.from_bytes(one).changes)
                raise failed.error from None
            return evaluated(table._root, schema, snapshot, map(RowTaskResult.from_bytes, done))

        return verbs.run(table._root, schema, work._replace(predicate=None), evaluate, label=label)


class _MergePart:
    """Runs on an executor: splits and rows of the source in, what was written for them out.

    Args:
        by_source: rows that the source lacks change, too.
    """

    def __init__(
        self, table: Table, snapshot: Snapshot | None, target: pa.Schema, on: object, asked: MergeClauses, *,
        by_source: bool,
    ) -> None:  # fmt: skip
        self.table = table
        self.snapshot = snapshot
        self.target = target
        self.on = on
        self.asked = asked
        self.by_source = by_source

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Results:
        work: list[tuple[int, bytes]] = []
        found = (rows for _, rows in opened(batches, self.target, work))
        first = next(found, None)
        if first is None and not (self.by_source and work):
            return
        rows = chain([] if first is None else [first], found)
        root, schema = self.table._root, self.table.schema
        reader = pa.RecordBatchReader.from_batches(self.target, rows)
        with verbs.merge_work(root, schema, reader, self.on, self.asked) as merging:  # reads all rows, and so all work
            splits = [Split.from_bytes(data) for _, data in sorted(work)]
            done = verbs.evaluator(root, schema, merging)(self.snapshot, splits)
            yield bytes(RowTaskResult(changes=done.changes, counts=done.counts))
