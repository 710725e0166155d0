"""Upserts whose data lack columns: existing rows are looked up by key, and the missing values are written again.

The data are read once and kept like the source of a merge; keys are looked up in key order and in groups, so that each
file is read once or twice. The result is valid for the previous snapshot, as for other row operations.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_field, to_arrow_schema
from paimon_py.codec.columns import Ints, Mask, combine, from_numpy, numpy_values
from paimon_py.codec.python_values import value_text
from paimon_py.errors import SchemaError
from paimon_py.files.physical import KIND_FIELD
from paimon_py.lookup.keys import RequestedKeys
from paimon_py.lookup.lookups import Lookups
from paimon_py.metadata.idle_warning import warn_of_idle_options
from paimon_py.metadata.open_table import OpenTable
from paimon_py.progress import Progress, ProgressCounter
from paimon_py.rows.evaluation import Evaluation, RowCounts, RowOutput
from paimon_py.rows.files_read import Files, changed_buckets
from paimon_py.rows.keys_written import late_keys
from paimon_py.rows.live_keys import live_keys
from paimon_py.rows.matches import Probe
from paimon_py.rows.missing_columns import MissingColumn
from paimon_py.rows.result import RowsResult
from paimon_py.rows.rules import check_updatable
from paimon_py.rows.source import Source
from paimon_py.rows.verbs import reach, source_limit
from paimon_py.scan.split import Split
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.commit_label import CommitLabel
from paimon_py.spec.options import Options
from paimon_py.spec.schema import DELETE, ROW_KIND_COLUMN, UPDATE_AFTER, TableSchema
from paimon_py.spec.snapshot import Snapshot
from paimon_py.write.align import Alignment, kind_field
from paimon_py.write.session import Writer
from paimon_py.write.streams import number_pieces

_KEYS_AT_ONCE = 65_536
"""The number of keys per lookup; their rows are held in memory."""
_LATE_MAX = 4_000_000
"""The maximum number of keys of other commits per bucket that are compared with those of the data."""


def upsert_keeping(
    table: OpenTable, data: pa.RecordBatchReader, lacking: Sequence[MissingColumn], *,
    label: CommitLabel, progress: Progress | None,
) -> RowsResult:  # fmt: skip
    """Write data that lack columns as one commit; existing rows keep their values of these columns.

    Cost: the data in memory up to `write-buffer-size`, at most 256 MB, and the rest on local disk; a lookup per key.
    Raises: as `merge`; SchemaError if a new row lacks a NOT NULL column without a default.
    """
    check_updatable(table.schema, "upsert")
    table.root.store.require_new(table.root.path)
    warn_of_idle_options(table.root, table.schema.options)
    rows = _GivenRows(table.schema, data, lacking)
    keys = [(name, table.schema.field(name)) for name in table.schema.primary_keys]
    source = Source(rows.reader(), keys, table.root.env.spill, source_limit(table.schema))
    lookups = Lookups(table.root, every_level=True)
    attempts = itertools.count(1)

    def evaluate(snapshot: Snapshot | None, splits: Sequence[Split]) -> RowOutput:  # noqa: ARG001
        tally = ProgressCounter(progress, rows.count, "rows", steps=2, attempt=next(attempts))
        return KeepingUpsert(table, lacking, source, lookups, tally).evaluate(snapshot)

    try:
        source.load()
        return Evaluation(table, reach(table.schema, source, keys), "MERGE", label).run(evaluate)
    finally:
        source.close()


class KeepingUpsert:
    """One evaluation: completes the rows of the data from a snapshot."""

    def __init__(
        self, table: OpenTable, lacking: Sequence[MissingColumn], source: Source,
        lookups: Lookups, tally: ProgressCounter,
    ) -> None:  # fmt: skip
        """`tally` counts two steps per row: the lookup of its key, and the writing."""
        self._table = table
        self._root, self._schema, self._source = table.root, table.schema, source
        self._lacking, self._lookups, self._tally = lacking, lookups, tally
        self._copied = tuple(one.field for one in lacking if one.is_copied)
        self._kind_field = kind_field(table.schema)
        self._adds_kind = self._kind_field in {one.field.name for one in lacking}
        self._ends_rows = _ends_rows(table.schema)
        self._snapshot: Snapshot | None = None
        self._counts = RowCounts()

    def evaluate(self, snapshot: Snapshot | None) -> RowOutput:
        """Write all rows, without committing them.

        Raises: the errors of reading and writing; written files are deleted first.
        """
        self._snapshot = snapshot
        with Writer(self._table, read_keys=live_keys(self._table)) as writer:
            writer._count_by(self._tally)
            for number in range(self._source.blocks):
                for rows, asked, numbers in self._parts(self._source.block(number)):
                    self._write(rows, asked, numbers, writer)
                    self._tally.add(rows.num_rows)
            changes = writer.changes(is_new=True)

        def carry_on(later: Snapshot, splits: Sequence[Split], known: Files) -> RowOutput | None:
            if self._still_holds(later, splits, known):
                self._snapshot = later
                return found
            writer.discard(changes)
            return None

        found = RowOutput(changes, self._counts, lambda: writer.discard(changes), carry_on)
        return found

    def _still_holds(self, later: Snapshot, splits: Sequence[Split], known: Files) -> bool:
        """Whether other commits have written none of the keys since the snapshot."""
        if self._snapshot is None or bucket_mode(self._schema) is BucketMode.CROSS_PARTITION:
            return False
        changed = changed_buckets(splits, known)
        late = late_keys(self._table, self._snapshot, later, dict.fromkeys(changed, _LATE_MAX))
        if late.keys() < changed:
            return False
        probes = [Probe([combine(column) for column in keys.columns]) for keys in late.values() if keys.num_rows]
        own = (self._source.keys(self._source.block(number)) for number in range(self._source.blocks if probes else 0))
        return not any((probe.find(keys) >= 0).any() for keys in own for probe in probes)

    def _parts(self, block: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, RequestedKeys, Ints]]:
        """The rows of a block in key order, rows with equal keys in input order: some rows, their distinct keys, and
        the index of each row's key among them."""
        names = list(self._schema.primary_keys)
        asked = RequestedKeys(self._schema, pa.Table.from_batches([block.select(names)]))
        order = np.argsort(asked.numbers, kind="stable")
        numbers = asked.numbers[order]
        for first in range(0, len(asked), _KEYS_AT_ONCE):
            start, end = np.searchsorted(numbers, [first, first + _KEYS_AT_ONCE])
            columns = [column.slice(first, _KEYS_AT_ONCE) for column in asked.columns]
            keys = pa.table(dict(zip([field.name for field in asked.fields], columns, strict=True)))
            rows = block.take(from_numpy(order[start:end], pa.int64()))
            yield rows, RequestedKeys(self._schema, keys), numbers[start:end] - first

    def _write(self, rows: pa.RecordBatch, asked: RequestedKeys, numbers: Ints, writer: Writer) -> None:
        """Write rows that are sorted by key."""
        place = rows.schema.get_field_index(KIND_FIELD.name)
        kinds = None if place < 0 else rows.column(place)
        rows = rows if kinds is None else rows.drop_columns([KIND_FIELD.name])
        if self._snapshot is None:
            places: Ints = np.full(len(asked), -1, np.int64)
            columns: list[pa.Array] = []
        else:
            places, columns = self._lookups.found_at(self._snapshot, self._schema, asked, self._copied)
        exists = places[numbers] >= 0
        deletes = np.zeros(len(numbers), np.bool_) if kinds is None else numpy_values(kinds) == DELETE
        self._count(numbers, exists, deletes)
        if self._ends_rows and deletes.any():
            exists = exists & ~_after_deletes(numbers, deletes)
        old, new = np.flatnonzero(exists), np.flatnonzero(~exists)
        if any(map(self._is_required, self._lacking)):
            new = new[~deletes[new]]  # there is no row to delete, and a delete row would lack required values
        if len(old):
            picked = from_numpy(places[numbers[old]], pa.int64())
            copies = {field.name: column.take(picked) for field, column in zip(self._copied, columns, strict=True)}
            kept = {one.field.name: copies.get(one.field.name) for one in self._lacking}
            joined = self._join(_take(rows, old), kept, _taken_kinds(kinds, old, UPDATE_AFTER))
            writer.write_again(joined, kept.keys())  # copies of BLOBs are references
        if len(new):
            added = _take(rows, new)
            self._require_whole(added)
            writer.write_arrow(self._join(added, {}, _taken_kinds(kinds, new, 0)))

    def _join(self, rows: pa.RecordBatch, kept: dict[str, pa.Array | None], kinds: pa.Array) -> pa.RecordBatch:
        """Rows completed with the missing columns (None: NULL) and their kinds."""
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        types = {one.field.name: to_arrow_field(one.field).type for one in self._lacking}
        for name, column in kept.items():
            columns[name] = pa.nulls(rows.num_rows, types[name]) if column is None else column
        if self._kind_field is None:
            columns[ROW_KIND_COLUMN] = kinds
        elif self._adds_kind and not kept:
            columns[self._kind_field] = pa.repeat("+I", rows.num_rows)
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    def _count(self, numbers: Ints, exists: Mask, deletes: Mask) -> None:
        """Count keys by the kind of their last row."""
        last = np.flatnonzero(np.append(numbers[1:] != numbers[:-1], True)) if len(numbers) else numbers
        there, gone = exists[last], deletes[last]
        self._counts = self._counts.plus(
            deleted=int(np.count_nonzero(there & gone)),
            updated=int(np.count_nonzero(there & ~gone)),
            inserted=int(np.count_nonzero(~there & ~gone)),
        )

    def _is_required(self, lacking: MissingColumn) -> bool:
        """Whether a new row needs a value of a column."""
        field = lacking.field
        return not field.type.nullable and field.default is None and field.name != self._kind_field

    def _require_whole(self, rows: pa.RecordBatch) -> None:
        """Refuse new rows without a required value."""
        for one in self._lacking:
            name = one.field.name
            if self._is_required(one):
                key = ", ".join(f"{key}={value_text(rows.column(key), 0)}" for key in self._schema.primary_keys)
                raise SchemaError(
                    f"the data lack column {name!r}, and the row with {key} is new: the column is NOT NULL and has no"
                    " default; add it to the data, or leave new rows out. Nothing was changed",
                    fields=(name,),
                )


