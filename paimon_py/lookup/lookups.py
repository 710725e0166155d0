"""`Table.lookup`: rows by primary key, from files.

Source: Java `LocalTableQuery`; the row of a key is determined as in `scan.split_reader`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.arguments import NameList, check_progress
from paimon_py.codec.arrow_types import to_arrow_field, to_arrow_schema
from paimon_py.codec.columns import Ints, from_numpy, numpy_values
from paimon_py.codec.deletion_vectors import DeletionVector
from paimon_py.errors import UnsupportedError, UsageError
from paimon_py.files.constant_columns import ConstantColumns
from paimon_py.lazy import lazy_property
from paimon_py.lookup.files import FileReading
from paimon_py.lookup.frames import FrameId, Frames
from paimon_py.lookup.key_rows import NUMBER, KeyRows
from paimon_py.lookup.keys import RequestedKeys, check_missing
from paimon_py.lookup.plan import Bucket, LookupPlanner
from paimon_py.lookup.vectors import KnownVectors
from paimon_py.lsm.engines import engine_of
from paimon_py.lsm.engines.deduplicate import Deduplicate
from paimon_py.lsm.groups import Engine
from paimon_py.lsm.merge import Plan, RunSource, merge
from paimon_py.lsm.order import MergeOrder, merge_order
from paimon_py.lsm.runs import SortedRun, ages_are_disjoint
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.progress import Progress, ProgressCounter, ProgressShare, count_batches
from paimon_py.scan.blob_values import BlobValues
from paimon_py.scan.plan_snapshot import deletions_of
from paimon_py.scan.projection import projection_of
from paimon_py.scan.request import Request
from paimon_py.scan.split_reader import merge_fields
from paimon_py.spec.blobs import blob_place
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.options import Options
from paimon_py.spec.postponed import MERGES_WAITING, merges_waiting
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Base, Snapshot
from paimon_py.spec.supported import check_readable
from paimon_py.spec.types import Field
from paimon_py.storage.store import FileMissingError

_NO_ROWS = np.zeros(0, np.int64)


class Lookups:
    """Looks up rows of a table, and caches what it read of files, at most `lookup.cache-max-memory-size`.

    Every lookup reads the latest snapshot; cached files that are still part of it need not be read again. Threads may
    share a value: each lookup works with the snapshot it has found, and a race only costs a second read.
    """

    def __init__(self, root: TableRoot, *, every_level: bool = False) -> None:
        """`every_level`: see `skips_level_zero`."""
        self._root = root
        self._every_level = every_level
        self._frames: Frames | None = None
        self._state: _State | None = None
        self._readable: TableSchema | None = None
        self._dead = KnownVectors(root.files)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._root,)

    @property
    def nbytes(self) -> int:
        """Memory of the cache, in bytes."""
        return self._frames.nbytes if self._frames is not None else 0

    def rows(
        self, schema: TableSchema, keys: object, columns: NameList | None, missing: str, *,
        at: Snapshot | None = None, progress: Progress | None = None,
    ) -> pa.Table:  # fmt: skip
        """See `Table.lookup`. `at`: the snapshot to read; None for the latest."""
        check_progress(progress)
        check_missing(missing)
        if schema is not self._readable:
            check_readable(schema)
            if merges_waiting(schema):
                raise UnsupportedError(
                    f"a lookup does not return rows that wait for their bucket ('{MERGES_WAITING}' = 'true'): read them"
                    " with scan(where=…), or publish them with compact() and set the option to 'false'",
                    feature=MERGES_WAITING,
                )
            self._readable = schema
        asked = RequestedKeys(schema, keys)
        projection = projection_of(columns, schema)
        fields = projection.fields
        if any(len(path) > 1 for path in projection.paths):
            raise UsageError("lookup returns whole columns; read nested fields with scan(columns=…)")
        snapshot = (at or self._root.latest()) if len(asked) else None
        if snapshot is not None:
            self._root.schemas.require_own(snapshot, schema)
        tally = ProgressCounter(progress, len(asked), "keys", steps=2)
        found = [] if snapshot is None else list(self._of(schema, snapshot).rows(asked, fields, tally))
        tally.end()
        answer = _answer(asked, fields, found, with_missing=missing == "null")
        holds_blobs = any(blob_place(schema, field) for field in fields)
        if snapshot is None or not holds_blobs:
            return answer
        return _with_bytes(OpenTable(self._root, schema), answer, snapshot)

    def rows_at(self, snapshot: Snapshot, schema: TableSchema, keys: pa.Table) -> pa.Table:
        """The complete rows of a snapshot that have one of the keys, each once.

        Raises: as `Table.lookup`.
        """
        asked = RequestedKeys(schema, keys)
        asked.numbers = np.arange(len(asked))
        found = list(self._of(schema, snapshot).rows(asked, schema.fields)) if len(asked) else []
        return _answer(asked, schema.fields, found, with_missing=False)

    def found_at(
        self, snapshot: Snapshot, schema: TableSchema, asked: RequestedKeys, fields: Sequence[Field]
    ) -> tuple[Ints, list[pa.Array]]:
        """The row number of each distinct key, −1 for none, and columns of these rows, none of them part of the key.

        Raises: as `Table.lookup`.
        """
        found = list(self._of(schema, snapshot).rows(asked, fields)) if len(asked) else []
        return _rows_of(asked, found), [_join(found, field) for field in fields]

    def _of(self, schema: TableSchema, snapshot: Snapshot) -> _State:
        """The state of a snapshot. A rollback may reuse an id, so complete snapshots are compared."""
        limit = Options(schema.options).get_memory("lookup.cache-max-memory-size")
        frames = self._frames
        if frames is None or frames.max_bytes != limit:
            self._frames = frames = Frames(limit)
        state = self._state
        if state is None or state.snapshot != snapshot or state.schema != schema or state.frames is not frames:
            dead, every_level = self._dead, self._every_level
            self._state = state = _State(OpenTable(self._root, schema), snapshot, frames, dead, every_level=every_level)
        return state


class _State:
    """A snapshot, and its cached plan and settings."""

    def __init__(
        self, table: OpenTable, snapshot: Snapshot, frames: Frames, dead: KnownVectors, *,
        every_level: bool,
    ) -> None:  # fmt: skip
        self.schema = table.schema
        self.snapshot = snapshot
        self.frames = frames
        self._root = table.root
        self._files = table
        self._dead = dead
        self._deletions = deletions_of(table, snapshot)
        dead.keep_only(self._deletions)
        self._planner = LookupPlanner(table, snapshot, every_level=every_level)
        self._readings: dict[tuple[bytes, int], FileReading] = {}

    def rows(
        self, asked: RequestedKeys, fields: Sequence[Field], tally: ProgressCounter | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of keys: those of `fields` that are not part of the primary key, and `_LOOKUP_NUMBER`.

        `tally` counts two steps per key: its files were searched, and its row was taken.
        """
        tally = tally or ProgressCounter(None, 0, "keys")
        returned = tuple(field for field in fields if field not in asked.fields)
        for part in self._planner.plan(asked):
            searching, taking = ProgressShare(tally, len(part.keys)), ProgressShare(tally, len(part.keys))
            keys = KeyRows(self._reading(part.bucket), asked, part, searching)
            try:
                for section in part.sections:
                    yield from count_batches(self._section(section, keys, returned), taking)
            except FileMissingError as error:
                raise self._root.missing(Base.of(self.snapshot), error) from error
            searching.end()
            taking.end()

    def _section(
        self, runs: tuple[SortedRun, ...], keys: KeyRows, returned: tuple[Field, ...]
    ) -> Iterator[pa.RecordBatch]:
        newest_wins = isinstance(self._engine, Deduplicate) and not self._engine.ignore_delete
        if len(runs) == 1 or (newest_wins and not self._order.sequence and ages_are_disjoint(runs)):
            yield from keys.newest(runs, returned)
            return
        fields = merge_fields(self.schema, returned, runs, self._order, self._engine)
        sources = [RunSource(run.files[0].name, len(keys), 64, keys.opener(run.files, fields)) for run in runs]
        columns = (*(field.name for field in returned), NUMBER)
        yield from merge(sources, Plan(order=self._order, engine=self._engine, columns=columns))

    def _reading(self, bucket: Bucket) -> FileReading:
        known = self._readings.get((bucket.partition, bucket.number))
        if known is not None:
            return known
        schema, files = self.schema, self._files.bucket(bucket.partition, bucket.number)
        deletions = self._deletions.get((bucket.partition, bucket.number), {})

        def dead_of(file: DataFile) -> DeletionVector | None:
            place = deletions.get(file.name)
            return None if place is None else self._dead.get(file, place)

        reading = FileReading(
            files=files,
            frames=self.frames,
            keys=schema.key_fields,
            stamps=ConstantColumns.of(schema),
            bucket=FrameId(files.directory, self.frames.columns(schema.key_fields).number),
            dead_of=dead_of,
            asks_indexes=Options(schema.options).get_bool("file-index.read.enabled"),
        )
        self._readings[bucket.partition, bucket.number] = reading
        return reading

    @lazy_property
    def _engine(self) -> Engine:
        return engine_of(self.schema)

    @lazy_property
    def _order(self) -> MergeOrder:
        return merge_order(self.schema)


