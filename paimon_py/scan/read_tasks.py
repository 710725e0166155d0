"""Reads the rows of a scan by the tasks of an executor: splits → record batches, in the order of the splits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from paimon_py.executors.executor import Executor, run_tasks
from paimon_py.executors.job import Job, TaskKind
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
    Raises: the error of the first task that failed
    """
    job = Job(READ_SPLITS, None, rows)
    packed = pack(rows._parcels(rows.iter_splits()), _size_of, _TASK_BYTES)
    tasks = (SplitsTask(splits=tuple(bytes(split) for parcel in each for split in parcel)) for each in packed)
    while some := list(tasks if keeps else islice(tasks, _TASKS_AT_ONCE)):
        for found in run_tasks(executor, job, some):
            for data in found.batches:
                yield pa.ipc.read_record_batch(pa.py_buffer(data), rows.schema)


def _size_of(parcel: Iterable[Any]) -> int:
    """The size of the files of some splits; splits of system tables have tasks of their own."""
    return sum(split.size_bytes if isinstance(split, Split) else _TASK_BYTES for split in parcel)


def _read(job: Job[SplitsTask, SplitsRows], task: SplitsTask) -> SplitsRows:
    found = (batch for split in task.splits for batch in job.shared.read(split))
    return SplitsRows(batches=tuple(batch.serialize().to_pybytes() for batch in found))


READ_SPLITS: TaskKind[Any, Any] = TaskKind(task=SplitsTask, result=SplitsRows, run=_read)
