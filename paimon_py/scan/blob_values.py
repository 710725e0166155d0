"""Replaces references in BLOB columns by the bytes they refer to.

Source: format.md §26; Java `BlobDescriptorResolvingRecordReader`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from paimon_py.codec.blob_arrays import replace_blobs
from paimon_py.codec.blob_refs import BlobRef, BlobViewRef
from paimon_py.codec.columns import Ints
from paimon_py.metadata.blob_access import BlobAccess
from paimon_py.metadata.root import TableRoot
from paimon_py.scan.blob_views import BlobViews
from paimon_py.scan.request import Request
from paimon_py.spec.blobs import AS_DESCRIPTOR, BlobPlace, blob_place
from paimon_py.spec.options import Options

_BATCH_BYTES = 32 << 20
_VIEW_ROWS = 256


class BlobValues:
    """Replaces references in columns of batches by bytes."""

    def __init__(
        self, root: TableRoot, references: Sequence[str], views: Sequence[str], snapshots: Sequence[int]
    ) -> None:
        """`references`: the columns of references; `views`: those of views; `snapshots`: see `BlobAccess`."""
        self._access = BlobAccess(root, snapshots)
        self._names = references
        self._view_names = views
        self._views = BlobViews(root)

    @classmethod
    def of(
        cls, root: TableRoot, request: Request, snapshots: Sequence[int], *, apart: bool = False
    ) -> BlobValues | None:
        """The replacement for a request; None if it returns no such column, or the references themselves.

        `snapshots`: ids of those whose rows are read. `apart`: columns whose bytes are stored in separate files were
        read as references too.
        """
        options = Options(request.schema.options)
        if options.get_bool(AS_DESCRIPTOR):
            return None
        places = {field.name: blob_place(request.schema, field) for field in request.fields}
        wanted = {BlobPlace.REFERENCE, BlobPlace.PACK} | ({BlobPlace.OWN_FILES} if apart else set())
        references = [name for name, place in places.items() if place in wanted]
        resolves = options.get_bool("blob-view.resolve.enabled")
        views = [name for name, place in places.items() if place is BlobPlace.VIEW and resolves]
        return cls(root, references, views, snapshots) if references or views else None

    def fill(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The rows of a batch with bytes, in batches of about 32 MB.

        Raises: as `BlobAccess.read`; CorruptionError for values that are not references.
        """
        parts: Iterable[pa.RecordBatch] = [batch]
        if self._view_names:
            parts = (self._read_views(batch.slice(start, _VIEW_ROWS)) for start in range(0, batch.num_rows, _VIEW_ROWS))
        for part in parts:
            yield from self._fill(part) if self._names else (part,)

    def _read_views(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows with the bytes of their views."""
        columns = list(batch.columns)
        for name in self._view_names:
            at = batch.schema.get_field_index(name)
            refs = [None if value is None else BlobViewRef.from_bytes(value) for value in columns[at].to_pylist()]
            columns[at] = pa.array(self._views.values(refs), columns[at].type)
        return pa.RecordBatch.from_arrays(columns, schema=batch.schema)

    def _fill(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        try:
            ends = np.cumsum(np.sum([self._sizes(batch.column(name)) for name in self._names], axis=0))
            start = 0
            while start < batch.num_rows:
                before = int(ends[start - 1]) if start else 0
                stop = max(int(np.searchsorted(ends, before + _BATCH_BYTES, side="right")), start + 1)
                part = batch.slice(start, stop - start)
                columns = [
                    replace_blobs(column, self._bytes) if name in self._names else column
                    for name, column in zip(part.schema.names, part.columns, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=part.schema)
                start = stop
        finally:
            self._access.close()

    def _sizes(self, column: pa.Array) -> Ints:
        """The number of bytes of each row."""
        if not pa.types.is_large_binary(column.type):
            sizes = [sum(map(self._size, _blobs_of(value))) for value in column.to_pylist()]
        else:
            sizes = list(map(self._size, column.to_pylist()))
        return np.array(sizes, np.int64)

    def _size(self, value: bytes | None) -> int:
        return 0 if value is None else self._access.size(BlobRef.from_bytes(value))

    def _bytes(self, column: pa.Array) -> pa.Array:
        refs = [None if value is None else BlobRef.from_bytes(value) for value in column.to_pylist()]
        return pa.array([None if ref is None else self._access.read(ref) for ref in refs], column.type)


def _blobs_of(value: Sequence[Any] | None) -> list[bytes | None]:
    """The BLOBs in a value of an ARRAY or MAP."""
    return [item[1] if isinstance(item, tuple) else item for item in value or ()]
