"""Iterators that several threads advance in parallel within a memory budget.

Every item has a lane: an iterator that is started when the budget allows it and is advanced by one thread at a time,
one result at a time. Threads are shared by all lanes. They run until the buffer is full or no lane may advance, then
exit. So no thread keeps working after the caller has stopped asking, and none waits for the caller.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from paimon_py.errors import UsageError

T = TypeVar("T")
R = TypeVar("R")

_AHEAD = 16
"""Maximum number of items per thread that are started or finished before the caller has taken the earlier results."""

_here = threading.local()


def new_lock() -> AbstractContextManager[bool]:
    """A lock for values that several threads change; hold it briefly, in a `with` block."""
    return threading.Lock()


class Budget(NamedTuple):
    """The memory that may be in use at once for many items, and how much each item and result needs.

    `limit`: bytes for all started items and all results that wait for the caller; one item may always advance.
    `cost`: the bytes that processing an item needs. `size`: the bytes of a result. `lanes`: the maximum number of items
    at once; None for one per thread of the pool.
    """

    limit: int
    cost: Callable[[Any], int]
    size: Callable[[Any], int]
    lanes: int | None = None


def active_workers() -> int:
    """The number of lanes that share the machine with the calling thread; 1 outside a pool."""
    return getattr(_here, "lanes", 1)


def run_streams(
    begin: Callable[[T], Iterator[R]], items: Iterable[T], budget: Budget, *, threads: int, in_order: bool
) -> Generator[R, None, None]:
    """The results of an iterator for every item.

    With one thread, for one item, or if the caller already runs in a lane, items are processed one after the other in
    the calling thread. `items` is always consumed in the calling thread, at most `threads` ahead. Closing the generator
    ends all work.

    Args:
        in_order: results, and the first error, come in the order of the items; otherwise as soon as they are available.
    Raises: what `begin` or its iterator raises; UsageError if another process than the first continues the iteration.
    """
    source = iter(items)
    first = list(islice(source, 2 if threads > 1 and active_workers() == 1 else 0))
    if len(first) < 2:
        for item in first:
            yield from begin(item)
        for item in source:
            yield from begin(item)
        return
    lanes = _Lanes(begin, budget, threads, in_order=in_order)
    try:
        for item in first:
            lanes.add(item)
        more = True
        while True:
            while more and lanes.wants_items:
                for item in islice(source, 1):
                    lanes.add(item)
                    break
                else:
                    more = False
            found = lanes.take(more=more)
            if found is None:
                return
            yield from found
    finally:
        lanes.close()


class _Lane(Generic[R]):
    """One item in progress. `cost` counts from start to end; `results` are the waiting results with their sizes.

    `begin` is cleared once it was called, so that only the iterator holds a reference to the item.
    """

    __slots__ = ("begin", "busy", "cost", "done", "error", "iterator", "results")

    def __init__(self, begin: Callable[[], Iterator[R]], cost: int) -> None:
        self.begin: Callable[[], Iterator[R]] | None = begin
        self.cost = cost
        self.iterator: Iterator[R] | None = None
        self.results: deque[tuple[R, int]] = deque()
        self.busy = self.done = False
        self.error: BaseException | None = None

    @property
    def waits(self) -> bool:
        """Whether the lane has not been started."""
        return self.begin is not None and not self.busy


class _Step(msgspec.Struct, Generic[R], frozen=True):
    """A result with its size, or the end of the lane, possibly with an error."""

    result: tuple[R, int] | None
    error: BaseException | None = None


class _Lanes(Generic[T, R]):
    """The lanes of one call in the order of their items, without finished, empty ones."""

    def __init__(self, begin: Callable[[T], Iterator[R]], budget: Budget, threads: int, *, in_order: bool) -> None:
        self._begin = begin
        self._budget = budget
        self._most = threads
        self._in_order = in_order
        self._process = os.getpid()
        self._changed = threading.Condition()
        self._lanes: deque[_Lane[R]] = deque()
        self._threads: set[threading.Thread] = set()
        self._bytes = 0
        self._closed = False

    @property
    def wants_items(self) -> bool:
        """Whether more items could be started soon."""
        self._require_process()
        with self._changed:
            return self._wants_items()

    def add(self, item: T) -> None:
        """Add an item after all others."""
        lane: _Lane[R] = _Lane(partial(self._begin, item), self._budget.cost(item))
        with self._changed:
            self._lanes.append(lane)

    def take(self, *, more: bool) -> list[R] | None:
        """Wait for the results of a lane; an empty list if more items are wanted first, None at the end.

        `more`: whether items may follow.
        """
        self._require_process()
        with self._changed:
            while True:
                self._drop_finished()
                self._hire()
                found = self._ready()
                if found is not None:
                    self._bytes -= sum(size for _, size in found)
                    self._hire()
                    return [result for result, _ in found]
                if more and self._wants_items():
                    return []
                if not self._lanes:
                    return None
                self._changed.wait()

    def close(self) -> None:
        """End all work: threads finish their step, iterators are closed. A forked child does nothing."""
        if os.getpid() != self._process:
            return
        with self._changed:
            self._closed = True
            idle = [lane for lane in self._lanes if not lane.busy]
            threads = self._threads - {threading.current_thread()}
            self._lanes.clear()
        for thread in threads:
            thread.join()
        for lane in idle:
            _close(lane)

    # -- under the lock ------------------------------------------------------------------------------------------------

    def _wants_items(self) -> bool:
        waiting = [lane.cost for lane in self._lanes if lane.waits]
        if not waiting:
            return len(self._lanes) < _AHEAD * self._most
        return len(waiting) < self._most and self._bytes + sum(waiting) < self._budget.limit

    def _drop_finished(self) -> None:
        """Remove lanes whose results have all been taken, and raise the error of the first one that failed."""
        for lane in tuple(self._lanes):
            if lane.done and not lane.results:
                if lane.error is not None:
                    error, lane.error = lane.error, None
                    try:
                        raise error
                    finally:
                        del error
                self._lanes.remove(lane)
            elif self._in_order:
                return

    def _ready(self) -> list[tuple[R, int]] | None:
        """The results of a lane that the caller may take now."""
        for lane in islice(self._lanes, 1 if self._in_order else len(self._lanes)):
            if lane.results:
                return [lane.results.popleft()]
        return None

    def _hire(self) -> None:
        """Start a thread for every lane that may advance, up to the maximum number of threads."""
        while len(self._threads) < self._most and (lane := self._next()) is not None:
            thread = threading.Thread(target=self._work, args=(lane,), name="paimon-lane")
            lane.busy = True
            self._threads.add(thread)
            try:
                thread.start()
            except RuntimeError:  # the machine has no more threads
                self._threads.discard(thread)
                lane.busy = False
                self._bytes -= 0 if lane.begin is None else lane.cost
                if not self._threads:
                    raise
                return

    def _next(self) -> _Lane[R] | None:
        """The first lane that may advance; none after a failed one."""
        # `_bytes`: costs of the started lanes, and sizes of the waiting results. Example, in order, two
        # threads, limit 100: A and B are started (40 each), a result of B waits (30), so 110 bytes are in use. A still
        # advances: it is first and the caller waits for it. B must not. When A is done, 70 bytes are in use: B advances
        # again, but C (cost 40) is not started, since 110 would exceed the limit.
        if self._closed:
            return None
        begun = sum(not lane.done and not lane.waits for lane in self._lanes)
        nothing_waits = not any(lane.results for lane in self._lanes)
        for place, lane in enumerate(self._lanes):
            if lane.error is not None:
                return None
            if lane.busy or lane.done:
                continue
            must = place == 0 and not lane.results if self._in_order else begun == 0 and nothing_waits
            if lane.begin is None:
                if must or (nothing_waits and not self._in_order) or self._bytes < self._budget.limit:
                    return lane
            elif must or (begun < self._most and self._bytes + lane.cost <= self._budget.limit):
                self._bytes += lane.cost
                return lane
        return None

    def _settle(self, lane: _Lane[R], step: _Step[R]) -> None:
        """Record the result of a step."""
        lane.busy = False
        if step.result is not None:
            self._bytes += step.result[1]
            lane.results.append(step.result)
            return
        lane.done, lane.error = True, step.error
        lane.begin = lane.iterator = None
        self._bytes -= lane.cost

    # -- in a thread of their own --------------------------------------------------------------------------------------

    def _work(self, lane: _Lane[R] | None) -> None:
        _here.lanes = self._most
        while lane is not None:
            step = self._step(lane)
            with self._changed:
                self._settle(lane, step)
                if self._closed:
                    _close(lane)
                lane = self._next()
                if lane is None:
                    self._threads.discard(threading.current_thread())
                else:
                    lane.busy = True
                self._changed.notify_all()

    def _step(self, lane: _Lane[R]) -> _Step[R]:
        """Advance a lane once."""
        try:
            if lane.begin is not None:
                begin, lane.begin = lane.begin, None
                lane.iterator = iter(begin())
            assert lane.iterator is not None
            for result in lane.iterator:
                return _Step((result, self._budget.size(result)))
        except BaseException as error:  # noqa: BLE001 - the caller raises it
            return _Step(None, error)
        return _Step(None)

    def _require_process(self) -> None:
        if os.getpid() != self._process:
            raise UsageError("these rows are being read in another process; open a reader in each process")


def _close(lane: _Lane[R]) -> None:
    close = getattr(lane.iterator, "close", None)
    if close is not None:
        close()
