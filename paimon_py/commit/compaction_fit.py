"""Selects the compactions that can still be committed, bucket by bucket. Pure.

Source: format.md §15.4; Java `ConflictDetection`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from paimon_py.commit.changes import Bucket, BucketChanges, pack_buckets
from paimon_py.commit.column_files import compaction_conflict
from paimon_py.commit.conflicts import Conflict, LevelFile, apply, bucket_count_conflict, level_conflict
from paimon_py.commit.index_plan import Index, base_conflict, compacted_index, index_after
from paimon_py.commit.snapshot_delta import compact_part
from paimon_py.spec.data_file import ManifestEntry, identifier
from paimon_py.spec.manifest import DELETION_VECTORS, IndexEntry
from paimon_py.spec.snapshot import Base

Ranks = Mapping[str, tuple[int, int]]
"""Ranks of the smallest and largest key by name of files of level 1 and above; empty for append tables."""


PASSED_OVER = Conflict("others wrote to the bucket before its compaction could be committed")


class Fit(NamedTuple):
    """Changes without the compactions that do not fit, and the reasons, by position in the changes."""

    buckets: Sequence[BucketChanges]
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

    Compactions of one bucket are checked in order, each after the earlier ones that were kept.

    Args:
        live: the live files of all the buckets.
        index: the index files of the table.
        keyed: the table has a primary key.
        passed_over: compactions that do not fit for another reason, by position.
    """
    # Example: a bucket has the live files a, b, c; the compactions are a + b -> x, b + c -> y, c -> z. The first one
    # fits and leaves c, x. For the second b is no longer alive: it is dropped. The third one is checked against
    # c, x, as if the second had never been made: it fits unless z overlaps x on one level.
    vectors: dict[Bucket, Index] = {}
    for known in index:
        if known.index_type == DELETION_VECTORS:
            place = (known.partition, known.bucket)
            vectors[place] = (*vectors.get(place, ()), known)
    alive: dict[Bucket, list[ManifestEntry]] = {}
    for entry in live:
        alive.setdefault((entry.partition, entry.bucket), []).append(entry)
    dropped: dict[int, Conflict] = {}

    def fit_buckets() -> Iterator[BucketChanges]:
        for position, bucket in enumerate(buckets):
            place = bucket.place
            after = (passed_over or {}).get(position) or _after(alive.get(place, []), bucket, ranks)
            if not isinstance(after, Conflict) and not bucket.compacted.is_empty:
                after = base_conflict(vectors.get(place, ()), bucket, keyed=keyed) or after
            if isinstance(after, Conflict):
                dropped[position] = after
                yield bucket.without_compaction()
            else:
                vectors[place] = index_after(vectors.get(place, ()), compacted_index([bucket]), by_bucket=keyed)
                alive[place] = after
                yield bucket

    return Fit(pack_buckets(fit_buckets()), dropped)


def is_committed(buckets: Sequence[BucketChanges], live: Iterable[ManifestEntry]) -> bool:
    """Whether the same compactions are already in the table: their results are alive, their inputs are not."""
    alive = {identifier(entry) for entry in live}
    part = compact_part(buckets)
    return alive.isdisjoint(map(identifier, part.deletes)) and alive.issuperset(map(identifier, part.adds))


def foreign_files(
    buckets: Sequence[BucketChanges], added: Callable[[Base], Container[str] | None], live: Iterable[ManifestEntry]
) -> dict[int, Conflict]:
    """Compactions of a writer's own new files that would bypass rows which others committed before these.

    Their output is on a level above such rows although it is newer; it may have dropped deletes, or looked up
    keys, without them. Sequence numbers alone do not show this: numbers of rows that a write buffer merged are missing.

    Args:
        added: names of the files that were added after a snapshot and before the new ones; None if unknown.
        live: the live files of all the buckets.
    """
    # Example: after snapshot 5 a writer flushes n1, n2 and compacts them to m on level 3; meanwhile snapshot 6 adds f.
    # f is live and among the files added since 5, and m was made without its rows: n1, n2 are committed, m is dropped.
    alive: dict[Bucket, list[str]] = {}
    for entry in live:
        alive.setdefault((entry.partition, entry.bucket), []).append(entry.file.name)
    found: dict[int, Conflict] = {}
    before_us: dict[Bucket, set[str]] = {}
    for position, bucket in enumerate(buckets):
        earlier = before_us.setdefault(bucket.place, set())
        own = {file.name for file in bucket.written.added}
        taken = {file.name for file in bucket.compacted.deleted}
        if bucket.compact_base is not None and not own.isdisjoint(taken):
            others = added(bucket.compact_base)
            if others is None or any(name in others or name in earlier for name in alive.get(bucket.place, ())):
                found[position] = PASSED_OVER
        earlier |= own
    return found


def _after(before: Sequence[ManifestEntry], bucket: BucketChanges, ranks: Ranks) -> list[ManifestEntry] | Conflict:
    """The files of a bucket after its compaction."""
    part = compact_part([bucket])
    if part.is_empty:
        return list(before)
    after = apply(before, part.entries)
    if isinstance(after, Conflict):
        return after
    counts = {entry.partition: entry.total_buckets for entry in before if entry.total_buckets > 0}
    conflict = bucket_count_conflict(part.adds, counts)
    if conflict is None and ranks:
        conflict = level_conflict(_place(entry, ranks) for entry in after.values() if entry.file.level >= 1)
    conflict = conflict or compaction_conflict(part, after.values())
    return conflict or list(after.values())


def _place(entry: ManifestEntry, ranks: Ranks) -> LevelFile:
    return LevelFile(entry.partition, entry.bucket, entry.file.level, entry.file.name, *ranks[entry.file.name])
