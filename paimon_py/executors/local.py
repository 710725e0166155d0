"""Runs tasks in this process: on the threads of the table's environment, as many as memory allows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any

from paimon_py.env import Env, Pool
from paimon_py.executors.job import Job, NumberedTask, TaskResult


class TaskFailed(Exception):
    """A run of tasks ended early.

    Attributes:
        error: the reason.
        done: results of tasks that were not yielded before; their files are deleted.
    """

    def __init__(self, error: BaseException, done: Sequence[TaskResult[Any]] = ()) -> None:
        super().__init__(str(error))
        self.error = error
        self.done = tuple(done)


class LocalExecutor:
    """Runs tasks in this process: the default of every long verb.

    Args:
        threads: the number of tasks that run concurrently; None: the number of threads of the table's environment.
    """

    def __init__(self, threads: int | None = None) -> None:
        self._pool = None if threads is None else Env(threads=threads).pool

    def run(self, job: Job[Any, Any], tasks: Iterable[NumberedTask[Any]]) -> Iterator[TaskResult[Any]]:
        """See `Executor.run`.

        Raises: TaskFailed with the first error of a task.
        """
        pool = None if job.kind.budget is None else self._pool_for(job)
        if job.kind.budget is None or pool is None:
            yield from map(job.carry_out, tasks)
            return
        done: list[TaskResult[Any]] = []

        def begin(task: NumberedTask[Any]) -> Iterator[TaskResult[Any]]:
            result = job.carry_out(task)
            done.append(result)
            yield result

        try:
            with closing(pool.streams(begin, tasks, job.kind.budget)) as results:
                for result in results:
                    done.remove(result)
                    yield result
        except GeneratorExit:
            raise
        except BaseException as error:
            raise TaskFailed(error, done) from error

    def _pool_for(self, job: Job[Any, Any]) -> Pool | None:
        if self._pool is not None:
            return self._pool
        env = job.kind.env(job)
        return None if env is None else env.pool
