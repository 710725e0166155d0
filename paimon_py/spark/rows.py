"""Deleting, updating and merging on the executors: each evaluates some buckets or files, the driver publishes once.

What was read must still be there when the driver commits, as in one process; if others were faster, all is done anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Union

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from paimon_py import Changes, Predicate, RowsResult, Table
from paimon_py.errors import UsageError
from paimon_py.maintain.auto_maintenance import run_auto_maintenance
from paimon_py.maintain.observers import observed_again
from paimon_py.rows import verbs
from paimon_py.rows.clauses import MergeClauses, join_keys
from paimon_py.rows.evaluation import Evaluated, RowCounts
from paimon_py.rows.rules import check_one_process
from paimon_py.scan.split import Split
from paimon_py.spark.assignment import assign_types
from paimon_py.spark.care import require_table
from paimon_py.spark.jobs import Failed, Results, gather, new_job, run_tasks
from paimon_py.spark.meaning import Meaning
from paimon_py.spark.partitioner import TaskNumbers, places, send_to_tasks, tasks_of
from paimon_py.spark.replays import label_of
from paimon_py.spark.session import session, shuffle_tasks
from paimon_py.spark.shuffle import open_parcels
from paimon_py.spark.write import target_of
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.commit_label import CommitLabel
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Snapshot
from paimon_py.table.writing import discard

Asked = tuple[Union[str, None], Union[int, None]]
"""The user and identifier that a call names."""


def delete(table: Table, where: Predicate | str, asked: Asked, spark: SparkSession | None) -> RowsResult:
    """See `delete_spark`."""
    require_table(table, "delete_spark")
    meant = _meant(where, table, spark)
    label = label_of("delete_spark", table, session(spark), *asked)
    return _once(table, label, lambda: _by_splits(table, _Delete(meant), label, spark))


def update(
    table: Table, where: Predicate | str, values: Mapping[str, object], asked: Asked, spark: SparkSession | None
) -> RowsResult:
    """See `update_spark`."""
    require_table(table, "update_spark")
    meant = _meant(where, table, spark)
    set_to: Any = Meaning.of(session(spark)).values(values, table.schema.fields)
    label = label_of("update_spark", table, session(spark), *asked)
    return _once(table, label, lambda: _by_splits(table, _Update(meant, set_to), label, spark))


def merge(
    table: Table, source: DataFrame, on: object, clauses: MergeClauses, asked: Asked, tasks: int | None
) -> RowsResult:
    """See `merge_spark`."""
    require_table(table, "merge_spark")
    if not hasattr(source, "mapInArrow"):
        raise UsageError(f"merge_spark takes a DataFrame of Spark, not {type(source).__name__}; see Table.merge")
    label = label_of("merge_spark", table, source.sparkSession, *asked)
    return _once(table, label, lambda: _merge(table, source, on, clauses, label, tasks))


def _meant(where: Predicate | str, table: Table, spark: SparkSession | None) -> Predicate | str:
    """A condition as its session means it; what is none is left as it is, for the verb to refuse."""
    return where if where is None else Meaning.of(session(spark)).condition(where, table.schema.fields)


def _once(table: Table, label: CommitLabel, verb: Callable[[], RowsResult]) -> RowsResult:
    """Carry a verb out, unless its number was committed before; and then the care that the table asks for."""
    done = verbs.once(table._root, table.schema, label, verb)
    if done.already_committed:
        return observed_again(table._root, table.schema, done)
    return run_auto_maintenance(table._root, table.schema, done, of_batch=True)


def _merge(
    table: Table, source: DataFrame, on: object, asked: MergeClauses, label: CommitLabel, tasks: int | None
) -> RowsResult:
    schema = table.schema
    check_one_process(schema, "merge_spark")
    meaning = Meaning.of(source.sparkSession)
    job = new_job()
    source = assign_types(source, schema, meaning.names, job)
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
        rows = send_to_tasks(plain, schema, renamed, slots.tasks, job)
        by_source = asked.by_source_update is not None or asked.by_source_delete is not None

        def evaluate(snapshot: Snapshot | None, splits: Sequence[Split]) -> Evaluated:
            own: list[list[bytes]] = [[] for _ in range(slots.tasks)]
            for split in splits:
                own[slots.of_bucket(split.partition, split.bucket) if slots.tasks > 1 else 0].append(bytes(split))
            part = _MergePart(table, snapshot, own, target, on, asked)
            with _Parts(table) as parts:
                parts.take(gather(rows, part, job))
                late = [str(slot).encode() for slot, each in enumerate(own) if each and slot not in parts.slots]
                if by_source and late:
                    parts.take(run_tasks(source.sparkSession, late, part.without_rows))
                return parts.evaluation()

        return verbs.run(table._root, schema, work._replace(predicate=None), evaluate, label=label)


def _by_splits(
    table: Table, verb: _Delete | _Update, label: CommitLabel, spark: SparkSession | None
) -> RowsResult:
    """Carry a verb out that looks at each row by itself."""
    check_one_process(table.schema, "delete_spark" if isinstance(verb, _Delete) else "update_spark")

    def evaluate(snapshot: Snapshot | None, splits: Sequence[Split]) -> Evaluated:
        groups = [[bytes(split) for split in group] for group in groups_of(table.schema, splits)]
        with _Parts(table) as parts:
            parts.take(run_tasks(session(spark), groups, _Part(table, snapshot, verb)))
            return parts.evaluation()

    return verbs.run(table._root, table.schema, verb.work(table.schema), evaluate, label=label)


def groups_of(schema: TableSchema, splits: Sequence[Split]) -> list[list[Split]]:
    """Splits that one task has to look at together: those of a bucket, and where there are none, those whose dead rows
    are named in one file. Pure.

    Rows whose keys move between partitions are all of one group, since a writer has to know where all keys are.
    """
    if bucket_mode(schema) is BucketMode.CROSS_PARTITION:
        return [list(splits)] if splits else []
    groups: dict[object, list[Split]] = {}
    for number, split in enumerate(splits):
        if schema.primary_keys or split.total_buckets > 0:
            groups.setdefault((split.partition, split.bucket), []).append(split)
            continue
        paths = {place.path for place in split.deletions.values()}
        together = [key for key, members in groups.items() if paths & _paths(members)] if paths else []
        joined = [member for key in together for member in groups.pop(key)]
        groups[number] = [*joined, split]
    return list(groups.values())


def _paths(splits: Iterable[Split]) -> set[str]:
    return {place.path for split in splits for place in split.deletions.values()}


class _Parts:
    """What the tasks of one evaluation wrote, deleted if the evaluation fails.

    Attributes:
        slots: the numbers of the tasks that had rows.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._changes: list[Changes] = []
        self._counts = RowCounts()
        self.slots: set[int] = set()

    def __enter__(self) -> _Parts:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if isinstance(error, Failed):
            self.take(error.done)
        if kind is not None:
            self._discard()
        if isinstance(error, Failed):
            raise error.error from None

    def take(self, done: Iterable[bytes]) -> None:
        """Note what came of some tasks."""
        for one in done:
            slot, written, counts = msgspec.msgpack.decode(one, type=tuple[int, bytes, RowCounts])
            changes = Changes.from_bytes(written)
            self.slots.add(slot)
            self._counts = self._counts.plus(
                deleted=counts.deleted, updated=counts.updated, inserted=counts.inserted
            )
            if not changes.is_empty:
                self._changes.append(changes)

    def evaluation(self) -> Evaluated:
        """All of it, ready to be committed."""
        if not self._changes:
            with self._table.writer() as writer:
                return Evaluated(writer.changes(), self._counts, _nothing, _anew)
        changes = Changes.concat(self._changes)

        def anew(*_: object) -> None:
            self._discard()

        return Evaluated(changes, self._counts, self._discard, anew)

    def _discard(self) -> None:
        changes, self._changes = self._changes, []
        for one in changes:
            discard(self._table._root, self._table.schema, one)


