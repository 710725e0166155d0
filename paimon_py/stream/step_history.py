"""Whether a later step of a stream follows the step that another table has committed last.

If not, that table has rows of a snapshot that was rolled back, and no later step corrects them.
"""

from __future__ import annotations

from paimon_py.errors import UsageError
from paimon_py.metadata.consumers import Reset
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.snapshot import Base
from paimon_py.stream.position import Position, parse_position


class StepHistory:
    """The history up to a step. Values can be pickled; secrets are omitted."""

    def __init__(self, root: TableRoot, position: Position, before: Base | None, reset: Reset | None = None) -> None:
        """
        Args:
            position: the position after the step.
            before: the snapshot before the step; None for the step of a whole snapshot.
            reset: the reset of the consumer, if it has acknowledged no step since: whoever reset it has decided what to
                do about earlier steps.
        """
        self._root = root
        self._position = position
        self._before = before
        self._reset = reset

    def lacks(self, source: str) -> bool:
        """See `SourceHistory.lacks`. A step whose snapshot has expired counts as one of the history.

        Cost: none if the step is the last one before this one; otherwise a get, or two if its snapshot has expired.
        """
        try:
            asked = parse_position(source)
        except UsageError:  # not of a stream of a table
            return False
        if asked.base.mark is None or (self._reset is not None and asked.base not in self._reset.returned):
            return False
        contains = self._contains(asked.base)
        is_other = None not in (asked.table, self._position.table) and asked.table != self._position.table
        return contains is False or (is_other and contains is None)

    def _contains(self, base: Base) -> bool | None:
        """Whether a snapshot is this one or an earlier one; None if it has expired."""
        here, before = self._position.base, self._before
        if base.id >= here.id:
            return base == here
        if before is not None and before.mark is not None and before.id == base.id:
            return before == base
        found = self._root.snapshots.find(base.id) or self._root.changelogs.find(base.id)
        return None if found is None else base.is_of(found)
