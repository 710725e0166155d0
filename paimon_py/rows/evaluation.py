"""Evaluates a row operation on the latest snapshot and publishes it; evaluates again after a conflicting commit.

When the snapshot is published, the operation's input must be unchanged: the same files with the same dead rows. Each
operation therefore takes effect as if it ran alone between the previous snapshot and its own. If another commit was
faster, an operation may keep the part of its work that is still valid.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import msgspec

from paimon_py.commit.changes import Changes
from paimon_py.commit.commit import commit
from paimon_py.commit.conflicts import Conflict
from paimon_py.commit.newer_files import require_known
from paimon_py.commit.request import CommitRequest
from paimon_py.commit.result import CommitResult
from paimon_py.commit.rounds import ROUNDS, on_latest
from paimon_py.commit.state import State
from paimon_py.commit.uncommitted import discarding_on_failure
from paimon_py.expr.predicate import Predicate
from paimon_py.files.physical import with_row_ids
from paimon_py.metadata.history import HistoryGap
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.rows.files_read import Files, files_of
from paimon_py.rows.result import RowsResult, of_earlier
from paimon_py.scan.plan_snapshot import plan_snapshot
from paimon_py.scan.request import Request
from paimon_py.scan.split import Split
from paimon_py.spec.commit_label import NO_LABEL, CommitLabel
from paimon_py.spec.snapshot import Base, CommitKind, Snapshot
from paimon_py.storage.store import FileMissingError

_OVERTAKEN = Conflict("others changed files that the operation had read")


class RowCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of changed rows."""

    deleted: int = 0
    updated: int = 0
    inserted: int = 0

    def plus(self, *, deleted: int = 0, updated: int = 0, inserted: int = 0) -> RowCounts:
        """The sum of these counts and more."""
        return RowCounts(
            deleted=self.deleted + deleted, updated=self.updated + updated, inserted=self.inserted + inserted
        )


class RowOutput(msgspec.Struct, frozen=True):
    """The output of an operation, ready to be committed, and how to delete it.

    `carry_on`: adapts the output to a later snapshot, given its splits and the files that were already processed.
    Returns None if the operation must be evaluated from scratch. In that case, and if it raises, everything is deleted.
    """

    changes: Changes
    counts: RowCounts
    discard: Callable[[], None]
    carry_on: Callable[[Snapshot, Sequence[Split], Files], RowOutput | None]


@contextlib.contextmanager
def undone_by(discard: Callable[[], None], root: TableRoot, snapshot: Snapshot | None) -> Iterator[None]:
    """Delete the output if the block fails. Raises: SnapshotExpiredError if files of the snapshot are gone."""
    try:
        yield
    except FileMissingError as error:
        discard()
        raise root.missing(Base.of(snapshot), error) from error
    except BaseException:
        discard()
        raise


class Evaluator(Protocol):
    """An operation: computes changes from splits that contain all rows of a snapshot."""

    def __call__(self, snapshot: Snapshot | None, splits: Sequence[Split]) -> RowOutput: ...


