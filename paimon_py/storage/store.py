"""The store interface of the core, one Protocol per verb.

Paths are absolute: `/dir/file` on local disk, `scheme://bucket/key` elsewhere. Every verb raises `StorageError`
(never a raw OSError) and `get`, `open_read` raise `FileMissingError` for a missing file.

The verbs that create files also create the directories above them. `within` names a directory that must exist: only
directories below it are created, and if it is gone, `FileMissingError` is raised and nothing is created. So a writer of
a table cannot recreate the directory of a table that was renamed or dropped. A store without directories cannot
check this: `within` has no effect there.

| store | `put_new` | `open_write` | `within` |
|---|---|---|---|
| local | exclusive (`link`) | exclusive (`O_EXCL`) | enforced |
| memory | exclusive | exclusive | enforced |
| HDFS | exclusive (rename) | exclusive | enforced |
| S3, Google Cloud, Azure, OSS | exclusive (conditional request) | replaces: names must differ | no effect |
| others of fsspec | refused | replaces: names must differ | checked before |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, Protocol, runtime_checkable

import msgspec

from paimon_py.errors import StorageError, StorageUnknownError

ReadRange = Callable[[str, int, int], bytes]
"""Reads the bytes of the file at a path, from one position up to another."""


ListFrom = Callable[[str, str], "list[FileStatus]"]
"""Returns one page of the files at any depth below a directory, in the order of their paths, from a path on.

The page is empty if there are no more files. Times are not given.
"""


ListNames = Callable[[str], "list[str]"]
"""Returns the names of the files directly in a directory, sorted; none if the directory does not exist."""


class FileMissingError(StorageError):
    """A file does not exist. Callers turn this into the error of their own subject."""

    kind = "file-missing"


class FileTakenError(StorageError):
    """A file with this name exists: it belongs to another writer and must not be deleted."""

    kind = "file-taken"


class FileStatus(msgspec.Struct, frozen=True):
    """One child of a directory. `name` is the last part of `path`; times are epoch milliseconds of the store."""

    path: str
    name: str
    size_bytes: int
    is_directory: bool
    modified_millis: int | None = None


class Get(Protocol):
    """Reading whole files."""

    def get(self, path: str) -> bytes:
        """The whole file."""
        ...


class PutNew(Protocol):
    """Creating files that must not exist."""

    def put_new(self, path: str, data: bytes, *, within: str | None = None) -> bool:
        """Create `path` atomically and durably. True if this call created it, False if it existed already.

        Raises:
            FileMissingError: the directory `within` is gone.
            StorageUnknownError: the store did not say whether the file was created.
            UnsupportedError: the store has no safe create-if-absent.
        """
        ...

    def require_new(self, directory: str) -> None:
        """Raise what `put_new` would raise below a directory, before other files are written.

        Cost: nothing if the store is known; otherwise a probe of three requests, once per process and bucket.

        Raises: UnsupportedError
        """
        ...


class Put(Protocol):
    """Replacing small files."""

    def put(self, path: str, data: bytes, *, within: str | None = None) -> None:
        """Write or replace the whole file; readers see the old or the new content, never a part.

        Raises:
            FileMissingError: the directory `within` is gone.
        """
        ...


class List(Protocol):
    """Listing directories."""

    def list(self, directory: str) -> list[FileStatus]:
        """Direct children, sorted by name; empty if the directory does not exist."""
        ...


class Stat(Protocol):
    """Looking up one path."""

    def stat(self, path: str) -> FileStatus | None:
        """Status of a file or directory, None if absent."""
        ...


class DeleteFile(Protocol):
    """Deleting files."""

    def delete(self, path: str) -> None:
        """Delete one file; deleting a missing file succeeds."""
        ...


class Delete(DeleteFile, Protocol):
    """Deleting files and directories."""

    def delete_tree(self, directory: str) -> None:
        """Delete a directory and everything below it."""
        ...


class OpenRead(Protocol):
    """Reading files as streams."""

    def open_read(self, path: str) -> BinaryIO:
        """A seekable binary file, to be closed by the caller; pyarrow accepts it."""
        ...


class OpenWrite(Protocol):
    """Writing new files as streams."""

    def open_write(self, path: str, *, within: str | None = None) -> BinaryIO:
        """A new file for writing; it is complete and durable once `close` has returned.

        The caller must use a unique name: only some stores refuse a name that is taken.

        Raises:
            FileMissingError: the directory `within` is gone.
            FileTakenError: the store is exclusive, and a file with this name exists, which is not touched.
        """
        ...


class Directories(Protocol):
    """Making, removing and renaming directories."""

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents; a no-op on stores without directories."""
        ...

    def remove_directory(self, path: str) -> bool:
        """Remove an empty directory. Returns whether it was removed: never on stores without directories."""
        ...

    def rename_directory(self, source: str, target: str) -> None:
        """Move a directory; the target must not exist."""
        ...


