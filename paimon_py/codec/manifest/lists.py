"""Manifest lists and index manifests: Avro bytes ↔ values.

Both are short, so records are decoded one by one.

Source: format.md §5.2, §10.1; Java `ManifestList`, `ManifestFileMeta`, `IndexManifestFile`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from paimon_py.arguments import UNFORESEEN
from paimon_py.codec.avro.container import inflater, read_blocks, read_header, write_long
from paimon_py.codec.avro.shape import Shape, encode, field_names, least_bytes, read_records, shape_of
from paimon_py.codec.damaged_names import check_names
from paimon_py.codec.manifest.entries import container, encode_stats
from paimon_py.codec.manifest.schemas import INDEX_MANIFEST, INDEX_VERSION, MANIFEST_LIST, VERSION
from paimon_py.errors import CorruptionError, UnsupportedError
from paimon_py.spec.data_file import FileKind, Stats
from paimon_py.spec.manifest import DELETION_VECTORS, DeletionVectorRange, GlobalIndex, IndexEntry, ManifestFile

Value = TypeVar("Value")

_NEWEST_VERSION = 99
_OPTIONAL_NUMBERS = ("_MIN_BUCKET", "_MAX_BUCKET", "_MIN_LEVEL", "_MAX_LEVEL", "_MIN_ROW_ID", "_MAX_ROW_ID")


def read_manifest_list(data: bytes, path: str = "manifest list") -> list[ManifestFile]:
    """The manifests in a list, in order.

    Raises:
        CorruptionError: not a complete, well-formed list.
        UnsupportedError: a codec or version that is not supported.
    """
    return _read(data, path, MANIFEST_LIST, VERSION, _manifest_file)


def write_manifest_list(files: Sequence[ManifestFile], compression: str = "zstd") -> bytes:
    """The bytes of a manifest list, in order; an empty list is a file too."""
    return container(MANIFEST_LIST, [_encode(file) for file in files], compression)


def read_index_manifest(data: bytes, path: str = "index manifest") -> list[IndexEntry]:
    """The index files of an index manifest, in order.

    Raises:
        CorruptionError: not a complete, well-formed index manifest.
        UnsupportedError: a codec or version that is not supported.
    """
    entries = _read(data, path, INDEX_MANIFEST, INDEX_VERSION, _index_entry)
    if len({(entry.partition, entry.bucket, entry.name) for entry in entries}) < len(entries):
        raise CorruptionError(f"{path} names an index file twice", path=path)
    return entries


def write_index_manifest(entries: Sequence[IndexEntry], compression: str = "zstd") -> bytes:
    """The bytes of an index manifest, in order."""
    shape = shape_of(INDEX_MANIFEST, "index manifest")
    return container(INDEX_MANIFEST, [encode(shape, _index_record(entry)) for entry in entries], compression)


def _read(
    data: bytes, path: str, schema: bytes, version: int, value: Callable[[Mapping[str, Any]], Value]
) -> list[Value]:
    """The values of all records; `schema` is the schema of Java 2.x."""
    header = read_header(data, path)
    shape = shape_of(header.schema, path)
    if header.schema != schema:
        check_names(field_names(shape), field_names(shape_of(schema, path)), path, 4)
    values: list[Value] = []
    for block in read_blocks(data, header, path, inflater(header.codec, path), least_bytes(shape)):
        for record in _records(block.payload, block.records, shape, path, block.offset):
            _check_version(record, version, path, block.offset)
            try:
                values.append(value(record))
            except UNFORESEEN as error:
                raise CorruptionError(
                    f"{path}: impossible record in the block at byte {block.offset}: {error!r}",
                    path=path,
                    offset=block.offset,
                ) from error
    return values


def _records(payload: bytes, count: int, shape: Shape, path: str, offset: int) -> list[dict[str, Any]]:
    try:
        return read_records(payload, count, shape)
    except (IndexError, UnicodeDecodeError) as error:
        message = f"{path}: broken record in the block at byte {offset}"
        raise CorruptionError(message, path=path, offset=offset) from error


def _check_version(record: Mapping[str, Any], version: int, path: str, offset: int) -> None:
    found = record.get("_VERSION")
    if found == version:
        return
    if isinstance(found, int) and version < found <= _NEWEST_VERSION:
        feature = f"metadata record version {found}"
        raise UnsupportedError(f"{path}: {feature} is not supported", feature=feature, path=path)
    raise CorruptionError(f"{path}: record of version {found!r}, {version} expected", path=path, offset=offset)


def _manifest_file(record: Mapping[str, Any]) -> ManifestFile:
    stats = record["_PARTITION_STATS"]
    counts = stats.get("_NULL_COUNTS")
    bounds = [record.get(name) for name in _OPTIONAL_NUMBERS]
    for bound in bounds:
        _is(int, bound, optional=True)
    return ManifestFile(
        name=_is(str, record["_FILE_NAME"]),
        size_bytes=_count(record["_FILE_SIZE"]),
        added_files=_count(record["_NUM_ADDED_FILES"]),
        deleted_files=_count(record["_NUM_DELETED_FILES"]),
        partition_stats=Stats(
            _is(bytes, stats["_MIN_VALUES"]),
            _is(bytes, stats["_MAX_VALUES"]),
            None if counts is None else tuple(_is(int, count, optional=True) for count in counts),
        ),
        schema_id=_count(record["_SCHEMA_ID"]),
        min_bucket=bounds[0],
        max_bucket=bounds[1],
        min_level=bounds[2],
        max_level=bounds[3],
        min_row_id=bounds[4],
        max_row_id=bounds[5],
    )


def _encode(file: ManifestFile) -> bytes:
    name = file.name.encode()
    bounds = (file.min_bucket, file.max_bucket, file.min_level, file.max_level, file.min_row_id, file.max_row_id)
    parts = [
        write_long(VERSION),
        write_long(len(name)),
        name,
        write_long(file.size_bytes),
        write_long(file.added_files),
        write_long(file.deleted_files),
        *encode_stats(file.partition_stats),
        write_long(file.schema_id),
        *(b"\x00" if bound is None else b"\x02" + write_long(bound) for bound in bounds),
    ]
    return b"".join(parts)


def _index_entry(record: Mapping[str, Any]) -> IndexEntry:
    ranges = record.get("_DELETIONS_VECTORS_RANGES")
    if ranges is None and record["_INDEX_TYPE"] == DELETION_VECTORS:
        raise ValueError("deletion vectors without the names of their data files")
    index = record.get("_GLOBAL_INDEX")
    entry = IndexEntry(
        kind=FileKind(record["_KIND"]),
        partition=_is(bytes, record["_PARTITION"]),
        bucket=_bucket(record["_BUCKET"]),
        index_type=_is(str, record["_INDEX_TYPE"]),
        name=_is(str, record["_FILE_NAME"]),
        size_bytes=_count(record["_FILE_SIZE"]),
        row_count=_count(record["_ROW_COUNT"]),
        deletion_vectors=None if ranges is None else tuple(_range(item) for item in ranges),
        external_path=_is(str, record.get("_EXTERNAL_PATH"), optional=True),
        global_index=None if index is None else _global_index(index),
    )
    _check_index(entry)
    return entry


def _check_index(entry: IndexEntry) -> None:
    """Check that the fields of an entry agree: counts with sizes, and ranges with each other.

    Raises: ValueError
    """
    if entry.kind is not FileKind.ADD:
        raise ValueError("index manifests contain no deletions")
    if entry.deletion_vectors is None:
        return
    if len(entry.deletion_vectors) != entry.row_count:
        raise ValueError(f"{len(entry.deletion_vectors)} deletion vectors, not {entry.row_count}")
    if len({part.data_file for part in entry.deletion_vectors}) < entry.row_count:
        raise ValueError("two deletion vectors of one file")
    end = 1
    for offset, length in sorted([(part.offset, part.length) for part in entry.deletion_vectors]):
        if offset < end:
            raise ValueError(f"a deletion vector at {offset}, where another one ends at {end}")
        end = offset + length
    if end > entry.size_bytes:
        raise ValueError(f"deletion vectors up to byte {end} of {entry.size_bytes}")


def _bucket(value: Any) -> int:
    if not isinstance(value, int) or not -(2**31) <= value < 2**31:
        raise ValueError(f"{value!r} is not the number of a bucket")
    return value


def _range(item: Mapping[str, Any]) -> DeletionVectorRange:
    return DeletionVectorRange(
        data_file=_is(str, item["f0"]),
        offset=_count(item["f1"]),
        length=_count(item["f2"]),
        cardinality=_is(int, item.get("_CARDINALITY"), optional=True),
    )


def _global_index(item: Mapping[str, Any]) -> GlobalIndex:
    extra = item.get("_EXTRA_FIELD_IDS")
    return GlobalIndex(
        row_range_start=_is(int, item["_ROW_RANGE_START"]),
        row_range_end=_is(int, item["_ROW_RANGE_END"]),
        field_id=_is(int, item["_INDEX_FIELD_ID"]),
        extra_field_ids=None if extra is None else tuple(_is(int, value) for value in extra),
        index_meta=_is(bytes, item.get("_INDEX_META"), optional=True),
        source_meta=_is(bytes, item.get("_SOURCE_META"), optional=True),
    )


def _index_record(entry: IndexEntry) -> dict[str, Any]:
    ranges, index = entry.deletion_vectors, entry.global_index
    return {
        "_VERSION": INDEX_VERSION,
        "_KIND": entry.kind,
        "_PARTITION": entry.partition,
        "_BUCKET": entry.bucket,
        "_INDEX_TYPE": entry.index_type,
        "_FILE_NAME": entry.name,
        "_FILE_SIZE": entry.size_bytes,
        "_ROW_COUNT": entry.row_count,
        "_DELETIONS_VECTORS_RANGES": None
        if ranges is None
        else [{"f0": r.data_file, "f1": r.offset, "f2": r.length, "_CARDINALITY": r.cardinality} for r in ranges],
        "_EXTERNAL_PATH": entry.external_path,
        "_GLOBAL_INDEX": None
        if index is None
        else {
            "_ROW_RANGE_START": index.row_range_start,
            "_ROW_RANGE_END": index.row_range_end,
            "_INDEX_FIELD_ID": index.field_id,
            "_EXTRA_FIELD_IDS": index.extra_field_ids,
            "_INDEX_META": index.index_meta,
            "_SOURCE_META": index.source_meta,
        },
    }


def _is(kind: type, value: Any, *, optional: bool = False) -> Any:
    if value is None and optional:
        return value
    if isinstance(value, kind) and (not isinstance(value, int) or -(2**63) <= value < 2**63):
        return value
    raise TypeError(f"{value!r} is not {kind.__name__}")


def _count(value: Any) -> int:
    if not isinstance(value, int) or not 0 <= value < 2**63:
        raise ValueError(f"{value!r} is not a count")
    return value
