"""Iceberg manifests and manifest lists: bytes and values.

Fields are found by their Avro names, as Java Paimon and Iceberg write them, whatever further fields a file has.

Source: docs/format.md §25.2; Java `IcebergManifestFile`, `IcebergManifestList`; Apache Iceberg table specification,
"Manifests".
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from paimon_py.arguments import UNFORESEEN
from paimon_py.codec.avro.container import (
    codec_name,
    deflater,
    header_bytes,
    inflater,
    pack,
    read_blocks,
    read_header,
    write_container,
)
from paimon_py.codec.avro.shape import encode, least_bytes, read_records, shape_of
from paimon_py.errors import CorruptionError, PaimonError
from paimon_py.iceberg.avro_schemas import avro_name, list_schema, manifest_schema
from paimon_py.iceberg.fields import partition_fields, schema_value
from paimon_py.iceberg.values import EntryStatus, IcebergEntry, IcebergFile, IcebergManifest, PartitionRange
from paimon_py.spec.iceberg import IcebergOptions
from paimon_py.spec.schema import TableSchema

V = TypeVar("V")

_COUNTS = ("added", "existing", "deleted")


def write_manifest_bytes(
    entries: Sequence[IcebergEntry], schema: TableSchema, content: int, options: IcebergOptions
) -> bytes:
    """The bytes of a manifest with these entries, in their order."""
    version = options.format_version
    text = manifest_schema(schema.partition_fields, version)
    shape = shape_of(text, "manifest")
    names = [avro_name(field.name) for field in schema.partition_fields]
    records = [encode(shape, _entry_record(entry, names)) for entry in entries]
    described = {
        "schema": msgspec.json.encode(schema_value(schema)),
        "schema-id": str(schema.id).encode(),
        "partition-spec": msgspec.json.encode(partition_fields(schema)),
        "partition-spec-id": b"0",
        "format-version": str(version).encode(),
        "content": b"deletes" if content else b"data",
    }
    return _container(text, records, options.compression, described)


def write_list_bytes(
    manifests: Sequence[IcebergManifest], number: int, parent: int | None, options: IcebergOptions
) -> bytes:
    """The bytes of the manifest list of snapshot `number`."""
    text = list_schema(options.format_version, options.legacy)
    records = [_manifest_bytes(manifest, text, options.legacy) for manifest in manifests]
    described = {
        "snapshot-id": str(number).encode(),
        "parent-snapshot-id": (b"null" if parent is None else str(parent).encode()),
        "sequence-number": str(number).encode(),
        "format-version": str(options.format_version).encode(),
    }
    return _container(text, records, options.compression, described)


def read_manifest_bytes(data: bytes, path: str, schema: TableSchema) -> list[IcebergEntry]:
    """The entries of a manifest, in order.

    Raises: CorruptionError, UnsupportedError
    """
    names = [avro_name(field.name) for field in schema.partition_fields]
    return _read(data, path, lambda record: _entry_of(record, names))


def read_list_bytes(data: bytes, path: str) -> list[IcebergManifest]:
    """The manifests of a list, in order.

    Raises: CorruptionError, UnsupportedError
    """
    return _read(data, path, _manifest_of)


def _container(schema: bytes, records: Sequence[bytes], compression: str, described: Mapping[str, bytes]) -> bytes:
    codec = codec_name(compression)
    return write_container(header_bytes(schema, codec, described), pack(records, deflater(codec)))


def _read(data: bytes, path: str, made: Callable[[dict[str, Any]], V]) -> list[V]:
    header = read_header(data, path)
    shape = shape_of(header.schema, path)
    found: list[V] = []
    for block in read_blocks(data, header, path, inflater(header.codec, path), least_bytes(shape)):
        try:
            found += [made(record) for record in read_records(block.payload, block.records, shape)]
        except PaimonError:
            raise
        except UNFORESEEN as error:
            raise CorruptionError(f"{path}: broken record: {error!r}", path=path, offset=block.offset) from error
    return found


def _pairs(values: Mapping[int, Any] | None) -> list[dict[str, Any]] | None:
    return None if values is None else [{"key": key, "value": value} for key, value in values.items()]


def _mapping(pairs: list[dict[str, Any]] | None) -> dict[int, Any] | None:
    return None if pairs is None else {int(pair["key"]): pair["value"] for pair in pairs}


def _entry_record(entry: IcebergEntry, names: Sequence[str]) -> dict[str, Any]:
    file = entry.file
    return {
        "status": int(entry.status),
        "snapshot_id": entry.snapshot_id,
        "sequence_number": entry.sequence_number,
        "file_sequence_number": entry.file_sequence_number,
        "data_file": {
            "content": file.content,
            "file_path": file.path,
            "file_format": file.format,
            "partition": dict(zip(names, file.partition, strict=True)),
            "record_count": file.row_count,
            "file_size_in_bytes": file.size_bytes,
            "null_value_counts": _pairs(file.null_counts),
            "lower_bounds": _pairs(file.lower_bounds),
            "upper_bounds": _pairs(file.upper_bounds),
            "referenced_data_file": file.referenced,
            "content_offset": file.offset,
            "content_size_in_bytes": file.length,
            "first_row_id": file.first_row_id,
        },
    }


def _entry_of(record: Mapping[str, Any], names: Sequence[str]) -> IcebergEntry:
    file = record["data_file"]
    partition = file["partition"]
    return IcebergEntry(
        status=EntryStatus(record["status"]),
        snapshot_id=record["snapshot_id"],
        sequence_number=record["sequence_number"],
        file_sequence_number=record["file_sequence_number"],
        file=IcebergFile(
            content=file["content"],
            path=file["file_path"],
            format=file["file_format"],
            partition=tuple(partition[name] for name in names),
            row_count=file["record_count"],
            size_bytes=file["file_size_in_bytes"],
            null_counts=_mapping(file["null_value_counts"]),
            lower_bounds=_mapping(file["lower_bounds"]),
            upper_bounds=_mapping(file["upper_bounds"]),
            referenced=file.get("referenced_data_file"),
            offset=file.get("content_offset"),
            length=file.get("content_size_in_bytes"),
            first_row_id=file.get("first_row_id"),
        ),
    )


def _manifest_record(manifest: IcebergManifest, *, legacy: bool) -> dict[str, Any]:
    data = "data_" if legacy else ""
    ranges = manifest.partitions
    return {
        "manifest_path": manifest.path,
        "manifest_length": manifest.size_bytes,
        "partition_spec_id": manifest.spec_id,
        "content": manifest.content,
        "sequence_number": manifest.sequence_number,
        "min_sequence_number": manifest.min_sequence_number,
        "added_snapshot_id": manifest.added_snapshot_id,
        **{f"{what}_{data}files_count": getattr(manifest, f"{what}_files") for what in _COUNTS},
        **{f"{what}_rows_count": getattr(manifest, f"{what}_rows") for what in _COUNTS},
        "partitions": None if ranges is None else [
            {
                "contains_null": one.contains_null, "contains_nan": one.contains_nan, "lower_bound": one.lower,
                "upper_bound": one.upper,
            }
            for one in ranges
        ],
        "first_row_id": manifest.first_row_id,
    }  # fmt: skip


@functools.lru_cache(maxsize=2048)
def _manifest_bytes(manifest: IcebergManifest, schema: bytes, legacy: bool) -> bytes:
    """One record of a manifest list. Most manifests of a list stood in the one before."""
    return encode(shape_of(schema, "manifest list"), _manifest_record(manifest, legacy=legacy))


def _manifest_of(record: Mapping[str, Any]) -> IcebergManifest:
    def files(what: str) -> int:
        found = record.get(f"{what}_files_count")
        return int(record[f"{what}_data_files_count"] if found is None else found)

    ranges = record["partitions"]
    return IcebergManifest(
        path=record["manifest_path"],
        size_bytes=record["manifest_length"],
        spec_id=record["partition_spec_id"],
        content=record["content"],
        sequence_number=record["sequence_number"],
        min_sequence_number=record["min_sequence_number"],
        added_snapshot_id=record["added_snapshot_id"],
        added_files=files("added"),
        existing_files=files("existing"),
        deleted_files=files("deleted"),
        added_rows=record["added_rows_count"],
        existing_rows=record["existing_rows_count"],
        deleted_rows=record["deleted_rows_count"],
        partitions=None if ranges is None else tuple(
            PartitionRange(
                contains_null=one["contains_null"], contains_nan=one["contains_nan"], lower=one["lower_bound"],
                upper=one["upper_bound"],
            )
            for one in ranges
        ),
        first_row_id=record.get("first_row_id"),
    )  # fmt: skip
