"""A store that repeats calls after transient errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO, TypeVar

from paimon_py.env import Clock, Ids, SystemClock, SystemIds
from paimon_py.errors import StorageError
from paimon_py.logs import RETRIES, fields
from paimon_py.spec.redact import shown_text
from paimon_py.storage.store import FileStatus, ListFrom, ReadRange, Store, page_lister, range_reader

T = TypeVar("T")


class RetryStore:
    """Repeats reads, replacements and deletions after transient errors: a bounded number of times, with growing waits.

    `put_new` is never repeated: its second attempt could not distinguish its file from others'. Streams and renames are
    not repeated either; opening a stream is.

    Args:
        store: the store that may fail.
        attempts: the total number of attempts.
        first_wait_seconds: the longest first wait; each further wait may be twice as long.
        longest_wait_seconds: the limit of all waits.
    """

    def __init__(
        self,
        store: Store,
        *,
        attempts: int = 4,
        first_wait_seconds: float = 0.1,
        longest_wait_seconds: float = 5.0,
        clock: Clock | None = None,
        ids: Ids | None = None,
    ) -> None:
        self._store = store
        self._attempts = attempts
        self._first = first_wait_seconds
        self._longest = longest_wait_seconds
        self._clock = clock or SystemClock()
        self._ids = ids or SystemIds()

    def __repr__(self) -> str:
        return f"RetryStore({self._store!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return _reopen, (self._store, self._attempts, self._first, self._longest)

    def get(self, path: str) -> bytes:
        return self._retry(lambda: self._store.get(path))

    def range_reader(self) -> ReadRange | None:
        """See `range_reader`."""
        get = range_reader(self._store)
        return None if get is None else lambda path, start, stop: self._retry(lambda: get(path, start, stop))

    def page_lister(self) -> ListFrom | None:
        """See `page_lister`."""
        lists = page_lister(self._store)
        return None if lists is None else lambda directory, start: self._retry(lambda: lists(directory, start))

    def put_new(self, path: str, data: bytes, *, within: str | None = None) -> bool:
        return self._store.put_new(path, data, within=within)

    def require_new(self, directory: str) -> None:
        self._retry(lambda: self._store.require_new(directory))

    def put(self, path: str, data: bytes, *, within: str | None = None) -> None:
        self._retry(lambda: self._store.put(path, data, within=within))

    def list(self, directory: str) -> list[FileStatus]:
        return self._retry(lambda: self._store.list(directory))

    def stat(self, path: str) -> FileStatus | None:
        return self._retry(lambda: self._store.stat(path))

    def delete(self, path: str) -> None:
        self._retry(lambda: self._store.delete(path))

    def delete_tree(self, directory: str) -> None:
        self._retry(lambda: self._store.delete_tree(directory))

    def open_read(self, path: str) -> BinaryIO:
        return self._retry(lambda: self._store.open_read(path))

    def open_write(self, path: str, *, within: str | None = None) -> BinaryIO:
        return self._retry(lambda: self._store.open_write(path, within=within))

    def make_directory(self, path: str) -> None:
        self._retry(lambda: self._store.make_directory(path))

    def remove_directory(self, path: str) -> bool:
        return self._retry(lambda: self._store.remove_directory(path))

    def rename_directory(self, source: str, target: str) -> None:
        self._store.rename_directory(source, target)

    def _retry(self, action: Callable[[], T]) -> T:
        wait = self._first
        for number in range(1, self._attempts):
            try:
                return action()
            except StorageError as error:
                if not error.transient:
                    raise
                RETRIES.warning(
                    "attempt %d of %d failed: %s", number, self._attempts, shown_text(str(error)),
                    extra=fields(None, operation=error.operation, attempt=number),
                )  # fmt: skip
            self._clock.sleep(wait * self._ids.jitter())
            wait = min(2 * wait, self._longest)
        return action()


def _reopen(store: Store, attempts: int, first: float, longest: float) -> RetryStore:
    return RetryStore(store, attempts=attempts, first_wait_seconds=first, longest_wait_seconds=longest)
