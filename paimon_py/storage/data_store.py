"""The data files of one table, wherever they are stored: below the table, or at URLs of other stores."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import BinaryIO

from paimon_py.env import Env
from paimon_py.errors import CorruptionError
from paimon_py.spec.external_paths import PATHS, declared_roots
from paimon_py.spec.redact import harmless_options, shown_url
from paimon_py.storage.refreshing_store import open_related
from paimon_py.storage.store import FileStatus, Store, range_reader

Opener = Callable[[str, Mapping[str, str]], tuple[Store, str]]
Url = tuple[str, str, str]
"""Scheme, authority and path of a URL."""

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+):(?://([^/]*))?(/.*)", re.DOTALL)

_ODD = ("", ".", "/")
"""First characters of paths that are checked part by part."""


class DataStore:
    """Reads, writes, deletes and checks files by path of the table's own store, or by URL.

    A path is below the table, or below one of its external roots: the directories in `data-file.external-paths`
    of any version of its schema, or of the options that the table was opened with. Nothing else is accessed,
    whatever the metadata contains. Files below a referenced root (`spec/referenced_paths.py`) are read and never
    deleted.

    URLs within the bucket of the table's own store (`file:` for a table on a local disk) use that store; others
    are opened on first use, with the options that the table was opened with, or with the credentials that a server
    provides for the table. Pickles keep the options that are known to be harmless.

    Paths in metadata are Paimon paths: a `%` in them is a percent sign, also after `file:`.
    """

    __slots__ = (
        "_below", "_declared", "_home", "_kept", "_opener", "_options", "_others", "_protected", "_root", "_roots",
    )  # fmt: skip

    def __init__(
        self,
        home: Store,
        root: str,
        options: Mapping[str, str] | None = None,
        *,
        roots: Callable[[], Iterable[str]] = tuple,
        kept: Callable[[], Iterable[str]] = tuple,
        opener: Opener | None = None,
    ) -> None:
        """`root`: the directory of the table on `home`; `roots`: its external roots, the most frequent first;
        `kept`: its referenced roots."""
        self._home = home
        self._root = root
        self._below = root.rstrip("/") + "/"
        self._options = dict(options or {})
        self._roots = roots
        self._kept = kept
        self._protected: tuple[Url, ...] | None = None
        self._declared: tuple[Url, ...] = ()
        self._opener = opener or partial(_open_related_store, home)
        self._others: dict[str, tuple[Store, str]] = {}

    def with_roots(self, roots: Iterable[str]) -> DataStore:
        """A store that also accesses files below further directories, given as plain URLs."""
        more = tuple(roots)
        return DataStore(
            self._home, self._root, self._options, roots=lambda: (*more, *self._roots()), kept=self._kept,
            opener=self._opener,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"DataStore({self._home!r}, {self._root!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return _reopen, (self._home, self._root, self.public_options, self._roots, self._kept)

    @property
    def options(self) -> Mapping[str, str]:
        """The options for opening other stores, including secrets."""
        return self._options

    @property
    def public_options(self) -> dict[str, str]:
        """The options for opening other stores, without any that may be secrets."""
        return harmless_options(self._options)

    def get(self, path: str) -> bytes:
        store, path = self.resolve(path)
        return store.get(path)

    def open_read(self, path: str) -> BinaryIO:
        store, path = self.resolve(path)
        return store.open_read(path)

    def ranges_of(self, path: str) -> Callable[[int, int], bytes] | None:
        """A function that reads a range of bytes of a file; None if the store only reads streams."""
        store, place = self.resolve(path)
        get = range_reader(store)
        return None if get is None else partial(get, place)

    def open_write(self, path: str, *, within: str | None = None) -> BinaryIO:
        """A new file. For files below the table, its directory must exist; see `paimon_py.storage.store`."""
        store, place = self.resolve(path)
        if within is None and place.startswith(self._below):
            within = self._root
        return store.open_write(place, within=within)

    def stat(self, path: str) -> FileStatus | None:
        store, path = self.resolve(path)
        return store.stat(path)

    def delete(self, path: str) -> None:
        """Delete a file, unless it is only referenced."""
        store, place = self.resolve(path)
        if not self.is_referenced(path):
            store.delete(place)

    def is_referenced(self, path: str) -> bool:
        """Whether a file belongs to something else and is only read. Cost: as `external_roots`, the first time."""
        url = None if path.startswith(self._below) else _parse(path)
        if url is None:
            return False
        if self._protected is None:
            self._protected = tuple(map(_directory, self._kept()))
        return any(_lies_below(url, root) for root in self._protected)

    def remove_directory(self, path: str) -> bool:
        """See `Directories.remove_directory`."""
        store, path = self.resolve(path)
        return store.remove_directory(path)

    def external_roots(self) -> Iterator[str]:
        """The directories outside the table that may contain its own files. Cost: reads all schemas once."""
        yield from declared_roots(self._options.get(PATHS))
        yield from self._roots()

    def resolve(self, path: str) -> tuple[Store, str]:
        """The store of a path, and the path in that store.

        Cost: 1 µs below the table and below external roots that were used before.
        Raises:
            CorruptionError: the path is neither below the table nor below one of its external roots.
        """
        if path.startswith(self._below):
            _require_plain(path, path[len(self._below) :])
            return self._home, path
        url = _parse(path)
        if url is None:
            raise _outside_error(path)
        scheme, authority, rest = url
        _require_plain(path, rest.lstrip("/"))
        if not self._is_declared(url):
            raise _outside_error(path)
        if scheme == "file" and not authority and "://" not in self._root:
            return self._home, rest
        store, place = self._open_other(scheme, authority)
        return store, f"{place}{rest}"

    def _is_declared(self, url: Url) -> bool:
        if any(_lies_below(url, root) for root in self._declared):
            return True
        for root in map(_directory, self.external_roots()):
            if _lies_below(url, root):
                self._declared += (root,)
                return True
        self._protected = tuple(map(_directory, self._kept()))
        found = [root for root in self._protected if _lies_below(url, root)]
        self._declared += tuple(found[:1])
        return bool(found)

    def _open_other(self, scheme: str, authority: str) -> tuple[Store, str]:
        """The store of another scheme and authority, and the prefix of its paths."""
        url = f"{scheme}://{authority}"
        if url not in self._others:
            store, path = self._opener(f"{url}/x", self._options)
            place = path.removesuffix("/x")
            at_home = "://" in place and self._root.startswith(f"{place}/")
            self._others[url] = (self._home if at_home else store), place
        return self._others[url]


def _parse(path: str) -> Url | None:
    match = _URL.fullmatch(path)
    return None if match is None else (match.group(1).lower(), match.group(2) or "", match.group(3))


def _directory(root: str) -> Url:
    """A root in the form in which `_parse` returns URLs below it; roots are plain URLs."""
    return _parse(root + "/") or ("", "", root)


def _lies_below(url: Url, root: Url) -> bool:
    start = root[2].strip("/")
    return url[:2] == root[:2] and (not start or url[2].lstrip("/").startswith(start + "/"))


def _require_plain(path: str, below: str) -> None:
    if "/." not in below and "//" not in below and "\0" not in below and below[:1] not in _ODD and below[-1] != "/":
        return
    if any(part in ("", ".", "..") or "\0" in part for part in below.split("/")):
        shown = shown_url(path)
        raise CorruptionError(f"metadata references the file {shown!r}, which is not a plain path", path=shown)


def _outside_error(path: str) -> CorruptionError:
    shown = shown_url(path)
    return CorruptionError(
        f"metadata references {shown!r}, which is neither below the table nor below a directory of its option"
        f" {PATHS!r}, now or in an earlier schema",
        path=shown,
    )


def _open_related_store(home: Store, url: str, options: Mapping[str, str]) -> tuple[Store, str]:
    return open_related(home, url, options, Env())


def _reopen(
    home: Store, root: str, options: Mapping[str, str], roots: Callable[[], Iterable[str]],
    kept: Callable[[], Iterable[str]] = tuple,
) -> DataStore:  # fmt: skip
    return DataStore(home, root, options, roots=roots, kept=kept)
