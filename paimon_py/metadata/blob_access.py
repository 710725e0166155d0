"""Follows references to bytes that are stored elsewhere, and only to permitted places.

Permitted are the directory of the table, the warehouse that contains it, the directories for its external data files,
and the directories that the caller lists in the option `paimon-py.blob-paths` when the table or its catalog is opened.
The options of the table itself permit nothing.

Source: format.md §26; Java `Blob.fromDescriptor`, which follows any URI.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import BinaryIO

from paimon_py.codec.blob_refs import BlobRef
from paimon_py.errors import CorruptionError, PaimonError, UnsupportedError
from paimon_py.metadata.missing import missing_bytes_error
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.external_paths import declared_roots
from paimon_py.spec.redact import shown_url
from paimon_py.storage.range_reader import RangeReader
from paimon_py.storage.store import FileMissingError

BLOB_PATHS = "paimon-py.blob-paths"
"""The option of `Table.open` and `Catalog.open`: URLs of directories, separated by commas."""


class BlobAccess:
    """Reads the bytes that references of one table refer to; keeps one file open at a time."""

    def __init__(self, root: TableRoot, snapshots: Sequence[int] = ()) -> None:
        """`snapshots`: ids of the snapshots whose rows contain the references; their bytes may expire with them."""
        self._root = root
        self._snapshots = snapshots
        self._is_local = "://" not in root.path
        permitted = [*declared_roots(root.files.options.get(BLOB_PATHS)), *_own_roots(root.path)]
        self._store = root.files.with_roots(permitted)
        self._open: tuple[str, BinaryIO] | None = None

    def size(self, ref: BlobRef) -> int:
        """The number of bytes that a reference refers to. Cost: one request if it extends to the end of its file.

        Raises: as `read`.
        """
        if ref.length is not None:
            return ref.length
        path = self._path(ref)
        status = self._store.stat(path)
        if status is None:
            with self._source(path):  # raises if there is no such file
                return 0
        return max(status.size_bytes - ref.offset, 0)

    def read(self, ref: BlobRef) -> bytes:
        """The bytes that a reference refers to.

        Raises:
            UnsupportedError: it refers to a place that is not permitted.
            CorruptionError: the file is too short.
            SnapshotExpiredError: the file is gone, like a snapshot whose rows contain the reference.
            FileMissingError, StorageError: the store failed.
        """
        path = self._path(ref)
        if self._open is None or self._open[0] != path:
            self.close()
            self._open = (path, self._source(path))
        source = self._open[1]
        end = source.seek(0, io.SEEK_END)
        source.seek(min(ref.offset, end))  # readers of some stores fail behind the end of a file
        data = source.read() if ref.length is None else source.read(ref.length)
        if ref.length is not None and len(data) < ref.length:
            shown = shown_url(ref.uri)
            raise CorruptionError(f"{shown} ends before the {ref.length} bytes from {ref.offset} on", path=shown)
        return data

    def open(self, ref: BlobRef) -> BinaryIO:
        """Open the bytes as a file; nothing is read yet.

        Raises: as `read`.
        """
        length = self.size(ref)
        return io.BufferedReader(_Window(self._source(self._path(ref)), ref.offset, length))

    def close(self) -> None:
        """Close the open file."""
        if self._open is not None:
            self._open[1].close()
            self._open = None

    def _source(self, path: str) -> BinaryIO:
        try:
            return self._store.open_read(path)
        except FileMissingError as error:
            raise self._missing(path, error) from error

    def _missing(self, path: str, error: FileMissingError) -> PaimonError:
        """The error for a missing file: files outside the table do not expire with its snapshots."""
        is_own = path.removeprefix("file:").removeprefix("//").startswith(f"{self._root.path.rstrip('/')}/")
        if not is_own:
            return error
        return missing_bytes_error(self._root.store, self._root.branch_path, self._snapshots, error)

    def _path(self, ref: BlobRef) -> str:
        """The place of a reference in the notation of the stores.

        Raises: UnsupportedError if it is not permitted.
        """
        path = f"file:{ref.uri}" if self._is_local and ref.uri.startswith("/") else ref.uri
        try:
            self._store.resolve(path)
        except CorruptionError as error:
            shown = shown_url(ref.uri)
            raise UnsupportedError(
                f"a reference leads to {shown!r}, which is not in a permitted directory: open the table or catalog"
                " with "
                f"options={{{BLOB_PATHS!r}: 'URL of the directory'}} to permit it, or read references with "
                "to_arrow(blobs='refs')",
                feature="references to other places",
                path=shown,
            ) from error
        return path


class _Window(RangeReader):
    """A part of a file."""

    def __init__(self, source: BinaryIO, start: int, length: int) -> None:
        super().__init__(length)
        self._source = source
        self._start = start

    def _read_at(self, start: int, length: int) -> bytes:
        self._source.seek(self._start + start)
        return self._source.read(length)

    def close(self) -> None:
        if not self.closed:
            self._source.close()
        super().close()


def _own_roots(path: str) -> tuple[str, ...]:
    """The directory of a table, and its warehouse if the table is in the directory of a database."""
    home = path.rstrip("/")
    database = home.rpartition("/")[0]
    own = [home]
    if database.endswith(".db"):
        own.append(database.rpartition("/")[0])
    return declared_roots(",".join(each if "://" in each else f"file:{each}" for each in own if each))
