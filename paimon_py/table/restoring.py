"""Restores an older state of a table in a new commit, so that nothing of the history is lost."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from paimon_py.codec.partition_choice import PartitionChoice
from paimon_py.commit.changes import Changes
from paimon_py.commit.commit import commit, committed_before
from paimon_py.commit.conflicts import Conflict
from paimon_py.commit.request import CommitRequest
from paimon_py.commit.result import CommitResult
from paimon_py.commit.rounds import ROUNDS, on_latest
from paimon_py.commit.state import State
from paimon_py.commit.uncommitted import discarding_on_failure
from paimon_py.errors import UnsupportedError
from paimon_py.maintain.auto_maintenance import run_auto_maintenance
from paimon_py.maintain.observers import notify_again
from paimon_py.metadata.idle_warning import warn_of_idle_options
from paimon_py.metadata.open_table import OpenTable
from paimon_py.progress import Progress, ProgressCounter
from paimon_py.rows.files_read import Files, changed_buckets, files_of
from paimon_py.scan.plan_snapshot import plan_snapshot
from paimon_py.scan.read import read_split
from paimon_py.scan.request import Request
from paimon_py.scan.split import Split
from paimon_py.spec.blobs import holds_blobs
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.commit_label import CommitLabel
from paimon_py.spec.snapshot import Base, Snapshot
from paimon_py.spec.supported import check_writable
from paimon_py.table.writing import writer


def restore(
    table: OpenTable, target: Snapshot | None, *, label: CommitLabel, progress: Progress | None
) -> CommitResult:
    """See `Table.restore`; `target`: None is the empty table."""
    check_writable(table.schema)
    _check_kind(table)
    known = committed_before(table, label)
    if known is not None:
        return notify_again(table, known)
    warn_of_idle_options(table.root, table.schema.options)
    request = Request(
        schema=table.schema, columns=tuple(field.name for field in table.schema.fields), every_level=True
    )
    wanted = _splits(table, request, target)
    done = on_latest(
        table.root, lambda latest, number: _restore(table, request, (wanted, latest), label, progress, number),
        rounds=ROUNDS,
    )  # fmt: skip
    return run_auto_maintenance(table, done, of_batch=True) if done.snapshot_id is not None else done


def _check_kind(table: OpenTable) -> None:
    if bucket_mode(table.schema) is BucketMode.POSTPONED:
        raise UnsupportedError(
            "restore does not see rows that still wait for their bucket (bucket=-2); rollback_to returns to an older"
            " state of such a table", feature="restore with bucket=-2",
        )  # fmt: skip
    blobs = [field.name for field in table.schema.fields if holds_blobs(field.type)]
    if blobs:
        raise UnsupportedError(
            f"restore would write the BLOBs of {', '.join(blobs)} again; rollback_to returns to an older state of such"
            " a table", feature="restore of BLOB columns",
        )  # fmt: skip


def _restore(
    table: OpenTable, request: Request, states: tuple[list[Split], Snapshot | None], label: CommitLabel,
    progress: Progress | None, number: int,
) -> CommitResult:  # fmt: skip
    """One round: replace the partitions whose files differ. `states`: the splits of the target, and the latest."""
    wanted, latest = states
    files = files_of(wanted)
    changed = _differing(table, request, files, latest)
    if not changed:
        return CommitResult()
    parts = [split for split in wanted if split.partition in changed]
    count = sum(file.row_count for split in parts for file in split.files)
    tally = ProgressCounter(progress, count, "rows", attempt=number)

    def check(state: State) -> Conflict | None:
        more = _differing(table, request, files, state.latest) - changed
        return Conflict("another commit changed further partitions while rows were restored") if more else None

    is_whole = not table.schema.partition_keys
    chosen = PartitionChoice() if is_whole else PartitionChoice.of_rows(changed)
    commit_request = CommitRequest(label=label, overwrite=chosen, operation="RESTORE", is_new=True, check=check)
    if not parts:
        base = Base(table.root.snapshots.latest_id() or 0)
        empty = Changes(schema_id=table.schema.id, base=base, buckets=(), branch=table.root.branch)
        return commit(table, empty, commit_request)

    def rows() -> Iterator[pa.RecordBatch]:
        for split in parts:
            for batch in read_split(table.root, request, split):
                tally.add(batch.num_rows)
                yield batch

    with writer(table, overwrite=True, keeps_changelog=False) as session:
        session.keep_to(chosen)
        session.write_arrow(pa.RecordBatchReader.from_batches(request.arrow_schema, rows()))
        changes = session.changes(is_new=True)
        with discarding_on_failure(lambda: session.discard(changes)):
            return commit(table, changes, commit_request)


def _splits(table: OpenTable, request: Request, snapshot: Snapshot | None) -> list[Split]:
    return [] if snapshot is None else list(plan_snapshot(table.root, request, snapshot).splits)


def _differing(table: OpenTable, request: Request, files: Files, snapshot: Snapshot | None) -> set[bytes]:
    """The partitions of a snapshot whose files, or their deletion vectors, are not the given ones."""
    return {partition for partition, _ in changed_buckets(_splits(table, request, snapshot), files)}
