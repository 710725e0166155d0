"""Time, names, randomness, threads and spill space: the parts of the outside world that the core may use, injected.

Nothing else in the core imports `time`, `uuid`, `random` or `tempfile`, nor `threading` except `parallel.py` (a test
enforces it).
"""

from __future__ import annotations

import glob
import io
import itertools
import mmap
import os
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, Generic, Protocol, TypeVar

from paimon_py.arguments import as_python
from paimon_py.errors import UsageError
from paimon_py.file_locks import FileLock, mark_in_use, remove_if_abandoned, system_lock
from paimon_py.memory import UNLIMITED, MemoryShares, memory_limit
from paimon_py.observers import Observer, Observers
from paimon_py.parallel import Budget, run_streams

if TYPE_CHECKING:
    from threading import Thread

    from paimon_py.spec.credentials import Credentials

T = TypeVar("T")
R = TypeVar("R")

MAP_ALIGNMENT = 1 << 16
"""Mapped parts of spilled files begin at a multiple of this number of bytes."""

_REQUESTS_AT_ONCE = 64
_OF_STREAMS = 4
_SPILL_BUFFER_BYTES = 1 << 16
_SPILL_PREFIX = "paimon-spill-"
_SYSTEM_LOCK = system_lock()


def environment() -> Mapping[str, str]:
    """The current environment variables; read only to redact their values in messages, never to make decisions."""
    return os.environ


class Clock(Protocol):
    """Wall time, elapsed time, and waiting."""

    def millis(self) -> int:
        """Milliseconds since the epoch, UTC."""
        ...

    def local_millis(self) -> int:
        """Wall clock of the local zone as milliseconds, as if it were UTC (`_CREATION_TIME`)."""
        ...

    def elapsed(self) -> float:
        """Seconds on a monotonic clock."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...

    async def pause(self, seconds: float) -> None:
        """Wait while other tasks run."""
        ...


class Ids(Protocol):
    """Unique names, random numbers, and the id of this process."""

    def uuid(self) -> str:
        """A new random UUID in its usual text form."""
        ...

    def jitter(self) -> float:
        """A random number in [0, 1)."""
        ...

    def process(self) -> int:
        """The id of the calling process: it changes after a fork."""
        ...


class Pool(Protocol):
    """Runs work for several items, possibly in parallel: `map` for work that mostly waits, `streams` for
    computation."""

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Like the built-in map, for calls that wait for a store; the first error is raised."""
        ...

    def streams(
        self, begin: Callable[[T], Iterator[R]], items: Iterable[T], budget: Budget, *, in_order: bool = True
    ) -> Generator[R, None, None]:
        """The results of the iterators of all items, in order of the items or as they arrive; for work that computes.

        Closing the iterator, or an error, ends the work on all items; no work outlives the call. Nested calls run
        in the calling thread.
        """
        ...

    async def aside(self, function: Callable[[], R]) -> R:
        """Run a function while other calls run; returns or raises its outcome."""
        ...

    def behind(self, function: Callable[[], object]) -> None:
        """Run a function that raises nothing, possibly while the caller continues; the process waits for its end."""
        ...

    def ahead(self, function: Callable[[], R]) -> Callable[[], R]:
        """Run a function, possibly while the caller continues; the process waits for its end.

        Call the returned function once to get the function's result or error.
        """
        ...


class SpillFile(Protocol):
    """A file that is written once, read any number of times, and deleted by its creator."""

    @property
    def path(self) -> str:
        """The path of the file, for errors."""
        ...

    def open_write(self) -> BinaryIO:
        """Open the file for writing."""
        ...

    def open_read(self) -> BinaryIO:
        """Open the file and read from its beginning."""
        ...

    def map(self, offset: int, size: int) -> memoryview:
        """A memory-mapped range of the file; `offset` is a multiple of `MAP_ALIGNMENT`."""
        ...

    def delete(self) -> None:
        """Delete the file; do nothing if it does not exist."""
        ...


class SpillPlace(Protocol):
    """Space on a fast local disk for data that does not fit into memory. Failures are OSErrors."""

    def create(self) -> SpillFile:
        """A new file, not opened yet; names are never reused."""
        ...


