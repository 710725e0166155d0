"""The union of serialized Roaring bitmaps, in Java's encoding.

32-bit bitmaps have the portable format. 64-bit bitmaps have the format of Java's `Roaring64Bitmap` (library release
1.2), which no other library writes: a radix tree over the upper six bytes of the values, whose leaves hold the numbers
of the containers of the lower two; then the containers.

Source: Java `RoaringBitmap32`, `RoaringBitmap64`; RoaringBitmap's `HighLowContainer`, `Art`, `Node4` … `Node256`,
`LeafNode`, `Containers`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from pyroaring import BitMap

_PLAIN = 12346
_WITH_RUNS = 12347
_NODE_4, _NODE_16, _NODE_48, _NODE_256, _LEAF = range(5)
_BODY_BYTES = {_NODE_4: 4, _NODE_16: 16, _NODE_48: 256, _NODE_256: 32}
_RUN, _BITS, _ARRAY = range(3)
_ARRAY_LIMIT = 4096
_KEY_BYTES = 6
_NOT_TRIMMED = b"\xfe"


def union_32(parts: Sequence[bytes]) -> bytes:
    """The union of 32-bit bitmaps.

    Raises: ValueError if a value is not a bitmap.
    """
    bitmap = BitMap.union(*(_bitmap(part) for part in parts))
    bitmap.run_optimize()
    made: bytes = bitmap.serialize()
    return made


def union_64(parts: Sequence[bytes]) -> bytes:
    """The union of 64-bit bitmaps: the containers of the first, followed by those that the others add.

    Raises: ValueError if a value is not a bitmap.
    """
    bitmap = _Bitmap64.read(parts[0])
    for part in parts[1:]:
        bitmap.add(_Bitmap64.read(part))
    return bitmap.write()


class _Bitmap64:
    """Containers by key: `places` maps a key to its container's number; `slots` may have spare capacity."""

    def __init__(self) -> None:
        self.places: dict[bytes, int] = {}
        self.slots: list[BitMap | None] = []
        self.last = -1

    def add(self, other: _Bitmap64) -> None:
        for key in sorted(other.places):
            container = other.slots[other.places[key]]
            place = self.places.get(key)
            own = None if place is None else self.slots[place]
            if own is not None and container is not None:
                own |= container
                continue
            self.last += 1
            if self.last >= len(self.slots):
                room = max(len(self.slots) + (len(self.slots) >> 1), self.last + 1)
                self.slots.extend([None] * (room - len(self.slots)))
            self.slots[self.last] = container
            self.places[key] = self.last

    @classmethod
    def read(cls, data: bytes) -> _Bitmap64:
        made = cls()
        try:
            if data[0] == 0:
                return made
            end = _read_node(data, 9, made.places)
            end = made._read_slots(data, end)
        except (struct.error, IndexError, KeyError, RecursionError) as error:
            raise ValueError("the bytes end early or are in disorder") from error
        is_whole = data[0] == 1 and end == len(data) and -1 <= made.last < len(made.slots)
        if not is_whole or not all(
            0 <= place <= made.last and made.slots[place] is not None for place in made.places.values()
        ):
            raise ValueError("the bytes are in disorder")
        return made

    def _read_slots(self, data: bytes, at: int) -> int:
        lists, _, room = struct.unpack_from("<ibi", data, at)
        at += 9
        if lists != 1 or not 0 <= room <= len(data):
            raise ValueError(f"{lists} lists of {room} containers")
        for _ in range(room):
            at += 1
            if data[at - 1] == 0:
                self.slots.append(None)
                continue
            kind, count = struct.unpack_from("<bi", data, at)
            at += 5
            size = {_RUN: 2 + 4 * int.from_bytes(data[at : at + 2], "little"), _BITS: 8192, _ARRAY: 2 * count}[kind]
            self.slots.append(_container(kind, count, data[at : at + size]))
            at += size
        _, _, self.last = struct.unpack_from("<qii", data, at)
        return at + 16

    def write(self) -> bytes:
        if not self.places:
            return b"\0"
        tree: list[bytes] = []
        _write_node(sorted(self.places.items()), 0, tree)
        slots = [b"\0" if slot is None else b"\1" + _container_bytes(slot) for slot in self.slots]
        return b"".join(
            (
                b"\1",
                struct.pack("<q", len(self.places)),
                *tree,
                struct.pack("<i", 1) + _NOT_TRIMMED + struct.pack("<i", len(slots)),
                *slots,
                struct.pack("<qii", len(self.places), 0, self.last),
            )
        )


