"""Parquet data files.

Source: format.md §8.3; Java `ParquetFileFormat`, `ParquetReaderFactory`.
"""

from __future__ import annotations

import functools
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import BinaryIO, NamedTuple, cast

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap

from paimon_py.codec.arrow_types import to_arrow_field, to_arrow_schema
from paimon_py.codec.columns import Ints, combine
from paimon_py.errors import CorruptionError
from paimon_py.expr.predicate import Predicate
from paimon_py.formats.base import (
    Alike,
    CastArray,
    Encoder,
    FileWriter,
    OpenFile,
    ReadSettings,
    WriteSettings,
    decoding,
    empty_rows,
    next_or_none,
    row_batches,
)
from paimon_py.formats.parquet.fetch import GroupsTogether
from paimon_py.formats.parquet.footer import MAGIC, int96_to_fixed, read_footer, tail
from paimon_py.formats.parquet.int96 import INT96_STORAGE, from_int96
from paimon_py.formats.parquet.joined import join_files
from paimon_py.formats.parquet.match import ChosenPages, ParquetMatcher
from paimon_py.formats.parquet.pages import PageReader, rows_between
from paimon_py.formats.parquet.schema import is_variant_type
from paimon_py.formats.parquet.variant_paths import part_paths
from paimon_py.formats.parts import Parts
from paimon_py.formats.reshape import TIMESTAMPS, as_leaf, leaves, reshape
from paimon_py.formats.shared_maps import SharedKeys, as_map, shared_keys
from paimon_py.formats.stored import check_absent, check_stored
from paimon_py.lazy import lazy_property
from paimon_py.parallel import active_workers
from paimon_py.spec.schema import SYSTEM_FIELD_ID_START
from paimon_py.spec.types import Atomic, Field, MapType, RowType, VariantParts

_DEFAULT_READ = ReadSettings()

_NEVER_INT96 = frozenset((
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(),
    pa.date32(),
))  # fmt: skip
_TOGETHER = 8
"""The maximum number of row groups decoded together if all their pages are needed but pages of other groups are not."""

_WANTED_MAX = 16
"""The maximum number of lists of columns for which is kept how files of one schema are read."""

_THREADED_VALUES = 65_536
"""The minimum number of values to decode in several threads; for fewer, threads cost more than they save."""


class ParquetFormat:
    """Format `parquet`."""

    name = "parquet"
    join = staticmethod(join_files)

    def open(
        self,
        source: BinaryIO,
        path: str,
        fields: Sequence[Field],
        size_bytes: int,  # noqa: ARG002
        settings: ReadSettings = _DEFAULT_READ,
    ) -> OpenFile:
        return ParquetOpenFile(source, path, fields, settings)

    def create(self, sink: BinaryIO, fields: Sequence[Field], settings: WriteSettings) -> FileWriter:
        return self.encoder(fields, settings)(sink)

    def encoder(self, fields: Sequence[Field], settings: WriteSettings) -> Encoder:
        from paimon_py.formats.parquet.write import ParquetEncoder

        return ParquetEncoder(fields, settings)


class _Column(msgspec.Struct, frozen=True):
    """A column of the result, and its conversion from the file's batches."""

    field: Field
    target: pa.Field
    as_is: bool
    is_absent: bool = False
    shared: SharedKeys | None = None
    paths: tuple[str, ...] = ()

    def returns(self, kind: pa.DataType) -> bool:
        """Whether a decoded array of this type is returned as it is."""
        return self.as_is and self.shared is None and kind.equals(self.target.type)


