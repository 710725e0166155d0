"""The footers of an ORC file and of its stripes.

Source: ORC v1 specification, `orc_proto.proto`. Only what decoding timestamps and selecting stripes needs is kept.
"""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Collection, Iterator
from typing import NamedTuple, Protocol

from paimon_py.formats.orc.chunks import Chunks, check_size, frame, join
from paimon_py.storage.range_reader import RangeReader

BOOLEAN, LONG, TIMESTAMP, LIST, MAP, STRUCT, INSTANT = 0, 4, 9, 10, 11, 12, 18
TIMESTAMP_KINDS = frozenset({TIMESTAMP, INSTANT})
PRESENT_STREAM, SECONDARY_STREAM = 0, 5
DIRECT, DIRECT_V2 = 0, 2

_DECIMAL, _MAX_DIGITS = 14, 38
_WIDE_DECIMAL = re.compile(rb"\x08\x0e(?:\x20[\x80-\xff]*[\x00-\x7f])?\x28[\x27-\xff]")
"""The bytes of a DECIMAL with more than 38 digits in a footer; other bytes may match too."""

_STRIPE = 3
_PRESENT = b"\x08\x00\x10"
"""The bytes of a PRESENT stream in a stripe's footer, before its column number."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAGIC = b"ORC"
_TAIL_BYTES = 16 << 10
_USUAL = re.compile(rb"\x08[\x80-\xff]*[\x00-\x7f]\x10[\x00-\x7f]\x18[\x80-\xff]{0,2}[\x00-\x7f]")
"""The beginning of a postscript whose chunks are smaller than 2 MiB."""


class SeekRead(Protocol):
    """The operations of an open file that this module uses."""

    def seek(self, offset: int, whence: int = ..., /) -> int:
        """Seek to a position; returns it."""
        ...

    def read(self, size: int = ..., /) -> bytes:
        """Read up to `size` bytes."""
        ...


class MessageField(NamedTuple):
    """One field of a protobuf message: `value` of a varint, `data` of bytes, the others as positions in the message."""

    number: int
    value: int
    data: bytes
    begin: int
    start: int
    end: int


class OrcType(NamedTuple):
    """A node of the type tree; `kind_at`: the position of its kind in the footer."""

    kind: int
    kind_at: int
    children: tuple[int, ...]
    names: tuple[str, ...]


class Stripe(NamedTuple):
    """The location of a stripe in the file, and its number of rows."""

    offset: int
    index_bytes: int
    data_bytes: int
    footer_bytes: int
    row_count: int

    @property
    def footer_at(self) -> int:
        """The start of the stripe's footer."""
        return self.offset + self.index_bytes + self.data_bytes


class FileStream(NamedTuple):
    """A stream of one stripe; `offset` is relative to the start of the file."""

    kind: int
    column: int
    offset: int
    length: int


class StripeFooter(NamedTuple):
    """`encodings` has one entry per column; `zone` is the time zone of the writer, empty if unknown."""

    streams: tuple[FileStream, ...]
    encodings: tuple[int, ...]
    zone: str


class RawTail(NamedTuple):
    """The end of a file: compression, the decompressed footer with its position, and the postscript."""

    chunks: Chunks
    footer: bytes
    footer_at: int
    postscript: bytes


class Tail(NamedTuple):
    """The end of a file. `bounds`: timestamps in milliseconds, None if unknown; (0, 0) without values."""

    chunks: Chunks
    footer: bytes
    footer_at: int
    postscript: bytes
    types: tuple[OrcType, ...]
    stripes: tuple[Stripe, ...]
    bounds: tuple[tuple[int, int] | None, ...]


def parts(message: bytes) -> Iterator[MessageField]:
    """The fields of a protobuf message in order.

    Raises: ValueError, EOFError, IndexError for bytes that are not a message.
    """
    at = 0
    while at < len(message):
        begin = at
        tag, at = varint(message, at)
        start, value, wire = at, 0, tag & 7
        if wire == _VARINT:
            value, at = varint(message, at)
        elif wire == _BYTES:
            value, start = varint(message, at)
            at = start + value
        elif wire in (_FIXED64, _FIXED32):
            at += 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(f"wire type {wire} in a footer")
        if at > len(message):
            raise EOFError("a footer ends early")
        yield MessageField(tag >> 3, value, message[start:at] if wire == _BYTES else b"", begin, start, at)


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The varint at a position, and the position after it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than ten bytes")


