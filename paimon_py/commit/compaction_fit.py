"""Which of several compactions can still be committed: each bucket for itself. Pure.

Source: format.md §15.4; Java `ConflictDetection`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from paimon_py.commit.changes import BucketChanges
from paimon_py.commit.conflicts import Conflict, Placed, bucket_count_conflict, deletion_conflict, level_conflict
from paimon_py.commit.index_plan import Index, base_conflict, compacted_index, index_after
from paimon_py.commit.plan import Bucket, bucket_compaction
from paimon_py.spec.data_file import ManifestEntry, identifier
from paimon_py.spec.manifest import DELETION_VECTORS, IndexEntry
from paimon_py.spec.snapshot import Base

Ranks = Mapping[str, tuple[int, int]]
"""Ranks of the smallest and largest key by name of files of level 1 and above; empty for append tables."""


PASSED_OVER = Conflict("others wrote to the bucket before its compaction could be committed")


class Fit(NamedTuple):
    """Changes without the compactions that do not fit, and why not, by position in the changes."""

    buckets: tuple[BucketChanges, ...]
    dropped: dict[int, Conflict]


def fit_compactions(
    buckets: Sequence[BucketChanges],
    live: Iterable[ManifestEntry],
    ranks: Ranks,
    *,
    index: Iterable[IndexEntry] = (),
    keyed: bool = True,
    passed_over: Mapping[int, Conflict] | None = None,
) -> Fit:
    """Keep the compactions whose files are all alive, and whose results do not overlap others of their level.

    Compactions of one bucket are looked at in order, each after the ones that are kept before it.

    Args:
        live: the live files of all the buckets.
        index: the index files of the table.
        keyed: the table has a primary key.
        passed_over: compactions that do not fit for another reason, by position.
    """
    vectors: dict[Bucket, Index] = {}
    for known in index:
        if known.index_type == DELETION_VECTORS:
            place = (known.partition, known.bucket)
            vectors[place] = (*vectors.get(place, ()), known)
    alive: dict[Bucket, list[ManifestEntry]] = {}
    for entry in live:
        alive.setdefault((entry.partition, entry.bucket), []).append(entry)
    kept: list[BucketChanges] = []
    dropped: dict[int, Conflict] = {}
    for position, bucket in enumerate(buckets):
        key = (bucket.partition, bucket.bucket)
        deletes, adds = bucket_compaction(bucket)
        before = alive.get(key, [])
        conflict = (passed_over or {}).get(position) or _conflict(before, deletes, adds, ranks)
        if conflict is None and (deletes or adds):
            conflict = base_conflict(vectors.get(key, ()), bucket, keyed=keyed)
        if conflict is None:
            vectors[key] = index_after(vectors.get(key, ()), compacted_index([bucket]), by_bucket=keyed)
            gone = {identifier(entry) for entry in deletes}
            alive[key] = [*(entry for entry in before if identifier(entry) not in gone), *adds]
            kept.append(bucket)
        else:
            dropped[position] = conflict
            kept.append(without_compaction(bucket))
    return Fit(tuple(kept), dropped)


def is_committed(buckets: Iterable[BucketChanges], live: Iterable[ManifestEntry]) -> bool:
    """Whether these very compactions are in the table already: their results are alive, what they replaced is not."""
    alive = {identifier(entry) for entry in live}
    for bucket in buckets:
        deletes, adds = bucket_compaction(bucket)
        if any(identifier(entry) in alive for entry in deletes) or any(identifier(e) not in alive for e in adds):
            return False
    return True


def without_compaction(bucket: BucketChanges) -> BucketChanges:
    """What was written, without what was compacted."""
    return msgspec.structs.replace(
        bucket,
        compact_before=(),
        compact_after=(),
        compact_changelog=(),
        compact_new_index=(),
        compact_deleted_index=(),
        compact_snapshot_id=None,
        compact_mark=None,
    )


def strangers(
    buckets: Sequence[BucketChanges], added: Callable[[Base], Container[str] | None], live: Iterable[ManifestEntry]
) -> dict[int, Conflict]:
    """Compactions of a writer's own new files that would pass over rows which others committed before these.

    Their output lies above such rows although it is newer; and deletes may have ended in it, or keys have been looked
    up, without them. Sequence numbers alone do not tell: numbers of rows that a write buffer merged are missing.

    Args:
        added: names of the files that were added after a snapshot and before the new ones; None if nobody knows.
        live: the live files of all the buckets.
    """
    alive: dict[Bucket, list[str]] = {}
    for entry in live:
        alive.setdefault((entry.partition, entry.bucket), []).append(entry.file.name)
    found: dict[int, Conflict] = {}
    before_us: dict[Bucket, set[str]] = {}
    for position, bucket in enumerate(buckets):
        key = (bucket.partition, bucket.bucket)
        earlier = before_us.setdefault(key, set())
        own = {file.name for file in bucket.new_files}
        taken = {file.name for file in bucket.compact_before}
        if bucket.compact_base is not None and not own.isdisjoint(taken):
            others = added(bucket.compact_base)
            if others is None or any(name in others or name in earlier for name in alive.get(key, ())):
                found[position] = PASSED_OVER
        earlier |= own
    return found


def _conflict(
    before: Sequence[ManifestEntry], deletes: Sequence[ManifestEntry], adds: Sequence[ManifestEntry], ranks: Ranks
) -> Conflict | None:
    if not deletes and not adds:
        return None
    counts = {entry.partition: entry.total_buckets for entry in before if entry.total_buckets > 0}
    conflict = deletion_conflict(before, [*deletes, *adds]) or bucket_count_conflict(adds, counts)
    if conflict is not None or not ranks:
        return conflict
    gone = {identifier(entry) for entry in deletes}
    after = [*(entry for entry in before if identifier(entry) not in gone), *adds]
    return level_conflict(_placed(entry, ranks) for entry in after if entry.file.level >= 1)


def _placed(entry: ManifestEntry, ranks: Ranks) -> Placed:
    return Placed(entry.partition, entry.bucket, entry.file.level, entry.file.name, *ranks[entry.file.name])
