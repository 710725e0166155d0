"""`backfill`: fills NULL columns from other columns, some ranges of rows per commit.

If a call is interrupted, the committed ranges stay filled; the next call finds the values that are still NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.arguments import check_progress
from paimon_py.codec.columns import Mask, numpy_values, validity_mask
from paimon_py.errors import UsageError
from paimon_py.expr.arrow import Filter
from paimon_py.expr.bind import all_of, bind, predicate_of
from paimon_py.expr.column import col
from paimon_py.expr.predicate import Predicate
from paimon_py.expr.references import columns_of
from paimon_py.files.physical import DATA_EVOLUTION, evolves_columns, with_row_ids
from paimon_py.metadata.open_table import OpenTable
from paimon_py.progress import Progress
from paimon_py.rows.decide import UPDATE, Decision, UpdateWhere
from paimon_py.rows.result import RowsResult
from paimon_py.rows.rules import check_assigned, check_updatable
from paimon_py.rows.values import Assignment, Scope, assignments
from paimon_py.rows.variant_parts import bind_with_parts, filter_of, without_parts
from paimon_py.rows.verbs import Work, columns_set, run, written_columns
from paimon_py.scan.plan_snapshot import plan_snapshot
from paimon_py.scan.request import Request
from paimon_py.scan.split import Section
from paimon_py.spec.commit_label import NO_LABEL, CommitLabel
from paimon_py.spec.schema import ROW_ID, TableSchema

COMMIT_BYTES = 1 << 30
"""The maximum file size of the rows in one commit; a larger range is filled in its own commit."""


def backfill(
    table: OpenTable, values: Mapping[str, object], where: Predicate | str | None, label: CommitLabel,
    progress: Progress | None,
) -> RowsResult:  # fmt: skip
    """Set columns of the rows in which all of them are NULL.

    `label`: of the last commit; earlier ones have no number, so that a repeated call continues after them.

    Raises: as `rows.verbs.update`; earlier commits stay.
    """
    check_progress(progress)
    check_updatable(table.schema, "backfill")
    if not evolves_columns(table.schema):
        raise UsageError(
            f"backfill fills columns of tables that were made with {DATA_EVOLUTION!r} = 'true'; elsewhere update does"
        )
    if not isinstance(values, Mapping) or not values:
        raise UsageError(f'backfill takes the columns to fill and their values, {{"c": col("a")}}, not {values!r}')
    check_assigned(table.schema, values, "backfill")
    fill = _Fill(table.schema, values, where)
    total = RowsResult()
    chunks = list(_chunks(table, fill.condition))
    whole, done = sum(rows for _, _, rows in chunks), 0
    earlier = label if label.identifier is None else NO_LABEL
    for number, (first, last, rows) in enumerate(chunks, 1):
        tell = None if progress is None else _Later(progress, done, whole)
        own = label if number == len(chunks) else earlier
        total = _sum(total, run(table, fill.work(first, last), label=own, progress=tell))
        done += rows
    return total


class _Fill:
    """The values to set, and the condition."""

    def __init__(self, schema: TableSchema, values: Mapping[str, object], where: Predicate | str | None) -> None:
        self._schema = schema
        self._fields = with_row_ids(schema).fields
        self._scope = Scope(schema.fields)
        self._values = assignments(schema.fields, values, self._scope)
        self._sets, self._needs = columns_set(schema, [self._values], lambda names: names)
        empty = [col(name).is_null() for name in self._sets]
        parts = empty if where is None else [*empty, predicate_of(where)]
        self._chosen = all_of(bind_with_parts(part, self._fields) for part in parts)
        self.condition = without_parts(self._chosen)

    def work(self, first: int, last: int) -> Work:
        """The work for the rows with ids from the first to the last."""
        ids = bind(col(ROW_ID).between(first, last), self._fields)
        predicate = all_of([self._chosen, ids])
        names = columns_of(predicate) | self._needs
        narrow = written_columns(self._schema, self._sets)

        def operations() -> list[FillWhere]:
            return [FillWhere(filter_of(predicate), names, narrow, self._values, self._scope)]

        return Work(all_of([self.condition, ids]), operations, "UPDATE", sets=self._sets, needs=self._needs)


class FillWhere(UpdateWhere):
    """An `Operation` that sets columns of the rows that match a condition, if one of the new values is not NULL."""

    def __init__(
        self, mask: Filter, names: frozenset[str], schema: TableSchema, values: Sequence[Assignment], scope: Scope
    ) -> None:
        super().__init__(mask, names, schema, values, scope)
        self._chosen = mask

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Decide to update the rows that get a value."""
        actions = np.zeros(batch.num_rows, np.int8)
        rows = np.flatnonzero(numpy_values(self._chosen(batch)))
        if len(rows):
            chosen = batch.take(pa.array(rows))
            columns = self._scope.columns(chosen, None)
            known: Mask = np.zeros(len(rows), np.bool_)
            for each in self._values:
                known |= validity_mask(each.value(columns, len(rows)))
            actions[rows[known]] = UPDATE
        return Decision(actions)


class _Later:
    """Reports the progress of work that follows other work."""

    def __init__(self, progress: Callable[[int, int, str], object], done: int, whole: int) -> None:
        self._progress, self._done, self._whole = progress, done, whole

    def __call__(self, done: int, total: int, what: str) -> None:
        self._progress(min(self._done + done, self._whole), max(self._whole, total), what)


def _chunks(table: OpenTable, condition: Predicate) -> Iterator[tuple[int, int, int]]:
    """The first and last row id and the row count of every commit's range."""
    snapshot = table.root.latest()
    if snapshot is None:
        return
    request = Request(schema=with_row_ids(table.schema), columns=(), predicate=condition)
    splits = plan_snapshot(table.root, request, snapshot).splits
    held: list[Section] = []
    for section in sorted((section for split in splits for section in split.sections), key=_first):
        if held and sum(map(_bytes, held)) + _bytes(section) > COMMIT_BYTES:
            yield _span(held)
            held = []
        held.append(section)
    if held:
        yield _span(held)


def _first(section: Section) -> int:
    first = section.files[0].first_row_id
    assert first is not None
    return first


def _bytes(section: Section) -> int:
    return sum(file.size_bytes for file in section.files)


def _span(sections: Sequence[Section]) -> tuple[int, int, int]:
    last = sections[-1]
    rows = sum(section.counted_files[0].row_count for section in sections)
    return _first(sections[0]), _first(last) + last.counted_files[0].row_count - 1, rows


def _sum(one: RowsResult, other: RowsResult) -> RowsResult:
    """The sum of two results, the second after the first."""
    if other.snapshot_id is None:
        return one
    return msgspec.structs.replace(
        other,
        before=other.before if one.snapshot_id is None else one.before,
        snapshot_ids=(*one.snapshot_ids, *other.snapshot_ids),
        updated=one.updated + other.updated,
        files_added=one.files_added + other.files_added,
        rounds=max(one.rounds, other.rounds),
    )
