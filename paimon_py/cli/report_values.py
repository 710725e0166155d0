"""The contents of a report on tables, as values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import pyarrow.compute as pc

from paimon_py import Catalog, Finding, PaimonError, Table
from paimon_py.errors import TableNotFoundError
from paimon_py.metadata.commit_history import HistoryEntry
from paimon_py.metrics.measures import TableMeasures, measure_table

EDGES = (64 << 10, 1 << 20, 8 << 20, 32 << 20, 128 << 20, 512 << 20)
"""Upper bounds of the size classes of files; larger files form the last class."""
_COMMITS = 100


class Gain(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of maintenance.

    Attributes:
        files_before, files_after: data files of the latest snapshot, and the approximate number after a compaction.
        snapshots: snapshots that would expire.
        freed_files: files that would be deleted with them.
        orphans, orphan_bytes: number and size of files that nothing references.
    """

    files_before: int = 0
    files_after: int = 0
    snapshots: int = 0
    freed_files: int = 0
    orphans: int = 0
    orphan_bytes: int = 0


class TableReport(msgspec.Struct, frozen=True, kw_only=True):
    """The report on one table.

    Attributes:
        sizes: number of data files by size: one for each of `EDGES`, and one for larger files.
        skew: rows of the largest bucket over the mean of its partition; None for tables with one bucket.
        history: latest commits, newest first.
        error: why the table could not be read; the other fields are then empty.
    """

    name: str
    measures: TableMeasures | None = None
    sizes: tuple[int, ...] = ()
    skew: float | None = None
    history: tuple[HistoryEntry, ...] = ()
    findings: tuple[Finding, ...] = ()
    gain: Gain = Gain()
    error: str | None = None


def report_tables(
    catalog: Catalog, names: Sequence[str], on_progress: Callable[[int, int, str], None]
) -> list[TableReport]:
    """Report on tables, the largest first; `on_progress` is called after each."""
    found = []
    for place, name in enumerate(names):
        try:
            found.append(report_table(catalog.table(name)))
        except TableNotFoundError:
            continue
        except PaimonError as error:
            found.append(TableReport(name=name, error=str(error)))
        on_progress(place + 1, len(names), "tables")
    return sorted(found, key=lambda one: -(one.measures.size_bytes if one.measures else 0))


def report_table(table: Table) -> TableReport:
    """Report on one table. Cost: as `Table.doctor` and `Table.history`."""
    root, latest = table._root, table._root.latest()
    entries = None if latest is None else root.manifests.live_entries(latest)
    sizes = np.zeros(0, np.int64) if entries is None else entries.size_bytes
    counts = np.bincount(np.searchsorted(EDGES, sizes), minlength=len(EDGES) + 1)
    measures = measure_table(table)
    return TableReport(
        name=table.name, measures=measures, sizes=tuple(int(count) for count in counts), skew=_skew(table),
        history=tuple(table.history(_COMMITS)), findings=tuple(table.doctor()), gain=_gain(table, measures),
    )  # fmt: skip


def _skew(table: Table) -> float | None:
    levels = table.levels()
    buckets = levels.group_by(["partition", "bucket"], use_threads=False).aggregate([("record_count", "sum")])
    if buckets.num_rows < 2:
        return None
    means = buckets.group_by("partition", use_threads=False).aggregate(
        [("record_count_sum", "mean"), ("record_count_sum", "max"), ("bucket", "count")]
    )
    means = means.filter(pc.greater(means["bucket_count"], 1))
    if not means.num_rows:
        return None
    shares = pc.divide(means["record_count_sum_max"], pc.max_element_wise(means["record_count_sum_mean"], 1.0))
    return float(pc.max(shares).as_py())


def _gain(table: Table, measures: TableMeasures) -> Gain:
    expiry = table.expire_snapshots(dry_run=True)
    orphans = table.remove_orphans()
    return Gain(
        files_before=measures.file_count,
        files_after=measures.file_count if measures.files_after is None else measures.files_after,
        snapshots=len(expiry.snapshot_ids),
        freed_files=expiry.data_files + expiry.index_files + expiry.metadata_files, orphans=orphans.files,
        orphan_bytes=orphans.size_bytes,
    )  # fmt: skip
