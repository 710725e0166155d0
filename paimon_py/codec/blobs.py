"""The bytes of `.blob` files: entries one after the other, and an index of their lengths at the end.

    file     entries · index · length of the index (int32) · version 1 (byte)
    entry    magic (int32) · payload · length of the entry (int64) · CRC-32 of all before it (int32)
    index    the length of each row's entry, as differences; −1 NULL, −2 value stored elsewhere (both without an entry)

Numbers are little endian; differences are zigzag varints.

Source: format.md §26; Java `BlobFormatWriter`, `BlobFileMeta`, `DeltaVarintCompressor`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from paimon_py.codec.columns import Ints
from paimon_py.errors import CorruptionError
from paimon_py.spec.types import Atomic, DataType, MapType, Root

NULL, PLACEHOLDER = -1, -2
MAGIC = 1_481_511_375
VERSION = 1
HEAD_BYTES = 4
TAIL_BYTES = 12
ENTRY_BYTES = HEAD_BYTES + TAIL_BYTES
FOOTER_BYTES = 5

_ARRAY_MAGIC = 1_094_861_634
_MAP_MAGIC = 1_296_188_226
_HEAD = struct.Struct("<i")
_TAIL = struct.Struct("<qi")
_FOOTER = struct.Struct("<iB")
_NESTED = struct.Struct("<iBi")
_KEYS = {Root.TINYINT: "<b", Root.SMALLINT: "<h", Root.INT: "<i", Root.BIGINT: "<q"}
_LONGEST_VARINT = 10

Blob = bytes | memoryview


class NestedBlobs(NamedTuple):
    """The elements of an ARRAY (`keys` is None), or the keys and values of a MAP."""

    keys: list[object] | None
    blobs: list[Blob | None]


class BlobIndex(msgspec.Struct, frozen=True):
    """The offsets and lengths of the entries, row by row."""

    lengths: Ints
    offsets: Ints


def entry_parts(payload: Blob) -> tuple[bytes, bytes]:
    """The bytes before and after a payload in its entry."""
    head = _HEAD.pack(MAGIC)
    length = struct.pack("<q", len(payload) + ENTRY_BYTES)
    checksum = zlib.crc32(length, zlib.crc32(payload, zlib.crc32(head)))
    return head, length + struct.pack("<I", checksum)


def payload_of(entry: memoryview, path: str, row: int) -> memoryview:
    """The payload of an entry.

    Raises: CorruptionError if its length or its checksum does not match.
    """
    size = len(entry)
    length, checksum = _TAIL.unpack_from(entry, size - TAIL_BYTES)
    if _HEAD.unpack_from(entry)[0] != MAGIC or length != size or zlib.crc32(entry[:-4]) != checksum & 0xFFFF_FFFF:
        raise CorruptionError(f"the blob of row {row} of {path} is damaged", path=path)
    return entry[HEAD_BYTES:-TAIL_BYTES]


def encode_index(lengths: Sequence[int]) -> bytes:
    """The end of a file with entries of these lengths: index and footer."""
    data = encode_deltas(lengths)
    return data + _FOOTER.pack(len(data), VERSION)


def index_bytes(footer: bytes, path: str) -> int:
    """The length of the index, from the last bytes of the file.

    Raises: CorruptionError
    """
    length, version = _FOOTER.unpack(footer) if len(footer) == FOOTER_BYTES else (-1, VERSION)
    if length < 0 or version != VERSION:
        raise CorruptionError(f"{path} does not end as a blob file of version {VERSION}", path=path)
    return int(length)


def decode_index(data: bytes, entries_bytes: int, path: str) -> BlobIndex:
    """The index of a file.

    Args:
        entries_bytes: the length of all entries.
    Raises: CorruptionError
    """
    lengths = decode_deltas(data, path)
    stored = np.where(lengths >= 0, lengths, 0)
    fits = bool(((lengths >= ENTRY_BYTES) | (lengths == NULL) | (lengths == PLACEHOLDER)).all())
    if not fits or int(lengths.max(initial=0)) > entries_bytes or int(stored.sum()) != entries_bytes:
        raise CorruptionError(f"the index of {path} does not match its length", path=path)
    return BlobIndex(lengths, np.cumsum(stored) - stored)


def encode_deltas(numbers: Sequence[int]) -> bytes:
    """Encode integers as zigzag varints of their differences."""
    found, before = bytearray(), 0
    for number in numbers:
        difference = number - before
        word = (difference << 1) ^ (difference >> 63)
        while word > 127:
            found.append(word & 127 | 128)
            word >>= 7
        found.append(word)
        before = number
    return bytes(found)


def decode_deltas(data: bytes, path: str) -> Ints:
    """The inverse of `encode_deltas`.

    Raises: CorruptionError
    """
    raw = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(raw < 128)
    starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    sizes = ends - starts + 1
    if len(raw) and (raw[-1] > 127 or int(sizes.max()) > _LONGEST_VARINT):
        raise CorruptionError(f"{path} contains a number that does not end", path=path)
    words = np.zeros(len(ends), np.uint64)
    for place in range(int(sizes.max(initial=0))):
        rows = np.flatnonzero(sizes > place)
        words[rows] |= (raw[starts[rows] + place].astype(np.uint64) & np.uint64(127)) << np.uint64(7 * place)
    differences = (words >> np.uint64(1)).view(np.int64) ^ -(words & np.uint64(1)).view(np.int64)
    found: Ints = np.cumsum(differences)
    return found


def encode_nested(kind: DataType, value: NestedBlobs) -> bytes:
    """The payload of an ARRAY or MAP of BLOBs."""
    blobs = [blob for blob in value.blobs if blob is not None]
    lengths = encode_deltas([NULL if blob is None else len(blob) for blob in value.blobs])
    if not isinstance(kind, MapType):
        head = _NESTED.pack(_ARRAY_MAGIC, VERSION, len(value.blobs))
        return b"".join([head, *blobs, lengths, struct.pack("<i", len(lengths))])
    keys = [_key_bytes(kind.key, key) for key in value.keys or ()]
    head, sizes = _NESTED.pack(_MAP_MAGIC, VERSION, len(keys)), encode_deltas([len(key) for key in keys])
    return b"".join([head, *keys, *blobs, sizes, lengths, struct.pack("<ii", len(sizes), len(lengths))])


def decode_nested(kind: DataType, payload: memoryview, path: str) -> NestedBlobs:
    """The inverse of `encode_nested`.

    Raises: CorruptionError
    """
    is_map = isinstance(kind, MapType)
    trailer = 8 if is_map else 4
    if len(payload) < _NESTED.size + trailer:
        raise _damage(path)
    magic, version, count = _NESTED.unpack_from(payload)
    if (magic, version) != (_MAP_MAGIC if is_map else _ARRAY_MAGIC, VERSION) or count < 0:
        raise _damage(path)
    body, end = payload[_NESTED.size : len(payload) - trailer], len(payload) - trailer
    sizes = struct.unpack_from("<ii" if is_map else "<i", payload, end)
    if min(sizes) < 0 or sum(sizes) > len(body):
        raise _damage(path)
    tables: list[Ints] = []
    stop = len(body)
    for size in reversed(sizes):
        tables.insert(0, decode_deltas(bytes(body[stop - size : stop]), path))
        stop -= size
    if any(len(lengths) != count for lengths in tables) or int(tables[-1].min(initial=0)) < NULL:
        raise _damage(path)
    if is_map and int(tables[0].min(initial=0)) < 0:
        raise _damage(path)
    columns: list[list[Blob | None]] = []
    position = 0
    for lengths in tables:
        found: list[Blob | None] = []
        for length in lengths.tolist():
            found.append(None if length < 0 else body[position : position + length])
            position += max(length, 0)
        columns.append(found)
    if position != stop:
        raise _damage(path)
    if isinstance(kind, MapType):
        return NestedBlobs([_key_value(kind.key, bytes(key or b""), path) for key in columns[0]], columns[1])
    return NestedBlobs(None, columns[0])


def _key_bytes(kind: DataType, key: object) -> bytes:
    assert isinstance(kind, Atomic)
    form = _KEYS.get(kind.root)
    return str(key).encode() if form is None else struct.pack(form, key)


def _key_value(kind: DataType, data: bytes, path: str) -> object:
    assert isinstance(kind, Atomic)
    form = _KEYS.get(kind.root)
    if form is not None and struct.calcsize(form) != len(data):
        raise _damage(path)
    try:
        return data.decode() if form is None else struct.unpack(form, data)[0]
    except UnicodeDecodeError as error:
        raise _damage(path) from error


def _damage(path: str) -> CorruptionError:
    return CorruptionError(f"{path} holds a list of blobs that is damaged", path=path)
