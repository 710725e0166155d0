"""`Table.lookup`: rows by primary key, from files.

Source: Java `LocalTableQuery`; what a key's row is, is decided as in `scan.read`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_field, to_arrow_schema
from paimon_py.codec.columns import from_numpy, numpy_values
from paimon_py.codec.deletion_vectors import DeletionVector
from paimon_py.codec.partition_text import partition_directory
from paimon_py.errors import UsageError
from paimon_py.files.physical import KIND_FIELD
from paimon_py.files.places import file_path
from paimon_py.files.stamps import Stamps
from paimon_py.lsm.engines import engine_of
from paimon_py.lsm.engines.deduplicate import Deduplicate
from paimon_py.lsm.groups import Engine
from paimon_py.lsm.merge import Plan, RunSource, merge
from paimon_py.lsm.order import MergeOrder, merge_order
from paimon_py.lsm.rewrite import additions
from paimon_py.lsm.runs import SortedRun, ages_are_disjoint
from paimon_py.lsm.words import Ints
from paimon_py.metadata.root import TableRoot
from paimon_py.rows.asked import AskedKeys
from paimon_py.rows.dead import DeadRows
from paimon_py.rows.frames import Frames
from paimon_py.rows.lookup_files import FileReading
from paimon_py.rows.lookup_plan import LookupPlanner, Part
from paimon_py.scan.plan import Deletions
from paimon_py.scan.plan_snapshot import deletions_of
from paimon_py.scan.projection import projection_of
from paimon_py.scan.read import merge_fields, missing_file
from paimon_py.scan.split import Section
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Snapshot
from paimon_py.spec.types import Atomic, Field, Root
from paimon_py.storage.store import FileMissingError

NUMBER = "_LOOKUP_NUMBER"
NUMBER_FIELD = Field(2_147_483_639, NUMBER, Atomic(Root.BIGINT, nullable=False))
"""Which of the asked keys a row has; never stored."""


class Lookups:
    """Looks rows of a table up, and remembers what it read of files, at most `lookup.cache-max-memory-size`.

    Every lookup is of the latest snapshot; files that are still part of it need not be read again.
    """

    def __init__(self, root: TableRoot) -> None:
        self._root = root
        self._frames: Frames | None = None
        self._deletions: tuple[int, Deletions] | None = None
        self._dead = DeadRows(root.files)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._root,)

    @property
    def nbytes(self) -> int:
        """Memory of what is remembered."""
        return self._frames.nbytes if self._frames is not None else 0

    def rows(self, schema: TableSchema, keys: object, columns: Sequence[str] | None, missing: str) -> pa.Table:
        """See `Table.lookup`."""
        if missing not in ("drop", "null"):
            raise UsageError(f'missing is "drop" or "null", not {missing!r}')
        asked = AskedKeys(schema, keys)
        projection = projection_of(columns, schema)
        fields = projection.fields
        if any(len(path) > 1 for path in projection.paths):
            raise UsageError("lookup returns whole columns; read fields inside them with scan(columns=…)")
        found = self._found(schema, asked, fields) if len(asked) else []
        return _answer(asked, fields, found, with_missing=missing == "null")

    def _found(self, schema: TableSchema, asked: AskedKeys, fields: tuple[Field, ...]) -> list[pa.RecordBatch]:
        snapshot = self._root.snapshots.latest()
        if snapshot is None:
            return []
        limit = Options(schema.options).get_memory("lookup.cache-max-memory-size")
        if self._frames is None or self._frames.max_bytes != limit:
            self._frames = Frames(limit)
        held = self._deletions
        if held is None or held[0] != snapshot.id:
            held = (snapshot.id, deletions_of(self._root, schema, snapshot))
            self._deletions = held
            self._dead.keep_only(held[1])
        reading = _Reading(self._root, schema, fields, self._frames, self._dead)
        planner = LookupPlanner(self._root, schema, snapshot, held[1])
        return [batch for part in planner.plan(asked) for batch in reading.rows(part, asked, snapshot)]


class _Reading:
    """What the parts of one lookup have in common. `fields`: what is returned."""

    def __init__(
        self, root: TableRoot, schema: TableSchema, fields: tuple[Field, ...], frames: Frames, dead: DeadRows
    ) -> None:
        self._root = root
        self._schema = schema
        self._fields = fields
        self._frames = frames
        self._dead = dead
        self._stamps = Stamps.of(schema)
        self._columns = tuple(dict.fromkeys([*(field.name for field in fields), NUMBER]))

    def rows(self, part: Part, asked: AskedKeys, snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
        """The rows of the keys in one split: the returned columns and `_LOOKUP_NUMBER`."""
        directory = partition_directory(self._schema, part.split.partition)
        split = part.split

        def dead_of(file: DataFile) -> DeletionVector | None:
            place = split.deletions.get(file.name)
            return None if place is None else self._dead.get(file, place)

        reading = FileReading(
            store=self._root.files,
            frames=self._frames,
            keys=self._schema.key_fields,
            stamps=self._stamps,
            path_of=lambda file: file_path(self._root.path, self._schema, directory, split.bucket, file),
            schema_of=lambda number: self._root.schemas.of_file(number, self._schema),
            dead_of=dead_of,
            asks_indexes=Options(self._schema.options).get_bool("file-index.read.enabled"),
        )
        try:
            for section in split.sections:
                yield from self._section(section, _Keys(reading, asked, part.keys))
        except FileMissingError as error:
            raise missing_file(self._root, snapshot.id, error.path or "a data file") from error

    def _section(self, section: Section, keys: _Keys) -> Iterator[pa.RecordBatch]:
        runs = [SortedRun(files) for files in section.runs]
        newest_wins = isinstance(self._engine, Deduplicate) and not self._engine.ignore_delete
        if len(runs) == 1 or (newest_wins and not self._order.sequence and ages_are_disjoint(runs)):
            yield from self._newest(runs, keys)
            return
        fields = merge_fields(self._schema, self._fields, runs, self._order, self._engine)
        sources = [RunSource(run.files[0].name, len(keys), 64, keys.opener(run.files, fields)) for run in runs]
        yield from merge(sources, Plan(order=self._order, engine=self._engine, columns=self._columns))

    def _newest(self, runs: Sequence[SortedRun], keys: _Keys) -> Iterator[pa.RecordBatch]:
        """From the newest run on, the first row of every key; nothing if that is −U or −D."""
        for run in reversed(runs):
            fields = (*self._fields, KIND_FIELD) if run.may_delete else self._fields
            for batch in keys.batches(run.files, fields, once=True):
                rows = additions(batch) if run.may_delete else batch
                yield rows.select(list(self._columns))

    @cached_property
    def _engine(self) -> Engine:
        return engine_of(self._schema)

    @cached_property
    def _order(self) -> MergeOrder:
        return merge_order(self._schema)


class _Keys:
    """The keys that one split is asked for."""

    def __init__(self, reading: FileReading, asked: AskedKeys, numbers: Ints) -> None:
        self._reading = reading
        self._left = numbers
        self._asked = asked.of(reading.keys)

    def __len__(self) -> int:
        return len(self._left)

    def opener(self, files: Sequence[DataFile], fields: Sequence[Field]) -> Callable[[int], Iterator[pa.RecordBatch]]:
        """`batches` for a merge."""
        return lambda _: self.batches(files, fields)

    def batches(
        self, files: Sequence[DataFile], fields: Sequence[Field], *, once: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """The rows of the keys in files of one run, in key order: `fields` and `_LOOKUP_NUMBER`.

        `once`: nobody is to find these keys again.
        """
        stored = tuple(field for field in fields if field not in self._reading.keys)
        schema = to_arrow_schema((*fields, NUMBER_FIELD))
        for file in files:
            if not len(self._left):
                return
            rows = from_numpy(self._left, pa.int64())
            hits = self._reading.find(file, [column.take(rows) for column in self._asked])
            if not len(hits.keys):
                continue
            numbers = self._left[hits.keys]
            if once:
                self._left = np.delete(self._left, hits.keys)
            taken = self._reading.take(file, stored, hits.positions)
            given = from_numpy(numbers, pa.int64())
            keys = {field: column.take(given) for field, column in zip(self._reading.keys, self._asked, strict=True)}
            columns = [keys[field] if field in keys else taken.column(field.name) for field in fields]
            yield pa.RecordBatch.from_arrays([*columns, given], schema=schema)


def _answer(asked: AskedKeys, fields: Sequence[Field], found: list[pa.RecordBatch], *, with_missing: bool) -> pa.Table:
    """The found rows in the order of the asked keys."""
    schema = to_arrow_schema((*fields, NUMBER_FIELD))
    rows = pa.Table.from_batches([pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in found], schema)
    rows = rows.combine_chunks()
    row_of = np.full(len(asked), -1, np.int64)
    numbers = rows.column(NUMBER)
    if len(numbers):
        row_of[numpy_values(numbers.chunk(0))] = np.arange(len(numbers))
    wanted = row_of[asked.numbers]
    if not with_missing:
        return _taken(rows, fields, from_numpy(wanted[wanted >= 0], pa.int64()))
    taken = _taken(rows, [_nullable(field) for field in fields], from_numpy(wanted, pa.int64(), wanted >= 0))
    keys = from_numpy(asked.numbers, pa.int64())
    for field, column in zip(asked.fields, asked.columns, strict=True):
        place = taken.column_names.index(field.name) if field.name in taken.column_names else -1
        if place >= 0:
            taken = taken.set_column(place, to_arrow_field(field), column.take(keys))
    return taken


def _taken(rows: pa.Table, fields: Sequence[Field], places: pa.Array) -> pa.Table:
    schema = to_arrow_schema(fields)
    if not fields:
        return pa.table({"rows": pa.nulls(len(places))}).select([])
    columns = [rows.column(field.name).take(places) for field in fields]
    return pa.Table.from_arrays(columns, schema=schema)


def _nullable(field: Field) -> Field:
    return msgspec.structs.replace(field, type=msgspec.structs.replace(field.type, nullable=True))
