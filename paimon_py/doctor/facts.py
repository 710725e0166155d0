"""What a doctor knows of a table: plain values, gathered once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from paimon_py.iceberg.state import IcebergState


class Broken(msgspec.Struct, frozen=True):
    """A file that cannot be what metadata say. `damage`: what is wrong with the file, None if the file is missing."""

    path: str
    damage: str | None = None


class Commit(msgspec.Struct, frozen=True):
    """When a snapshot was committed: as the committer's clock says, and as the store's does, if that one tells."""

    snapshot_id: int
    millis: int
    stored_millis: int | None = None


class Holder(msgspec.Struct, frozen=True):
    """What keeps files that the latest snapshot does not need. `kind`: snapshot or tag."""

    kind: str
    name: str
    held_bytes: int


class Following(msgspec.Struct, frozen=True):
    """A consumer, and how many snapshots it is behind."""

    name: str
    behind: int


class ManifestFacts(msgspec.Struct, frozen=True):
    """The manifests of the latest snapshot; `small`: below half the target size."""

    count: int = 0
    small: int = 0
    size_bytes: int = 0
    entries: int = 0


class OrphanFacts(msgspec.Struct, frozen=True):
    """Files that nothing names and that are old enough to go, and users that may be forgotten."""

    files: int = 0
    size_bytes: int = 0
    examples: tuple[str, ...] = ()
    users: tuple[str, ...] = ()


class Astray(msgspec.Struct, frozen=True):
    """A consumer that has read a snapshot which is not in the history, and the id of that one."""

    name: str
    read_id: int


class HistoryFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the history is whole, and who stands in it.

    Attributes:
        runs: the first and last id of snapshots without a gap, ascending.
        seams: ids of snapshots that were built on another one than the one before.
        cut: the call that finishes a rollback or fast-forward; None if there is none.
        half_branches: names of branches that are half made or half deleted.
        astray: consumers that have read what is not in the history.
    """

    runs: tuple[tuple[int, int], ...] = ()
    seams: tuple[int, ...] = ()
    cut: str | None = None
    half_branches: tuple[str, ...] = ()
    astray: tuple[Astray, ...] = ()


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that checks look at.

    Attributes:
        options: of the table, as stored, but for those in `senseless`.
        senseless: options whose values have no sense, and why.
        is_keyed, is_partitioned: the table has a primary key, partitions.
        is_dynamic: the table has dynamic buckets, each with a hash index.
        now_millis: the time of this machine.
        live_files, live_bytes: data files of the latest snapshot.
        buckets: one row a bucket: `partition`, `bucket`, `file_count`, `level0_count`, `run_count`,
            `repeated_count` (files that hold nothing but one key, which is the same), `record_count`, `largest_run`
            (rows of the largest sorted run), `delete_count`, `file_size_in_bytes`, `hash_count` (null without a hash
            index), `total_buckets`.
        waiting: of an append table, what a compaction would merge now: `partition`, `bucket`, `file_count`.
        broken: files that the latest snapshot needs and that are missing or damaged, metadata among them.
        repeated: data files that hold a key twice, if the keys of all files were read.
        unmarked: buckets whose sorted runs were written before deletion vectors were switched on, as directories.
        snapshot_count, expirable: how many snapshots are left, and how many of them may go.
        commits: of the newest snapshots, ascending.
        holders: the oldest snapshot and the tags.
        history: whether it is whole, and who stands in it.
        iceberg: where its Iceberg metadata stand; None if it writes none, or is a branch.
    """

    options: Mapping[str, str]
    senseless: Mapping[str, str] = {}
    is_keyed: bool
    is_partitioned: bool
    is_dynamic: bool
    now_millis: int
    live_files: int = 0
    live_bytes: int = 0
    buckets: Any
    waiting: Any
    broken: tuple[Broken, ...] = ()
    repeated: tuple[str, ...] = ()
    unmarked: tuple[str, ...] = ()
    manifests: ManifestFacts = ManifestFacts()
    snapshot_count: int = 0
    expirable: int = 0
    commits: tuple[Commit, ...] = ()
    holders: tuple[Holder, ...] = ()
    followers: tuple[Following, ...] = ()
    orphans: OrphanFacts | None = None
    history: HistoryFacts = HistoryFacts()
    iceberg: IcebergState | None = None
