"""Remote files: small ones are fetched together before they are opened one by one, large ones are read by ranges.

Where a request takes its time, a small file is read whole by one request, and many of them are asked for at once. On
local disks nothing is fetched ahead.
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
"""Files up to this size are fetched whole: reading their parts takes as long."""

_WINDOW_BYTES = 32 << 20
_WINDOW_FILES = 64


class GetAndOpen(Get, OpenRead, Protocol):
    """What this module asks of a store."""

    def ranges_of(self, path: str) -> GetRange | None:
        """How parts of a file are read, None where that is not faster than a stream."""
        ...


class FilePrefetcher:
    """Opens files of a store; those that are foreseen, and small, are in memory by then.

    The next files are fetched while whoever reads is busy with the rows of those before. Memory: at most 32 MB of files
    that were fetched and not opened yet. A file is held until it is opened once.
    """

    def __init__(self, store: GetAndOpen, env: Env) -> None:
        self._store = store
        self._env = env
        self._sizes: dict[str, int] = {}  # of files foreseen and not fetched, in the order in which they will be opened
        self._held: dict[str, bytes] = {}
        self._coming: tuple[set[str], Callable[[], dict[str, bytes]]] | None = None
        self._large: dict[str, int] = {}

    def foresee(self, files: Iterable[tuple[str, int]]) -> None:
        """Paths and sizes of files that will be opened, in order."""
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
        """Bytes that may be fetched now."""
        room = _WINDOW_BYTES - sum(map(len, self._held.values()))
        if room < _WINDOW_BYTES // 2:  # files that an index or a limit spared
            self._held.clear()
            room = _WINDOW_BYTES
        return room

    def _go_on(self) -> None:
        """Begin to fetch the next files, once few are left of those that were fetched."""
        if self._coming is not None or not self._sizes or len(self._held) > _WINDOW_FILES // 2:
            return
        room = _WINDOW_BYTES // 2
        if sum(map(len, self._held.values())) <= room:
            wanted = self._next(next(iter(self._sizes)), room)
            self._coming = (set(wanted), self._env.io.ahead(partial(self._fetch, wanted)))

    def _next(self, first: str, room: int) -> dict[str, int]:
        """A file and those that come after, with their sizes, no longer foreseen."""
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
        """Files, all at once. What fails is left to be opened, and to fail then."""
        found = self._env.at_once(next(iter(wanted)), [partial(self._get, path) for path in wanted])
        gotten = zip(wanted.items(), found, strict=True)
        return {path: data for (path, size), data in gotten if data is not None and len(data) == size}

    def _get(self, path: str) -> bytes | None:
        try:
            return self._store.get(path)
        except StorageError:
            return None
