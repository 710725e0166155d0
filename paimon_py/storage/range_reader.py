"""The raw file interface of `io`: of files of known size that are read by ranges, and of files around other files."""

from __future__ import annotations

import io
from abc import abstractmethod
from typing import Any


class RangeReader(io.RawIOBase):
    """An open file that reads any range of its bytes. Subclasses implement the reading.

    Positions before the start of the file are clamped to the start.

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
        self._position = max((0, self._position, self.size_bytes)[whence] + offset, 0)
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0:
            return self.readall()
        wanted = min(size, self.size_bytes - self._position)
        if wanted <= 0:
            return b""
        data = self._read_at(self._position, wanted)
        self._position += len(data)
        return data

    def readall(self) -> bytes:
        """The rest, in as few requests as possible: the default uses many small ones."""
        return b"".join(iter(lambda: self.read(max(self.size_bytes - self._position, 0)), b""))

    def readinto(self, buffer: Any) -> int:
        return _read_into(self, buffer)


class WrappedFile(io.RawIOBase):
    """An open file that passes its calls on to another one. Subclasses change what they need."""

    def __init__(self, file: Any) -> None:
        super().__init__()
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self.readable()

    def tell(self) -> int:
        return int(self._file.tell())

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._file.seek(offset, whence)
        return self.tell()

    def read(self, size: int | None = -1) -> bytes:
        return bytes(self._file.read(-1 if size is None else size))

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, buffer: Any) -> int:
        return _read_into(self, buffer)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def _read_into(file: RangeReader | WrappedFile, buffer: Any) -> int:
    view = memoryview(buffer).cast("B")
    data = file.read(len(view))
    view[: len(data)] = data
    return len(data)
