"""Plans a snapshot by shares, which different processes can plan: manifests → entries by share → splits.

A share contains the ADD and the DELETE of a data file, and all files of a bucket, unless files are independent of each
other. The entries of some manifests are first pruned and divided by share (`share_entries`). The entries of a share
from all manifests are then folded and become splits (`plan_share`). A plan in one process has one share.

Worked example: 1,000 manifests with 10,000,000 entries are read in 167 groups of six. There are 153 shares of about
65,536 entries. If all files are in one bucket of a table without keys, it is cut into 153 pieces by the names of its
files; if they are in 10 partitions, each is cut into 16. In a table with keys, buckets are never cut.

Only ADDs are pruned before folding, since a DELETE must reach the ADD that it cancels. DELETEs are left out by their
partition, which is that of the ADD.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from paimon_py.codec.columns import Ints
from paimon_py.codec.manifest.columns import EntryColumns, compact, concat
from paimon_py.codec.manifest.entries import read_manifests
from paimon_py.errors import UnsupportedError
from paimon_py.metadata.entry_filter import EntryFilter, wanted_manifests
from paimon_py.metadata.fold import live
from paimon_py.metadata.manifests import PART_ENTRIES, groups_of
from paimon_py.scan.part_files import FILES_MAX, NumberedEntries, by_bucket, by_name, divide_entries
from paimon_py.scan.plan_snapshot import SnapshotPlanner, files_stand_alone, packing_of, partition_choice
from paimon_py.scan.split import Split
from paimon_py.spec.data_file import FileKind
from paimon_py.spec.manifest import ManifestFile
from paimon_py.spec.snapshot import Base
from paimon_py.storage.store import FileMissingError


class PlanShares(msgspec.Struct, frozen=True):
    """The division of a snapshot's entries.

    Attributes:
        count: the number of shares.
        pieces: the number of shares that the files of one bucket are divided among; 1 unless files are independent.
    """

    count: int
    pieces: int = 1

    def numbers_of(self, entries: EntryColumns) -> Ints:
        """The share of each entry."""
        numbers = by_bucket(entries)
        if self.pieces > 1:
            numbers = numbers + by_name(entries) % self.pieces
        return numbers % self.count


def read_groups(planner: SnapshotPlanner) -> list[list[ManifestFile]]:
    """The manifests that the plan needs, in order, about 65,536 entries in each group.

    Raises: SnapshotExpiredError if the snapshot has expired in the meantime.
    """
    files = planner.root.manifests.base_and_delta(planner.snapshot)
    return list(groups_of(wanted_manifests(files, EntryFilter(manifests=planner.wanted_manifests)), PART_ENTRIES))


def divide_plan(planner: SnapshotPlanner, groups: Sequence[Sequence[ManifestFile]]) -> PlanShares:
    """Choose a division of a plan in which a share has about 65,536 entries.

    Cost: at most one manifest is read, to estimate the number of buckets.
    Raises: as `share_entries`
    """
    files = [file for group in groups for file in group]
    total = sum(file.added_files + file.deleted_files for file in files)
    count = min(FILES_MAX, -(-total // PART_ENTRIES)) or 1
    if count == 1 or not files_stand_alone(planner.schema):
        return PlanShares(count)
    starts = {(file.partition_stats.min_values, file.min_bucket) for file in files}
    largest = max(files, key=lambda file: file.added_files)
    buckets = max(len(starts), len(_read(planner, [largest]).by_bucket()))
    return PlanShares(count, -(-count // buckets))


def count_for_limit(planner: SnapshotPlanner, groups: Sequence[Sequence[ManifestFile]], limit: int | None) -> int:
    """About how many manifests `plan_first` reads until it has so many rows; all of them if there is no limit.

    Cost: one manifest is read if there is a limit, and files are independent of each other.
    Raises: as `share_entries`
    """
    files = [file for group in groups for file in group]
    added, deleted = sum(file.added_files for file in files), sum(file.deleted_files for file in files)
    if limit is None or not files_stand_alone(planner.schema) or deleted > PART_ENTRIES or not added:
        return len(files)
    entries = _read(planner, files[:1])
    rows = int(entries.row_count[entries.kind == FileKind.ADD].sum()) * (added - deleted) // added
    needed = -(-limit // max(rows, 1)) + sum(file.deleted_files > 0 for file in files)
    return min(len(files), needed)


def share_entries(
    planner: SnapshotPlanner, files: Sequence[ManifestFile], shares: PlanShares
) -> Iterator[NumberedEntries]:
    """The entries of some manifests that the plan needs, by share: ADDs that may be wanted, and DELETEs.

    Raises: SnapshotExpiredError, CorruptionError
    """
    entries = _read(planner, files)
    deletes = entries.take(entries.kind == FileKind.DELETE)
    chosen = partition_choice(planner.schema, planner.predicate)
    if chosen is not None and len(deletes):
        deletes = deletes.take(deletes.in_partitions(chosen))
    found = concat([compact(_prune(planner, live(entries))), compact(deletes)])
    if len(found):
        yield from divide_entries(found, shares.numbers_of(found))


def plan_share(planner: SnapshotPlanner, manifests: Iterable[bytes]) -> tuple[Split, ...]:
    """The splits of a share, given all manifests that contain its entries, in the order of the snapshot.

    Raises: as `SnapshotPlanner.plan`
    """
    entries = concat([read_manifests([("entries of a share", data)]) for data in manifests])
    return plan_part(planner, live(entries))


def plan_part(planner: SnapshotPlanner, entries: EntryColumns) -> tuple[Split, ...]:
    """The splits of live files; all files that they are read together with are among them."""
    return planner.pack(*planner.sections(planner.sift(entries)), packing_of(planner.schema)).splits


def _prune(planner: SnapshotPlanner, adds: EntryColumns) -> EntryColumns:
    """ADDs that may be wanted. Those with an unsupported feature stay: other manifests may delete them."""
    try:
        sifted = planner.sift(adds)
    except UnsupportedError:
        return adds
    return planner.by_stats(sifted) if files_stand_alone(planner.schema) else sifted


def _read(planner: SnapshotPlanner, files: Sequence[ManifestFile]) -> EntryColumns:
    try:
        return planner.root.manifests.read_entries(files, holds=False)
    except FileMissingError as error:
        raise planner.root.missing(Base.of(planner.snapshot), error) from error
