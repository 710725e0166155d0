"""How a stream's consumer moves: when steps are acknowledged, in one process or several.

Source: Java `DataTableStreamScan.notifyCheckpointComplete`, option `consumer.mode`.
"""

from __future__ import annotations

from paimon_py.metadata.consumers import Consumer
from paimon_py.metadata.root import TableRoot


class Progress:
    """Moves a consumer forward. Called with the number of the snapshot that comes after an acknowledged step.

    With `in_order` a step stands for all before it (`consumer.mode` = 'exactly-once'). Else steps are acknowledged one
    by one, in any order, and the consumer stands before the first one that is not ('at-least-once').

    A copy that was sent to another process knows nothing of the others' steps, and moves the consumer as if in order.
    """

    def __init__(self, root: TableRoot, name: str, *, in_order: bool) -> None:
        self._root = root
        self._name = name
        self._in_order = in_order
        self._open: dict[int, int] = {}  # by the snapshot that comes after a step: the first one that it stands for
        self._done = self._recorded = 0

    def begin(self, next_snapshot_id: int) -> None:
        """Record where the consumer stands before its first step, so that expiry waits for it.

        Raises: StorageError
        """
        self._record(next_snapshot_id)

    def opened(self, first: int, after: int) -> None:
        """Take note of a step that was handed out: it stands for the snapshots from `first` up to `after`."""
        if not self._in_order:
            self._open[after] = first

    def __call__(self, next_snapshot_id: int) -> None:
        """Acknowledge a step.

        Raises: StorageError; nothing is recorded, or everything is.
        """
        self._done = max(self._done, next_snapshot_id)
        left = {after: first for after, first in self._open.items() if after != next_snapshot_id}
        self._record(min(left.values(), default=self._done))
        self._open = left

    def _record(self, next_snapshot_id: int) -> None:
        if next_snapshot_id > self._recorded:
            self._root.consumers.put(Consumer(self._name, next_snapshot_id))
            self._recorded = next_snapshot_id

    def __reduce__(self) -> tuple[object, ...]:
        return _elsewhere, (self._root, self._name)


def _elsewhere(root: TableRoot, name: str) -> Progress:
    return Progress(root, name, in_order=True)
