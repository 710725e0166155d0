"""A store that refreshes its credentials before they expire.

Open streams continue with new credentials: a reader reopens its file at the same position. A new file whose
credentials might expire before it is complete is written to the spill directory of the machine first.

Source: Java `RESTTokenFileIO`, main of August 2026.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, BinaryIO, Protocol, cast

import msgspec

from paimon_py.env import Env, SpillFile
from paimon_py.errors import StorageError, UsageError
from paimon_py.spec.credentials import Credentials
from paimon_py.spec.redact import harmless_options
from paimon_py.storage.open import open_store
from paimon_py.storage.range_reader import WrappedFile
from paimon_py.storage.store import (
    FileStatus,
    ListFrom,
    ReadRange,
    Store,
    SupportsSharedCredentials,
    page_lister,
    range_reader,
)

SAFE_MILLIS = 3_600_000
"""Credentials are refreshed this long before they expire, or halfway to their expiry if that is later."""

_LONG_MILLIS = 900_000
"""The remaining validity of credentials from which a file is written directly."""

_FOREVER_MILLIS = 1 << 62
_COPY_BYTES = 8 << 20
_REMOTE = re.compile(r"(?!file:|memory:)[A-Za-z][A-Za-z0-9+.\-]+:/", re.IGNORECASE)


class StoreLease(msgspec.Struct, frozen=True):
    """A store, and when its credentials expire and are due for a refresh."""

    store: Store
    expires_millis: int
    refresh_millis: int

    @classmethod
    def since(cls, store: Store, now_millis: int, expires_millis: int) -> StoreLease:
        """A store whose credentials were just fetched."""
        return cls(store, expires_millis, expires_millis - min(SAFE_MILLIS, (expires_millis - now_millis) // 2))


class StoreSource(Protocol):
    """Opens one place with the current credentials. Can be pickled, without secrets."""

    @property
    def env(self) -> Env:
        """The environment: its clock decides whether credentials are valid, its spill directory holds new files."""
        ...

    def fetch(self) -> tuple[StoreLease, str]:
        """The store with new credentials, and the place as a path of that store.

        Raises: StorageError if there are none.
        """
        ...

    def at(self, url: str) -> StoreSource:
        """The same credentials for another place, such as a directory with data files of the same table."""
        ...


class RefreshingStore:
    """Files of one place. Pickles carry no credentials: the receiving process asks the source.

    Credentials are refreshed an hour before they expire, as in Java, but not before half of their lifetime has passed:
    otherwise, short-lived ones would be fetched with every call.
    """

    __slots__ = ("_held", "_source")

    def __init__(self, source: StoreSource, held: StoreLease | None = None) -> None:
        self._source = source
        self._held = held

    @classmethod
    def open(cls, source: StoreSource) -> tuple[RefreshingStore, str]:
        """The store of a source, and its place as a path of that store.

        Raises: as `StoreSource.fetch`
        """
        held, path = source.fetch()
        return cls(source, held), path

    def current(self) -> Store:
        """The store with valid credentials. Cost: a request if they must be refreshed.

        Raises: as `StoreSource.fetch`
        """
        held = self._held
        now = self._source.env.clock.millis()
        if held is not None and now < held.refresh_millis:
            return held.store
        try:
            self._held = held = self._source.fetch()[0]
        except StorageError as error:
            if held is None or not error.transient or now >= held.expires_millis:
                raise
            later = now + (held.expires_millis - now) // 2 + 1
            self._held = held = msgspec.structs.replace(held, refresh_millis=later)
        return held.store

    def open_other(self, url: str) -> tuple[Store, str] | None:
        """See `SharesCredentials.open_other`. Cost: as fetching credentials."""
        return RefreshingStore.open(self._source.at(url))

    # -- verbs of a store -------------------------------------------------------------------------------------------

    def get(self, path: str) -> bytes:
        return self.current().get(path)

    def range_reader(self) -> ReadRange | None:
        """See `range_reader`."""
        return None if range_reader(self.current()) is None else partial(_range_of, self)

    def page_lister(self) -> ListFrom | None:
        """See `page_lister`."""
        return None if page_lister(self.current()) is None else partial(_page_of, self)

    def put_new(self, path: str, data: bytes, *, within: str | None = None) -> bool:
        return self.current().put_new(path, data, within=within)

    def require_new(self, directory: str) -> None:
        self.current().require_new(directory)

    def put(self, path: str, data: bytes, *, within: str | None = None) -> None:
        self.current().put(path, data, within=within)

    def list(self, directory: str) -> list[FileStatus]:
        return self.current().list(directory)

    def stat(self, path: str) -> FileStatus | None:
        return self.current().stat(path)

    def delete(self, path: str) -> None:
        self.current().delete(path)

    def delete_tree(self, directory: str) -> None:
        self.current().delete_tree(directory)

    def open_read(self, path: str) -> BinaryIO:
        return cast(BinaryIO, _Reader(self, path))

    def open_write(self, path: str, *, within: str | None = None) -> BinaryIO:
        store, held = self.current(), self._held
        if held is None or held.expires_millis - self._source.env.clock.millis() >= _LONG_MILLIS:
            return store.open_write(path, within=within)
        return cast(BinaryIO, _Writer(self, path, within, self._source.env.spill.create()))

    def make_directory(self, path: str) -> None:
        self.current().make_directory(path)

    def remove_directory(self, path: str) -> bool:
        return self.current().remove_directory(path)

    def rename_directory(self, source: str, target: str) -> None:
        self.current().rename_directory(source, target)

    def __reduce__(self) -> tuple[object, ...]:
        return RefreshingStore, (self._source,)

    def __repr__(self) -> str:
        return f"RefreshingStore({self._source!r})"


def _range_of(store: RefreshingStore, path: str, start: int, stop: int) -> bytes:
    get = range_reader(store.current())
    return store.get(path)[start:stop] if get is None else get(path, start, stop)


def _page_of(store: RefreshingStore, directory: str, start: str) -> list[FileStatus]:
    lists = page_lister(store.current())
    return [] if lists is None else lists(directory, start)


class _Reader(WrappedFile):
    """A file that is reopened when the credentials are refreshed."""

    def __init__(self, home: RefreshingStore, path: str) -> None:
        self._home = home
        self._path = path
        self._store = home.current()
        super().__init__(self._store.open_read(path))

    def read(self, size: int | None = -1) -> bytes:
        store = self._home.current()
        if store is not self._store:
            place = self.tell()
            self._file.close()
            self._store, self._file = store, store.open_read(self._path)
            self._file.seek(place)
        return super().read(size)


class _Writer:
    """A new file that is stored locally until it is complete."""

    def __init__(self, home: RefreshingStore, path: str, within: str | None, spill: SpillFile) -> None:
        self._home = home
        self._path = path
        self._within = within
        self._spill = spill
        self._sink = spill.open_write()
        self.closed = False

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def write(self, data: Any) -> int:
        return self._sink.write(data)

    def tell(self) -> int:
        return self._sink.tell()

    def flush(self) -> None:
        """Do nothing: the file is sent when it is complete."""

    def close(self) -> None:
        """Send the file.

        Raises: as `OpenWrite.open_write`
        """
        if self.closed:
            return
        self.closed = True
        self._sink.close()
        try:
            with self._spill.open_read() as source, self._home.current().open_write(
                self._path, within=self._within
            ) as sink:
                while data := source.read(_COPY_BYTES):
                    sink.write(data)
        finally:
            self._spill.delete()

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is None:
            self.close()
        elif not self.closed:
            self.closed = True
            self._sink.close()
            self._spill.delete()


class ProvidedStore:
    """A place whose credentials come from the caller's own function (`Env(credentials=…)`)."""

    __slots__ = ("_options", "_url", "env")

    def __init__(self, url: str, options: Mapping[str, str], env: Env) -> None:
        self._url = url
        self._options = dict(options)
        self.env = env

    def __repr__(self) -> str:
        return "ProvidedStore()"

    def __reduce__(self) -> tuple[object, ...]:
        return _provided_store, (self._url, harmless_options(self._options), self.env.credentials)

    def fetch(self) -> tuple[StoreLease, str]:
        """See `StoreSource.fetch`.

        Raises: UsageError if the function returns something else.
        """
        now = self.env.clock.millis()
        given = None if self.env.credentials is None else self.env.credentials()
        if not isinstance(given, Credentials):
            raise UsageError(f"Env(credentials=…) must return Credentials when called, not a {type(given).__name__}")
        ends = _FOREVER_MILLIS if given.expires_millis is None else given.expires_millis
        if ends <= now:
            raise StorageError(
                f"the given credentials expired {(now - ends) // 1000} s ago by the clock of this machine",
                operation="credentials",
            )
        store, path = open_store(self._url, {**self._options, **given.options})
        return StoreLease.since(store, now, ends), path

    def at(self, url: str) -> ProvidedStore:
        """See `StoreSource.at`."""
        return ProvidedStore(url, self._options, self.env)


def open_refreshing(url: str, options: Mapping[str, str], env: Env) -> tuple[Store, str]:
    """Open a store as `open_store` does, with the credentials of the environment for places that are not local.

    Raises: as `open_store` and `StoreSource.fetch`
    """
    if env.credentials is None or _REMOTE.match(url) is None:
        return open_store(url, options)
    return RefreshingStore.open(ProvidedStore(url, options, env))


def open_related(home: Store, url: str, options: Mapping[str, str], env: Env) -> tuple[Store, str]:
    """Open another place that contains files of the table in `home`: with the credentials of `home` if they are valid
    there, as in Java's file IO of a table, otherwise as `open_refreshing`.

    Raises: as `open_refreshing`
    """
    found = None
    if isinstance(home, SupportsSharedCredentials) and _REMOTE.match(url) is not None:
        found = home.open_other(url)
    return open_refreshing(url, options, env) if found is None else found


def _provided_store(url: str, options: Mapping[str, str], credentials: Any) -> ProvidedStore:
    return ProvidedStore(url, options, Env(credentials=credentials))
