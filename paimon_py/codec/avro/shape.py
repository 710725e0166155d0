"""Avro schemas reduced to what determines the encoding, and a reader and writer of single values.

A shape omits record names, defaults and logical types; int, long and enum are one kind, because they have the same
encoding. Fields are resolved by name, so that files of other writers and versions can be read.

Source: Avro 1.11 specification, "Binary Encoding"; format.md §5.1.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from paimon_py.codec.avro.container import read_long, write_long
from paimon_py.errors import CorruptionError

Reader = Callable[[bytes, int], tuple[Any, int]]
"""Reads the value at a position; returns it and the position after it. IndexError or UnicodeDecodeError if broken."""

_DEPTH_MAX = 24
_NODES_MAX = 10_000
_LONGS = frozenset(("int", "long"))
_PLAIN = frozenset(("null", "boolean", "float", "double", "bytes", "string"))
_LEAST = {"null": 0, "float": 4, "double": 8}


class Shape(msgspec.Struct, frozen=True):
    """The encoding of a value.

    `kind`: null, boolean, long, float, double, bytes, string, fixed, union, record, array, map. `names` are a record's
    fields; `parts` its fields, a union's branches, or the one item of array and map; `size` the bytes of a fixed.
    """

    kind: str
    names: tuple[str, ...] = ()
    parts: tuple[Shape, ...] = ()
    size: int = 0

    @property
    def nullable(self) -> Shape | None:
        """The value shape of a union `["null", value]`; None for any other shape."""
        if self.kind == "union" and len(self.parts) == 2 and self.parts[0].kind == "null":
            return self.parts[1]
        return None


def shape_of(schema: bytes, path: str, *, depth: int = _DEPTH_MAX, nodes: int = _NODES_MAX) -> Shape:
    """The shape of a JSON schema: a record or, as some writers declare it, a union of null and a record.

    Args:
        depth: the maximum nesting depth of types.
        nodes: the maximum number of types, counting a named type at every reference.
    Raises:
        CorruptionError: not a schema, a recursive schema, or one with arrays whose items take no bytes.
    """
    try:
        return _shape_of(schema, depth, nodes)
    except (_SchemaFault, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CorruptionError(f"{path}: broken Avro schema: {error}", path=path, offset=4) from error


def field_names(shape: Shape) -> set[str]:
    """The names of all fields, including those of nested records."""
    return set(shape.names).union(*map(field_names, shape.parts))


def least_bytes(shape: Shape) -> int:
    """The minimum size of a value of `shape` in bytes."""
    kind = shape.kind
    if kind == "record":
        return sum(map(least_bytes, shape.parts))
    if kind == "union":
        return 1 + min(map(least_bytes, shape.parts))
    return shape.size if kind == "fixed" else _LEAST.get(kind, 1)


def tail_nulls(longer: Shape, shorter: Shape) -> int | None:
    """The number of null branches to append to a value of `shorter` to get a value of `longer`; None if that is
    impossible.

    New fields are only ever appended, and `_FILE` is the last field of an entry.
    """
    if longer == shorter:
        return 0
    count = len(shorter.parts)
    if longer.kind != "record" or shorter.kind != "record" or not count or longer.names[:count] != shorter.names:
        return None
    if longer.parts[: count - 1] != shorter.parts[:-1]:
        return None
    inner = tail_nulls(longer.parts[count - 1], shorter.parts[-1])
    added = longer.parts[count:]
    if inner is None or any(part.nullable is None for part in added):
        return None
    return inner + len(added)


@functools.lru_cache(maxsize=256)
def reader(shape: Shape) -> Reader:
    """The function that reads values of `shape`: records as dicts, arrays as lists."""
    kind = shape.kind
    if kind == "long":
        return read_long
    if kind == "bytes":
        return _read_bytes
    if kind == "string":
        return _read_string
    if kind == "null":
        return lambda _, position: (None, position)
    if kind == "boolean":
        return lambda data, position: (data[position] == 1, position + 1)
    if kind in ("float", "double", "fixed"):
        return _fixed_reader(shape)
    readers = [reader(part) for part in shape.parts]
    if kind == "union":
        return _union_reader(readers)
    if kind == "record":
        return _record_reader(tuple(zip(shape.names, readers, strict=True)))
    return _items_reader(readers[0], least_bytes(shape.parts[0]), keyed=kind == "map")


def read_records(data: bytes, count: int, shape: Shape) -> list[dict[str, Any]]:
    """Decode `count` records that fill `data` exactly. IndexError or UnicodeDecodeError if they do not."""
    read = reader(shape)
    position = 0
    records = []
    for _ in range(count):
        record, position = read(data, position)
        if record is None:
            raise IndexError(position)
        records.append(record)
    if position != len(data):
        raise IndexError(position)
    return records


def encode(shape: Shape, value: Any) -> bytes:
    """The bytes of a value; record fields are looked up in a mapping by name, and missing fields are null."""
    parts: list[bytes] = []
    _write(shape, value, parts.append)
    return b"".join(parts)


class _SchemaFault(Exception):
    """The schema is invalid."""


@functools.lru_cache(maxsize=64)
def _shape_of(schema: bytes, depth: int, nodes: int) -> Shape:
    shape = _parse(msgspec.json.decode(schema), _Scope({}, "", depth, [nodes]))
    if (shape.nullable or shape).kind != "record":
        raise _SchemaFault("the outermost type is not a record")
    return shape


class _Scope(msgspec.Struct, frozen=True):
    """The context of a type in its schema: the named types seen so far with the number of types in each, the enclosing
    namespace, the remaining depth, and (in a shared list) how many more types are allowed."""

    known: dict[str, tuple[Shape, int]]
    space: str
    depth: int
    left: list[int]

    def take(self, nodes: int) -> None:
        """Count additional types against the limit."""
        self.left[0] -= nodes
        if self.left[0] < 0:
            raise _SchemaFault("too many types")

    def full_name(self, name: str) -> str:
        """The name qualified with its namespace."""
        return name if "." in name or not self.space else f"{self.space}.{name}"


def _parse(value: Any, scope: _Scope) -> Shape:
    if scope.depth < 0:
        raise _SchemaFault("nested too deeply")
    scope.take(1)
    if isinstance(value, str):
        if value in _LONGS:
            return Shape("long")
        if value in _PLAIN:
            return Shape(value)
        known = scope.known.get(scope.full_name(value))
        if known is None:
            raise _SchemaFault(f"unknown type {value!r}")
        scope.take(known[1])
        return known[0]
    if isinstance(value, list):
        if not value:
            raise _SchemaFault("a union without branches")
        return Shape("union", parts=tuple(_inner(branch, scope) for branch in value))
    if not isinstance(value, Mapping):
        raise _SchemaFault(f"{value!r} is not a type")
    kind = value.get("type")
    if kind == "array":
        items = _inner(value.get("items"), scope)
        if not least_bytes(items):
            raise _SchemaFault("an array of items that take no bytes")
        return Shape("array", parts=(items,))
    if kind == "map":
        return Shape("map", parts=(_inner(value.get("values"), scope),))
    if kind in ("record", "enum", "fixed"):
        return _parse_named(value, scope)
    return _inner(kind, scope)


def _inner(value: Any, scope: _Scope) -> Shape:
    return _parse(value, msgspec.structs.replace(scope, depth=scope.depth - 1))


def _parse_named(value: Mapping[str, Any], scope: _Scope) -> Shape:
    name, space = value.get("name"), value.get("namespace", scope.space)
    if not isinstance(name, str) or not isinstance(space, str):
        raise _SchemaFault("a named type without a name")
    full_name = msgspec.structs.replace(scope, space=space).full_name(name)
    left = scope.left[0]
    if value["type"] == "record":
        shape = _parse_record(value, msgspec.structs.replace(scope, space=full_name.rpartition(".")[0]))
    elif value["type"] == "enum":
        shape = Shape("long")
    else:
        size = value.get("size")
        if not isinstance(size, int) or size < 0:
            raise _SchemaFault("a fixed without size")
        shape = Shape("fixed", size=size)
    scope.known[full_name] = shape, left - scope.left[0]
    return shape


def _parse_record(value: Mapping[str, Any], scope: _Scope) -> Shape:
    fields = value.get("fields")
    if not isinstance(fields, list) or not all(isinstance(field, dict) for field in fields):
        raise _SchemaFault("a record without fields")
    names = tuple(field.get("name") for field in fields)
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise _SchemaFault("record fields without distinct names")
    return Shape("record", names, tuple(_inner(field.get("type"), scope) for field in fields))


def _read_bytes(data: bytes, position: int) -> tuple[bytes, int]:
    length, position = read_long(data, position)
    end = position + length
    if length < 0 or end > len(data):
        raise IndexError(position)
    return data[position:end], end


def _read_string(data: bytes, position: int) -> tuple[str, int]:
    value, position = _read_bytes(data, position)
    return value.decode(), position


def _fixed_reader(shape: Shape) -> Reader:
    size = {"float": 4, "double": 8}.get(shape.kind, shape.size)

    def read(data: bytes, position: int) -> tuple[Any, int]:
        end = position + size
        if end > len(data):
            raise IndexError(position)
        if shape.kind == "fixed":
            return data[position:end], end
        return struct.unpack_from("<f" if size == 4 else "<d", data, position)[0], end

    return read


def _union_reader(readers: Sequence[Reader]) -> Reader:
    def read(data: bytes, position: int) -> tuple[Any, int]:
        branch, position = read_long(data, position)
        if branch < 0:
            raise IndexError(position)
        return readers[branch](data, position)

    return read


def _record_reader(fields: tuple[tuple[str, Reader], ...]) -> Reader:
    def read(data: bytes, position: int) -> tuple[dict[str, Any], int]:
        record = {}
        for name, field in fields:
            record[name], position = field(data, position)
        return record, position

    return read


def _items_reader(item: Reader, least: int, *, keyed: bool) -> Reader:
    def read(data: bytes, position: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        while True:
            count, position = read_long(data, position)
            if count == 0:
                return items, position
            if count < 0:
                count = -count
                _, position = read_long(data, position)
            if count * (least + keyed) > len(data) - position:
                raise IndexError(position)
            for _ in range(count):
                if keyed:
                    _, position = _read_bytes(data, position)
                value, position = item(data, position)
                items.append(value)

    return read


def _write(shape: Shape, value: Any, emit: Callable[[bytes], None]) -> None:
    kind = shape.kind
    if kind == "long":
        if isinstance(value, bool):
            raise TypeError(f"{value} is not a number")
        emit(write_long(value))
    elif kind == "boolean":
        emit(b"\x01" if value else b"\x00")
    elif kind in ("float", "double"):
        emit(struct.pack("<f" if kind == "float" else "<d", value))
    elif kind == "bytes" or kind == "string":
        raw = value if kind == "bytes" else value.encode()
        emit(write_long(len(raw)))
        emit(raw)
    elif kind == "union":
        branch = shape.nullable
        if branch is None:
            raise TypeError("only unions of null and one type are written")
        emit(b"\x00" if value is None else b"\x02")
        if value is not None:
            _write(branch, value, emit)
    elif kind == "record":
        for name, part in zip(shape.names, shape.parts, strict=True):
            _write(part, value.get(name), emit)
    elif kind == "array":
        if value:
            emit(write_long(len(value)))
            for item in value:
                _write(shape.parts[0], item, emit)
        emit(b"\x00")
    else:
        raise TypeError(f"values of kind {kind} are not written")
