"""ORC data files.

Source: format.md §8.4; Java `OrcFileFormat`, `OrcReaderFactory`, `OrcTypeUtil`.
"""

from __future__ import annotations

import base64
import contextlib
import functools
from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple, cast

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc
from pyroaring import BitMap

from paimon_py.codec.arrow_types import to_arrow_field
from paimon_py.codec.columns import integer_array
from paimon_py.errors import CorruptionError, StorageError, UnsupportedError
from paimon_py.expr.predicate import Predicate
from paimon_py.expr.references import columns_of
from paimon_py.formats.base import (
    Encoder,
    FileWriter,
    OpenFile,
    ReadSettings,
    WriteSettings,
    decoding,
    empty_rows,
    row_batches,
)
from paimon_py.formats.guards import GuardedSource
from paimon_py.formats.orc.footer import (
    RawTail,
    Tail,
    check_decimals,
    check_keys,
    check_postscript,
    read_raw_tail,
    read_tail,
    stripes_of,
)
from paimon_py.formats.orc.statistics import stripe_bounds
from paimon_py.formats.orc.timestamps import SECONDS_AND_NANOS, as_timestamps, long_timestamps
from paimon_py.formats.orc.write import OrcFileWriter
from paimon_py.formats.part_bounds import matching_parts
from paimon_py.formats.parts import Parts
from paimon_py.formats.reshape import as_leaf, leaves, reshape
from paimon_py.formats.shared_maps import SharedKeys, as_map, shared_keys
from paimon_py.formats.stored import check_absent, check_stored, check_texts
from paimon_py.spec.types import Atomic, Field, MapType, Root

NANOS_FEATURE = "ORC timestamps outside 1677-09-21 … 2262-04-11"

_DEFAULT_READ = ReadSettings()
_TEXTS = frozenset({Root.CHAR, Root.VARCHAR})
_STAMPS = (pa.timestamp("ns"), pa.timestamp("ns", "UTC"))


class OrcFormat:
    """Format `orc`."""

    name = "orc"

    def open(
        self,
        source: BinaryIO,
        path: str,
        fields: Sequence[Field],
        size_bytes: int,  # noqa: ARG002
        settings: ReadSettings = _DEFAULT_READ,
    ) -> OpenFile:
        return OrcOpenFile(source, path, fields, settings)

    def create(self, sink: BinaryIO, fields: Sequence[Field], settings: WriteSettings) -> FileWriter:
        return self.encoder(fields, settings)(sink)

    def encoder(self, fields: Sequence[Field], settings: WriteSettings) -> Encoder:
        return functools.partial(OrcFileWriter, fields=fields, settings=settings)


class _Column(NamedTuple):
    """A column of the result, and its conversion from the columns of a stripe."""

    field: Field
    target: pa.Field
    as_is: bool
    texts: bool
    is_absent: bool = False
    shared: SharedKeys | None = None


