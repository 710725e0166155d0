"""The contents of the snapshot that a commit publishes: from edits to manifest entries. Pure.

Source: docs/format.md §5.4, §15; Java `FileStoreCommitImpl`, `ManifestEntryChanges`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from paimon_py.commit.changes import Bucket, BucketChanges, with_compaction, with_index
from paimon_py.commit.entry_lists import EntryMaker, bucket_counts, entry_lists, pack_entries
from paimon_py.spec.data_file import FileKind, FileSource, ManifestEntry
from paimon_py.spec.manifest import DELETION_VECTORS, IndexEntry
from paimon_py.spec.packed import join_lists
from paimon_py.spec.postponed import WaitingOrder
from paimon_py.spec.schema import ROW_ID
from paimon_py.spec.snapshot import CommitKind

_BEFORE_ALL = -1
"""Earlier than any creation time that files of one snapshot are assigned."""


class SnapshotDelta(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of one snapshot; DELETEs precede ADDs in its manifest (format.md §5.4).

    `index`: the table's index files from now on; None if they stay unchanged. `statistics`: name of the table's
    statistics from now on; None if they stay unchanged. `waiting`: the range in which times of waiting files show their
    order; None if it is unknown, or none waits. `next_row_id`: the row id to assign next; None if it stays unchanged.
    """

    kind: CommitKind
    deletes: Sequence[ManifestEntry] = ()
    adds: Sequence[ManifestEntry] = ()
    changelog: Sequence[ManifestEntry] = ()
    index: tuple[IndexEntry, ...] | None = None
    statistics: str | None = None
    waiting: WaitingOrder | None = None
    next_row_id: int | None = None

    @property
    def entries(self) -> Sequence[ManifestEntry]:
        """The delta in the order of its manifest."""
        return join_lists(self.deletes, self.adds)

    @property
    def is_empty(self) -> bool:
        """Whether the delta changes nothing."""
        return not (self.deletes or self.adds or self.changelog)

    @property
    def is_manifest_merge(self) -> bool:
        """Whether the delta only merges manifests."""
        return self.kind is CommitKind.COMPACT and self.is_empty and self.index is None

    @property
    def buckets(self) -> frozenset[Bucket]:
        """The changed buckets."""
        return frozenset(place for part in (self.deletes, self.adds, self.changelog) for place in bucket_counts(part))

    @property
    def partitions(self) -> frozenset[bytes]:
        """The changed partitions."""
        return frozenset(partition for partition, _ in self.buckets)


def write_part(buckets: Sequence[BucketChanges]) -> SnapshotDelta:
    """The written part: kind APPEND, or OVERWRITE if files or rows of files are deleted."""
    part = _part(CommitKind.APPEND, buckets, "written")
    added = (entry for bucket in with_index(buckets) for entry in bucket.written.added_index)
    kills = bool(part.deletes) or any(entry.index_type == DELETION_VECTORS for entry in added)
    return msgspec.structs.replace(part, kind=CommitKind.OVERWRITE) if kills else part


def compact_part(buckets: Sequence[BucketChanges]) -> SnapshotDelta:
    """The compacted part; may be empty."""
    if not any(not bucket.compacted.is_empty for bucket in with_compaction(buckets)):
        return SnapshotDelta(kind=CommitKind.COMPACT)
    return _part(CommitKind.COMPACT, buckets, "compacted")


def _part(kind: CommitKind, buckets: Sequence[BucketChanges], edit: str) -> SnapshotDelta:
    makers = (
        EntryMaker(edit, FileKind.DELETE, "deleted"), EntryMaker(edit, FileKind.ADD, "added"),
        EntryMaker(edit, FileKind.ADD, "changelog"),
    )  # fmt: skip
    deletes, adds, changelog = entry_lists(buckets, makers)
    return SnapshotDelta(kind=kind, deletes=deletes, adds=adds, changelog=changelog)


