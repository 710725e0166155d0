"""`delete`, `update`, `upsert` and `merge`: from the arguments of a call to a result."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.arguments import check_progress
from paimon_py.commit.commit import committed_before
from paimon_py.errors import UsageError
from paimon_py.expr.bind import all_of, any_of, bind, predicate_of
from paimon_py.expr.column import col
from paimon_py.expr.predicate import Constant, Predicate
from paimon_py.expr.references import columns_of
from paimon_py.files.layout import write_again
from paimon_py.files.physical import evolves_columns, with_row_ids
from paimon_py.metadata.idle_warning import warn_of_idle_options
from paimon_py.metadata.open_table import OpenTable
from paimon_py.progress import Progress, ProgressCounter
from paimon_py.rows.append import AppendRows
from paimon_py.rows.by_row_id import SetRows
from paimon_py.rows.clauses import MergeClauses, clauses_of, join_keys
from paimon_py.rows.column_rows import ColumnRows, ColumnWork
from paimon_py.rows.decide import DeleteWhere, Operation, UpdateWhere
from paimon_py.rows.evaluation import Evaluation, Evaluator, RowOutput
from paimon_py.rows.keyed import KeyedRows, RowSink
from paimon_py.rows.merging import MergeBlock
from paimon_py.rows.result import RowsResult, of_earlier
from paimon_py.rows.row_values import RowValues
from paimon_py.rows.rules import check_assigned, check_deletable, check_updatable
from paimon_py.rows.same_cells import require_same_cells
from paimon_py.rows.source import Source
from paimon_py.rows.values import Assignment, Scope, assignments
from paimon_py.rows.variant_parts import bind_with_parts, filter_of, without_parts
from paimon_py.scan.split import Split
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.commit_label import CommitLabel
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Snapshot
from paimon_py.spec.type_text import contains
from paimon_py.spec.types import Atomic, DataType, Field, Root
from paimon_py.write.dynamic import BucketCursor, GivenBuckets, Share
from paimon_py.write.streams import with_blob_bytes

_TIMES = (Root.TIMESTAMP, Root.TIMESTAMP_LTZ)
_SOURCE_MAX = 256 << 20
_FEW = 200


class Work(NamedTuple):
    """A validated operation: its effect on rows, independent of where they are evaluated.

    Attributes:
        predicate: true for all rows that can change; None: all.
        operations: returns the passes over the rows; can be called repeatedly.
        name: the operation as recorded in the snapshot.
        alone: there is only one pass.
        passes: the number of passes.
        adds_rows: whether rows may be inserted.
        sets, needs: for tables that store columns in several files, see `ColumnWork`.
    """

    predicate: Predicate | None
    operations: Callable[[], Iterable[Operation]]
    name: str
    alone: bool = True
    passes: int = 1
    adds_rows: bool = False
    sets: tuple[str, ...] = ()
    needs: frozenset[str] = frozenset()


def once(table: OpenTable, label: CommitLabel, verb: Callable[[], RowsResult]) -> RowsResult:
    """Run an operation unless its user has already committed the number; then no row is read.

    Raises: as `committed_before`
    """
    known = committed_before(table, label)
    return verb() if known is None else of_earlier(known)


def delete(
    table: OpenTable, where: Predicate | str, label: CommitLabel, progress: Progress | None = None
) -> RowsResult:
    """Delete the rows that match a condition."""
    check_progress(progress)
    return run(table, delete_work(table.schema, where), label=label, progress=progress)


def update(
    table: OpenTable, where: Predicate | str, values: Mapping[str, object], label: CommitLabel,
    progress: Progress | None = None,
) -> RowsResult:
    """Set columns of the rows that match a condition."""
    check_progress(progress)
    return run(table, update_work(table.schema, where, values), label=label, progress=progress)


def merge(
    table: OpenTable, data: object, on: object, asked: MergeClauses, *, label: CommitLabel,
    verb: str = "merge", progress: Progress | None = None,
) -> RowsResult:
    """Change rows by those of a source, and insert others."""
    check_progress(progress)
    with merge_work(table, data, on, asked, verb=verb) as work:
        return run(table, work, label=label, progress=progress)


def delete_work(schema: TableSchema, where: Predicate | str) -> Work:
    """The work of `delete`.

    Raises: UsageError
    """
    check_deletable(schema)
    predicate = _bind(schema, where, "delete")
    operation = DeleteWhere(filter_of(predicate), columns_of(predicate))
    return Work(without_parts(predicate), lambda: [operation], "DELETE")


def update_work(schema: TableSchema, where: Predicate | str, values: Mapping[str, object]) -> Work:
    """The work of `update`.

    Raises: UsageError
    """
    check_updatable(schema, "update")
    if not isinstance(values, Mapping) or not values:
        raise UsageError(f'update takes the columns to set and their values, {{"c": 1}}, not {values!r}')
    check_assigned(schema, values, "update")
    scope = Scope(schema.fields)
    found = assignments(schema.fields, values, scope)
    predicate = _bind(schema, where, "update")
    sets, needs = columns_set(schema, [found], lambda names: names)
    operation = UpdateWhere(filter_of(predicate), columns_of(predicate), written_columns(schema, sets), found, scope)
    return Work(without_parts(predicate), lambda: [operation], "UPDATE", sets=sets, needs=needs)


@contextmanager
def merge_work(
    table: OpenTable, data: object, on: object, asked: MergeClauses, *, verb: str = "merge"
) -> Iterator[Work]:
    """The work of `merge`, valid inside the block: the source is held in memory or on local disk.

    Raises: UsageError, SchemaError
    """
    check_updatable(table.schema, verb)
    keys = join_keys(table.schema, on)
    data = with_blob_bytes(table, data)
    source = Source(data, keys, table.root.env.spill, source_limit(table.schema), table.schema.fields)
    names = {field.name for _, field in keys}
    unique = verb == "upsert" or (bool(table.schema.primary_keys) and names == set(table.schema.primary_keys))
    clauses = clauses_of(table.schema, source.schema, keys, asked, unique=unique, verb=verb)
    if clauses.deletes:
        check_deletable(table.schema)
    try:
        source.load()
        apart = clauses.unmatched_where
        predicate = None if apart == Constant(True) else reach(table.schema, source, keys)
        predicate = None if predicate is None else any_of([predicate, apart])
        setting = [each.values for each in (*clauses.matched, *clauses.unmatched) if each.values is not None]
        sets, needs = columns_set(table.schema, setting, clauses.both.target_columns)
        shown = written_columns(table.schema, sets)
        blocks = lambda: (MergeBlock(shown, clauses, source, number) for number in range(source.blocks))  # noqa: E731
        alone, count = source.blocks == 1, source.blocks
        adds = bool(clauses.inserts)
        yield Work(predicate, blocks, "MERGE", alone, count, adds, sets, needs)
    finally:
        source.close()


def columns_set(
    schema: TableSchema,
    clauses: Sequence[Sequence[Assignment]],
    meant: Callable[[frozenset[str]], frozenset[str]],
) -> tuple[tuple[str, ...], frozenset[str]]:
    """The columns that clauses set, in order, and those that values depend on or that some clause does not change.

    `meant`: the columns of the table among the names in a value.
    """
    each = [{one.field.name for one in values} for values in clauses]
    sets = frozenset().union(*each)
    needs = {name for own in each for name in sets - own}
    for one in itertools.chain.from_iterable(clauses):
        needs |= set(schema.names) if one.names is None else meant(one.names)
    return tuple(name for name in schema.names if name in sets), frozenset(needs)


def written_columns(schema: TableSchema, sets: Sequence[str]) -> TableSchema:
    """The schema of the columns that an operation writes for updated rows."""
    if not evolves_columns(schema):
        return schema
    return msgspec.structs.replace(schema, fields=tuple(field for field in schema.fields if field.name in sets))


def update_rows(
    table: OpenTable, data: object, snapshot_id: int | None, label: CommitLabel,
    progress: Progress | None = None,
) -> RowsResult:  # fmt: skip
    """Set columns of rows that are identified by row ids. `snapshot_id`: the state that was read for them."""
    check_progress(progress)
    check_updatable(table.schema, "update_rows")
    read = None if snapshot_id is None else table.root.snapshots.get(snapshot_id)
    with closing(RowValues(table, with_blob_bytes(table, data))) as given:
        check_assigned(table.schema, given.names, "update_rows")
        predicate = bind(given.reach, with_row_ids(table.schema).fields)
        work = Work(predicate, lambda: [SetRows(given)], "UPDATE", sets=given.names)
        plain = evaluator(table, work, progress)

        def evaluate(snapshot: Snapshot | None, splits: Sequence[Split]) -> RowOutput:
            if read is not None:
                require_same_cells(table, given, read, snapshot)
            return plain(snapshot, splits)

        return run(table, work, evaluate, label=label)


def upsert(
    table: OpenTable, data: object, on: object, label: CommitLabel,
    progress: Progress | None = None,
) -> RowsResult:
    """Replace the rows that have the keys of the data, and insert the others."""
    if on is None:
        raise UsageError('upsert needs on=["k"], the columns to find rows by: the table has no primary key')
    clauses = MergeClauses(matched_update=True, insert=True)
    return merge(table, data, on, clauses, label=label, verb="upsert", progress=progress)


def run(
    table: OpenTable, work: Work, evaluate: Evaluator | None = None, *,
    label: CommitLabel, progress: Progress | None = None,
) -> RowsResult:
    """Evaluate work on the latest snapshot and publish the changes.

    Args:
        evaluate: evaluates the work; None: in this process.
        progress: called with the rows that this process has read.

    Raises: as `Evaluation.run`
    """
    table.root.store.require_new(table.root.path)
    warn_of_idle_options(table.root, table.schema.options)
    evaluation = Evaluation(table, work.predicate, work.name, label)
    return evaluation.run(evaluate or evaluator(table, work, progress))


def evaluator(
    table: OpenTable, work: Work, progress: Progress | None = None, *, share: Share | GivenBuckets | None = None,
    sink: RowSink | None = None,
) -> Evaluator:  # fmt: skip
    """The evaluation of work in this process. `share`, `sink`: as for `KeyedRows`."""
    request = Evaluation(table, work.predicate, work.name).request
    attempts = itertools.count(1)

    def evaluate(snapshot: Snapshot | None, splits: Sequence[Split]) -> RowOutput:
        if not _keeps_times(work, table.schema):
            return evaluate_as(table.schema, snapshot, splits)
        return write_again(table.schema, lambda schema: evaluate_as(schema, snapshot, splits))

    def evaluate_as(schema: TableSchema, snapshot: Snapshot | None, splits: Sequence[Split]) -> RowOutput:
        only = list(work.operations()) if work.alone else None
        passes = work.operations if only is None else lambda: only
        count = work.passes * sum(split.row_count for split in splits)
        tally = ProgressCounter(progress, count, "rows", steps=3, attempt=next(attempts))
        if schema.primary_keys:
            moves = bucket_mode(schema) is BucketMode.CROSS_PARTITION
            given = BucketCursor() if moves and not work.adds_rows else share
            uses = work.needs.union(work.sets)
            rows = KeyedRows(table.root, request, schema, passes, tally, given, sink, uses=uses)
            return rows.evaluate(snapshot, splits)
        if evolves_columns(schema):
            columns = ColumnWork(work.predicate, passes, work.sets, work.needs)
            return ColumnRows(table, columns, alone=work.alone, tally=tally).evaluate(snapshot, splits)
        opened = OpenTable(table.root, schema)
        return AppendRows(opened, work.predicate, passes, alone=work.alone, tally=tally).evaluate(snapshot, splits)

    return evaluate


def _keeps_times(work: Work, schema: TableSchema) -> bool:
    """Whether all times in the rows of the work are those that the table has already."""
    given = [field.type for field in schema.fields if field.name in work.sets]
    sets_times = not given or any(contains(kind, _is_time) for kind in given)
    return work.name == "DELETE" or (work.name == "UPDATE" and not sets_times)


def _is_time(kind: DataType) -> bool:
    return isinstance(kind, Atomic) and kind.root in _TIMES


def source_limit(schema: TableSchema) -> int:
    """The maximum size of a source in memory, in bytes."""
    return max(1, min(Options(schema.options).get_memory("write-buffer-size"), _SOURCE_MAX))


def reach(schema: TableSchema, source: Source, keys: Sequence[tuple[str, Field]]) -> Predicate | None:
    """A condition that all rows with a key of the source meet; None if there is none."""
    values: list[list[pa.Array]] = [[] for _ in keys]
    for number in range(source.blocks):
        for found, key in zip(values, source.keys(source.block(number)), strict=True):
            if _is_ordered(key.type):
                distinct = key.unique().drop_null()
                found.append(distinct if source.blocks == 1 or not len(distinct) else _ends(distinct))
    parts = []
    for (_, field), found in zip(keys, values, strict=True):
        if found:
            known = pa.concat_arrays(found)
            few = not len(known) or (source.blocks == 1 and len(known) <= _FEW)
            limits = col(field.name).isin(list(known)) if few else col(field.name).between(*_ends(known))
            parts.append(bind(limits, schema.fields))
    return all_of(parts) if parts else None


def _bind(schema: TableSchema, where: object, verb: str) -> Predicate:
    if where is None:
        raise UsageError(f'{verb} needs a condition such as col("a") > 3; "true" takes all rows')
    return bind_with_parts(predicate_of(where), with_row_ids(schema).fields)


def _ends(values: pa.Array) -> pa.Array:
    """The minimum and the maximum."""
    ends = pc.min_max(values)
    return pa.concat_arrays([pa.repeat(ends["min"], 1), pa.repeat(ends["max"], 1)])


def _is_ordered(kind: pa.DataType) -> bool:
    """Whether Arrow orders the values of a type in the same way as filters."""
    return bool(pa.types.is_signed_integer(kind) or pa.types.is_date(kind) or pa.types.is_string(kind))
