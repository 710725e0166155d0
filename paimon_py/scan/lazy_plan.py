"""Plans that are made while their splits are taken, in memory that does not grow with the number of files."""

from __future__ import annotations

from collections.abc import Iterator

from paimon_py.metadata.entry_filter import EntryFilter
from paimon_py.metadata.open_table import OpenTable
from paimon_py.scan.bucket_parts import bucket_parts
from paimon_py.scan.plan_shares import plan_part
from paimon_py.scan.plan_snapshot import SnapshotPlanner
from paimon_py.scan.split import Split


def plan_lazily(planner: SnapshotPlanner) -> Iterator[Split]:
    """The splits of a snapshot, planned some buckets at a time. They read the rows that those of `planner.plan` read.

    The splits come in another order than those of `plan`, and the files of one bucket may be packed differently.

    Cost: as `plan`; entries that do not fit into memory are written to local disk once or twice.
    Raises: as `plan`; StorageError if the local disk fails.
    """
    wanted = EntryFilter(manifests=planner.wanted_manifests)
    table = OpenTable(planner.root, planner.schema)
    for entries in bucket_parts(table, planner.snapshot, wanted):
        yield from plan_part(planner, entries)
