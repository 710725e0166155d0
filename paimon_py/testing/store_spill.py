"""Room to spill in a store: so that `FaultStore` can make the local disk of a write buffer fail."""

from __future__ import annotations

import itertools
from typing import BinaryIO

from paimon_py.storage.store import Store


class StoreSpill:
    """A spill place whose files are objects below `directory`.

    Attributes:
        store: where they are.
        directory: their directory, without a slash at the end.
    """

    def __init__(self, store: Store, directory: str = "/spill") -> None:
        self.store = store
        self.directory = directory
        self._numbers = itertools.count(1)

    def create(self) -> StoreSpillFile:
        """A new file, not begun yet."""
        return StoreSpillFile(self.store, f"{self.directory}/run-{next(self._numbers)}")

    def paths(self) -> list[str]:
        """The files that are there."""
        return sorted(status.path for status in self.store.list(self.directory))


class StoreSpillFile:
    """One of them."""

    def __init__(self, store: Store, path: str) -> None:
        self._store = store
        self.path = path

    def open_write(self) -> BinaryIO:
        return self._store.open_write(self.path)

    def open_read(self) -> BinaryIO:
        return self._store.open_read(self.path)

    def map(self, offset: int, size: int) -> memoryview:
        with self._store.open_read(self.path) as source:
            source.seek(offset)
            return memoryview(source.read(size))

    def delete(self) -> None:
        self._store.delete(self.path)
