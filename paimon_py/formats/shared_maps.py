"""Maps whose values are stored in columns that several keys share: each file has a dictionary of its keys.

A value of such a column is a ROW: the numbers of the keys that are stored in the shared columns, these columns, and a
map by number of the remaining values.

Source: format.md §28.3; Java `MapSharedShredding`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import zstandard

from paimon_py.codec.columns import Ints, from_numpy, nulls_or_none, numpy_values, validity_bitmap
from paimon_py.errors import UnsupportedError
from paimon_py.formats.reshape import Leaf, reshape
from paimon_py.formats.stored import Stamps, check_stored
from paimon_py.spec.types import DataType, MapType

_LAYOUT = b"paimon.map.storage-layout"
_PREFIX = b"paimon.map.shared-shredding."
_MAPPING, _OVERFLOW, _COLUMN = "__field_mapping", "__overflow", "__col_"
_DICTIONARY_MAX = 1 << 28


class SharedKeys(msgspec.Struct, frozen=True):
    """The keys of one column of one file: `names[i]` has the number `numbers[i]`, in ascending order of numbers."""

    numbers: Ints
    names: pa.Array


def shared_keys(stored: pa.Field, kind: DataType, stamps: Stamps) -> SharedKeys | None:
    """The dictionary of a column of a file that holds a map in this way; None for every other column.

    Raises:
        UnsupportedError: another version, or another compression.
        ValueError: what is stored is not such a map.
    """
    said: Mapping[bytes, bytes] = stored.metadata or {}
    if not isinstance(kind, MapType) or said.get(_LAYOUT) != b"shared-shredding":
        return None
    version, compression = said.get(_PREFIX + b"version"), said.get(_PREFIX + b"field-dict-compression", b"none")
    if version != b"1" or compression not in (b"zstd", b"none"):
        raise UnsupportedError(
            f"column {stored.name} is a map of shared columns of version {version!r}, compressed by {compression!r}",
            feature="map.storage-layout=shared-shredding of another version",
        )
    names = {field.name: field.type for field in stored.type} if pa.types.is_struct(stored.type) else {}
    columns = [name for name in names if name.startswith(_COLUMN)]
    if columns != [f"{_COLUMN}{number}" for number in range(len(columns))] or not {_MAPPING, _OVERFLOW} <= set(names):
        raise ValueError(f"a map of shared columns stored as {stored.type}")
    for name in columns:
        check_stored(names[name], kind.value, stamps)
    if not pa.types.is_map(names[_OVERFLOW]):
        raise ValueError(f"values without a column stored as {names[_OVERFLOW]}")
    check_stored(names[_OVERFLOW].item_type, kind.value, stamps)
    return _dictionary(said, compression)


def as_map(array: pa.Array, keys: SharedKeys, kind: MapType, target: pa.MapType, leaf: Leaf) -> pa.Array:
    """The maps of a column; NULL where the ROW is.

    Cost: some copies of the values.
    Raises: ValueError for a number that is not in the dictionary, or that is there twice in a row.
    """
    places, numbers, values = _in_columns(array)
    beside = pc.struct_field(array, [_OVERFLOW])
    owners, taken = _entries(beside)
    places.append(owners)
    numbers.append(numpy_values(beside.keys.take(taken)).astype(np.int64))
    values.append(beside.items.take(taken))
    row = np.concatenate([*places, np.empty(0, np.int64)])
    number = np.concatenate([*numbers, np.empty(0, np.int64)])
    order = np.lexsort((number, row))
    row, number = row[order], number[order]
    if bool(((row[1:] == row[:-1]) & (number[1:] == number[:-1])).any()):
        raise ValueError("a map holds a key twice")
    slots = np.searchsorted(keys.numbers, number)
    if not bool(np.isin(number, keys.numbers).all()):
        raise ValueError("a map holds a key that its file does not name")
    reshaped = [reshape(each, kind.value, target.item_type, leaf) for each in values]
    together = pa.concat_arrays(reshaped) if reshaped else pa.nulls(0, target.item_type)
    items = together.take(from_numpy(order, pa.int64()))
    names = keys.names.take(from_numpy(slots, pa.int64())).cast(target.key_type)
    offsets = np.zeros(len(array) + 1, np.int32)
    np.cumsum(np.bincount(row, minlength=len(array)), out=offsets[1:])
    inner = pa.StructArray.from_arrays([names, items], fields=[target.key_field, target.item_field])
    bitmap, nulls = validity_bitmap(nulls_or_none(array))
    buffers = [bitmap, pa.py_buffer(offsets)]
    return pa.Array.from_buffers(target, len(array), buffers, null_count=nulls, children=[inner])


def _in_columns(array: pa.Array) -> tuple[list[Ints], list[Ints], list[pa.Array]]:
    """The entries in the shared columns, column by column: their rows, the numbers of their keys, and their values."""
    mapping = pc.struct_field(array, [_MAPPING])
    count = sum(field.name.startswith(_COLUMN) for field in array.type)
    sizes = numpy_values(pc.fill_null(pc.list_value_length(mapping), 0))
    if len(sizes) and int(sizes.max()) > count:
        raise ValueError(f"a map names {int(sizes.max())} columns, and there are {count}")
    owners = np.repeat(np.arange(len(mapping), dtype=np.int64), sizes)
    flat = numpy_values(pc.fill_null(mapping.flatten(), -1)).astype(np.int64)
    begins = np.concatenate([[0], np.cumsum(sizes)])
    column = np.arange(len(flat)) - begins[owners]
    places: list[Ints] = []
    numbers: list[Ints] = []
    values: list[pa.Array] = []
    for each in range(count):
        chosen = (column == each) & (flat >= 0)
        places.append(owners[chosen])
        numbers.append(flat[chosen])
        values.append(pc.struct_field(array, [f"{_COLUMN}{each}"]).take(from_numpy(owners[chosen], pa.int64())))
    return places, numbers, values


def _entries(maps: pa.MapArray) -> tuple[Ints, pa.Array]:
    """The row of each entry of maps, and its place among their keys and items."""
    offsets = maps.offsets.to_numpy().astype(np.int64)
    sizes = np.where(numpy_values(pc.is_valid(maps)), offsets[1:] - offsets[:-1], 0)
    owners = np.repeat(np.arange(len(maps), dtype=np.int64), sizes)
    inside = np.arange(len(owners), dtype=np.int64) - (np.cumsum(sizes) - sizes)[owners]
    return owners, from_numpy(offsets[:-1][owners] + inside, pa.int64())


def _dictionary(said: Mapping[bytes, bytes], compression: bytes) -> SharedKeys:
    data = said.get(_PREFIX + b"field-dict", b"").decode("utf-8").encode("latin-1")
    if compression == b"zstd":
        size = int(said.get(_PREFIX + b"field-dict-original-size", b"0"))
        if not 0 <= size <= _DICTIONARY_MAX:
            raise ValueError(f"a dictionary of {size} bytes")
        data = zstandard.ZstdDecompressor().decompress(data, max_output_size=size)
    numbers = msgspec.json.decode(data, type=dict[str, int])
    ordered = sorted(numbers.items(), key=lambda item: item[1])
    return SharedKeys(
        np.array([number for _, number in ordered], np.int64), pa.array([name for name, _ in ordered], pa.string())
    )
