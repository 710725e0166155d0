"""Stopping in the middle: work that is under way is given up cleanly, and no new work begins."""

from __future__ import annotations


class StopRequest(Exception):
    """Ends a verb from inside its progress function: nothing is committed, no new file is left."""


class StopFlag:
    """Whether somebody wants a runner to end. A handler of signals may call `request`."""

    __slots__ = ("is_requested",)

    def __init__(self) -> None:
        self.is_requested = False

    def request(self) -> None:
        """Let the runner end: at once where it waits, after the step where it works."""
        self.is_requested = True

    def progress(self, *_: object) -> None:
        """Be the progress function of a verb.

        Raises: StopRequest if somebody wants the work to end.
        """
        if self.is_requested:
            raise StopRequest