def stamp(part: SnapshotDelta, snapshot_id: int, now_millis: int) -> SnapshotDelta:
    """The part with its snapshot as the sequence number of written files (`sequence.snapshot-ordering`).

    Files of one snapshot then have the same number; their creation times show which is newer, so these follow
    the order of the files. Compacted files already contain such numbers.
    Source: Java `FileStoreCommitImpl.stampSequenceWithSnapshotId`.
    """
    if part.kind is CommitKind.COMPACT:
        return part
    adds, _ = with_growing_times(part.adds, _BEFORE_ALL, now_millis, lambda _: True)
    return msgspec.structs.replace(part, adds=pack_entries(_stamp_entry(entry, snapshot_id) for entry in adds))


def track_rows(part: SnapshotDelta, snapshot_id: int, first_row_id: int, *, grouped: bool) -> SnapshotDelta:
    """The part with its snapshot as the number of written rows, and with ids for new rows. Files with separate columns
    contain those of the rows of the file before them, one after the other for each column.

    Args:
        first_row_id: the id of the next new row.
        grouped: put the files of a partition together first, so that its ids are contiguous.

    Source: format.md §23; Java `FileStoreCommitImpl`, `RowTrackingCommitUtils.assignRowTracking`.
    """
    adds: Iterable[ManifestEntry] = part.adds
    if grouped:
        order = {partition: number for number, (partition, _) in enumerate(bucket_counts(part.adds))}
        adds = sorted(part.adds, key=lambda add: order[add.partition])

    def number_rows() -> Iterator[ManifestEntry]:
        nonlocal first_row_id
        whole, parts = first_row_id, dict[tuple[str, ...], int]()
        for entry in adds:
            file = entry.file
            low = file.min_sequence or snapshot_id
            high = snapshot_id if not file.min_sequence else file.max_sequence or snapshot_id
            first = file.first_row_id
            if first is None and file.source is FileSource.APPEND and ROW_ID not in (file.write_columns or ()):
                if file.is_apart:
                    columns = file.write_columns or ()
                    first = parts.get(columns, whole)
                    parts[columns] = first + file.row_count
                else:
                    whole, parts = first_row_id, {}
                    first, first_row_id = first_row_id, first_row_id + file.row_count
                low = high = snapshot_id  # a rolling writer numbers the rows of its later files from another number on
            file = msgspec.structs.replace(file, min_sequence=low, max_sequence=high, first_row_id=first)
            yield msgspec.structs.replace(entry, file=file)

    with_ids = pack_entries(number_rows())
    return msgspec.structs.replace(part, adds=with_ids, next_row_id=first_row_id)


def with_growing_times(
    adds: Sequence[ManifestEntry], after_millis: int, now_millis: int, chosen: Callable[[ManifestEntry], bool]
) -> tuple[Sequence[ManifestEntry], int]:
    """New files; the chosen ones get creation times that grow in their order, near their original times.

    Args:
        after_millis: a lower bound, exclusive, of all times.
        now_millis: an upper bound of all times, unless the lower bound requires later ones.

    Returns: the entries, and the last assigned time.
    """

    def renew_times() -> Iterator[ManifestEntry]:
        nonlocal after_millis
        for entry in adds:
            if chosen(entry):
                made = entry.file.creation_time_millis
                after_millis = max(after_millis + 1, min(after_millis if made is None else made, now_millis))
                file = msgspec.structs.replace(entry.file, creation_time_millis=after_millis)
                entry = msgspec.structs.replace(entry, file=file)
            yield entry

    return pack_entries(renew_times()), after_millis


def _stamp_entry(entry: ManifestEntry, number: int) -> ManifestEntry:
    file = msgspec.structs.replace(entry.file, min_sequence=number, max_sequence=number)
    return msgspec.structs.replace(entry, file=file)


def overwrite_part(
    adds: Sequence[ManifestEntry], live: Iterable[ManifestEntry], index: tuple[IndexEntry, ...] | None
) -> SnapshotDelta:
    """New files in place of live ones. Overwrites have no changelog."""
    deletes = tuple(msgspec.structs.replace(entry, kind=FileKind.DELETE) for entry in live)
    return SnapshotDelta(kind=CommitKind.OVERWRITE, deletes=deletes, adds=adds, index=index)


def upgrade(
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


def _at_level(entry: ManifestEntry, level: int) -> ManifestEntry:
    return msgspec.structs.replace(entry, file=msgspec.structs.replace(entry.file, level=level))
