"""The files of tables by the names of a catalog: a read-only file system for fsspec, `pvfs://<warehouse>/db/table/…`.

Source: Java `PaimonVirtualFileSystem`, release 2.0.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, BinaryIO

from fsspec import AbstractFileSystem

from paimon_py.catalog.catalog import Catalog
from paimon_py.errors import DatabaseNotFoundError, UnsupportedError, UsageError
from paimon_py.metastores.metastore import TableName
from paimon_py.metastores.server import ServerMetastore
from paimon_py.storage.store import FileStatus, Store, join

_PARTS_OF_TABLE = 3


class PaimonFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """Reads the files of tables, also of object and format tables on a REST server, by the names of a catalog.

    The directories are `<warehouse>/<database>/<table>`, followed by the files of the table's location. A REST server
    provides the credentials for them.

    The locations of tables of a server are kept until `invalidate_cache`.

    Args:
        options: options of the catalog, as for `Catalog.open`; `metastore` is `rest` if there is a `uri`.
        catalog: an open catalog instead of `options`; the first part of paths is then any name.
        given: further options of the catalog, such as `uri` and `token`.

    Raises: UsageError if there is neither `catalog` nor an option.
    """

    protocol = "pvfs"
    cachable = False  # instances may hold an open catalog
    root_marker = ""

    def __init__(
        self, options: Mapping[str, str] | None = None, *, catalog: Catalog | None = None, **given: Any
    ) -> None:
        super().__init__(use_listings_cache=False)
        self._options = {**(options or {}), **given}
        if self._options.get("uri"):
            self._options.setdefault("metastore", "rest")
        if catalog is None and not self._options:
            raise UsageError("a pvfs file system needs options of a catalog, such as uri=, or catalog=")
        self._catalog = catalog
        self._catalogs: dict[str, Catalog] = {}
        self._places: dict[tuple[str, TableName], tuple[Store, str]] = {}

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """The children of a directory, sorted: databases, tables, files.

        Raises: FileNotFoundError, UnsupportedError, StorageError
        """
        parts = self._parts(path)
        here = "/".join(parts)
        if len(parts) < _PARTS_OF_TABLE:
            found = [_directory(f"{here}/{name}") for name in self._names(parts)]
        else:
            store, place = self._place(parts)
            found = [_entry(f"{here}/{status.name}", status) for status in store.list(place)]
            if not found:
                only = self.info(path)
                found = [] if only["type"] == "directory" else [only]
        return found if detail else [one["name"] for one in found]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Name, size in bytes, type, and the time of the last change in seconds (`mtime`).

        Raises: FileNotFoundError, UnsupportedError, StorageError
        """
        parts = self._parts(path)
        here = "/".join(parts)
        if len(parts) < _PARTS_OF_TABLE:
            self._names(parts)
            return _directory(here)
        store, place = self._place(parts)
        status = store.stat(place)
        if status is not None:
            return _entry(here, status)
        if len(parts) == _PARTS_OF_TABLE or store.list(place):
            return _directory(here)
        raise _missing(here)

    def modified(self, path: str) -> datetime:
        """The time of the last change of a file, in UTC.

        Raises:
            FileNotFoundError, StorageError
            IsADirectoryError: the path is a directory, and stores keep no times of those.
            UnsupportedError: the store keeps no times of files.
        """
        found = self.info(path)
        if found["type"] == "directory":
            raise IsADirectoryError(errno.EISDIR, "Is a directory", path)
        if found["mtime"] is None:
            raise UnsupportedError(f"the store of {path} keeps no times of files", feature="times of files")
        return datetime.fromtimestamp(found["mtime"], timezone.utc)

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:  # noqa: ARG002
        """Raises: UnsupportedError"""
        raise _read_only()

    def makedirs(self, path: str, exist_ok: bool = False) -> None:  # noqa: ARG002
        """Raises: UnsupportedError"""
        raise _read_only()

    def rmdir(self, path: str) -> None:  # noqa: ARG002
        """Raises: UnsupportedError"""
        raise _read_only()

    def rm_file(self, path: str) -> None:  # noqa: ARG002
        """Raises: UnsupportedError"""
        raise _read_only()

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:  # noqa: ARG002
        """Raises: UnsupportedError"""
        raise _read_only()

    def invalidate_cache(self, path: str | None = None) -> None:  # noqa: ARG002
        """Forget where tables are, such as after one was dropped and created again."""
        self._places.clear()

    def _open(self, path: str, mode: str = "rb", *_: Any, **__: Any) -> BinaryIO:
        if mode != "rb":
            raise _read_only()
        if self.info(path)["type"] == "directory":
            raise IsADirectoryError(errno.EISDIR, "Is a directory", path)
        store, place = self._place(self._parts(path))
        return store.open_read(place)

    # -- names ---------------------------------------------------------------------------------------------------------

    def _parts(self, path: str) -> list[str]:
        parts = [part for part in str(self._strip_protocol(path)).split("/") if part]
        if not parts:
            raise UsageError("a pvfs path begins with the name of a warehouse: pvfs://<warehouse>/<database>/<table>")
        if not {".", ".."}.isdisjoint(parts):
            raise UsageError(f"{path!r} contains '.' or '..'")
        return parts

    def _catalog_of(self, warehouse: str) -> Catalog:
        if self._catalog is not None:
            return self._catalog
        if warehouse not in self._catalogs:
            self._catalogs[warehouse] = Catalog.open(options={"warehouse": warehouse, **self._options}, create=False)
        return self._catalogs[warehouse]

    def _names(self, parts: list[str]) -> list[str]:
        """The databases of a warehouse, or the tables of a database. Raises: FileNotFoundError"""
        catalog = self._catalog_of(parts[0])
        if len(parts) == 1:
            return catalog.databases()
        metastore = catalog._metastore
        list_tables = metastore.all_tables if isinstance(metastore, ServerMetastore) else catalog.tables
        try:
            return list_tables(parts[1])
        except DatabaseNotFoundError as error:
            raise _missing("/".join(parts)) from error

    def _place(self, parts: list[str]) -> tuple[Store, str]:
        """The store and the path of a file or directory in a table. Raises: FileNotFoundError"""
        name = TableName(parts[1], parts[2])
        found = self._places.get((parts[0], name)) or self._find_place(parts[0], name)
        if found is None:
            raise _missing("/".join(parts[:_PARTS_OF_TABLE]))
        store, place = found
        return store, join(place, *parts[_PARTS_OF_TABLE:])

    def _find_place(self, warehouse: str, name: TableName) -> tuple[Store, str] | None:
        """The store and the directory of a table; None if it does not exist. Answers of servers are kept."""
        metastore = self._catalog_of(warehouse)._metastore
        if not isinstance(metastore, ServerMetastore):
            root = metastore.find(name)
            return None if root is None or not root.schemas.ids() else (root.store, root.path)
        found = metastore.place(name)
        if found is not None:
            self._places[warehouse, name] = found
        return found


def _directory(name: str) -> dict[str, Any]:
    return {"name": name, "size": 0, "type": "directory"}


def _entry(name: str, status: FileStatus) -> dict[str, Any]:
    if status.is_directory:
        return _directory(name)
    seconds = None if status.modified_millis is None else status.modified_millis / 1000
    return {"name": name, "size": status.size_bytes, "type": "file", "mtime": seconds}


def _missing(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, "No such file or directory", path)


def _read_only() -> UnsupportedError:
    return UnsupportedError("pvfs is read only: write into tables by their verbs", feature="writing to pvfs")
