"""Avro data files: containers as streams of records, through fastavro.

fastavro gets plain schemas only: no logical types, and maps as arrays of pairs. This form is the fastest, supports
dates beyond Python's years, and has the same bytes. Blocks are inflated and deflated here, because fastavro would need
additional packages for Paimon's default codec.

Source: Avro 1.11 specification, "Object Container Files"; format.md §8.5; Java `AvroBulkFormat`, `AvroFileFormat`.
"""

from __future__ import annotations

import bz2
import hashlib
import io
import itertools
import lzma
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

import msgspec
import zstandard

from paimon_py.codec.avro.container import (
    MAX_HEADER_BYTES,
    SYNC_BYTES,
    CodecFault,
    Header,
    Inflate,
    check_block,
    deflater,
    fastavro,
    header_bytes,
    inflater,
    read_header,
    read_long,
    write_long,
)
from paimon_py.codec.avro.shape import Shape, least_bytes, shape_of
from paimon_py.errors import CorruptionError, PaimonError, UnsupportedError

BLOCK_BYTES = 64_000
MAX_BLOCK_BYTES = 1 << 30
"""The maximum inflated size of a block."""

_FREE_BYTES = 64 << 20
_BLOCK_INFLATION_MAX = 32_768
_ITEMS_INFLATION_MAX = 64
_BLOCKS_TIMES = 64
"""A block may inflate to its free bytes plus this multiple of its size, zstd's practical maximum. The bound is lower
for arrays and maps: all their blocks together may inflate to 64 times their size. Java writes blocks of 64 KB plus one
record."""

_CHUNK_PAYLOAD_BYTES = 16 << 20
_DEPTH_MAX = 200
_NODES_MAX = 1_000_000
_CHUNK_BYTES = 1 << 18
_MAX_READ_BYTES = 16 << 20
_BROKEN = (
    EOFError,
    IndexError,
    KeyError,
    OverflowError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
)

_WINDOW_ROWS = 1 << 18
_WINDOW_BYTES = 8 << 20

Schema = Any
Record = dict[str, Any]
Inflated = tuple[int, bytes]
"""The number of records in a block, and their bytes."""


