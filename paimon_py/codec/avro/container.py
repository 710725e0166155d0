"""Avro object container files: header, blocks, codecs; the only module that imports fastavro.

Containers are parsed and built here, so that blocks and records can be copied as bytes and every fault in them raises
`CorruptionError`. Inflation is bounded before memory is used.

Source: Avro 1.11 specification, "Object Container Files"; format.md §5.1.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import zstandard

from paimon_py.errors import CorruptionError, UnsupportedError

MAGIC = b"Obj\x01"
SYNC_BYTES = 16
MAX_BLOCK_BYTES = 64 << 20
"""The maximum inflated size of a block; Java writes blocks of about 64 KB."""

MAX_HEADER_BYTES = 4 << 20
"""The maximum length of a header."""

_MAX_HEADER_KEYS = 1_000
_FREE_BYTES = 16 << 20
_INFLATION_MAX = 1024
"""A file may inflate to `_FREE_BYTES` plus this multiple of its size; real manifests stay far below."""

_ZSTD_FEED_BYTES = 1024
_ZLIB_TAIL_BYTES = 4
"""Some writers (fastavro) cut their blocks out of a zlib stream and leave bytes of its checksum at the end."""

XZ_MEMORY_BYTES = 256 << 20
"""The maximum memory for inflating a block compressed with xz."""

_OTHER_CODECS = frozenset(("lz4", "brotli", "lzo"))
_NAMES = {
    "zstd": "zstandard",
    "zstandard": "zstandard",
    "null": "null",
    "none": "null",
    "snappy": "snappy",
    "deflate": "deflate",
}


class Header(msgspec.Struct, frozen=True):
    """The start of a container: metadata, codec name as written, sync marker, and the offset of the first block."""

    schema: bytes
    codec: str
    metadata: dict[str, bytes]
    sync: bytes
    end: int


class Block(msgspec.Struct, frozen=True):
    """Inflated records: their count, their bytes, and the offset of the block in its file."""

    records: int
    payload: bytes
    offset: int


class CodecFault(Exception):
    """A block cannot be inflated, or exceeds its bound."""


Inflate = Callable[[bytes, int], bytes]
"""Inflates a block to at most the given number of bytes; raises CodecFault if that fails."""


def check_bound(data: bytes, limit: int) -> bytes:
    """Returns `data`; raises CodecFault if it is longer than `limit`."""
    if len(data) > limit:
        raise _too_long(limit)
    return data


def _too_long(limit: int) -> CodecFault:
    return CodecFault(f"block inflates to more than {limit} bytes")


def fastavro() -> Any:
    """The fastavro module: for Avro data files, whose schemas are the user's.

    Imported on first use and only here: the import costs 35 ms of CPU, and metadata never needs it.
    """
    import fastavro as module

    return module


def codec_name(option: str) -> str:
    """The Avro codec name for a compression name in Paimon's spelling.

    Raises:
        UnsupportedError: not a codec that containers support here.
    """
    name = _NAMES.get(option.strip().lower())
    if name is None:
        raise UnsupportedError(
            f"compression {option!r} is not supported for Avro metadata, use one of: {', '.join(sorted(_NAMES))}",
            feature=f"Avro codec {option}",
        )
    return name


def read_header(data: bytes, path: str) -> Header:
    """Parse the header of a container.

    Raises:
        CorruptionError: not an Avro container.
    """
    if data[:4] != MAGIC:
        raise CorruptionError(f"{path}: not an Avro container: starts with {data[:4]!r}", path=path, offset=0)
    metadata: dict[str, bytes] = {}
    position, keys = 4, 0
    try:
        while True:
            count, position = read_long(data, position)
            if count == 0:
                break
            if count < 0:
                count = -count
                _, position = read_long(data, position)
            keys += count
            if keys > _MAX_HEADER_KEYS:
                raise CorruptionError(f"{path}: the Avro header has {keys} keys", path=path, offset=position)
            for _ in range(count):
                key, position = _read_bytes(data, position)
                value, position = _read_bytes(data, position)
                metadata[key.decode()] = value
        if position + SYNC_BYTES > len(data) or position > MAX_HEADER_BYTES:
            raise IndexError
        codec = metadata.get("avro.codec", b"null").decode()
    except (IndexError, UnicodeDecodeError) as error:
        raise CorruptionError(f"{path}: broken Avro header", path=path, offset=position) from error
    schema = metadata.get("avro.schema")
    if schema is None:
        raise CorruptionError(f"{path}: Avro header without a schema", path=path, offset=4)
    end = position + SYNC_BYTES
    return Header(schema, codec, metadata, data[position:end], end)


def read_blocks(data: bytes, header: Header, path: str, inflate: Inflate, least: int = 1) -> list[Block]:
    """All blocks of a container, inflated.

    Args:
        least: the minimum size of a record in bytes.
    Cost: memory is bounded by the size of the file before anything is inflated.
    Raises:
        CorruptionError: the file ends inside a block, a marker is wrong, or a block does not inflate within bounds.
    """
    blocks = []
    position, end = header.end, len(data)
    room = _FREE_BYTES + _INFLATION_MAX * end
    while position < end:
        offset = position
        try:
            count, position = read_long(data, position)
            size, position = read_long(data, position)
        except IndexError as error:
            raise CorruptionError(f"{path}: the file ends inside a block", path=path, offset=offset) from error
        stop = position + size
        if count < 0 or size < 0 or stop + SYNC_BYTES > end:
            raise CorruptionError(
                f"{path}: block of {count} records in {size} bytes, {end - position} bytes are left",
                path=path,
                offset=offset,
            )
        if data[stop : stop + SYNC_BYTES] != header.sync:
            raise CorruptionError(f"{path}: wrong sync marker after a block", path=path, offset=stop)
        try:
            payload = inflate(data[position:stop], min(MAX_BLOCK_BYTES, room))
        except CodecFault as error:
            raise CorruptionError(f"{path}: {error}", path=path, offset=offset) from error
        room -= len(payload)
        check_block(count, payload, least, path, offset)
        blocks.append(Block(count, payload, offset))
        position = stop + SYNC_BYTES
    return blocks


def check_block(count: int, payload: bytes, least: int, path: str, offset: int) -> None:
    """Refuse a block with more records than its inflated bytes can hold, given at least `least` bytes per record."""
    if count * max(least, 1) > len(payload):
        message = f"{path}: {count} records in {len(payload)} bytes"
        raise CorruptionError(message, path=path, offset=offset)


def inflater(codec: str, path: str) -> Inflate:
    """The function that inflates blocks of `codec`; not thread-safe.

    Raises:
        UnsupportedError: an Avro codec that is not supported.
        CorruptionError: not a codec name.
    """
    if codec == "zstandard":
        decompressor = zstandard.ZstdDecompressor()
        return lambda raw, limit: _inflate_zstd(decompressor, raw, limit)
    if codec == "null":
        return check_bound
    if codec == "deflate":
        return _inflate_deflate
    if codec == "snappy":
        return _inflate_snappy
    if codec in ("bzip2", "xz"):
        return _rare_inflater(codec)
    if codec in _OTHER_CODECS:
        feature = f"Avro codec {codec}"
        raise UnsupportedError(f"{path}: {feature} is not supported", feature=feature, path=path)
    raise CorruptionError(f"{path}: unknown Avro codec {codec!r}", path=path, offset=4)


def deflater(codec: str, level: int = 1) -> Callable[[bytes], bytes]:
    """The function that compresses blocks for `codec` (a name from `codec_name`); `level` is zstandard's.

    Blocks compressed with zstandard and snappy carry a checksum of their content; readers of all releases verify it.
    """
    if codec == "zstandard":
        compressor = zstandard.ZstdCompressor(level=level, write_checksum=True)
        return compressor.compress
    if codec == "deflate":
        return _deflate
    if codec == "snappy":
        return _deflate_snappy
    return bytes


def header_bytes(schema: bytes, codec: str, more: Mapping[str, bytes] | None = None) -> bytes:
    """The bytes of a container before its sync marker, in Java's order: schema first, then codec.

    Args:
        more: further metadata of the file.
    """
    given = {"avro.schema": schema, "avro.codec": codec.encode(), **(more or {})}
    parts = [MAGIC, write_long(len(given))]
    for key, value in ((name.encode(), text) for name, text in given.items()):
        parts += (write_long(len(key)), key, write_long(len(value)), value)
    parts.append(b"\x00")
    return b"".join(parts)


def write_container(header: bytes, blocks: Iterable[tuple[int, bytes]]) -> bytes:
    """A whole container from `header_bytes` and compressed blocks with their record counts.

    The sync marker is a hash of the content: the same content gives the same bytes.
    """
    import hashlib

    pieces = list(blocks)
    digest = hashlib.blake2b(header, digest_size=SYNC_BYTES)
    for _, raw in pieces:
        digest.update(raw)
    sync = digest.digest()
    out = [header, sync]
    for count, raw in pieces:
        out += (write_long(count), write_long(len(raw)), raw, sync)
    return b"".join(out)


def pack(
    records: Sequence[bytes], compress: Callable[[bytes], bytes], block_bytes: int = 64_000
) -> list[tuple[int, bytes]]:
    """Group encoded records into compressed blocks of about `block_bytes` before compression."""
    blocks = []
    first = size = 0
    for index, record in enumerate(records):
        size += len(record)
        if size >= block_bytes:
            blocks.append((index + 1 - first, compress(b"".join(records[first : index + 1]))))
            first, size = index + 1, 0
    if first < len(records):
        blocks.append((len(records) - first, compress(b"".join(records[first:]))))
    return blocks


def read_long(data: bytes, position: int) -> tuple[int, int]:
    """Decode a zigzag varint; returns it and the position after it. IndexError if it exceeds ten bytes or `data`."""
    byte = data[position]
    if byte < 128:
        return (byte >> 1) ^ -(byte & 1), position + 1
    value, shift, first = byte & 127, 7, position
    while True:
        position += 1
        byte = data[position]
        value |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
        if position - first >= 9:
            raise IndexError
    value &= 0xFFFF_FFFF_FFFF_FFFF
    return (value >> 1) ^ -(value & 1), position + 1


def write_long(value: int) -> bytes:
    """Encode a zigzag varint."""
    value = value << 1 if value >= 0 else ~(value << 1)
    if value < 128:
        return _SHORT[value]
    if value < 16_384:
        return bytes((value & 127 | 128, value >> 7))
    if value < 2_097_152:
        return bytes((value & 127 | 128, value >> 7 & 127 | 128, value >> 14))
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


_SHORT = [bytes((value,)) for value in range(128)]


def _read_bytes(data: bytes, position: int) -> tuple[bytes, int]:
    length, position = read_long(data, position)
    end = position + length
    if length < 0 or end > len(data):
        raise IndexError
    return data[position:end], end


def _inflate_zstd(decompressor: zstandard.ZstdDecompressor, raw: bytes, limit: int) -> bytes:
    """Inflate in small steps, so that a decompression bomb is detected before it fills the memory."""
    pieces: list[bytes] = []
    size = at = 0
    try:
        while True:
            frame = decompressor.decompressobj()
            while not frame.eof:
                if at >= len(raw):
                    raise CodecFault("zstandard block ends early")
                piece = frame.decompress(raw[at : at + _ZSTD_FEED_BYTES])
                at += _ZSTD_FEED_BYTES
                size += len(piece)
                if size > limit:
                    raise _too_long(limit)
                pieces.append(piece)
            at = min(at, len(raw)) - len(frame.unused_data)
            if at == len(raw):
                return pieces[0] if len(pieces) == 1 else b"".join(pieces)
    except zstandard.ZstdError as error:
        raise CodecFault(str(error)) from error


def _inflate_deflate(raw: bytes, limit: int) -> bytes:
    stream = zlib.decompressobj(-15)
    try:
        out = stream.decompress(raw, limit + 1)
    except zlib.error as error:
        raise CodecFault(str(error)) from error
    if len(out) <= limit and (not stream.eof or len(stream.unused_data) > _ZLIB_TAIL_BYTES):
        raise CodecFault("deflate block ends early or late")
    return check_bound(out, limit)


def _rare_inflater(codec: str) -> Inflate:
    """The inflater of a codec that Paimon does not write by default; its library is imported on first use."""
    import bz2
    import lzma

    def inflate(raw: bytes, limit: int) -> bytes:
        stream = bz2.BZ2Decompressor() if codec == "bzip2" else lzma.LZMADecompressor(memlimit=XZ_MEMORY_BYTES)
        try:
            out = stream.decompress(raw, limit + 1)
        except (OSError, ValueError, EOFError, lzma.LZMAError) as error:
            raise CodecFault(f"broken {codec} block: {error}") from error
        if len(out) <= limit and not stream.eof:
            raise CodecFault(f"{codec} block ends early")
        return check_bound(out, limit)

    return inflate


def _deflate(data: bytes) -> bytes:
    stream = zlib.compressobj(6, zlib.DEFLATED, -15)
    return stream.compress(data) + stream.flush()


def _inflate_snappy(raw: bytes, limit: int) -> bytes:
    size = shift = position = 0
    try:
        while True:
            byte = raw[position]
            position += 1
            size |= (byte & 127) << shift
            shift += 7
            if byte < 128 or shift > 35:
                break
        if size > limit or size > 64 * len(raw):
            raise CodecFault(f"snappy block claims {size} bytes")
        out: bytes = pa.decompress(raw[:-4], decompressed_size=size, codec="snappy", asbytes=True)
    except MemoryError:
        raise
    except (IndexError, ValueError, OSError, pa.ArrowException) as error:
        raise CodecFault(f"broken snappy block: {error}") from error
    if zlib.crc32(out) != int.from_bytes(raw[-4:], "big"):
        raise CodecFault("snappy block has a wrong checksum")
    return out


def _deflate_snappy(data: bytes) -> bytes:
    packed: bytes = pa.compress(data, codec="snappy", asbytes=True)
    return packed + zlib.crc32(data).to_bytes(4, "big")
