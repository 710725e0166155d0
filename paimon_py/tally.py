"""Telling a caller how far long work has come, from as many threads as do the work."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

Progress = Callable[[int, int, str], object]
"""Takes how much is done, how much there is (0: nobody knows), and what is counted."""


class Counted(Protocol):
    """A batch, of which rows are counted."""

    @property
    def num_rows(self) -> Any:
        """How many rows there are."""


B = TypeVar("B", bound=Counted)


class Tally:
    """Counts work as it is done, and tells the caller; one thread at a time tells, and no count is lost."""

    def __init__(self, progress: Progress | None, total: int, what: str) -> None:
        """`progress`: None tells nobody. `total`: what there is to do, 0 where nobody knows."""
        self._progress, self._total, self._what = progress, total, what
        self._done = 0
        self._counts: deque[int] = deque()
        self._turns: deque[None] = deque((None,))

    def add(self, count: int) -> None:
        """So much more is done.

        Raises: whatever the caller's function raises, so that the work ends.
        """
        if self._progress is None or not count:
            return
        self._counts.append(count)
        while self._counts:
            try:
                turn = self._turns.pop()
            except IndexError:
                return  # another thread tells, and looks again before it ends
            try:
                while self._counts:
                    self._done += self._counts.popleft()
                done = self._done if not self._total else min(self._done, self._total)
                self._progress(done, self._total, self._what)
            finally:
                self._turns.append(turn)


class Part:
    """A share of the work of a tally that is known before; what was not counted on the way counts at the end."""

    def __init__(self, tally: Tally, total: int) -> None:
        self._tally, self._left = tally, total

    def add(self, count: int) -> None:
        """So much more of the share is done; no more than all of it counts."""
        count = min(count, self._left)
        self._left -= count
        self._tally.add(count)

    def end(self) -> None:
        """All of the share is done."""
        self.add(self._left)


def counted(batches: Iterable[B], tally: Tally | Part) -> Iterator[B]:
    """The same batches; the rows of each count when the next one is asked for."""
    for batch in batches:
        yield batch
        tally.add(int(batch.num_rows))
