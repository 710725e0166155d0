"""Manifest entries as columns: positions and numbers over one buffer of Avro records.

Python objects are created only on demand: pruning works on numbers and raw row bytes, and only the remaining entries
become `ManifestEntry` values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from paimon_py.codec.avro.shape import Shape, reader
from paimon_py.codec.columns import (
    Bytes,
    Ints,
    Mask,
    Slices,
    from_numpy,
    from_slices,
    gather_bytes,
    numpy_values,
    word_view,
)
from paimon_py.errors import CorruptionError
from paimon_py.lazy import lazy_property
from paimon_py.spec.data_file import DataFile, FileKind, FileSource, ManifestEntry, Stats

ABSENT = -(2**63)
"""The value of a number column for null, or if the file's schema lacks the field."""

_SOURCES: dict[int, FileSource | None] = {ABSENT: None, **{source.value: source for source in FileSource}}

SPARE_BYTES = 64
"""Zero bytes at the end of a buffer, so that reads of any fixed width near the end stay in bounds."""

_FILE = "_FILE"
NUMBERS: dict[tuple[str, ...], str] = {
    ("_VERSION",): "version",
    ("_KIND",): "kind",
    ("_BUCKET",): "bucket",
    ("_TOTAL_BUCKETS",): "total_buckets",
    (_FILE, "_FILE_SIZE"): "size_bytes",
    (_FILE, "_ROW_COUNT"): "row_count",
    (_FILE, "_MIN_SEQUENCE_NUMBER"): "min_sequence",
    (_FILE, "_MAX_SEQUENCE_NUMBER"): "max_sequence",
    (_FILE, "_SCHEMA_ID"): "schema_id",
    (_FILE, "_LEVEL"): "level",
    (_FILE, "_CREATION_TIME"): "creation_time_millis",
    (_FILE, "_DELETE_ROW_COUNT"): "delete_row_count",
    (_FILE, "_FILE_SOURCE"): "source",
    (_FILE, "_FIRST_ROW_ID"): "first_row_id",
}
SPANS: dict[tuple[str, ...], str] = {
    ("_PARTITION",): "partition",
    (_FILE, "_FILE_NAME"): "name",
    (_FILE, "_MIN_KEY"): "min_key",
    (_FILE, "_MAX_KEY"): "max_key",
    (_FILE, "_KEY_STATS", "_MIN_VALUES"): "key_min",
    (_FILE, "_KEY_STATS", "_MAX_VALUES"): "key_max",
    (_FILE, "_VALUE_STATS", "_MIN_VALUES"): "value_min",
    (_FILE, "_VALUE_STATS", "_MAX_VALUES"): "value_max",
    (_FILE, "_EMBEDDED_FILE_INDEX"): "embedded_index",
    (_FILE, "_EXTERNAL_PATH"): "external_path",
}
ARRAYS: dict[tuple[str, ...], str] = {
    (_FILE, "_KEY_STATS", "_NULL_COUNTS"): "key_null_counts",
    (_FILE, "_VALUE_STATS", "_NULL_COUNTS"): "value_null_counts",
    (_FILE, "_EXTRA_FILES"): "extra_files",
    (_FILE, "_VALUE_STATS_COLS"): "value_stats_columns",
    (_FILE, "_WRITE_COLS"): "write_columns",
}
OPTIONAL = frozenset(
    (_FILE, *names)
    for names in (
        ("_KEY_STATS", "_NULL_COUNTS"), ("_VALUE_STATS", "_NULL_COUNTS"), ("_CREATION_TIME",), ("_DELETE_ROW_COUNT",),
        ("_EMBEDDED_FILE_INDEX",), ("_FILE_SOURCE",), ("_VALUE_STATS_COLS",), ("_EXTERNAL_PATH",), ("_FIRST_ROW_ID",),
        ("_WRITE_COLS",),
    )
)  # fmt: skip
"""Fields that may be null or missing in files of old writers: files before 0.9 end with the first or second."""

_SPAN_NAMES = (*SPANS.values(), *ARRAYS.values(), "record")
ROW_OF = {name: row for row, name in enumerate(NUMBERS.values())}
ROW_OF |= {name: len(ROW_OF) + 2 * at for at, name in enumerate(_SPAN_NAMES)}
SHAPE_ROW = len(NUMBERS) + 2 * len(_SPAN_NAMES)
ROW_COUNT = SHAPE_ROW + 1
"""Rows of the table: one per number, two (position, length) per span, and the number of the record's schema."""

_RECORD = ROW_OF["record"]
_GATHERED = 4096
_START_ROWS = np.array([ROW_OF[name] for name in _SPAN_NAMES])
_LONGS = Shape("array", parts=(Shape("union", parts=(Shape("null"), Shape("long"))),))
_TEXTS = Shape("array", parts=(Shape("string"),))


