"""Indexes over the values of primary-key tables: a commit that changes the files of a level takes its indexes away.

An index counts only while the files that it was made of are exactly those of its level, and readers look at all rows of
files without one, so that no row is lost by taking it away.

Source: format.md §28; Java `PrimaryKeyIndexSourceMeta`, release 2.0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

import msgspec

from paimon_py.commit.changes import Bucket
from paimon_py.commit.snapshot_delta import SnapshotDelta
from paimon_py.commit.state import State
from paimon_py.spec.data_file import ManifestEntry
from paimon_py.spec.manifest import IndexEntry

_VERSION = 1


class Sources(msgspec.Struct, frozen=True):
    """The files that an index was made of, all of one level."""

    level: int
    names: frozenset[str]


def without_dead_indexes(part: SnapshotDelta, state: State) -> SnapshotDelta:
    """The part, which also takes away the indexes of levels whose files it changes.

    Cost: a get if the latest snapshot has index files.
    Raises: SnapshotExpiredError, CorruptionError
    """
    if not part.entries:
        return part
    index = state.index if part.index is None else part.index
    deleted, levels = _by_bucket(part.deletes), _by_bucket(part.adds)
    kept = tuple(entry for entry in index if not _dies(entry, deleted, levels))
    return part if len(kept) == len(index) else msgspec.structs.replace(part, index=kept)


def sources_of(meta: bytes) -> Sources | None:
    """The files of an index; None for bytes of another version.

    Source: format.md §28 (big endian: int32 1, int32 level, int32 count, then names and numbers of rows).
    """
    try:
        version, level, count = struct.unpack_from(">iii", meta)
        at, names = 12, set()
        for _ in range(count if version == _VERSION else 0):
            (length,) = struct.unpack_from(">H", meta, at)
            name = meta[at + 2 : at + 2 + length]
            names.add(name.decode("utf-8"))
            at += 2 + length + 8
    except (struct.error, UnicodeDecodeError):
        return None
    return Sources(level, frozenset(names)) if version == _VERSION and at == len(meta) else None


def _by_bucket(entries: Iterable[ManifestEntry]) -> dict[Bucket, list[ManifestEntry]]:
    found: dict[Bucket, list[ManifestEntry]] = {}
    for entry in entries:
        found.setdefault((entry.partition, entry.bucket), []).append(entry)
    return found


def _dies(
    entry: IndexEntry, deleted: dict[Bucket, list[ManifestEntry]], added: dict[Bucket, list[ManifestEntry]]
) -> bool:
    """Whether an index is not that of its level any more."""
    if entry.global_index is None or entry.global_index.source_meta is None:
        return False
    place = entry.partition, entry.bucket
    gone, new = deleted.get(place, []), added.get(place, [])
    sources = sources_of(entry.global_index.source_meta)
    if sources is None:
        return bool(gone) or any(one.file.level for one in new)
    return any(one.file.name in sources.names for one in gone) or any(one.file.level == sources.level for one in new)
