"""What a commit publishes: from changes and the latest snapshot to entries and the next snapshot. Pure.

Source: format.md §4.1, §15; Java `FileStoreCommitImpl`, `ManifestEntryChanges`, `RetryWaiter`.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from paimon_py.commit.changes import BucketChanges, Changes
from paimon_py.spec.data_file import DataFile, FileKind, ManifestEntry
from paimon_py.spec.layout import POSTPONE_BUCKET
from paimon_py.spec.manifest import DELETION_VECTORS, IndexEntry
from paimon_py.spec.options import Options
from paimon_py.spec.snapshot import MIN_LONG, CommitKind, Snapshot

PATIENCE_SECONDS = 60.0
"""Without an explicit `commit.max-retries`, lost races do not count before this time: one may lose ten in a row."""

Bucket = tuple[bytes, int]
"""Partition and number of a bucket."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One snapshot's worth of changes; DELETEs stand before ADDs in its manifest (format.md §5.4).

    `index`: the table's index files from now on, None if they stay what they are.
    """

    kind: CommitKind
    deletes: tuple[ManifestEntry, ...] = ()
    adds: tuple[ManifestEntry, ...] = ()
    changelog: tuple[ManifestEntry, ...] = ()
    index: tuple[IndexEntry, ...] | None = None

    @property
    def entries(self) -> tuple[ManifestEntry, ...]:
        """The delta in the order of its manifest."""
        return self.deletes + self.adds

    @property
    def is_empty(self) -> bool:
        """Whether it changes nothing."""
        return not (self.deletes or self.adds or self.changelog)

    @property
    def is_manifest_merge(self) -> bool:
        """Whether all it does is to merge manifests."""
        return self.kind is CommitKind.COMPACT and self.is_empty and self.index is None

    @property
    def buckets(self) -> frozenset[Bucket]:
        """The buckets it touches."""
        return frozenset((entry.partition, entry.bucket) for entry in self.entries + self.changelog)

    @property
    def partitions(self) -> frozenset[bytes]:
        """The partitions it touches."""
        return frozenset(partition for partition, _ in self.buckets)


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """Names and sizes in bytes of the manifest lists of one attempt, and its index manifest."""

    base: tuple[str, int]
    delta: tuple[str, int]
    changelog: tuple[str, int] | None = None
    index_manifest: str | None = None


class Author(msgspec.Struct, frozen=True, kw_only=True):
    """Who commits, and what they say about it."""

    user: str
    identifier: int
    watermark: int | None = None
    properties: Mapping[str, str] | None = None
    operation: str | None = None


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How long a commit keeps trying after lost races; `count_max` None: ten, but not before PATIENCE_SECONDS."""

    count_max: int | None
    timeout_seconds: float | None
    first_wait_seconds: float
    longest_wait_seconds: float

    @classmethod
    def of(cls, options: Options) -> Limits:
        """The limits in a table's options."""
        timeout = options.find_duration("commit.timeout")
        return cls(
            count_max=options.get_int("commit.max-retries") if options.is_set("commit.max-retries") else None,
            timeout_seconds=None if timeout is None else timeout / 1000,
            first_wait_seconds=options.get_duration("commit.min-retry-wait") / 1000,
            longest_wait_seconds=options.get_duration("commit.max-retry-wait") / 1000,
        )

    def are_exhausted(self, lost: int, elapsed_seconds: float) -> bool:
        """Whether a commit that lost so many races gives up."""
        if self.timeout_seconds is not None and elapsed_seconds > self.timeout_seconds:
            return True
        if self.count_max is not None:
            return lost > self.count_max
        return lost > 10 and elapsed_seconds > PATIENCE_SECONDS

    def wait_seconds(self, lost: int, jitter: float) -> float:
        """How long to wait after the n-th lost race: exponential, bounded, a random part of it (0 ≤ jitter < 1)."""
        longest = min(self.first_wait_seconds * 2.0 ** min(lost - 1, 30), self.longest_wait_seconds)
        return longest * jitter


