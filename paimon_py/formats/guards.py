"""Files as native readers and writers see them, guarded against two of their habits.

pyarrow's writers finish their file when they are garbage-collected, even after an error: output therefore flows only
while a caller asks for it. Its ORC library turns errors of a Python file into errors of its own: the original one is
remembered. And where that library writes in a destructor, an error ends the process: there a sink keeps quiet, and the
caller looks at `error`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import BinaryIO


class GuardedSink:
    """What a native writer writes into: passes bytes on while flowing, swallows them otherwise.

    A `quiet` one does not raise what the sink raised but keeps it as `error`, and swallows all that follows.
    """

    closed = False

    def __init__(self, sink: BinaryIO, *, quiet: bool = False) -> None:
        self._sink = sink
        self._quiet = quiet
        self._flows = False
        self._held: list[bytes] | None = None
        self.position = 0
        self.held_bytes = 0
        self.error: BaseException | None = None

    def write(self, data: bytes) -> int:
        """Pass on, keep, or swallow `data`."""
        if self._held is not None:
            self._held.append(bytes(data))
            self.held_bytes += len(data)
        elif self._flows and not (self._quiet and self.error):
            self._pass_on(data)
        return len(data)

    def _pass_on(self, data: bytes) -> None:
        try:
            self._sink.write(data)
        except BaseException as error:
            self.error = error
            if not self._quiet:
                raise
        else:
            self.position += len(data)

    def flush(self) -> None:
        """Do nothing: native writers call this, and the owner of the sink decides."""

    def close(self) -> None:
        """Do nothing: native writers call this, and the owner of the sink decides."""

    @contextlib.contextmanager
    def flowing(self) -> Iterator[None]:
        """Let bytes through inside the block."""
        self._flows = True
        try:
            yield
        finally:
            self._flows = False

    def hold(self) -> None:
        """Keep what is written from now on."""
        self._held = []

    def release(self) -> bytes:
        """What was kept; later bytes pass again."""
        held, self._held, self.held_bytes = self._held or [], None, 0
        return b"".join(held)


class GuardedSource:
    """What a native reader reads from. `error` is what the source raised, if it did."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self.error: Exception | None = None

    @property
    def closed(self) -> bool:
        """Whether the source is closed."""
        return self._source.closed

    def read(self, size: int = -1) -> bytes:
        """Read as the source does."""
        with _remembering(self):
            return self._source.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Seek as the source does."""
        with _remembering(self):
            return self._source.seek(offset, whence)

    def tell(self) -> int:
        """The position of the source."""
        with _remembering(self):
            return self._source.tell()

    def close(self) -> None:
        """Do nothing: closing is left to the owner of the source."""


@contextlib.contextmanager
def _remembering(guard: GuardedSource) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        guard.error = error
        raise
