"""The container of a file's indexes: a header that lists the indexes of each column with their offsets, then their
bytes.

Source: format.md §11.1; Java `FileIndexFormat`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

import msgspec

from paimon_py.codec.java_text import decode_utf, encode_utf
from paimon_py.errors import CorruptionError

PREFIX_BYTES = 16
"""The number of bytes needed to find the length of the head."""

_MAGIC = 1493475289347502
_VERSION = 1
_EMPTY = -1
_PREFIX = struct.Struct(">qii")
_INT = struct.Struct(">i")
_PLACE = struct.Struct(">ii")


class IndexPlace(msgspec.Struct, frozen=True):
    """The range of an index in the container; `start` is −1 for an empty index."""

    start: int
    length: int

    @property
    def is_empty(self) -> bool:
        """Whether the index contains no row."""
        return self.start == _EMPTY


Head = dict[str, dict[str, IndexPlace]]
"""Places by column (`map[key]` for the values of a map) and index type."""


def encode(indexes: Mapping[str, Mapping[str, bytes | None]]) -> bytes:
    """The container of indexes by column and type; None for an index without rows."""
    names = [
        (encode_utf(column), [(encode_utf(kind), data) for kind, data in kinds.items()])
        for column, kinds in indexes.items()
    ]
    size = PREFIX_BYTES + 8 + sum(len(column) + 4 + sum(len(k) + 8 for k, _ in kinds) for column, kinds in names)
    head = [_PREFIX.pack(_MAGIC, _VERSION, size), _INT.pack(len(names))]
    body: list[bytes] = []
    at = size
    for column, kinds in names:
        head += [column, _INT.pack(len(kinds))]
        for kind, data in kinds:
            head += [kind, _PLACE.pack(_EMPTY, 0) if data is None else _PLACE.pack(at, len(data))]
            body.append(data or b"")
            at += len(data or b"")
    return b"".join((*head, _INT.pack(0), *body))


def head_bytes(prefix: bytes, path: str) -> int:
    """The length of the head, from the first `PREFIX_BYTES` bytes.

    Raises: CorruptionError if the bytes are not a container, or the version is unknown.
    """
    if len(prefix) < PREFIX_BYTES:
        raise CorruptionError(f"{path} ends after {len(prefix)} bytes; it should be a file index", path=path)
    magic, version, size = _PREFIX.unpack_from(prefix)
    if magic != _MAGIC:
        raise CorruptionError(f"{path} begins with {prefix[:8].hex()}, which is not a file index", path=path, offset=0)
    if version != _VERSION:
        raise CorruptionError(f"{path} is a file index of version {version}; only 1 is known", path=path, offset=8)
    if size < PREFIX_BYTES + 8:
        raise CorruptionError(f"{path}: a head of {size} bytes is impossible", path=path, offset=12)
    return int(size)


def decode_head(head: bytes, path: str) -> Head:
    """Decode the places of the indexes.

    Raises: CorruptionError
    """
    found: Head = {}
    size = head_bytes(head[:PREFIX_BYTES], path)
    if len(head) < size:
        raise CorruptionError(f"{path} ends within its head", path=path, offset=len(head))
    end = size
    try:
        columns = _INT.unpack_from(head, PREFIX_BYTES)[0]
        at = PREFIX_BYTES + 4
        for _ in range(columns):
            column, at = decode_utf(head, at)
            kinds = found.setdefault(column, {})
            count = _INT.unpack_from(head, at)[0]
            at += 4
            for _ in range(count):
                kind, at = decode_utf(head, at)
                place = IndexPlace(*_PLACE.unpack_from(head, at))
                if (kind in kinds or place.length < 0 or place.start != end) and (not place.is_empty or place.length):
                    raise ValueError(f"the {kind} of {column!r} begins at {place.start}, {end} is expected")
                end += place.length
                kinds[kind] = place
                at += 8
        if _INT.unpack_from(head, at)[0] != size - at - 4:
            raise ValueError("its length does not match its content")
        return found
    except (struct.error, ValueError) as error:
        raise CorruptionError(f"the head of {path} is damaged: {error}", path=path, offset=PREFIX_BYTES) from error


def decode(data: bytes, path: str) -> dict[str, dict[str, bytes | None]]:
    """All indexes of a container in memory.

    Raises: CorruptionError
    """
    found: dict[str, dict[str, bytes | None]] = {}
    for column, kinds in decode_head(data, path).items():
        found[column] = {kind: None if place.is_empty else cut(data, place, path) for kind, place in kinds.items()}
    return found


def cut(data: bytes, place: IndexPlace, path: str) -> bytes:
    """The bytes of one index.

    Raises: CorruptionError if some are missing.
    """
    part = data[place.start : place.start + place.length] if place.start >= 0 and place.length >= 0 else b""
    if len(part) != place.length:
        raise CorruptionError(f"{path} ends within an index", path=path, offset=place.start)
    return part