def write_part(changes: Changes) -> Part:
    """What was written: kind APPEND, or OVERWRITE if files or rows of files are deleted."""
    deletes = _entries(changes.buckets, FileKind.DELETE, "deleted_files")
    kills = any(entry.index_type == DELETION_VECTORS for bucket in changes.buckets for entry in bucket.new_index)
    return Part(
        kind=CommitKind.OVERWRITE if deletes or kills else CommitKind.APPEND,
        deletes=deletes,
        adds=_entries(changes.buckets, FileKind.ADD, "new_files"),
        changelog=_entries(changes.buckets, FileKind.ADD, "changelog_files"),
    )


def compact_part(changes: Changes) -> Part:
    """What was compacted; may be empty."""
    return Part(
        kind=CommitKind.COMPACT,
        deletes=_entries(changes.buckets, FileKind.DELETE, "compact_before"),
        adds=_entries(changes.buckets, FileKind.ADD, "compact_after"),
        changelog=_entries(changes.buckets, FileKind.ADD, "compact_changelog"),
    )


def stamped(part: Part, snapshot_id: int) -> Part:
    """The part with its snapshot as the sequence number of files that were written (`sequence.snapshot-ordering`).

    Compacted files hold such numbers already.
    Source: Java `FileStoreCommitImpl.stampSequenceWithSnapshotId`.
    """
    if part.kind is CommitKind.COMPACT:
        return part
    return msgspec.structs.replace(part, adds=tuple(_stamped(entry, snapshot_id) for entry in part.adds))


def _stamped(entry: ManifestEntry, number: int) -> ManifestEntry:
    file = msgspec.structs.replace(entry.file, min_sequence=number, max_sequence=number)
    return msgspec.structs.replace(entry, file=file)


def bucket_compaction(bucket: BucketChanges) -> tuple[tuple[ManifestEntry, ...], tuple[ManifestEntry, ...]]:
    """What the compaction of one bucket deletes, and what it adds."""
    return (
        _entries((bucket,), FileKind.DELETE, "compact_before"),
        _entries((bucket,), FileKind.ADD, "compact_after"),
    )


def overwrite_part(
    adds: tuple[ManifestEntry, ...], live: Iterable[ManifestEntry], index: tuple[IndexEntry, ...] | None
) -> Part:
    """New files in place of live ones. Overwrites carry no changelog."""
    deletes = tuple(msgspec.structs.replace(entry, kind=FileKind.DELETE) for entry in live)
    return Part(kind=CommitKind.OVERWRITE, deletes=deletes, adds=adds, index=index)


def upgraded(
    adds: Sequence[ManifestEntry], ranks: Mapping[str, tuple[int, int]], level_max: int
) -> tuple[ManifestEntry, ...]:
    """New files of an overwrite, moved to the top level in buckets where they do not overlap.

    `ranks`: ranks of the smallest and largest key by file name. Only if all files are of level 0 and of fixed buckets.
    """
    if any(entry.file.level > 0 or entry.bucket < 0 for entry in adds):
        return tuple(adds)
    buckets: dict[Bucket, list[ManifestEntry]] = {}
    for entry in adds:
        buckets.setdefault((entry.partition, entry.bucket), []).append(entry)
    result: list[ManifestEntry] = []
    for entries in buckets.values():
        ranges = sorted(ranks[entry.file.name] for entry in entries)
        if all(before[1] < after[0] for before, after in itertools.pairwise(ranges)):
            entries = [_at_level(entry, level_max) for entry in entries]
        result += entries
    return tuple(result)


def offsets(buckets: Sequence[BucketChanges], highest: Mapping[Bucket, int]) -> list[int]:
    """By how much the sequence numbers of each value must grow to lie above all that was committed before.

    Values of one bucket are taken in order, so that of two writers the later one in `buckets` wins. Rows that wait for
    their bucket have no sequence numbers yet.

    Args:
        buckets: changes, in the order in which they count.
        highest: largest sequence number that others have committed, per bucket.
    """
    seen = dict(highest)
    result = []
    for changes in buckets:
        files = changes.new_files
        if not files or changes.bucket == POSTPONE_BUCKET:
            result.append(0)
            continue
        key = (changes.partition, changes.bucket)
        lowest = min(file.min_sequence for file in files)
        offset = max(0, seen[key] + 1 - lowest) if key in seen else 0
        result.append(offset)
        seen[key] = max(file.max_sequence for file in files) + offset
    return result


