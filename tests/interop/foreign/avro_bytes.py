"""Avro containers taken apart and put together again in any way the specification allows, without the package's code."""

from __future__ import annotations

import bz2
import json
import lzma
import struct
import zlib
from typing import Any, NamedTuple

import pyarrow as pa
import zstandard

CODECS = ("null", "deflate", "snappy", "zstandard", "bzip2", "xz")
_SYNC = bytes(range(1, 17))


class Branch(NamedTuple):
    """A value of a union, and which branch it takes."""

    index: int
    value: Any


class Style(NamedTuple):
    """How a container is laid out.

    `per_block`: records in a block, 0 for one block. `empties`: blocks without records at the start, between, at the end.
    `sized`: arrays and the header tell their bytes. `split`: arrays come in blocks of one item.
    """

    codec: str = "zstandard"
    per_block: int = 0
    empties: tuple[bool, bool, bool] = (False, False, False)
    sized: bool = False
    split: bool = False
    indent: int | None = None
    metadata: tuple[tuple[str, bytes], ...] = ()
    sync: bytes = _SYNC
    is_codec_told: bool = True


class Container(NamedTuple):
    schema: Any
    records: list
    codec: str


def header_end(data: bytes) -> int:
    """Where the first block begins, behind the marker."""
    return _keys(data)[1] + 16


def first_block(data: bytes) -> tuple[int, bytes, bytes]:
    """The records of the first block, its packed bytes, and the bytes behind its marker."""
    count, at = _long(data, header_end(data))
    payload, at = _sized(data, at)
    return count, payload, data[at + 16 :]


def _keys(data: bytes) -> tuple[dict[str, bytes], int]:
    """The keys of the header, and where they end."""
    at, metadata = 4, {}
    while True:
        count, at = _long(data, at)
        if not count:
            return metadata, at
        if count < 0:
            count, (_, at) = -count, _long(data, at)
        for _ in range(count):
            key, at = _sized(data, at)
            metadata[key.decode()], at = _sized(data, at)


def read(data: bytes) -> Container:
    metadata, at = _keys(data)
    sync, at = data[at : at + 16], at + 16
    schema, codec = json.loads(metadata["avro.schema"]), metadata.get("avro.codec", b"null").decode()
    records = []
    while at < len(data):
        count, at = _long(data, at)
        payload, at = _sized(data, at)
        assert data[at : at + 16] == sync
        at += 16
        payload, inner = _unpacked(codec, payload), 0
        for _ in range(count):
            record, inner = _decode(schema, payload, inner, {})
            records.append(record)
    return Container(schema, records, codec)


