"""The bytes of `.blobref` files: the packs of BLOBs that one data file of a primary-key table refers to.

    magic (int32) · version 1 (byte) · count (int32) · per pack: directory, name (texts) · CRC-32 of all after the magic

Numbers are big endian; a text is its length (2 bytes) and modified UTF-8; packs are sorted and occur once.

Source: format.md §26; Java `ManagedBlobReferenceFile`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.blob_arrays import flat_blobs
from paimon_py.codec.blob_refs import BlobRef
from paimon_py.codec.java_text import decode_utf, encode_utf
from paimon_py.errors import CorruptionError
from paimon_py.spec.blobs import PACK_SUFFIX

_MAGIC = 0x50424C52
_VERSION = 1
_HEAD = struct.Struct(">iBi")
_CHECKSUM = struct.Struct(">I")
_PLACE_BYTES = 16
"""Offset and length at the end of a reference."""


class Pack(NamedTuple):
    """A pack of BLOBs: the URI of its directory, and its name."""

    directory: str
    name: str


def packs_of(column: pa.Array) -> Iterator[Pack]:
    """The packs that references in a BLOB column name, each once.

    Raises: CorruptionError for values that are not references.
    """
    refs = flat_blobs(column).drop_null()
    uris = pc.binary_slice(refs.cast(pa.binary()), 0, -_PLACE_BYTES).unique() if len(refs) else []
    for head in uris:
        uri = BlobRef.from_bytes(head.as_py() + bytes(_PLACE_BYTES)).uri
        if uri.endswith(PACK_SUFFIX):
            directory, _, name = uri.rpartition("/")
            yield Pack(directory, name)


def encode_packs(packs: Iterable[Pack]) -> bytes:
    """The content of a `.blobref` file."""
    found = sorted(set(packs), key=lambda pack: tuple(text.encode("utf-16-be") for text in pack))
    body = _HEAD.pack(_MAGIC, _VERSION, len(found)) + b"".join(encode_utf(text) for pack in found for text in pack)
    return body + _CHECKSUM.pack(zlib.crc32(body[4:]))


def decode_packs(data: bytes, path: str) -> tuple[Pack, ...]:
    """The inverse of `encode_packs`.

    Raises: CorruptionError
    """
    end = len(data) - _CHECKSUM.size
    if end < _HEAD.size or zlib.crc32(data[4:end]) != _CHECKSUM.unpack_from(data, end)[0]:
        raise CorruptionError(f"{path} does not have the checksum of a list of packs", path=path)
    magic, version, count = _HEAD.unpack_from(data)
    if (magic, version) != (_MAGIC, _VERSION) or count < 0:
        raise CorruptionError(f"{path} is not a list of packs of version {_VERSION}", path=path)
    texts: list[str] = []
    position = _HEAD.size
    try:
        while position < end:
            text, position = decode_utf(data[:end], position)
            texts.append(text)
    except (struct.error, ValueError) as error:
        raise CorruptionError(f"{path} is damaged: {error}", path=path) from error
    if len(texts) != 2 * count:
        raise CorruptionError(f"{path} contains {len(texts)} texts for {count} packs", path=path)
    return tuple(map(Pack, texts[::2], texts[1::2]))
