"""Rewrites times before 1970 with fractions of a second to the bytes that Java writes.

pyarrow stores such a time as the following second and negative nanoseconds. Java reads this correctly only for whole
milliseconds, and fails on the file otherwise; Trino always fails. This module re-encodes the two streams of such
columns, and updates what describes them: positions, statistics, footers.

Java's own encoding shifts times in the last second before 1970, except its first millisecond, by one second. Whole
milliseconds there keep pyarrow's encoding, which Java reads correctly; finer digits have no encoding that Java reads
correctly.

Source: ORC v1 specification; ORC `TimestampTreeWriter`, `TimestampTreeReader`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from paimon_py.codec.columns import Ints
from paimon_py.formats.orc.chunks import Chunks, Packed, join, pack
from paimon_py.formats.orc.footer import (
    SECONDARY_STREAM,
    TIMESTAMP_KINDS,
    MessageField,
    Stripe,
    Tail,
    parts,
    read_at,
    read_stripe_footer,
    read_tail,
    unzigzag,
    varint,
    varint_bytes,
)
from paimon_py.formats.orc.rle import Runs, decode_v2, encode_v2, to_zigzag
from paimon_py.formats.orc.timestamps import codes_of, nanos_of
from paimon_py.formats.orc.zones import base_seconds
from paimon_py.storage.range_reader import RangeReader

_DATA_STREAM, _ROW_INDEX_STREAM = 1, 6
_TIMES = 9
_NANOS = 1_000_000_000
_MILLI_NANOS = 1_000_000
_BASE = base_seconds("")
_METADATA_LENGTH = 5

_Bounds = tuple[int, int, int, int]
"""The minimum and maximum time: milliseconds and nanoseconds of each."""


class _Column(NamedTuple):
    """The streams of a column in one stripe, and their values: milliseconds since 1970 and additional nanoseconds."""

    seconds: Runs
    nanos: Runs
    seconds_bytes: Packed
    nanos_bytes: Packed
    millis: Ints
    rest: Ints

    def positions(self, chunks: Chunks, value: int) -> list[int]:
        """The position of a value in both streams, as readers address it."""
        found = []
        for runs, data in ((self.seconds, self.seconds_bytes), (self.nanos, self.nanos_bytes)):
            at, inside = runs.place(value)
            found += [*data.place(chunks, at), inside]
        return found

    def bounds(self, first: int, last: int) -> _Bounds:
        """The bounds of the values from `first` to `last`; at least one."""
        millis, rest = self.millis[first:last], self.rest[first:last]
        low, high = int(millis.min()), int(millis.max())
        return low, int(rest[millis == low].min()), high, int(rest[millis == high].max())


class _Behind(RangeReader):
    """The end of a file at its original offset; the bytes before are zeros."""

    def __init__(self, start: int, end: bytes) -> None:
        super().__init__(start + len(end))
        self._start = start
        self._end = end

    def _read_at(self, start: int, length: int) -> bytes:
        stop, begin = start + length, self._start
        return bytes(max(min(stop, begin) - start, 0)) + self._end[max(start - begin, 0) : max(stop - begin, 0)]


class _Made(NamedTuple):
    """One stripe of the new file, and the bounds of the re-encoded columns."""

    data: bytes
    place: Stripe
    bounds: dict[int, _Bounds]


def with_old_times(start: int, end: bytes, level: int) -> bytes:
    """The end of a file written by pyarrow, with times before 1970 encoded as in Java.

    Args:
        start: the number of bytes before `end`; times in them are not changed.
        end: complete stripes, statistics and the footer.
        level: the compression level of re-encoded streams.

    Cost: decodes the timestamps of one column and stripe at a time; copies the streams of other columns.
    """
    file = _Behind(start, end)
    tail = read_tail(file)
    length = next((part.value for part in parts(tail.postscript) if part.number == _METADATA_LENGTH), 0)
    content = tail.footer_at - length
    metadata = join(tail.chunks, read_at(file, content, length))
    statistics = [[column.data for column in parts(stripe.data)] for stripe in parts(metadata)]
    behind = [stripe for stripe in tail.stripes if stripe.offset >= start]
    out = [read_at(file, start, (behind[0].offset if behind else content) - start)]
    at = start + len(out[0])
    places: list[Stripe] = []
    bounded: set[int] = set()
    for stripe, columns in zip(tail.stripes, statistics, strict=True):
        if stripe.offset < start:
            places.append(stripe)
            continue
        made = _stripe(file, tail, stripe, [_count(column) for column in columns], level)
        for column, bounds in made.bounds.items():
            columns[column] = _with_bounds(columns[column], bounds)
        bounded |= made.bounds.keys()
        places.append(made.place._replace(offset=at))
        out.append(made.data)
        at += len(made.data)
    if not bounded:
        return end
    whole = {column: _unite([_bounds(stripe[column]) for stripe in statistics]) for column in bounded}
    footer = _file_footer(tail.footer, places, whole, at - content)
    message = b"".join(_bytes(1, b"".join(_bytes(1, column) for column in stripe)) for stripe in statistics)
    ends = [pack(tail.chunks, each, level).data for each in (message, footer)]
    lengths = {_METADATA_LENGTH: len(ends[0]), 1: len(ends[1])}
    postscript = _with_numbers(tail.postscript, lengths)
    return b"".join([*out, *ends, postscript, bytes([len(postscript)])])


def _stripe(file: _Behind, tail: Tail, stripe: Stripe, counts: Sequence[int], level: int) -> _Made:
    """A stripe with re-encoded streams where needed; `counts` are the value counts of the columns."""
    streams = read_stripe_footer(file, tail, stripe).streams
    data = [read_at(file, stream.offset, stream.length) for stream in streams]
    places = {(stream.kind, stream.column): place for place, stream in enumerate(streams)}
    bounds = {}
    for column, count in enumerate(counts):
        if tail.types[column].kind not in TIMESTAMP_KINDS or not count:
            continue
        at, behind = places[_DATA_STREAM, column], places[SECONDARY_STREAM, column]
        made = _column(tail.chunks, data[at], data[behind], count, level)
        if made is None:
            continue
        bounds[column] = made.bounds(0, count)
        data[at], data[behind] = made.seconds_bytes.data, made.nanos_bytes.data
        index = places.get((_ROW_INDEX_STREAM, column))
        if index is not None:
            entries = _index(join(tail.chunks, data[index]), made, tail.chunks)
            data[index] = pack(tail.chunks, entries, level).data
    if not bounds:
        raw = read_at(file, stripe.offset, stripe.index_bytes + stripe.data_bytes + stripe.footer_bytes)
        return _Made(raw, stripe, bounds)
    old = read_at(file, stripe.offset + stripe.index_bytes + stripe.data_bytes, stripe.footer_bytes)
    sizes = iter([len(each) for each in data])
    footer = _remade(
        join(tail.chunks, old),
        lambda part: _bytes(1, _with_numbers(part.data, {3: next(sizes)})) if part.number == 1 else None,
    )
    ending = pack(tail.chunks, footer, level).data
    index_end = stripe.offset + stripe.index_bytes
    index_bytes = sum(len(each) for each, stream in zip(data, streams, strict=True) if stream.offset < index_end)
    place = stripe._replace(
        index_bytes=index_bytes,
        data_bytes=sum(map(len, data)) - index_bytes,
        footer_bytes=len(ending),
    )
    return _Made(b"".join([*data, ending]), place, bounds)


def _column(chunks: Chunks, data: bytes, secondary: bytes, count: int, level: int) -> _Column | None:
    """The re-encoded streams of a column; None if none of its times needs it."""
    nanos = nanos_of(decode_v2(join(chunks, secondary), count))
    old = nanos < 0
    if not bool(old.any()):
        return None
    seconds = decode_v2(join(chunks, data), count, signed=True) + _BASE
    seconds[old] -= 1
    nanos[old] += _NANOS
    millis, rest = seconds * 1000 + nanos // _MILLI_NANOS, nanos % _MILLI_NANOS
    late = old & (nanos >= _MILLI_NANOS)
    nanos[late & (seconds == -1)] -= _NANOS
    seconds[late] += 1
    whole, fractions = encode_v2(to_zigzag(seconds - _BASE)), encode_v2(codes_of(nanos))
    seconds_bytes, nanos_bytes = pack(chunks, whole.data, level), pack(chunks, fractions.data, level)
    return _Column(whole, fractions, seconds_bytes, nanos_bytes, millis, rest)


def _index(message: bytes, column: _Column, chunks: Chunks) -> bytes:
    """A row index with the positions and bounds of a column's new streams.

    The positions of the two streams are the last ones of every entry.
    """
    entries, first = [], 0
    for entry in parts(message):
        fields = {part.number: part.data for part in parts(entry.data)}
        last = first + _count(fields[2])
        places = column.positions(chunks, first)
        kept = _numbers(fields[1])[: -len(places)]
        statistics = _with_bounds(fields[2], column.bounds(first, last)) if last > first else fields[2]
        entries.append(_bytes(1, _bytes(1, b"".join(map(varint_bytes, kept + places))) + _bytes(2, statistics)))
        first = last
    return b"".join(entries)


def _file_footer(footer: bytes, stripes: Sequence[Stripe], bounds: Mapping[int, _Bounds], longer: int) -> bytes:
    """A footer with updated stripe locations and bounds, for a file that grew by `longer` bytes."""
    places, columns = iter(stripes), itertools.count()

    def make(part: MessageField) -> bytes | None:
        if part.number == 2:
            return _number(2, part.value + longer)
        if part.number == 3:
            return _bytes(3, _with_numbers(part.data, dict(enumerate(next(places), 1))))
        if part.number == 7:
            column = next(columns)
            return _bytes(7, _with_bounds(part.data, bounds[column])) if column in bounds else None
        return None

    return _remade(footer, make)


def _count(statistics: bytes) -> int:
    return next((part.value for part in parts(statistics) if part.number == 1), 0)


def _bounds(statistics: bytes) -> _Bounds | None:
    """The bounds in the statistics of a column, if any."""
    for part in parts(statistics):
        if part.number == _TIMES:
            found = {inner.number: inner.value for inner in parts(part.data)}
            if 3 in found and 4 in found:
                low, high = unzigzag(found[3]), unzigzag(found[4])
                return low, found.get(5, 1) - 1, high, found.get(6, _MILLI_NANOS) - 1
    return None


def _with_bounds(statistics: bytes, bounds: _Bounds) -> bytes:
    low, low_rest, high, high_rest = bounds
    message = b"".join(
        [
            *(_number(number, (value << 1) ^ (value >> 63)) for number, value in ((3, low), (4, high))),
            *(_number(number, value + 1) for number, value in ((5, low_rest), (6, high_rest))),
        ]
    )
    return _remade(statistics, lambda part: _bytes(_TIMES, message) if part.number == _TIMES else None)


def _unite(bounds: Sequence[_Bounds | None]) -> _Bounds:
    known = [each for each in bounds if each is not None]
    return (*min(each[:2] for each in known), *max(each[2:] for each in known))


def _with_numbers(message: bytes, numbers: Mapping[int, int]) -> bytes:
    kept = _remade(message, lambda part: b"" if part.number in numbers else None)
    return kept + b"".join(_number(number, value) for number, value in numbers.items())


def _remade(message: bytes, make: Callable[[MessageField], bytes | None]) -> bytes:
    """A message with its fields replaced by the results of `make`; None keeps a field."""
    made = [(part, make(part)) for part in parts(message)]
    return b"".join(message[part.begin : part.end] if new is None else new for part, new in made)


def _numbers(data: bytes) -> list[int]:
    found, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        found.append(value)
    return found


def _number(number: int, value: int) -> bytes:
    return varint_bytes(number << 3) + varint_bytes(value)


def _bytes(number: int, data: bytes) -> bytes:
    return varint_bytes(number << 3 | 2) + varint_bytes(len(data)) + data
