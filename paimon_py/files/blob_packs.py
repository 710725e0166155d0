"""Writes packs of BLOBs next to the files of a primary-key table; rows contain references to the bytes in them.

Source: format.md §26; Java `PrimaryKeyBlobExternalizer`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO

import pyarrow as pa

from paimon_py.codec.blob_refs import BlobRef
from paimon_py.codec.blobs import HEAD_BYTES, encode_index, entry_parts
from paimon_py.files.naming import FileNames
from paimon_py.files.places import BucketPlace
from paimon_py.spec.blobs import PACK_SUFFIX
from paimon_py.storage.store import Create, FileTakenError

_NO_COMPRESSION = "none"


class PackWriter:
    """Writes BLOBs to consecutive packs of one bucket; at most one is open.

    Attributes:
        paths: the paths of all started packs, for clean-up.
    """

    def __init__(self, store: Create, place: BucketPlace, names: FileNames, target_bytes: int) -> None:
        """`target_bytes`: the size at which the next pack begins."""
        self._store = store
        self._place = place
        self._names = names
        self._target = target_bytes
        self._open: BinaryIO | None = None
        self._lengths: list[int] = []
        self._size = 0
        self.paths: list[str] = []

    @property
    def is_open(self) -> bool:
        """Whether a pack is open."""
        return self._open is not None

    def write(self, blobs: pa.Array) -> pa.Array:
        """Write BLOBs, and return the references to them; NULL stays NULL."""
        refs = [None if not value.is_valid else self._write(memoryview(value.as_buffer())) for value in blobs]
        return pa.array(refs, blobs.type)

    def finish(self) -> None:
        """Complete the open pack."""
        if self._open is not None:
            sink, self._open = self._open, None
            sink.write(encode_index(self._lengths))
            sink.close()
            self._lengths, self._size = [], 0

    def abort(self) -> None:
        """Close the open pack; the caller deletes `paths`.

        Raises: StorageError
        """
        if self._open is not None:
            sink, self._open = self._open, None
            sink.close()

    def _write(self, payload: memoryview) -> bytes:
        if self._open is None:
            self._open = self._begin()
        parts: Iterable[bytes | memoryview] = entry_parts(payload)
        head, tail = parts
        for part in (head, payload, tail):
            self._open.write(part)
        path = self.paths[-1]
        uri = path if "://" in path else f"file:{path}"
        ref = bytes(BlobRef(uri, self._size + HEAD_BYTES, len(payload)))
        length = len(head) + len(payload) + len(tail)
        self._lengths.append(length)
        self._size += length
        if self._size >= self._target:
            self.finish()
        return ref

    def _begin(self) -> BinaryIO:
        path, _ = self._place.locate(self._names.data(PACK_SUFFIX.removeprefix("."), _NO_COMPRESSION))
        self.paths.append(path)
        try:
            return self._store.open_write(path)
        except FileTakenError:
            self.paths.pop()  # the file belongs to another writer
            raise
