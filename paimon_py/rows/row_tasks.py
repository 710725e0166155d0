"""Deletes and updates rows with tasks for an executor: each task processes some buckets or files, in one commit.

The input must be unchanged at the commit, as in one process; after a conflicting commit, everything is evaluated again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

from paimon_py.commit.changes import Changes
from paimon_py.commit.uncommitted import discard
from paimon_py.compaction.together import compaction_budget
from paimon_py.executors.executor import Executor, run_tasks
from paimon_py.executors.job import Job, TaskKind
from paimon_py.expr.predicate import Predicate
from paimon_py.metadata.open_table import OpenTable
from paimon_py.progress import Progress, ProgressCounter
from paimon_py.rows.evaluation import Evaluator, RowCounts, RowOutput
from paimon_py.rows.result import RowsResult
from paimon_py.rows.rules import check_one_process
from paimon_py.rows.verbs import Work, delete_work, evaluator, run, update_work
from paimon_py.scan.split import Split
from paimon_py.spec.commit_label import CommitLabel
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.serializable import Serializable
from paimon_py.spec.snapshot import Base, Snapshot


class RowsTask(Serializable, frozen=True, kw_only=True):
    """Splits whose rows may change."""

    kind: ClassVar[str] = "rows"
    edition: ClassVar[int] = 1
    called: ClassVar[str] = "a task that changes rows"
    again: ClassVar[str] = "ask for tasks"

    splits: tuple[Split, ...]


class RowTaskResult(Serializable, frozen=True, kw_only=True):
    """The files that replace the rows of some splits."""

    kind: ClassVar[str] = "changedrows"
    edition: ClassVar[int] = 1
    called: ClassVar[str] = "the result of a task that changes rows"
    again: ClassVar[str] = "run the task"

    changes: Changes
    counts: RowCounts


class RowsVerb(NamedTuple):
    """The arguments of an operation that decides on each row independently. `values`: those of an update."""

    name: Literal["delete", "update"]
    where: Predicate | str
    values: Mapping[str, object] = {}

    def work(self, schema: TableSchema) -> Work:
        """The work of the operation. Raises: UsageError"""
        if self.name == "delete":
            return delete_work(schema, self.where)
        return update_work(schema, self.where, self.values)


def run_by_tasks(
    table: OpenTable, verb: RowsVerb, label: CommitLabel, executor: Executor,
    progress: Progress | None = None,
) -> RowsResult:  # fmt: skip
    """Run an operation by the tasks of an executor, and publish once.

    Raises: as `verbs.run`; UnsupportedError if files of the same rows must come from one process.
    """
    check_one_process(table.schema, f"{verb.name} with an executor")

    def evaluate(snapshot: Snapshot | None, splits: Sequence[Split]) -> RowOutput:
        tally = ProgressCounter(progress, sum(split.row_count for split in splits), "rows")
        job = Job(CHANGE_ROWS, table, (snapshot, verb), tally=tally)
        tasks = [RowsTask(splits=tuple(group)) for group in groups_of(table.schema, splits)]
        return evaluation_of(table, snapshot, run_tasks(executor, job, tasks))

    return run(table, verb.work(table.schema), evaluate, label=label)


def evaluation_of(table: OpenTable, snapshot: Snapshot | None, parts: Iterable[RowTaskResult]) -> RowOutput:
    """The combined output of all tasks, ready to be committed."""
    counts, written = RowCounts(), list[Changes]()
    for part in parts:
        own = part.counts
        counts = counts.plus(deleted=own.deleted, updated=own.updated, inserted=own.inserted)
        if not part.changes.is_empty:
            written.append(part.changes)
    nothing = Changes(schema_id=table.schema.id, base=Base.of(snapshot), buckets=(), branch=table.root.branch)
    changes = Changes.concat(written) if written else nothing

    def undo() -> None:
        discard(table, changes)

    def start_over(*_: object) -> None:
        undo()

    return RowOutput(changes, counts, undo, start_over)


def groups_of(schema: TableSchema, splits: Sequence[Split]) -> list[list[Split]]:
    """Groups of splits that one task has to process together: those of a bucket or, without buckets, those whose
    deletion vectors are stored in one file. Pure.
    """
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


def _change_rows(job: Job[RowsTask, RowTaskResult], task: RowsTask) -> RowTaskResult:
    snapshot, verb = job.shared
    evaluate: Evaluator = evaluator(job.table, verb.work(job.table.schema))
    found = evaluate(snapshot, task.splits)
    return RowTaskResult(changes=found.changes, counts=found.counts)


def _discard_rows(job: Job[Any, RowTaskResult], result: RowTaskResult) -> None:
    discard(job.table, result.changes)


CHANGE_ROWS = TaskKind(
    task=RowsTask,
    result=RowTaskResult,
    run=_change_rows,
    discard=_discard_rows,
    steps=lambda task: sum(split.row_count for split in task.splits),
    counts=False,
    budget=compaction_budget(lambda task: sum(split.size_bytes for split in task.task.splits)),
)