class Store(Get, PutNew, Put, List, Stat, Delete, OpenRead, OpenWrite, Directories, Protocol):
    """All verbs. Functions take the narrower Protocols if they can."""


class Create(OpenWrite, DeleteFile, Protocol):
    """Creating files, and deleting them if that failed."""


@contextmanager
def new_file(store: Create, path: str, *, within: str | None = None) -> Iterator[BinaryIO]:
    """A new file to write; it is complete and durable after the block.

    Raises:
        FileTakenError: a file with this name exists, which is kept.
        StorageError: and then the started file is deleted, if the store allows.
    """
    try:
        with store.open_write(path, within=within) as sink:
            yield sink
    except FileTakenError:
        raise
    except BaseException:
        with suppress(StorageError):
            store.delete(path)
        raise


def has_contents(store: Get, path: str, data: bytes) -> bool:
    """Whether a file that exists has exactly these bytes, as after a `put_new` of this process whose answer was lost.

    Raises: StorageUnknownError if it cannot be read.
    """
    try:
        return store.get(path) == data
    except FileMissingError:
        return False
    except StorageError as error:
        raise StorageUnknownError(
            f"{path} exists and could not be read back: {error}", path=path, operation="put_new"
        ) from error


def join(*parts: str) -> str:
    """Join path parts with single slashes, keeping `scheme://`."""
    head, *rest = parts
    return "/".join([head.rstrip("/") or "", *(part.strip("/") for part in rest if part)])


@runtime_checkable
class SupportsSharedCredentials(Protocol):
    """A store that can open other places with its own credentials."""

    def open_other(self, url: str) -> tuple[Store, str] | None:
        """The store of another place, and the place as a path of it; None if the credentials are not valid there.

        Raises: as `open_store` and `StoreSource.fetch`
        """
        ...


def files_below(directory: str, prefix: str, sizes: Iterable[tuple[str, int]], start: str) -> list[FileStatus]:
    """The files of a page from the path `start` on, as `ListFrom` returns them.

    Args:
        prefix: the beginning of all keys, which the path of the directory replaces.
        sizes: keys and sizes; keys that end with a slash are markers of directories.
    """
    home = directory.rstrip("/")
    found = ((f"{home}/{key[len(prefix) :]}", size) for key, size in sizes if key[-1:] != "/")
    return [
        FileStatus(path=path, name=path.rpartition("/")[2], size_bytes=size, is_directory=False)
        for path, size in found if path >= start
    ]  # fmt: skip


def range_reader(store: object) -> ReadRange | None:
    """The function with which a store reads a part of a file in one request; None if it only reads streams.

    Stores that wrap others have a `range_reader` method.
    """
    given = getattr(store, "range_reader", None)
    return getattr(store, "get_range", None) if given is None else given()


def page_lister(store: object) -> ListFrom | None:
    """The function with which a store lists files from a path on, one request for a page; None if it cannot.

    Stores that wrap others have a `page_lister` method.
    """
    given = getattr(store, "page_lister", None)
    return getattr(store, "list_from", None) if given is None else given()


def name_lister(store: List) -> ListNames:
    """The function that lists the names of files at the lowest cost: local disks are not asked for sizes and times.

    Stores that wrap others have a `name_lister` method.
    """
    given = getattr(store, "name_lister", None)
    found: ListNames | None = getattr(store, "list_names", None) if given is None else given()
    return found or (lambda directory: [one.name for one in store.list(directory) if not one.is_directory])
