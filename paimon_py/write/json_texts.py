"""JSON of nested columns: MAPs are objects, as Spark and Java write them; CSV files hold them as text.

Arrow's JSON reader knows no maps, and no dates and times in strings. Objects are rewritten to arrays of entries,
before Arrow reads them, and its arrays become maps afterwards; numbers keep all their digits.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Container, Mapping
from typing import BinaryIO, cast

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

_CHUNK_BYTES = 1 << 20
_NULL = b"null"
_UNKNOWN = pa.null()
_TEXT_KEYS: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_string, pa.types.is_binary, pa.types.is_date, pa.types.is_time, pa.types.is_timestamp,
)  # fmt: skip


def holds_map(kind: pa.DataType) -> bool:
    """Whether a type is or contains a map."""
    return pa.types.is_map(kind) or any(holds_map(kind.field(at).type) for at in range(kind.num_fields))


def parsed_type(kind: pa.DataType, given: pa.DataType = _UNKNOWN) -> pa.DataType:
    """The type as which Arrow's JSON reader reads a type; `given`: the type of the values, which may be numbers."""
    if pa.types.is_map(kind):
        entry = _element(given)
        key, item = parsed_type(kind.key_type, _part(entry, "key")), parsed_type(kind.item_type, _part(entry, "value"))
        return pa.list_(pa.struct([pa.field("key", key), pa.field("value", item)]))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, parsed_type(each.type, _part(given, each.name))) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(parsed_type(kind.value_type, _element(given)))
    is_text = (pa.types.is_date(kind) or pa.types.is_time(kind)) and not pa.types.is_integer(given)
    return pa.string() if is_text else kind