class _GivenRows:
    """The rows of the data in the table's types, with their kinds if given.

    Attributes:
        count: the number of rows, after all were read.
    """

    def __init__(self, schema: TableSchema, data: pa.RecordBatchReader, lacking: Sequence[MissingColumn]) -> None:
        """Raises: SchemaError for columns that do not fit."""
        absent = {one.field.name for one in lacking}
        options = {name: text for name, text in schema.options.items() if name != "rowkind.field" or text not in absent}
        fields = tuple(field for field in schema.fields if field.name not in absent)
        self._alignment = Alignment(
            msgspec.structs.replace(schema, fields=fields, options=options), data.schema, fills_nulls=False
        )
        self._data = data
        self._tells_kinds = ROW_KIND_COLUMN in data.schema.names or "rowkind.field" in options
        kinds = (KIND_FIELD,) if self._tells_kinds else ()
        self._schema = to_arrow_schema((*fields, *kinds))
        self.count = 0

    def reader(self) -> pa.RecordBatchReader:
        """All rows; can be read once."""
        return pa.RecordBatchReader.from_batches(self._schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for piece in number_pieces(self._data):
            aligned = self._alignment.apply(piece.rows, piece.first)
            columns, count = aligned.batch.columns, aligned.batch.num_rows
            self.count += count
            if self._tells_kinds:
                kinds = aligned.kinds
                columns = [*columns, pa.repeat(pa.scalar(0, pa.int8()), count) if kinds is None else kinds]
            yield pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _ends_rows(schema: TableSchema) -> bool:
    """Whether a −D ends its row, so that a later row of the key is a new row."""
    options = Options(schema.options)
    is_removed = options.get_bool("partial-update.remove-record-on-delete")
    return options.get_enum("merge-engine") == "deduplicate" or is_removed


def _after_deletes(numbers: Ints, deletes: Mask) -> Mask:
    """A mask of the rows that follow a delete of their key."""
    before: Ints = np.cumsum(deletes) - deletes
    firsts = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
    sizes = np.diff(np.append(firsts, len(numbers)))
    found: Mask = before > np.repeat(before[firsts], sizes)
    return found


def _take(rows: pa.RecordBatch, picked: Ints) -> pa.RecordBatch:
    return rows if len(picked) == rows.num_rows else rows.take(from_numpy(picked, pa.int64()))


def _taken_kinds(kinds: pa.Array | None, picked: Ints, usual: int) -> pa.Array:
    """The kinds of some rows; `usual` if the data have no kinds."""
    if kinds is None:
        return pa.repeat(pa.scalar(usual, pa.int8()), len(picked))
    return kinds.take(from_numpy(picked, pa.int64()))