class DataFileReader:
    """One Avro data file, open for reading; `schema` is the writer's schema, as JSON.

    Raises: CorruptionError if the file violates the specification or is truncated.
    """

    def __init__(self, source: BinaryIO, path: str, size_bytes: int, row_count: int | None = None) -> None:
        """Read the header.

        Args:
            row_count: the expected number of records; None if unknown.
        """
        self._source = source
        self._path = path
        self._size_bytes = size_bytes
        self._row_count = row_count
        self._header, self._ahead = _read_header(source, path)
        self.shape = shape = shape_of(self._header.schema, path, depth=_DEPTH_MAX, nodes=_NODES_MAX)
        self._least = least_bytes(shape)
        self._bound = _Bound.of(shape)
        try:
            self.schema: Schema = msgspec.json.decode(self._header.schema)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise CorruptionError(f"{path}: broken Avro schema: {error}", path=path, offset=4) from error

    def windows(self) -> Iterator[Sequence[Inflated]]:
        """The blocks, in groups of bounded record count and size. Can be called once: the source is read to its end.

        The first block is returned alone, because a caller that wants a few rows needs no more.
        """
        window: list[Inflated] = []
        rows, size = _WINDOW_ROWS, 0
        for count, payload in self._blocks():
            window.append((count, payload))
            rows, size = rows + count, size + len(payload)
            if rows >= _WINDOW_ROWS or size >= _WINDOW_BYTES:
                yield window
                window, rows, size = [], 0, 0
        if window:
            yield window

    def records(self, wanted: Schema, most: int, blocks: Iterable[Inflated] | None = None) -> Iterator[list[Record]]:
        """The records, with the fields of the plain schema `wanted` (a record schema; other fields are skipped).

        Yields at most `most` records at a time, fewer if the blocks are large.

        Args:
            blocks: some blocks of the file; None reads all of them, only once, since the source is read to its end.
        """
        module = fastavro()
        try:
            given = self._blocks() if blocks is None else blocks
            pieces = _Pieces(self._plain_pieces(plain_schema(self.schema), given))
            yield from _group(module.block_reader(pieces, wanted), pieces, most)
        except PaimonError:
            raise
        except (*_BROKEN, module.read.SchemaResolutionError) as error:
            raise CorruptionError(f"{self._path} is damaged: {error!r}", path=self._path) from error

    def counts(self) -> Iterator[int]:
        """The record count of each block, without decoding."""
        for count, _ in self._blocks():
            yield count

    def _plain_pieces(self, plain: Schema, blocks: Iterable[Inflated]) -> Iterator[bytes]:
        """Blocks of the file as an uncompressed container with the plain schema."""
        yield header_bytes(msgspec.json.encode(plain), "null") + self._header.sync
        for count, payload in blocks:
            yield write_long(count) + write_long(len(payload))
            yield payload
            yield self._header.sync

    def _blocks(self) -> Iterator[tuple[int, bytes]]:
        """The blocks that contain records, inflated after their counts and sizes are checked."""
        inflate = _inflater(self._header.codec, self._path)
        stream = _Stream(self._source, self._ahead, self._header.end, self._path)
        room = _FREE_BYTES + min(_BLOCKS_TIMES * self._bound.times, _BLOCK_INFLATION_MAX) * self._size_bytes
        found = 0
        while not stream.at_end():
            offset = stream.position
            count, size = stream.long(), stream.long()
            if count < 0 or not 0 <= size <= MAX_BLOCK_BYTES:
                message = f"{self._path}: a block of {count} records in {size} bytes"
                raise CorruptionError(message, path=self._path, offset=offset)
            found += count
            self._check_count(found, offset, whole=False)
            packed = stream.exactly(size)
            if stream.exactly(SYNC_BYTES) != self._header.sync:
                raise CorruptionError(f"{self._path}: wrong sync marker after a block", path=self._path, offset=offset)
            if not count:
                continue
            try:
                payload = inflate(packed, min(self._bound.limit(size), room))
            except (*_BROKEN, CodecFault, OSError, lzma.LZMAError) as error:
                message = f"{self._path}: a block does not inflate: {error}"
                raise CorruptionError(message, path=self._path, offset=offset) from error
            room -= len(payload)
            check_block(count, payload, self._least, self._path, offset)
            yield count, payload
        if stream.position < self._size_bytes:
            message = f"{self._path} ends after {stream.position} of {self._size_bytes} bytes"
            raise CorruptionError(message, path=self._path, offset=stream.position)
        self._check_count(found, stream.position, whole=True)

    def _check_count(self, found: int, offset: int, *, whole: bool) -> None:
        if self._row_count is not None and (found > self._row_count or (whole and found < self._row_count)):
            message = f"{self._path} has {found} rows{'' if whole else ' or more'}, its manifest entry says"
            raise CorruptionError(f"{message} {self._row_count}", path=self._path, offset=offset)


class DataFileEncoder:
    """Encodes records into the bytes of a container, block by block."""

    def __init__(self, schema: Schema, codec: str, level: int) -> None:
        self._header = header_bytes(msgspec.json.encode(schema), codec)
        self._plain = fastavro().parse_schema(plain_schema(schema))
        self._deflate = _deflater(codec, level)
        self.shape = shape_of(msgspec.json.encode(schema), "rows", depth=_DEPTH_MAX, nodes=_NODES_MAX)
        self._bound = _Bound.of(self.shape)
        self._sync = b""

    def encode(self, records: Sequence[Record]) -> bytes:
        """The next bytes of the file: the blocks of `records`, preceded by the header on the first call.

        Raises: ValueError, TypeError, OverflowError if a record does not fit the schema.
        """
        out = io.BytesIO()
        zeros = bytes(SYNC_BYTES)
        fastavro().writer(out, self._plain, records, codec="null", sync_interval=BLOCK_BYTES, sync_marker=zeros)
        return self._container(_raw_blocks(bytes(out.getbuffer())))

    def encode_rows(self, data: bytes, ends: Sequence[int]) -> bytes:
        """The same for records that are already encoded and concatenated.

        `ends`: where each record ends.
        Raises: ValueError as `encode`
        """
        return self._container(_cut_blocks(data, ends))

    def _container(self, raw: Iterable[_Block]) -> bytes:
        blocks = [(count, self._compress(payload)) for count, payload in raw]
        pieces = []
        if not self._sync:
            digest = hashlib.blake2b(self._header, digest_size=SYNC_BYTES)
            for _, payload in blocks:
                digest.update(payload)
            self._sync = digest.digest()
            pieces += [self._header, self._sync]
        for count, payload in blocks:
            pieces += [write_long(count), write_long(len(payload)), payload, self._sync]
        return b"".join(pieces)


    def _compress(self, payload: bytes) -> bytes:
        packed = self._deflate(payload)
        if len(payload) > self._bound.limit(len(packed)):
            raise ValueError(f"a row of {len(payload)} bytes packs to {len(packed)}, more than readers would inflate")
        return packed