def _element(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_list(kind) else _UNKNOWN


def _part(kind: pa.DataType, name: str) -> pa.DataType:
    at = kind.get_field_index(name) if pa.types.is_struct(kind) else -1
    return _UNKNOWN if at < 0 else kind.field(at).type


def from_parsed(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """An array of `parsed_type(kind)` as the type itself.

    Raises: ArrowInvalid for an invalid date or time, and for a key of a MAP that is NULL or appears twice.
    """
    if array.type == kind:
        return array
    if pa.types.is_struct(kind):
        children = [from_parsed(array.field(at), each.type) for at, each in enumerate(kind)]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=_mask(array))
    if pa.types.is_time(kind) and pa.types.is_string(array.type):  # Arrow casts texts to timestamps only
        return pc.binary_join_element_wise("1970-01-01 ", array, "").cast(pa.timestamp(kind.unit)).cast(kind)
    if not (pa.types.is_map(kind) or pa.types.is_list(kind)):
        return array.cast(kind)
    flat, offsets = array.flatten(), _offsets(array)
    if pa.types.is_list(kind):
        items = from_parsed(flat, kind.value_type)
        return pa.ListArray.from_arrays(offsets, items, type=kind, mask=_mask(array))
    keys, items = from_parsed(flat.field(0), kind.key_type), from_parsed(flat.field(1), kind.item_type)
    if keys.null_count:
        raise pa.ArrowInvalid("a key of a MAP is NULL")
    _require_distinct(keys, offsets)
    return pa.MapArray.from_arrays(offsets, keys, items, type=kind, mask=_mask(array))


def from_json_texts(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """JSON texts as the values of a nested type. Cost: loops over the texts.

    Raises: ArrowInvalid for a text that is not JSON, or not of the type.
    """
    lines = [b'{"v":%s}\n' % (_NULL if text is None else _value(text.encode(), kind)) for text in texts.to_pylist()]
    data = b"".join(lines)
    if not data:
        return pa.nulls(0, kind)
    parse = pa.json.ParseOptions(
        explicit_schema=pa.schema([("v", parsed_type(kind))]), unexpected_field_behavior="error"
    )
    read = pa.json.ReadOptions(use_threads=False, block_size=len(data) + 1)
    found = pa.json.read_json(io.BytesIO(data), read_options=read, parse_options=parse)
    return from_parsed(found.column(0).combine_chunks(), kind)


def with_entries(source: BinaryIO, maps: Mapping[str, pa.DataType], texts: Container[str]) -> BinaryIO:
    """Lines of JSON objects: maps of the columns `maps` become arrays of entries, values of `texts` JSON as strings."""
    return cast(BinaryIO, io.BufferedReader(_Rewritten(source, maps, texts)))


class _Rewritten(io.RawIOBase):
    """The rewritten lines of a file."""

    def __init__(self, source: BinaryIO, maps: Mapping[str, pa.DataType], texts: Container[str]) -> None:
        self._source = source
        self._maps = maps
        self._texts = texts
        self._rest = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._ready:
            chunk = self._source.read(_CHUNK_BYTES)
            *lines, rest = (self._rest + chunk).split(b"\n")
            if not chunk:
                lines, rest = [rest] if rest else [], b""
            self._rest = rest
            self._ready = memoryview(b"".join(self._line(line) + b"\n" for line in lines))
            if not chunk and not lines:
                return 0
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _line(self, line: bytes) -> bytes:
        try:
            found = _members(line)
            return _object({name: self._column(name, bytes(raw)) for name, raw in found.items()})
        except msgspec.MsgspecError:
            return line  # Arrow's reader names the problem

    def _column(self, name: str, raw: bytes) -> bytes:
        if name in self._texts and raw != _NULL:
            return msgspec.json.encode(raw.decode())
        return _entries(raw, self._maps[name]) if name in self._maps else raw


def _value(text: bytes, kind: pa.DataType) -> bytes:
    try:
        return _entries(bytes(msgspec.json.decode(text, type=msgspec.Raw)).replace(b"\n", b" "), kind)
    except msgspec.MsgspecError as error:
        raise pa.ArrowInvalid(f"not JSON: {error}") from error


def _entries(raw: bytes, kind: pa.DataType) -> bytes:
    """The JSON of a value with its maps as arrays of entries; some may be such arrays already."""
    if raw == _NULL or not holds_map(kind):
        return raw
    if pa.types.is_list(kind):
        items = msgspec.json.decode(raw, type=list[msgspec.Raw])
        return b"[%s]" % b",".join(_entries(bytes(item), kind.value_type) for item in items)
    if raw.startswith(b"["):
        return _entries(raw, pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))
    found = _members(raw)
    if pa.types.is_struct(kind):
        types = {each.name: each.type for each in kind}
        return _object({
            name: _entries(bytes(item), types[name]) if name in types else bytes(item) for name, item in found.items()
        })
    is_text = any(is_kind(kind.key_type) for is_kind in _TEXT_KEYS)
    keys = (msgspec.json.encode(key) if is_text else key.encode() for key in found)
    values = (_entries(bytes(item), kind.item_type) for item in found.values())
    return b"[%s]" % b",".join(b'{"key":%s,"value":%s}' % pair for pair in zip(keys, values, strict=True))


def _members(raw: bytes) -> dict[str, msgspec.Raw]:
    """The members of a JSON object, unparsed.

    Raises: MsgspecError; ArrowInvalid for an object with one name twice, as Arrow's reader says of other columns.
    """
    found = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    if len(_object({name: bytes(value) for name, value in found.items()})) != len(raw):  # or there are blanks
        json.loads(raw, object_pairs_hook=_require_once)
    return found


def _require_once(pairs: list[tuple[str, object]]) -> None:
    names = [name for name, _ in pairs]
    if len({*names}) < len(names):
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise pa.ArrowInvalid(f"the key {twice!r} appears twice in an object")


def _require_distinct(keys: pa.Array, offsets: pa.Array) -> None:
    """Raises: ArrowInvalid for a MAP with one key twice, such as 1 and 1.0 of DOUBLE"""
    counts = np.diff(offsets.to_numpy())
    if counts.max(initial=0) < 2 or pa.types.is_nested(keys.type):
        return
    codes = pc.dictionary_encode(keys).indices.to_numpy().astype(np.int64)
    rows = np.repeat(np.arange(len(counts)), counts)
    if len(np.unique(rows * len(keys) + codes)) < len(keys):
        raise pa.ArrowInvalid("a MAP contains a key twice")


def _object(values: Mapping[str, bytes]) -> bytes:
    return b"{%s}" % b",".join(b"%s:%s" % (msgspec.json.encode(name), value) for name, value in values.items())


def _offsets(array: pa.Array) -> pa.Array:
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())


def _mask(array: pa.Array) -> pa.Array | None:
    return pc.is_null(array) if array.null_count else None
