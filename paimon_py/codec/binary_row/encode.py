"""Arrow columns → serialized BinaryRows, a column at a time.

Source: format.md §6; Java `BinaryRowWriter`, `BinaryArrayWriter`, `BinaryMap`, `RowHelper`,
`SerializationUtils.serializeBinaryRow`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.binary_row.few_rows import are_few, few_rows
from paimon_py.codec.binary_row.slots import Slots, atomic_slots, element_width, has_no_bounds, spaces
from paimon_py.codec.columns import (
    SPARE_BYTES,
    Bytes,
    Ints,
    Mask,
    Slices,
    Words,
    binary_array,
    child_range,
    combine,
    nulls_or_none,
    pad,
    ranges,
    word_view,
)
from paimon_py.errors import UnsupportedError
from paimon_py.spec.type_text import sql_type
from paimon_py.spec.types import ArrayType, Atomic, DataType, MapType, MultisetType, Root, RowType

ARITY_BYTES = 4
_COUNT_TYPE = Atomic(Root.INT, nullable=False)
_TAIL_MASKS = np.array([0xFFFF_FFFF_FFFF_FFFF] + [(1 << (8 * n)) - 1 for n in range(1, 8)], np.uint64)


def header_bytes(arity: int) -> int:
    """The size of row kind and null bits before the slots of a row."""
    return (arity + 63 + 8) // 64 * 8


def encode(
    columns: Sequence[pa.Array | pa.ChunkedArray], types: Sequence[DataType], *, count: int = 1
) -> pa.BinaryArray:
    """One serialized row (arity prefix, then the row) per input row.

    Shapes: in — columns of equal length n, Arrow types as `to_arrow_type`; out — n binary values. Without columns
        there are `count` empty rows.
    Cost: 20–400 ns a row and, of more than a few rows, 10 µs a column; about twice the output in memory.
    Raises:
        UnsupportedError: a type that BinaryRow does not support here (VARIANT, BLOB, VECTOR, …).
    Source: format.md §6.4; Java `SerializationUtils.serializeBinaryRow`.
    """
    arrays = [combine(column) for column in columns]
    count = len(arrays[0]) if arrays else count
    if are_few(arrays, types, count):
        return binary_array(_few(arrays, types, count))
    return encode_columns(arrays, types, count)


def encode_few(arrays: Sequence[pa.Array], types: Sequence[DataType]) -> list[bytes]:
    """See `encode`: the rows of at least one column as Python values, for the bounds of a file.

    Raises: as `encode`.
    """
    count = len(arrays[0])
    if are_few(arrays, types, count):
        return _few(arrays, types, count)
    rows: list[bytes] = encode_columns(arrays, types, count).to_pylist()
    return rows


def _few(arrays: Sequence[pa.Array], types: Sequence[DataType], count: int) -> list[bytes]:
    prefix = len(arrays).to_bytes(ARITY_BYTES, "big")
    return [prefix + row for row in few_rows(arrays, types, count, header_bytes(len(arrays)))]


def encode_columns(arrays: Sequence[pa.Array], types: Sequence[DataType], count: int) -> pa.BinaryArray:
    """See `encode`: a column at a time."""
    slots = [column_slots(array, kind) for array, kind in zip(arrays, types, strict=True)]
    rows = build_rows(slots, count, prefix=ARITY_BYTES)
    arity = np.frombuffer(len(slots).to_bytes(ARITY_BYTES, "big"), np.uint32)[0]
    rows.data[: len(rows.data) & ~3].view(np.uint32)[rows.starts >> 2] = arity
    total = int(rows.lengths.sum())
    if total > 0x7FFF_FFFF:
        raise UnsupportedError(f"{total} bytes of serialized rows in one array", feature="rows beyond 2 GB")
    offsets = np.append(rows.starts, total).astype(np.int32)
    return pa.Array.from_buffers(
        pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(rows.data[:total])], null_count=0
    )


def column_slots(array: pa.Array, kind: DataType) -> Slots:
    """The slots and variable parts of one column of any type."""
    if has_no_bounds(kind) and array.null_count == len(array):
        return Slots(np.zeros(len(array), np.uint64), np.zeros(len(array), np.bool_))
    if isinstance(kind, Atomic):
        return atomic_slots(array, kind)
    bodies = _nested_bodies(array, kind)
    valid = nulls_or_none(array)
    if valid is not None:
        bodies = msgspec.structs.replace(bodies, lengths=np.where(valid, bodies.lengths, 0))
    return Slots(bodies.lengths.astype(np.uint64), valid, items=bodies)


def header_words(columns: Sequence[Slots]) -> list[Words | None]:
    """The words before the slots; None for a word that is 0 in every row."""
    out: list[Words | None] = [None] * (header_bytes(len(columns)) // 8)
    for index, column in enumerate(columns):
        if column.valid is None:
            continue
        word, bit = divmod(index + 8, 64)
        bits = (~column.valid).astype(np.uint64) << np.uint64(bit)
        known = out[word]
        out[word] = bits if known is None else known | bits
    return out


def place(columns: Sequence[Slots]) -> tuple[list[tuple[Words, int | Ints]], int | Ints]:
    """Assign an offset to every variable part: returns complete slots with these offsets, and the length of each row.

    Offsets and lengths stay plain ints while they are the same for all rows.
    """
    cursor: int | Ints = header_bytes(len(columns)) + 8 * len(columns)
    placed: list[tuple[Words, int | Ints]] = []
    for column in columns:
        words = column.words
        at = cursor
        if column.tail is not None:
            words = words | _upper_half(at)
            cursor = cursor + 8 * column.tail.shape[1]
        elif column.items is not None:
            lengths = column.items.lengths
            words = np.where(lengths > 0, words | _upper_half(at), words)
            cursor = cursor + spaces(lengths)
        placed.append((words, at))
    return placed, cursor


def build_rows(columns: Sequence[Slots], count: int, *, prefix: int) -> Slices:
    """Rows one after the other, each preceded by `prefix` zero bytes; lengths include the prefix."""
    placed, row_length = place(columns)
    if isinstance(row_length, int):
        length = prefix + row_length
        lengths = np.full(count, length, np.int64)
        starts = np.arange(count, dtype=np.int64) * length
        total = count * length
    else:
        lengths = row_length + prefix
        starts = np.cumsum(lengths) - lengths
        total = int(lengths.sum())
    out = np.zeros(total + SPARE_BYTES, np.uint8)
    put = _Put(out, starts + prefix, prefix + row_length if isinstance(row_length, int) else None, prefix)
    for index, header in enumerate(header_words(columns)):
        if header is not None:
            put.words(8 * index, header)
    first = header_bytes(len(columns))
    for index, (column, (words, at)) in enumerate(zip(columns, placed, strict=True)):
        put.words(first + 8 * index, words)
        if column.tail is not None:
            for k in range(column.tail.shape[1]):
                put.words(at + 8 * k, column.tail[:, k])
        elif column.items is not None:
            copy_items(out, put.bases + at, column.items)
    return Slices(out, starts, lengths)


class _Put:
    """Writes a word into every row: by strides if all rows have the same length, else by position."""

    def __init__(self, out: Bytes, bases: Ints, stride: int | None, prefix: int) -> None:
        self.bases = bases
        self._view = word_view(out)
        self._stride = stride
        self._prefix = prefix

    def words(self, at: int | Ints, words: Words) -> None:
        if self._stride is not None and isinstance(at, int):
            self._view[self._prefix + at :: self._stride][: len(words)] = words
        else:
            self._view[self.bases + at] = words


def copy_items(out: Bytes, targets: Ints, items: Slices) -> None:
    """Copy each item to its target word by word; the padding of the last word becomes zero."""
    used = np.flatnonzero(items.lengths)
    if not len(used):
        return
    lengths, targets, starts = items.lengths[used], targets[used], items.starts[used]
    counts = (lengths + 7) >> 3
    view = word_view(out)
    within = ranges(np.zeros(len(used), np.int64), counts) * 8
    source = np.repeat(starts, counts)
    source += within
    within += np.repeat(targets, counts)
    view[within] = word_view(items.data)[source]
    last = targets + 8 * (counts - 1)
    view[last] = view[last] & _TAIL_MASKS[lengths & 7]


def _upper_half(offset: int | Ints) -> Words:
    high: Words = np.asarray(offset, np.uint64) << np.uint64(32)
    return high


def _nested_bodies(array: pa.Array, kind: DataType) -> Slices:
    match kind:
        case RowType(fields=fields):
            slots = [column_slots(array.field(i), field.type) for i, field in enumerate(fields)]
            return build_rows(slots, len(array), prefix=0)
        case ArrayType(element=element):
            sizes, child = _children(array, [array.values])
            return _array_bodies(sizes, child[0], element)
        case MapType(key=key, value=value):
            return _map_bodies(array, key, value)
        case MultisetType(element=element):
            return _map_bodies(array, element, _COUNT_TYPE)
        case _:
            raise UnsupportedError(f"{sql_type(kind)} inside a BinaryRow", feature=type(kind).__name__)


def _children(array: pa.Array, children: Sequence[pa.Array]) -> tuple[Ints, list[pa.Array]]:
    """Sizes of lists or maps, and their items, without the items that null lists hide."""
    sizes, index, first, last = child_range(array)
    if index is None:
        return sizes, [child.slice(first, last - first) for child in children]
    taken = pa.Array.from_buffers(pa.int64(), len(index), [None, pa.py_buffer(index)])
    return sizes, [child.take(taken) for child in children]


def _map_bodies(array: pa.Array, key: DataType, value: DataType) -> Slices:
    sizes, (keys, values) = _children(array, [array.keys, array.items])
    first, second = _array_bodies(sizes, keys, key), _array_bodies(sizes, values, value)
    lengths = first.lengths + second.lengths + 4
    room = spaces(lengths)
    starts = np.cumsum(room) - room
    out = np.zeros(int(room.sum()) + SPARE_BYTES, np.uint8)
    out.view(np.uint32)[starts >> 2] = first.lengths
    copy_items(out, starts + 4, first)
    copy_items(out, starts + 4 + first.lengths, second)
    return Slices(out, starts, lengths)


def _array_bodies(sizes: Ints, child: pa.Array, element: DataType) -> Slices:
    slots = _without_reserved(column_slots(child, element))
    width = element_width(element)
    null_bytes = ((sizes + 31) >> 5) << 2
    ends = np.cumsum(sizes)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    rank = np.arange(len(child)) - (ends - sizes)[owner]
    fixed = spaces(4 + null_bytes + width * sizes)
    words, lengths = slots.words, fixed
    offsets: Ints | None = None
    if slots.items is not None:
        room = np.concatenate((np.zeros(1, np.int64), np.cumsum(spaces(slots.items.lengths))))
        offsets = fixed[owner] + room[:-1] - room[ends - sizes][owner]
        words = np.where(slots.items.lengths > 0, words | _upper_half(offsets), words)
        lengths = fixed + room[ends] - room[ends - sizes]
    starts = np.cumsum(lengths) - lengths
    out = np.zeros(int(lengths.sum()) + SPARE_BYTES, np.uint8)
    out.view(np.uint32)[starts >> 2] = sizes
    if slots.valid is not None:
        _set_bits(out, starts[owner] + 4, rank, ~slots.valid)
    _put_elements(out, (starts + 4 + null_bytes)[owner] + width * rank, words, width)
    if slots.items is not None and offsets is not None:
        copy_items(out, starts[owner] + offsets, slots.items)
    return Slices(out, starts, lengths)


def _without_reserved(slots: Slots) -> Slots:
    """Variable words as items, which only non-NULL values have: NULL reserves no bytes in an array."""
    if slots.tail is None:
        return slots
    width = 8 * slots.tail.shape[1]
    count = len(slots.words)
    lengths = np.full(count, width, np.int64)
    if slots.valid is not None:
        lengths[~slots.valid] = 0
    data = pad(np.ascontiguousarray(slots.tail).reshape(-1).view(np.uint8))
    return Slots(slots.words, slots.valid, items=Slices(data, np.arange(count, dtype=np.int64) * width, lengths))


def _set_bits(out: Bytes, bases: Ints, rank: Ints, which: Mask) -> None:
    position = bases[which] + (rank[which] >> 3)
    np.bitwise_or.at(out, position, (1 << (rank[which] & 7)).astype(np.uint8))


def _put_elements(out: Bytes, positions: Ints, words: Words, width: int) -> None:
    if width == 8:
        word_view(out)[positions] = words
    else:
        dtype = np.dtype(f"<u{width}")
        out[: len(out) & ~7].view(dtype)[positions // width] = words.astype(dtype)
