"""Writes and merges whose rows are in other processes: the functions that engine adapters call, besides executors.

An engine that moves rows to processes by itself lets each write or merge its rows there, and takes the bytes of the
results to the process that commits them once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

import pyarrow as pa

from paimon_py.commit.changes import Changes
from paimon_py.commit.commit import committed_before
from paimon_py.commit.result import CommitResult
from paimon_py.commit.uncommitted import discarding_on_failure
from paimon_py.maintain.auto_maintenance import run_auto_maintenance
from paimon_py.maintain.observers import observed_again
from paimon_py.rows import verbs
from paimon_py.rows.clauses import MergeClauses, join_keys
from paimon_py.rows.evaluation import Evaluated
from paimon_py.rows.result import RowsResult
from paimon_py.rows.row_tasks import RowTaskResult, evaluation_of
from paimon_py.rows.rules import check_one_process
from paimon_py.scan.split import Split
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.commit_label import CommitLabel
from paimon_py.spec.snapshot import Snapshot
from paimon_py.table.table import Table
from paimon_py.table.writing import discard


def commit_of(table: Table, label: CommitLabel) -> CommitResult | None:
    """The commit that a user made under a number before; None if there is none. Raises: as `committed_before`"""
    return committed_before(table._open_table, label)


def discard_changes(table: Table, written: Iterable[Changes | bytes]) -> None:
    """Delete the files of changes that nobody will commit, whose writers are gone."""
    for one in written:
        discard(table._open_table, Changes.from_bytes(one) if isinstance(one, bytes) else one)


def commit_changes(
    table: Table, changes: Changes, label: CommitLabel, overwrite: Mapping[str, object] | str | None
) -> CommitResult:
    """Commit what other processes wrote, as `Table.commit` does; the files go if the commit certainly failed."""
    with discarding_on_failure(lambda: discard_changes(table, [changes])):
        return table.commit(changes, user=label.user, identifier=label.identifier, overwrite=overwrite)


Gather = Callable[["MergePart", Sequence[Split]], list[bytes]]
"""Runs a part in each process that has rows of the source, or splits to look at; gives the bytes of all results."""


class DistributedMerge:
    """A merge of rows that several processes have: each merges its share, and one commit has all of them.

    Args:
        verb: of the adapter, for errors.
        target: the columns of the source.
        on, clauses: as in `Table.merge`.

    Attributes:
        keys: the column of the source for each column of the table that rows are found by.
        is_routed: each bucket may be merged by a process of its own, which has the rows of the source that belong to
            the bucket; if not, one process has to merge all.

    Raises: UnsupportedError where files of the same rows must come from one process.
    """

    def __init__(self, verb: str, table: Table, target: pa.Schema, on: object, clauses: MergeClauses) -> None:
        check_one_process(table.schema, verb)
        self._table = table
        self._target = target
        self._on = on
        self._clauses = clauses
        self.keys = {key: field.name for key, field in join_keys(table.schema, on)}
        fixed = bucket_mode(table.schema) is BucketMode.FIXED
        self.is_routed = fixed and set(self.keys.values()) == set(table.schema.primary_keys)

    def run(self, label: CommitLabel, gather: Gather) -> RowsResult:
        """Merge and commit; if others were faster, all is done anew.

        Raises: as `Table.merge`
        """
        table = self._table._open_table

        def evaluate(snapshot: Snapshot | None, splits: Sequence[Split]) -> Evaluated:
            part = MergePart(self._table, snapshot, self._target, self._on, self._clauses)
            return evaluation_of(table, snapshot, map(RowTaskResult.from_bytes, gather(part, splits)))

        empty = self._target.empty_table()
        with verbs.merge_work(table, empty, self._on, self._clauses) as work:
            return verbs.run(table, work._replace(predicate=None), evaluate, label=label)

    def discard(self, done: Iterable[bytes]) -> None:
        """Delete what parts wrote whose merge failed."""
        discard_changes(self._table, [RowTaskResult.from_bytes(one).changes for one in done])


def run_once(table: Table, label: CommitLabel, verb: Callable[[], RowsResult]) -> RowsResult:
    """Carry a verb out, unless its number was committed before; and then the care that the table asks for."""
    done = verbs.once(table._open_table, label, verb)
    if done.already_committed:
        return observed_again(table._open_table, done)
    return run_auto_maintenance(table._open_table, done, of_batch=True)


class MergePart:
    """Runs in another process: rows of the source and splits in, what was written for them out. Can be pickled."""

    def __init__(
        self, table: Table, snapshot: Snapshot | None, target: pa.Schema, on: object, clauses: MergeClauses
    ) -> None:
        self.table = table
        self.snapshot = snapshot
        self.target = target
        self.on = on
        self.clauses = clauses

    def __call__(self, found: Iterator[pa.RecordBatch], work: list[tuple[int, bytes]]) -> Iterator[bytes]:
        """Merge one share.

        Args:
            found: rows of the source.
            work: the splits by their places; all of them when the last rows were taken.
        """
        first = next(found, None)
        by_source = self.clauses.by_source_update is not None or self.clauses.by_source_delete is not None
        if first is None and not (by_source and work):
            return
        rows = chain([] if first is None else [first], found)
        table = self.table._open_table
        reader = pa.RecordBatchReader.from_batches(self.target, rows)
        with verbs.merge_work(table, reader, self.on, self.clauses) as merging:  # has taken all rows
            splits = [Split.from_bytes(data) for _, data in sorted(work)]
            done = verbs.evaluator(table, merging)(self.snapshot, splits)
            yield bytes(RowTaskResult(changes=done.changes, counts=done.counts))