class _Wanted:
    """Some columns of a result, in order: those that are decoded, and how they are arranged.

    Attributes:
        plan: all columns; `stored`: those that the file has; `schema`: the Arrow schema of the result.
    """

    __slots__ = ("_seen", "plan", "schema", "stored")

    def __init__(self, plan: Sequence[_Column]) -> None:
        self.plan = plan
        self.stored = [column for column in plan if not column.is_absent]
        self.schema = _schema_of(tuple(column.field for column in plan))
        self._seen: tuple[pa.Schema, list[int] | None] | None = None

    def places(self, batch: pa.RecordBatch) -> list[int] | None:
        """The positions of the result's columns in a decoded batch; None if one of them is not returned as it is."""
        decoded, seen = batch.schema, self._seen
        if seen is None or not decoded.equals(seen[0]):
            places = [decoded.get_field_index(column.field.name) for column in self.plan]
            found = zip(places, self.plan, strict=True)
            as_decoded = all(place >= 0 and column.returns(decoded.field(place).type) for place, column in found)
            seen = self._seen = decoded, places if as_decoded else None
        return seen[1]


class _KnownColumns(NamedTuple):
    """The conversions of the columns `fields` for a file with this schema and these properties in its footer.

    `may_be_int96`: whether another file with this schema may have INT96 columns. `wanted`: the columns of results, by
    their names.
    """

    fields: Sequence[Field]
    about: Mapping[bytes, bytes] | None
    schema: pa.Schema
    columns: Mapping[str, _Column]
    may_be_int96: bool
    wanted: dict[tuple[str, ...], _Wanted]

    def result(self, names: tuple[str, ...]) -> _Wanted:
        """The conversions of these columns, derived once for the files of a schema."""
        found = self.wanted.get(names)
        if found is None:
            if len(self.wanted) >= _WANTED_MAX:
                self.wanted.clear()
            found = self.wanted[names] = _Wanted([self.columns[name] for name in names])
        return found


def _known_columns(
    alike: Alike | None, fields: Sequence[Field], metadata: pq.FileMetaData, schema: pa.Schema
) -> _KnownColumns | None:
    """The conversions for the previous file, if everything that determines them is the same."""
    known = None if alike is None else alike.known
    if not isinstance(known, _KnownColumns) or known.fields is not fields or known.about != metadata.metadata:
        return None
    return known if known.schema.equals(schema, check_metadata=True) else None


