"""Reads the sections of splits, raw or merged; rows that do not match may be among the results.

Source: format.md §17; Java `MergeFileSplitRead`, `RawFileSplitRead`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
from pyroaring import BitMap

from paimon_py.codec.columns import from_numpy, numpy_values
from paimon_py.codec.deletion_vectors import DeletionVector
from paimon_py.env import is_distant
from paimon_py.errors import PaimonError
from paimon_py.expr.arrow import Filter
from paimon_py.expr.predicate import Predicate
from paimon_py.expr.references import columns_of
from paimon_py.files.deletion_filter import alive, check_fits, dead_as_deletes, select_rows
from paimon_py.files.file_index import MAX_ROWS, has_index
from paimon_py.files.meter import Meter
from paimon_py.files.physical import KIND_FIELD, LEVEL_FIELD, SEQUENCE_FIELD
from paimon_py.files.prefetch import FilePrefetcher
from paimon_py.files.reader import PAGED_ROWS, FileReader
from paimon_py.formats.base import empty_rows
from paimon_py.formats.parts import Parts
from paimon_py.lazy import lazy_property
from paimon_py.lsm.engines import engine_of
from paimon_py.lsm.groups import Engine
from paimon_py.lsm.merge import Plan, ResultFilter, RunSource, merge
from paimon_py.lsm.order import MergeOrder, merge_order
from paimon_py.lsm.runs import SortedRun, ages_are_disjoint
from paimon_py.metadata.deletion_files import read_deletions
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.scan.aligned_rows import AlignedRows
from paimon_py.scan.read_estimate import ReadEstimate
from paimon_py.scan.request import RAW_BATCH_ROWS, Request, keep
from paimon_py.scan.row_ids import ids_from, rows_with_ids
from paimon_py.scan.row_search import row_search
from paimon_py.scan.small_splits import SmallFiles
from paimon_py.scan.split import Section, Split
from paimon_py.scan.windows import read_plan
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.schema import VALUE_KIND, TableSchema
from paimon_py.spec.snapshot import Base
from paimon_py.spec.types import Field
from paimon_py.storage.store import FileMissingError

if TYPE_CHECKING:
    pass

_FEW_ROWS = 1024
_PIECES = 4
"""A batch of a run is divided so often if rows after the last key that can match need not be decoded."""
_WORTH = 3
"""The multiple of a condition's columns from which on it is worth testing merged rows before gathering the others."""
_CHANGE_BATCH_ROWS = 131_072
"""Most files of changes have at most this number of rows, and are read as one batch each."""


class _Asked(msgspec.Struct, frozen=True):
    """The request to a file: a predicate that skips row groups, and row positions; None for everything."""

    predicate: Predicate | None
    rows: BitMap | None


