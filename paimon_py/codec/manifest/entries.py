"""Manifests: Avro bytes ↔ entries. Reads many files together, in lock step if that is faster.

Source: format.md §5; Java `ManifestFile`, `ManifestEntrySerializer`.
"""

from __future__ import annotations

import functools
from bisect import bisect_right
from collections.abc import Sequence

import msgspec
import numpy as np

from paimon_py.codec.avro.container import (
    Inflate,
    codec_name,
    deflater,
    header_bytes,
    inflater,
    pack,
    read_blocks,
    read_header,
    write_container,
)
from paimon_py.codec.avro.container import write_long as _long
from paimon_py.codec.avro.shape import Shape, field_names, least_bytes, shape_of
from paimon_py.codec.columns import Bytes, Ints
from paimon_py.codec.damaged_names import check_names
from paimon_py.codec.manifest.columns import ABSENT, ROW_COUNT, ROW_OF, SPARE_BYTES, EntryColumns
from paimon_py.codec.manifest.lockstep import decode
from paimon_py.codec.manifest.program import RecordFault, Records, program, walk
from paimon_py.codec.manifest.schemas import MANIFEST, VERSION
from paimon_py.errors import CorruptionError, UnsupportedError
from paimon_py.spec.data_file import ManifestEntry, Stats

_FEW_ENTRIES = 48
"""Up to this total number of entries, decoding record by record is faster than lock step."""

_NEWEST_VERSION = 99
_NOT_NEGATIVE = ("size_bytes", "row_count", "schema_id", "level")
_INT_MAX = 2**31 - 1
_RECORD = ROW_OF["record"]


class _File(msgspec.Struct, frozen=True):
    """A manifest in the joined buffer."""

    path: str
    schema: bytes
    runs: list[Records]
    offsets: list[int]


def read_manifests(blobs: Sequence[tuple[str, bytes]]) -> EntryColumns:
    """The entries of manifests, given as (path, bytes), in their order.

    Cost: 3-4 µs per entry plus 1 ms per call; 15 µs per entry for a few entries.
    Raises:
        CorruptionError: a file is not a complete, well-formed manifest; names file and block.
        UnsupportedError: a codec or entry version that is not supported.
    """
    return read_with_counts(blobs)[0]


def read_with_counts(blobs: Sequence[tuple[str, bytes]]) -> tuple[EntryColumns, list[int]]:
    """Read manifests like `read_manifests`, and return the number of entries in every file too."""
    files, raw = _join(blobs)
    counts = [sum(run.entries for run in file.runs) for file in files]
    total = sum(counts)
    if total == 0:
        _check_empty(files)
        return EntryColumns.empty(), counts
    buffer = np.frombuffer(raw, np.uint8)
    schemas = tuple(dict.fromkeys(file.schema for file in files))
    tables = [
        _table(buffer, raw, [file for file in files if file.schema == schema], number, few=total <= _FEW_ENTRIES)
        for number, schema in enumerate(schemas)
    ]
    table = tables[0] if len(tables) == 1 else np.concatenate(tables, axis=1)
    if len(tables) > 1:
        table = table[:, np.argsort(table[_RECORD], kind="stable")]
    columns = EntryColumns(buffer, table, schemas)
    _check(columns, files)
    return columns, counts


def write_manifest(entries: Sequence[ManifestEntry], compression: str = "zstd") -> bytes:
    """The bytes of a manifest with these entries, in their order.

    Cost: 10 µs per entry.
    """
    return container(MANIFEST, [encode_entry(entry) for entry in entries], compression)


def container(schema: bytes, records: Sequence[bytes], compression: str) -> bytes:
    """A complete Avro file of encoded records; `compression` as in the table options."""
    codec = codec_name(compression)
    return write_container(header_bytes(schema, codec), pack(records, deflater(codec)))


def encode_entry(entry: ManifestEntry) -> bytes:
    """The Avro record of an entry, in the schema `MANIFEST`."""
    file = entry.file
    parts = [
        _long(VERSION),
        _long(entry.kind),
        *_with_size(entry.partition),
        _long(entry.bucket),
        _long(entry.total_buckets),
        *_with_size(file.name.encode()),
        _long(file.size_bytes),
        _long(file.row_count),
        *_with_size(file.min_key),
        *_with_size(file.max_key),
        *encode_stats(file.key_stats),
        *encode_stats(file.value_stats),
        _long(file.min_sequence),
        _long(file.max_sequence),
        _long(file.schema_id),
        _long(file.level),
        _texts(file.extra_files),
        _nullable_long(file.creation_time_millis),
        _nullable_long(file.delete_row_count),
        _nullable_bytes(file.embedded_index),
        _nullable_long(file.source),
        _nullable_texts(file.value_stats_columns),
        _nullable_bytes(None if file.external_path is None else file.external_path.encode()),
        _nullable_long(file.first_row_id),
        _nullable_texts(file.write_columns),
    ]
    return b"".join(parts)


def encode_stats(stats: Stats) -> list[bytes]:
    """The pieces of an Avro stats record."""
    return [*_with_size(stats.min_values), *_with_size(stats.max_values), _null_counts(stats.null_counts)]


@functools.lru_cache(maxsize=1024)
def _null_counts(counts: tuple[int | None, ...] | None) -> bytes:
    """Many files have the same counts: cached."""
    if counts is None:
        return b"\x00"
    if not counts:
        return b"\x02\x00"
    return b"\x02" + _long(len(counts)) + b"".join(map(_nullable_long, counts)) + b"\x00"


