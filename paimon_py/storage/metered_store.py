"""A store whose calls are measured: duration, bytes, and outcome."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import BinaryIO, TypeVar

from paimon_py.env import Env
from paimon_py.errors import StorageError
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

T = TypeVar("T")


class MeteredStore:
    """Forwards every call, and reports it to the meters of an environment. Pickles contain only the wrapped store.

    Streams are reported when they are opened; the bytes that they move later are not.
    """

    __slots__ = ("_env", "_store")

    def __init__(self, store: Store, env: Env) -> None:
        self._store = store
        self._env = env

    def __repr__(self) -> str:
        return f"MeteredStore({self._store!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MeteredStore) and other._store == self._store

    def __hash__(self) -> int:
        return hash((MeteredStore, self._store))

    def __reduce__(self) -> tuple[object, ...]:
        return _without_meters, (self._store,)

    def get(self, path: str) -> bytes:
        return _measure(self._env, "get", lambda: self._store.get(path), len)

    def range_reader(self) -> ReadRange | None:
        """See `range_reader`."""
        get = range_reader(self._store)
        return None if get is None else partial(_range_of, self, get)

    def page_lister(self) -> ListFrom | None:
        """See `page_lister`. Reported as `list`."""
        lists = page_lister(self._store)
        return None if lists is None else partial(_page_of, self._env, lists)

    def name_lister(self) -> ListNames:
        """See `name_lister`. Reported as `list`."""
        return partial(_names_of, self._env, name_lister(self._store))

    def put_new(self, path: str, data: bytes, *, within: str | None = None) -> bool:
        def put() -> bool:
            return self._store.put_new(path, data, within=within)

        return _measure(self._env, "put_new", put, lambda _: len(data))

    def require_new(self, directory: str) -> None:
        self._store.require_new(directory)

    def open_other(self, url: str) -> tuple[Store, str] | None:
        """See `SharesCredentials.open_other`; calls to the other store are measured as well."""
        found = self._store.open_other(url) if isinstance(self._store, SupportsSharedCredentials) else None
        return None if found is None else (MeteredStore(found[0], self._env), found[1])

    def put(self, path: str, data: bytes, *, within: str | None = None) -> None:
        _measure(self._env, "put", lambda: self._store.put(path, data, within=within), lambda _: len(data))

    def list(self, directory: str) -> list[FileStatus]:
        return _measure(self._env, "list", lambda: self._store.list(directory))

    def stat(self, path: str) -> FileStatus | None:
        return _measure(self._env, "stat", lambda: self._store.stat(path))

    def delete(self, path: str) -> None:
        _measure(self._env, "delete", lambda: self._store.delete(path))

    def delete_tree(self, directory: str) -> None:
        _measure(self._env, "delete_tree", lambda: self._store.delete_tree(directory))

    def open_read(self, path: str) -> BinaryIO:
        return _measure(self._env, "open_read", lambda: self._store.open_read(path))

    def open_write(self, path: str, *, within: str | None = None) -> BinaryIO:
        return _measure(self._env, "open_write", lambda: self._store.open_write(path, within=within))

    def make_directory(self, path: str) -> None:
        _measure(self._env, "make_directory", lambda: self._store.make_directory(path))

    def remove_directory(self, path: str) -> bool:
        return _measure(self._env, "remove_directory", lambda: self._store.remove_directory(path))

    def rename_directory(self, source: str, target: str) -> None:
        _measure(self._env, "rename_directory", lambda: self._store.rename_directory(source, target))


def _range_of(store: MeteredStore, get: ReadRange, path: str, start: int, stop: int) -> bytes:
    return _measure(store._env, "get_range", lambda: get(path, start, stop), len)


def _page_of(env: Env, lists: ListFrom, directory: str, start: str) -> list[FileStatus]:
    return _measure(env, "list", lambda: lists(directory, start))


def _names_of(env: Env, lists: ListNames, directory: str) -> list[str]:
    return _measure(env, "list", lambda: lists(directory))


def _measure(env: Env, operation: str, call: Callable[[], T], size: Callable[[T], int] = lambda _: 0) -> T:
    clock = env.clock
    began, outcome, moved = clock.elapsed(), "error", 0
    try:
        found = call()
        outcome, moved = "ok", size(found)
        return found
    except FileMissingError:
        outcome = "missing"
        raise
    except StorageError as error:
        outcome = "transient" if error.transient else "error"
        raise
    finally:
        env.observers.count_call(operation, clock.elapsed() - began, moved, outcome)


def _without_meters(store: Store) -> Store:
    return store


def metered_store(store: Store, env: Env) -> Store:
    """The store, wrapped with the meters of an environment if there are any."""
    return MeteredStore(store, env) if env.observers.has_meters and not isinstance(store, MeteredStore) else store