def usable_cores() -> int:
    """The number of cores that the process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


class SystemClock:
    """The machine's clock."""

    def millis(self) -> int:
        return time.time_ns() // 1_000_000

    def local_millis(self) -> int:
        now = time.time_ns() // 1_000_000
        return now + time.localtime(now // 1000).tm_gmtoff * 1000

    def elapsed(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    async def pause(self, seconds: float) -> None:
        import asyncio

        await asyncio.sleep(seconds)


class SystemIds:
    """The machine's randomness."""

    def uuid(self) -> str:
        return str(uuid.uuid4())

    def jitter(self) -> float:
        return int.from_bytes(os.urandom(6), "big") / (1 << 48)

    def process(self) -> int:
        return os.getpid()


class SerialPool:
    """Runs everything in the calling thread."""

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        return map(function, items)

    def streams(
        self, begin: Callable[[T], Iterator[R]], items: Iterable[T], budget: Budget, *, in_order: bool = True
    ) -> Generator[R, None, None]:
        return run_streams(begin, items, budget, threads=1, in_order=in_order)

    async def aside(self, function: Callable[[], R]) -> R:
        return function()

    def behind(self, function: Callable[[], object]) -> None:
        function()

    def ahead(self, function: Callable[[], R]) -> Callable[[], R]:
        return function


class ThreadPool:
    """Runs work on a few threads, created for each call so that none outlives it.

    `threads`: the number of computing threads; None: one for each core that the process may use. `calls`: the number of
    simultaneous calls of `map`; None: a few more than there are cores. `memory`: the total that computing work may use.
    """

    def __init__(
        self, threads: int | None = None, calls: int | None = None, memory: MemoryShares = UNLIMITED
    ) -> None:
        self.threads = threads or memory.threads(usable_cores())
        self._memory = memory
        self._calls = calls or min(8, (os.cpu_count() or 1) + 2)

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        work = list(items)
        if len(work) < 2:
            return map(function, work)
        shared = _SharedWork(function, work)
        try:
            shared.run_on(min(self._calls, len(work)))
        except RuntimeError as error:
            if "shutdown" not in str(error):
                raise
            shared.run()  # the process is ending and cannot start threads: this one does the rest
        return iter(shared.results())

    def streams(
        self, begin: Callable[[T], Iterator[R]], items: Iterable[T], budget: Budget, *, in_order: bool = True
    ) -> Generator[R, None, None]:
        most = self.threads if budget.lanes is None else min(self.threads, budget.lanes)
        budget = budget._replace(limit=self._memory.cap(budget.limit, _OF_STREAMS))
        return run_streams(begin, items, budget, threads=most, in_order=in_order)

    async def aside(self, function: Callable[[], R]) -> R:
        import asyncio

        return await asyncio.to_thread(function)

    def behind(self, function: Callable[[], object]) -> None:
        import threading

        threading.Thread(target=function, name="paimon-behind").start()

    def ahead(self, function: Callable[[], R]) -> Callable[[], R]:
        return _Ahead(function).begin()


class _Ahead(Generic[R]):
    """A call in its own thread; runs in the caller if the thread could not start or was lost in a fork."""

    def __init__(self, function: Callable[[], R]) -> None:
        self._function = function
        self._found: list[R] = []
        self._error: BaseException | None = None

    def begin(self) -> Callable[[], R]:
        """Start the threads and return a function that waits for their end."""
        import threading

        thread = threading.Thread(target=self._run, name="paimon-ahead")
        try:
            thread.start()
        except RuntimeError:  # the process is ending, or the machine has no more threads
            return self._function
        return partial(self._end, thread)

    def _run(self) -> None:
        try:
            self._found.append(self._function())
        except BaseException as error:  # noqa: BLE001 - raised by the caller of the result
            self._error = error

    def _end(self, thread: Thread) -> R:
        thread.join()
        if self._error is not None:
            raise self._error
        return self._found[0] if self._found else self._function()


class _SharedWork:
    """A queue of items for several threads; every item is taken once, and none after an error."""

    def __init__(self, function: Callable[[T], R], items: Sequence[T]) -> None:
        self._function = function
        self._items = items
        self._next = iter(range(len(items)))
        self._done: list[Any] = [None] * len(items)
        self._failed: dict[int, BaseException] = {}

    def run_on(self, threads: int) -> None:
        """Work on this number of threads, and wait for their end. Raises: RuntimeError if they cannot be started."""
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(max_workers=threads, thread_name_prefix="paimon") as pool:
            for _ in range(threads):
                pool.submit(self.run)

    def run(self) -> None:
        """Process items until none is left or one has failed."""
        for place in self._next:
            if self._failed:
                return
            try:
                self._done[place] = self._function(self._items[place])
            except BaseException as error:  # noqa: BLE001 - raised by `results`
                self._failed[place] = error

    def results(self) -> list[Any]:
        """The results of the items, in order; raises the first error."""
        if self._failed:
            raise self._failed[min(self._failed)]
        return self._done


class TemporarySpill:
    """Files in a separate directory below the machine's temporary directory (`TMPDIR`), or below `directory`.

    The directory is created with the first file, readable only for its owner, and removed when it is no longer used or
    the process ends. A killed process leaves its directory behind; the next process that creates one removes it. A lock
    on a file in it, which the operating system releases with the process, marks it as in use.
    """

    def __init__(self, directory: str | None = None, lock: FileLock | None = _SYSTEM_LOCK) -> None:
        self._parent = directory
        self._lock = lock
        self._made: tuple[int, str] | None = None
        self._numbers = itertools.count(1)

    def create(self) -> SpillFile:
        process = os.getpid()
        if self._made is None or self._made[0] != process:
            import tempfile

            parent = self._parent or tempfile.gettempdir()
            _remove_abandoned(parent, self._lock)
            self._made = (process, tempfile.mkdtemp(prefix=_SPILL_PREFIX, dir=parent))
            lock = mark_in_use(self._made[1], self._lock)
            weakref.finalize(self, _remove_tree, self._made[1], process, lock)
        return _LocalSpillFile(os.path.join(self._made[1], f"run-{next(self._numbers)}"))


class _LocalSpillFile:
    def __init__(self, path: str) -> None:
        self.path = path

    def open_write(self) -> BinaryIO:
        return io.BufferedWriter(io.FileIO(self.path, "xb"), _SPILL_BUFFER_BYTES)

    def open_read(self) -> BinaryIO:
        return io.BufferedReader(io.FileIO(self.path, "rb"), _SPILL_BUFFER_BYTES)

    def map(self, offset: int, size: int) -> memoryview:
        with io.FileIO(self.path, "rb") as file:
            return memoryview(mmap.mmap(file.fileno(), size, offset=offset, access=mmap.ACCESS_READ))

    def delete(self) -> None:
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            return


def env_of(given: Env | None) -> Env:
    """The environment that a caller passed, or one of the machine.

    Raises: UsageError for anything else.
    """
    if given is not None and not isinstance(given, Env):
        raise UsageError(f"env is an Env of paimon_py.env, such as Env(threads=4), not {given!r}")
    return given or Env()


def is_ending() -> bool:
    """Whether the process is shutting down: threads may have ended, and no new ones can start."""
    return not threading.main_thread().is_alive()


def _remove_tree(directory: str, process: int, lock: int | None) -> None:
    """Remove the directory; a forked child leaves it to its parent."""
    if os.getpid() == process:
        import shutil

        shutil.rmtree(directory, ignore_errors=True)
    if lock is not None:
        os.close(lock)


def _remove_abandoned(parent: str, lock: FileLock | None) -> None:
    """Remove the directories of ended processes of this user; directories that are not certainly theirs are kept."""
    import shutil

    for directory in glob.glob(os.path.join(glob.escape(parent), f"{_SPILL_PREFIX}*")):
        remove_if_abandoned(directory, lock, partial(shutil.rmtree, ignore_errors=True))


class Env:
    """The clock, ids, pools and spill place that one table or catalog uses.

    Attributes:
        clock, ids, pool, spill: the given ones, or those of the machine.
        io: the pool for requests to distant stores: the given one, or the given `pool`, or separate threads.
        credentials: returns the current credentials of stores; called again before they expire. None: options and the
            cloud's own chain are used.
        observers: called with events of tables (`Catalog.register_observer`).
        memory: the default limits for parts of the library: shares of the given limit, or of the container's.
    """

    __slots__ = ("clock", "credentials", "ids", "io", "memory", "observers", "pool", "spill")

    def __init__(  # noqa: PLR0913
        self, clock: Clock | None = None, ids: Ids | None = None, pool: Pool | None = None,
        spill: SpillPlace | None = None, *,
        threads: int | None = None,
        io: Pool | None = None,
        credentials: Callable[[], Credentials] | None = None,
        observers: Iterable[Observer] = (),
        memory_bytes: int | None = None,
    ) -> None:  # fmt: skip
        """`threads`: the number of computing threads; None: one for each core that the process may use, fewer if memory
        is short. A given pool determines its own. `memory_bytes`: the memory that the process may use; None: the limit
        of its container (control groups), if it has one.

        Raises: UsageError for a number below 1, and for threads in addition to a pool.
        """
        memory_bytes, threads = _whole_number("memory_bytes", memory_bytes), _whole_number("threads", threads)
        self.memory = MemoryShares(memory_limit() if memory_bytes is None else memory_bytes)
        if threads is not None and pool is not None:
            raise UsageError("give threads or a pool, not both: a pool has its own number of threads")
        self.clock: Clock = clock or SystemClock()
        self.ids: Ids = ids or SystemIds()
        self.io: Pool = io or pool or ThreadPool(calls=_REQUESTS_AT_ONCE)
        self.pool: Pool = pool or ThreadPool(threads, memory=self.memory)
        self.spill: SpillPlace = spill or TemporarySpill()
        self.credentials = credentials
        self.observers = Observers(observers)

    def at_once(self, place: str, calls: Sequence[Callable[[], T]]) -> list[T]:
        """The results of independent calls to the store of a path.

        They run in parallel on distant stores, otherwise one after the other. All of them have ended when the first
        error is raised, except those that were not started.
        """
        if len(calls) > 1 and is_distant(place):
            return list(self.io.map(_call, calls))
        return [call() for call in calls]


def is_distant(place: str) -> bool:
    """Whether the store of a path is distant, so that requests take long: whether the path is a URL."""
    return "://" in place


def _whole_number(name: str, value: object) -> int | None:
    """An argument that is a number from 1 if it is given."""
    value = as_python(value)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise UsageError(f"{name} must be a whole number from 1, not {value!r}")
    return value


def _call(call: Callable[[], T]) -> T:
    return call()
