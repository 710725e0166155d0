"""Work on the executors whose results the driver waits for: values back in one collect, errors as ours."""

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
from paimon_py.spark.entry import Work, travelling

_RESULT = pa.schema([pa.field("failed", pa.bool_(), False), pa.field("data", pa.binary(), False)])
_RESULT_SQL = "failed boolean, data binary"
Results = Iterator[bytes]
Make = Callable[[Iterable[pa.RecordBatch]], Results]
"""Runs on an executor: the batches of one task → values for the driver."""


class Failed(Exception):
    """Some task failed by an error of ours; `done` holds what the others handed over."""

    def __init__(self, error: PaimonError, done: list[bytes]) -> None:
        super().__init__(str(error))
        self.error = error
        self.done = done


def new_job() -> str:
    """A name for one job, which no data can know: errors that do not name it are not taken for ours."""
    return Env().ids.uuid()


def map_batches(df: DataFrame, work: Work, schema: Any, job: str | None = None) -> DataFrame:
    """The frame that `work` makes of the batches of every task of `df`; nothing runs yet.

    Args:
        job: the job of ours that it is a part of; None: somebody else runs it.
    """
    return df.mapInArrow(travelling(work, job), schema)


def gather(df: DataFrame, make: Make, job: str | None = None) -> list[bytes]:
    """What `make` gives for all tasks of `df`, in one collect.

    Args:
        job: the job that `df` was made for, if it has work of ours in it.

    Raises:
        Failed: a task met an error that another attempt would meet as well.
        PaimonError: the store failed in all attempts that Spark makes, or the executors lack paimon_py.
    """
    job = job or new_job()
    with errors_as_ours(job):
        rows = map_batches(df, TellingErrors(_Told(make), job), _RESULT_SQL, job).collect()
    done = [bytes(data) for failed, data in rows if not failed]
    for failed, data in rows:
        if failed:
            raise Failed(error_from(bytes(data)), done)
    return done


class _Told:
    """Runs on an executor: values as rows, and errors of ours as values, but for those that another attempt may cure.

    Spark runs a failed task again, on another machine too, which helps where a store failed or a disk is full.
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


class TellingErrors:
    """Runs on an executor: does the work, and tells errors of ours so that the driver can raise them as they are."""

    def __init__(self, work: Work, job: str) -> None:
        self.work = work
        self.job = job

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from self.work(batches)
        except PaimonError as error:
            raise RuntimeError(error_text(error, self.job)) from error


def error_text(error: PaimonError, job: str) -> str:
    """The text of an error that tells the driver which error of ours it stands for."""
    return f"{error} (paimon-error {job} {base64.b64encode(error_bytes(error)).decode()})"


@contextlib.contextmanager
def errors_as_ours(job: str) -> Iterator[None]:
    """Run a query of Spark in this block: errors of ours on its executors are raised as what they are.

    Args:
        job: the job that the work in the query was made for.

    Raises: PaimonError
    """
    try:
        yield
    except PySparkException as error:
        raise _as_ours(error, job) from error
    except Exception as error:  # Py4JJavaError, which older versions let through
        if type(error).__module__.partition(".")[0] != "py4j":
            raise
        raise _as_ours(error, job) from error


def _as_ours(error: Exception, job: str) -> Exception:
    """The error of ours that an error of Spark's tells of; Spark's own if there is none.

    Spark's text may hold values of the data, which can say anything but the name of the job.
    """
    text = str(error)
    missing = re.search(rf"\(paimon-job {job}\) (.*)", text)
    ours = re.search(rf"\(paimon-error {job} ([A-Za-z0-9+/=]+)\)", text)
    if missing is not None:
        return UsageError(missing.group(1))
    return error if ours is None else error_from(base64.b64decode(ours.group(1)))
