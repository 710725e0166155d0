"""Stops a runner: running work is cancelled cleanly, and no new work begins."""

from __future__ import annotations


class StopRequest(Exception):
    """Ends a verb from inside its progress function: nothing is committed, no new file is left."""


class StopFlag:
    """Whether a runner should stop. A signal handler may call `request`."""

    __slots__ = ("is_requested",)

    def __init__(self) -> None:
        self.is_requested = False

    def request(self) -> None:
        """Stop the runner: immediately if it is waiting, otherwise at the next progress report of the running step."""
        self.is_requested = True

    def progress(self, *_: object) -> None:
        """Check for a stop request; the progress function of the runner's verbs.

        Raises: StopRequest if a stop was requested.
        """
        if self.is_requested:
            raise StopRequest
