"""Reads the rows of a scan by the tasks of an executor: splits → record batches, in the order of the splits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from paimon_py.executors.executor import Executor, run_in_batches
from paimon_py.executors.job import Job, NumberedTask, TaskKind, TaskResult
from paimon_py.scan.parallel_read import too_many_rows
from paimon_py.scan.split import Split
from paimon_py.spec.packing import pack
from paimon_py.spec.serializable import Serializable

if TYPE_CHECKING:
    from paimon_py.scan.split_rows import SplitRows

_TASK_BYTES = 16 << 20
"""The size of the files of a task, unless a split is larger and cannot be divided."""
_TASKS_AT_ONCE = 16


class SplitsTask(Serializable, frozen=True, kw_only=True):
    """Neighbouring splits to read."""

    kind: ClassVar[str] = "splits"
    edition: ClassVar[int] = 1
    called: ClassVar[str] = "a task that reads splits"
    again: ClassVar[str] = "read the scan"

    splits: tuple[bytes, ...]


class SplitsRows(Serializable, frozen=True, kw_only=True):
    """The rows of some splits. `batches`: record batches of the scan's schema, in the IPC format of Arrow."""

    kind: ClassVar[str] = "splitsrows"
    edition: ClassVar[int] = 1
    called: ClassVar[str] = "the result of a task that reads splits"
    again: ClassVar[str] = "run the task"

    batches: tuple[bytes, ...]


def read_by_tasks(rows: SplitRows[Any], executor: Executor, *, keeps: bool) -> Iterator[pa.RecordBatch]:
    """The rows of all splits, read by the tasks of an executor, in the order of the splits.

    Args:
        keeps: the caller keeps all batches, so that all tasks belong to one job; otherwise a job has 16 tasks.

    Memory: the rows of the tasks of a job, about 16 MB of files for each task.
    Raises: the error of the first task that failed; ResourceError if the caller keeps more than fits into the memory
        of the process
    """
    root = getattr(rows, "_root", None)  # rows of metadata tables have none
    if keeps and root is not None and root.env.memory.rows_bytes is not None:
        executor = _KeepingExecutor(executor, root.env.memory.rows_bytes, root.path)
    job = Job(READ_SPLITS, None, rows)
    packed = pack(rows._parcels(rows.iter_splits()), _size_of, _TASK_BYTES)
    tasks = (SplitsTask(splits=tuple(bytes(split) for parcel in each for split in parcel)) for each in packed)
    for found in run_in_batches(executor, job, tasks, None if keeps else _TASKS_AT_ONCE):
        for data in found.batches:
            yield pa.ipc.read_record_batch(pa.py_buffer(data), rows.schema)


class _KeepingExecutor:
    """Runs tasks by another executor until their rows, which are all kept, take more memory than there is.

    No further task is then started, and the error is raised when those that run have ended.
    """

    def __init__(self, executor: Executor, most: int, path: str) -> None:
        self._executor = executor
        self._most = most
        self._path = path
        self._counted: set[int] = set()
        self._kept = 0

    def run(self, job: Job[Any, Any], tasks: Iterable[NumberedTask[Any]]) -> Iterator[TaskResult[Any]]:
        for result in self._executor.run(job, takewhile(lambda _: self._kept <= self._most, tasks)):
            if result.value is not None and result.number not in self._counted:
                self._counted.add(result.number)
                self._kept += sum(map(len, result.value.batches))
            if self._kept <= self._most:
                yield result
        if self._kept > self._most:
            raise too_many_rows(self._path, self._kept)


def _size_of(parcel: Iterable[Any]) -> int:
    """The size of the files of some splits; splits of system tables have tasks of their own."""
    return sum(split.size_bytes if isinstance(split, Split) else _TASK_BYTES for split in parcel)


def _read(job: Job[SplitsTask, SplitsRows], task: SplitsTask) -> SplitsRows:
    found = (batch for split in task.splits for batch in job.shared.read(split))
    return SplitsRows(batches=tuple(batch.serialize().to_pybytes() for batch in found))


READ_SPLITS: TaskKind[Any, Any] = TaskKind(task=SplitsTask, result=SplitsRows, run=_read)