class SplitReader:
    """One read of a split: the state that its sections share.

    Attributes:
        split: the split; `files`: those of its bucket.
        small: where rows of small files are taken from, if they were decoded with others.
        stamps: the columns that files do not store.
    """

    def __init__(
        self,
        root: TableRoot,
        request: Request,
        split: Split,
        meter: Meter | None = None,
        *,
        beside: SplitReader | None = None,
    ) -> None:
        """`beside`: a reader of another split, whose view of the table is shared."""
        self.split = split
        self.small: SmallFiles | None = None
        self._root = root
        self._request = request
        self._meter = meter
        self._ahead: FilePrefetcher = FilePrefetcher(root.files, root.env) if beside is None else beside._ahead
        self._store = self._ahead if meter is None else meter.watch(self._ahead)
        self._table: OpenTable = (
            OpenTable(root, request.stored_schema, self._store) if beside is None else beside._table
        )
        self.files = self._table.bucket(split.partition, split.bucket)
        self._fields = request.read_fields
        self._kinds: tuple[Field, ...] = ()
        if request.schema.primary_keys and (request.kinds or split.since is not None):
            self._kinds = (KIND_FIELD,)
        self.stamps = request.constant_columns
        self._raw_rows = RAW_BATCH_ROWS if split.since is None else _CHANGE_BATCH_ROWS
        if request.first_rows is not None:
            self._raw_rows = min(self._raw_rows, max(_FEW_ROWS, request.first_rows))
        self._beyond = request.beyond if split.since is None else None
        self._shows_dead = False
        self._search = None if meter is not None or is_distant(root.path) else row_search(request)

    @lazy_property
    def _rows(self) -> AlignedRows:
        return AlignedRows(self.files, self._request, self._meter)

    def living(self) -> Iterator[pa.RecordBatch]:
        """One live row per key, section by section; rows that cannot match may be missing."""
        if is_distant(self._root.path):
            self.fetch_ahead(file for section in self.split.sections for file in self._files_to_open(section))
        for section in self.split.sections:
            for batch in self.living_of(section):
                if self._meter is not None:
                    self._meter.rows_merged += batch.num_rows
                yield batch

    def fetch_ahead(self, files: Iterable[DataFile]) -> None:
        """Say which files will be read, in this order, so that their parts can be fetched before they are needed."""
        self._ahead.announce((file.external_path or self.files.path(file), file.size_bytes) for file in files)

    def _files_to_open(self, section: Section) -> Sequence[DataFile]:
        """The files of a section that will be opened, unless an index or a limit makes that unnecessary."""
        fields = self.stored_fields(section)
        if section.aligned:
            return self._rows.files_to_open(section, fields)
        return section.files if fields else ()

    def estimate(self) -> ReadEstimate:
        """The expected work of `batches`, section by section."""
        index_files = index_rows = 0
        parts: list[Parts] = []
        for section in self.split.sections:
            fields = self.stored_fields(section)
            if section.aligned:
                with self._present():
                    found = self._rows.estimate(section, fields, self._dead)
                index_files, index_rows = index_files + found.index_files, index_rows + found.index_rows
                parts += found.parts
                continue
            for file in section.files if fields else ():
                asked = self._asked_of(section, file)
                if asked.rows is not None:
                    index_files += not asked.rows
                    index_rows += file.row_count - self.split.dead_rows(file.name) - len(asked.rows)
                    if not asked.rows:
                        continue
                with self._present():
                    read = self._reader(file, fields).parts(asked.predicate, asked.rows)
                parts += [] if read is None else [read]
        return ReadEstimate(index_files, index_rows, tuple(parts))

    def living_of(self, section: Section) -> Iterator[pa.RecordBatch]:
        """The live rows of a section."""
        fields = self.stored_fields(section)
        if not fields:
            yield from self._rows_without_columns(section)
        elif section.aligned:
            with self._present():
                yield from self._rows.read(section, fields, self._dead, self._raw_rows)
        elif section.raw:
            yield from self.run(section, fields, section.files, self._raw_rows)
        elif len(section.runs) == 1:
            for batch in self.run(section, fields, section.files, min(self._raw_rows, RAW_BATCH_ROWS)):
                yield batch if self._kinds else keep(batch, _additions)
        else:
            yield from self._merge(section, fields)

    def stored_fields(self, section: Section) -> tuple[Field, ...]:
        """The columns to decode from a section's files; empty if row counts are enough."""
        if section.raw:
            return (*self._fields, *self._kinds)
        if len(section.runs) == 1:
            return (*self._fields, KIND_FIELD)
        order, engine = merge_order(self._request.schema), engine_of(self._request.schema)
        fields = merge_fields(self._request.schema, self._fields, _sorted_runs(section), order, engine)
        return fields if KIND_FIELD in fields else (*fields, *self._kinds)

    def _rows_without_columns(self, section: Section) -> Iterator[pa.RecordBatch]:
        if self._meter is not None:
            self._meter.files_by_metadata += len(section.files)
        for file in section.counted_files:
            yield empty_rows(file.row_count - len(self._dead.get(file.name, ())))

    def _merge(self, section: Section, fields: tuple[Field, ...]) -> Iterator[pa.RecordBatch]:
        mask = self._request.key_mask
        sources = [self._source(section, run, fields, mask) for run in _sorted_runs(section)]
        return merge(sources, self.merge_plan())

    def merge_plan(self) -> Plan:
        """The settings of the merge of sections with several runs."""
        order, engine = merge_order(self._request.schema), engine_of(self._request.schema)
        columns = tuple(field.name for field in (*self._fields, *self._kinds)) or (order.keys[0].name,)
        first_rows = self._request.first_rows
        plan = read_plan(
            order, engine, columns, drop_deletes=not self._kinds, memory=self._root.env.memory, first_rows=first_rows
        )
        return msgspec.structs.replace(plan, condition=_result_filter(self._request, columns, self._meter))

    def _source(self, section: Section, run: SortedRun, fields: tuple[Field, ...], mask: Filter | None) -> RunSource:
        def batches(batch_rows: int) -> Iterator[pa.RecordBatch]:
            if self._beyond is not None:
                batch_rows = max(min(batch_rows, _FEW_ROWS), batch_rows // _PIECES)
            for batch in self.run(section, fields, run.files, batch_rows):
                yield keep(batch, mask)

        all_fields = len(self._request.schema.fields)
        row_bytes = max(16, 3 * run.size_bytes * len(fields) // max(1, run.row_count * all_fields))
        return RunSource(run.files[0].name, run.row_count, row_bytes + 8 * len(fields), batches)

    def run(
        self, section: Section, fields: Sequence[Field], files: Sequence[DataFile], batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """The rows of consecutive files; in key order, only up to the last key that can match."""
        is_beyond = self._beyond or _never
        for number, file in enumerate(files):
            asked = self._asked_of(section, file)
            is_unknown = asked.rows is None and len(section.runs) == 1
            if self._search is not None and is_unknown and file.name not in self._dead:
                with self._present():
                    reader = partial(self._reader, file, by_page=file.row_count >= PAGED_ROWS)
                    found = self._search.rows_of(file, self.stamps.stored_fields(file, fields), reader)
                    asked = asked if found is None else _Asked(None, found)
            if asked.rows is not None and not asked.rows:
                if self._meter is not None:
                    self._meter.files_by_index += 1
                continue
            for batch in self._file(file, fields, asked, batch_rows):
                begins_beyond = is_beyond(batch)
                if not begins_beyond:
                    yield batch
                if begins_beyond or is_beyond(batch.slice(max(0, batch.num_rows - 1))):
                    if self._meter is not None:
                        self._meter.files_by_key += len(files) - number - 1
                    return

    def _file(
        self, file: DataFile, fields: Sequence[Field], asked: _Asked, batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        with self._present():
            small = None if self.small is None else self.small.take(self.files.path(file))
            asks = asked.predicate is not None or asked.rows is not None
            pieces: Iterable[tuple[int, pa.RecordBatch]]
            if small is not None:
                pieces = [(0, small)]
            else:
                pieces = self._reader(file, fields, by_page=asks and file.row_count >= PAGED_ROWS).positions(
                    batch_rows=batch_rows, predicate=asked.predicate, rows=asked.rows, meter=self._meter
                )
            dead = self._dead.get(file.name)
            if self._shows_dead and dead is not None:
                rows = dead_as_deletes(pieces, dead)
            else:
                rows = alive(pieces, dead) if asked.rows is None else select_rows(pieces, asked.rows)
            yield from self.stamps.complete(file, fields, rows)

    def _reader(self, file: DataFile, fields: Sequence[Field], *, by_page: bool = False) -> FileReader:
        return self.files.reader(file, self.stamps.stored_fields(file, fields), by_page=by_page)

    def _asked_of(self, section: Section, file: DataFile) -> _Asked:
        """The request to a file. If other runs have rows with the same keys, rows may be skipped only by key."""
        if len(section.runs) > 1:
            return _Asked(self._request.by_key, None)
        return _Asked(self._request.predicate, self._wanted_rows(file))

    def _wanted_rows(self, file: DataFile) -> BitMap | None:
        """The live rows of a file that may match according to its indexes or their ids; None if unknown."""
        rows, by_id, first = None, self._request.row_id_mask, ids_from(file)
        if by_id is not None and first is not None and file.row_count <= MAX_ROWS:
            rows = rows_with_ids(by_id, first, file.row_count)
        if self._request.predicate is not None and self._request.asks_indexes and has_index(file):
            with self._present():
                found = self.files.matching(file, self._request.predicate)
            if found is not None:
                rows = found if rows is None else rows & found
        dead = self._dead.get(file.name)
        return rows if rows is None or dead is None else rows - dead.bitmap(0)

    @lazy_property
    def _dead(self) -> Mapping[str, DeletionVector]:
        """The deletion vectors of the split's files, by file name."""
        files = {file.name: file for file in self.split.files}
        places = {name: place for name, place in self.split.deletions.items() if name in files}
        try:
            vectors = read_deletions(self._store, places)
        except FileMissingError as error:
            raise self._missing(error) from error
        for name, vector in vectors.items():
            check_fits(files[name], vector, places[name].path)
        return vectors

    @contextlib.contextmanager
    def _present(self) -> Iterator[None]:
        """Convert a missing file to SnapshotExpiredError if its snapshot has expired."""
        try:
            yield
        except FileMissingError as error:
            raise self._missing(error) from error

    def _missing(self, error: FileMissingError) -> PaimonError:
        last, since = self.split.snapshot_id, self.split.since
        if since is not None:
            return self._root.missing_changes(since, last, error)
        return self._root.missing(Base(last), error)


def _result_filter(request: Request, columns: Sequence[str], meter: Meter | None) -> ResultFilter | None:
    """The condition on merged rows, if they have its columns; rows that do not match are counted as merged."""
    mask, wanted = request.mask, set() if request.predicate is None else columns_of(request.predicate)
    if mask is None or not wanted or not wanted <= set(columns) or len(columns) < _WORTH * len(wanted):
        return None

    def matches(batch: pa.RecordBatch) -> pa.Array:
        found = mask(batch)
        if meter is not None:
            meter.rows_merged += batch.num_rows - found.true_count
        return found

    return ResultFilter(tuple(name for name in columns if name in wanted), matches)


class PartReader:
    """Reads the runs of a split with one section, for a merge with the runs of other partitions or buckets.

    With `shows_dead`, rows that a deletion vector marks dead come as deletes: the row that replaced them may have been
    a delete, which no file needs within the partition, but older partitions do.

    Source: Java `ExposeDeletionKeyValueReader`.
    """

    def __init__(
        self, root: TableRoot, request: Request, part: Split, meter: Meter | None, *, shows_dead: bool = True
    ) -> None:
        """`request`: its condition is on keys alone, since rows of other splits may have the same keys."""
        self._reader = SplitReader(root, request, part, meter)
        self._reader._shows_dead = shows_dead
        self._section = part.sections[0]
        if is_distant(root.path):
            self._reader.fetch_ahead(self._section.files)

    def run(self, fields: Sequence[Field], files: Sequence[DataFile], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of consecutive files in key order, deletes included; rows whose keys cannot match may be missing.

        `fields`: with `_VALUE_KIND` if the part has deletion vectors.
        """
        return self._reader.run(self._section, fields, files, batch_rows)


def _sorted_runs(section: Section) -> list[SortedRun]:
    return [SortedRun(files) for files in section.runs]


def merge_fields(
    schema: TableSchema, returned: Sequence[Field], runs: Sequence[SortedRun], order: MergeOrder, engine: Engine
) -> tuple[Field, ...]:
    """The columns to decode for a merge: returned ones, those that order or combine rows, system columns."""
    wanted = engine.inputs(frozenset(field.name for field in returned))
    wanted |= {field.name for field in (*order.keys, *order.sequence)}
    fields = [field for field in schema.fields if field.name in wanted]
    if LEVEL_FIELD.name in wanted:
        fields.append(LEVEL_FIELD)
    if not ages_are_disjoint(runs):
        fields.append(SEQUENCE_FIELD)
    if any(run.may_delete for run in runs):
        fields.append(KIND_FIELD)
    return tuple(fields)


def _additions(batch: pa.RecordBatch) -> pa.Array:
    return from_numpy((numpy_values(batch.column(VALUE_KIND)) & 1) == 0, pa.bool_())


def _never(_batch: pa.RecordBatch) -> bool:
    return False
