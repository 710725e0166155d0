"""Progress of long work, reported to a caller from several threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

Progress = Callable[[int, int, str], object]
"""Called with the amount done, the total (0: unknown), and the unit."""


class ProgressCounter:
    """Counts work as it is done, and reports it to the caller; one thread at a time reports, and no count is lost.

    Reported numbers only grow. If each item is processed several times (a row is read, then written), it has several
    steps, and the reported number is the number of finished steps divided by the steps of one item.
    """

    def __init__(
        self, progress: Progress | None, total: int, what: str, *, steps: int = 1, attempt: int = 1
    ) -> None:
        """`progress`: None reports nothing. `total`: the amount of work, 0 if unknown. `attempt`: the number of the
        attempt; later attempts have other units."""
        self._progress, self._total, self._steps = progress, total, steps
        self._what = what if attempt == 1 else f"{what}, attempt {attempt}"
        self._counted = self._done = 0
        self._counts: deque[int] = deque()
        self._turns: deque[None] = deque((None,))

    def add(self, count: int) -> None:
        """Count further steps.

        Raises: any error of the caller's function, which ends the work.
        """
        if self._progress is None or not count:
            return
        self._counts.append(count)
        while self._counts:
            try:
                turn = self._turns.pop()
            except IndexError:
                return  # another thread reports, and checks again before it ends
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
        """Call the caller's function, unless it failed before."""
        if progress is None:
            return
        try:
            progress(done, self._total, self._what)
        except BaseException:
            self._progress = None
            raise

    def then(self, total: int, what: str, *, steps: int = 1) -> ProgressCounter:
        """A counter for the work after this one's, for the same caller."""
        return ProgressCounter(self._progress, total, what, steps=steps)

    def end(self) -> None:
        """Count all the rest: the work is complete."""
        self.add(max(0, self._total * self._steps - self._counted))


class ProgressShare:
    """A share of the work of a counter, known in advance; work that was not counted is counted at the end."""

    def __init__(self, tally: ProgressCounter, total: int, *, steps: int = 1) -> None:
        """`steps`: the number of steps of each item of the share."""
        self._tally, self._total, self._left, self._steps = tally, total, total, steps

    def add(self, count: int) -> None:
        """Count further items of the share, up to all of it."""
        count = min(count, self._left)
        self._left -= count
        self._tally.add(count * self._steps)

    def reach(self, count: int) -> None:
        """Count up to this number of items of the share, if it is more than was counted."""
        self.add(max(0, count - (self._total - self._left)))

    def end(self) -> None:
        """Count the rest of the share."""
        self.add(self._left)


def count_batches(
    batches: Iterable[pa.RecordBatch], tally: ProgressCounter | ProgressShare
) -> Iterator[pa.RecordBatch]:
    """Yield the same batches; the rows of each count when the next one is requested."""
    for batch in batches:
        yield batch
        tally.add(batch.num_rows)
