"""A large remote file that is read by ranges: few large requests, several in parallel.

The caller announces reads with `fetch`, and later ones with `announce`. The end of the file, which contains the footer,
is fetched by the first request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from paimon_py.env import Env
from paimon_py.storage.range_reader import RangeReader

TAIL_BYTES = 64 << 10
"""The size of the end of the file that is fetched first."""

_LEAST_BYTES = 1 << 20
"""The minimum size of a request that was not announced."""

_GAP_BYTES = 256 << 10
_MOST_BYTES = 8 << 20

GetRange = Callable[[int, int], bytes]
"""Reads the bytes of the file between two positions."""

Pieces = list[tuple[int, bytes]]
"""Parts of the file, each with its position."""


class RangedFile(RangeReader):
    """Reads a file of known size. Memory: the ranges fetched last, and the announced ones."""

    def __init__(self, path: str, size_bytes: int, get: GetRange, env: Env) -> None:
        super().__init__(size_bytes)
        self.path = path
        self._get = get
        self._env = env
        self._held: Pieces = []
        self._tail: tuple[int, bytes] | None = None
        self._coming: tuple[list[tuple[int, int]], Callable[[], Pieces]] | None = None

    def announce(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Start fetching the ranges of the next `fetch`. If they are not used then, they are dropped."""
        wanted = self._join(ranges)
        self._coming = (wanted, self._env.io.ahead(partial(self._get_ranges, wanted)))

    def fetch(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Load parts of the file, given by position and length, into memory; earlier parts are dropped.

        Raises: as `Get.get`.
        """
        wanted = self._join(ranges)
        coming, self._coming = self._coming, None
        self._held = []
        self._held = coming[1]() if coming is not None and coming[0] == wanted else self._get_ranges(wanted)

    def _join(self, ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        return join_ranges((start, min(start + length, self.size_bytes)) for start, length in ranges)

    def _get_ranges(self, wanted: list[tuple[int, int]]) -> Pieces:
        calls = [partial(self._get, start, stop) for start, stop in wanted]
        found = self._env.at_once(self.path, calls)
        pieces: list[tuple[int, list[bytes]]] = []
        end = -1
        for (start, stop), data in zip(wanted, found, strict=True):
            if start == end:
                pieces[-1][1].append(data)
            else:
                pieces.append((start, [data]))
            end = stop
        return [(start, b"".join(parts)) for start, parts in pieces]

    def size(self) -> int:
        """Size of the file in bytes."""
        return self.size_bytes

    def close(self) -> None:
        self._held, self._tail, self._coming = [], None, None
        super().close()

    def _read_at(self, start: int, length: int) -> bytes:
        stop = start + length
        for begin, data in (*self._held, *([] if self._tail is None else [self._tail])):
            if begin <= start and stop <= begin + len(data):
                return data[start - begin : stop - begin]
        if self._tail is None and stop > self.size_bytes - TAIL_BYTES:
            begin = min(start, max(self.size_bytes - TAIL_BYTES, 0))
            self._tail = (begin, self._get(begin, self.size_bytes))
            return self._tail[1][start - begin : stop - begin]
        end = min(max(stop, start + _LEAST_BYTES), self.size_bytes)
        self._held.append((start, self._get(start, end)))
        del self._held[:-8]
        return self._held[-1][1][: stop - start]


def join_ranges(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges by start and end: merged across small gaps, and long ones split. Pure."""
    found: list[tuple[int, int]] = []
    for start, stop in sorted(ranges):
        if found and start - found[-1][1] <= _GAP_BYTES and stop - found[-1][0] <= _MOST_BYTES:
            found[-1] = (found[-1][0], max(found[-1][1], stop))
            continue
        begin = max(start, found[-1][1]) if found else start
        while stop - begin > _MOST_BYTES:
            found.append((begin, begin + _MOST_BYTES))
            begin += _MOST_BYTES
        if stop > begin:
            found.append((begin, stop))
    return found
