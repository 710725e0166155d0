"""The interface between long verbs and the executors that run their tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol, TypeVar

from paimon_py.errors import CorruptionError, UsageError
from paimon_py.executors.job import Job, NumberedTask, TaskResult
from paimon_py.executors.local import LocalExecutor, TaskFailed
from paimon_py.spec.serializable import Serializable

T = TypeVar("T", bound=Serializable)
R = TypeVar("R", bound=Serializable)


class Executor(Protocol):
    """Runs the tasks of a job, here or elsewhere.

    Tasks do not depend on each other. An executor may run a task several times, even concurrently: one result of each
    task is used, and the files of the others are deleted.
    """

    def run(self, job: Job[Any, Any], tasks: Iterable[NumberedTask[Any]]) -> Iterator[TaskResult[Any]]:
        """Yield `job(task)` for each task, in any order, as soon as it is available.

        `job` and `tasks` can be pickled. `bytes(task)`, `job.run_bytes` and `TaskResult.from_bytes` do the same with
        bytes. Take a task from `tasks` only when it can run: the iterator ends early after a task has failed. However
        the method ends, no task may still be running.

        Raises: TaskFailed, which carries an error together with results that were not yielded yet. Any other exception
            ends the call, and results that were not yielded leave orphan files.
        """
        ...


def run_tasks(executor: Executor | None, job: Job[T, R], tasks: Sequence[T]) -> list[R]:
    """Run tasks and return their results, in the order of the tasks. If one fails, no file is left behind.

    Args:
        executor: runs the tasks; None: this process.

    Raises: the error of the first task that failed, and any error of the executor.
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
    if error is not None:  # raised outside the block above, so that only its own cause is chained
        run.discard()
        raise error
    return run.results()


def run_in_batches(
    executor: Executor | None, job: Job[T, R], tasks: Iterable[T], at_once: int | None
) -> Iterator[R]:
    """The results of tasks, in their order. A batch of tasks is made and run when the results before it are consumed.

    Args:
        at_once: the number of tasks in a batch, whose results are in memory; None: all.

    Raises: as `run_tasks`
    """
    left = iter(tasks)
    while batch := list(islice(left, at_once)):
        yield from run_tasks(executor, job, batch)


def require_executor(executor: object) -> None:
    """Refuse an object that is not an executor.

    Raises: UsageError
    """
    if executor is not None and not callable(getattr(executor, "run", None)):
        raise UsageError(
            "executor must be a LocalExecutor, ProcessExecutor or SparkExecutor of paimon_py.executors, or an object"
            f" with a method run(job, tasks), not {executor!r}"
        )


class _Run:
    """The tasks of one job while they run. After a failure no further task starts."""

    def __init__(self, job: Job[Any, Any], tasks: Sequence[Any]) -> None:
        self._job = job
        self._tasks = tasks
        self._values: dict[int, Any] = {}
        self._errors: dict[int, BaseException] = {}

    def tasks_left(self) -> Iterator[NumberedTask[Any]]:
        """The tasks that have not started yet; none after a task has failed."""
        for number, task in enumerate(self._tasks):
            if self._errors:
                return
            yield NumberedTask(number, task)

    def take(self, result: TaskResult[Any]) -> None:
        """Record the result of a task. If a task ran twice, the first result is used, and another one is deleted."""
        number = result.number
        if result.error is not None:
            self._errors.setdefault(number, result.error)
        elif number not in self._values:
            self._values[number] = result.value
            self._count(number, result)
        elif self._values[number] != result.value:
            self._job.kind.discard(self._job, result.value)

    def _count(self, number: int, result: TaskResult[Any]) -> None:
        """Count the steps of a task that ran elsewhere. If the caller's progress function raises, the run fails."""
        if self._job.tally is None or result.is_counted:
            return
        try:
            self._job.tally.add(self._job.kind.steps(self._tasks[number]))
        except BaseException as error:  # noqa: BLE001 - raised by `results`, after all tasks have ended
            self._errors.setdefault(number, error)

    def results(self) -> list[Any]:
        """All values, in the order of the tasks.

        Raises: the error of the first task that failed; the files of the others are deleted.
        """
        if self._errors:
            self.discard()
            raise self._errors[min(self._errors)]
        missing = [number for number in range(len(self._tasks)) if number not in self._values]
        if missing:
            self.discard()
            raise CorruptionError(
                f"the executor returned neither a result nor an error for {len(missing)} of {len(self._tasks)} tasks;"
                " the files of the other tasks were deleted"
            )
        return [self._values[number] for number in range(len(self._tasks))]

    def discard(self) -> None:
        """Delete the files that the tasks wrote."""
        values, self._values = self._values, {}
        for value in values.values():
            self._job.kind.discard(self._job, value)
