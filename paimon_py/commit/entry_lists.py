"""The manifest entries of a commit as lists: tuples, or decoded from packed changes each time they are read.

Totals over all entries are computed once, when the lists are made.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, overload

from paimon_py.commit.changes import Bucket, BucketChanges
from paimon_py.spec.data_file import DataFile, FileKind, ManifestEntry
from paimon_py.spec.packed import PackedList, PackedType, pack_list


class EntryMaker(NamedTuple):
    """Makes entries of some changes of a bucket: the names of the edit and of its list of files, and the kind."""

    edit: str
    kind: FileKind
    files: str

    def of(self, bucket: BucketChanges) -> list[ManifestEntry]:
        """The entries of a bucket."""
        return entries_of(bucket, self.kind, getattr(getattr(bucket, self.edit), self.files))


class _Counts(NamedTuple):
    """The counts of a list: its length, its rows, and for each bucket the numbers of buckets in its entries."""

    entries: int
    rows: int
    buckets: dict[Bucket, tuple[int, ...]]


class PackedEntries(Sequence[ManifestEntry]):
    """Entries that are decoded from packed changes whenever they are read, so that few exist at a time."""

    def __init__(self, buckets: PackedList[BucketChanges], maker: EntryMaker, counts: _Counts) -> None:
        self._buckets = buckets
        self._maker = maker
        self.counts = counts

    def __len__(self) -> int:
        return self.counts.entries

    def __iter__(self) -> Iterator[ManifestEntry]:
        for bucket in self._buckets:
            yield from self._maker.of(bucket)

    @overload
    def __getitem__(self, at: int) -> ManifestEntry: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[ManifestEntry, ...]: ...
    def __getitem__(self, at: int | slice) -> ManifestEntry | tuple[ManifestEntry, ...]:
        if isinstance(at, slice):
            return tuple(self)[at]
        if not -len(self) <= at < len(self):
            raise IndexError(at)
        return next(itertools.islice(self, at % len(self), None))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PackedEntries) and self._buckets is other._buckets and self._maker == other._maker:
            return True
        if not isinstance(other, (tuple, PackedEntries)):
            return NotImplemented
        return len(self) == len(other) and all(one == two for one, two in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))


def entry_lists(buckets: Sequence[BucketChanges], makers: Sequence[EntryMaker]) -> list[Sequence[ManifestEntry]]:
    """The entries of changes, one list for each of `makers`, in order: tuples, unless the changes are packed.

    Cost: packed changes are decoded once here, and again whenever a list is read.
    """
    if not isinstance(buckets, PackedList):
        return [tuple(entry for bucket in buckets for entry in maker.of(bucket)) for maker in makers]
    counts: list[tuple[list[int], dict[Bucket, tuple[int, ...]]]] = [([0, 0], {}) for _ in makers]
    for bucket in buckets:
        for maker, (sums, numbers) in zip(makers, counts, strict=True):
            entries = maker.of(bucket)
            if entries:
                sums[0] += len(entries)
                sums[1] += sum(entry.file.row_count for entry in entries)
                _note(numbers, bucket.place, bucket.total_buckets)
    return [
        PackedEntries(buckets, maker, _Counts(sums[0], sums[1], numbers)) if sums[0] else ()
        for maker, (sums, numbers) in zip(makers, counts, strict=True)
    ]


def row_count(entries: Sequence[ManifestEntry]) -> int:
    """The rows in the files of entries."""
    if isinstance(entries, PackedEntries):
        return entries.counts.rows
    return sum(entry.file.row_count for entry in entries)


def whole_row_count(entries: Sequence[ManifestEntry]) -> int:
    """The rows in the files of entries, without those with separate columns (BLOBs, vectors) of these rows."""
    if isinstance(entries, PackedEntries):  # of a table that does not track rows, which has no such files
        return entries.counts.rows
    return sum(entry.file.row_count for entry in entries if not entry.file.is_apart)


def bucket_counts(entries: Sequence[ManifestEntry]) -> dict[Bucket, tuple[int, ...]]:
    """The numbers of buckets that the entries of each bucket name, in the order in which buckets first occur."""
    if isinstance(entries, PackedEntries):
        return entries.counts.buckets
    found: dict[Bucket, tuple[int, ...]] = {}
    for entry in entries:
        _note(found, (entry.partition, entry.bucket), entry.total_buckets)
    return found


def pack_entries(entries: Iterable[ManifestEntry]) -> Sequence[ManifestEntry]:
    """Entries as a list, packed if they are very many."""
    return pack_list(entries, _ENTRIES)


def entries_of(bucket: BucketChanges, kind: FileKind, files: Iterable[DataFile]) -> list[ManifestEntry]:
    """The entries that add or delete files of a bucket."""
    partition, number, count = bucket.partition, bucket.bucket, bucket.total_buckets
    return [
        ManifestEntry(kind=kind, partition=partition, bucket=number, total_buckets=count, file=file) for file in files
    ]


def _note(found: dict[Bucket, tuple[int, ...]], place: Bucket, count: int) -> None:
    known = found.get(place, ())
    if count not in known:
        found[place] = (*known, count)


_ENTRIES = PackedType(ManifestEntry, lambda _: 1, lambda _: frozenset())
