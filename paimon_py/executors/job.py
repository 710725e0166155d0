"""What an executor is given and what it gives back: a job, its tasks, and their results.

A task is a value of its own, and travels as checked bytes to the process that runs it. A job is what all tasks of one
call have in common: the table, and which kind of tasks they are. A process that receives a job finds the function that
runs its tasks by the tag of the kind (`HOMES`), so no code travels but what a user's own functions are.
"""

from __future__ import annotations

import importlib
import struct
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

import msgspec

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
    "parcels": "paimon_py.cdc.event_tasks:WRITE",
    "rewriting": "paimon_py.maintain.rescale:REWRITE",
    "rows": "paimon_py.rows.row_tasks:CHANGE_ROWS",
}
"""Where each kind of tasks is, by its tag: a process imports only what it runs."""

_NUMBER = struct.Struct(">Q")


def _nothing(_job: object, _result: object) -> None:
    """The result names no new file."""


class TaskKind(msgspec.Struct, Generic[T, R], frozen=True, kw_only=True):
    """A kind of tasks.

    Attributes:
        task, result: the classes of its values. The word that the bytes of a task begin with is the tag of the kind.
        run: does one task.
        discard: deletes the files that a result names and that nobody will commit.
        steps: how many steps a task counts of the progress that a caller is told.
        counts: whether `run` counts these steps itself where the job has a tally; else they count when it has ended.
        budget: how much memory tasks take that run at the same time in one process; None: they run one after the
            other, and each does its calls to the store at once.
    """

    task: type[T]
    result: type[R]
    run: Callable[[Job[T, R], T], R]
    discard: Callable[[Job[T, R], R], None] = _nothing
    steps: Callable[[T], int] = lambda _: 0
    counts: bool = True
    budget: Budget | None = None

    @property
    def tag(self) -> str:
        """The tag of the kind."""
        return self.task.kind


class NumberedTask(msgspec.Struct, Generic[T], frozen=True):
    """A task, and its place among the tasks of its job. `bytes` of it travel, and so does its pickle."""

    number: int
    task: T

    def __bytes__(self) -> bytes:
        return _NUMBER.pack(self.number) + bytes(self.task)


class TaskResult(Generic[R]):
    """What came of a task: a value, or an error of paimon_py that another attempt would meet as well, or may cure.

    `bytes` of it travel, and so does its pickle.

    Attributes:
        number: the place of the task.
        value: what the task gives; None if it failed.
        error: why it failed.
        is_counted: the steps of the task were counted while it ran.
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
    def may_be_cured(self) -> bool:
        """Whether the task failed by what another attempt, or another machine, may not meet: a store, or memory."""
        return isinstance(self.error, (StorageError, ResourceError))

    def __bytes__(self) -> bytes:
        value = None if self.value is None else bytes(self.value)
        error = None if self.error is None else error_bytes(self.error)
        return msgspec.msgpack.encode((self.tag, self.number, value, error))

    @classmethod
    def from_bytes(cls, data: bytes) -> TaskResult[Any]:
        """The result that `bytes` made.

        Raises: CorruptionError for anything else.
        """
        try:
            tag, number, value, error = msgspec.msgpack.decode(data, type=tuple[str, int, bytes | None, bytes | None])
        except msgspec.MsgspecError as wrong:
            raise CorruptionError(f"these bytes are not the result of a task: {wrong}") from wrong
        found = None if value is None else kind_of(tag).result.from_bytes(value)
        return TaskResult(tag, number, found, None if error is None else error_from(error))

    def __reduce__(self) -> tuple[object, ...]:
        return TaskResult.from_bytes, (bytes(self),)


class Job(Generic[T, R]):
    """What the tasks of one call have in common. Calling it runs one of them, in any process.

    Pickles hold the tag, the table without secrets, and what is shared: a few kB, however many tasks there are.

    Attributes:
        kind: the kind of the tasks.
        table: the table, under the schema of the call. A job of several tables has None instead, and the tables in
            `shared`; its kind never asks, and has no budget.
        shared: what else is the same for all tasks; it travels as a pickle.
        tally: counts steps as they are done; not in other processes.
        has_travelled: the job came from another process, and so do its tasks.
    """

    __slots__ = ("has_travelled", "kind", "shared", "table", "tally")

    def __init__(
        self, kind: TaskKind[T, R], table: OpenTable | None, shared: Any = None, *,
        tally: ProgressCounter | None = None, has_travelled: bool = False,
    ) -> None:  # fmt: skip
        self.kind = kind
        self.table = cast(OpenTable, table)
        self.shared = shared
        self.tally = tally
        self.has_travelled = has_travelled

    def __call__(self, task: NumberedTask[T]) -> TaskResult[R]:
        """Run a task. An error of paimon_py is its result; other errors, of a user's own functions say, are raised.

        Steps are counted when the result arrives: a caller's `progress` never fails in the middle of a task.
        """
        alone = Job(self.kind, self.table, self.shared, has_travelled=self.has_travelled)
        try:
            return alone.carry_out(task)
        except PaimonError as error:
            return TaskResult(self.kind.tag, task.number, None, error)

    def carry_out(self, task: NumberedTask[T]) -> TaskResult[R]:
        """Run a task in the process that waits for it. Raises: whatever its function raises."""
        value = self.kind.run(self, task.task)
        return TaskResult(self.kind.tag, task.number, value, is_counted=self.tally is not None and self.kind.counts)

    def run_bytes(self, data: bytes) -> bytes:
        """Run a task that came as bytes; gives the bytes of its result.

        Raises: CorruptionError: the bytes are damaged.
        """
        return bytes(self(self.task_from(data)))

    def task_from(self, data: bytes) -> NumberedTask[T]:
        """The task that bytes hold. Raises: CorruptionError"""
        if len(data) < _NUMBER.size:
            raise CorruptionError("these bytes are not a task: they were cut off")
        (number,) = _NUMBER.unpack_from(data)
        return NumberedTask(number, self.kind.task.from_bytes(data[_NUMBER.size :]))

    def __reduce__(self) -> tuple[object, ...]:
        return _receive, (self.kind.tag, self.table, self.shared)


def kind_of(tag: str) -> TaskKind[Any, Any]:
    """The kind with a tag.

    Raises: CorruptionError if there is none.
    """
    if tag not in HOMES:
        raise CorruptionError(f"there are no tasks called {tag!r}; there are {', '.join(HOMES)}")
    module, name = HOMES[tag].split(":")
    return cast(TaskKind[Any, Any], getattr(importlib.import_module(module), name))


def restore_options(table: OpenTable) -> OpenTable:
    """A table that came from another process, with the values of options that its pickle left out."""
    if HIDDEN not in table.schema.options.values():
        return table
    stored = table.root.schemas.get(table.schema.id).options
    options = {name: stored.get(name, text) if text == HIDDEN else text for name, text in table.schema.options.items()}
    return table.under(msgspec.structs.replace(table.schema, options=options))


def _receive(tag: str, table: OpenTable | None, shared: Any) -> Job[Any, Any]:
    return Job(kind_of(tag), None if table is None else restore_options(table), shared, has_travelled=True)
