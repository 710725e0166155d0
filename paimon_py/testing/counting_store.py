"""A store that counts its calls."""

from __future__ import annotations

from collections import Counter
from typing import BinaryIO

from paimon_py.storage.store import FileStatus, ListFrom, Store, page_lister


class CountingStore:
    """Forwards every verb and counts it.

    Attributes:
        calls: calls per verb.
        paths: (verb, path) of every call in order.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.calls: Counter[str] = Counter()
        self.paths: list[tuple[str, str]] = []

    def reset(self) -> None:
        """Reset the counts."""
        self.calls.clear()
        self.paths.clear()

    def get(self, path: str) -> bytes:
        self._count("get", path)
        return self.store.get(path)

    def page_lister(self) -> ListFrom | None:
        """See `page_lister`. Its calls are counted as `list_from`."""
        lists = page_lister(self.store)

        def count_page(directory: str, start: str) -> list[FileStatus]:
            self._count("list_from", start)
            return [] if lists is None else lists(directory, start)

        return None if lists is None else count_page

    def put_new(self, path: str, data: bytes, *, within: str | None = None) -> bool:
        self._count("put_new", path)
        return self.store.put_new(path, data, within=within)

    def require_new(self, directory: str) -> None:
        self.store.require_new(directory)

    def put(self, path: str, data: bytes, *, within: str | None = None) -> None:
        self._count("put", path)
        self.store.put(path, data, within=within)

    def list(self, directory: str) -> list[FileStatus]:
        self._count("list", directory)
        return self.store.list(directory)

    def stat(self, path: str) -> FileStatus | None:
        self._count("stat", path)
        return self.store.stat(path)

    def delete(self, path: str) -> None:
        self._count("delete", path)
        self.store.delete(path)

    def delete_tree(self, directory: str) -> None:
        self._count("delete_tree", directory)
        self.store.delete_tree(directory)

    def open_read(self, path: str) -> BinaryIO:
        self._count("open_read", path)
        return self.store.open_read(path)

    def open_write(self, path: str, *, within: str | None = None) -> BinaryIO:
        self._count("open_write", path)
        return self.store.open_write(path, within=within)

    def make_directory(self, path: str) -> None:
        self._count("make_directory", path)
        self.store.make_directory(path)

    def remove_directory(self, path: str) -> bool:
        self._count("remove_directory", path)
        return self.store.remove_directory(path)

    def rename_directory(self, source: str, target: str) -> None:
        self._count("rename_directory", source)
        self.store.rename_directory(source, target)

    def _count(self, verb: str, path: str) -> None:
        self.calls[verb] += 1
        self.paths.append((verb, path))
