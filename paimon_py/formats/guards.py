"""Wrappers of files for native readers and writers, which guard against three of their habits.

pyarrow's writers finish their file when they are garbage-collected, even after an error: a guarded sink therefore
passes bytes on only during a call. pyarrow's ORC library replaces the errors of a Python file by its own: a guard
remembers the original error. And an error that is raised while that library writes in a destructor ends the process: a
quiet sink raises nothing, and the caller checks `error`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import BinaryIO


class GuardedSink:
    """The sink of a native writer: passes bytes on while flowing, drops them otherwise.

    With `quiet`, errors of the sink are not raised but stored as `error`, and later bytes are dropped.
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
        """Pass on, hold back, or drop `data`."""
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
        """Pass bytes on inside the block."""
        self._flows = True
        try:
            yield
        finally:
            self._flows = False

    def hold(self) -> None:
        """Hold back the bytes written from now on."""
        self._held = []

    def release(self) -> bytes:
        """Return the bytes held back; later bytes pass again."""
        held, self._held, self.held_bytes = self._held or [], None, 0
        return b"".join(held)


class GuardedSource:
    """The source of a native reader. `error`: the error that the source raised, if any."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self.error: Exception | None = None

    @property
    def closed(self) -> bool:
        """Whether the source is closed."""
        return self._source.closed

    def read(self, size: int = -1) -> bytes:
        """Read from the source."""
        with _remembering(self):
            return self._source.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Seek in the source."""
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
