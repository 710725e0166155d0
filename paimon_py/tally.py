"""Telling a caller how far long work has come, from as many threads as do the work."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

Progress = Callable[[int, int, str], object]
"""Takes how much is done, how much there is (0: nobody knows), and what is counted."""


class Tally:
    """Counts work as it is done, and tells the caller; one thread at a time tells, and no count is lost."""

    def __init__(self, progress: Progress | None, total: int, what: str) -> None:
        """`progress`: None tells nobody. `total`: what there is to do, 0 where nobody knows."""
        self._progress, self._total, self._what = progress, total, what
        self._done = 0
        self._counts: deque[int] = deque()
        self._turns: deque[None] = deque((None,))

    def add(self, count: int) -> None:
        """Count what more is done.

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


class TallyPart:
    """A share of the work of a tally that is known before; what was not counted on the way counts at the end."""

    def __init__(self, tally: Tally, total: int) -> None:
        self._tally, self._left = tally, total

    def add(self, count: int) -> None:
        """Count what more of the share is done, up to all of the share."""
        count = min(count, self._left)
        self._left -= count
        self._tally.add(count)

    def end(self) -> None:
        """Count the rest of the share."""
        self.add(self._left)


def counted(batches: Iterable[pa.RecordBatch], tally: Tally | TallyPart) -> Iterator[pa.RecordBatch]:
    """The same batches; the rows of each count when the next one is asked for."""
    for batch in batches:
        yield batch
        tally.add(batch.num_rows)
