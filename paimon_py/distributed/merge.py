"""Merges of rows that several processes hold: each merges its share, and one commit contains all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

import pyarrow as pa

from paimon_py.distributed.commits import discard_changes
from paimon_py.distributed.routing import writers_of
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

Gather = Callable[["MergePart", Sequence[Split]], list[bytes]]
"""Runs a part in each process that has rows of the source or splits to read; returns the bytes of all results."""


class DistributedMerge:
    """A merge of rows that several processes hold: each merges its share, and one commit contains all of them.

    Args:
        verb: the name of the adapter's function, for errors.
        target: the columns of the source.
        on, clauses: as in `Table.merge`.

    Attributes:
        keys: the column of the source for each column of the table by which rows are matched.

    Raises: UnsupportedError where files of the same rows must come from one process.
    """

    def __init__(self, verb: str, table: Table, target: pa.Schema, on: object, clauses: MergeClauses) -> None:
        check_one_process(table.schema, verb)
        self._table = table
        self._target = target
        self._on = on
        self._clauses = clauses
        self.keys = {key: field.name for key, field in join_keys(table.schema, on)}

    def parts(self, wanted: int) -> int:
        """The number of processes that merge, at most `wanted`: each bucket is merged by the process with the source
        rows of that bucket. If the buckets of source rows are not known, one process merges all.
        """
        schema = self._table.schema
        is_routed = bucket_mode(schema) is BucketMode.FIXED and set(self.keys.values()) == set(schema.primary_keys)
        return writers_of(schema, wanted) if is_routed else 1

    def run(self, label: CommitLabel, gather: Gather) -> RowsResult:
        """Merge and commit; if a concurrent commit conflicts, the whole merge is repeated.

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
        """Delete the files that parts wrote for a failed merge."""
        discard_changes(self._table, [RowTaskResult.from_bytes(one).changes for one in done])


class MergePart:
    """Runs in another process: takes source rows and splits, returns what was written. Can be pickled."""

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
            work: the splits by their positions; complete once all rows have been taken.
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