def _nothing() -> None:
    """Nothing was written."""


def _anew(*_: object) -> None:
    """Nothing can be kept."""


class _Delete:
    """The arguments of a delete."""

    def __init__(self, where: Predicate | str) -> None:
        self.where = where

    def work(self, schema: TableSchema) -> verbs.Work:
        return verbs.delete_work(schema, self.where)


class _Update:
    """The arguments of an update."""

    def __init__(self, where: Predicate | str, values: Mapping[str, object]) -> None:
        self.where = where
        self.values = values

    def work(self, schema: TableSchema) -> verbs.Work:
        return verbs.update_work(schema, self.where, self.values)


class _Part:
    """Runs on an executor: some splits in, what was written instead of their rows out."""

    def __init__(self, table: Table, snapshot: Snapshot | None, verb: _Delete | _Update) -> None:
        self.table = table
        self.snapshot = snapshot
        self.verb = verb

    def __call__(self, group: list[bytes]) -> bytes:
        splits = [Split.from_bytes(one) for one in group]
        schema = self.table.schema
        evaluate = verbs.evaluator(self.table._root, schema, self.verb.work(schema))
        return _encode_result(0, evaluate(self.snapshot, splits))


class _MergePart:
    """Runs on an executor: rows of the source in, what was written for them and for the splits of their task out."""

    def __init__(
        self, table: Table, snapshot: Snapshot | None, splits: list[list[bytes]], target: pa.Schema, on: object,
        asked: MergeClauses,
    ) -> None:  # fmt: skip
        self.table = table
        self.snapshot = snapshot
        self.splits = splits
        self.target = target
        self.on = on
        self.asked = asked

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Results:
        found = open_parcels(batches, self.target)
        place, first = next(found, (None, None))
        if place is not None and first is not None:
            rows = chain([first], (rows for _, rows in found))
            yield self.merge(places(len(self.splits)).index(place), rows)

    def without_rows(self, slot: bytes) -> bytes:
        """The work of a task that Spark left out, since the source has no row for it."""
        return self.merge(int(slot), ())

    def merge(self, slot: int, rows: Iterable[pa.RecordBatch]) -> bytes:
        """What one task does."""
        root, schema = self.table._root, self.table.schema
        reader = pa.RecordBatchReader.from_batches(self.target, rows)
        splits = [Split.from_bytes(one) for one in self.splits[slot]]
        with verbs.merge_work(root, schema, reader, self.on, self.asked) as work:
            return _encode_result(slot, verbs.evaluator(root, schema, work)(self.snapshot, splits))


def _encode_result(slot: int, found: Evaluated) -> bytes:
    return msgspec.msgpack.encode((slot, bytes(found.changes), found.counts))
