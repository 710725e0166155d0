"""Rebuilds variants from shredded columns.

A node is a struct of `value`, the bytes that were not shredded, and `typed_value`, a column of scalars, a list of nodes
or a struct of nodes by key. The fields of an object are the union of both; other values are in one of them; a node in
neither is missing. The dictionary of a row is kept; missing keys are appended.

Source: format.md §8.9; Java `ShreddingUtils`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.columns import binary_array, nulls_or_none, numpy_values
from paimon_py.codec.variant.arrays import as_variants, of_parts
from paimon_py.codec.variant.encode import build_array, build_object, encode_decimal, encode_integer, encode_text
from paimon_py.codec.variant.form import METADATA, TYPED, VALUE
from paimon_py.codec.variant.layout import (
    BINARY,
    CLOCK,
    DATE,
    DOUBLE,
    EMPTY_METADATA,
    EXACT,
    FALSE,
    FLOAT,
    INSTANT,
    OBJECT,
    TRUE,
    UUID_,
    VERSION,
    basic_type,
    check_apart,
    children_at,
    damage,
    key_at,
    keys_of,
    size_at,
)

Nodes = list[bytes | None]
"""The bytes of a node in each row; None if it is missing."""

_NULL_NODE = b"\x00"


class RowKeys:
    """The dictionary of a row, extended by missing keys."""

    def __init__(self, metadata: bytes) -> None:
        self.names = list(keys_of(metadata))
        self._metadata = metadata
        self._count = len(self.names)
        self._ids = {name: at for at, name in enumerate(self.names)}

    def id_of(self, name: str) -> int:
        """The id of a key; assigns a new one if needed."""
        found = self._ids.get(name)
        if found is None:
            found = self._ids[name] = len(self.names)
            self.names.append(name)
        return found

    def metadata(self) -> bytes:
        """The bytes of the dictionary."""
        if len(self.names) == self._count:
            return self._metadata
        texts = [name.encode() for name in self.names]
        offsets = np.cumsum([0, *map(len, texts)])
        width = next(w for w in (1, 2, 3, 4) if max(int(offsets[-1]), len(texts)) < 1 << 8 * w)
        numbers = b"".join(int(offset).to_bytes(width, "little") for offset in offsets)
        return bytes([VERSION | (width - 1) << 6]) + len(texts).to_bytes(width, "little") + numbers + b"".join(texts)


def unshred(array: pa.Array) -> pa.Array:
    """The variants of shredded groups.

    Cost: some microseconds per row and key.
    Raises: CorruptionError for inconsistent parts.
    """
    if array.type.get_field_index(TYPED) < 0:
        return as_variants(array)
    valid = nulls_or_none(array)
    dictionaries = array.field(METADATA).to_pylist()
    known: dict[bytes, RowKeys] = {}
    rows: list[RowKeys] = []
    for at, metadata in enumerate(dictionaries):
        if valid is not None and not valid[at]:
            metadata = EMPTY_METADATA
        elif not metadata:
            raise damage("a row has no dictionary")
        if metadata not in known:
            known[metadata] = RowKeys(metadata)
        rows.append(known[metadata])
    nodes = nodes_of(array, rows)
    values = binary_array([_NULL_NODE if node is None else node for node in nodes])
    made = {id(keys): keys.metadata() for keys in known.values()}
    return of_parts(values, binary_array([made[id(keys)] for keys in rows]), valid)


def nodes_of(array: pa.Array, rows: Sequence[RowKeys]) -> Nodes:
    """The nodes of a column of structs `value` and `typed_value`. `rows`: the dictionaries of the rows."""
    values: Nodes = part_of(array, VALUE).to_pylist() if array.type.get_field_index(VALUE) >= 0 else [None] * len(array)
    typed = part_of(array, TYPED) if array.type.get_field_index(TYPED) >= 0 else None
    if typed is None:
        return values
    if pa.types.is_struct(typed.type):
        return _objects(typed, values, rows)
    found = _arrays(typed, rows) if pa.types.is_list(typed.type) else scalar_nodes(typed)
    for at, value in enumerate(values):
        if value is not None:
            if found[at] is not None:
                raise damage("a value is stored in both of its parts")
            found[at] = value
    return found


def part_of(array: pa.Array, name: str) -> pa.Array:
    """A field of structs, NULL where the struct is NULL."""
    return pc.struct_field(array, [array.type.get_field_index(name)])


def _objects(typed: pa.Array, values: Nodes, rows: Sequence[RowKeys]) -> Nodes:
    names = [field.name for field in typed.type]
    fields = [nodes_of(pc.struct_field(typed, [at]), rows) for at in range(len(names))]
    there = numpy_values(pc.is_valid(typed))
    found: Nodes = []
    for at, value in enumerate(values):
        if not there[at]:
            found.append(value)
            continue
        keys, ids, parts = rows[at], [], []
        texts = []
        for name, nodes in zip(names, fields, strict=True):
            node = nodes[at]
            if node is not None:
                texts.append(name)
                ids.append(keys.id_of(name))
                parts.append(node)
        if value is not None:
            _add_fields(value, keys, (texts, ids, parts))
        found.append(build_object(texts, ids, parts))
    return found


def _add_fields(value: bytes, keys: RowKeys, into: tuple[list[str], list[int], list[bytes]]) -> None:
    """Add the fields of an object that were not shredded."""
    texts, ids, parts = into
    if basic_type(value, 0) != OBJECT:
        raise damage("the unshredded part of an object is not an object")
    rest, known = children_at(value, 0), set(texts)
    check_apart(value, rest.places)
    for number, place in zip(rest.ids, rest.places, strict=True):
        name = key_at(keys.names, number)
        if name in known:
            raise damage(f"the key {name!r:.80} is stored in both parts of an object")
        texts.append(name)
        ids.append(number)
        parts.append(value[place : place + size_at(value, place)])


def _arrays(typed: pa.Array, rows: Sequence[RowKeys]) -> Nodes:
    offsets = typed.offsets.to_numpy()
    first, last = int(offsets[0]), int(offsets[-1])
    owners = np.repeat(np.arange(len(typed)), offsets[1:] - offsets[:-1])
    items = nodes_of(typed.values.slice(first, last - first), [rows[int(owner)] for owner in owners])
    parts = [_NULL_NODE if item is None else item for item in items]
    there = numpy_values(pc.is_valid(typed))
    return [
        build_array(parts[int(offsets[at]) - first : int(offsets[at + 1]) - first]) if there[at] else None
        for at in range(len(typed))
    ]


def scalar_nodes(typed: pa.Array) -> Nodes:
    """The nodes of a column of scalars.

    Raises: CorruptionError for a type that variants do not have.
    """
    kind = typed.type
    if pa.types.is_dictionary(kind):
        return scalar_nodes(typed.dictionary_decode())
    encode = _encoder(kind)
    if pa.types.is_timestamp(kind):
        typed = typed.cast(pa.timestamp("us", kind.tz)).view(pa.int64())
    elif pa.types.is_date32(kind):
        typed = typed.view(pa.int32())
    return [None if value is None else encode(value) for value in typed.to_pylist()]


def _encoder(kind: pa.DataType) -> Callable[[Any], bytes]:
    if pa.types.is_integer(kind):
        return encode_integer
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return lambda text: encode_text(text.encode())
    if pa.types.is_decimal(kind):
        scale = kind.scale
        return lambda number: encode_decimal(int(number.scaleb(scale, EXACT)), scale)
    for is_kind, encode in _ENCODERS:
        if is_kind(kind):
            return encode
    if pa.types.is_timestamp(kind):
        head = bytes([(INSTANT if kind.tz is not None else CLOCK) << 2])
        return lambda micros: head + struct.pack("<q", micros)
    raise damage(f"a shredded column of {kind}")


_ENCODERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any], bytes]], ...] = (
    (pa.types.is_boolean, lambda flag: bytes([(TRUE if flag else FALSE) << 2])),
    (pa.types.is_float64, lambda number: bytes([DOUBLE << 2]) + struct.pack("<d", number)),
    (pa.types.is_float32, lambda number: bytes([FLOAT << 2]) + struct.pack("<f", number)),
    (pa.types.is_binary, lambda data: bytes([BINARY << 2]) + len(data).to_bytes(4, "little") + data),
    (lambda kind: kind == pa.binary(16), lambda data: bytes([UUID_ << 2]) + data),
    (pa.types.is_date32, lambda day: bytes([DATE << 2]) + struct.pack("<i", day)),
)
