"""Compressed streams of ORC files: chunks, each with a three-byte header of length and an "uncompressed" flag.

Source: ORC v1 specification, "Compression".
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

import pyarrow as pa
import zstandard

from paimon_py.errors import UnsupportedError

NONE, ZLIB, SNAPPY, LZO, LZ4, ZSTD = 0, 1, 2, 3, 4, 5
_NAMES = {LZO: "LZO", 6: "BROTLI"}
_ARROW_NAMES = {SNAPPY: "snappy", LZ4: "lz4_raw", ZSTD: "zstd"}
_HEADER_BYTES = 3
_MAX_CHUNK_BYTES = (1 << 23) - 1


class Chunks(NamedTuple):
    """The codec of a file, and the maximum uncompressed size of a chunk."""

    codec: int
    block_bytes: int


class Packed(NamedTuple):
    """Compressed bytes in chunks; `starts`: the starts of the chunks, followed by the end of the last one."""

    data: bytes
    starts: tuple[int, ...]

    def place(self, chunks: Chunks, at: int) -> list[int]:
        """The position of uncompressed byte `at` for readers: chunk and offset; without codec just `at`."""
        if chunks.codec == NONE:
            return [at]
        number, inside = divmod(at, _step(chunks))
        return [self.starts[number], inside]


def check_size(chunks: Chunks) -> None:
    """Raises: ValueError for chunks larger than the format allows."""
    if chunks.codec != NONE and chunks.block_bytes > _MAX_CHUNK_BYTES + 1:
        raise ValueError(f"chunks of {chunks.block_bytes} bytes")


def join(chunks: Chunks, data: bytes) -> bytes:
    """All chunks in `data`, decompressed and joined.

    Raises: ValueError, EOFError, pa.ArrowException for damage; UnsupportedError for a codec.
    """
    if chunks.codec == NONE:
        return data
    check_size(chunks)
    pieces, at = [], 0
    while at < len(data):
        header = int.from_bytes(data[at : at + _HEADER_BYTES], "little")
        first = at + _HEADER_BYTES
        at = first + (header >> 1)
        if at > len(data):
            raise EOFError("a compressed chunk ends early")
        piece = data[first:at] if header & 1 else _unpack(chunks, data[first:at])
        if len(piece) > max(chunks.block_bytes, header >> 1):
            raise ValueError(f"a chunk of {len(piece)} bytes, where {chunks.block_bytes} are allowed")
        pieces.append(piece)
    return b"".join(pieces)


def frame(chunks: Chunks, data: bytes) -> bytes:
    """`data` in uncompressed chunks."""
    if chunks.codec == NONE:
        return data
    return b"".join(_header(piece, plain=True) + piece for piece in _pieces(chunks, data))


def pack(chunks: Chunks, data: bytes, level: int) -> Packed:
    """`data` in chunks, compressed at `level` if the codec has levels and the chunk becomes smaller.

    Raises: UnsupportedError for a codec.
    """
    if chunks.codec == NONE:
        return Packed(data, (0, len(data)))
    out, starts = bytearray(), [0]
    for piece in _pieces(chunks, data):
        small = _compress(chunks.codec, piece, level)
        plain = len(small) >= len(piece)
        kept = piece if plain else small
        out += _header(kept, plain=plain) + kept
        starts.append(len(out))
    return Packed(bytes(out), tuple(starts))


def _step(chunks: Chunks) -> int:
    return min(chunks.block_bytes, _MAX_CHUNK_BYTES)


def _pieces(chunks: Chunks, data: bytes) -> list[bytes]:
    step = _step(chunks)
    return [data[at : at + step] for at in range(0, len(data), step)]


def _header(piece: bytes, *, plain: bool) -> bytes:
    return (len(piece) << 1 | plain).to_bytes(_HEADER_BYTES, "little")


def _compress(codec: int, data: bytes, level: int) -> bytes:
    if codec == ZLIB:
        stream = zlib.compressobj(level, zlib.DEFLATED, -15)
        return stream.compress(data) + stream.flush()
    if codec not in _ARROW_NAMES:
        name = _NAMES.get(codec, str(codec))
        raise UnsupportedError(f"ORC with {name} cannot be written", feature=f"ORC compression {name}")
    arrow = pa.Codec(_ARROW_NAMES[codec], level if codec == ZSTD else None)
    out: bytes = arrow.compress(data, asbytes=True)
    return out


def _unpack(chunks: Chunks, data: bytes) -> bytes:
    if chunks.codec == ZLIB:
        return _inflate(data, chunks.block_bytes)
    if chunks.codec == ZSTD:
        return _zstd_bytes(data, chunks.block_bytes)
    if chunks.codec == SNAPPY:
        return _decompress("snappy", data, _snappy_bytes(data), chunks.block_bytes)
    if chunks.codec == LZ4:
        return _decompress("lz4_raw", data, _lz4_bytes(data), chunks.block_bytes)
    if chunks.codec not in _NAMES:
        raise ValueError(f"compression {chunks.codec}, which ORC does not have")
    name = _NAMES[chunks.codec]
    message = f"ORC timestamps compressed with {name} cannot be decoded"
    raise UnsupportedError(message, feature=f"ORC compression {name}")


def _zstd_bytes(data: bytes, limit: int) -> bytes:
    """Decompress one frame; frames that store their size are decompressed without a stream, five times as fast."""
    try:
        if 0 < zstandard.frame_content_size(data) <= limit:
            return zstandard.ZstdDecompressor().decompress(data)
    except zstandard.ZstdError as error:
        raise ValueError(f"zstd: {error}") from error
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        found: bytes = stream.read(limit + 1)
    return found


def _inflate(data: bytes, limit: int) -> bytes:
    stream = zlib.decompressobj(-15)
    try:
        out = stream.decompress(data, limit + 1)
    except zlib.error as error:
        raise ValueError(f"deflate: {error}") from error
    if not stream.eof and len(out) <= limit:
        raise EOFError("a deflate stream ends early")
    return out


def _decompress(codec: str, data: bytes, size: int, limit: int) -> bytes:
    if size > limit:
        raise ValueError(f"a chunk of {size} bytes, where {limit} are allowed")
    out: bytes = pa.Codec(codec).decompress(data, size, asbytes=True)
    return out


def _snappy_bytes(data: bytes) -> int:
    """The uncompressed size in front of a snappy block, a varint of at most five bytes."""
    size = 0
    for place, byte in enumerate(data[:5]):
        size |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return size
    raise ValueError("a snappy block without its size")


def _lz4_bytes(data: bytes) -> int:
    """The uncompressed size of an LZ4 block, summed over its sequences: literals, then a match of at least four
    bytes."""
    total = at = 0
    while at < len(data):
        token = data[at]
        literals, at = _lz4_length(data, at + 1, token >> 4)
        at += literals
        total += literals
        if at >= len(data):
            break
        matched, at = _lz4_length(data, at + 2, token & 15)
        total += matched + 4
    return total


def _lz4_length(data: bytes, at: int, nibble: int) -> tuple[int, int]:
    length = nibble
    while nibble == 15:
        byte = data[at]
        at += 1
        length += byte
        if byte < 255:
            break
    return length, at
