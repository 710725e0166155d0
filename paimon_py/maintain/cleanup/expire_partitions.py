"""Expiry of partitions: drops partitions past their retention time, a limited number per commit.

Each commit drops the first expired partitions of the latest snapshot, so that concurrent writes and drops are taken
into account.

Source: format.md §16.7; Java `NormalPartitionExpire`, `PartitionValuesTimeExpireStrategy`,
`PartitionUpdateTimeExpireStrategy`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import cast

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import Mask, numpy_values
from paimon_py.codec.partition_choice import PartitionChoice
from paimon_py.codec.partition_time import PartitionTime, time_texts
from paimon_py.commit.changes import Changes
from paimon_py.commit.commit import commit
from paimon_py.commit.conflicts import Conflict
from paimon_py.commit.request import CommitRequest
from paimon_py.commit.rounds import ROUNDS, on_latest
from paimon_py.commit.state import State
from paimon_py.env import Clock
from paimon_py.errors import OptionError, UsageError
from paimon_py.logs import EXPIRY, fields
from paimon_py.maintain.cleanup.expired import ExpiredPartitions
from paimon_py.maintain.observers import notify_commits, report
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.partition_files import partition_columns, partition_files
from paimon_py.progress import Progress, ProgressCounter
from paimon_py.scan.moments import age_of, as_age, limit_before, wall_millis
from paimon_py.spec.events import ExpiryEvent
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Base, Snapshot

_STRATEGY = "partition.expiration-strategy"
_MILLI_NANOS = 1_000_000


class PartitionExpiry(msgspec.Struct, frozen=True, kw_only=True):
    """The rule for expiring partitions.

    Attributes:
        before_millis: partitions with an earlier local time expire, as if it were epoch milliseconds.
        time: extracts the time from partition values; None: the creation time of the newest file.
        max_num: the maximum number of partitions to drop at once.
        batch_size: the maximum number of partitions to drop per commit; None: all.
    """

    before_millis: int
    time: PartitionTime | None
    max_num: int
    batch_size: int | None

    @classmethod
    def of(
        cls,
        schema: TableSchema,
        options: Mapping[str, str],
        clock: Clock,
        *,
        older_than: datetime | timedelta | str | int | None = None,
    ) -> PartitionExpiry | None:
        """The rule in options; None if partitions do not expire.

        Args:
            options: those of the table, some of them overridden by the caller.
            older_than: an age, or a time, instead of `partition.expiration-time`.

        Raises: OptionError, UnsupportedError: an invalid strategy or pattern, or an unsupported one.
        """
        table = Options(options)
        age = table.find_duration("partition.expiration-time")
        older_than = cast("datetime | timedelta | str | int | None", as_age(older_than))
        if not schema.partition_keys or (age is None and older_than is None):
            return None
        if older_than is None or isinstance(older_than, timedelta):
            millis = age or 0 if older_than is None else age_of("older_than", older_than)
            before = clock.local_millis() - millis
        else:
            before = _on_the_wall(older_than, clock.millis())
        batch = table.find_int("partition.expiration-batch-size")
        return cls(
            before_millis=before,
            time=_time(schema, table),
            max_num=table.get_int("partition.expiration-max-num"),
            batch_size=batch if batch is not None and batch > 0 else None,
        )


def _on_the_wall(moment: datetime | str | int, now_millis: int) -> int:
    millis = limit_before("older_than", moment, now_millis)
    try:
        return wall_millis(millis)
    except (OverflowError, ValueError, OSError) as error:
        raise UsageError(f"older_than {moment!r} is outside the times that this machine supports: {error}") from error


def _time(schema: TableSchema, options: Options) -> PartitionTime | None:
    strategy = options.get_str(_STRATEGY)
    if strategy == "update-time":
        return None
    if strategy != "values-time":
        raise OptionError(
            f"{_STRATEGY} is values-time or update-time, not {strategy!r}", option=_STRATEGY, value=strategy
        )
    return PartitionTime.of_options(schema, options)


def expire_partitions(
    table: OpenTable,
    expiry: PartitionExpiry,
    *,
    dry_run: bool,
    progress: Progress | None = None,
) -> ExpiredPartitions:
    """Drop the partitions that have expired.

    Cost: reads all manifests of the latest snapshot, which stay cached; one commit per batch.
    Raises:
        CommitConflictError, CommitRetriesExhaustedError, CommitUnknownError: see `commit`; earlier batches are dropped.
        SnapshotExpiredError, CorruptionError, StorageError: this batch was not dropped.
    """
    gone, ids = pa.array([], pa.binary()), []
    found = on_latest(table.root, lambda latest, _: _find_expired(table, expiry, latest), rounds=ROUNDS)
    total = min(expiry.max_num, len(found.expired))
    if found.undated.num_rows:
        EXPIRY.warning(
            "%s: %d partitions never expire, because their values are not times",
            table.root.path, found.undated.num_rows,
            extra=fields(table.root, partitions=found.undated.num_rows),
        )  # fmt: skip
    if dry_run:
        gone = found.expired[:total]
    tally = ProgressCounter(progress, 0 if dry_run else total, "partitions")
    while not dry_run and len(gone) < total:
        most = min(expiry.batch_size or total, total - len(gone))
        drop = functools.partial(_drop, table, expiry, most)
        went, number = on_latest(table.root, drop, rounds=ROUNDS)
        if not len(went):
            break
        gone = pa.concat_arrays([gone, went])
        ids += [] if number is None else [number]
        tally.add(len(went))
    tally.end()
    if ids:
        more = fields(table.root, partitions=len(gone))
        EXPIRY.info("%s: %d partitions expired", table.root.path, len(gone), extra=more)
    event = lambda: ExpiryEvent(**table.root.event_place(), what="partitions", count=len(gone))  # noqa: E731
    said = report(table.root, event) if ids else ()
    return ExpiredPartitions(
        partitions=tuple(partition_columns(table.schema, gone).to_pylist()),
        snapshot_ids=tuple(ids),
        left=len(found.expired) - len(gone),
        undated=tuple(found.undated.to_pylist()),
        dry_run=dry_run,
        warnings=said,
    )


def _drop(
    table: OpenTable, expiry: PartitionExpiry, most: int, latest: Snapshot | None, _: int
) -> tuple[pa.Array, int | None]:
    """Drop the first expired partitions of a snapshot.

    Returns: the partitions, serialized, and the snapshot that dropped them.
    """
    going = _find_expired(table, expiry, latest).expired[:most]
    if not len(going) or latest is None:
        return going, None
    chosen = PartitionChoice.of_rows(going.to_pylist())

    def check(state: State) -> Conflict | None:
        """Check that partitions that expire for lack of writes received none meanwhile."""
        if expiry.time is not None or state.latest is None or state.latest == latest:
            return None
        is_old = bool(_without_newer_files(partition_files(table.root, state.latest, chosen), expiry).all())
        return None if is_old else Conflict("others wrote to partitions that had expired")

    changes = Changes(schema_id=table.schema.id, base=Base.of(latest), buckets=(), branch=table.root.branch)
    done = commit(table, changes, CommitRequest(overwrite=chosen, is_new=True, check=check))
    notify_commits(table.newest(), done.snapshot_ids)
    return going, done.snapshot_id


class _Found(msgspec.Struct, frozen=True):
    """Partitions of a snapshot. `expired`: serialized, in drop order. `undated`: values by key."""

    expired: pa.Array
    undated: pa.Table


def _find_expired(table: OpenTable, expiry: PartitionExpiry, snapshot: Snapshot | None) -> _Found:
    """The expired partitions of a snapshot, and those that never expire because their values contain no time."""
    if snapshot is None:
        nothing = pa.array([], pa.binary())
        return _Found(nothing, partition_columns(table.schema, nothing))
    found = partition_files(table.root, snapshot)
    partitions = found["partition"].combine_chunks()
    texts = time_texts(table.schema, partitions.to_pylist())
    undated: Mask = np.zeros(len(partitions), np.bool_)
    if expiry.time is None:
        is_old = _without_newer_files(found, expiry)
    else:
        times = [expiry.time.nanos(values) for values in texts]
        undated = np.array([time is None for time in times], np.bool_)
        limit = expiry.before_millis * _MILLI_NANOS
        is_old = np.array([time is not None and time < limit for time in times], np.bool_)
    default = table.options.get_str("partition.default-name")
    going = np.flatnonzero(is_old).tolist()
    going.sort(key=lambda at: ",".join(default if text is None else text for text in texts[at]).encode("utf-16-be"))
    return _Found(
        partitions.take(pa.array(going, pa.int64())),
        partition_columns(table.schema, partitions.filter(pa.array(undated))),
    )


def _without_newer_files(found: pa.Table, expiry: PartitionExpiry) -> Mask:
    """A mask of the partitions with only files older than the limit."""
    return numpy_values(found["creation_time_millis"].combine_chunks()) < expiry.before_millis


def leave_out_expired(table: OpenTable, chosen: PartitionChoice | None) -> PartitionChoice | None:
    """Exclude partitions that have expired by their values from `chosen` (None: all), if the table is configured to.

    Cost: none unless `compaction.skip-expired-partitions` is set; else reads all manifests of the latest snapshot,
      which stay cached.
    Raises: OptionError, UnsupportedError as `PartitionExpiry.of`; SnapshotExpiredError, CorruptionError
    """
    if not table.options.get_bool("compaction.skip-expired-partitions"):
        return chosen
    expiry, latest = PartitionExpiry.of(table.schema, table.schema.options, table.root.env.clock), table.root.latest()
    if expiry is None or expiry.time is None or latest is None:
        return chosen
    gone = set(_find_expired(table, expiry, latest).expired.to_pylist())
    return PartitionChoice.of_rows(set(partition_files(table.root, latest, chosen)["partition"].to_pylist()) - gone)


def require_expiry(expiry: PartitionExpiry | None, schema: TableSchema) -> PartitionExpiry:
    """The expiry rule, which must be configured.

    Raises: UsageError: the table is not partitioned, or no rule is configured.
    """
    if expiry is not None:
        return expiry
    if not schema.partition_keys:
        raise UsageError("expire_partitions needs a table with partitions; delete(where) removes rows by their values")
    raise UsageError(
        "no expiration time is set: give older_than, such as timedelta(days=30), or set the option "
        "partition.expiration-time"
    )
