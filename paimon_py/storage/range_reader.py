"""Files of known size that are read by ranges: keeps the position and implements the raw file interface of `io`."""

from __future__ import annotations

import io
from abc import abstractmethod
from typing import Any


class RangeReader(io.RawIOBase):
    """An open file that reads any range of its bytes. Subclasses implement the reading.

    Attributes:
        size_bytes: the length of the file.
    """

    def __init__(self, size_bytes: int) -> None:
        super().__init__()
        self.size_bytes = size_bytes
        self._position = 0

    @abstractmethod
    def _read_at(self, start: int, length: int) -> bytes:
        """The bytes of a range inside the file, at least one."""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        place = self._place(offset, whence)
        if place < 0:
            raise ValueError(f"cannot seek to {place}")
        self._position = place
        return place

    def _place(self, offset: int, whence: int) -> int:
        return (0, self._position, self.size_bytes)[whence] + offset

    def readall(self) -> bytes:
        """The rest, in as few requests as possible: the default uses many small ones."""
        return b"".join(iter(lambda: self.read(max(self.size_bytes - self._position, 0)) or b"", b""))

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        wanted = max(min(len(view), self.size_bytes - self._position), 0)
        if wanted == 0:
            return 0
        data = self._read_at(self._position, wanted)
        view[: len(data)] = data
        self._position += len(data)
        return len(data)
