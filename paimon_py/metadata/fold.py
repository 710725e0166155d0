"""Folds entries: determines which ADDs are alive, and which DELETEs are still pending.

A DELETE cancels its ADD, regardless of their order: an entry must never return to an identifier that was deleted. File
names are unique, and an upgrade to another level is another identifier. Only entries whose file name occurs in a
DELETE are examined further.

Source: format.md §5.4; Java `FileEntry.readDeletedEntries`, `FileEntry.mergeEntries`.
"""

from __future__ import annotations

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.columns import Ints, Mask, from_numpy, numpy_values
from paimon_py.codec.manifest.columns import EntryColumns
from paimon_py.errors import CorruptionError
from paimon_py.spec.data_file import FileKind


class Folded(msgspec.Struct, frozen=True):
    """Masks over the folded entries.

    `alive`: ADDs that no DELETE cancels. `pending`: DELETEs that cancel no ADD here, each file once.
    """

    alive: Mask
    pending: Mask


def live(columns: EntryColumns) -> EntryColumns:
    """The ADDs that no DELETE among `columns` cancels, in order.

    Cost: nothing if there is no DELETE; otherwise a lookup of every name among the deleted ones.
    """
    if not bool(columns.kind.any()):
        return columns
    return columns.take(fold(columns).alive)


def fold(columns: EntryColumns) -> Folded:
    """Match ADDs and DELETEs of the same identifier."""
    adds = columns.kind == FileKind.ADD
    deletes = ~adds
    if not bool(deletes.any()):
        return Folded(adds, deletes)
    alive, pending = adds.copy(), deletes
    names = columns.names()
    deleted_names = names.filter(_booleans(deletes))
    rows = np.flatnonzero(numpy_values(pc.is_in(names, value_set=deleted_names)))
    codes = identifiers(columns.take(rows))
    added, deleted = adds[rows], deletes[rows]
    alive[rows] = added & ~np.isin(codes, codes[deleted])
    unmatched = deleted & ~np.isin(codes, codes[added])
    _, first = np.unique(np.where(unmatched, codes, -1), return_index=True)
    once = np.zeros(len(rows), np.bool_)
    once[first] = True
    pending[rows] = unmatched & once
    return Folded(alive, pending)


def check_unique(columns: EntryColumns) -> None:
    """Refuse two entries of one kind for the same file.

    Raises:
        CorruptionError: a file is added twice; contains its name.
    """
    if len(columns.distinct("name").values) == len(columns):
        return
    codes = identifiers(columns)
    _, first = np.unique(codes, return_index=True)
    if len(first) < len(columns):
        twice = np.ones(len(columns), np.bool_)
        twice[first] = False
        name = columns.take(np.flatnonzero(twice)[:1]).names()[0].as_py()
        raise CorruptionError(f"file {name} is added twice", path=name)


def identifiers(columns: EntryColumns) -> Ints:
    """One number per entry, equal if two entries are for the same file (format.md §5.4)."""
    codes: Ints = columns.distinct("name").codes
    extra_codes, extra = columns.lists("extra_files")
    numbers: dict[tuple[str, ...], int] = {}
    same = np.array([numbers.setdefault(names or (), len(numbers)) for names in extra], np.int64)
    parts = (
        columns.distinct("partition").codes,
        columns.bucket,
        columns.level,
        same[extra_codes],
        columns.distinct("embedded_index").codes,
        columns.distinct("external_path").codes,
    )
    for part in parts:
        if len(part) and bool((part == part[0]).all()):
            continue
        part = part - part.min() if len(part) else part
        codes = np.unique(codes * (int(part.max(initial=0)) + 1) + part, return_inverse=True)[1].astype(np.int64)
    return codes


def _booleans(mask: Mask) -> pa.Array:
    return from_numpy(mask, pa.bool_())
