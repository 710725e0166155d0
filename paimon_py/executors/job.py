"""The input and output of an executor: a job, its tasks, and their results.

A task is a value, sent as bytes with a checksum to the process that runs it. A job contains what all tasks of one call
share: the table and the kind of the tasks. The receiving process finds the function that runs the tasks by the tag of
the kind (`HOMES`), so that no code is sent, except for functions of the user.
"""

from __future__ import annotations

import importlib
import struct
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

import msgspec

from paimon_py.env import Env
from paimon_py.errors import CorruptionError, PaimonError, ResourceError, StorageError
from paimon_py.executors.error_data import error_bytes, error_from
from paimon_py.metadata.open_table import OpenTable
from paimon_py.parallel import Budget
from paimon_py.progress import ProgressCounter
from paimon_py.spec.redact import HIDDEN
from paimon_py.spec.serializable import Serializable

T = TypeVar("T", bound=Serializable)
R = TypeVar("R", bound=Serializable)

HOMES = {
    "analysis": "paimon_py.maintain.analyze:ANALYZE",
    "compaction": "paimon_py.compaction.compact:COMPACT",
    "deletion": "paimon_py.maintain.file_tasks:DELETE",
    "events": "paimon_py.cdc.event_tasks:DECODE",
    "listing": "paimon_py.maintain.file_tasks:LIST",
    "manifests": "paimon_py.scan.plan_tasks:READ",
    "parcels": "paimon_py.cdc.event_tasks:WRITE",
    "rewriting": "paimon_py.maintain.rescale:REWRITE",
    "rows": "paimon_py.rows.row_tasks:CHANGE_ROWS",
    "share": "paimon_py.scan.plan_tasks:PLAN",
    "splits": "paimon_py.scan.read_tasks:READ_SPLITS",
}
"""Module and name of each task kind, by its tag: a process imports only the kinds that it runs."""

_NUMBER = struct.Struct(">Q")


def _nothing(_job: object, _result: object) -> None:
    """Do nothing: the result references no new file."""


def _env_of_table(job: Job[Any, Any]) -> Env:
    table: OpenTable = job.table
    return table.root.env


class TaskKind(msgspec.Struct, Generic[T, R], frozen=True, kw_only=True):
    """A kind of tasks.

    Attributes:
        task, result: the classes of the tasks and their results. The bytes of a task begin with the tag of the kind.
        run: runs one task.
        discard: deletes the files of a result that will not be committed.
        steps: the number of progress steps of a task.
        counts: `run` counts these steps itself if the job has a tally; otherwise they are counted after the task.
        budget: limits the memory of tasks that run concurrently in one process; None: tasks run one after the other,
            each with concurrent calls to the store.
        env: the environment whose threads run tasks in the process of the caller; None if there is none.
    """

    task: type[T]
    result: type[R]
    run: Callable[[Job[T, R], T], R]
    discard: Callable[[Job[T, R], R], None] = _nothing
    steps: Callable[[T], int] = lambda _: 0
    counts: bool = True
    budget: Budget | None = None
    env: Callable[[Job[T, R]], Env | None] = _env_of_table

    @property
    def tag(self) -> str:
        """The tag of the kind."""
        return self.task.kind


class NumberedTask(msgspec.Struct, Generic[T], frozen=True):
    """A task and its index in its job. Can be sent as bytes or as a pickle."""

    number: int
    task: T

    def __bytes__(self) -> bytes:
        return _NUMBER.pack(self.number) + bytes(self.task)


class TaskResult(Generic[R]):
    """The result of a task: a value, or an error of paimon_py. Can be sent as bytes or as a pickle.

    Attributes:
        number: the index of the task in its job.
        value: None if the task failed.
        error: None if the task succeeded.
        is_counted: the progress steps of the task were counted while it ran.
    """

    __slots__ = ("error", "is_counted", "number", "tag", "value")

    def __init__(
        self, tag: str, number: int, value: R | None, error: PaimonError | None = None, *, is_counted: bool = False
    ) -> None:
        self.tag = tag
        self.number = number
        self.value = value
        self.error = error
        self.is_counted = is_counted

    @property
    def is_retryable(self) -> bool:
        """Whether another attempt, or another machine, may succeed: the store failed, or memory was too small."""
        return isinstance(self.error, (StorageError, ResourceError))

    def __bytes__(self) -> bytes:
        value = None if self.value is None else bytes(self.value)
        error = None if self.error is None else error_bytes(self.error)
        return msgspec.msgpack.encode((self.tag, self.number, value, error))

    @classmethod
    def from_bytes(cls, data: bytes) -> TaskResult[Any]:
        """Decode the result of `bytes(result)`.

        Raises: CorruptionError for other bytes.
        """
        try:
            tag, number, value, error = msgspec.msgpack.decode(data, type=tuple[str, int, bytes | None, bytes | None])
        except msgspec.MsgspecError as wrong:
            raise CorruptionError(f"not the bytes of a task result: {wrong}") from wrong
        found = None if value is None else kind_of(tag).result.from_bytes(value)
        return TaskResult(tag, number, found, None if error is None else error_from(error))

    def __reduce__(self) -> tuple[object, ...]:
        return TaskResult.from_bytes, (bytes(self),)