def varint_bytes(value: int) -> bytes:
    """A number encoded for `varint`."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def unzigzag(value: int) -> int:
    """Decode a zigzag number."""
    return (value >> 1) ^ -(value & 1)


def read_tail(source: SeekRead) -> Tail:
    """Read the postscript and the footer.

    Cost: reads the last 16 KiB of the file, and once more the part of the footer before them.
    Raises: ValueError, EOFError, IndexError for damage; UnsupportedError for a codec.
    """
    return _tail(read_raw_tail(source))


def check_postscript(source: SeekRead) -> None:
    """Refuse invalid chunk sizes, for which pyarrow would end the process.

    Cost: 2 µs, and reads the last 16 KB, which pyarrow reads next.
    Raises: ValueError, EOFError, IndexError for damage.
    """
    size = source.seek(0, io.SEEK_END)
    last = read_at(source, max(size - _TAIL_BYTES, 0), min(size, _TAIL_BYTES))
    if not _USUAL.match(last, len(last) - 1 - last[-1]):
        _read_postscript(source)


class _Postscript(NamedTuple):
    """`last`: the end of a file of `size` bytes; `data`: the postscript in it; `numbers`: by field number."""

    size: int
    last: bytes
    data: bytes
    numbers: dict[int, int]
    chunks: Chunks


def _read_postscript(source: SeekRead) -> _Postscript:
    size = source.seek(0, io.SEEK_END)
    last = read_at(source, max(size - _TAIL_BYTES, 0), min(size, _TAIL_BYTES))
    data = last[-1 - last[-1] : -1]
    numbers = {part.number: part.value for part in parts(data)}
    if _MAGIC not in data:
        raise ValueError("no ORC postscript")
    chunks = Chunks(numbers.get(2, 0), numbers.get(3, 256 << 10))
    check_size(chunks)
    return _Postscript(size, last, data, numbers, chunks)


def read_raw_tail(source: SeekRead) -> RawTail:
    """Read the postscript and the decompressed footer, without parsing it. Cost and errors: as `read_tail`."""
    size, last, postscript, numbers, chunks = _read_postscript(source)
    length = numbers.get(1, 0)
    footer_at = size - 1 - len(postscript) - length
    if footer_at < len(_MAGIC):
        raise ValueError(f"a footer of {length} bytes in a file of {size}")
    held = footer_at - (size - len(last))
    raw = last[held : held + length] if held >= 0 else read_at(source, footer_at, length)
    return RawTail(chunks, join(chunks, raw), footer_at, postscript)


def check_decimals(raw: RawTail) -> None:
    """Refuse decimals of more than 38 digits, for which pyarrow ends the process.

    Cost: a search of the footer.
    Raises: ValueError, EOFError, IndexError for damage.
    """
    if _WIDE_DECIMAL.search(raw.footer):
        _tail(raw)


def read_stripe_footer(source: SeekRead, tail: Tail | RawTail, stripe: Stripe) -> StripeFooter:
    """The streams of one stripe.

    Raises: ValueError, EOFError, IndexError for damage.
    """
    offset = stripe.offset
    footer_at = offset + stripe.index_bytes + stripe.data_bytes
    raw = read_at(source, footer_at, stripe.footer_bytes)
    streams, encodings, zone = [], [], ""
    for part in parts(join(tail.chunks, raw)):
        if part.number == 1:
            numbers = {inner.number: inner.value for inner in parts(part.data)}
            stream = FileStream(numbers.get(1, 0), numbers.get(2, 0), offset, numbers.get(3, 0))
            streams.append(stream)
            offset += stream.length
            if offset > footer_at:
                raise ValueError("the streams of a stripe overlap its footer")
        elif part.number == 2:
            encodings.append(next((inner.value for inner in parts(part.data) if inner.number == 1), DIRECT))
        elif part.number == 3:
            zone = part.data.decode()
    return StripeFooter(tuple(streams), tuple(encodings), zone)


def stripes_of(raw: RawTail) -> list[Stripe]:
    """The stripes of a file, which are at the beginning of the footer.

    Raises: ValueError, EOFError, IndexError for damage.
    """
    before_types = itertools.takewhile(lambda part: part.number <= _STRIPE, parts(raw.footer))
    return [_stripe(part) for part in before_types if part.number == _STRIPE]


def check_keys(source: SeekRead, raw: RawTail, stripe: Stripe, keys: Collection[int]) -> None:
    """Refuse NULL in the map-key columns `keys`, for which pyarrow ends the process; no writer creates such files.

    Cost: decompresses and searches the stripe's footer.
    Raises: as `read_stripe_footer`
    """
    data = join(raw.chunks, read_at(source, stripe.footer_at, stripe.footer_bytes))
    if not any(_PRESENT + varint_bytes(key) in data for key in keys):
        return
    for stream in read_stripe_footer(source, raw, stripe).streams:
        if stream.kind == PRESENT_STREAM and stream.column in keys:
            raise ValueError("a map has keys that are NULL")


def read_at(source: SeekRead, offset: int, length: int) -> bytes:
    """Read exactly `length` bytes.

    Raises: EOFError if the file is too short.
    """
    source.seek(offset)
    data = source.read(length)
    if len(data) != length:
        raise EOFError(f"{length} bytes expected at {offset}, {len(data)} found")
    return data


def as_seconds(source: SeekRead, tail: Tail, columns: frozenset[int]) -> RangeReader:
    """The file with a modified footer, in which the timestamp columns `columns` are BIGINT: their stored seconds."""
    footer = bytearray(tail.footer)
    for column in columns:
        footer[tail.types[column].kind_at] = LONG
    end = frame(tail.chunks, bytes(footer))
    postscript = b"\x08" + varint_bytes(len(end))
    postscript += b"".join(
        tail.postscript[part.begin : part.end] for part in parts(tail.postscript) if part.number != 1
    )
    return _Patched(source, tail.footer_at, end + postscript + bytes([len(postscript)]))


def _tail(raw: RawTail) -> Tail:
    types, stripes, bounds = [], [], []
    for part in parts(raw.footer):
        if part.number == 3:
            stripes.append(_stripe(part))
        elif part.number == 4:
            types.append(_type(part))
        elif part.number == 7:
            bounds.append(_bounds(part.data))
    if not types or any(not at < child < len(types) for at, node in enumerate(types) for child in node.children):
        raise ValueError("the types of a footer are not a tree")
    if any(sum(stripe[:4]) > raw.footer_at for stripe in stripes):
        raise ValueError("a stripe overlaps the footer")
    bounds += [None] * (len(types) - len(bounds))
    return Tail(*raw, tuple(types), tuple(stripes), tuple(bounds))


def _stripe(part: MessageField) -> Stripe:
    numbers = {inner.number: inner.value for inner in parts(part.data)}
    return Stripe(*(numbers.get(number, 0) for number in (1, 2, 3, 4, 5)))


def _type(part: MessageField) -> OrcType:
    kind, kind_at, digits = BOOLEAN, part.start, 0
    children: list[int] = []
    names = []
    for inner in parts(part.data):
        if inner.number == 1:
            if inner.end - inner.start != 1:
                raise ValueError("a kind of type that ORC does not have")
            kind, kind_at = inner.value, part.start + inner.start
        elif inner.number == 2 and inner.data:
            children += _packed_numbers(inner.data)
        elif inner.number == 2 and inner.end > inner.start:
            children.append(inner.value)
        elif inner.number == 3:
            names.append(inner.data.decode())
        elif inner.number == 5:
            digits = inner.value
    if kind == _DECIMAL and digits > _MAX_DIGITS:
        raise ValueError(f"a DECIMAL of {digits} digits")
    return OrcType(kind, kind_at, tuple(children), tuple(names))


def _packed_numbers(data: bytes) -> list[int]:
    values, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


def _bounds(statistics: bytes) -> tuple[int, int] | None:
    """The minimum and maximum timestamp; in UTC if the writer stored them."""
    counts = None
    for part in parts(statistics):
        if part.number == 1:
            counts = part.value
        elif part.number == 9:
            found = {inner.number: unzigzag(inner.value) for inner in parts(part.data)}
            low, high = found.get(3, found.get(1)), found.get(4, found.get(2))
            if low is not None and high is not None:
                return low, high
    return (0, 0) if counts == 0 else None


class _Patched(RangeReader):
    """A file with its end replaced: the first bytes of a source, then other bytes. Closing leaves the source open."""

    def __init__(self, source: SeekRead, kept: int, end: bytes) -> None:
        super().__init__(kept + len(end))
        self._source = source
        self._kept = kept
        self._end = end

    def _read_at(self, start: int, length: int) -> bytes:
        stop, kept = start + length, self._kept
        data = read_at(self._source, start, min(stop, kept) - start) if start < kept else b""
        return data + self._end[max(start - kept, 0) : max(stop - kept, 0)]
