"""Spill files in a store, so that `FaultStore` can let the local disk of a write buffer fail."""

from __future__ import annotations

import errno
import io
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

from paimon_py.errors import StorageError
from paimon_py.storage.store import Store


class StoreSpill:
    """A spill location whose files are objects below `directory`; errors of the store become errors of a full disk.

    Attributes:
        store: the store of the files.
        directory: their directory, without a trailing slash.
    """

    def __init__(self, store: Store, directory: str = "/spill") -> None:
        self.store = store
        self.directory = directory
        self._numbers = itertools.count(1)

    def create(self) -> StoreSpillFile:
        """A new file, not written yet."""
        return StoreSpillFile(self.store, f"{self.directory}/run-{next(self._numbers)}")

    def paths(self) -> list[str]:
        """The existing files."""
        return sorted(status.path for status in self.store.list(self.directory))


class StoreSpillFile:
    """One spill file."""

    def __init__(self, store: Store, path: str) -> None:
        self._store = store
        self.path = path

    def open_write(self) -> BinaryIO:
        with _full(self.path):
            return cast(BinaryIO, _Written(self._store.open_write(self.path), self.path))

    def open_read(self) -> BinaryIO:
        with _full(self.path):
            return self._store.open_read(self.path)

    def map(self, offset: int, size: int) -> memoryview:
        with self.open_read() as source:
            source.seek(offset)
            return memoryview(source.read(size))

    def delete(self) -> None:
        with _full(self.path):
            self._store.delete(self.path)


class _Written(io.RawIOBase):
    """A file being written, which fails with OSErrors."""

    def __init__(self, file: BinaryIO, path: str) -> None:
        super().__init__()
        self._file = file
        self._path = path

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        with _full(self._path):
            return self._file.write(data)

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        if self.closed:
            return
        super().close()
        with _full(self._path):
            self._file.close()


@contextmanager
def _full(path: str) -> Iterator[None]:
    """Raise errors of the store as those of a full disk."""
    try:
        yield
    except StorageError as error:
        raise OSError(errno.ENOSPC, str(error), path) from error