def _read_node(data: bytes, at: int, places: dict[bytes, int]) -> int:
    """Add the leaves below a node to `places`; returns the end of the node."""
    kind, count, prefix = struct.unpack_from("<bhb", data, at)
    at += 4 + max(prefix, 0)
    if kind == _LEAF:
        key, place = struct.unpack_from("<6sq", data, at)
        places[key] = place
        return at + 14
    if kind not in _BODY_BYTES:
        raise ValueError(f"a node of kind {kind}")
    at += _BODY_BYTES[kind]
    for _ in range(count):
        at = _read_node(data, at, places)
    return at


def _write_node(leaves: list[tuple[bytes, int]], depth: int, out: list[bytes]) -> None:
    """The tree over keys that agree before `depth`; each node has the smallest type for its number of children."""
    if len(leaves) == 1:
        out.append(struct.pack("<bhb6sq", _LEAF, 0, 0, *leaves[0]))
        return
    first, last = leaves[0][0], leaves[-1][0]
    fork = next(place for place in range(depth, _KEY_BYTES) if first[place] != last[place])
    children: dict[int, list[tuple[bytes, int]]] = {}
    for leaf in leaves:
        children.setdefault(leaf[0][fork], []).append(leaf)
    kind, body = _node({key: min(place for _, place in below) for key, below in children.items()})
    out.append(struct.pack("<bhb", kind, len(children), fork - depth) + first[depth:fork] + body)
    for below in children.values():
        _write_node(below, fork + 1, out)


def _node(ages: dict[int, int]) -> tuple[int, bytes]:
    """The kind and body of an inner node; every 32 or 64 bits of keys are written in reverse.

    `ages`: the insertion order of the children. A node for 48 numbers them: the first 16 by key, then by age.
    """
    keys = bytes(ages)
    if len(keys) <= 4:
        return _NODE_4, keys.ljust(4, b"\0")[::-1]
    if len(keys) <= 16:
        full = keys.ljust(16, b"\0")
        return _NODE_16, full[7::-1] + full[:7:-1]
    if len(keys) <= 48:
        index = bytearray(b"\xff" * 256)
        by_age = sorted(ages, key=ages.__getitem__)
        for place, key in enumerate([*sorted(by_age[:16]), *by_age[16:]]):
            index[key] = place
        return _NODE_48, b"".join(bytes(index[at : at + 8][::-1]) for at in range(0, 256, 8))
    return _NODE_256, sum(1 << key for key in keys).to_bytes(32, "little")


def _container(kind: int, count: int, body: bytes) -> BitMap:
    """A container as a bitmap of values below 65536."""
    if not 0 < count <= 1 << 16:
        raise ValueError(f"a container of {count} values")
    if kind == _RUN:
        return _bitmap(struct.pack("<IBHH", _WITH_RUNS, 1, 0, count - 1) + body)
    if (count <= _ARRAY_LIMIT) == (kind == _ARRAY):
        return _bitmap(struct.pack("<IIHHI", _PLAIN, 1, 0, count - 1, 16) + body)
    if kind == _ARRAY:
        return BitMap(struct.unpack(f"<{count}H", body))
    return BitMap(value for value in range(1 << 16) if body[value >> 3] >> (value & 7) & 1)


def _container_bytes(bitmap: BitMap) -> bytes:
    bitmap.run_optimize()
    data: bytes = bitmap.serialize()
    if int.from_bytes(data[:2], "little") == _WITH_RUNS:
        return struct.pack("<bi", _RUN, len(bitmap)) + data[9:]
    return struct.pack("<bi", _ARRAY if len(bitmap) <= _ARRAY_LIMIT else _BITS, len(bitmap)) + data[16:]


def _bitmap(data: bytes) -> BitMap:
    if not data:
        raise ValueError("there are no bytes")
    bitmap: BitMap = BitMap.deserialize(data)
    return bitmap
