"""The data files of one table, wherever they lie: below the table, or at URLs of other stores."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import BinaryIO

from paimon_py.errors import CorruptionError
from paimon_py.storage.open import open_store
from paimon_py.storage.store import FileStatus, Store

Opener = Callable[[str, Mapping[str, str]], tuple[Store, str]]

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+):(?://([^/]*))?(/.*)")
_SECRET_WORDS = ("key", "secret", "token", "password", "credential", "sas")


class DataStore:
    """Reading, writing, deleting and asking about files by path of the table's own store, or by URL.

    URLs within the bucket of the table's own store (`file:` for a table on a local disk) go to that store; others
    are opened when first met, with the options that the table was opened with. Pickles leave out secrets.

    Paths in metadata are Paimon paths: a `%` in them is a percent sign, also behind `file:`.
    """

    __slots__ = ("_home", "_opener", "_options", "_others", "_root")

    def __init__(
        self, home: Store, root: str, options: Mapping[str, str] | None = None, *, opener: Opener = open_store
    ) -> None:
        """`root`: the directory of the table on `home`."""
        self._home = home
        self._root = root
        self._options = dict(options or {})
        self._opener = opener
        self._others: dict[str, tuple[Store, str]] = {}

    def __repr__(self) -> str:
        return f"DataStore({self._home!r}, {self._root!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return DataStore, (self._home, self._root, self.public_options)

    @property
    def public_options(self) -> dict[str, str]:
        """The options that other stores are opened with, without whatever may be a secret."""
        return {name: text for name, text in self._options.items() if not _may_be_secret(name)}

    def open_read(self, path: str) -> BinaryIO:
        store, path = self._find(path)
        return store.open_read(path)

    def open_write(self, path: str, *, within: str | None = None) -> BinaryIO:
        """A new file. The directory of the table must be there for files below it; see `paimon_py.storage.store`."""
        store, path = self._find(path)
        if within is None and path.startswith(self._root + "/"):
            within = self._root
        return store.open_write(path, within=within)

    def stat(self, path: str) -> FileStatus | None:
        store, path = self._find(path)
        return store.stat(path)

    def delete(self, path: str) -> None:
        store, path = self._find(path)
        store.delete(path)

    def delete_tree(self, directory: str) -> None:
        store, directory = self._find(directory)
        store.delete_tree(directory)

    def _find(self, path: str) -> tuple[Store, str]:
        match = None if path.startswith(self._root) else _URL.fullmatch(path)
        if match is None:
            return self._home, path
        scheme, authority, rest = match.group(1).lower(), match.group(2) or "", match.group(3)
        if any(part in (".", "..") or "\0" in part for part in rest.split("/")):
            raise CorruptionError(f"metadata names a file {path!r}, which is not a plain path", path=path)
        if scheme == "file" and not authority and "://" not in self._root:
            return self._home, rest
        store, place = self._other(scheme, authority)
        return store, f"{place}{rest}"

    def _other(self, scheme: str, authority: str) -> tuple[Store, str]:
        """Another store, and how paths in it begin."""
        url = f"{scheme}://{authority}"
        if url not in self._others:
            store, path = self._opener(f"{url}/x", self._options)
            place = path.removesuffix("/x")
            at_home = "://" in place and self._root.startswith(f"{place}/")
            self._others[url] = (self._home if at_home else store), place
        return self._others[url]


def _may_be_secret(name: str) -> bool:
    return any(word in name.lower() for word in _SECRET_WORDS)
