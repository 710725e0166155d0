"""Time, names, randomness and threads: the parts of the outside world that the core may use, injected.

Nothing else in the core imports `time`, `uuid`, `random` or `threading` (a test enforces it).
"""

from __future__ import annotations

import os
import random
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Clock(Protocol):
    """Wall time, elapsed time, and waiting."""

    def millis(self) -> int:
        """Milliseconds since the epoch, UTC."""
        ...

    def local_millis(self) -> int:
        """Wall clock of the local zone as milliseconds, as if it were UTC (`_CREATION_TIME`)."""
        ...

    def elapsed(self) -> float:
        """Seconds on a clock that never goes back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class Ids(Protocol):
    """Unique names and random numbers."""

    def uuid(self) -> str:
        """A fresh random UUID in its usual text form."""
        ...

    def jitter(self) -> float:
        """A random number in [0, 1)."""
        ...


class Pool(Protocol):
    """Runs a function over items, perhaps at once; results keep the order of the items."""

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Like the built-in map; the first error is raised."""
        ...


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


class SystemIds:
    """The machine's randomness."""

    def uuid(self) -> str:
        return str(uuid.uuid4())

    def jitter(self) -> float:
        return random.random()


class SerialPool:
    """Runs everything in the calling thread."""

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        return map(function, items)


class ThreadPool:
    """Runs on a few threads, made for each call so that nothing outlives it."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or min(8, (os.cpu_count() or 1) + 2)

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        work = list(items)
        if len(work) < 2:
            return map(function, work)
        with ThreadPoolExecutor(max_workers=min(self.threads, len(work)), thread_name_prefix="paimon") as pool:
            return iter(list(pool.map(function, work)))


class Env:
    """The clock, ids and pool that one table or catalog uses."""

    __slots__ = ("clock", "ids", "pool")

    def __init__(self, clock: Clock | None = None, ids: Ids | None = None, pool: Pool | None = None) -> None:
        self.clock: Clock = clock or SystemClock()
        self.ids: Ids = ids or SystemIds()
        self.pool: Pool = pool or ThreadPool()
