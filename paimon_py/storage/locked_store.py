"""A store without exclusive creation, made safe by the lock of a catalog or by its server.

Source: Java `RenamingSnapshotCommit`; format.md §2.
"""

from __future__ import annotations

from typing import BinaryIO

from paimon_py.errors import StorageError, StorageUnknownError, UnsupportedError
from paimon_py.storage.store import (
    FileMissingError,
    FileStatus,
    ListFrom,
    ListNames,
    ReadRange,
    Store,
    SupportsSharedCredentials,
    name_lister,
    page_lister,
    range_reader,
)


class LockedStore:
    """Creates files on a store without exclusive creation: checks that a file is absent, then writes it.

    This is safe only while nothing else can create the same file: because a lock is held, or because a server decides
    what is part of the table. If the store can create exclusively, it does so anyway, and a lock that expires in the
    middle does no harm.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def __repr__(self) -> str:
        return f"LockedStore({self._store!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LockedStore) and other._store == self._store

    def __hash__(self) -> int:
        return hash((LockedStore, self._store))

    def __reduce__(self) -> tuple[object, ...]:
        return LockedStore, (self._store,)

    def get(self, path: str) -> bytes:
        return self._store.get(path)

    def range_reader(self) -> ReadRange | None:
        """See `range_reader`."""
        return range_reader(self._store)

    def page_lister(self) -> ListFrom | None:
        """See `page_lister`."""
        return page_lister(self._store)

    def name_lister(self) -> ListNames:
        """See `name_lister`."""
        return name_lister(self._store)

    def put_new(self, path: str, data: bytes, *, within: str | None = None) -> bool:
        """See `PutNew.put_new`. Cost: a stat and a put if the store cannot create exclusively."""
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
        """Do nothing: the lock or the server excludes other writers."""

    def open_other(self, url: str) -> tuple[Store, str] | None:
        """See `SharesCredentials.open_other`. Not guarded there: data files need no exclusive creation."""
        return self._store.open_other(url) if isinstance(self._store, SupportsSharedCredentials) else None

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
