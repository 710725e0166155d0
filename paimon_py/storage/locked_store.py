"""A store whose publications are serialised by the lock of a catalog, or by its server.

Source: Java `RenamingSnapshotCommit`; format.md §2.
"""

from __future__ import annotations

from typing import BinaryIO

from paimon_py.errors import StorageError, StorageUnknownError, UnsupportedError
from paimon_py.storage.store import (
    FileMissingError,
    FileStatus,
    ListFrom,
    OpensBeside,
    ReadRange,
    Store,
    page_lister,
    range_reader,
)


class GuardedStore:
    """Creates files that the store itself cannot create safely: checks first, then writes.

    This is safe only while all others that might create the same file are excluded: by a lock that is held, or because
    a server decides what is part of the table. If the store has a safe creation, it is used anyway, so that a lock that
    expired in the middle does no harm.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def __repr__(self) -> str:
        return f"GuardedStore({self._store!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GuardedStore) and other._store == self._store

    def __hash__(self) -> int:
        return hash((GuardedStore, self._store))

    def __reduce__(self) -> tuple[object, ...]:
        return GuardedStore, (self._store,)

    def get(self, path: str) -> bytes:
        return self._store.get(path)

    def range_reader(self) -> ReadRange | None:
        """See `range_reader`."""
        return range_reader(self._store)

    def page_lister(self) -> ListFrom | None:
        """See `page_lister`."""
        return page_lister(self._store)

    def put_new(self, path: str, data: bytes, *, within: str | None = None) -> bool:
        """See `PutNew.put_new`. Cost: without a safe creation, a stat and a put."""
        try:
            return self._store.put_new(path, data, within=within)
        except UnsupportedError:
            if self._store.stat(path) is not None:
                return False
        try:
            self._store.put(path, data, within=within)
        except FileMissingError:
            raise
        except StorageError as error:
            raise StorageUnknownError(
                f"{path} may or may not have been written: {error}", path=path, operation="put_new"
            ) from error
        return True

    def require_new(self, directory: str) -> None:
        """Do nothing: the lock or the server guards."""

    def beside(self, url: str) -> tuple[Store, str] | None:
        """See `OpensBeside.beside`. Not guarded there: data files need no exclusive creation."""
        return self._store.beside(url) if isinstance(self._store, OpensBeside) else None

    def put(self, path: str, data: bytes, *, within: str | None = None) -> None:
        self._store.put(path, data, within=within)

    def list(self, directory: str) -> list[FileStatus]:
        return self._store.list(directory)

    def stat(self, path: str) -> FileStatus | None:
        return self._store.stat(path)

    def delete(self, path: str) -> None:
        self._store.delete(path)

    def delete_tree(self, directory: str) -> None:
        self._store.delete_tree(directory)

    def open_read(self, path: str) -> BinaryIO:
        return self._store.open_read(path)

    def open_write(self, path: str, *, within: str | None = None) -> BinaryIO:
        return self._store.open_write(path, within=within)

    def make_directory(self, path: str) -> None:
        self._store.make_directory(path)

    def remove_directory(self, path: str) -> bool:
        return self._store.remove_directory(path)

    def rename_directory(self, source: str, target: str) -> None:
        self._store.rename_directory(source, target)
