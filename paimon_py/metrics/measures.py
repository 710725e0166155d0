"""The state of one table: files by level, backlog of compaction, age of the latest snapshot, lag of consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.compaction.plan import plan_compaction
from paimon_py.errors import UnsupportedError
from paimon_py.html import AsPage
from paimon_py.spec.layout import POSTPONE_BUCKET
from paimon_py.spec.options import Options
from paimon_py.spec.supported import check_compactable

if TYPE_CHECKING:
    from paimon_py.table.table import Table

_TARGET = 128 << 20


class BucketLevel(msgspec.Struct, frozen=True):
    """One level of all buckets: files, rows and bytes."""

    level: int
    file_count: int
    record_count: int
    size_bytes: int


class ConsumerLag(msgspec.Struct, frozen=True):
    """The number of snapshots that a consumer has not read."""

    name: str
    snapshots: int


class TableMeasures(AsPage, msgspec.Struct, frozen=True, kw_only=True):
    """The measures of a table.

    Attributes:
        table: `database.table`, or the name of the directory.
        time_millis: when, in epoch milliseconds by the clock of this process.
        snapshot_id: latest snapshot, 0 for an empty table.
        snapshot_age_seconds: how long ago the latest snapshot was committed; None for an empty table.
        snapshots, tags: how many there are.
        levels: levels that have files, ascending.
        level0_files_max: most files on level 0 of one bucket.
        sorted_runs_max: most sorted runs in one bucket; 0 for a table without primary key.
        buckets: buckets that have files.
        backlog_files, backlog_bytes: what `compact()` would merge now; None where paimon_py cannot compact the table.
        files_after: data files that would be left then, about: merged files are as large as the target.
        consumers: lag of each consumer.
    """

    table: str
    time_millis: int
    snapshot_id: int = 0
    snapshot_age_seconds: float | None = None
    snapshots: int = 0
    tags: int = 0
    levels: tuple[BucketLevel, ...] = ()
    level0_files_max: int = 0
    sorted_runs_max: int = 0
    buckets: int = 0
    backlog_files: int | None = 0
    backlog_bytes: int | None = 0
    files_after: int | None = 0
    consumers: tuple[ConsumerLag, ...] = ()

    @property
    def file_count(self) -> int:
        """Data files of the latest snapshot."""
        return sum(level.file_count for level in self.levels)

    @property
    def record_count(self) -> int:
        """Rows in these files, those included that later rows replace."""
        return sum(level.record_count for level in self.levels)

    @property
    def size_bytes(self) -> int:
        """Bytes of these files."""
        return sum(level.size_bytes for level in self.levels)


def measure_table(table: Table) -> TableMeasures:
    """Look at a table.

    Cost: all manifests of the latest snapshot that were not read before, its consumers and tags; no data file.
    Raises: as `Table.levels`
    """
    root, now = table._root, table._root.env.clock.millis()
    latest = table.snapshot()
    last = 0 if latest is None else latest.id
    found = table.levels()
    backlog = _backlog(table, found) or _Backlog(None, None, None)
    level0 = found.filter(pc.equal(found["level"], 0))
    buckets = found.group_by(["partition", "bucket"], use_threads=False).aggregate([])
    lags = (ConsumerLag(one.name, max(0, last + 1 - one.next_snapshot_id)) for one in table.consumers())
    return TableMeasures(
        table=table.name, time_millis=now, snapshot_id=last,
        snapshot_age_seconds=None if latest is None else max(0, now - latest.time_millis) / 1000,
        snapshots=len(root.snapshots.ids()), tags=len(table.tags()), levels=_by_level(found),
        level0_files_max=_most(level0["file_count"]), sorted_runs_max=_runs(found) if table.schema.primary_keys else 0,
        buckets=buckets.num_rows, backlog_files=backlog.files, backlog_bytes=backlog.size_bytes,
        files_after=backlog.files_after,
        consumers=tuple(sorted(lags, key=lambda one: one.name)),
    )  # fmt: skip


class _Backlog(NamedTuple):
    """Files and bytes that a compaction would merge now, and the files of the table after it."""

    files: int | None
    size_bytes: int | None
    files_after: int | None


def _backlog(table: Table, found: pa.Table) -> _Backlog | None:
    """The work of a compaction; None if the table cannot be compacted here."""
    try:
        check_compactable(table._newest)
    except UnsupportedError:
        return None
    tasks = plan_compaction(table._newest_table, full=False, chosen=None)
    files, size = sum(len(task.files) for task in tasks), sum(task.size_bytes for task in tasks)
    target = Options(table._newest.options).find_size("target-file-size") or _TARGET
    merged = sum(max(1, -(-task.size_bytes // target)) for task in tasks)
    waiting = found.filter(pc.equal(found["bucket"], POSTPONE_BUCKET))
    return _Backlog(
        files + _sum(waiting["file_count"]), size + _sum(waiting["file_size_in_bytes"]),
        _sum(found["file_count"]) - files + merged,
    )  # fmt: skip


def _by_level(found: pa.Table) -> tuple[BucketLevel, ...]:
    names = ["file_count", "record_count", "file_size_in_bytes"]
    sums = found.group_by("level", use_threads=False).aggregate([(name, "sum") for name in names]).sort_by("level")
    columns = (sums[name].to_pylist() for name in ("level", *(f"{name}_sum" for name in names)))
    return tuple(BucketLevel(*row) for row in zip(*columns, strict=True))


def _runs(found: pa.Table) -> int:
    """Most sorted runs of a bucket: each file on level 0 is one, and so is each higher level."""
    runs = pc.if_else(pc.equal(found["level"], 0), found["file_count"], 1)
    counted = found.append_column("runs", runs).group_by(["partition", "bucket"], use_threads=False)
    return _most(counted.aggregate([("runs", "sum")])["runs_sum"])


def _sum(counts: pa.ChunkedArray) -> int:
    return int(pc.sum(counts).as_py() or 0)


def _most(counts: pa.ChunkedArray) -> int:
    return int(pc.max(counts).as_py() or 0)
