"""Plans that are made while their splits are taken, in memory that does not grow with the number of files."""

from __future__ import annotations

from collections.abc import Iterator

from paimon_py.metadata.entry_filter import EntryFilter, wanted_manifests
from paimon_py.metadata.manifests import PART_ENTRIES, live_parts
from paimon_py.metadata.open_table import OpenTable
from paimon_py.scan.bucket_parts import bucket_parts
from paimon_py.scan.plan import parts_by_bucket
from paimon_py.scan.plan_shares import plan_part
from paimon_py.scan.plan_snapshot import SnapshotPlanner, files_stand_alone, first_splits, is_large
from paimon_py.scan.split import Split


def plan_lazily(planner: SnapshotPlanner) -> Iterator[Split]:
    """The splits of a snapshot, planned some buckets at a time. They read the rows that those of `planner.plan` read.

    The splits come in another order than those of `plan`, and the files of one bucket may be packed differently.

    Cost: as `plan`; entries that do not fit into memory are written to local disk once or twice.
    Raises: as `plan`; StorageError if the local disk fails.
    """
    table = OpenTable(planner.root, planner.schema)
    for entries in bucket_parts(table, planner.snapshot, _filter(planner)):
        yield from plan_part(planner, entries)


def plan_first(planner: SnapshotPlanner, limit: int | None) -> Iterator[Split]:
    """The splits of a scan with a limit, for callers that stop as soon as they have enough rows.

    Args:
        limit: end with the files that are certain to contain so many rows, if all of them match; None: plan all files.

    Cost: in tables whose files are independent of each other and more than 65,536, manifests are read one after the
        other, up to the limit; those with DELETEs are read first. Otherwise as `plan` or `plan_lazily`.
    Raises: as `plan_lazily`
    """
    if _reads_one_by_one(planner):
        return first_splits(_by_manifests(planner), limit)
    return first_splits(plan_lazily(planner), limit) if is_large(planner) else planner.iter_first(limit)


def _reads_one_by_one(planner: SnapshotPlanner) -> bool:
    """Whether the manifests are many, and all DELETEs fit into memory."""
    if not files_stand_alone(planner.schema):
        return False
    files = wanted_manifests(planner.root.manifests.base_and_delta(planner.snapshot), _filter(planner))
    deletes = sum(file.deleted_files for file in files)
    return deletes <= PART_ENTRIES < sum(file.added_files for file in files) + deletes


def _by_manifests(planner: SnapshotPlanner) -> Iterator[Split]:
    for part in live_parts(planner.root.manifests, planner.snapshot, _filter(planner), lazily=True):
        for entries in parts_by_bucket(part):
            yield from plan_part(planner, entries)


def _filter(planner: SnapshotPlanner) -> EntryFilter:
    return EntryFilter(manifests=planner.wanted_manifests)
