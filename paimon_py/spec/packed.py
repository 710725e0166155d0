"""Long lists of values in little memory: compressed MessagePack that is decoded part by part.

A million data files are 1.3 GB as objects and about a tenth of that packed. Short lists stay tuples.
"""

from __future__ import annotations

import bisect
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar, overload

import msgspec
import zstandard

Value = TypeVar("Value")

PART_WEIGHT = 8_192
"""The least weight of a part; lists that weigh less stay tuples."""

_ARRAY = struct.Struct(">BI")
_ARRAY_32 = 0xDD
_LEVEL = 1


class PackedType(msgspec.Struct, Generic[Value], frozen=True):
    """The packing of the values of a type.

    Attributes:
        type: the type that their bytes are decoded as.
        weight: returns how much a value weighs.
        labels: returns what to know about a value without decoding its part.
    """

    type: type[Value]
    weight: Callable[[Value], int]
    labels: Callable[[Value], frozenset[str]]


class _Part(NamedTuple):
    """Some values: how many, what is known about them, and their compressed encodings, one after the other."""

    length: int
    labels: frozenset[str]
    data: bytes


class PackedList(Sequence[Value]):
    """A frozen list whose values exist as objects only while they are used: one part of them at a time.

    Equal to the tuple of the same values.

    Cost: about 5 µs to decode a data file, in each pass over the list.
    """

    def __init__(self, kind: PackedType[Value], parts: Sequence[_Part]) -> None:
        self._kind = kind
        self._parts = tuple(parts)
        self._decode = msgspec.msgpack.Decoder(tuple[kind.type, ...]).decode  # type: ignore[name-defined]
        self._stops: list[int] = []
        for part in parts:
            self._stops.append(len(self) + part.length)
        self._last: tuple[int, tuple[Value, ...]] = -1, ()

    def __len__(self) -> int:
        return self._stops[-1] if self._stops else 0

    def __iter__(self) -> Iterator[Value]:
        for values in self.parts():
            yield from values

    def parts(self) -> Iterator[tuple[Value, ...]]:
        """All values, as many at a time as are packed together."""
        return map(self._open, self._parts)

    def with_label(self, label: str) -> Iterator[Value]:
        """The values of all parts in which a value has the label, in order."""
        for part in self._parts:
            if label in part.labels:
                yield from self._open(part)

    @overload
    def __getitem__(self, at: int) -> Value: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Value, ...]: ...
    def __getitem__(self, at: int | slice) -> Value | tuple[Value, ...]:
        if isinstance(at, slice):
            return tuple(map(self._at, range(*at.indices(len(self)))))
        if not -len(self) <= at < len(self):
            raise IndexError(at)
        return self._at(at % len(self))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (tuple, PackedList)):
            return NotImplemented
        return len(self) == len(other) and all(one == two for one, two in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"<{len(self)} values>"

    def encode(self) -> msgspec.Raw:
        """The list as MessagePack."""
        pieces = (zstandard.ZstdDecompressor().decompress(part.data) for part in self._parts)
        return msgspec.Raw(b"".join((_ARRAY.pack(_ARRAY_32, len(self)), *pieces)))

    def _at(self, at: int) -> Value:
        number = bisect.bisect_right(self._stops, at)
        last, values = self._last
        if last != number:
            values = self._open(self._parts[number])
            self._last = number, values
        return values[at - self._stops[number] + self._parts[number].length]

    def _open(self, part: _Part) -> tuple[Value, ...]:
        whole = _ARRAY.pack(_ARRAY_32, part.length) + zstandard.ZstdDecompressor().decompress(part.data)
        found: tuple[Value, ...] = self._decode(whole)
        return found


class Joined(Sequence[Value]):
    """Several lists as one, without a copy."""

    def __init__(self, lists: Sequence[Sequence[Value]]) -> None:
        self._lists = tuple(lists)

    def __len__(self) -> int:
        return sum(map(len, self._lists))

    def __iter__(self) -> Iterator[Value]:
        for values in self._lists:
            yield from values

    @overload
    def __getitem__(self, at: int) -> Value: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Value, ...]: ...
    def __getitem__(self, at: int | slice) -> Value | tuple[Value, ...]:
        return tuple(self)[at]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Joined):
            return self._lists == other._lists
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._lists)


def pack_list(values: Iterable[Value], kind: PackedType[Value]) -> Sequence[Value]:
    """The values as a list: a tuple, or packed if they weigh more than one part.

    Cost: 2 µs for a data file; the memory of one part more than the result.
    """
    parts: list[_Part] = []
    loose: list[Value] = []
    weight = 0
    for value in values:
        if weight >= PART_WEIGHT:
            parts.append(_part(loose, kind))
            loose, weight = [], 0
        loose.append(value)
        weight += kind.weight(value)
    if not parts:
        return tuple(loose)
    return PackedList(kind, [*parts, _part(loose, kind)])


def join_lists(*lists: Sequence[Value]) -> Sequence[Value]:
    """Several lists as one: a tuple if all are tuples."""
    filled = [values for values in lists if len(values)]
    if len(filled) == 1:
        return filled[0]
    if all(isinstance(values, tuple) for values in filled):
        return tuple(value for values in filled for value in values)
    return Joined(filled)


def with_label(values: Sequence[Value], label: str) -> Iterable[Value]:
    """The values that have a label, and maybe others."""
    return values.with_label(label) if isinstance(values, PackedList) else values


def encode_packed(value: Any) -> Any:
    """The hook with which MessagePack encodes structs that hold packed lists, or integers of a subclass."""
    if isinstance(value, PackedList):
        return value.encode()
    if isinstance(value, int):
        return int(value)
    raise NotImplementedError(f"{type(value).__name__} cannot be encoded")


def _part(values: Sequence[Value], kind: PackedType[Value]) -> _Part:
    encode = msgspec.msgpack.Encoder().encode
    data = zstandard.ZstdCompressor(level=_LEVEL).compress(b"".join(map(encode, values)))
    labels = frozenset[str]().union(*map(kind.labels, values))
    return _Part(len(values), labels, bytes(memoryview(data)))  # a copy: zstandard leaves a hole behind its result


