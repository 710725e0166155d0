"""The interface between long verbs and the executors that run their tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from paimon_py.errors import CorruptionError, UsageError
from paimon_py.executors.job import Job, NumberedTask, TaskResult
from paimon_py.executors.local import LocalExecutor, TaskFailed
from paimon_py.spec.serializable import Serializable

T = TypeVar("T", bound=Serializable)
R = TypeVar("R", bound=Serializable)


class Executor(Protocol):
    """Runs the tasks of a job, here or elsewhere.

    Tasks do not depend on each other. A task may be run again, and twice at the same time: only one result of each
    counts, and what the others wrote is deleted.
    """

    def run(self, job: Job[Any, Any], tasks: Iterable[NumberedTask[Any]]) -> Iterator[TaskResult[Any]]:
        """Give `job(task)` for each task, in any order, as soon as it is there.

        `job` and `tasks` can be pickled; `bytes(task)`, `job.run_bytes` and `TaskResult.from_bytes` are the same as
        bytes. Take tasks as there is room for them: they end early when one has failed. Then, and whatever happens,
        no task may still run when this ends.

        Raises: TaskFailed to hand over results beside an error of the executor's own. Whatever else it raises ends the
            call, and results that were not given leave orphans.
        """
        ...


def run_tasks(executor: Executor | None, job: Job[T, R], tasks: Sequence[T]) -> list[R]:
    """What came of each task, in the order of the tasks: all of it, or an error and no file left behind.

    Args:
        executor: who runs the tasks; None: this process.

    Raises: the error of the task that failed, and whatever the executor raises.
    """
    if not tasks:
        return []
    run, error = _Run(job, tasks), None
    try:
        for result in (executor or LocalExecutor()).run(job, run.tasks_left()):
            run.take(result)
    except TaskFailed as failed:
        for result in failed.done:
            run.take(result)
        error = failed.error
    except BaseException:
        run.discard()
        raise
    if error is not None:  # raised outside of the block above, so that it tells of its own cause alone
        run.discard()
        raise error
    return run.results()


def require_executor(executor: object) -> None:
    """Refuse what runs no tasks.

    Raises: UsageError
    """
    if executor is not None and not callable(getattr(executor, "run", None)):
        raise UsageError(
            "executor is one of paimon_py.executors (LocalExecutor, ProcessExecutor, SparkExecutor), or has their"
            f" method run(job, tasks), not {executor!r}"
        )


class _Run:
    """The tasks of one job while they run. After a failure no more of them begin."""

    def __init__(self, job: Job[Any, Any], tasks: Sequence[Any]) -> None:
        self._job = job
        self._tasks = tasks
        self._values: dict[int, Any] = {}
        self._errors: dict[int, BaseException] = {}

    def tasks_left(self) -> Iterator[NumberedTask[Any]]:
        """The tasks, as long as none has failed."""
        for number, task in enumerate(self._tasks):
            if self._errors:
                return
            yield NumberedTask(number, task)

    def take(self, result: TaskResult[Any]) -> None:
        """Note what came of a task. Of a task that was run twice the first result counts."""
        number = result.number
        if result.error is not None:
            self._errors.setdefault(number, result.error)
        elif number not in self._values:
            self._values[number] = result.value
            self._count(number, result)
        elif self._values[number] != result.value:
            self._job.kind.discard(self._job, result.value)

    def _count(self, number: int, result: TaskResult[Any]) -> None:
        """Count the steps of a task that ran elsewhere; a caller who raises ends the run as a failed task does."""
        if self._job.tally is None or result.is_counted:
            return
        try:
            self._job.tally.add(self._job.kind.steps(self._tasks[number]))
        except BaseException as error:  # noqa: BLE001 - raised by `results`, when nothing runs any more
            self._errors.setdefault(number, error)

    def results(self) -> list[Any]:
        """All values, in the order of the tasks.

        Raises: the error of the first task that failed; nothing is left of the others.
        """
        if self._errors:
            self.discard()
            raise self._errors[min(self._errors)]
        lacking = [number for number in range(len(self._tasks)) if number not in self._values]
        if lacking:
            self.discard()
            raise CorruptionError(
                f"the executor gave no result of {len(lacking)} of {len(self._tasks)} tasks, and no error; what the"
                " others did was undone"
            )
        return [self._values[number] for number in range(len(self._tasks))]

    def discard(self) -> None:
        """Delete what the tasks wrote."""
        values, self._values = self._values, {}
        for value in values.values():
            self._job.kind.discard(self._job, value)