class Job(Generic[T, R]):
    """The common values of all tasks of one call. Calling a job runs one task, in any process.

    Pickles contain the tag, the table without secrets, and `shared`: a few kB, regardless of the number of tasks.

    Attributes:
        kind: the kind of the tasks.
        table: the table, with the schema of the call; None for a job whose tables are in `shared`: its kind does not
            use this attribute.
        shared: other values that all tasks need; pickled with the job.
        tally: counts progress steps; None in other processes.
        is_remote: the job and its tasks were received from another process.
    """

    __slots__ = ("is_remote", "kind", "shared", "table", "tally")

    def __init__(
        self, kind: TaskKind[T, R], table: OpenTable | None, shared: Any = None, *,
        tally: ProgressCounter | None = None, is_remote: bool = False,
    ) -> None:  # fmt: skip
        self.kind = kind
        self.table = cast(OpenTable, table)
        self.shared = shared
        self.tally = tally
        self.is_remote = is_remote

    def __call__(self, task: NumberedTask[T]) -> TaskResult[R]:
        """Run a task. Errors of paimon_py are part of the result; others, such as those of user functions, are raised.

        Steps are counted when the caller receives the result, so that `progress` cannot fail in the middle of a task.
        """
        alone = Job(self.kind, self.table, self.shared, is_remote=self.is_remote)
        try:
            return alone.carry_out(task)
        except PaimonError as error:
            return TaskResult(self.kind.tag, task.number, None, error)

    def carry_out(self, task: NumberedTask[T]) -> TaskResult[R]:
        """Run a task in the process of the caller. Raises: all errors of the task"""
        value = self.kind.run(self, task.task)
        return TaskResult(self.kind.tag, task.number, value, is_counted=self.tally is not None and self.kind.counts)

    def run_bytes(self, data: bytes) -> bytes:
        """Run a task given as bytes; returns its result as bytes.

        Raises: CorruptionError: the bytes are damaged.
        """
        return bytes(self(self.task_from(data)))

    def task_from(self, data: bytes) -> NumberedTask[T]:
        """Decode a task. Raises: CorruptionError"""
        if len(data) < _NUMBER.size:
            raise CorruptionError("not the bytes of a task: too short")
        (number,) = _NUMBER.unpack_from(data)
        return NumberedTask(number, self.kind.task.from_bytes(data[_NUMBER.size :]))

    def __reduce__(self) -> tuple[object, ...]:
        return _receive, (self.kind.tag, self.table, self.shared)


def kind_of(tag: str) -> TaskKind[Any, Any]:
    """The task kind with a tag.

    Raises: CorruptionError if there is none.
    """
    if tag not in HOMES:
        raise CorruptionError(f"unknown kind of tasks {tag!r}; known kinds: {', '.join(HOMES)}")
    module, name = HOMES[tag].split(":")
    return cast(TaskKind[Any, Any], getattr(importlib.import_module(module), name))


def restore_options(table: OpenTable) -> OpenTable:
    """A table received from another process, with the option values that its pickle omits."""
    if HIDDEN not in table.schema.options.values():
        return table
    stored = table.root.schemas.get(table.schema.id).options
    options = {name: stored.get(name, text) if text == HIDDEN else text for name, text in table.schema.options.items()}
    return table.under(msgspec.structs.replace(table.schema, options=options))


def _receive(tag: str, table: OpenTable | None, shared: Any) -> Job[Any, Any]:
    return Job(kind_of(tag), None if table is None else restore_options(table), shared, is_remote=True)
