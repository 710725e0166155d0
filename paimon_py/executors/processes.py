"""Runs tasks in other processes of this machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from paimon_py.arguments import as_python
from paimon_py.env import usable_cores
from paimon_py.errors import ResourceError, UsageError
from paimon_py.executors.job import Job, NumberedTask, TaskResult
from paimon_py.executors.local import TaskFailed

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor
    from types import TracebackType


class ProcessExecutor:
    """Runs tasks in a pool of processes, which start with the first task and end with `close` or a `with` block.

    Processes are spawned, so a script that uses them needs `if __name__ == "__main__":`. As on Spark's executors, they
    receive the table without secrets and use the credentials of their own environment.

    Args:
        processes: the number of processes; None: one for each core that this process may use.
    """

    def __init__(self, processes: int | None = None) -> None:
        processes = as_python(processes)
        if processes is not None and (isinstance(processes, bool) or not isinstance(processes, int) or processes < 1):
            raise UsageError(f"processes must be a whole number from 1, not {processes!r}")
        self._processes = processes or usable_cores()
        self._pool: ProcessPoolExecutor | None = None

    def run(self, job: Job[Any, Any], tasks: Iterable[NumberedTask[Any]]) -> Iterator[TaskResult[Any]]:
        """See `Executor.run`. For each running task, another one is queued.

        Raises:
            TaskFailed: a process died.
            UsageError: a function of the caller cannot be pickled.
        """
        from concurrent.futures import FIRST_COMPLETED, wait
        from concurrent.futures.process import BrokenProcessPool

        _require_pickle(job)
        source = iter(tasks)
        running: dict[Future[TaskResult[Any]], int] = {}

        def begin(count: int) -> None:
            for task in islice(source, count):
                running[self._start().submit(job, task)] = task.number

        begin(2 * self._processes)
        try:
            while running:
                ended, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in ended:
                    result = future.result()
                    del running[future]
                    yield result
                    begin(1)
        except GeneratorExit:
            _results_of(running)
            raise
        except BrokenProcessPool as broken:
            done = _results_of(running)
            self.close()
            error = ResourceError(
                "a process died while it ran a task, perhaps for lack of memory: use fewer processes, such as"
                " ProcessExecutor(2); remove_orphans deletes the files that it left"
            )
            raise TaskFailed(error, done) from broken
        except BaseException as error:
            raise TaskFailed(error, _results_of(running)) from error

    def close(self) -> None:
        """Stop the processes. The next run starts new ones."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> ProcessExecutor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start(self) -> ProcessPoolExecutor:
        if self._pool is None:
            import multiprocessing
            from concurrent.futures import ProcessPoolExecutor

            spawned = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self._processes, mp_context=spawned)
        return self._pool


def _results_of(running: dict[Future[TaskResult[Any]], int]) -> list[TaskResult[Any]]:
    """Cancel tasks that have not started, wait for the others, and return their results."""
    begun = [future for future in running if not future.cancel()]
    return [future.result() for future in begun if future.exception() is None]


def _require_pickle(job: Job[Any, Any]) -> None:
    """Refuse a job that cannot be sent to another process, before any task begins.

    Raises: UsageError
    """
    from multiprocessing.reduction import ForkingPickler

    try:
        ForkingPickler.dumps(job)
    except Exception as error:
        if not isinstance(error, (AttributeError, TypeError)) and type(error).__name__ != "PicklingError":
            raise
        raise UsageError(
            f"the work cannot be sent to another process: {error}; use functions of a module instead of lambdas and"
            " nested functions, or LocalExecutor()"
        ) from error
