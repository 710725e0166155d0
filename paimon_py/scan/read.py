"""From splits to batches: which columns to read, raw or merged, filtered, projected.

Source: format.md §17; Java `MergeFileSplitRead`, `RawFileSplitRead`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import msgspec
import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.codec.columns import from_numpy, numpy_values
from paimon_py.codec.deletion_vectors import DeletionVector
from paimon_py.codec.partition_text import partition_directory
from paimon_py.errors import CorruptionError, SnapshotExpiredError
from paimon_py.expr.arrow import Mask, prepare
from paimon_py.expr.predicate import Predicate
from paimon_py.expr.split import columns_of, split_conjuncts
from paimon_py.files.alive import alive, check_fits, selected
from paimon_py.files.file_index import has_index, matching
from paimon_py.files.physical import KIND_FIELD, LEVEL_FIELD, SEQUENCE_FIELD
from paimon_py.files.places import file_path
from paimon_py.files.reader import read_positions
from paimon_py.files.stamps import Stamps
from paimon_py.formats.base import empty_rows
from paimon_py.lsm.engines import engine_of
from paimon_py.lsm.groups import Engine
from paimon_py.lsm.merge import Plan, RunSource, merge
from paimon_py.lsm.order import MergeOrder, merge_order
from paimon_py.lsm.runs import SortedRun, ages_are_disjoint
from paimon_py.metadata.deletion_files import read_deletions
from paimon_py.metadata.root import TableRoot
from paimon_py.scan.reach import reach
from paimon_py.scan.split import Section, Split
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.options import Options
from paimon_py.spec.schema import VALUE_KIND, TableSchema
from paimon_py.spec.types import Field
from paimon_py.storage.store import FileMissingError

RAW_BATCH_ROWS = 65_536


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What to read of every split.

    `schema`: the schema of the rows. `columns`: names to return, in order. `predicate`: bound to the schema; rows that
    do not match are left out.
    """

    schema: TableSchema
    columns: tuple[str, ...]
    predicate: Predicate | None = None

    @property
    def fields(self) -> tuple[Field, ...]:
        """The returned columns."""
        return tuple(self.schema.field(name) for name in self.columns)

    @property
    def arrow_schema(self) -> pa.Schema:
        """The returned columns for Arrow."""
        return to_arrow_schema(self.fields)


def read_split(root: TableRoot, request: Request, split: Split) -> Iterator[pa.RecordBatch]:
    """The rows of a split, in the order of its sections.

    Shapes: out — batches of `request.arrow_schema`, none empty.
    Cost: one raw batch or one merge window in memory besides the open files.
    Raises: SnapshotExpiredError if the files have been expired meanwhile; CorruptionError for damaged files.
    """
    schema = request.arrow_schema
    for batch in _SplitReader(root, request, split).batches():
        if batch.num_rows:
            picked = batch.select(list(request.columns))
            yield pa.RecordBatch.from_arrays(picked.columns, schema=schema) if request.columns else picked


def count_split(root: TableRoot, request: Request, split: Split) -> int:
    """How many rows `read_split` returns; from metadata alone where that is exact.

    A plan holds no partition that does not match, so conditions on partitions alone need not be asked again.
    """
    if request.predicate is not None and not columns_of(request.predicate) <= set(request.schema.partition_keys):
        return _count(root, request, split)
    request = msgspec.structs.replace(request, predicate=None)
    known = {name for name, place in split.deletions.items() if place.cardinality is not None}
    exact = 0
    rest = []
    for section in split.sections:
        if section.raw and all(file.name in known or file.name not in split.deletions for file in section.files):
            exact += sum(file.row_count - split.dead_rows(file.name) for file in section.files)
        else:
            rest.append(section)
    return exact + (_count(root, request, msgspec.structs.replace(split, sections=tuple(rest))) if rest else 0)


def sure_rows(split: Split) -> int:
    """A number of rows that a split certainly holds, if all of them are wanted."""
    unknown = any(place.cardinality is None for place in split.deletions.values())
    return 0 if unknown or not split.raw else split.row_count - sum(map(split.dead_rows, split.deletions))


