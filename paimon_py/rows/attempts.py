"""Evaluating a row operation on the latest snapshot and publishing it; what others overtake is evaluated anew.

What was read must still be what the operation would read when its snapshot is published: the same files with the same
dead rows. So every operation takes effect as if it were alone between the snapshot before and its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import msgspec

from paimon_py.commit.changes import Changes
from paimon_py.commit.commit import commit
from paimon_py.commit.conflicts import Conflict
from paimon_py.commit.newer_files import require_known
from paimon_py.commit.renumber import renumber
from paimon_py.commit.request import CommitRequest
from paimon_py.commit.result import CommitResult
from paimon_py.commit.rounds import ROUNDS, on_latest
from paimon_py.errors import CommitUnknownError, PaimonError
from paimon_py.expr.predicate import Predicate
from paimon_py.metadata.root import TableRoot
from paimon_py.rows.result import RowsResult
from paimon_py.scan.plan_snapshot import plan_snapshot
from paimon_py.scan.read import Request
from paimon_py.scan.split import Split
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import CommitKind, Snapshot

_OVERTAKEN = Conflict("others changed files that the operation had read")


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Rows that changed."""

    deleted: int = 0
    updated: int = 0
    inserted: int = 0

    def plus(self, *, deleted: int = 0, updated: int = 0, inserted: int = 0) -> Counts:
        """These and more."""
        return Counts(deleted=self.deleted + deleted, updated=self.updated + updated, inserted=self.inserted + inserted)


class Evaluated(msgspec.Struct, frozen=True):
    """What an operation wrote, ready to be committed, and how to delete it."""

    changes: Changes
    counts: Counts
    discard: Callable[[], None]


class Evaluate(Protocol):
    """An operation: from the rows of a snapshot, all of which are in these splits, to changes."""

    def __call__(self, snapshot: Snapshot | None, splits: Sequence[Split]) -> Evaluated: ...


class Attempts:
    """One call of a verb.

    `predicate`: only rows for which it may be true matter; bound to the schema.

    Attributes:
        request: what is read.
    """

    def __init__(self, root: TableRoot, schema: TableSchema, predicate: Predicate | None, operation: str) -> None:
        self._root = root
        self._schema = schema
        self.request = Request(schema=_all_levels(schema), columns=schema.names, predicate=predicate)
        self._operation = operation

    def run(self, evaluate: Evaluate) -> RowsResult:
        """Evaluate and publish.

        Raises:
            CommitConflictError: others were faster every time; nothing was changed.
            CommitUnknownError: the snapshot may have been published; no file was deleted.
            Whatever reading and writing raise; then nothing was changed and no file is left behind.
        """

        def work(snapshot: Snapshot | None, number: int) -> RowsResult:
            return msgspec.structs.replace(self._round(snapshot, evaluate), rounds=number)

        return on_latest(self._root, work, rounds=ROUNDS)

    def _round(self, snapshot: Snapshot | None, evaluate: Evaluate) -> RowsResult:
        splits = self._splits(snapshot)
        require_known(self._root, self._schema, (file for split in splits for file in split.files))
        found = evaluate(snapshot, splits)
        changes, counts = found.changes, found.counts
        if changes.is_empty:
            return _result(CommitResult(), changes, counts)
        check = _Check(snapshot, splits, self._splits, self._between, keyed=bool(self._schema.primary_keys))
        try:
            result = commit(
                self._root, self._schema, changes, CommitRequest(operation=self._operation, check=check),
                renumber=lambda bucket, offset: renumber(self._root, self._schema, bucket, offset),
            )  # fmt: skip
        except CommitUnknownError:
            raise
        except PaimonError:  # anything else, a Ctrl-C say, may come after publication: then the files stay
            found.discard()
            raise
        return _result(result, changes, counts)

    def _splits(self, snapshot: Snapshot | None) -> tuple[Split, ...]:
        return () if snapshot is None else plan_snapshot(self._root, self.request, snapshot).splits

    def _between(self, first: int, last: int) -> Iterable[Snapshot | None]:
        return (self._root.snapshots.find(number) for number in range(first, last))


class _Check:
    """Whether an operation would read the same in the latest snapshot."""

    def __init__(
        self,
        base: Snapshot | None,
        splits: Sequence[Split],
        plan: Callable[[Snapshot | None], Sequence[Split]],
        between: Callable[[int, int], Iterable[Snapshot | None]],
        *,
        keyed: bool,
    ) -> None:
        self._base_id = 0 if base is None else base.id
        self._known = _read(splits)
        self._plan = plan
        self._between = between
        self._keyed = keyed

    def __call__(self, latest: Snapshot | None) -> Conflict | None:
        """None if it would."""
        if latest is None or latest.id == self._base_id:
            return None
        if self._keyed and self._only_compacted(latest):
            return None
        return None if _read(self._plan(latest)) == self._known else _OVERTAKEN

    def _only_compacted(self, latest: Snapshot) -> bool:
        """Whether nothing but compactions came between, which change no row; what was written names no old file."""
        between = [*self._between(self._base_id + 1, latest.id), latest]
        return all(snapshot is not None and snapshot.commit_kind is CommitKind.COMPACT for snapshot in between)


def _read(splits: Iterable[Split]) -> frozenset[tuple[object, ...]]:
    """The files of splits with their dead rows."""
    return frozenset(
        (split.partition, split.bucket, file.level, file.name, split.deletions.get(file.name))
        for split in splits
        for file in split.files
    )


def _all_levels(schema: TableSchema) -> TableSchema:
    """The schema of reads that see rows no compaction has seen: an operation must not pass over them."""
    return msgspec.structs.replace(schema, options={**schema.options, "deletion-vectors.merge-on-read": "true"})


def _result(result: CommitResult, changes: Changes, counts: Counts) -> RowsResult:
    return RowsResult(
        snapshot_id=result.snapshot_id,
        snapshot_ids=result.snapshot_ids,
        deleted=counts.deleted,
        updated=counts.updated,
        inserted=counts.inserted,
        files_added=result.file_count,
        files_removed=sum(len(bucket.deleted_files) for bucket in changes.buckets),
    )
