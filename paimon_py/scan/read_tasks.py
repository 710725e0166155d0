"""Reads the rows of a scan by the tasks of an executor: splits → record batches, in the order of the splits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import pyarrow as pa

from paimon_py.env import Env
from paimon_py.executors.executor import Executor, run_tasks
from paimon_py.executors.job import Job, NumberedTask, TaskKind, TaskResult
from paimon_py.parallel import Budget
from paimon_py.scan.parallel_read import READ_BYTES, too_many_rows
from paimon_py.scan.split import Split
from paimon_py.spec.options import Options
from paimon_py.spec.packing import pack
from paimon_py.spec.serializable import Serializable

if TYPE_CHECKING:
    from paimon_py.scan.split_rows import SplitRows

_TASK_BYTES = 16 << 20
"""The size of the files of a task, unless a split is larger and cannot be divided."""
_TASKS_AT_ONCE = 16
_TASKS_WANTED = 4
"""The number of tasks of usual rows that run together if memory is limited: tasks are made smaller."""
_GROWTH = 3
"""The memory of rows for each byte of their files, until rows were read."""


class SplitsTask(Serializable, frozen=True, kw_only=True):
    """Neighbouring splits to read. `size_bytes`: the size of their files."""

    kind: ClassVar[str] = "splits"
    edition: ClassVar[int] = 1
    called: ClassVar[str] = "a task that reads splits"
    again: ClassVar[str] = "read the scan"

    splits: tuple[bytes, ...]
    size_bytes: int


class SplitsRows(Serializable, frozen=True, kw_only=True):
    """The rows of some splits. `batches`: record batches of the scan's schema, in the IPC format of Arrow."""

    kind: ClassVar[str] = "splitsrows"
    edition: ClassVar[int] = 1
    called: ClassVar[str] = "the result of a task that reads splits"
    again: ClassVar[str] = "run the task"

    batches: tuple[bytes, ...]

    @property
    def size_bytes(self) -> int:
        """The size of all batches."""
        return sum(map(len, self.batches))


def read_by_tasks(rows: SplitRows[Any], executor: Executor, *, keeps: bool) -> Iterator[pa.RecordBatch]:
    """The rows of all splits, read by the tasks of an executor, in the order of the splits.

    Args:
        keeps: the caller keeps all batches, so that all tasks belong to one job; otherwise a job has at most 16 tasks.

    Memory: the rows of the tasks of a job, about 16 MB of files for each task; if the memory of this process is
        limited, as many tasks as fit into half of the memory for rows, at least one
    Raises: the error of the first task that failed; ResourceError if the caller keeps more than fits into the memory
        of the process
    """
    root = getattr(rows, "_root", None)  # rows of metadata tables have none
    most = None if root is None else root.env.memory.rows_bytes
    if keeps and root is not None and most is not None:
        executor = _KeepingExecutor(executor, most, root.path)
    job = Job(_kind_for(rows), None, rows)
    room = None if most is None else most // 2
    task_bytes = _TASK_BYTES if room is None else max(1, min(_TASK_BYTES, room // (_GROWTH * _TASKS_WANTED)))
    packed = pack(rows._parcels(rows.iter_splits()), _size_of, task_bytes)
    jobs = _Jobs(map(_task_of, packed), room, without_end=keeps)
    for tasks in jobs:
        results = run_tasks(executor, job, tasks)
        jobs.learn(tasks, results)
        for found in results:
            for data in found.batches:
                yield pa.ipc.read_record_batch(pa.py_buffer(data), rows.schema)


class _Jobs:
    """Divides tasks into those that run together.

    Args:
        room: the memory for the rows of one job; None: no limit.
        without_end: all tasks run together.
    """

    def __init__(self, tasks: Iterator[SplitsTask], room: int | None, *, without_end: bool) -> None:
        self._tasks = tasks
        self._room = room
        self._without_end = without_end
        self._growth = 0.0

    def __iter__(self) -> Iterator[list[SplitsTask]]:
        held: list[SplitsTask] = []
        size = 0
        for task in self._tasks:
            if held and self._is_full(len(held), size + task.size_bytes):
                yield held
                held, size = [], 0
            held.append(task)
            size += task.size_bytes
        if held:
            yield held

    def _is_full(self, count: int, file_bytes: int) -> bool:
        if self._without_end:
            return False
        is_large = self._room is not None and file_bytes * (self._growth or _GROWTH) > self._room
        return count == _TASKS_AT_ONCE or is_large

    def learn(self, tasks: Sequence[SplitsTask], results: Sequence[SplitsRows]) -> None:
        """Expect that rows to come take as much memory for each byte of their files as those read, at most."""
        given = sum(task.size_bytes for task in tasks)
        self._growth = max(self._growth, sum(found.size_bytes for found in results) / max(1, given))


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
                self._kept += result.value.size_bytes
            if self._kept <= self._most:
                yield result
        if self._kept > self._most:
            raise too_many_rows(self._path, self._kept)


def _size_of(parcel: Iterable[Any]) -> int:
    """The size of the files of some splits; splits of system tables have tasks of their own."""
    return sum(split.size_bytes if isinstance(split, Split) else _TASK_BYTES for split in parcel)


def _task_of(parcels: Sequence[Sequence[Any]]) -> SplitsTask:
    splits = tuple(bytes(split) for parcel in parcels for split in parcel)
    return SplitsTask(splits=splits, size_bytes=sum(map(_size_of, parcels)))


def _memory_of(task: NumberedTask[SplitsTask]) -> int:
    """The memory that a task is assumed to need."""
    return _GROWTH * task.task.size_bytes


def _read(job: Job[SplitsTask, SplitsRows], task: SplitsTask) -> SplitsRows:
    found = (batch for split in task.splits for batch in job.shared.read(split))
    return SplitsRows(batches=tuple(batch.serialize().to_pybytes() for batch in found))


def _kind_for(rows: SplitRows[Any]) -> TaskKind[Any, Any]:
    """The kind of tasks, with the number of splits that the table's options let threads read at the same time."""
    schema = getattr(rows, "_table_schema", None)
    most = None if schema is None else Options(schema.options).find_int("read.parallelism")
    return msgspec.structs.replace(READ_SPLITS, budget=_BUDGET._replace(lanes=most))


def _env_of(job: Job[Any, Any]) -> Env | None:
    root = getattr(job.shared, "_root", None)
    return None if root is None else root.env


_BUDGET = Budget(READ_BYTES, _memory_of, lambda _: 0)
READ_SPLITS: TaskKind[Any, Any] = TaskKind(
    task=SplitsTask, result=SplitsRows, run=_read, budget=_BUDGET, env=_env_of
)
