"""Compares BLOBs of rows that were read as references: equal bytes may be stored in several places.

A compaction of `.blob` files copies bytes, so that the same row has another reference afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from paimon_py.codec.blob_refs import BlobRef
from paimon_py.codec.columns import Mask
from paimon_py.metadata.blob_access import BlobAccess
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.blobs import AS_DESCRIPTOR, fields_apart

_Cell = Sequence[object] | None
"""A value as a list: the references, after their key in a MAP."""


class SameBlobs:
    """Compares the columns of references by the bytes to which these refer.

    Attributes:
        names: the columns; they contain references into `.blob` files of the table.
    """

    def __init__(self, root: TableRoot, names: frozenset[str]) -> None:
        self.names = names
        self._access = BlobAccess(root)

    @classmethod
    def of(cls, table: OpenTable) -> SameBlobs | None:
        """The comparison for rows of a table; None if they contain the bytes, or references that users wrote."""
        names = frozenset(field.name for field in fields_apart(table.schema))
        return cls(table.root, names) if names and table.options.get_bool(AS_DESCRIPTOR) else None

    def lengths(self, column: pa.Array) -> pa.Array:
        """A stand-in for hashing: for each row, the number of bytes of its BLOBs; NULL for NULL.

        Cells with equal bytes have equal numbers.
        """
        cells = map(_cell, column.to_pylist())
        return pa.array([None if cell is None else sum(map(self._length, cell)) for cell in cells], pa.int64())

    def same(self, left: pa.Array, right: pa.Array) -> Mask:
        """A mask of the slots with equal bytes.

        Cost: reads only pairs of BLOBs with equal lengths and different references.
        Raises: as `BlobAccess.read`
        """
        try:
            pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
            return np.fromiter((self._same(_cell(one), _cell(other)) for one, other in pairs), np.bool_, len(left))
        finally:
            self._access.close()

    def _length(self, part: object) -> int:
        return self._access.size(part) if isinstance(part, BlobRef) else 0

    def _same(self, one: _Cell, other: _Cell) -> bool:
        if one is None or other is None or len(one) != len(other):
            return one is other
        return all(map(self._same_part, one, other))

    def _same_part(self, one: object, other: object) -> bool:
        if one == other or not (isinstance(one, BlobRef) and isinstance(other, BlobRef)):
            return one == other
        return self._access.size(one) == self._access.size(other) and self._access.read(one) == self._access.read(other)


def hashed_columns(batch: pa.RecordBatch, blobs: SameBlobs | None) -> list[pa.Array]:
    """The columns of a batch as they are hashed: those of references as the lengths of their BLOBs."""
    if blobs is None:
        return list(batch.columns)
    return [
        blobs.lengths(column) if name in blobs.names else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]


def _cell(value: object) -> _Cell:
    if value is None:
        return None
    if isinstance(value, list):
        parts = [part for item in value for part in (item if isinstance(item, tuple) else (item,))]
        return [_part(part) for part in parts]
    return [_part(value)]


def _part(value: object) -> object:
    return BlobRef.from_bytes(value) if isinstance(value, bytes) else value