class Evaluation:
    """One call of a row operation.

    `predicate`: true for all rows that matter; bound to the schema.

    Attributes:
        request: what to read.
    """

    def __init__(
        self, table: OpenTable, predicate: Predicate | None, operation: str,
        label: CommitLabel = NO_LABEL,
    ) -> None:  # fmt: skip
        self._table = table
        self._root = table.root
        self._schema = table.schema
        shown = with_row_ids(table.schema)
        self.request = Request(schema=shown, columns=table.schema.names, predicate=predicate, every_level=True)
        self._operation = operation
        self._label = label
        self._held: tuple[RowOutput, Files] | None = None
        self._planned: tuple[Snapshot, tuple[Split, ...]] | None = None

    def run(self, evaluate: Evaluator) -> RowsResult:
        """Evaluate and publish.

        Raises:
            CommitConflictError: other commits were always faster; nothing was changed.
            CommitUnknownError: the snapshot may have been published; no file was deleted.
                The errors of reading and writing; nothing was changed and all written files are deleted.
        """

        def work(snapshot: Snapshot | None, number: int) -> RowsResult:
            return msgspec.structs.replace(self._round(snapshot, evaluate), rounds=number)

        try:
            return on_latest(self._root, work, rounds=ROUNDS)
        finally:
            self._discard_held()

    def _round(self, snapshot: Snapshot | None, evaluate: Evaluator) -> RowsResult:
        if snapshot is not None:
            self._root.schemas.require_own(snapshot, self._schema)
        splits = self._splits(snapshot)
        require_known(self._table, (file for split in splits for file in split.files))
        found = self._carried_on(snapshot, splits) or evaluate(snapshot, splits)
        changes, counts = found.changes, found.counts
        if changes.is_empty:
            return _result(CommitResult(), changes, counts)
        known = files_of(splits)
        check = _Check(snapshot, known, self._splits, keyed=bool(self._schema.primary_keys))
        request = CommitRequest(label=self._label, operation=self._operation, check=check, is_new=True)
        with discarding_on_failure(lambda: self._overtaken(found, known) if check.has_failed else found.discard()):
            result = commit(self._table, changes, request)
        return _result(result, changes, counts)

    def _overtaken(self, found: RowOutput, known: Files) -> None:
        """Keep the output, so that the next round may adapt it."""
        self._held = found, known

    def _carried_on(self, snapshot: Snapshot | None, splits: Sequence[Split]) -> RowOutput | None:
        """The output of the previous round, adapted to the snapshot; None if it must be evaluated from scratch."""
        if self._held is None or snapshot is None:
            self._discard_held()
            return None
        (found, known), self._held = self._held, None
        return found.carry_on(snapshot, splits, known)

    def _discard_held(self) -> None:
        """Delete the output of an unsuccessful round."""
        if self._held is not None:
            found, self._held = self._held[0], None
            found.discard()

    def _splits(self, snapshot: Snapshot | None) -> tuple[Split, ...]:
        """The splits of a snapshot; the last result is cached, because the next round often needs the same."""
        if snapshot is None:
            return ()
        if self._planned is None or self._planned[0] != snapshot:
            self._planned = snapshot, plan_snapshot(self._root, self.request, snapshot).splits
        return self._planned[1]


class _Check:
    """Whether the operation would read the same in the latest snapshot.

    Attributes:
        has_failed: the last check found a difference.
    """

    def __init__(
        self,
        base: Snapshot | None,
        known: Files,
        plan: Callable[[Snapshot | None], Sequence[Split]],
        *,
        keyed: bool,
    ) -> None:
        self._base = base
        self._known = known
        self._plan = plan
        self._keyed = keyed
        self.has_failed = False

    def __call__(self, state: State) -> Conflict | None:
        """A conflict if the operation would read something else in the latest snapshot."""
        self.has_failed = not self._holds(state)
        return _OVERTAKEN if self.has_failed else None

    def _holds(self, state: State) -> bool:
        latest = state.latest
        if latest is None or latest == self._base:
            return True
        return (self._keyed and self._only_compacted(state)) or files_of(self._plan(latest)) == self._known

    def _only_compacted(self, state: State) -> bool:
        """Whether all commits in between were compactions, which change no row; the output has no old file."""
        history = state.snapshot_log.after(Base.of(self._base), state.latest)
        if isinstance(history, HistoryGap):
            return False
        return {one.commit_kind for one in history.snapshots} == {CommitKind.COMPACT}


def _result(result: CommitResult, changes: Changes, counts: RowCounts) -> RowsResult:
    if result.already_committed:
        return of_earlier(result)
    return RowsResult(
        snapshot_id=result.snapshot_id,
        snapshot_ids=result.snapshot_ids,
        before=result.before,
        deleted=counts.deleted,
        updated=counts.updated,
        inserted=counts.inserted,
        files_added=result.file_count,
        files_removed=sum(len(bucket.written.deleted) for bucket in changes.buckets),
    )
