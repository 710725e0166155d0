"""Reads ORC timestamps that pyarrow reads incorrectly or not at all.

pyarrow converts every ORC timestamp to 64-bit nanoseconds: years outside 1677–2262 are refused or, before pyarrow 25,
wrap around silently. It is also wrong by hours, or by a second before 1970, in files whose writer did not run in UTC.
Columns with such values, according to the file's statistics, are read here: pyarrow gets a footer that declares them
BIGINT and so decodes nulls, nesting and whole seconds; the fractions are decoded from their own stream.

The result equals what Java Paimon reads from the file in UTC, including its writer's errors: the last second before
1970 is stored one second late, and days before 1582-10-15 are stored in the Julian calendar.

Source: format.md §8.4; ORC `TimestampTreeReader`; Java `OrcTimestampColumnVector`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import Ints, from_numpy, nulls_or_none, numpy_values, validity_bitmap, validity_mask
from paimon_py.errors import UnsupportedError
from paimon_py.formats.orc.chunks import join
from paimon_py.formats.orc.footer import (
    DIRECT,
    DIRECT_V2,
    LIST,
    MAP,
    SECONDARY_STREAM,
    STRUCT,
    TIMESTAMP,
    TIMESTAMP_KINDS,
    SeekRead,
    StripeFooter,
    Tail,
    as_seconds,
    read_at,
    read_stripe_footer,
    read_tail,
)
from paimon_py.formats.orc.rle import decode_v1, decode_v2
from paimon_py.formats.orc.zones import UTC_NAMES, base_seconds, wall_seconds
from paimon_py.formats.reshape import with_values

SECONDS_AND_NANOS = pa.struct([pa.field("seconds", pa.int64()), pa.field("nanos", pa.int64())])
"""A timestamp in two parts, either of which may be negative: the form that `LongTimestamps.complete` returns."""

RANGE_FEATURE = "timestamps outside the range of 64-bit integers"

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_DAY_MILLIS = 86_400_000
_SAFE_MILLIS = 2**63 // 1_000_000 - 2 * _DAY_MILLIS
_MAX_SECONDS = 1 << 60
_MAX_NANOS = 999_999_999
_POWERS = np.array([1, *(10 ** (zeros + 1) for zeros in range(1, 8))], np.int64)


class LongTimestamps:
    """The timestamp columns of one file that pyarrow cannot read correctly.

    Attributes:
        source: the file for pyarrow, in which the columns are BIGINT.

    Cost: reads the end of the file again; per stripe, its footer and the fractions of the requested columns.
    """

    def __init__(self, source: SeekRead, tail: Tail, columns: frozenset[int]) -> None:
        self.source = as_seconds(source, tail, columns)
        self._file = source
        self._tail = tail
        self._columns = columns

    def complete(self, number: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Stripe `number` as read from `source`, with `SECONDS_AND_NANOS` in place of the seconds.

        Raises: ValueError, EOFError, IndexError, OverflowError for damage; UnsupportedError for a zone or a codec.
        """
        tail = self._tail
        footer = read_stripe_footer(self._file, tail, tail.stripes[number])
        root = dict(zip(tail.types[0].names, tail.types[0].children, strict=True))
        arrays = [self._rebuilt(footer, root[name], batch.column(name)) for name in batch.schema.names]
        return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)

    def _rebuilt(self, footer: StripeFooter, column: int, array: pa.Array) -> pa.Array:
        """`array`, which begins at offset 0, with the timestamps below `column` in two parts."""
        if column in self._columns:
            return self._both_parts(footer, column, array)
        if not _below(self._tail, column) & self._columns:
            return array
        kind, below = self._tail.types[column].kind, self._tail.types[column].children
        given = array.type
        if kind == STRUCT:
            children = [self._rebuilt(footer, child, array.field(place)) for place, child in enumerate(below)]
            fields = [given.field(place).with_type(child.type) for place, child in enumerate(children)]
            return _with_children(array, pa.struct(fields), children)
        if kind == LIST:
            child = self._rebuilt(footer, below[0], array.values)
            return _with_children(array, pa.list_(given.value_field.with_type(child.type)), [child])
        if kind == MAP:
            key = self._rebuilt(footer, below[0], array.keys)
            item = self._rebuilt(footer, below[1], array.items)
            target = pa.map_(given.key_field.with_type(key.type), given.item_field.with_type(item.type))
            entries = pa.StructArray.from_arrays([key, item], fields=[target.key_field, target.item_field])
            return _with_children(array, target, [entries])
        raise ValueError(f"timestamps inside ORC type {kind}")

    def _both_parts(self, footer: StripeFooter, column: int, array: pa.Array) -> pa.Array:
        mask = validity_mask(array)
        zone = footer.zone if self._tail.types[column].kind == TIMESTAMP else ""
        nanos = np.zeros(len(array), np.int64)
        nanos[mask] = self._nanos(footer, column, int(np.count_nonzero(mask)))
        seconds = np.where(mask, numpy_values(array), 0)
        if bool((np.abs(seconds) > _MAX_SECONDS).any()):
            raise ValueError("a timestamp without a year")
        seconds = seconds + base_seconds(zone)
        seconds -= (seconds < 0) & (nanos > 999_999)
        children = [from_numpy(wall_seconds(seconds, zone), pa.int64()), from_numpy(nanos, pa.int64())]
        bitmap, nulls = validity_bitmap(nulls_or_none(array))
        return pa.Array.from_buffers(SECONDS_AND_NANOS, len(array), [bitmap], null_count=nulls, children=children)

    def _nanos(self, footer: StripeFooter, column: int, count: int) -> Ints:
        """The fractions of non-null values. The lowest three bits count the trailing zeros that were removed."""
        streams = [s for s in footer.streams if s.column == column and s.kind == SECONDARY_STREAM]
        encoding = footer.encodings[column]
        if len(streams) > 1 or encoding not in (DIRECT, DIRECT_V2) or (count and not streams):
            raise ValueError(f"no fractions of seconds for column {column}")
        if count == 0:
            return np.zeros(0, np.int64)
        data = join(self._tail.chunks, read_at(self._file, streams[0].offset, streams[0].length))
        codes = decode_v2(data, count) if encoding == DIRECT_V2 else decode_v1(data, count)
        return nanos_of(codes)