class OrcOpenFile:
    """See `OpenFile`.

    Instants are read as stored; a file that Java wrote with `orc.timestamp-ltz.legacy.type` = true in a zone other than
    UTC returns the values that Java returns in UTC.
    Cost: one stripe of the requested columns in memory; reads the end of the file again if stripes may be skipped.
    """

    def __init__(self, source: BinaryIO, path: str, fields: Sequence[Field], settings: ReadSettings) -> None:
        self._source = source
        self._path = path
        self._fields = {field.name: field for field in fields}
        self._settings = settings
        self._guard = GuardedSource(source)
        self._raw: RawTail | None = None
        self._keys: list[int] = []
        with self._decoding():
            reader = source if isinstance(source, pa.NativeFile) else self._guard
            nested = any(not isinstance(field.type, Atomic) for field in fields)
            if settings.decimals or nested:
                with contextlib.suppress(UnsupportedError):  # codecs that only pyarrow supports
                    self._raw = read_raw_tail(reader)
                    check_decimals(self._raw)
            else:
                check_postscript(reader)
            self._file = orc.ORCFile(reader)
            self._schema: pa.Schema = self._file.schema
            self._columns = {field.name: self._column(field) for field in fields}
            self._long = long_timestamps(reader, self._schema)
            if self._long is not None:
                self._file = orc.ORCFile(self._long.source)
            if self._raw is not None and nested:
                self._keys = _key_columns(self._schema)
                self._places = stripes_of(self._raw) if self._keys else []

    @property
    def row_count(self) -> int:
        count: int = self._file.nrows
        return count

    def positioned_batches(
        self,
        columns: Sequence[str],
        *,
        batch_rows: int,
        predicate: Predicate | None = None,
        rows: BitMap | None = None,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        plan = [self._columns[name] for name in columns]
        schema = pa.schema([column.target for column in plan])
        names = [column.field.name for column in plan if not column.is_absent]
        takes_all = predicate is None and rows is None
        stripes = self._stripes(names) if takes_all else self._chosen_stripes(names, predicate, rows)
        for position, stripe in stripes:
            for piece in row_batches(stripe, batch_rows):
                yield position, self._result(piece, plan, schema)
                position += piece.num_rows

    def parts(self, predicate: Predicate | None = None, rows: BitMap | None = None) -> Parts:
        """See `OpenFile`; files compressed with LZO have no known parts, since only pyarrow can decompress them."""
        try:
            with self._decoding():
                tail = read_tail(self._guard)
                counts = [stripe.row_count for stripe in tail.stripes]
                matching = None if predicate is None or not counts else self._matching(tail, predicate, counts)
        except UnsupportedError:
            return Parts()
        return Parts.of(counts, matching, rows)

    def _matching(self, tail: Tail, predicate: Predicate, counts: Sequence[int]) -> list[bool]:
        """A mask of the stripes that may contain a match; True if unknown."""
        fields = [self._fields[name] for name in columns_of(predicate) if name in self._fields]
        bounds = stripe_bounds(self._guard, tail, fields)
        rows = integer_array(counts, pa.int64())
        found: list[bool] = matching_parts(predicate, bounds, rows, self._settings.whole).tolist()
        return found

    def close(self) -> None:
        self._source.close()

    def _column(self, field: Field) -> _Column:
        target = to_arrow_field(field)
        index = self._schema.get_field_index(field.name)
        if index < 0:
            check_absent(self._path, field, self._schema.names, self._settings)
            return _Column(field, target, as_is=False, texts=False, is_absent=True)
        stored = self._schema.field(index).type
        shared = shared_keys(self._field_with_metadata(index), field.type, lambda _: _STAMPS)
        if shared is not None:
            return _Column(field, target, as_is=False, texts=True, shared=shared)
        same = stored.equals(target.type)
        if not same:
            check_stored(stored, field.type, lambda _: _STAMPS)
        roots = {leaf.root for leaf in leaves(field.type)}
        return _Column(field, target, same and Root.CHAR not in roots, not roots.isdisjoint(_TEXTS))

    def _field_with_metadata(self, index: int) -> pa.Field:
        """A column with the metadata of the Arrow schema that its writer stored in addition to the ORC schema."""
        stored: pa.Field = self._schema.field(index)
        if not pa.types.is_struct(stored.type):
            return stored
        text = (self._schema.metadata or {}).get(b"ARROW:schema")
        said = None if text is None else pa.ipc.read_schema(pa.BufferReader(base64.b64decode(text)))
        place = -1 if said is None else said.get_field_index(stored.name)
        return stored if said is None or place < 0 else stored.with_metadata(said.field(place).metadata)

    def _stripes(self, names: list[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """All stripes, with the position of their first row."""
        if not names:
            yield 0, empty_rows(self.row_count)
            return
        position = 0
        for number in range(self._file.nstripes):
            with self._decoding():
                stripe = self._read_stripe(number, names)
            yield position, stripe
            position += stripe.num_rows
        if position != self.row_count:
            message = f"{self._path} has {position} rows in its stripes, {self.row_count} by its footer"
            raise CorruptionError(message, path=self._path)

    def _chosen_stripes(
        self, names: list[str], predicate: Predicate | None, rows: BitMap | None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The stripes that are not skipped, with the position of their first row."""
        parts = self.parts(predicate, rows)
        if not parts.row_counts:
            yield from self._stripes(names)
            return
        if len(parts.row_counts) != self._file.nstripes or sum(parts.row_counts) != self.row_count:
            message = f"{self._path} has {sum(parts.row_counts)} rows in its stripes, {self.row_count} by its footer"
            raise CorruptionError(message, path=self._path)
        for position, numbers in parts.stretches():
            for number in numbers:
                count = parts.row_counts[number]
                with self._decoding():
                    stripe = self._read_stripe(number, names) if names else empty_rows(count)
                if stripe.num_rows != count:
                    message = f"{self._path} has {stripe.num_rows} rows in a stripe of {count} by its footer"
                    raise CorruptionError(message, path=self._path)
                yield position, stripe
                position += count

    @contextlib.contextmanager
    def _decoding(self) -> Iterator[None]:
        """Convert errors as `decoding` does; an error of the source takes precedence."""
        try:
            with decoding(self._path):
                yield
        except (CorruptionError, StorageError) as error:
            if self._guard.error is not None:
                raise self._guard.error from error
            raise

    def _read_stripe(self, number: int, names: list[str]) -> pa.RecordBatch:
        if self._keys and self._raw is not None:
            check_keys(self._guard, self._raw, self._places[number], self._keys)
        try:
            stripe = self._file.read_stripe(number, columns=names)
            for name in names:
                if self._columns[name].texts:
                    _check_texts(name, stripe.column(name))
            return stripe if self._long is None else self._long.complete(number, stripe)
        except pa.ArrowInvalid as error:
            if "nanosecond" not in str(error):
                raise
            message = f"{self._path} holds a value out of range: {NANOS_FEATURE} cannot be read"
            raise UnsupportedError(message, feature=NANOS_FEATURE, path=self._path) from error

    def _result(self, batch: pa.RecordBatch, plan: Sequence[_Column], schema: pa.Schema) -> pa.RecordBatch:
        if not plan:
            return batch.select([])
        arrays = []
        with decoding(self._path):
            for column in plan:
                if column.is_absent:
                    arrays.append(pa.nulls(batch.num_rows, column.target.type))
                    continue
                array = batch.column(column.field.name)
                if column.shared is not None:
                    array = as_map(array, column.shared, cast(MapType, column.field.type), column.target.type, _leaf)
                elif not (column.as_is and array.type.equals(column.target.type)):
                    array = reshape(array, column.field.type, column.target.type, _leaf)
                arrays.append(array)
            return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _key_columns(schema: pa.Schema) -> list[int]:
    """The numbers of the columns with map keys; columns are numbered depth first, starting with the root as 0."""
    found: list[int] = []

    def after(kind: pa.DataType, column: int) -> int:
        column += 1
        if pa.types.is_map(kind):
            found.append(column)
            return after(kind.item_type, after(kind.key_type, column))
        for place in range(kind.num_fields):
            column = after(kind.field(place).type, column)
        return column

    after(pa.struct(list(schema)), 0)
    return found


def _check_texts(name: str, array: pa.Array) -> None:
    """Raises: pa.ArrowInvalid for strings that are not UTF-8."""
    try:
        check_texts(array)
    except pa.ArrowInvalid as error:
        raise pa.ArrowInvalid(f"column {name!r} contains strings that are not UTF-8 ({error})") from error


def _leaf(array: pa.Array, kind: Atomic, target: pa.DataType) -> pa.Array:
    leaf = as_timestamps(array, target) if array.type.equals(SECONDS_AND_NANOS) else as_leaf(array, target)
    return pc.utf8_rtrim(leaf, characters=" ") if kind.root is Root.CHAR else leaf