def write(schema: Any, records: list, style: Style) -> bytes:
    metadata = [("avro.schema", json.dumps(schema, indent=style.indent).encode())]
    if style.is_codec_told:
        metadata.append(("avro.codec", style.codec.encode()))
    out = [b"Obj\x01", header([*style.metadata, *metadata], style.sized), style.sync]
    step = style.per_block or max(len(records), 1)
    parts = [records[start : start + step] for start in range(0, len(records), step)]
    if style.empties[0]:
        parts.insert(0, [])
    if style.empties[1]:
        parts.insert(len(parts) // 2, [])
    if style.empties[2]:
        parts.append([])
    known: dict = {}
    for part in parts:
        payload = _packed(style.codec, b"".join(_encode(schema, record, style, known) for record in part))
        out += [long(len(part)), long(len(payload)), payload, style.sync]
    return b"".join(out)


def header(items: list, sized: bool = False) -> bytes:
    body = b"".join(_prefixed(key.encode()) + _prefixed(value) for key, value in items)
    return (long(-len(items)) + long(len(body)) if sized else long(len(items))) + body + b"\x00"


def _packed(codec: str, raw: bytes) -> bytes:
    if codec == "deflate":
        stream = zlib.compressobj(6, zlib.DEFLATED, -15)
        return stream.compress(raw) + stream.flush()
    if codec == "snappy":
        return pa.compress(raw, codec="snappy", asbytes=True) + zlib.crc32(raw).to_bytes(4, "big")
    packers = {"null": bytes, "zstandard": zstandard.compress, "bzip2": bz2.compress, "xz": lzma.compress}
    return packers[codec](raw)


def _unpacked(codec: str, raw: bytes) -> bytes:
    if codec == "deflate":
        return zlib.decompress(raw, -15)
    if codec == "snappy":
        size, at = 0, 0
        while True:
            size |= (raw[at] & 127) << 7 * at
            at += 1
            if raw[at - 1] < 128:
                break
        return pa.decompress(raw[:-4], decompressed_size=size, codec="snappy", asbytes=True)
    if codec == "zstandard":
        return zstandard.ZstdDecompressor().decompressobj().decompress(raw)
    return {"null": bytes, "bzip2": bz2.decompress, "xz": lzma.decompress}[codec](raw)


def _decode(schema: Any, data: bytes, at: int, known: dict) -> tuple[Any, int]:
    if isinstance(schema, list):
        index, at = _long(data, at)
        value, at = _decode(schema[index], data, at, known)
        return Branch(index, value), at
    kind = schema if isinstance(schema, str) else schema["type"]
    if not isinstance(kind, str):
        return _decode(kind, data, at, known)
    if isinstance(schema, str) and schema in known:
        return _decode(known[schema], data, at, known)
    if kind == "record":
        known[schema["name"]] = schema
        record = {}
        for field in schema["fields"]:
            record[field["name"]], at = _decode(field["type"], data, at, known)
        return record, at
    if kind in ("array", "map"):
        return _decode_items(schema, data, at, known)
    if kind == "null":
        return None, at
    if kind in ("int", "long", "enum"):
        return _long(data, at)
    if kind == "boolean":
        return data[at] == 1, at + 1
    if kind in ("float", "double"):
        size = 4 if kind == "float" else 8
        return struct.unpack("<f" if size == 4 else "<d", data[at : at + size])[0], at + size
    if kind == "fixed":
        return data[at : at + schema["size"]], at + schema["size"]
    raw, at = _sized(data, at)
    return (raw.decode() if kind == "string" else raw), at


def _decode_items(schema: dict, data: bytes, at: int, known: dict) -> tuple[list, int]:
    items = []
    while True:
        count, at = _long(data, at)
        if not count:
            return items, at
        if count < 0:
            count, (_, at) = -count, _long(data, at)
        for _ in range(count):
            if schema["type"] == "map":
                key, at = _sized(data, at)
                value, at = _decode(schema["values"], data, at, known)
                items.append((key.decode(), value))
            else:
                value, at = _decode(schema["items"], data, at, known)
                items.append(value)


def _encode(schema: Any, value: Any, style: Style, known: dict) -> bytes:
    if isinstance(schema, list):
        return long(value.index) + _encode(schema[value.index], value.value, style, known)
    kind = schema if isinstance(schema, str) else schema["type"]
    if not isinstance(kind, str):
        return _encode(kind, value, style, known)
    if isinstance(schema, str) and schema in known:
        return _encode(known[schema], value, style, known)
    if kind == "record":
        known[schema["name"]] = schema
        return b"".join(_encode(field["type"], value[field["name"]], style, known) for field in schema["fields"])
    if kind in ("array", "map"):
        return _encode_items(schema, value, style, known)
    if kind == "null":
        return b""
    if kind in ("int", "long", "enum"):
        return long(value)
    if kind == "boolean":
        return bytes([value])
    if kind in ("float", "double"):
        return struct.pack("<f" if kind == "float" else "<d", value)
    if kind == "fixed":
        return value
    return _prefixed(value.encode() if isinstance(value, str) else value)


def _encode_items(schema: dict, items: list, style: Style, known: dict) -> bytes:
    if schema["type"] == "map":
        encoded = [_prefixed(key.encode()) + _encode(schema["values"], value, style, known) for key, value in items]
    else:
        encoded = [_encode(schema["items"], item, style, known) for item in items]
    parts = [[item] for item in encoded] if style.split else [encoded] if encoded else []
    out = b""
    for part in parts:
        body = b"".join(part)
        out += (long(-len(part)) + long(len(body)) if style.sized else long(len(part))) + body
    return out + b"\x00"


def long(value: int) -> bytes:
    value = value << 1 if value >= 0 else ~(value << 1)
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _long(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return (value >> 1) ^ -(value & 1), at


def _prefixed(raw: bytes) -> bytes:
    return long(len(raw)) + raw


def _sized(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _long(data, at)
    return data[at : at + size], at + size