class _Number:
    """One number of every entry, as int64."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.row = ROW_OF[name]

    def __get__(self, columns: EntryColumns, owner: type | None = None) -> Ints:
        row: Ints = columns.table[self.row]
        return row


class Distinct(NamedTuple):
    """A column by its distinct values: `values[codes[i]]` is the value of entry i."""

    codes: Ints
    values: pa.Array


class EntryColumns:
    """Entries of manifests, in order.

    Attributes:
        buffer: Avro records, with spare bytes at the end.
        table: int64, one row per column (`ROW_OF`), one column per entry.
        schemas: JSON of the Avro schemas that the records were written with.
        kind … first_row_id: numbers; ABSENT where null.
    """

    __slots__ = ("_partitions", "buffer", "schemas", "table")

    version = _Number()
    kind = _Number()
    bucket = _Number()
    total_buckets = _Number()
    size_bytes = _Number()
    row_count = _Number()
    min_sequence = _Number()
    max_sequence = _Number()
    schema_id = _Number()
    level = _Number()
    creation_time_millis = _Number()
    delete_row_count = _Number()
    source = _Number()
    first_row_id = _Number()

    def __init__(self, buffer: Bytes, table: Ints, schemas: tuple[bytes, ...]) -> None:
        self.buffer = buffer
        self.table = table
        self.schemas = schemas
        self._partitions: Distinct | None = None

    @classmethod
    def empty(cls) -> EntryColumns:
        """A value without entries."""
        return cls(np.zeros(SPARE_BYTES, np.uint8), np.zeros((ROW_COUNT, 0), np.int64), ())

    def __len__(self) -> int:
        return int(self.table.shape[1])

    def __repr__(self) -> str:
        return f"EntryColumns({len(self)} entries, {self.nbytes} bytes)"

    @property
    def nbytes(self) -> int:
        """Memory of the buffer and the table."""
        return int(self.buffer.nbytes + self.table.nbytes)

    def take(self, indices: Ints | Mask | slice) -> EntryColumns:
        """The entries at these positions (or where a mask is True), sharing the buffer."""
        if isinstance(indices, np.ndarray) and indices.dtype == np.bool_ and bool(indices.all()):
            return self
        return EntryColumns(self.buffer, self.table[:, indices], self.schemas)

    def additions(self) -> EntryColumns:
        """The entries that add a file. Cost: as `take`"""
        return self.take(self.kind == FileKind.ADD)

    def slices(self, field: str) -> Slices:
        """The byte ranges of a string, bytes or array field; length −1 is null."""
        row = ROW_OF[field]
        return Slices(self.buffer, self.table[row], self.table[row + 1])

    def rows(self, field: str) -> tuple[Bytes, Ints]:
        """The buffer, and the positions of serialized BinaryRows, as `decode_at` takes them.

        `field`: partition, min_key, max_key, key_min, key_max, value_min or value_max.
        """
        return self.buffer, self.table[ROW_OF[field]]

    def array(self, field: str, kind: pa.DataType) -> pa.Array:
        """A string or bytes field as an Arrow array of `kind` (string or binary).

        Raises:
            CorruptionError: a string is not UTF-8.
        """
        slices = self.slices(field)
        valid: Mask | None = slices.lengths >= 0
        if valid is not None and not valid.all():
            slices = Slices(slices.data, slices.starts, np.maximum(slices.lengths, 0))
        else:
            valid = None
        array = from_slices(slices, kind, valid)
        if pa.types.is_string(kind):
            _check_text(array, field)
        return array

    def names(self) -> pa.Array:
        """File names, as a string array."""
        return self.array("name", pa.string())

    def partitions(self) -> pa.Array:
        """Serialized partition rows, as a binary array."""
        return self.array("partition", pa.binary())

    def distinct(self, field: str) -> Distinct:
        """A bytes field by its distinct values. Partitions are needed several times and kept, 8 bytes per entry."""
        if field != "partition":
            return _distinct(self, field)
        if self._partitions is None:
            self._partitions = _distinct(self, field)
        return self._partitions

    def in_partitions(self, is_chosen: Callable[[pa.Array], Mask]) -> Mask:
        """A mask of the entries in chosen partitions; exact, since all rows of a partition share its values.

        Args:
            is_chosen: returns a mask for serialized partitions, such as a `PartitionChoice`.

        Cost: one evaluation per distinct partition.
        """
        codes, values = self.distinct("partition")
        return is_chosen(values)[codes]

    def knows(self, field: str) -> bool:
        """Whether any entry has a value in a bytes, string or list field."""
        return bool((self.slices(field).lengths >= 0).any())

    def lists(self, field: str) -> tuple[Ints, list[tuple[str, ...] | None]]:
        """An array-of-strings field by its distinct values: `values[codes[i]]` is the list of entry i."""
        codes, values = self.distinct(field)
        return codes, [_decode_texts(value) for value in values.to_pylist()]

    def by_bucket(self) -> dict[tuple[bytes, int], Ints]:
        """The positions of the entries of every partition and bucket."""
        if not len(self):
            return {}
        codes, values = self.distinct("partition")
        partitions = values.to_pylist()
        order = np.lexsort((self.bucket, codes))
        code, bucket = codes[order], self.bucket[order]
        begins = np.flatnonzero((code[1:] != code[:-1]) | (bucket[1:] != bucket[:-1])) + 1
        parts = np.split(order, begins)
        return {(partitions[int(codes[part[0]])], int(self.bucket[part[0]])): part for part in parts}

    def null_counts(self, field: str, slot: int) -> pa.Array:
        """The null counts of one column of the statistics, as int64; null if unknown.

        `field`: key_null_counts or value_null_counts. Entries with fewer slots have null.
        """
        codes, values = self.distinct(field)
        counts = [_decode_counts(value) for value in values.to_pylist()]
        column = [row[slot] if row is not None and slot < len(row) else None for row in counts]
        numbers = np.array([0 if count is None else count for count in column], np.int64)
        valid = np.array([count is not None for count in column], np.bool_)
        return from_numpy(numbers[codes], pa.int64(), valid[codes])

    def value_stats(self) -> list[tuple[Stats, tuple[str, ...] | None]]:
        """The column statistics of each file, and the columns that they cover; None: all.

        Cost: about 3 µs per entry; prune first.
        """
        return _Values(self).value_stats()

    def entries(self) -> list[ManifestEntry]:
        """The entries as values.

        Cost: about 15 µs per entry; prune first.
        """
        return _Values(self).entries()


def _distinct(columns: EntryColumns, field: str) -> Distinct:
    slices = columns.slices(field)
    if _all_same(slices):
        return Distinct(np.zeros(len(columns), np.int64), from_slices(_first(slices), pa.binary()))
    encoded = columns.array(field, pa.binary()).dictionary_encode(null_encoding="encode")
    return Distinct(numpy_values(encoded.indices).astype(np.int64), encoded.dictionary)


def concat(parts: Sequence[EntryColumns]) -> EntryColumns:
    """All entries of `parts`, in order, over one new buffer, without unused bytes at the ends of the old ones."""
    parts = [part for part in parts if len(part)]
    if not parts:
        return EntryColumns.empty()
    if len(parts) == 1:
        return parts[0]
    schemas: dict[bytes, int] = {}
    tables, buffers, offset = [], [], 0
    for part in parts:
        table = part.table.copy()
        numbers = np.array([schemas.setdefault(text, len(schemas)) for text in part.schemas], np.int64)
        table[SHAPE_ROW] = numbers[table[SHAPE_ROW]]
        starts = table[_RECORD]
        first, last = int(starts.min()), int((starts + table[_RECORD + 1]).max())
        buffers.append(part.buffer[first:last])
        table[_START_ROWS] += offset - first
        tables.append(table)
        offset += last - first
    buffers.append(np.zeros(SPARE_BYTES, np.uint8))
    return EntryColumns(np.concatenate(buffers), np.concatenate(tables, axis=1), tuple(schemas))


def compact(columns: EntryColumns) -> EntryColumns:
    """The same entries over a buffer that contains only their records."""
    starts, lengths = columns.table[_RECORD], columns.table[_RECORD + 1]
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(columns) else 0
    if total + SPARE_BYTES >= len(columns.buffer):
        return columns
    records = np.zeros(total + SPARE_BYTES, np.uint8)
    for first in range(0, len(columns), _GATHERED):
        rows = slice(first, first + _GATHERED)
        piece = gather_bytes(Slices(columns.buffer, starts[rows], lengths[rows]))
        records[int(ends[first] - lengths[first]) :][: len(piece)] = piece
    table = columns.table.copy()
    table[_START_ROWS] += ends - lengths - starts
    return EntryColumns(records, table, columns.schemas)


class _Values:
    """Converts columns to values; caches one list per column."""

    def __init__(self, columns: EntryColumns) -> None:
        self.columns = columns
        self.bytes_ = columns.buffer.data

    @lazy_property
    def lists(self) -> dict[str, list[Any]]:
        return {name: self.columns.table[ROW_OF[name]].tolist() for name in NUMBERS.values()}

    def entries(self) -> list[ManifestEntry]:
        columns = self.columns
        partitions = self._distinct_bytes("partition")
        files = self._files()
        numbers = self.lists
        try:
            kinds = [FileKind(kind) for kind in numbers["kind"]]
        except ValueError as error:
            raise CorruptionError(f"unknown kind of entry: {error}") from error
        rows = zip(kinds, partitions, numbers["bucket"], numbers["total_buckets"], files, strict=True)
        entries = [
            ManifestEntry(kind=kind, partition=partition, bucket=bucket, total_buckets=total, file=file)
            for kind, partition, bucket, total, file in rows
        ]
        assert len(entries) == len(columns)
        return entries

    def value_stats(self) -> list[tuple[Stats, tuple[str, ...] | None]]:
        return list(zip(self._stats("value"), self._texts("value_stats_columns"), strict=True))

    def _files(self) -> list[DataFile]:
        numbers = self.lists
        columns = self.columns
        names = columns.names().to_pylist()
        externals = columns.array("external_path", pa.string()).to_pylist()
        keys = zip(self._raw("min_key"), self._raw("max_key"), strict=True)
        stats = zip(self._stats("key"), self._stats("value"), strict=True)
        lists = zip(
            self._texts("extra_files"), self._texts("value_stats_columns"), self._texts("write_columns"), strict=True
        )
        indexes = self._raw("embedded_index")
        return [
            DataFile(
                name=names[i],
                size_bytes=numbers["size_bytes"][i],
                row_count=numbers["row_count"][i],
                min_key=min_key,
                max_key=max_key,
                key_stats=key_stats,
                value_stats=value_stats,
                min_sequence=numbers["min_sequence"][i],
                max_sequence=numbers["max_sequence"][i],
                schema_id=numbers["schema_id"][i],
                level=numbers["level"][i],
                extra_files=extra or (),
                creation_time_millis=_optional(numbers["creation_time_millis"][i]),
                delete_row_count=_optional(numbers["delete_row_count"][i]),
                embedded_index=indexes[i],
                source=file_source(numbers["source"][i]),
                value_stats_columns=stats_columns,
                external_path=externals[i],
                first_row_id=_optional(numbers["first_row_id"][i]),
                write_columns=write_columns,
            )
            for i, ((min_key, max_key), (key_stats, value_stats), (extra, stats_columns, write_columns)) in enumerate(
                zip(keys, stats, lists, strict=True)
            )
        ]

    def _raw(self, field: str) -> list[Any]:
        slices = self.columns.slices(field)
        view = self.bytes_
        return [
            bytes(view[start : start + length]) if length >= 0 else None
            for start, length in zip(slices.starts.tolist(), slices.lengths.tolist(), strict=True)
        ]

    def _distinct_bytes(self, field: str) -> list[bytes]:
        codes, values = self.columns.distinct(field)
        distinct = values.to_pylist()
        return [distinct[code] for code in codes.tolist()]

    def _texts(self, field: str) -> list[tuple[str, ...] | None]:
        codes, values = self.columns.lists(field)
        return [values[code] for code in codes.tolist()]

    def _stats(self, which: str) -> list[Stats]:
        codes, values = self.columns.distinct(f"{which}_null_counts")
        counts = [_decode_counts(value) for value in values.to_pylist()]
        rows = zip(self._raw(f"{which}_min"), self._raw(f"{which}_max"), codes.tolist(), strict=True)
        return [Stats(low, high, counts[code]) for low, high, code in rows]


def _optional(number: int) -> int | None:
    return None if number == ABSENT else number


def file_source(number: int) -> FileSource | None:
    """The kind of writer that created a file.

    Raises: CorruptionError if the number is unknown.
    """
    try:
        return _SOURCES[number]
    except KeyError as error:
        raise CorruptionError(f"unknown file source {number}") from error


def _decode_counts(raw: bytes | None) -> tuple[int | None, ...] | None:
    return None if raw is None else tuple(reader(_LONGS)(raw, 0)[0])


def _decode_texts(raw: bytes | None) -> tuple[str, ...] | None:
    if raw is None:
        return None
    try:
        return tuple(reader(_TEXTS)(raw, 0)[0])
    except UnicodeDecodeError as error:
        raise CorruptionError(f"a list of names is not UTF-8: {error}") from error


def _check_text(array: pa.Array, field: str) -> None:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise CorruptionError(f"{field} is not UTF-8: {error}") from error


def _first(slices: Slices) -> Slices:
    return Slices(slices.data, slices.starts[:1], slices.lengths[:1])


def _all_same(slices: Slices) -> bool:
    """Whether there is at least one byte string and all are equal (long strings are not compared: False)."""
    lengths = slices.lengths
    if not len(lengths) or not 0 <= int(lengths[0]) <= SPARE_BYTES or not bool((lengths == lengths[0]).all()):
        return False
    view, starts = word_view(slices.data), slices.starts
    for offset in range(0, int(lengths[0]), 8):
        left = min(int(lengths[0]) - offset, 8)
        words = (view[starts + offset] ^ view[int(starts[0]) + offset]) << np.uint64(8 * (8 - left))
        if bool(words.any()):
            return False
    return True
