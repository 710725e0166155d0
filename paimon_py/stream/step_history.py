"""Whether a later step of a stream follows the step that another table has committed last.

If not, that table has rows of a snapshot that was rolled back, and no later step corrects them.
"""

from __future__ import annotations

from paimon_py.errors import UsageError
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.snapshot import Base
from paimon_py.stream.position import Position, parse_position


class StepHistory:
    """The history up to a step. Values can be pickled; secrets are omitted."""

    def __init__(self, root: TableRoot, position: Position, before: Base | None, *, was_reset: bool) -> None:
        """
        Args:
            position: the position after the step.
            before: the snapshot before the step; None for the step of a whole snapshot.
            was_reset: the consumer of the stream was reset and has acknowledged no step since: whoever reset it has
                decided what to do about earlier steps.
        """
        self._root = root
        self._position = position
        self._before = before
        self._was_reset = was_reset

    def lacks(self, source: str) -> bool:
        """See `SourceHistory.lacks`. A step whose snapshot has expired counts as one of the history.

        Cost: none if the step is the last one before this one; otherwise a get, or two if its snapshot has expired.
        """
        try:
            asked = parse_position(source)
        except UsageError:  # not of a stream of a table
            return False
        base, here = asked.base, self._position.base
        if self._was_reset or base.mark is None:
            return False
        if None not in (asked.table, self._position.table) and asked.table != self._position.table:
            return True
        if base.id >= here.id:
            return base != here
        before = self._before
        if before is not None and before.mark is not None and before.id == base.id:
            return before != base
        found = self._root.snapshots.find(base.id) or self._root.changelogs.find(base.id)
        return found is not None and not base.is_of(found)

    def __reduce__(self) -> tuple[object, ...]:
        return _step_history, (self._root, self._position, self._before, self._was_reset)


def _step_history(root: TableRoot, position: Position, before: Base | None, was_reset: bool) -> StepHistory:
    return StepHistory(root, position, before, was_reset=was_reset)
