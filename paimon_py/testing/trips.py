"""Counts sequential round trips to a store without real latency.

A `TripStore` counts one trip for every request. A `TripPool` counts its calls as concurrent, as many at a time as it
has threads, so that the wait is that of the longest call. Both share one count, so that the sequential trips of any
work are the difference of two readings. Everything runs in the calling thread.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import BinaryIO, TypeVar

from paimon_py.parallel import Budget, run_streams
from paimon_py.storage.store import FileStatus, ListFrom, Store, page_lister

T = TypeVar("T")
R = TypeVar("R")


class Trips:
    """Counts round trips: `requests` counts all of them, `now` only sequential ones."""

    def __init__(self) -> None:
        self.now = 0
        self.requests: list[str] = []

    def go(self, request: str) -> None:
        """Wait for one request."""
        self.now += 1
        self.requests.append(f"{self.now} {request}")


class TripPool:
    """Runs calls one after the other, and counts them as concurrent."""

    def __init__(self, trips: Trips, threads: int = 64) -> None:
        self.trips = trips
        self.threads = threads

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        begin = self.trips.now
        free = [begin] * self.threads
        results = []
        for item in items:
            thread = free.index(min(free))
            self.trips.now = free[thread]
            results.append(function(item))
            free[thread] = self.trips.now
        self.trips.now = max(free)
        return iter(results)

    def streams(
        self, begin: Callable[[T], Iterator[R]], items: Iterable[T], budget: Budget, *, in_order: bool = True
    ) -> Generator[R, None, None]:
        return run_streams(begin, items, budget, threads=1, in_order=in_order)

    async def aside(self, function: Callable[[], R]) -> R:
        return function()

    def behind(self, function: Callable[[], object]) -> None:
        function()

    def ahead(self, function: Callable[[], R]) -> Callable[[], R]:
        """Start a call now; a later call of the result waits for the remaining trips."""
        begin = self.trips.now
        found = function()
        end, self.trips.now = self.trips.now, begin

        def finish() -> R:
            self.trips.now = max(self.trips.now, end)
            return found

        return finish


class TripStore:
    """Forwards every verb, and counts the requests that an object store needs for it."""

    def __init__(self, store: Store, trips: Trips) -> None:
        self.store = store
        self.trips = trips

    def get(self, path: str) -> bytes:
        self.trips.go(f"GET {path}")
        return self.store.get(path)

    def get_range(self, path: str, start: int, stop: int) -> bytes:
        self.trips.go(f"GET {stop - start} of {path}")
        return self.store.get(path)[start:stop]

    def page_lister(self) -> ListFrom | None:
        """See `page_lister`."""
        lists = page_lister(self.store)

        def traveling(directory: str, start: str) -> list[FileStatus]:
            self.trips.go(f"LIST {directory} from {start}")
            return [] if lists is None else lists(directory, start)

        return None if lists is None else traveling

    def put_new(self, path: str, data: bytes, *, within: str | None = None) -> bool:
        self.trips.go(f"PUT {path}")
        return self.store.put_new(path, data, within=within)

    def put(self, path: str, data: bytes, *, within: str | None = None) -> None:
        self.trips.go(f"PUT {path}")
        self.store.put(path, data, within=within)

    def list(self, directory: str) -> list[FileStatus]:
        self.trips.go(f"LIST {directory}")
        return self.store.list(directory)

    def stat(self, path: str) -> FileStatus | None:
        """One request for an existing file; a second one if it does not exist, since it may be a directory."""
        self.trips.go(f"HEAD {path}")
        found = self.store.stat(path)
        if found is None or found.is_directory:
            self.trips.go(f"LIST {path}")
        return found

    def delete(self, path: str) -> None:
        self.trips.go(f"DELETE {path}")
        self.store.delete(path)

    def delete_tree(self, directory: str) -> None:
        self.trips.go(f"DELETE {directory}")
        self.store.delete_tree(directory)

    def open_read(self, path: str) -> BinaryIO:
        self.trips.go(f"HEAD {path}")
        return _Reading(self.store.open_read(path), path, self.trips)

    def open_write(self, path: str, *, within: str | None = None) -> BinaryIO:
        return _Writing(self.store.open_write(path, within=within), path, self.trips)

    def make_directory(self, path: str) -> None:
        self.store.make_directory(path)

    def remove_directory(self, _path: str) -> bool:
        """Do nothing: object stores have no directories."""
        return False

    def require_new(self, root: str) -> None:
        self.store.require_new(root)

    def rename_directory(self, source: str, target: str) -> None:
        self.store.rename_directory(source, target)


class _Reading(io.BytesIO):
    """A file whose every read is a request."""

    def __init__(self, file: BinaryIO, path: str, trips: Trips) -> None:
        with file:
            super().__init__(file.read())
        self._path, self._trips = path, trips

    def read(self, size: int | None = -1, /) -> bytes:
        self._trips.go(f"GET part {self._path}")
        return super().read(size)


class _Writing(io.BytesIO):
    """A file that is sent when it is closed."""

    def __init__(self, file: BinaryIO, path: str, trips: Trips) -> None:
        super().__init__()
        self._file, self._path, self._trips = file, path, trips

    def close(self) -> None:
        if not self.closed:
            self._trips.go(f"PUT {self._path}")
            with self._file as file:
                file.write(self.getvalue())
        super().close()