def _answer(
    asked: RequestedKeys, fields: Sequence[Field], found: list[pa.RecordBatch], *, with_missing: bool
) -> pa.Table:
    """The found rows in the order of the requested keys."""
    wanted = _rows_of(asked, found)[asked.numbers]
    known = wanted >= 0
    if not with_missing and not known.all():
        wanted = wanted[known]
    places = from_numpy(wanted, pa.int64(), known if with_missing else None)
    of_keys = from_numpy(asked.numbers if with_missing else asked.numbers[known], pa.int64())
    keys = dict(zip(asked.fields, asked.columns, strict=True))
    columns, shown = [], []
    for field in fields:
        if field in keys:
            columns.append(keys[field].take(of_keys))
            shown.append(field)
            continue
        columns.append(_join(found, field).take(places))
        shown.append(_nullable(field) if with_missing else field)
    if not fields:
        return pa.table({"rows": pa.nulls(len(places))}).select([])
    return pa.Table.from_arrays(columns, schema=to_arrow_schema(shown))


def _with_bytes(table: OpenTable, rows: pa.Table, snapshot: Snapshot) -> pa.Table:
    """The rows of a snapshot with the bytes of BLOBs, unless the table's options ask for references."""
    request = Request(schema=table.schema, columns=tuple(rows.schema.names))
    values = BlobValues.of(table.root, request, (snapshot.id,))
    if values is None or not rows.num_rows:
        return rows
    filled = [part for batch in rows.to_batches() for part in values.fill(batch)]
    return pa.Table.from_batches(filled, rows.schema)


def _rows_of(asked: RequestedKeys, found: list[pa.RecordBatch]) -> Ints:
    """The position of every distinct key's row among the found rows; −1 for none."""
    row_of: Ints = np.full(len(asked), -1, np.int64)
    numbers = [numpy_values(batch.column(NUMBER)) for batch in found]
    row_of[np.concatenate([*numbers, _NO_ROWS])] = np.arange(sum(map(len, numbers)))
    return row_of


def _join(found: list[pa.RecordBatch], field: Field) -> pa.Array:
    parts = [batch.column(field.name) for batch in found]
    return pa.concat_arrays(parts) if parts else pa.nulls(0, to_arrow_field(field).type)


def _nullable(field: Field) -> Field:
    return msgspec.structs.replace(field, type=msgspec.structs.replace(field.type, nullable=True))
