"""BLOBs that are opened on demand: `Scan.blobs`."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, BinaryIO

from paimon_py.codec.blob_refs import BlobRef
from paimon_py.errors import UsageError
from paimon_py.metadata.blob_access import BlobAccess
from paimon_py.scan.ends import Ends
from paimon_py.spec.blobs import BlobPlace, blob_place, is_blob

if TYPE_CHECKING:
    from paimon_py.scan.scan import Scan


class BlobRow:
    """One row of a scan with a BLOB that has not been read yet.

    Attributes:
        ref: location of the bytes; None for NULL, and for columns whose bytes are in another table.
        values: the other columns of the scan, by name.
    """

    __slots__ = ("_access", "_data", "ref", "values")

    def __init__(
        self, access: BlobAccess, ref: BlobRef | None, data: bytes | None, values: Mapping[str, object]
    ) -> None:
        self._access = access
        self._data = data
        self.ref = ref
        self.values = values

    @property
    def is_null(self) -> bool:
        """Whether there is no BLOB."""
        return self.ref is None and self._data is None

    def open(self) -> BinaryIO:
        """The bytes as a file, opened without reading; close it, or use `with`.

        Raises: UsageError for NULL; UnsupportedError for a location that is not permitted; StorageError.
        """
        if self._data is not None:
            return io.BytesIO(self._data)
        return self._access.open(self._ref)

    def read(self) -> bytes:
        """All bytes.

        Raises: as `open`; CorruptionError if they end early.
        """
        if self._data is not None:
            return self._data
        with self._access.open(self._ref) as source:
            return source.read()

    def size(self) -> int:
        """The number of bytes. Cost: nothing is read; one request if a reference extends to the end of a file.

        Raises: as `open`.
        """
        return len(self._data) if self._data is not None else self._access.size(self._ref)

    @property
    def _ref(self) -> BlobRef:
        if self.ref is None:
            raise UsageError("the row has no BLOB (NULL): ask row.is_null first")
        return self.ref

    def __repr__(self) -> str:
        return f"BlobRow({self.ref!r})"


def blob_rows(scan: Scan, column: str) -> Iterator[BlobRow]:
    """The rows of a scan with one BLOB column. Memory: a batch of references.

    Raises: UsageError if the scan does not return the column.
    """
    schema = scan._state_schema
    field = next((field for field in schema.fields if field.name == column), None)
    if field is None or not is_blob(field.type) or column not in scan.schema.names:
        names = [each.name for each in schema.fields if is_blob(each.type) and each.name in scan.schema.names]
        shown = ", ".join(names) or "none"
        raise UsageError(f"blobs takes a BLOB column that the scan returns ({shown}), not {column!r}")
    state = scan._state
    ends = (state.start, state.last) if isinstance(state, Ends) else (None if state is None else state.snapshot,)
    access = BlobAccess(scan._root, [snapshot.id for snapshot in ends if snapshot is not None])
    is_view = blob_place(schema, field) is BlobPlace.VIEW
    for batch in scan._showing_blobs(as_refs=not is_view).to_reader():
        for row in batch.to_pylist():
            value = row.pop(column)
            ref = None if is_view or value is None else BlobRef.from_bytes(value)
            yield BlobRow(access, ref, value if is_view else None, row)