def _with_size(raw: bytes) -> tuple[bytes, bytes]:
    return _long(len(raw)), raw


def _nullable_long(value: int | None) -> bytes:
    return b"\x00" if value is None else b"\x02" + _long(value)


def _nullable_bytes(value: bytes | None) -> bytes:
    return b"\x00" if value is None else b"\x02" + _long(len(value)) + value


def _texts(values: Sequence[str]) -> bytes:
    if not values:
        return b"\x00"
    items = [piece for value in values for piece in _with_size(value.encode())]
    return _long(len(values)) + b"".join(items) + b"\x00"


def _nullable_texts(values: Sequence[str] | None) -> bytes:
    return b"\x00" if values is None else b"\x02" + _texts(values)


def _join(blobs: Sequence[tuple[str, bytes]]) -> tuple[list[_File], bytes]:
    """Inflate all files into one buffer."""
    files: list[_File] = []
    payloads: list[bytes] = []
    inflaters: dict[str, Inflate] = {}
    position = 0
    for path, data in blobs:
        header = read_header(data, path)
        if header.schema != MANIFEST:
            shape_of(header.schema, path)
            if _is_other_layout(header.schema):
                from paimon_py.codec.manifest.other_layouts import under_java_schema

                data = under_java_schema(data, path, header)
                header = read_header(data, path)
        least = _least(header.schema, path)
        if header.codec not in inflaters:
            inflaters[header.codec] = inflater(header.codec, path)
        runs, offsets = [], []
        for block in read_blocks(data, header, path, inflaters[header.codec], least):
            stop = position + len(block.payload)
            runs.append(Records(position, stop, block.records))
            offsets.append(block.offset)
            payloads.append(block.payload)
            position = stop
        files.append(_File(path, header.schema, runs, offsets))
    payloads.append(bytes(SPARE_BYTES))
    return files, b"".join(payloads)


@functools.lru_cache(maxsize=64)
def _is_other_layout(schema: bytes) -> bool:
    """Whether a schema encodes known fields differently from Java."""
    from paimon_py.codec.manifest.other_layouts import is_other_layout

    return is_other_layout(shape_of(schema, "manifest"), shape_of(MANIFEST, "manifest"))


def _table(buffer: Bytes, raw: bytes, files: Sequence[_File], number: int, *, few: bool) -> Ints:
    """The table of all files with one schema."""
    path = files[0].path
    shape = _shape(files[0].schema, path)
    runs = [run for file in files for run in file.runs]
    table = None if few else decode(buffer, raw, runs, shape, number)
    if table is not None:
        return table
    try:
        return walk(raw, runs, shape, number)
    except RecordFault as fault:
        raise _fault("broken entry", fault.position, files) from fault


def _least(schema: bytes, path: str) -> int:
    """The minimum size of an entry in bytes.

    Raises: CorruptionError if the schema is not one of entries.
    """
    try:
        return _least_of(schema)
    except CorruptionError:
        return _checked_least(schema, path)


@functools.lru_cache(maxsize=64)
def _least_of(schema: bytes) -> int:
    return _checked_least(schema, "manifest")


def _checked_least(schema: bytes, path: str) -> int:
    shape = _shape(schema, path)
    check_names(field_names(shape), field_names(shape_of(MANIFEST, path)), path, 4)
    return least_bytes(shape)


def _shape(schema: bytes, path: str) -> Shape:
    shape = shape_of(schema, path)
    try:
        program(shape)
    except CorruptionError as error:
        raise CorruptionError(f"{path}: {error}", path=path, offset=4) from error
    return shape


def _check_empty(files: Sequence[_File]) -> None:
    for file in files:
        _shape(file.schema, file.path)
        for run, offset in zip(file.runs, file.offsets, strict=True):
            if run.stop > run.start:
                raise CorruptionError(f"{file.path}: a block without records has bytes", path=file.path, offset=offset)


def _check(columns: EntryColumns, files: Sequence[_File]) -> None:
    """Refuse values that are impossible in an entry."""
    versions = columns.version
    wrong = versions != VERSION
    if bool(wrong.any()):
        at = int(np.argmax(wrong))
        version = int(versions[at])
        error = _fault(f"entry of version {version}", int(columns.table[_RECORD, at]), files)
        if VERSION < version <= _NEWEST_VERSION:
            feature = f"manifest entry version {version}"
            raise UnsupportedError(f"{error.path}: {feature} is not supported", feature=feature, path=error.path)
        raise error
    assert columns.table.shape[0] == ROW_COUNT
    bad = (columns.kind < 0) | (columns.kind > 1) | (columns.bucket < -2) | (columns.bucket > _INT_MAX)
    bad |= (columns.total_buckets < -2) | (columns.total_buckets > _INT_MAX) | (columns.level > _INT_MAX)
    bad |= (columns.source != ABSENT) & (columns.source != 0) & (columns.source != 1)
    for name in _NOT_NEGATIVE:
        bad |= columns.table[ROW_OF[name]] < 0
    if bool(bad.any()):
        at = int(np.argmax(bad))
        raise _fault("impossible entry", int(columns.table[_RECORD, at]), files)


def _fault(what: str, position: int, files: Sequence[_File]) -> CorruptionError:
    """The error for a position in the joined buffer."""
    places = [
        (run.start, file.path, offset) for file in files for run, offset in zip(file.runs, file.offsets, strict=True)
    ]
    _, path, offset = places[max(bisect_right(places, (position, "\uffff")) - 1, 0)]
    return CorruptionError(f"{path}: {what} in the block at byte {offset}", path=path, offset=offset)
