"""Opens one data file and reads it in the requested schema.

Source: format.md §1.1, §3.3, §8; Java `FormatReaderMapping`, `DataFileRecordReader`.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyroaring import BitMap

from paimon_py.codec.binary_row import decode_one, is_null_at
from paimon_py.codec.binary_row.encode import ARITY_BYTES
from paimon_py.env import SpillPlace
from paimon_py.errors import CorruptionError, SchemaError, UnsupportedError
from paimon_py.expr.predicate import Predicate
from paimon_py.expr.prune import Bounds
from paimon_py.expr.split import decide
from paimon_py.files.evolve import Evolution
from paimon_py.files.file_columns import file_columns
from paimon_py.files.meter import Meter
from paimon_py.files.physical import (
    DATA_EVOLUTION,
    bounded_fields,
)
from paimon_py.files.row_ids import RowIds
from paimon_py.files.variant_parts import cast_array
from paimon_py.formats.base import BUFFER_BYTES, OpenFile, ReadSettings, empty_rows
from paimon_py.formats.parts import Parts
from paimon_py.formats.registry import by_extension
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.types import Atomic, Field
from paimon_py.storage.store import OpenRead

BATCH_ROWS = 65_536
PAGED_ROWS = 40_000
"""Files with fewer rows have so few pages that reading all of them is cheaper than selecting some."""


class FileReader:
    """One data file, read with the requested columns; opened on demand."""

    def __init__(
        self,
        store: OpenRead,
        path: str,
        file: DataFile,
        file_schema: TableSchema,
        read_fields: Sequence[Field],
        *,
        known: pa.RecordBatch | None = None,
        by_page: bool = False,
        spill: SpillPlace | None = None,
    ) -> None:
        """A reader of one file.

        Args:
            path: the path of the file; `file.external_path` takes precedence.
            file_schema: the table schema that the file was written with (`file.schema_id`).
            read_fields: columns by field id, in the requested types; `SEQUENCE_FIELD` and `KIND_FIELD` for files of
                primary-key tables.
            known: one row with the columns that are constant in the file; the file may not contain them.
            by_page: on a local disk, also skip unneeded pages inside row groups.
            spill: see `ReadSettings`.
        """
        self._store = store
        self._path = path
        self._file = file
        self._known = known
        self._file_schema = file_schema
        constants = _by_id(file_schema, known)
        self._columns = file_columns(file_schema, file.write_columns, tuple(read_fields), frozenset(constants))
        self._evolution = self._columns.evolution.with_known(constants)
        self._ids = RowIds(file, self._place, read_fields) if self._columns.asks_ids else None
        self._by_page = by_page
        self._spill = spill

    def parts(self, predicate: Predicate | None, rows: BitMap | None) -> Parts | None:
        """The row groups or stripes that `positions` reads and skips; None if it does not open the file.

        Cost: opens the file and reads its footer.
        """
        if not self._evolution.sources:
            return None
        pushed, asked = self._push_down(predicate)
        opened = self._open(pushed, asked)
        try:
            return opened.parts(pushed, rows)
        finally:
            opened.close()

    def positions(
        self,
        *,
        batch_rows: int = BATCH_ROWS,
        predicate: Predicate | None = None,
        rows: BitMap | None = None,
        meter: Meter | None = None,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows of the file, in order: batches, each with the position of its first row in the file.

        Shapes: out — batches of at most `batch_rows` rows with the Arrow schema of the requested columns.
        Args:
            predicate: bound to the requested schema; parts of the file without a match may be skipped. Rows are not
            filtered.
            rows: requested positions; parts of the file without any may be skipped.
            meter: counts what is read.
        Cost: one open file; only needed columns are read, and none if the file has none of them.
        Raises:
            FileMissingError: the file does not exist.
            CorruptionError: damaged bytes, or a different row count from the manifest's.
            SchemaError: a stored value is invalid in the current type of the column.
            UnsupportedError: a format, type or cast that is not supported.
        """
        if not self._columns.evolves and _lacks_columns(self._file, self._file_schema):
            message = f"{self._path} holds only some columns of its rows"
            raise UnsupportedError(message, feature=DATA_EVOLUTION, path=self._path)
        pieces = self._positions(batch_rows=batch_rows, predicate=predicate, rows=rows, meter=meter)
        if self._ids is None:
            yield from pieces
            return
        for position, batch in pieces:
            yield position, self._ids.fill(position, batch)

    def _positions(
        self, *, batch_rows: int, predicate: Predicate | None, rows: BitMap | None, meter: Meter | None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The content of the file, with NULL for missing columns."""
        file, evolution = self._file, self._evolution
        if not evolution.sources:
            if meter is not None:
                meter.files_by_metadata += 1
            yield from _nulls(evolution, file.row_count, batch_rows)
            return
        pushed, asked = self._push_down(predicate)
        opened = self._open(pushed, asked)
        try:
            self._check_rows(opened.row_count)
            counted = None if meter is None else meter.on_open(opened, pushed, rows)
            found = 0
            for position, batch in opened.positioned_batches(
                evolution.columns, batch_rows=batch_rows, predicate=pushed, rows=rows
            ):
                found += batch.num_rows
                if counted is not None:
                    counted.took(position, batch.num_rows)
                yield position, _evolve(evolution, batch, self._place)
            if pushed is None and rows is None:
                self._check_rows(found)
        finally:
            opened.close()

    @property
    def _place(self) -> str:
        return self._file.external_path or self._path

    def _push_down(self, predicate: Predicate | None) -> tuple[Predicate | None, frozenset[str]]:
        """The predicate in terms of the file's columns, and these; None if it cannot skip anything."""
        if predicate is None:
            return None, frozenset()
        pushed = self._columns.push_down(predicate)
        if self._known is not None and not pushed.reads.isdisjoint(self._known.schema.names):
            pushed = self._columns.find_implied(decide(predicate, self._known))
        return pushed.implied, pushed.asks

    def _open(self, pushed: Predicate | None, asked: frozenset[str]) -> OpenFile:
        remote = "://" in self._place
        needed = self._columns.columns_for(asked)
        settings = ReadSettings(
            buffer_size_bytes=0 if remote or self._file.size_bytes <= BUFFER_BYTES else BUFFER_BYTES,
            by_page=self._by_page and not remote,
            row_count=self._file.row_count,
            decimals=self._columns.may_hold_decimals,
            whole=None if pushed is None else partial(_whole_bounds, self._file, self._file_schema, asked),
            is_planned=self._file.row_count < PAGED_ROWS and _bounds_all(self._file, self._file_schema, asked),
            schema_names=self._file_schema.names,
            cast=cast_array,
            stored=self._columns.stored,
            line_delimiter=_line_delimiter(self._file.name, self._file_schema),
            may_lack=needed.may_lack,
            alike=needed.alike,
            spill=self._spill,
        )
        return _open(self._store, self._place, self._file, needed.fields, settings)

    def _check_rows(self, found: int | None) -> None:
        if found is not None and found != self._file.row_count:
            message = f"{self._place} has {found} rows, its manifest entry says {self._file.row_count}"
            raise CorruptionError(message, path=self._place)


def _line_delimiter(name: str, schema: TableSchema) -> str:
    """The end of a line in a file, by the options of its schema."""
    word = next((word for word in ("json", "text") if f".{word}" in name), "")
    return schema.options.get(f"{word}.line-delimiter", "\n")


def _bounds_all(file: DataFile, schema: TableSchema, names: Collection[str]) -> bool:
    """Whether the file's manifest entry has bounds for all of these columns, so that planning has already used them."""
    stats = file.value_stats
    if not stats.min_values or not names:
        return False
    covered = [field.name for field in bounded_fields(schema, file.bounded_columns)]
    if int.from_bytes(stats.min_values[:ARITY_BYTES], "big") != len(covered):
        return False
    return all(name in covered and not is_null_at(stats.min_values, covered.index(name)) for name in names)


def _whole_bounds(file: DataFile, schema: TableSchema, names: Container[str]) -> dict[str, Bounds]:
    """The bounds of columns in the file's manifest entry, one slot each; columns without bounds are omitted."""
    covered = bounded_fields(schema, file.bounded_columns)
    types, stats = [field.type for field in covered], file.value_stats
    if int.from_bytes(stats.min_values[:ARITY_BYTES], "big") != len(types):
        return {}
    slots = [at for at, field in enumerate(covered) if field.name in names and isinstance(field.type, Atomic)]
    lows, highs = decode_one(stats.min_values, types, slots), decode_one(stats.max_values, types, slots)
    counts = stats.null_counts or [None] * len(covered)
    return {
        covered[slot].name: Bounds(min=low, max=high, null_count=pa.array([counts[slot]], pa.int64()))
        for slot, low, high in zip(slots, lows, highs, strict=True)
    }


def _lacks_columns(file: DataFile, schema: TableSchema) -> bool:
    """Whether a file contains only some columns of its schema, so that other files contain the rest."""
    return file.write_columns is not None and not set(schema.names) <= set(file.write_columns)


def _by_id(schema: TableSchema, known: pa.RecordBatch | None) -> dict[int, pa.Array]:
    return {} if known is None else {schema.field(name).id: known.column(name) for name in known.schema.names}


def _open(store: OpenRead, path: str, file: DataFile, fields: Sequence[Field], settings: ReadSettings) -> OpenFile:
    file_format = by_extension(file.name)
    source = store.open_read(path)
    try:
        return file_format.open(source, path, fields, file.size_bytes, settings)
    except BaseException:
        source.close()
        raise


def _evolve(evolution: Evolution, batch: pa.RecordBatch, path: str) -> pa.RecordBatch:
    try:
        return evolution.apply(batch)
    except SchemaError as error:
        error.path = path
        raise


def _nulls(evolution: Evolution, row_count: int, batch_rows: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    for start in range(0, row_count, batch_rows):
        yield start, evolution.apply(empty_rows(min(batch_rows, row_count - start)))
