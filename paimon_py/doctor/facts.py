"""The facts about a table: plain values, gathered once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from paimon_py.iceberg.state import IcebergState


class Broken(msgspec.Struct, frozen=True):
    """A file that does not match the metadata. `damage`: the problem with the file, None if the file is missing."""

    path: str
    damage: str | None = None


class Commit(msgspec.Struct, frozen=True):
    """The commit time of a snapshot: by the committer's clock, and by the store's, if it reports one."""

    snapshot_id: int
    millis: int
    stored_millis: int | None = None


class FileHolder(msgspec.Struct, frozen=True):
    """A state that keeps files not needed by the latest snapshot. `kind`: snapshot or tag."""

    kind: str
    name: str
    held_bytes: int


class ConsumerBacklog(msgspec.Struct, frozen=True):
    """A consumer, and the number of snapshots it is behind."""

    name: str
    behind: int


class ManifestFacts(msgspec.Struct, frozen=True):
    """The manifests of the latest snapshot; `small`: below half the target size."""

    count: int = 0
    small: int = 0
    size_bytes: int = 0
    entries: int = 0


class OrphanFacts(msgspec.Struct, frozen=True):
    """Orphan files that are old enough to be deleted, and users that may be forgotten."""

    files: int = 0
    size_bytes: int = 0
    examples: tuple[str, ...] = ()
    users: tuple[str, ...] = ()


class StrayConsumer(msgspec.Struct, frozen=True):
    """A consumer that has read a snapshot which is not in the history, and the id of that snapshot."""

    name: str
    read_id: int


class HistoryFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The completeness of the history, and the consumers that are not on it.

    Attributes:
        runs: the first and last id of each sequence of snapshots without a gap, ascending.
        seams: ids of snapshots whose parent is not the snapshot with the preceding id.
        hint: the id in the LATEST hint; None if there is none.
        cut: the call that finishes an unfinished rollback or fast-forward; None if there is none.
        half_branches: names of branches that were created or deleted only partly.
        astray: consumers that have read snapshots which are not in the history.
    """

    runs: tuple[tuple[int, int], ...] = ()
    seams: tuple[int, ...] = ()
    hint: int | None = None
    cut: str | None = None
    half_branches: tuple[str, ...] = ()
    astray: tuple[StrayConsumer, ...] = ()


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """The input of all checks.

    Attributes:
        options: options of the table, as stored, except those in `senseless`.
        senseless: options with invalid values, and why.
        is_keyed, is_partitioned: the table has a primary key, partitions.
        is_dynamic: the table has dynamic buckets, each with a hash index.
        now_millis: the time of this machine.
        live_files, live_bytes: data files of the latest snapshot.
        buckets: one row per bucket: `partition`, `bucket`, `file_count`, `level0_count`, `run_count`,
            `repeated_count` (files that contain a single key, the same in all of them), `record_count`, `largest_run`
            (rows of the largest sorted run), `delete_count`, `file_size_in_bytes`, `hash_count` (null without a hash
            index), `total_buckets`.
        waiting: of an append table, the files that a compaction would merge now: `partition`, `bucket`, `file_count`.
        broken: missing or damaged files of the latest snapshot, including metadata.
        repeated: data files that contain a key twice, if the keys of all files were read.
        unmarked: buckets whose sorted runs were written before deletion vectors were enabled, as directories.
        snapshot_count, expirable: the number of snapshots, and how many of them may expire.
        commits: commit times of the newest snapshots, ascending.
        holders: the oldest snapshot and the tags.
        history: the completeness of the history, and the consumers that are not on it.
        iceberg: the state of its Iceberg metadata; None if it writes none, or is a branch.
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
    holders: tuple[FileHolder, ...] = ()
    followers: tuple[ConsumerBacklog, ...] = ()
    orphans: OrphanFacts | None = None
    history: HistoryFacts = HistoryFacts()
    iceberg: IcebergState | None = None