def long_timestamps(source: SeekRead, schema: pa.Schema) -> LongTimestamps | None:
    """The columns of a file with the Arrow schema `schema` that need `LongTimestamps`; None if there are none.

    Raises: ValueError, EOFError, IndexError for damage; UnsupportedError for a codec.
    """
    if not any(_holds_timestamps(field.type) for field in schema):
        return None
    tail = read_tail(source)
    found = [number for number, node in enumerate(tail.types) if node.kind in TIMESTAMP_KINDS]
    columns = {number for number in found if not _in_range(tail.bounds[number])}
    early = {number for number in found if tail.types[number].kind == TIMESTAMP and _early(tail.bounds[number])}
    if early - columns and _local(source, tail):
        columns |= early
    return LongTimestamps(source, tail, frozenset(columns)) if columns else None


def nanos_of(codes: Ints) -> Ints:
    """Nanoseconds from stored fractions; pyarrow writes negative ones.

    Raises: ValueError for damage.
    """
    digits = codes >> 3
    if bool((np.abs(digits) > _MAX_NANOS).any()):
        raise ValueError("a fraction of a second is more than one")
    nanos: Ints = digits * _POWERS[codes & 7]
    if bool((np.abs(nanos) > _MAX_NANOS).any()):
        raise ValueError("a fraction of a second is more than one")
    return nanos


def codes_of(nanos: Ints) -> Ints:
    """Nanoseconds as stored fractions: two or more trailing zeros are removed and counted."""
    zeros = np.zeros(len(nanos), np.int64)
    for place in range(1, len(_POWERS)):
        zeros[(nanos % _POWERS[place] == 0) & (nanos != 0)] = place
    return nanos // _POWERS[zeros] << 3 | zeros


def as_timestamps(array: pa.Array, target: pa.DataType) -> pa.Array:
    """`SECONDS_AND_NANOS` as timestamps; digits finer than the unit are truncated toward the past.

    Raises: UnsupportedError: a value does not fit in 64 bits of the unit.
    """
    seconds, nanos = (numpy_values(array.field(part)) for part in (0, 1))
    scale = _PER_SECOND[target.unit]
    mask = validity_mask(array)
    carry, rest = np.divmod(nanos, _PER_SECOND["ns"])
    seconds = seconds + carry
    rest //= _PER_SECOND["ns"] // scale
    first, first_rest = divmod(-(2**63), scale)
    last, last_rest = divmod(2**63 - 1, scale)
    low = (seconds < first) | ((seconds == first) & (rest < first_rest))
    high = (seconds > last) | ((seconds == last) & (rest > last_rest))
    if bool(((low | high) & mask).any()):
        raise UnsupportedError(
            f"a value is out of range: {RANGE_FEATURE} of unit {target.unit} have no Arrow type", feature=RANGE_FEATURE
        )
    return with_values(array, seconds * scale + rest, target)


def _in_range(bounds: tuple[int, int] | None) -> bool:
    return bounds is not None and bounds[0] >= -_SAFE_MILLIS and bounds[1] <= _SAFE_MILLIS


def _early(bounds: tuple[int, int] | None) -> bool:
    return bounds is None or bounds[0] < 2 * _DAY_MILLIS


def _local(source: SeekRead, tail: Tail) -> bool:
    """Whether any stripe was written in a zone other than UTC."""
    return any(read_stripe_footer(source, tail, stripe).zone not in UTC_NAMES for stripe in tail.stripes)


def _holds_timestamps(kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return True
    return any(_holds_timestamps(kind.field(place).type) for place in range(kind.num_fields))


def _below(tail: Tail, column: int) -> set[int]:
    """A column and all columns nested in it, which are numbered consecutively, depth first."""
    last = column
    while tail.types[last].children:
        last = tail.types[last].children[-1]
    return set(range(column, last + 1))


def _with_children(array: pa.Array, kind: pa.DataType, children: list[pa.Array]) -> pa.Array:
    """A nested array with the validity and offsets of `array` and other children."""
    own = 1 if pa.types.is_struct(kind) else 2
    return pa.Array.from_buffers(
        kind, len(array), array.buffers()[:own], null_count=array.null_count, children=children
    )