def left_by_indexes(root: TableRoot, request: Request, split: Split) -> tuple[int, int]:
    """How many files of a split, and rows of all its files, are not looked at because of file indexes."""
    reader = _SplitReader(root, request, split)
    files = rows = 0
    for file in (file for section in split.sections if len(section.runs) == 1 for file in section.files):
        wanted = reader.wanted_rows(file)
        if wanted is not None:
            files += not wanted
            rows += file.row_count - split.dead_rows(file.name) - len(wanted)
    return files, rows


def _count(root: TableRoot, request: Request, split: Split) -> int:
    bare = msgspec.structs.replace(request, columns=())
    return sum(batch.num_rows for batch in _SplitReader(root, bare, split).batches())


class _SplitReader:
    """One pass over a split: what its sections have in common."""

    def __init__(self, root: TableRoot, request: Request, split: Split) -> None:
        schema = request.schema
        self._root = root
        self._request = request
        self._split = split
        self._directory = partition_directory(schema, split.partition)
        self._mask = None if request.predicate is None else prepare(request.predicate)
        wanted = set(request.columns) | (columns_of(request.predicate) if request.predicate is not None else set())
        self._fields = tuple(field for field in schema.fields if field.name in wanted)
        self._stamps = Stamps.of(schema)
        self._asks_indexes = Options(schema.options).get_bool("file-index.read.enabled")
        self._keys = None
        if request.predicate is not None and schema.primary_keys:
            self._keys = split_conjuncts(request.predicate, schema.primary_keys)[0]
        self._beyond = None if self._keys is None else reach(self._keys, schema.key_fields[0].name)

    def batches(self) -> Iterator[pa.RecordBatch]:
        for section in self._split.sections:
            if section.raw:
                yield from self._raw(section)
            elif len(section.runs) == 1:
                yield from self._single(section)
            else:
                yield from self._merged(section)

    def _raw(self, section: Section) -> Iterator[pa.RecordBatch]:
        if not self._fields:
            yield from (empty_rows(file.row_count - len(self._dead.get(file.name, ()))) for file in section.files)
            return
        for batch in self._run(section.files, self._fields, self._request.predicate, RAW_BATCH_ROWS, alone=True):
            yield keep(batch, self._mask)

    def _single(self, section: Section) -> Iterator[pa.RecordBatch]:
        """One run that may hold −U and −D."""
        fields = (*self._fields, KIND_FIELD)
        for batch in self._run(section.files, fields, self._request.predicate, RAW_BATCH_ROWS, alone=True):
            yield keep(keep(batch, _additions), self._mask)

    def _merged(self, section: Section) -> Iterator[pa.RecordBatch]:
        order, engine = merge_order(self._request.schema), engine_of(self._request.schema)
        runs = [SortedRun(files) for files in section.runs]
        fields = merge_fields(self._request.schema, self._fields, runs, order, engine)
        mask = None if self._keys is None else prepare(self._keys)
        sources = [self._source(run, fields, mask) for run in runs]
        columns = tuple(field.name for field in self._fields) or (order.keys[0].name,)
        plan = Plan(order=order, engine=engine, columns=columns)
        for batch in merge(sources, plan):
            yield keep(batch, self._mask)

    def _source(self, run: SortedRun, fields: tuple[Field, ...], mask: Mask | None) -> RunSource:
        def batches(batch_rows: int) -> Iterator[pa.RecordBatch]:
            for batch in self._run(run.files, fields, self._keys, batch_rows):
                yield keep(batch, mask)

        all_fields = len(self._request.schema.fields)
        row_bytes = max(16, 3 * run.size_bytes * len(fields) // max(1, run.row_count * all_fields))
        return RunSource(run.files[0].name, run.row_count, row_bytes + 8 * len(fields), batches)

    def _run(
        self,
        files: Sequence[DataFile],
        fields: Sequence[Field],
        predicate: Predicate | None,
        batch_rows: int,
        *,
        alone: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Files one after the other; in key order no further than a key can match.

        `alone`: no other run has rows of the same keys, so that rows which cannot match may be left out unseen.
        """
        for file in files:
            wanted = self.wanted_rows(file) if alone else None
            if wanted is not None and not wanted:
                continue
            for batch in self._file(file, fields, predicate, batch_rows, wanted):
                if self._beyond is not None and self._beyond(batch):
                    return
                yield batch

    def _file(
        self,
        file: DataFile,
        fields: Sequence[Field],
        predicate: Predicate | None,
        batch_rows: int,
        wanted: BitMap | None,
    ) -> Iterator[pa.RecordBatch]:
        file_schema, path = self._schema_of(file), self._path(file)
        stored = self._stamps.stored(file, fields)
        try:
            pieces = read_positions(
                self._root.files,
                path,
                file,
                file_schema,
                stored,
                predicate=predicate,
                batch_rows=batch_rows,
                rows=wanted,
            )
            rows = alive(pieces, self._dead.get(file.name)) if wanted is None else selected(pieces, wanted)
            yield from self._stamps.complete(file, fields, rows)
        except FileMissingError as error:
            raise self._missing(path) from error

    def wanted_rows(self, file: DataFile) -> BitMap | None:
        """The living rows of a file that may match by its indexes; None if they do not know."""
        if self._request.predicate is None or not self._asks_indexes or not has_index(file):
            return None
        path = self._path(file)
        try:
            rows = matching(self._root.files, path, file, self._schema_of(file).fields, self._request.predicate)
        except FileMissingError as error:
            raise self._missing(error.path or path) from error
        dead = self._dead.get(file.name)
        return rows if rows is None or dead is None else rows - dead.bitmap(0)

    def _schema_of(self, file: DataFile) -> TableSchema:
        return self._root.schemas.of_file(file.schema_id, self._request.schema)

    def _path(self, file: DataFile) -> str:
        return file_path(self._root.path, self._request.schema, self._directory, self._split.bucket, file)

    @cached_property
    def _dead(self) -> Mapping[str, DeletionVector]:
        """The deletion vectors of the split's files, by file name."""
        files = {file.name: file for file in self._split.files}
        places = {name: place for name, place in self._split.deletions.items() if name in files}
        try:
            vectors = read_deletions(self._root.files, places)
        except FileMissingError as error:
            raise self._missing(error.path or "an index file") from error
        for name, vector in vectors.items():
            check_fits(files[name], vector, places[name].path)
        return vectors

    def _missing(self, path: str) -> CorruptionError | SnapshotExpiredError:
        return missing_file(self._root, self._split.snapshot_id, path)


def merge_fields(
    schema: TableSchema, returned: Sequence[Field], runs: Sequence[SortedRun], order: MergeOrder, engine: Engine
) -> tuple[Field, ...]:
    """Columns to decode for a merge: what is returned, what orders or makes it, system columns where they decide."""
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


def missing_file(root: TableRoot, number: int, path: str) -> CorruptionError | SnapshotExpiredError:
    """What to raise when a file is not there that snapshot `number` names."""
    kept = root.snapshots.find(number) is not None
    if not kept and not any(tag.snapshot.id == number for tag in root.tags.list()):
        return SnapshotExpiredError(
            f"snapshot {number} expired while it was read: {path} is gone. Read again from the latest snapshot, "
            "keep snapshots longer (options snapshot.time-retained, snapshot.num-retained.min), or pin one with "
            "table.create_tag(...) before a long read",
            path=path,
            snapshot_id=number,
        )
    return CorruptionError(f"{path} is missing, although snapshot {number} names it and has not expired", path=path)


def keep(batch: pa.RecordBatch, mask: Mask | None) -> pa.RecordBatch:
    """The rows for which the mask is true; neighbouring rows are a slice, without a copy."""
    if mask is None or not batch.num_rows:
        return batch
    flags = mask(batch)
    count = flags.true_count
    if count == batch.num_rows:
        return batch
    if count == 0:
        return batch.slice(0, 0)
    rows = np.flatnonzero(numpy_values(flags))
    if int(rows[-1]) - int(rows[0]) == count - 1:
        return batch.slice(int(rows[0]), count)
    return batch.filter(flags)


def _additions(batch: pa.RecordBatch) -> pa.Array:
    return from_numpy((numpy_values(batch.column(VALUE_KIND)) & 1) == 0, pa.bool_())
