"""The maintenance steps for one table; each step is a verb that any process may repeat at any time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

import msgspec

from paimon_py.compaction.compact import Compactor
from paimon_py.compaction.task import CompactionTask
from paimon_py.doctor.gather import manifest_facts
from paimon_py.doctor.thresholds import has_many_manifests
from paimon_py.maintain.auto_maintenance import run_auto_maintenance
from paimon_py.maintain.cleanup.expire_partitions import leave_out_expired
from paimon_py.metadata.manifest_merge import ManifestSettings
from paimon_py.metadata.open_table import OpenTable
from paimon_py.progress import Progress
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.options import Options
from paimon_py.spec.supported import check_compactable
from paimon_py.table.table import Table


class ByteBudget(msgspec.Struct):
    """The bytes that compactions of a round may still read; None: no limit. `is_fresh`: nothing was read yet."""

    left_bytes: int | None
    is_fresh: bool = True

    def take(self, tasks: Sequence[CompactionTask]) -> list[CompactionTask]:
        """The first tasks within the budget; at least one if nothing was read before."""
        chosen = []
        for task in tasks:
            size = task.size_bytes
            if self.left_bytes is not None and size > self.left_bytes and not self.is_fresh:
                continue
            chosen.append(task)
            self.spend(size)
        return chosen

    def spend(self, size_bytes: int) -> None:
        """Subtract bytes that are read."""
        self.is_fresh = False
        if self.left_bytes is not None:
            self.left_bytes = max(0, self.left_bytes - size_bytes)

    @property
    def is_over(self) -> bool:
        """Whether nothing more may be read."""
        return self.left_bytes == 0 and not self.is_fresh


class MergedFiles(msgspec.Struct, frozen=True):
    """Files and bytes that a compaction merged, and the files left over because of the budget."""

    files: int
    size_bytes: int
    waiting_files: int = 0


def compact_within(table: Table, backlog: MergedFiles, budget: ByteBudget, progress: Progress) -> MergedFiles:
    """Compact within the budget, the buckets with the most files first.

    Args:
        backlog: the files to compact, according to the measures of the table.

    Raises: as `Table.compact`
    """
    root, schema = table._root, table._rules
    check_compactable(schema)
    if bucket_mode(schema) is BucketMode.POSTPONED:
        budget.spend(backlog.size_bytes)
        table.compact(progress=progress)
        return backlog
    merged, waiting = list[CompactionTask](), list[CompactionTask]()

    def choose(tasks: Sequence[CompactionTask]) -> list[CompactionTask]:
        chosen = budget.take(sorted(tasks, key=lambda task: -len(task.files)))
        merged.extend(chosen)
        waiting.extend(task for task in tasks if task not in chosen)
        return chosen

    opened = OpenTable(root, schema)
    compactor = Compactor(opened, full=False, chosen=leave_out_expired(opened, None), choose=choose)
    done = run_auto_maintenance(opened, compactor.run(progress))
    lost = set(done.dropped_buckets)
    kept = [task for task in merged if (task.partition, task.bucket) not in lost]
    return MergedFiles(
        sum(len(task.files) for task in kept), sum(task.size_bytes for task in kept),
        sum(len(task.files) for task in waiting),
    )  # fmt: skip


def merge_manifests(table: Table) -> None:
    """Merge the manifests if there are more small ones than commits normally leave."""
    latest, schema = table._root.latest(), table._newest
    options = Options(schema.options)
    found, settings = manifest_facts(table._root, latest, options), ManifestSettings.of(options)
    if has_many_manifests(found.small, settings):
        table.compact_manifests()


ExpiryStep = tuple[str, Callable[[], int]]


def expiry_steps(table: Table, progress: Progress) -> list[ExpiryStep]:
    """The expiry steps in the options of a table, each returning the number of expired items; cheap steps first."""
    options = Options(table._newest.options)
    steps: list[ExpiryStep] = []
    if options.find_duration("consumer.expiration-time") is not None:
        steps.append(("expired_others", lambda: len(table.expire_consumers())))
    if table.schema.partition_keys and options.find_duration("partition.expiration-time") is not None:
        steps.append(("expired_others", lambda: len(table.expire_partitions(progress=progress).partitions)))
    steps += [
        ("expired_others", lambda: len(table.expire_tags(progress=progress))),
        ("expired_snapshots", lambda: _snapshots(table, progress)),
        ("expired_others", lambda: len(table.expire_changelogs(progress=progress).snapshot_ids)),
    ]
    return steps


def _snapshots(table: Table, progress: Progress) -> int:
    """Expire all snapshots that may expire: one call expires at most `snapshot.expire.limit` of them."""
    count = 0
    while gone := len(table.expire_snapshots(progress=progress).snapshot_ids):
        count += gone
    return count


def delete_orphans(table: Table, older_than: timedelta, progress: Progress) -> int:
    """Delete the orphan files of a table; returns their number."""
    found = table.remove_orphans(older_than=older_than, dry_run=False, progress=progress)
    return found.files - found.left_files