def plain_schema(schema: Schema) -> Schema:
    """A copy of `schema` without logical types, defaults and documentation; maps become arrays of records."""
    return _plain(schema, itertools.count())


def branch(schema: Schema) -> Schema:
    """The value schema of a nullable schema; any other schema unchanged."""
    if isinstance(schema, list):
        rest = [part for part in schema if part != "null"]
        return rest[0] if len(rest) == 1 else schema
    return schema


def _plain(schema: Schema, numbers: Iterator[int]) -> Schema:
    if isinstance(schema, list):
        return [_plain(part, numbers) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kind = schema.get("type")
    if isinstance(kind, (dict, list)):
        return _plain(kind, numbers)
    if kind == "record":
        fields = [{"name": field["name"], "type": _plain(field["type"], numbers)} for field in schema["fields"]]
        return {"type": "record", "name": _full_name(schema), "fields": fields}
    if kind == "array":
        return {"type": "array", "items": _plain(schema["items"], numbers)}
    if kind == "map":
        pair = [{"name": "key", "type": "string"}, {"name": "value", "type": _plain(schema["values"], numbers)}]
        return {"type": "array", "items": {"type": "record", "name": f"map_entry_{next(numbers)}", "fields": pair}}
    if kind == "fixed":
        return {"type": "fixed", "name": _full_name(schema), "size": schema["size"]}
    if kind == "enum":
        return {"type": "enum", "name": _full_name(schema), "symbols": schema["symbols"]}
    return kind


def _full_name(schema: Record) -> str:
    space = schema.get("namespace")
    name: str = schema["name"]
    return f"{space}.{name}" if space and "." not in name else name


def _read_header(source: BinaryIO, path: str) -> tuple[Header, bytes]:
    """The header, and the bytes that were read after it."""
    data = b""
    while True:
        piece = source.read(_CHUNK_BYTES)
        data += piece
        try:
            header = read_header(data, path)
        except CorruptionError:
            if not piece or len(data) > MAX_HEADER_BYTES:
                raise
        else:
            return header, data[header.end :]


class _Stream:
    """Exact reads from a file; `position` is that of the next byte."""

    def __init__(self, source: BinaryIO, ahead: bytes, position: int, path: str) -> None:
        self._source = source
        self._ahead = ahead
        self._at = 0
        self._path = path
        self.position = position

    def at_end(self) -> bool:
        return not self._fill(1)

    def long(self) -> int:
        self._fill(10)
        try:
            value, end = read_long(self._ahead, self._at)
        except IndexError as error:
            raise self._short() from error
        self.position += end - self._at
        self._at = end
        return value

    def exactly(self, size: int) -> bytes:
        if size > self._available() and not self._fill(size):
            raise self._short()
        piece = self._ahead[self._at : self._at + size]
        self._at += size
        self.position += size
        return piece

    def _available(self) -> int:
        return len(self._ahead) - self._at

    def _fill(self, size: int) -> bool:
        """Buffer `size` bytes; returns whether the file has that many left."""
        ready = self._available()
        if ready >= size:
            return True
        pieces = [self._ahead[self._at :]]
        while ready < size:
            piece = self._source.read(max(_CHUNK_BYTES, min(size - ready, _MAX_READ_BYTES)))
            if not piece:
                break
            pieces.append(piece)
            ready += len(piece)
        self._ahead = b"".join(pieces)
        self._at = 0
        return ready >= size

    def _short(self) -> CorruptionError:
        return CorruptionError(f"{self._path} ends inside a block", path=self._path, offset=self.position)


class _Pieces:
    """A readable file that concatenates pieces; `passed_bytes` counts the bytes that were read from it."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._current = io.BytesIO()
        self.passed_bytes = 0

    def read(self, size: int) -> bytes:
        """Read `size` bytes, fewer at the end."""
        data = self._current.read(size)
        while len(data) < size:
            piece = next(self._pieces, None)
            if piece is None:
                return data
            self._current = io.BytesIO(piece)
            self.passed_bytes += len(piece)
            data += self._current.read(size - len(data))
        return data

    def tell(self) -> int:
        """The offset where the next piece begins; fastavro only records it."""
        return self.passed_bytes


class _Block(NamedTuple):
    records: int
    payload: bytes


def _raw_blocks(container: bytes) -> Iterator[_Block]:
    """The blocks of an uncompressed container that was just written."""
    position = read_header(container, "").end
    while position < len(container):
        count, position = read_long(container, position)
        size, position = read_long(container, position)
        yield _Block(count, container[position : position + size])
        position += size + SYNC_BYTES


def _cut_blocks(data: bytes, ends: Sequence[int]) -> Iterator[_Block]:
    """Group records into blocks; a block ends with the record that fills it."""
    first = start = 0
    for number, end in enumerate(ends, 1):
        if end - start >= BLOCK_BYTES or number == len(ends):
            yield _Block(number - first, data[start:end])
            first, start = number, end


def _deflater(codec: str, level: int) -> Callable[[bytes], bytes]:
    if codec == "zstandard":
        return zstandard.ZstdCompressor(level=level, write_checksum=True).compress
    if codec == "bzip2":
        return bz2.compress
    if codec == "xz":
        return lzma.compress
    return deflater(codec)


def _inflater(codec: str, path: str) -> Inflate:
    if codec in ("null", "zstandard", "deflate", "snappy", "bzip2", "xz"):
        return inflater(codec, path)
    raise UnsupportedError(f"{path}: Avro codec {codec!r} is not supported", feature=f"Avro codec {codec}", path=path)


def _group(blocks: Iterable[Any], pieces: _Pieces, most: int) -> Iterator[list[Record]]:
    """Decode blocks into lists of at most `most` records; a list also ends early after large blocks."""
    chunk: list[Record] = []
    start = pieces.passed_bytes
    for block in blocks:
        records = iter(block)
        while piece := list(itertools.islice(records, most - len(chunk))):
            chunk = chunk + piece if chunk else piece
            if len(chunk) >= most:
                yield chunk
                chunk, start = [], pieces.passed_bytes
        if chunk and pieces.passed_bytes - start >= _CHUNK_PAYLOAD_BYTES:
            yield chunk
            chunk, start = [], pieces.passed_bytes
    if chunk:
        yield chunk


class _Bound(NamedTuple):
    """The maximum inflated size of a block: a fixed number of bytes plus a multiple of its compressed size."""

    free_bytes: int
    times: int

    @classmethod
    def of(cls, shape: Shape) -> _Bound:
        """The bound for records of a shape. Arrays have a lower one: a byte may become a large object."""
        kinds = _item_kinds(shape)
        if not kinds:
            return cls(_FREE_BYTES, _BLOCK_INFLATION_MAX)
        return cls(_FREE_BYTES // (16 if "record" in kinds else 4), _ITEMS_INFLATION_MAX)

    def limit(self, size: int) -> int:
        """The bound for a block of `size` bytes."""
        return min(self.free_bytes + self.times * size, MAX_BLOCK_BYTES)


def _item_kinds(shape: Shape) -> set[str]:
    """The kinds of the items of all arrays and maps in a shape; the items of a map are records."""
    kinds = set().union(*map(_item_kinds, shape.parts))
    if shape.kind == "array":
        kinds.update(part.kind for part in (shape.parts[0], *shape.parts[0].parts))
    return kinds | {"record"} if shape.kind == "map" else kinds


def readable(schema: Any) -> Any:
    """Parse a schema for `record_of`.

    Raises: CorruptionError if it is not an Avro schema.
    """
    module = fastavro()
    try:
        return module.parse_schema(schema)
    except (*_BROKEN, module.schema.SchemaParseException, module.schema.UnknownType) as error:
        raise CorruptionError(f"not an Avro schema: {error!r}") from error


def record_of(data: bytes, schema: Any) -> Any:
    """Decode one record without a container.

    Raises: CorruptionError if the bytes are not exactly one record of the schema.
    """
    module, rest = fastavro(), io.BytesIO(data)
    try:
        found = module.schemaless_reader(rest, schema, None)
    except (*_BROKEN, module.read.SchemaResolutionError) as error:
        raise CorruptionError(f"the record is damaged: {error!r}") from error
    if rest.tell() != len(data):
        raise CorruptionError("there are bytes after the record")
    return found
