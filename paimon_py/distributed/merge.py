"""Merges of rows that several processes hold: each merges its share, and one commit contains all of them."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

import pyarrow as pa

from paimon_py.distributed.commits import discard_changes
from paimon_py.distributed.routing import writers_of
from paimon_py.rows import verbs
from paimon_py.rows.clauses import MergeClauses, as_clauses, join_keys, keeps_keys
from paimon_py.rows.evaluation import RowOutput
from paimon_py.rows.result import RowsResult
from paimon_py.rows.row_tasks import RowTaskResult, evaluation_of, groups_of
from paimon_py.rows.rules import check_one_process
from paimon_py.scan.split import Split
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.commit_label import CommitLabel
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Snapshot
from paimon_py.spec.visibility import waits_for_writers
from paimon_py.table.table import Table
from paimon_py.write.dynamic import AssignedKeys

_PROCESS_BYTES = 256 << 20
"""Files that one process merges, unless the number of processes is given."""

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
        rows of that bucket. If the buckets of source rows are neither known nor assigned in a first step, one process
        merges all.
        """
        schema = self._table.schema
        is_routed = bucket_mode(schema) is BucketMode.FIXED and self._is_by_key
        return writers_of(schema, wanted) if is_routed or self.takes_two_steps(wanted) else 1

    @property
    def spreads(self) -> bool:
        """Whether several processes can merge if each of them has all rows of the source (`spread_merge.py`).

        Where rows are inserted, the process that has to write a row must be known by its key: in append tables without
        buckets it is any; in tables with a primary key it is that of the bucket or, with dynamic buckets, the one whose
        share contains the key (`writes_apart`). Merges by the primary key of fixed buckets, and those that
        `takes_two_steps` is about, are not spread: source rows are sent to their buckets.
        """
        schema = self._table.schema
        mode = bucket_mode(schema)
        if mode is BucketMode.CROSS_PARTITION:
            return not self.inserts
        if mode is BucketMode.FIXED and schema.primary_keys and self._is_by_key:
            return False
        if not self.inserts or mode is BucketMode.NONE or self.writes_apart:
            return True
        return mode is BucketMode.DYNAMIC and not waits_for_writers(schema)

    @property
    def writes_apart(self) -> bool:
        """Whether a merge that is spread has a step of its own that writes: `NewRowsPart` and `BucketsPart` in place of
        `InsertPart`.
        """
        return self.inserts and writes_apart(self._table.schema, self._on, self._clauses)

    @property
    def assigns_apart(self) -> bool:
        """Whether rows are also assigned to buckets in a step of their own: `AssignRowsPart` and `AssignedBucketsPart`
        in place of `BucketsPart`; `assigned_rows` checks the results.

        That is for dynamic buckets whose readers wait for the compaction of writers: a bucket needs one writer.
        """
        schema = self._table.schema
        return self.writes_apart and bucket_mode(schema) is BucketMode.DYNAMIC and waits_for_writers(schema)

    def takes_two_steps(self, wanted: int) -> bool:
        """Whether source rows are assigned to buckets in one step, and merged in another: `AssignedMergePart`.

        That is for inserts on the primary key of dynamic buckets whose readers wait for the compaction of writers.
        """
        schema = self._table.schema
        is_by_key = bucket_mode(schema) is BucketMode.DYNAMIC and self._is_by_key
        return is_by_key and self.inserts and waits_for_writers(schema) and writers_of(schema, wanted) > 1

    @property
    def inserts(self) -> bool:
        """Whether source rows may be inserted: then a merge that is spread has a second step."""
        return bool(as_clauses(self._clauses.insert, "when_not_matched_insert"))

    @property
    def _is_by_key(self) -> bool:
        return is_by_key(self._table.schema, self._on, self._clauses)

    def divide(self, splits: Sequence[Split], tasks: int | None, most: int) -> list[list[Split]]:
        """The splits of each process, where each has all rows of the source.

        Args:
            tasks: the wanted number of processes; None: one for each 256 MB of files, at most `most`.
        """
        schema = self._table.schema
        groups = groups_of(schema, splits)
        count = -(-sum(split.size_bytes for split in splits) // _PROCESS_BYTES)
        count = min(most, count) if tasks is None else tasks
        is_assigned = self.inserts and bucket_mode(schema) is BucketMode.DYNAMIC
        return pack_groups(groups, writers_of(schema, count) if is_assigned else count)

    def run(self, label: CommitLabel, gather: Gather) -> RowsResult:
        """Merge and commit; if a concurrent commit conflicts, the whole merge is repeated.

        Raises: as `Table.merge`
        """
        table = self._table._open_table

        def evaluate(snapshot: Snapshot | None, splits: Sequence[Split]) -> RowOutput:
            part = MergePart(self._table, snapshot, self._target, self._on, self._clauses)
            return evaluation_of(table, snapshot, map(RowTaskResult.from_bytes, gather(part, splits)))

        empty = self._target.empty_table()
        with verbs.merge_work(table, empty, self._on, self._clauses) as work:
            return verbs.run(table, work._replace(predicate=None), evaluate, label=label)

    def discard(self, done: Iterable[bytes]) -> None:
        """Delete the files that parts wrote for a failed merge."""
        discard_changes(self._table, [RowTaskResult.from_bytes(one).changes for one in done])


def is_by_key(schema: TableSchema, on: object, clauses: MergeClauses) -> bool:
    """Whether source rows change, and become, only rows with their own primary key."""
    own = {field.name: source for source, field in join_keys(schema, on)}
    return set(own) == set(schema.primary_keys) and keeps_keys(clauses, own)


def writes_apart(schema: TableSchema, on: object, clauses: MergeClauses) -> bool:
    """Whether a source row may become a row with another primary key than the row of the table that it matches, so that
    the process of that key must write it.
    """
    mode = bucket_mode(schema)
    if mode is BucketMode.DYNAMIC:
        return not is_by_key(schema, on, clauses)
    return mode is BucketMode.FIXED and bool(schema.primary_keys)


def pack_groups(groups: Sequence[Sequence[Split]], count: int) -> list[list[Split]]:
    """Distribute groups of splits evenly: the largest first, each to the process with the fewest bytes. Pure."""
    sizes = [sum(split.size_bytes for split in group) for group in groups]
    count = max(1, min(count, len(groups)))
    heap = [(0, number) for number in range(count)]
    packed: list[list[Split]] = [[] for _ in range(count)]
    for at in sorted(range(len(groups)), key=lambda at: -sizes[at]):
        size, number = heapq.heappop(heap)
        packed[number] += groups[at]
        heapq.heappush(heap, (size + sizes[at], number))
    return packed


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

    def __call__(
        self, found: Iterator[pa.RecordBatch], work: list[tuple[int, bytes]], assigned: AssignedKeys | None = None
    ) -> Iterator[bytes]:
        """Merge one share.

        Args:
            found: rows of the source.
            work: the splits by their positions; complete once all rows have been taken.
            assigned: the buckets of the source rows, in tables with dynamic buckets; complete likewise.
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
            if assigned is not None:
                assigned.places = frozenset((split.partition, split.bucket) for split in splits)
            done = verbs.evaluator(table, merging, share=assigned)(self.snapshot, splits)
            yield bytes(RowTaskResult(changes=done.changes, counts=done.counts))