class ParquetOpenFile:
    """See `OpenFile`. Page checksums are verified if the file has them."""

    def __init__(self, source: BinaryIO, path: str, fields: Sequence[Field], settings: ReadSettings) -> None:
        self._source = source
        self._path = path
        self._fields = {field.name: field for field in fields}
        self._settings = settings
        with decoding(path):
            self._file = self._open(None)
            self._metadata: pq.FileMetaData = self._file.metadata
            self._schema: pa.Schema = self._file.schema_arrow
            self._footer: bytes | None = None
            known = _known_columns(self._settings.alike, fields, self._metadata, self._schema)
            if (known is None or known.may_be_int96) and _has_int96(self._metadata, self._schema):
                self._footer = int96_to_fixed(read_footer(source))  # 12-byte binaries, which cannot overflow
                self._file = self._open(pq.read_metadata(pa.BufferReader(MAGIC + tail(self._footer))))
                self._metadata = self._file.metadata
                self._schema = self._file.schema_arrow
                known = _known_columns(self._settings.alike, fields, self._metadata, self._schema)
            self._check_rows()
            self._known = self._find_columns(fields) if known is None else known

    @property
    def row_count(self) -> int:
        count: int = self._metadata.num_rows
        return count

    def positioned_batches(
        self,
        columns: Sequence[str],
        *,
        batch_rows: int,
        predicate: Predicate | None = None,
        rows: BitMap | None = None,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        wanted = self._known.result(tuple(columns))
        for position, batch in self._decode(wanted.stored, batch_rows, predicate, rows):
            yield position, self._result(batch, wanted)

    def parts(self, predicate: Predicate | None = None, rows: BitMap | None = None) -> Parts:
        return Parts.of(self._group_rows, self._matching_groups(predicate), rows)

    def close(self) -> None:
        self._file.close()
        self._source.close()

    def _open(self, metadata: pq.FileMetaData | None) -> pq.ParquetFile:
        return pq.ParquetFile(
            self._source,
            metadata=metadata,
            pre_buffer=False,
            buffer_size=self._settings.buffer_size_bytes,
            page_checksum_verification=True,
        )

    def _check_rows(self) -> None:
        rows, stated = sum(self._group_rows), self._metadata.num_rows
        if rows != stated:
            raise ValueError(f"{rows} rows in row groups, {stated} by the footer")

    @lazy_property
    def _group_rows(self) -> list[int]:
        return [self._metadata.row_group(group).num_rows for group in range(self._metadata.num_row_groups)]

    def _find_columns(self, fields: Sequence[Field]) -> _KnownColumns:
        columns = {field.name: self._with_paths(self._column(field)) for field in fields}
        about, schema = self._metadata.metadata, self._schema
        may_be_int96 = not _NEVER_INT96.issuperset(schema.types)
        found = _KnownColumns(fields, about, schema, columns, may_be_int96, {})
        if self._settings.alike is not None:
            self._settings.alike.known = found
        return found

    def _column(self, field: Field) -> _Column:
        target = to_arrow_field(field)
        index = self._schema.get_field_index(field.name)
        if index < 0:
            check_absent(self._path, field, self._schema.names, self._settings)
            return _Column(field, target, as_is=False, is_absent=True)
        stored = self._schema.field(index)
        is_system = field.id >= SYSTEM_FIELD_ID_START  # row ids, which some writers declare NOT NULL
        if field.type.nullable and not stored.nullable and not is_system and not self._is_meant(field, stored):
            raise ValueError(f"column {field.name} has no nulls by the file, which its schema allows")
        shared = shared_keys(stored, field.type, _stamps)
        if shared is not None:
            return _Column(field, target, as_is=False, shared=shared)
        as_is = stored.type.equals(target.type) and not any(map(is_variant_type, leaves(field.type)))
        if not as_is:
            check_stored(stored.type, field.type, _stamps)
        return _Column(field, target, as_is)

    def _is_meant(self, field: Field, stored: pa.Field) -> bool:
        """Whether the writer of a REQUIRED column meant it, although its table allows NULL."""
        from paimon_py.formats.parquet.levels import is_meant_required

        is_flat = isinstance(field.type, Atomic)
        return not is_flat or is_meant_required(self._source, self._metadata, stored, self._group_rows)

    def _with_paths(self, column: _Column) -> _Column:
        """The column with the part of it to decode: of a ROW, only the requested fields."""
        if column.is_absent:
            return column
        name = column.field.name
        stored = self._schema.field(name).type
        paths = [name]
        if isinstance(column.field.type, VariantParts):
            paths = part_paths(name, column.field.type, stored)
        elif not column.as_is and isinstance(column.field.type, RowType) and pa.types.is_struct(stored):
            paths = _inner_paths(name, column.field.type, stored) or [name]
        return msgspec.structs.replace(column, paths=tuple(paths))

    def _decode(
        self, plan: Sequence[_Column], batch_rows: int, predicate: Predicate | None, rows: BitMap | None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The needed stored columns in the file's types, with the position of the first row."""
        stretches = list(self.parts(predicate, rows).stretches())
        if self._settings.by_page:
            stretches = yield from self._decoded_by_page(stretches, plan, batch_rows, predicate, rows)
        paths = {path for column in plan for path in column.paths}
        together = GroupsTogether(self._metadata, self._source, paths)
        for position, part, will_follow in together.of(stretches):
            for batch in self._stretch(part, plan, batch_rows):
                yield position, batch
                position += batch.num_rows
                will_follow()

    def _decoded_by_page(
        self,
        stretches: list[tuple[int, list[int]]],
        plan: Sequence[_Column],
        batch_rows: int,
        predicate: Predicate | None,
        rows: BitMap | None,
    ) -> Generator[tuple[int, pa.RecordBatch], None, list[tuple[int, list[int]]]]:
        """The same without unneeded pages.

        Returns: the groups left to decode: all of them if the first row group needs all its pages, since the order of
            rows then does not help the predicate.
        """
        counts, names = self._group_rows, [column.field.name for column in plan]
        whole: list[tuple[int, list[int]]] = []
        for place, (position, group) in enumerate(_one_by_one(stretches, counts)):
            wanted = None if rows is None else _between(rows, position, position + counts[group])
            with decoding(self._path):
                chosen = self._matcher.pages(group, counts[group], names, predicate, wanted)
            if chosen is None and rows is None and not place:
                return stretches
            if chosen is None or 2 * chosen.row_count > counts[group]:
                whole = _with_group(whole, position, group)
                if len(whole[-1][1]) < _TOGETHER:
                    continue
                chosen = None
            for start, groups in whole:
                yield from _with_positions(self._stretch(groups, plan, batch_rows), start)
            whole = []
            for start, batch in [] if chosen is None else self._pages_of(group, plan, chosen):
                for begin in range(0, batch.num_rows, batch_rows):
                    yield position + start + begin, batch.slice(begin, batch_rows)
        return whole

    @lazy_property
    def _pages(self) -> PageReader:
        footer = read_footer(self._source) if self._footer is None else self._footer
        return PageReader(self._source, footer, self._metadata.schema, self._group_rows)

    @lazy_property
    def _matcher(self) -> ParquetMatcher:
        return ParquetMatcher(self._pages, self._fields, self._schema)

    def _pages_of(
        self, group: int, plan: Sequence[_Column], chosen: ChosenPages
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows of the selected pages; columns without separate pages, as nested ones, are decoded up to these."""
        with decoding(self._path):
            found = list(rows_between(self._pages, list(chosen.pages.values()), chosen.cuts, chosen.wanted))
        others = [column for column in plan if column.field.name not in chosen.pages]
        beside: dict[str, pa.Array] = {}
        if others and found:
            end = found[-1][0] + len(found[-1][1][0])
            first = pa.Table.from_batches(_until(end, self._stretch([group], others, end)))
            beside = {name: combine(first.column(name)) for name in first.column_names}
        for start, columns in found:
            taken = dict(zip(chosen.pages, columns, strict=True))
            arrays = [
                taken[name] if name in taken else beside[name].slice(start, len(columns[0]))
                for name in (column.field.name for column in plan)
            ]
            yield start, pa.RecordBatch.from_arrays(arrays, [column.field.name for column in plan])

    def _stretch(self, groups: list[int], plan: Sequence[_Column], batch_rows: int) -> Iterator[pa.RecordBatch]:
        names = [path for column in plan for path in column.paths]
        expected = sum(self._group_rows[group] for group in groups)
        if not names:
            yield from row_batches(empty_rows(expected), batch_rows)
            return
        with decoding(self._path):
            batches = self._file.iter_batches(
                batch_rows,
                row_groups=groups,
                columns=names,
                use_threads=_may_use_threads(min(batch_rows, expected) * len(names)),
            )
        rows = 0
        while (batch := next_or_none(batches, self._path)) is not None:
            rows += batch.num_rows
            yield batch
        if rows != expected:
            message = f"{self._path} has {rows} rows where its footer says {expected}"
            raise CorruptionError(message, path=self._path)

    def _result(self, batch: pa.RecordBatch, wanted: _Wanted) -> pa.RecordBatch:
        plan = wanted.plan
        if not plan:
            return batch.select([])
        arrays = []
        with decoding(self._path):
            places = wanted.places(batch)
            if places is not None:
                decoded = batch.columns
                return pa.RecordBatch.from_arrays([decoded[place] for place in places], schema=wanted.schema)
            leaf = functools.partial(_leaf, cast=self._settings.cast)
            for column in plan:
                if column.is_absent:
                    arrays.append(pa.nulls(batch.num_rows, column.target.type))
                    continue
                array = batch.column(column.field.name)
                if column.shared is not None:
                    array = as_map(array, column.shared, cast(MapType, column.field.type), column.target.type, leaf)
                elif not column.as_is or not array.type.equals(column.target.type):
                    array = reshape(array, column.field.type, column.target.type, leaf)
                arrays.append(array)
            return pa.RecordBatch.from_arrays(arrays, schema=wanted.schema)

    def _matching_groups(self, predicate: Predicate | None) -> list[bool] | None:
        """A mask of the row groups that may contain a match; None for all."""
        groups = self._metadata.num_row_groups
        if predicate is None or groups == 0 or (groups == 1 and self._settings.is_planned):
            return None
        with decoding(self._path):
            return self._matcher.groups(predicate, self._group_rows, self._settings.whole)


def _may_use_threads(values: int) -> bool:
    """Whether to decode columns in parallel: not next to other work of a pool that keeps all cores busy."""
    return values >= _THREADED_VALUES and active_workers() == 1 and pa.cpu_count() > 1


def _one_by_one(stretches: Iterable[tuple[int, list[int]]], counts: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Each row group, with the position of its first row."""
    for position, groups in stretches:
        for group in groups:
            yield position, group
            position += counts[group]


def _with_group(stretches: list[tuple[int, list[int]]], position: int, group: int) -> list[tuple[int, list[int]]]:
    """Runs of adjacent row groups, extended by a group whose first row is at `position`."""
    if stretches and stretches[-1][1][-1] == group - 1:
        return [*stretches[:-1], (stretches[-1][0], [*stretches[-1][1], group])]
    return [*stretches, (position, [group])]


def _with_positions(batches: Iterable[pa.RecordBatch], position: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Consecutive batches, each with the position of its first row."""
    for batch in batches:
        yield position, batch
        position += batch.num_rows


def _until(row: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The first batches, with at least so many rows; the others are not decoded."""
    for batch in batches:
        yield batch
        row -= batch.num_rows
        if row <= 0:
            return


def _between(rows: BitMap, start: int, stop: int) -> Ints:
    """The positions in a range, relative to its start."""
    return np.array((rows & BitMap(range(start, stop))).to_array(), np.int64) - start


def _inner_paths(path: str, kind: RowType, stored: pa.DataType) -> list[str]:
    """The paths of the fields of a ROW in the file, recursively."""
    found: list[str] = []
    for field in kind.fields:
        index = stored.get_field_index(field.name)
        if index >= 0:
            inner, there = f"{path}.{field.name}", stored.field(index).type
            if isinstance(field.type, VariantParts):
                found += part_paths(inner, field.type, there)
                continue
            deeper = isinstance(field.type, RowType) and pa.types.is_struct(there)
            found += (_inner_paths(inner, cast(RowType, field.type), there) if deeper else []) or [inner]
    return found


@functools.lru_cache(maxsize=256)
def _schema_of(fields: tuple[Field, ...]) -> pa.Schema:
    return to_arrow_schema(fields)


def _has_int96(metadata: pq.FileMetaData, stored: pa.Schema) -> bool:
    """Whether a column is INT96; asked of every column only where there is a type that one may have."""
    if _NEVER_INT96.issuperset(stored.types):
        return False
    schema = metadata.schema
    return any(schema.column(index).physical_type == "INT96" for index in range(metadata.num_columns))


def _stamps(kind: Atomic) -> list[pa.DataType]:
    """The layouts of a timestamp; Java takes the unit from the file only for more than six digits."""
    digits = kind.precision or 0
    units = ("ms",) if digits <= 3 else ("us",) if digits <= 6 else ("ns", "us", "ms")
    return [INT96_STORAGE, *(pa.timestamp(unit, zone) for unit in units for zone in (None, "UTC"))]


def _leaf(array: pa.Array, kind: Atomic | VariantParts, target: pa.DataType, cast: CastArray | None) -> pa.Array:
    if isinstance(kind, VariantParts):
        from paimon_py.formats.parquet.variants import parts_of

        assert cast is not None
        return parts_of(array, kind, cast)
    if is_variant_type(kind):
        from paimon_py.formats.parquet.variants import variants_of

        return variants_of(array)
    if array.type == INT96_STORAGE and kind.root in TIMESTAMPS:
        return from_int96(array, target)
    return as_leaf(array, target)
