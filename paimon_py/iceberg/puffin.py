"""Puffin files of deletion vectors in the form that most Iceberg readers need: magic bytes, blobs, and a footer.

Source: docs/format.md §25.6; Apache Iceberg, "Puffin file format", blob type `deletion-vector-v1`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

_MAGIC = b"PFA1"
_POSITION_COLUMN = 2_147_483_645
"""The field id of row positions."""


class VectorBlob(msgspec.Struct, frozen=True):
    """A deletion vector: the path of its data file, the number of deleted rows, and its bytes as a blob."""

    data_file: str
    row_count: int
    data: bytes


def puffin_bytes(blobs: Sequence[VectorBlob]) -> tuple[bytes, list[int]]:
    """The bytes of a file with these blobs, and the offset of each."""
    parts, offsets, described = [_MAGIC], [], []
    at = len(_MAGIC)
    for blob in blobs:
        offsets.append(at)
        described.append({
            "type": "deletion-vector-v1", "fields": [_POSITION_COLUMN], "snapshot-id": -1, "sequence-number": -1,
            "offset": at, "length": len(blob.data),
            "properties": {"referenced-data-file": blob.data_file, "cardinality": str(blob.row_count)},
        })  # fmt: skip
        parts.append(blob.data)
        at += len(blob.data)
    footer = msgspec.json.encode({"blobs": described, "properties": {"created-by": "paimon_py"}})
    parts += (_MAGIC, footer, len(footer).to_bytes(4, "little"), bytes(4), _MAGIC)
    return b"".join(parts), offsets
