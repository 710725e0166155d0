"""Bytes that travel, taken apart, changed in one place, and sealed again with a right checksum."""

from __future__ import annotations

import copy
import random
import struct
import zlib
from collections.abc import Iterator

import msgspec
import zstandard

NUMBERS = (0, -1, 1, 2, 5, 2**31, 2**62, 2**63 - 1, 2**63, -(2**63))
TEXTS = ("", "..", "../x", "a/b", "x" * 300, "data-0.parquet", "\0", "file:///etc/passwd")

Path = tuple[object, ...]


def opened(data: bytes) -> tuple[bytes, dict]:
    """The head of the envelope and the value in it, as plain Python."""
    end = data.index(b":") + 1
    body = data[end + 12 :]
    if body.startswith(zstandard.FRAME_HEADER):
        body = zstandard.ZstdDecompressor().decompress(body)
    return data[:end], msgspec.msgpack.decode(body)


def sealed(head: bytes, value: dict) -> bytes:
    """Bytes as a stranger makes them."""
    body = msgspec.msgpack.encode(value)
    size = struct.pack(">Q", len(body))
    return head + size + struct.pack(">I", zlib.crc32(head + size + body)) + body


def damaged(data: bytes, random_: random.Random) -> bytes:
    """Bytes that lost, got or changed some on the way."""
    at, kind = random_.randrange(len(data)), random_.randrange(5)
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + bytes(random_.randrange(1, 9)) + data[at:]
    if kind == 2:
        return data[:at] + data[at + random_.randrange(1, 9) :]
    if kind == 3:
        size = random_.randrange(1, 9)
        return data[:at] + random_.randbytes(size) + data[at + size :]
    return data[:at] + bytes([data[at] ^ 1 << random_.randrange(8)]) + data[at + 1 :]


def mutations(value: dict) -> Iterator[tuple[Path, object]]:
    """Every way to change one place: its path, and what stands there then."""
    return ((path, new) for path, old in _places(value, ()) for new in _others(old))


def changed(value: dict, path: Path, new: object) -> dict:
    """The value with something else at one place."""
    whole = copy.deepcopy(value)
    holder = whole
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = new
    return whole


def _places(value: object, path: Path) -> Iterator[tuple[Path, object]]:
    if path:
        yield path, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _places(item, (*path, key))


def _others(old: object) -> list[object]:
    if isinstance(old, bool):
        return [not old]
    if isinstance(old, int):
        return [new for new in dict.fromkeys((*NUMBERS, old + 1, old - 1)) if new != old and new < 2**64]
    if isinstance(old, bytes):
        flipped = [old[:at] + bytes([old[at] ^ 1 << at % 8]) + old[at + 1 :] for at in range(0, len(old), 5)]
        return [b"", old[:-1], old + b"\0", bytes(len(old)) if any(old) else b"\1" * len(old), *flipped]
    if isinstance(old, str):
        return [text for text in TEXTS if text != old] + ([old[:-1]] if old else [])
    if old is None:
        return [0, 2**63, b"", "x", "../x", []]
    if isinstance(old, list):
        return [[], old + old, old[::-1], *([old[1:], old[:-1]] if len(old) > 1 else [])]
    return []
