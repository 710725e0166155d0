"""Serialized BinaryRows → Arrow columns, a column at a time.

Source: format.md §6; Java `BinaryRow`, `BinaryArray`, `BinaryMap`, `MemorySegmentUtils`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.binary_row.encode import ARITY_BYTES, header_bytes
from paimon_py.codec.binary_row.slots import (
    INLINE_LIMIT,
    element_width,
    has_no_bounds,
    is_text,
    is_wide_decimal,
    is_wide_timestamp,
)
from paimon_py.codec.columns import (
    SPARE_BYTES,
    AnyArray,
    Bytes,
    Ints,
    Mask,
    Slices,
    Words,
    binary_array,
    combine,
    from_numpy,
    from_slices,
    slices_of,
    validity_bitmap,
    word_view,
)
from paimon_py.errors import CorruptionError, UnsupportedError
from paimon_py.spec.type_text import sql_type
from paimon_py.spec.types import ArrayType, Atomic, DataType, MapType, MultisetType, Root, RowType

_COUNT_TYPE = Atomic(Root.INT, nullable=False)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFF_FFFF)
_PLAIN = {
    Root.TINYINT: "<u1",
    Root.SMALLINT: "<u2",
    Root.INT: "<u4",
    Root.DATE: "<u4",
    Root.TIME: "<u4",
    Root.FLOAT: "<u4",
    Root.BIGINT: "<u8",
    Root.DOUBLE: "<u8",
}
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def decode(
    rows: pa.Array | pa.ChunkedArray | Sequence[bytes],
    types: Sequence[DataType],
    wanted: Sequence[int] | None = None,
) -> list[pa.Array]:
    """The columns of serialized rows.

    Shapes: in — n rows with arity prefix, none null; out — one array of n per type, or per index in `wanted`.
    Raises:
        CorruptionError: a row has another arity than `types`, or points outside itself.
        UnsupportedError: a wanted column has a type that is not supported in rows.
    """
    array = combine(rows) if isinstance(rows, (pa.Array, pa.ChunkedArray)) else binary_array(rows)
    slices = slices_of(array)
    least = ARITY_BYTES + header_bytes(len(types)) + 8 * len(types)
    if len(slices.lengths) and int(slices.lengths.min()) < least:
        raise CorruptionError(f"a serialized row of {int(slices.lengths.min())} bytes, at least {least} expected")
    return decode_at(slices.data, slices.starts, types, wanted)


def decode_at(
    buffer: Bytes, starts: Ints, types: Sequence[DataType], wanted: Sequence[int] | None = None
) -> list[pa.Array]:
    """The columns of serialized rows inside one buffer.

    Shapes: `buffer` — bytes, followed by eight spare ones; `starts` — position of each row's arity prefix;
      out — one array of len(starts) per type, or per index in `wanted`.
    Cost: only wanted columns are read; only their values are copied.
    Raises:
        CorruptionError: as `decode`; `offset` is the position in the buffer.
    """
    limit = len(buffer) - SPARE_BYTES
    view = word_view(buffer)
    arity = len(types)
    _check_rows(view, starts, arity, limit)
    bases = starts + ARITY_BYTES
    columns = range(arity) if wanted is None else wanted
    return [_field(_Region(buffer, view, limit), bases, arity, index, types[index]) for index in columns]


class _Region:
    """A buffer, its words, and the end of its meaningful bytes."""

    __slots__ = ("buffer", "limit", "view")

    def __init__(self, buffer: Bytes, view: Words, limit: int) -> None:
        self.buffer = buffer
        self.view = view
        self.limit = limit

    def check(self, starts: Ints, lengths: Ints) -> None:
        """Check that all of these byte ranges are inside the buffer."""
        if not len(starts):
            return
        outside = (lengths < 0) | (starts < 0) | (starts + lengths > self.limit)
        if outside.any():
            where = int(starts[int(np.argmax(outside))])
            raise CorruptionError(f"a row points to byte {where}, outside its buffer", offset=where)


def _check_rows(view: Words, starts: Ints, arity: int, limit: int) -> None:
    if not len(starts):
        return
    least = ARITY_BYTES + header_bytes(arity) + 8 * arity
    if int(starts.min()) < 0 or int(starts.max()) + least > limit:
        raise CorruptionError("a serialized row ends outside its buffer", offset=int(starts.max()))
    expected = int.from_bytes(arity.to_bytes(ARITY_BYTES, "big"), "little")
    wrong = (view[starts] & _LOW) != np.uint64(expected)
    if wrong.any():
        at = int(starts[int(np.argmax(wrong))])
        found = (int(view[at]) & 0xFFFF_FFFF).to_bytes(4, "little")
        raise CorruptionError(
            f"a serialized row has {int.from_bytes(found, 'big')} fields, {arity} expected", offset=at
        )


def _field(region: _Region, bases: Ints, arity: int, index: int, kind: DataType) -> pa.Array:
    bit = index + 8
    nulls = (region.buffer[bases + (bit >> 3)] >> np.uint8(bit & 7)) & np.uint8(1)
    valid = nulls == 0 if nulls.any() else None
    return _values(region, bases, bases + (header_bytes(arity) + 8 * index), kind, valid)


def _values(region: _Region, bases: Ints, positions: Ints, kind: DataType, valid: Mask | None) -> pa.Array:
    """The values whose slots are at `positions`; offsets in the slots are relative to `bases`."""
    if has_no_bounds(kind) and valid is not None and not valid.any():
        return pa.nulls(len(positions), to_arrow_type(kind))
    words = region.view[positions]
    if isinstance(kind, Atomic):
        return _atomic(region, bases, positions, words, kind, valid)
    lengths = (words & _LOW).astype(np.int64)
    starts = bases + (words >> _HALF).astype(np.int64)
    if valid is not None:
        lengths, starts = np.where(valid, lengths, 0), np.where(valid, starts, bases)
    region.check(starts, lengths)
    match kind:
        case RowType(fields=fields):
            return _rows(region, starts, lengths, kind, valid) if fields else _empty_structs(kind, len(words), valid)
        case ArrayType(element=element):
            sizes, items = _array(region, starts, lengths, element, valid)
            return _list(kind, sizes, items, valid)
        case MapType(key=key, value=value):
            return _map(region, starts, lengths, (kind, key, value), valid)
        case MultisetType(element=element):
            return _map(region, starts, lengths, (kind, element, _COUNT_TYPE), valid)
        case _:
            raise UnsupportedError(f"{sql_type(kind)} inside a BinaryRow", feature=type(kind).__name__)


def _atomic(region: _Region, bases: Ints, positions: Ints, words: Words, kind: Atomic, valid: Mask | None) -> pa.Array:
    arrow_type = to_arrow_type(kind)
    root = kind.root
    if root in _PLAIN:
        return from_numpy(_narrow(words, _PLAIN[root], arrow_type), arrow_type, valid)
    if root is Root.BOOLEAN:
        return from_numpy((words & np.uint64(0xFF)) != 0, arrow_type, valid)
    if is_text(kind):
        return _texts(region, bases, positions, words, kind, valid)
    if root in (Root.TIMESTAMP, Root.TIMESTAMP_LTZ):
        millis, nanos = words.view(np.int64), np.zeros(len(words), np.int64)
        if is_wide_timestamp(kind):
            starts = _tail_starts(region, bases, words, 8, valid)
            millis, nanos = region.view[starts].view(np.int64), (words & _LOW).astype(np.int64)
        return from_numpy(_instants(millis, nanos, arrow_type.unit, valid), arrow_type, valid)
    if root is Root.DECIMAL:
        if is_wide_decimal(kind):
            return from_numpy(_wide_decimals(region, bases, words, valid), arrow_type, valid)
        signs = (words.view(np.int64) >> 63).view(np.uint64)
        return from_numpy(np.stack((words, signs), axis=1), arrow_type, valid)
    raise UnsupportedError(f"{root.value} values inside a BinaryRow", feature=root.value)


def _narrow(words: Words, dtype: str, arrow_type: pa.DataType) -> AnyArray:
    unsigned = words.astype(dtype)
    letter = "f" if pa.types.is_floating(arrow_type) else "i"
    return unsigned.view(np.dtype(f"<{letter}{unsigned.dtype.itemsize}"))


def _tail_starts(region: _Region, bases: Ints, words: Words, width: int, valid: Mask | None) -> Ints:
    starts: Ints = bases + (words >> _HALF).astype(np.int64)
    if valid is not None:
        starts = np.where(valid, starts, 0)
        region.check(starts[valid], np.full(int(valid.sum()), width, np.int64))
    else:
        region.check(starts, np.full(len(starts), width, np.int64))
    return starts


def _instants(millis: Ints, nanos: Ints, unit: str, valid: Mask | None) -> Ints:
    per_second = _PER_SECOND[unit]
    if per_second <= 1_000:
        return millis // (1_000 // per_second)
    per_milli = per_second // 1_000
    rest = nanos // (1_000_000 // per_milli)
    (low, low_rest), (high, high_rest) = divmod(-(2**63), per_milli), divmod(2**63 - 1, per_milli)
    far = (millis < low) | ((millis == low) & (rest < low_rest))
    far |= (millis > high) | ((millis == high) & (rest > high_rest))
    if valid is not None:
        far &= valid
    if far.any():
        raise UnsupportedError(
            f"a timestamp of {int(millis[int(np.argmax(far))])} ms since 1970 does not fit Arrow's timestamp[{unit}]",
            feature="timestamps beyond 64 bits",
        )
    out: Ints = millis * per_milli + rest  # of the first millisecond, the product alone is beyond 64 bits, and wraps
    return out


def _wide_decimals(region: _Region, bases: Ints, words: Words, valid: Mask | None) -> Words:
    starts = _tail_starts(region, bases, words, 16, valid)
    counts = words & _LOW
    if valid is not None:
        counts = np.where(valid, counts, np.uint64(1))
    if ((counts == 0) | (counts > 16)).any():
        raise CorruptionError("a decimal in a row has no bytes, or more than sixteen")
    shift = np.uint64(128) - counts * np.uint64(8)
    part = shift & np.uint64(63)
    high = region.view[starts].byteswap()
    low = region.view[np.minimum(starts + 8, region.limit)].byteswap()
    signed = high.view(np.int64)
    carried = (high << np.uint64(1)) << (np.uint64(63) - part)
    over = shift >= 64
    arithmetic = (signed >> part.view(np.int64)).view(np.uint64)
    out_low = np.where(over, arithmetic, (low >> part) | carried)
    out_high = np.where(over, (signed >> 63).view(np.uint64), arithmetic)
    return np.stack((out_low, out_high), axis=1)


def _texts(region: _Region, bases: Ints, positions: Ints, words: Words, kind: Atomic, valid: Mask | None) -> pa.Array:
    inline = (words >> np.uint64(63)) != 0
    lengths = np.where(inline, (words >> np.uint64(56)) & np.uint64(0x7F), words & _LOW).astype(np.int64)
    starts = np.where(inline, positions, bases + (words >> _HALF).astype(np.int64))
    if valid is not None:
        lengths, starts = np.where(valid, lengths, 0), np.where(valid, starts, bases)
    if (inline & (lengths > INLINE_LIMIT)).any():
        raise CorruptionError("an inline string of a row is longer than seven bytes")
    region.check(starts, lengths)
    arrow_type = to_arrow_type(kind)
    slices = Slices(region.buffer, starts, lengths)
    if pa.types.is_fixed_size_binary(arrow_type):
        return from_slices(slices, pa.binary(), valid).cast(arrow_type)
    array = from_slices(slices, arrow_type, valid)
    if pa.types.is_string(arrow_type):
        try:
            array.validate(full=True)
        except pa.ArrowInvalid as error:
            raise CorruptionError(f"a string of a row is not UTF-8: {error}") from error
    return array


def _rows(region: _Region, starts: Ints, lengths: Ints, kind: RowType, valid: Mask | None) -> pa.Array:
    arity = len(kind.fields)
    least = header_bytes(arity) + 8 * arity
    _check_lengths(starts, lengths, least, valid)
    if valid is None:
        fields = [_field(region, starts, arity, index, field.type) for index, field in enumerate(kind.fields)]
    else:
        spread = _valid_positions(valid)
        used = starts[valid]
        fields = [_field(region, used, arity, i, field.type).take(spread) for i, field in enumerate(kind.fields)]
    bitmap, nulls = validity_bitmap(valid)
    return pa.Array.from_buffers(to_arrow_type(kind), len(starts), [bitmap], null_count=nulls, children=fields)


def _valid_positions(valid: Mask) -> pa.Array:
    """Index of each row among the valid ones, null for the others."""
    index = np.cumsum(valid) - 1
    return from_numpy(np.maximum(index, 0), pa.int64(), valid)


def _empty_structs(kind: RowType, count: int, valid: Mask | None) -> pa.Array:
    bitmap, nulls = validity_bitmap(valid)
    return pa.Array.from_buffers(to_arrow_type(kind), count, [bitmap], null_count=nulls, children=[])


def _check_lengths(starts: Ints, lengths: Ints, least: int, valid: Mask | None) -> None:
    short = lengths < least if valid is None else (lengths < least) & valid
    if short.any():
        raise CorruptionError("a nested value of a row is too short", offset=int(starts[int(np.argmax(short))]))


def _array(
    region: _Region, starts: Ints, lengths: Ints, element: DataType, valid: Mask | None
) -> tuple[Ints, pa.Array]:
    """The sizes of lists (0 for nulls) and all elements, one list after the other."""
    _check_lengths(starts, lengths, 8, valid)
    sizes = (region.view[starts] & _LOW).astype(np.int64)
    if valid is not None:
        sizes = np.where(valid, sizes, 0)
    width = element_width(element)
    null_bytes = ((sizes + 31) >> 5) << 2
    _check_lengths(starts, lengths - (4 + null_bytes + width * sizes), 0, valid)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    rank = np.arange(len(owner)) - (np.cumsum(sizes) - sizes)[owner]
    bases = starts[owner]
    nulls = (region.buffer[bases + 4 + (rank >> 3)] >> (rank & 7).astype(np.uint8)) & np.uint8(1)
    positions = bases + 4 + null_bytes[owner] + width * rank
    return sizes, _values(region, bases, positions, element, nulls == 0 if nulls.any() else None)


def _map(
    region: _Region,
    starts: Ints,
    lengths: Ints,
    kinds: tuple[DataType, DataType, DataType],
    valid: Mask | None,
) -> pa.Array:
    kind, key, value = kinds
    _check_lengths(starts, lengths, 20, valid)
    key_bytes = (region.view[starts] & _LOW).astype(np.int64)
    if valid is not None:
        key_bytes = np.where(valid, key_bytes, 0)
    _check_lengths(starts, lengths - key_bytes, 12, valid)
    sizes, keys = _array(region, starts + 4, key_bytes, key, valid)
    others, values = _array(region, starts + 4 + key_bytes, lengths - 4 - key_bytes, value, valid)
    if not np.array_equal(sizes, others) or keys.null_count:
        raise CorruptionError("a map in a row has a null key, or unequal numbers of keys and values")
    entry = to_arrow_type(kind)
    pairs = pa.struct([entry.key_field, entry.item_field])
    entries = pa.Array.from_buffers(pairs, len(keys), [None], null_count=0, children=[keys, values])
    return _list(kind, sizes, entries, valid)


def _list(kind: DataType, sizes: Ints, items: pa.Array, valid: Mask | None) -> pa.Array:
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    bitmap, nulls = validity_bitmap(valid)
    return pa.Array.from_buffers(
        to_arrow_type(kind), len(sizes), [bitmap, pa.py_buffer(offsets)], null_count=nulls, children=[items]
    )
