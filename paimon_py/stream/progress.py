"""How a stream's consumer moves: when steps are acknowledged, in one process or several.

Source: Java `DataTableStreamScan.notifyCheckpointComplete`, option `consumer.mode`.
"""

from __future__ import annotations

from paimon_py.errors import TableNotFoundError
from paimon_py.metadata.consumers import Consumer
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.snapshot import Base
from paimon_py.stream.position import table_of


class Progress:
    """Moves a consumer forward. Called with the place after an acknowledged step.

    With `in_order` a step stands for all before it (`consumer.mode` = 'exactly-once'). Else steps are acknowledged one
    by one, in any order, and the consumer stands before the first one that is not ('at-least-once').

    A copy that was sent to another process knows nothing of the others' steps, and moves the consumer as if in order.
    """

    def __init__(self, root: TableRoot, name: str, *, in_order: bool) -> None:
        self._root = root
        self._name = name
        self._in_order = in_order
        self._open: dict[int, tuple[Base, Base]] = {}  # by the id of the last snapshot of a step: where it begins, ends
        self._done = self._recorded = Base(0)
        self._is_recorded = False

    def begin(self, after: Base, table: str | None) -> None:
        """Record where the consumer stands before its first step, so that expiry waits for it.

        Raises: StorageError, TableNotFoundError
        """
        self._record(after, table)

    def on_step(self, after: Base, last: Base) -> None:
        """Take note of a step that was handed out: it stands for the snapshots after one, up to and with another."""
        if not self._in_order:
            self._open[last.id] = after, last

    def __call__(self, last: Base, table: str | None) -> None:
        """Acknowledge the step that ends with a snapshot. `table`: what tells the table from one that is made later.

        Raises:
            StorageError: nothing is recorded, or everything is.
            TableNotFoundError: there is another table now, whose consumers stay as they are.
        """
        self._done = max(self._done, last, key=lambda one: one.id)
        left = {number: ends for number, ends in self._open.items() if number != last.id}
        self._record(min((after for after, _ in left.values()), default=self._done, key=lambda one: one.id), table)
        self._open = left

    def _record(self, after: Base, table: str | None) -> None:
        if self._is_recorded and after.id <= self._recorded.id:
            return
        if table is not None and table_of(self._root) != table:
            raise TableNotFoundError(
                f"the table at {self._root.path} was dropped and created again since the stream began: its consumer"
                f" {self._name!r} stays where it is; start again with from_='full'",
                path=self._root.path,
            )
        self._root.consumers.put(Consumer(self._name, after.id + 1), after, self._recorded)
        self._recorded, self._is_recorded = after, True

    def __reduce__(self) -> tuple[object, ...]:
        return _elsewhere, (self._root, self._name)


def _elsewhere(root: TableRoot, name: str) -> Progress:
    return Progress(root, name, in_order=True)
