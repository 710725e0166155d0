"""Converts metastore locations to store paths: `file:/w/d.db` in Hive is `/w/d.db` on a local disk.

Source: Java `Path` of Hadoop and Paimon, which does not percent-encode other characters.
"""

from __future__ import annotations

from collections.abc import Mapping

from paimon_py.errors import UnsupportedError
from paimon_py.spec.redact import harmless_options, shown_url, without_user
from paimon_py.storage.open import open_store
from paimon_py.storage.store import Store

_FILE = "file:"


class Places:
    """The warehouse's store, and the stores of tables outside it. Can be pickled, without secrets."""

    __slots__ = ("_others", "options", "store", "warehouse", "written")

    def __init__(self, store: Store, warehouse: str, given: str, options: Mapping[str, str]) -> None:
        """`given`: the warehouse as the user wrote it; its scheme is the one that other engines use."""
        self.store = store
        self.warehouse = warehouse
        self.options = options
        scheme, mark, rest = warehouse.partition("://")
        first, given_mark, _ = without_user(given).partition("://")
        self.written = f"{_FILE}{warehouse}" if not mark else f"{first if given_mark else scheme}://{rest}"
        self._others: dict[str, Store] = {}

    def open(self, location: str) -> tuple[Store, str]:
        """The store and path of a location.

        Raises: UsageError for an invalid location, or one in a store that cannot be opened.
        """
        inside = location.removeprefix(self.written)
        if inside != location and (not inside or inside.startswith("/")):
            return self.store, self.warehouse + inside.rstrip("/")
        if location[: len(_FILE)].lower() == _FILE:
            location = _local(location)
            if "://" not in self.warehouse:
                return self.store, location
        store, path = open_store(location, self.options)
        authority = "/".join(path.split("/")[:3])
        if authority == "/".join(self.warehouse.split("/")[:3]) and "://" in path:
            return self.store, path
        return self._others.setdefault(authority, store), path

    def __reduce__(self) -> tuple[object, ...]:
        return Places, (self.store, self.warehouse, self.written, harmless_options(self.options))


def _local(location: str) -> str:
    rest = location[len(_FILE) :]
    if rest.startswith("//") and not rest.startswith("///"):
        raise UnsupportedError(
            f"{shown_url(location)} names a host; file: URLs are file:///path", feature="file: URL with a host"
        )
    return "/" + rest.strip("/")


def metastore_location(location: str) -> str:
    """A user's location in the form for a metastore: a plain path gets the scheme `file:`."""
    return location.rstrip("/") if ":" in location.split("/")[0] else f"{_FILE}{location.rstrip('/')}"
