"""Progress of long work, reported to a caller from several threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

Progress = Callable[[int, int, str], object]
"""Takes how much is done, how much there is (0: nobody knows), and what is counted."""


class ProgressCounter:
    """Counts work as it is done, and tells the caller; one thread at a time tells, and no count is lost.

    What is told only grows. Where each thing is worked on several times (a row is taken, then written), a thing has so
    many steps, and as many things are done as their steps would make.
    """

    def __init__(
        self, progress: Progress | None, total: int, what: str, *, steps: int = 1, attempt: int = 1
    ) -> None:
        """`progress`: None tells nobody. `total`: what there is to do, 0 where nobody knows. `attempt`: which one of
        the same work; others than the first have names of their own."""
        self._progress, self._total, self._steps = progress, total, steps
        self._what = what if attempt == 1 else f"{what}, attempt {attempt}"
        self._counted = self._done = 0
        self._counts: deque[int] = deque()
        self._turns: deque[None] = deque((None,))

    def add(self, count: int) -> None:
        """Count what more steps are done.

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
                    self._counted += self._counts.popleft()
                done = self._counted // self._steps
                done = done if not self._total else min(done, self._total)
                if done > self._done:
                    self._done = done
                    self._tell(self._progress, done)
            finally:
                self._turns.append(turn)

    def _tell(self, progress: Progress | None, done: int) -> None:
        """Call the caller's function, unless it has failed before."""
        if progress is None:
            return
        try:
            progress(done, self._total, self._what)
        except BaseException:
            self._progress = None
            raise

    def then(self, total: int, what: str, *, steps: int = 1) -> ProgressCounter:
        """A tally of the work that comes after this one's, for the same caller."""
        return ProgressCounter(self._progress, total, what, steps=steps)

    def end(self) -> None:
        """Count all that is left: there is nothing more to do."""
        self.add(max(0, self._total * self._steps - self._counted))


class ProgressShare:
    """A share of the work of a tally that is known before; what was not counted on the way counts at the end."""

    def __init__(self, tally: ProgressCounter, total: int, *, steps: int = 1) -> None:
        """`steps`: how many steps each thing of the share makes."""
        self._tally, self._total, self._left, self._steps = tally, total, total, steps

    def add(self, count: int) -> None:
        """Count what more of the share is done, up to all of the share."""
        count = min(count, self._left)
        self._left -= count
        self._tally.add(count * self._steps)

    def reach(self, count: int) -> None:
        """Count up to so much of the share, if that is more than was counted."""
        self.add(max(0, count - (self._total - self._left)))

    def end(self) -> None:
        """Count the rest of the share."""
        self.add(self._left)


def count_batches(
    batches: Iterable[pa.RecordBatch], tally: ProgressCounter | ProgressShare
) -> Iterator[pa.RecordBatch]:
    """The same batches; the rows of each count when the next one is asked for."""
    for batch in batches:
        yield batch
        tally.add(batch.num_rows)
