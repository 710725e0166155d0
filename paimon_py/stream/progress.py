"""Moves the consumer of a stream when steps are acknowledged, in one process or several.

Source: Java `DataTableStreamScan.notifyCheckpointComplete`, option `consumer.mode`.
"""

from __future__ import annotations

from paimon_py.errors import TableNotFoundError
from paimon_py.metadata.consumers import Consumer, Reset
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.snapshot import Base
from paimon_py.stream.position import table_of


class Progress:
    """Moves a consumer forward. Called with the position after an acknowledged step.

    With `in_order` a step acknowledges all before it (`consumer.mode` = 'exactly-once'). Otherwise steps are
    acknowledged one by one, in any order, and the consumer stays before the first one that is not ('at-least-once').

    A copy in another process does not know the others' steps, and moves the consumer as if in order.

    Attributes:
        reset: the reset of the consumer, if it had acknowledged no step since when the stream began.
    """

    def __init__(self, root: TableRoot, name: str, *, in_order: bool, reset: Reset | None = None) -> None:
        self.reset = reset
        self._root = root
        self._name = name
        self._in_order = in_order
        self._open: dict[int, tuple[Base, Base]] = {}  # by the id of the last snapshot of a step: where it begins, ends
        self._done = self._recorded = Base(0)
        self._is_recorded = False

    def begin(self, after: Base, table: str | None) -> None:
        """Record the consumer's position before its first step, so that expiry waits for it.

        Raises: StorageError, TableNotFoundError
        """
        self._record(after, table, self.reset)

    def on_step(self, after: Base, last: Base) -> None:
        """Note a step that is returned: it covers the snapshots after one, up to and including another.

        Cost: none; a put if the consumer was reset, and has acknowledged no step since.
        """
        if self.reset is not None and self._is_recorded and self._recorded.id < last.id and not self._done.id:
            self.reset = Reset((*self.reset.returned, last))
            consumer = Consumer(self._name, self._recorded.id + 1)
            self._root.consumers.put(consumer, self._recorded, reset=self.reset)
        if not self._in_order:
            self._open[last.id] = after, last

    def __call__(self, last: Base, table: str | None) -> None:
        """Acknowledge the step that ends with a snapshot. `table`: distinguishes the table from one created later.

        Raises:
            StorageError: either nothing or everything is recorded.
            TableNotFoundError: there is another table now, whose consumers are not changed.
        """
        self._done = max(self._done, last, key=lambda one: one.id)
        left = {number: ends for number, ends in self._open.items() if number != last.id}
        self._record(min((after for after, _ in left.values()), default=self._done, key=lambda one: one.id), table)
        self._open = left

    def _record(self, after: Base, table: str | None, reset: Reset | None = None) -> None:
        if self._is_recorded and after.id <= self._recorded.id:
            return
        if table is not None and table_of(self._root) != table:
            raise TableNotFoundError(
                f"the table at {self._root.path} was dropped and created again since the stream began: its consumer"
                f" {self._name!r} was not moved; start again with from_='full'",
                path=self._root.path,
            )
        self._root.consumers.put(Consumer(self._name, after.id + 1), after, self._recorded, reset=reset)
        self._recorded, self._is_recorded = after, True

    def __reduce__(self) -> tuple[object, ...]:
        return _elsewhere, (self._root, self._name)


def _elsewhere(root: TableRoot, name: str) -> Progress:
    return Progress(root, name, in_order=True)
