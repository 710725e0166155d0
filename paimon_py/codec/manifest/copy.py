"""Copies the encoded bytes of entries, so that unknown fields survive.

Records of older writers lack fields that newer ones append at the end; appending a null for each makes them compatible.
Records for which this is impossible go into separate files.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paimon_py.codec.avro.container import codec_name, deflater, header_bytes, pack, write_container
from paimon_py.codec.avro.shape import Shape, shape_of, tail_nulls
from paimon_py.codec.columns import Ints
from paimon_py.codec.manifest.columns import SHAPE_ROW, EntryColumns
from paimon_py.codec.manifest.schemas import MANIFEST


class Copied(NamedTuple):
    """A manifest of copied records, and the entries in it."""

    data: bytes
    columns: EntryColumns


class _Family(NamedTuple):
    """A schema to write, and the number of nulls to append to records of each old schema (None: incompatible)."""

    schema: bytes
    lacking: tuple[int | None, ...]


def copy_manifests(columns: EntryColumns, compression: str, target_bytes: int) -> list[Copied]:
    """Write `columns` to manifests, in order; a new manifest begins when one has reached `target_bytes`.

    Cost: 0.5 µs per entry, plus compression; nothing is decoded.
    """
    codec = codec_name(compression)
    compress = deflater(codec)
    copied: list[Copied] = []
    for family in _families(columns):
        fits = np.array([lacking is not None for lacking in family.lacking])
        rows = np.flatnonzero(fits[columns.table[SHAPE_ROW]])
        if not len(rows):
            continue
        header = header_bytes(family.schema, codec)
        blocks = pack(_records(columns.take(rows), family), compress)
        for first, last in _roll(blocks, target_bytes):
            data = write_container(header, blocks[first:last])
            begin = sum(count for count, _ in blocks[:first])
            end = begin + sum(count for count, _ in blocks[first:last])
            copied.append(Copied(data, columns.take(rows[begin:end])))
    return copied


def _families(columns: EntryColumns) -> list[_Family]:
    """The smallest set of schemas that covers all records: ours if it suffices, else the shortest of theirs."""
    shapes = [shape_of(text, "manifest") for text in columns.schemas]
    known = {MANIFEST: shape_of(MANIFEST, "manifest")} | dict(zip(columns.schemas, shapes, strict=True))
    left = set(range(len(shapes)))
    families = []
    for text in sorted(known, key=lambda text: (-_count_held(known[text], shapes), text != MANIFEST, len(text))):
        lacking = tuple(tail_nulls(known[text], shape) if at in left else None for at, shape in enumerate(shapes))
        covered = {at for at in left if lacking[at] is not None}
        if covered:
            families.append(_Family(text, lacking))
            left -= covered
    assert not left
    return families


def _count_held(shape: Shape, shapes: list[Shape]) -> int:
    """The number of `shapes` whose records can be converted to `shape`."""
    return sum(tail_nulls(shape, other) is not None for other in shapes)


def _records(columns: EntryColumns, family: _Family) -> list[bytes]:
    slices = columns.slices("record")
    view = columns.buffer.data
    bounds = zip(slices.starts.tolist(), (slices.starts + slices.lengths).tolist(), strict=True)
    if not any(family.lacking):
        return [bytes(view[start:stop]) for start, stop in bounds]
    lacking: Ints = np.array([count or 0 for count in family.lacking], np.int64)[columns.table[SHAPE_ROW]]
    ends = zip(bounds, lacking.tolist(), strict=True)
    return [bytes(view[start:stop]) + bytes(nulls) for (start, stop), nulls in ends]


def _roll(blocks: list[tuple[int, bytes]], target_bytes: int) -> list[tuple[int, int]]:
    """Ranges of blocks, each with at least the target size except the last."""
    ranges = []
    first = size = 0
    for index, (_, raw) in enumerate(blocks):
        size += len(raw)
        if size >= target_bytes:
            ranges.append((first, index + 1))
            first, size = index + 1, 0
    if first < len(blocks):
        ranges.append((first, len(blocks)))
    return ranges
