"""Runs work on the executors and collects its results in the driver, with errors translated to PaimonErrors."""

from __future__ import annotations

import base64
import contextlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from paimon_py.env import Env
from paimon_py.errors import PaimonError, ResourceError, StorageError, UsageError
from paimon_py.executors import error_bytes, error_from
from paimon_py.spark.entry import Work, wrap_for_executor

_LOST = re.compile(
    r"(?:An error occurred while calling [\w.]+\n: )?(?:\(?[\w.]+Exception\)?:? )?(?:\[[A-Z_.]+\] )?"
    r"(?:Job aborted due to stage failure: (?:"
    r"Task \d+ in stage [\d.]+ failed \d+ times, most recent failure: Lost task [\d.]+ in stage [\d.]+ \(TID \d+\) "
    r"\(\S+ executor \S+\): (?:ExecutorLostFailure|org\.apache\.spark\.SparkException: Python worker exited)"
    r"|\w+Stage \d+ \([^()]*\) has failed the maximum allowable number of times"
    r"|Master removed our application)"
    r"|Job \d+ cancelled because SparkContext was shut down)[^\n]*"
)
"""Prefixes of Spark's messages that executors, or their Python, died; the rest may contain values of the data."""

_RESULT = pa.schema([pa.field("failed", pa.bool_(), False), pa.field("data", pa.binary(), False)])
_RESULT_SQL = "failed boolean, data binary"
Results = Iterator[bytes]
Make = Callable[[Iterable[pa.RecordBatch]], Results]
"""Runs on an executor: takes the batches of one task, returns values for the driver."""


class Failed(Exception):
    """A task failed with a PaimonError; `done` contains the results of the others."""

    def __init__(self, error: PaimonError, done: list[bytes]) -> None:
        super().__init__(str(error))
        self.error = error
        self.done = done


def new_job() -> str:
    """A random name for one job: errors without this name, such as text in the data, are not taken for PaimonErrors."""
    return Env().ids.uuid()


def map_batches(df: DataFrame, work: Work, schema: Any, job: str | None = None) -> DataFrame:
    """The DataFrame that `work` produces from the batches of each task of `df`; nothing runs yet.

    Args:
        job: the job to which it belongs; None: the caller's own query runs it.
    """
    return df.mapInArrow(wrap_for_executor(work, job), schema)


def gather(df: DataFrame, make: Make, job: str | None = None) -> list[bytes]:
    """The results of `make` for all tasks of `df`, in one collect.

    Args:
        job: the job for which `df` was created, if it contains work of paimon_py.

    Raises:
        Failed: a task failed with an error that another attempt would not avoid.
        ResourceError: executors died in all of Spark's attempts.
        PaimonError: the store failed in all of Spark's attempts, or the executors lack paimon_py.
    """
    job = job or new_job()
    with translate_errors(job):
        rows = map_batches(df, ErrorEncoder(_ResultRows(make), job), _RESULT_SQL, job).collect()
    done = [bytes(data) for failed, data in rows if not failed]
    for failed, data in rows:
        if failed:
            raise Failed(error_from(bytes(data)), done)
    return done


class _ResultRows:
    """Runs on an executor: returns values and PaimonErrors as rows, except errors that another attempt may avoid.

    Spark runs a failed task again, possibly on another machine, which helps if a store failed or a disk is full.
    """

    def __init__(self, make: Make) -> None:
        self.make = make

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            for value in self.make(batches):
                yield _row(False, value)
        except (StorageError, ResourceError):
            raise
        except PaimonError as error:
            yield _row(True, error_bytes(error))


def _row(failed: bool, data: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"failed": failed, "data": data}], schema=_RESULT)


class ErrorEncoder:
    """Runs work on an executor, and encodes PaimonErrors so that the driver can raise them unchanged."""

    def __init__(self, work: Work, job: str) -> None:
        self.work = work
        self.job = job

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from self.work(batches)
        except PaimonError as error:
            raise RuntimeError(error_text(error, self.job)) from error


def error_text(error: PaimonError, job: str) -> str:
    """The text of an error that contains the encoded PaimonError for the driver."""
    return f"{error} (paimon-error {job} {base64.b64encode(error_bytes(error)).decode()})"


@contextlib.contextmanager
def translate_errors(job: str) -> Iterator[None]:
    """Run a Spark query in this block: PaimonErrors on its executors are raised as such in the driver.

    Args:
        job: the job to which the work in the query belongs.

    Raises: PaimonError
    """
    try:
        yield
    except PySparkException as error:
        raise _translate(error, job) from error
    except Exception as error:  # Py4JJavaError, which older versions let through
        if type(error).__module__.partition(".")[0] != "py4j":
            raise
        raise _translate(error, job) from error


def _translate(error: Exception, job: str) -> Exception:
    """The PaimonError encoded in an error of Spark; the error of Spark if there is none.

    Spark's text may contain values of the data, which can be anything except the name of the job.
    """
    text = str(error)
    missing = re.search(rf"\(paimon-job {job}\) (.*)", text)
    ours = re.search(rf"\(paimon-error {job} ([A-Za-z0-9+/=]+)\)", text)
    if missing is not None:
        return UsageError(missing.group(1))
    if ours is not None:
        return error_from(base64.b64decode(ours.group(1)))
    lost = _LOST.match(text)
    return error if lost is None else ResourceError(_lost_text(lost.group()))


def _lost_text(said: str) -> str:
    """A message about the completed and the lost work of a job whose executors died."""
    return (
        "executors died, or their Python, in all attempts that Spark made: nothing of this job was committed. Files "
        "that they wrote, or should have deleted, are left, and table.remove_orphans() deletes them a day later. Look "
        "into the logs of the executors (often they need more memory: spark.executor.memoryOverhead, or more tasks), "
        f"then call again. Spark says: {said[-300:]}"
    )