def own_files(bucket: BucketChanges) -> tuple[DataFile, ...]:
    """The files a writer made, without those it only moved to another level."""
    moved = {file.name for file in bucket.compact_before + bucket.deleted_files}
    made = {file.name: file for file in bucket.added_files if file.name not in moved or file in bucket.new_files}
    return tuple(made.values())


def compaction_files(bucket: BucketChanges) -> tuple[DataFile, ...]:
    """The files that only a bucket's compaction made."""
    known = {file.name for file in bucket.compact_before + bucket.new_files + bucket.changelog_files}
    return tuple(file for file in bucket.compact_after + bucket.compact_changelog if file.name not in known)


def commit_user(changes: Changes) -> str | None:
    """A user for a batch commit, the same whenever the same files are committed, so that a repetition is recognised.

    Shaped like a UUID; None if no file was made for these changes alone: others may have taken away the same ones.
    """
    old = {file.name for bucket in changes.buckets for file in bucket.deleted_files + bucket.compact_before}
    old |= {entry.name for bucket in changes.buckets for entry in bucket.deleted_index + bucket.compact_deleted_index}
    new = {file.name for bucket in changes.buckets for file in bucket.added_files}
    new |= {entry.name for bucket in changes.buckets for entry in bucket.new_index + bucket.compact_new_index}
    if new <= old:
        return None
    names = old | new
    digest = hashlib.blake2b("\n".join(sorted(names)).encode(), digest_size=16).hexdigest()
    return "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:]))


def next_snapshot(
    latest: Snapshot | None,
    part: Part,
    written: Written,
    author: Author,
    *,
    schema_id: int,
    uuid: str,
    time_millis: int,
) -> Snapshot:
    """The snapshot after `latest`, as Java 2.0 writes it.

    Times never go back; the watermark never falls; statistics stay while the schema does.
    """
    delta = sum(entry.file.row_count for entry in part.adds) - sum(entry.file.row_count for entry in part.deletes)
    changelog = sum(entry.file.row_count for entry in part.changelog) if part.changelog else None
    same_schema = latest is not None and latest.schema_id == schema_id
    return Snapshot(
        id=latest.id + 1 if latest else 1,
        uuid=uuid,
        schema_id=schema_id,
        base_manifest_list=written.base[0],
        base_manifest_list_size=written.base[1],
        delta_manifest_list=written.delta[0],
        delta_manifest_list_size=written.delta[1],
        changelog_manifest_list=written.changelog[0] if written.changelog else None,
        changelog_manifest_list_size=written.changelog[1] if written.changelog else None,
        index_manifest=written.index_manifest,
        commit_user=author.user,
        commit_identifier=author.identifier,
        commit_kind=part.kind,
        time_millis=max(time_millis, latest.time_millis) if latest else time_millis,
        total_record_count=((latest.total_record_count or 0) if latest else 0) + delta,
        delta_record_count=delta,
        changelog_record_count=changelog,
        watermark=_watermark(latest, author.watermark),
        statistics=latest.statistics if latest and same_schema else None,
        properties=dict(author.properties) if author.properties else None,
        next_row_id=(latest.next_row_id or 0) if latest else 0,
        operation=author.operation,
    )


def _watermark(latest: Snapshot | None, new: int | None) -> int | None:
    known = [mark for mark in (latest.watermark if latest else None, new) if mark is not None and mark != MIN_LONG]
    return max(known, default=None)


def _entries(buckets: Iterable[BucketChanges], kind: FileKind, attribute: str) -> tuple[ManifestEntry, ...]:
    return tuple(
        ManifestEntry(
            kind=kind,
            partition=bucket.partition,
            bucket=bucket.bucket,
            total_buckets=bucket.total_buckets,
            file=file,
        )
        for bucket in buckets
        for file in getattr(bucket, attribute)
    )


def _at_level(entry: ManifestEntry, level: int) -> ManifestEntry:
    return msgspec.structs.replace(entry, file=msgspec.structs.replace(entry.file, level=level))
