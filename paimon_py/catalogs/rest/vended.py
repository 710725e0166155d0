"""The store of one table whose credentials the server hands out: they are fetched again before they end.

Streams that are open go on with new credentials: a reader opens its file again at the same place. A new file whose
credentials might end before it is complete is written to the machine's spill place first.

Source: Java `RESTTokenFileIO`, main of August 2026.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import msgspec

from paimon_py.catalogs.rest.authority import SAFE_MILLIS
from paimon_py.catalogs.rest.client import RestClient
from paimon_py.catalogs.rest.messages import TokenAnswer
from paimon_py.catalogs.rest.transport import RestRefusedError
from paimon_py.env import SpillFile
from paimon_py.errors import StorageError
from paimon_py.storage.open import open_store
from paimon_py.storage.store import FileStatus, Store

if TYPE_CHECKING:
    from paimon_py.catalogs.rest.registration import RestTable

ENDPOINT = "dlf.oss-endpoint"
_OSS_ENDPOINT = "fs.oss.endpoint"
_LONG_MILLIS = 900_000
"""Credentials that last so long are trusted to outlast the writing of one file."""

_COPY_BYTES = 8 << 20


class _Held(msgspec.Struct, frozen=True):
    """A store, when its credentials end, and when others are asked for."""

    store: Store
    expires_millis: int
    renewed_millis: int


class VendedStore:
    """Files of one table. Pickles carry no credentials: the receiving process asks the server.

    Credentials are renewed an hour before they end, as in Java, but not before half of their time is over: those that
    last shorter would be fetched with every call.
    """

    __slots__ = ("_held", "_table", "_url")

    def __init__(self, table: RestTable, url: str, held: _Held | None = None) -> None:
        self._table = table
        self._url = url
        self._held = held

    @classmethod
    def open(cls, table: RestTable, url: str) -> tuple[VendedStore, str]:
        """The store of a table that lies at a URL, and the URL as a path of the store.

        Raises: as `RestClient.get` and `open_store`
        """
        held, path = _fetched(table, url)
        return cls(table, url, held), path

    def current(self) -> Store:
        """The store with credentials that are good for now. Cost: a request where they must be renewed.

        Raises: StorageError, RestRefusedError where there are none.
        """
        held = self._held
        now = self._client.env.clock.millis()
        if held is not None and now < held.renewed_millis:
            return held.store
        try:
            self._held = held = _fetched(self._table, self._url)[0]
        except StorageError as error:
            if held is None or not error.transient or now >= held.expires_millis:
                raise
            later = now + (held.expires_millis - now) // 2 + 1
            self._held = held = msgspec.structs.replace(held, renewed_millis=later)
        return held.store

    @property
    def _client(self) -> RestClient:
        return self._table.client

    # -- verbs of a store -------------------------------------------------------------------------------------------

    def get(self, path: str) -> bytes:
        return self.current().get(path)

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
        if held is None or held.expires_millis - self._client.env.clock.millis() >= _LONG_MILLIS:
            return store.open_write(path, within=within)
        return cast(BinaryIO, _Writer(self, path, within, self._client.env.spill.create()))

    def make_directory(self, path: str) -> None:
        self.current().make_directory(path)

    def remove_directory(self, path: str) -> bool:
        return self.current().remove_directory(path)

    def rename_directory(self, source: str, target: str) -> None:
        self.current().rename_directory(source, target)

    def __reduce__(self) -> tuple[object, ...]:
        return VendedStore, (self._table, self._url)

    def __repr__(self) -> str:
        return f"VendedStore({str(self._table.name)!r})"


class _Reader(io.RawIOBase):
    """A file that is opened again where the credentials were renewed."""

    def __init__(self, home: VendedStore, path: str) -> None:
        self._home = home
        self._path = path
        self._store = home.current()
        self._file = self._store.open_read(path)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._file.seek(offset, whence)
        return self._file.tell()

    def tell(self) -> int:
        return self._file.tell()

    def read(self, size: int | None = -1) -> bytes:
        store = self._home.current()
        if store is not self._store:
            place = self._file.tell()
            self._file.close()
            self._store, self._file = store, store.open_read(self._path)
            self._file.seek(place)
        return self._file.read(-1 if size is None else size)

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


class _Writer:
    """A new file that is kept at hand until it is complete."""

    def __init__(self, home: VendedStore, path: str, within: str | None, spill: SpillFile) -> None:
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
        """Nothing: the file is sent when it is complete."""

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


def _fetched(table: RestTable, url: str) -> tuple[_Held, str]:
    clock = table.client.env.clock
    try:
        answer = table.client.get(table.main_path("token"), TokenAnswer)
    except RestRefusedError as refused:
        if refused.status == 404:
            raise table.missing(refused) from refused
        raise
    now, end = clock.millis(), answer.expiresAtMillis
    if end <= now:
        raise StorageError(
            f"the server gives credentials for {str(table.name)!r} that have ended {(now - end) // 1000} s ago by the"
            " clock of this machine: see that both clocks are right",
            operation="token",
        )
    given = table.client.options()
    options = {**given, **answer.token}
    if given.get(ENDPOINT):
        options[_OSS_ENDPOINT] = given[ENDPOINT]
    store, path = open_store(url, options)
    return _Held(store, end, end - min(SAFE_MILLIS, (end - now) // 2)), path
