"""Files at a distance: small ones fetched together before they are opened one by one, large ones read by ranges.

Where a request takes its time, a small file is read whole by one request, and many of them are asked for at once. On
local disks nothing is fetched ahead.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
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


class FilesAhead:
    """Opens files of a store; those that are foreseen, and small, are in memory by then.

    Memory: at most 32 MB of files that were fetched and not opened yet. A file is held until it is opened once.
    """

    def __init__(self, store: GetAndOpen, env: Env) -> None:
        self._store = store
        self._env = env
        self._sizes: dict[str, int] = {}  # of files foreseen and not fetched, in the order in which they will be opened
        self._held: dict[str, bytes] = {}
        self._large: dict[str, int] = {}

    def foresee(self, files: Iterable[tuple[str, int]]) -> None:
        """Paths and sizes of files that will be opened, in order."""
        for path, size in files:
            if is_distant(path):
                (self._sizes if size <= SMALL_BYTES else self._large)[path] = size

    def open_read(self, path: str) -> BinaryIO:
        """See `OpenRead.open_read`."""
        if path in self._sizes:
            self._fetch(path)
        data = self._held.pop(path, None)
        if data is not None:
            return io.BytesIO(data)
        size = self._large.get(path)
        get = None if size is None else self._store.ranges_of(path)
        if size is None or get is None:
            return self._store.open_read(path)
        return cast(BinaryIO, RangedFile(path, size, get, self._env))

    def _fetch(self, first: str) -> None:
        """Fetch a file and those that come after, at once. What fails is left to be opened, and to fail then."""
        room = _WINDOW_BYTES - sum(map(len, self._held.values()))
        if room < _WINDOW_BYTES // 2:  # files that an index or a limit spared
            self._held.clear()
            room = _WINDOW_BYTES
        names = list(self._sizes)
        at = names.index(first)
        wanted: list[str] = []
        for path in [*names[at:], *names[:at]][:_WINDOW_FILES]:
            room -= self._sizes[path]
            if room < 0 and wanted:
                break
            wanted.append(path)
        found = self._env.at_once(wanted[0], [partial(self._got, path) for path in wanted])
        for path, data in zip(wanted, found, strict=True):
            size = self._sizes.pop(path)
            if data is not None and len(data) == size:
                self._held[path] = data

    def _got(self, path: str) -> bytes | None:
        try:
            return self._store.get(path)
        except StorageError:
            return None
