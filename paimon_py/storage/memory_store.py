"""Files in memory: the reference implementation of a store, for tests and temporary tables."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO
from weakref import WeakValueDictionary

import msgspec

from paimon_py.env import Clock, SystemClock, SystemIds
from paimon_py.errors import AlreadyExistsError, StorageError, UsageError
from paimon_py.storage.store import FileMissingError, FileStatus, FileTakenError

_PAGE = 1000
_stores: WeakValueDictionary[str, MemoryStore] = WeakValueDictionary()


class _File(msgspec.Struct, frozen=True):
    data: bytes
    modified_millis: int


class MemoryStore:
    """A tree of files in memory, safe to share between threads.

    Pickles contain the name of the store, not its files: they can be loaded in the same process only.

    Args:
        clock: the source of modification times.
        name: the store's name in pickles; by default a new one.
    """

    def __init__(self, *, clock: Clock | None = None, name: str | None = None) -> None:
        self.name = name or SystemIds().uuid()
        self._clock = clock or SystemClock()
        self._directories: dict[str, dict[str, _File | None]] = {"": {}}
        _stores[self.name] = self

    def __repr__(self) -> str:
        return f"MemoryStore(name={self.name!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return existing_store, (self.name,)

    def copy(self) -> MemoryStore:
        """An independent store with the same files."""
        other = MemoryStore(clock=self._clock)
        other._directories = {path: dict(children) for path, children in self._directories.items()}
        return other

    def get(self, path: str) -> bytes:
        return self._file(path, "get").data

    def put_new(self, path: str, data: bytes, *, within: str | None = None) -> bool:
        directory, name = _split(path)
        file = self._new(data)
        return self._children(directory, within).setdefault(name, file) is file

    def require_new(self, directory: str) -> None:
        """Do nothing: a dictionary creates exclusively."""

    def put(self, path: str, data: bytes, *, within: str | None = None) -> None:
        directory, name = _split(path)
        self._children(directory, within)[name] = self._new(data)

    def list_from(self, directory: str, start: str) -> list[FileStatus]:
        """See `ListFrom`."""
        below = directory.rstrip("/") + "/"
        homes = [(f"{home}/", children) for home, children in list(self._directories.items())]
        found = [
            _status(path, file)
            for home, children in homes if home.startswith(below)
            for name, file in list(children.items()) if file is not None and (path := home + name) >= start
        ]  # fmt: skip
        return sorted(found, key=lambda status: status.path)[:_PAGE]

    def list(self, directory: str) -> list[FileStatus]:
        directory = directory.rstrip("/")
        children = self._directories.get(directory, {})
        return [_status(f"{directory}/{name}", children[name]) for name in sorted(children)]

    def stat(self, path: str) -> FileStatus | None:
        directory, name = _split(path.rstrip("/"))
        children = self._directories.get(directory, {})
        return _status(path, children[name]) if name in children else None

    def delete(self, path: str) -> None:
        directory, name = _split(path)
        children = self._directories.get(directory, {})
        if name in children and children[name] is None:
            raise StorageError(f"{path} is a directory", path=path, operation="delete")
        children.pop(name, None)

    def delete_tree(self, directory: str) -> None:
        directory = directory.rstrip("/")
        for below in list(self._below(directory)):
            self._directories.pop(below, None)
        parent, name = _split(directory)
        self._directories.get(parent, {}).pop(name, None)

    def open_read(self, path: str) -> BinaryIO:
        return io.BytesIO(self._file(path, "open_read").data)

    def open_write(self, path: str, *, within: str | None = None) -> BinaryIO:
        directory, name = _split(path)
        children, file = self._children(directory, within), self._new(b"")
        if children.setdefault(name, file) is not file:
            raise FileTakenError(f"{path} already exists", path=path, operation="open_write")
        return _NewFile(self, children, name, file)

    def make_directory(self, path: str) -> None:
        self._children(path.rstrip("/"))

    def remove_directory(self, path: str) -> bool:
        path = path.rstrip("/")
        if self._directories.get(path) != {}:
            return False
        del self._directories[path]
        parent, name = _split(path)
        self._directories.get(parent, {}).pop(name, None)
        return True

    def rename_directory(self, source: str, target: str) -> None:
        source, target = source.rstrip("/"), target.rstrip("/")
        if source not in self._directories:
            raise FileMissingError(f"{source} does not exist", path=source, operation="rename_directory")
        if self.stat(target) is not None:
            raise AlreadyExistsError(f"{target} already exists", path=target)
        self._children(target)
        for below in list(self._below(source)):
            self._directories[target + below[len(source) :]] = self._directories.pop(below)
        parent, name = _split(source)
        self._directories[parent].pop(name)

    def _new(self, data: bytes) -> _File:
        return _File(bytes(data), self._clock.millis())

    def _file(self, path: str, operation: str) -> _File:
        directory, name = _split(path)
        file = self._directories.get(directory, {}).get(name)
        if file is None:
            raise FileMissingError(f"{path} does not exist", path=path, operation=operation)
        return file

    def _children(self, directory: str, within: str | None = None) -> dict[str, _File | None]:
        """The children of a directory, created with its parents if missing, except `within`, which must exist."""
        children = self._directories.get(directory)
        if children is None:
            if directory == within:
                message = f"{within} does not exist (any more)"
                raise FileMissingError(message, path=within, operation="make_directory")
            parent, name = _split(directory)
            if self._children(parent, within).setdefault(name, None) is not None:
                raise StorageError(f"{directory} is a file", path=directory, operation="make_directory")
            children = self._directories.setdefault(directory, {})
        return children

    def _below(self, directory: str) -> Iterator[str]:
        prefix = directory + "/"
        return (path for path in list(self._directories) if path == directory or path.startswith(prefix))


class _NewFile(io.BytesIO):
    """A file being written: its bytes become visible when it is closed.

    As on a disk, it moves with its directory when that is renamed, and is lost when it is deleted.
    """

    def __init__(self, store: MemoryStore, siblings: dict[str, _File | None], name: str, begun: _File) -> None:
        super().__init__()
        self._store = store
        self._siblings = siblings
        self._name = name
        self._begun = begun

    def close(self) -> None:
        if not self.closed and self._siblings.get(self._name) is self._begun:
            self._siblings[self._name] = self._store._new(self.getvalue())
        super().close()


def existing_store(name: str) -> MemoryStore:
    """The store with this name in this process.

    Raises:
        UsageError: it does not exist; memory cannot be sent to another process.
    """
    store = _stores.get(name)
    if store is None:
        raise UsageError(f"memory store {name!r} exists only in the process that made it; use files or an object store")
    return store


def _split(path: str) -> tuple[str, str]:
    directory, _, name = path.rpartition("/")
    return directory.rstrip("/"), name


def _status(path: str, file: _File | None) -> FileStatus:
    return FileStatus(
        path=path,
        name=path.rpartition("/")[2],
        size_bytes=len(file.data) if file else 0,
        is_directory=file is None,
        modified_millis=file.modified_millis if file else None,
    )
