"""The executor that runs tasks on Spark: each is sent as a row to one Spark task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql import SparkSession

from paimon_py.executors import Job, NumberedTask, TaskFailed, TaskResult
from paimon_py.spark.jobs import Failed, gather, new_job
from paimon_py.spark.session import session
from paimon_py.spark.task_rows import send_work


class SparkExecutor:
    """Runs tasks on the executors of Spark, each in its own Spark task, in one job.

    Spark runs a task again if a store failed, memory ran out or an executor died. Results are sent to the driver
    together; until then the job's page in Spark shows the finished tasks.

    Args:
        spark: the session; None uses the active one or creates one.
    """

    def __init__(self, spark: SparkSession | None = None) -> None:
        self._spark = spark

    def run(self, job: Job[Any, Any], tasks: Iterable[NumberedTask[Any]]) -> Iterator[TaskResult[Any]]:
        """See `Executor.run`.

        Raises: TaskFailed: a task failed in all of Spark's attempts.
        """
        items = map(bytes, tasks)
        name = new_job()
        frame, work = send_work(session(self._spark), items, _RunTasks(job))
        try:
            done = gather(frame, work, name)
        except Failed as failed:
            raise TaskFailed(failed.error, [TaskResult.from_bytes(one) for one in failed.done]) from None
        yield from map(TaskResult.from_bytes, done)


class _RunTasks:
    """Runs tasks on an executor; errors that may go away are raised, so that Spark tries the task again."""

    def __init__(self, job: Job[Any, Any]) -> None:
        self.job = job

    def __call__(self, items: Iterable[bytes]) -> Iterator[bytes]:
        for item in items:
            result = self.job(self.job.task_from(item))
            if result.error is not None and result.is_retryable:
                raise result.error
            yield bytes(result)

