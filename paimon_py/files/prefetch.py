"""Remote files: small ones are fetched together before they are opened, large ones are read by ranges.

If requests have high latency, a small file is read whole with one request, and many requests run in parallel. On local
disks nothing is prefetched.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import BinaryIO, Protocol, cast

from paimon_py.env import Env, is_distant
from paimon_py.errors import StorageError
from paimon_py.files.ranged import GetRange, RangedFile
from paimon_py.storage.store import Get, OpenRead

SMALL_BYTES = 2 << 20
"""Files up to this size are fetched whole: reading parts of them takes as long."""

_WINDOW_BYTES = 32 << 20
_WINDOW_FILES = 64


class GetAndOpen(Get, OpenRead, Protocol):
    """The store operations that this module uses."""

    def ranges_of(self, path: str) -> GetRange | None:
        """A function that reads ranges of a file; None if that is not faster than a stream."""
        ...


class FilePrefetcher:
    """Opens files of a store; announced small files are usually in memory by then.

    The next files are fetched while the reader processes earlier ones. Memory: at most 32 MB of fetched files that are
    not opened yet. A file is held until it is opened once.
    """

    def __init__(self, store: GetAndOpen, env: Env) -> None:
        self._store = store
        self._env = env
        self._sizes: dict[str, int] = {}  # announced files that are not fetched, in the order of opening
        self._held: dict[str, bytes] = {}
        self._coming: tuple[set[str], Callable[[], dict[str, bytes]]] | None = None
        self._large: dict[str, int] = {}

    def announce(self, files: Iterable[tuple[str, int]]) -> None:
        """Announce the paths and sizes of files that will be opened, in order."""
        for path, size in files:
            if is_distant(path):
                (self._sizes if size <= SMALL_BYTES else self._large)[path] = size

    def open_read(self, path: str) -> BinaryIO:
        """See `OpenRead.open_read`."""
        if self._coming is not None and path in self._coming[0]:
            (_, ended), self._coming = self._coming, None
            self._held.update(ended())
        elif path in self._sizes:
            self._held.update(self._fetch(self._next(path, self._room())))
        data = self._held.pop(path, None)
        if data is not None:
            self._go_on()
            return io.BytesIO(data)
        size = self._large.get(path)
        get = None if size is None else self._store.ranges_of(path)
        if size is None or get is None:
            return self._store.open_read(path)
        return cast(BinaryIO, RangedFile(path, size, get, self._env))

    def _room(self) -> int:
        """The number of bytes that may be fetched now."""
        room = _WINDOW_BYTES - sum(map(len, self._held.values()))
        if room < _WINDOW_BYTES // 2:  # files skipped because of an index or a limit
            self._held.clear()
            room = _WINDOW_BYTES
        return room

    def _go_on(self) -> None:
        """Start fetching the next files when few of the fetched ones are left."""
        if self._coming is not None or not self._sizes or len(self._held) > _WINDOW_FILES // 2:
            return
        room = _WINDOW_BYTES // 2
        if sum(map(len, self._held.values())) <= room:
            wanted = self._next(next(iter(self._sizes)), room)
            self._coming = (set(wanted), self._env.io.ahead(partial(self._fetch, wanted)))

    def _next(self, first: str, room: int) -> dict[str, int]:
        """Remove a file and those after it from the announced files; returns them with their sizes."""
        names = list(self._sizes)
        at = names.index(first)
        wanted: dict[str, int] = {}
        for path in [*names[at:], *names[:at]][:_WINDOW_FILES]:
            room -= self._sizes[path]
            if room < 0 and wanted:
                break
            wanted[path] = self._sizes.pop(path)
        return wanted

    def _fetch(self, wanted: Mapping[str, int]) -> dict[str, bytes]:
        """Fetch files in parallel. A failed fetch is dropped; opening the file then reports the error."""
        found = self._env.at_once(next(iter(wanted)), [partial(self._get, path) for path in wanted])
        gotten = zip(wanted.items(), found, strict=True)
        return {path: data for (path, size), data in gotten if data is not None and len(data) == size}

    def _get(self, path: str) -> bytes | None:
        try:
            return self._store.get(path)
        except StorageError:
            return None
