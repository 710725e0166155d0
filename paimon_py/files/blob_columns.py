"""Reads a BLOB column: the value of each row comes from the newest `.blob` file that stores it.

    rows        0   1   2   3   4   5
    older       a   b   –   d             one file of rows 0 – 3
    older                       e   f     one of rows 4 and 5
    newer       A   ·   ·   –             · the row has its value in an older file, – NULL
    column      A   b   –   –   e   f

Source: format.md §26; Java `BlobFallbackRecordReader`, `BlobFormatReader`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, cast

import msgspec
import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from paimon_py.codec.arrow_types import to_arrow_schema, to_arrow_type
from paimon_py.codec.bitmaps import positions_of
from paimon_py.codec.blob_refs import BlobRef
from paimon_py.codec.blobs import (
    ENTRY_BYTES,
    FOOTER_BYTES,
    HEAD_BYTES,
    PLACEHOLDER,
    Blob,
    BlobIndex,
    decode_index,
    decode_nested,
    index_bytes,
    payload_of,
)
from paimon_py.codec.columns import Ints
from paimon_py.errors import CorruptionError
from paimon_py.formats.parquet.fetch import Fetches
from paimon_py.spec.blobs import is_blob
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.types import DataType, Field

Pieces = Iterator[tuple[int, pa.RecordBatch]]
OpenFile = Callable[[DataFile], BinaryIO]
PathOf = Callable[[DataFile], str]

BATCH_BYTES = 32 << 20
"""The target size of a batch; a larger value gets its own batch."""

_BATCH_ROWS = 65_536
_GAP_ROWS = 4_096
"""The number of consecutive skipped rows that ends a batch."""

_NOWHERE = -1


class BlobFiles(msgspec.Struct, frozen=True):
    """The `.blob` files of one column, newest first, and the functions that open them."""

    files: tuple[DataFile, ...]
    open: OpenFile
    path: PathOf


class _Places(msgspec.Struct, frozen=True):
    """The location of each row's value: the index of the file (−1: NULL), and the entry in it."""

    numbers: Ints
    offsets: Ints
    lengths: Ints


class BlobColumn:
    """One column of the rows with ids from `first_row_id`."""

    def __init__(self, field: Field, files: BlobFiles, first_row_id: int, row_count: int) -> None:
        self._field = field
        self._files = files
        self._first = first_row_id
        self._count = row_count

    def pieces(self, rows: BitMap | None, *, as_refs: bool, first_rows: int | None = None) -> Pieces:
        """The values in batches, each with the position of its first row.

        Shapes: out — batches with one column.
        Args:
            rows: requested positions; others may be missing, or have empty values.
            as_refs: return references instead of the bytes.
            first_rows: the caller may end after so many requested rows: the first batch has at most these.
        Cost: reads the index of each file, and the bytes of the requested rows; a batch takes about 32 MB of memory.
        Raises: CorruptionError for damaged files.
        """
        places = self._places()
        schema, reader = to_arrow_schema([self._field]), _EntryReader(self._files)
        try:
            for start, stop, wanted in self._stretches(places, rows, first_rows, as_refs=as_refs):
                column = self._column(reader, places, start, wanted, stop - start, as_refs=as_refs)
                yield start, pa.RecordBatch.from_arrays([column], schema=schema)
        finally:
            reader.close()

    def _places(self) -> _Places:
        """The location of each row's value, from the indexes alone."""
        numbers = np.full(self._count, _NOWHERE, np.int64)
        offsets, lengths = np.zeros(self._count, np.int64), np.full(self._count, _NOWHERE, np.int64)
        open_rows = np.ones(self._count, np.bool_)
        ages = itertools.groupby(enumerate(self._files.files), key=lambda each: each[1].max_sequence)
        for _, files in ages:
            decided = np.zeros(self._count, np.bool_)
            for number, file in files:
                index, start = self._index(file), self._start(file)
                part = slice(start, start + file.row_count)
                said = index.lengths != PLACEHOLDER
                if bool((decided[part] & said).any()):
                    raise CorruptionError(f"{file.name} and another file of its age hold one column of the same rows")
                taken = np.flatnonzero(said & open_rows[part])
                stored = index.lengths[taken] >= 0
                numbers[start + taken] = np.where(stored, number, _NOWHERE)
                offsets[start + taken], lengths[start + taken] = index.offsets[taken], index.lengths[taken]
                decided[start + taken] = True
            open_rows &= ~decided
        return _Places(numbers, offsets, lengths)

    def _start(self, file: DataFile) -> int:
        assert file.first_row_id is not None
        return file.first_row_id - self._first

    def _index(self, file: DataFile) -> BlobIndex:
        path, size = self._files.path(file), file.size_bytes
        with self._files.open(file) as source:
            source.seek(max(size - FOOTER_BYTES, 0))
            length = index_bytes(source.read(FOOTER_BYTES), path)
            end = size - FOOTER_BYTES - length
            if end < 0:
                raise CorruptionError(f"the index of {path} is longer than the file", path=path)
            source.seek(end)
            index = decode_index(source.read(length), end, path)
        if len(index.lengths) != file.row_count:
            found = len(index.lengths)
            raise CorruptionError(f"{path} has {found} rows, its manifest entry says {file.row_count}", path=path)
        return index

    def _stretches(
        self, places: _Places, rows: BitMap | None, first_rows: int | None, *, as_refs: bool
    ) -> Iterator[tuple[int, int, Ints]]:
        """The start and end of each batch, and its requested rows."""
        wanted: Ints = np.arange(self._count) if rows is None else positions_of(rows & BitMap(range(self._count)))
        if not len(wanted):
            return
        sizes = np.maximum(places.lengths[wanted], 0)
        sums = np.cumsum(np.zeros_like(sizes) if as_refs and is_blob(self._field.type) else sizes)
        first = 0
        while first < len(wanted):
            before = int(sums[first - 1]) if first else 0
            by_bytes = int(np.searchsorted(sums, before + BATCH_BYTES, side="right"))
            by_rows = int(np.searchsorted(wanted, wanted[first] + _BATCH_ROWS))
            end = min(max(by_bytes, first + 1), by_rows)
            gaps = np.flatnonzero(np.diff(wanted[first:end]) > _GAP_ROWS)
            end = first + int(gaps[0]) + 1 if len(gaps) else end
            end = end if first or not first_rows else min(end, first_rows)
            yield int(wanted[first]), int(wanted[end - 1]) + 1, wanted[first:end]
            first = end

    def _column(
        self, reader: _EntryReader, places: _Places, start: int, wanted: Ints, count: int, *, as_refs: bool
    ) -> pa.Array:
        kind = self._field.type
        if as_refs and is_blob(kind):
            refs = [self._ref(places, row) for row in wanted.tolist()]
            return _spread_values(refs, wanted - start, count, kind)
        payloads = reader.payloads(places, wanted)
        if is_blob(kind):
            return _spread_values(payloads, wanted - start, count, kind)
        nested = [self._read_nested(places, row, payload, as_refs=as_refs)
                  for row, payload in zip(wanted.tolist(), payloads, strict=True)]  # fmt: skip
        values: list[object] = [None] * count
        for at, value in zip((wanted - start).tolist(), nested, strict=True):
            values[at] = value
        return pa.array(values, to_arrow_type(kind))

    def _ref(self, places: _Places, row: int) -> bytes | None:
        number = int(places.numbers[row])
        if number == _NOWHERE:
            return None
        path = self._files.path(self._files.files[number])
        return bytes(BlobRef(path, int(places.offsets[row]) + HEAD_BYTES, int(places.lengths[row]) - ENTRY_BYTES))

    def _read_nested(
        self, places: _Places, row: int, payload: memoryview | None, *, as_refs: bool
    ) -> list[object] | None:
        if payload is None:
            return None
        path = self._files.path(self._files.files[int(places.numbers[row])])
        keys, blobs = decode_nested(self._field.type, payload, path)
        if as_refs:
            ref = _refs_inside(payload, int(places.offsets[row]) + HEAD_BYTES, path)
            blobs = [ref(blob) for blob in blobs]
        return list(blobs) if keys is None else list(zip(keys, blobs, strict=True))


def _refs_inside(payload: memoryview, begin: int, path: str) -> Callable[[Blob | None], bytes | None]:
    """A function that returns references to parts of a payload, which begins at a position of its file."""
    address = np.frombuffer(payload, np.uint8).ctypes.data

    def ref(part: Blob | None) -> bytes | None:
        if part is None:
            return None
        at = np.frombuffer(part, np.uint8).ctypes.data - address if len(part) else 0
        return bytes(BlobRef(path, begin + at, len(part)))

    return ref


class _EntryReader:
    """Reads entries; keeps one file open at a time."""

    def __init__(self, files: BlobFiles) -> None:
        self._files = files
        self._open: tuple[int, BinaryIO] | None = None

    def payloads(self, places: _Places, rows: Ints) -> list[memoryview | None]:
        """The payloads of rows, in order. Adjacent entries are read together."""
        found: list[memoryview | None] = [None] * len(rows)
        numbers, offsets, lengths = places.numbers[rows], places.offsets[rows], places.lengths[rows]
        stored = np.flatnonzero(numbers != _NOWHERE)
        if not len(stored):
            return found
        ends = offsets[stored] + lengths[stored]
        apart = (np.diff(numbers[stored]) != 0) | (offsets[stored][1:] != ends[:-1])
        for run in np.split(stored, np.flatnonzero(apart) + 1):
            begin, end = int(offsets[run[0]]), int(offsets[run[-1]] + lengths[run[-1]])
            file = self._files.files[int(numbers[run[0]])]
            path, data = self._files.path(file), self._read(int(numbers[run[0]]), begin, end)
            for at in run.tolist():
                low = int(offsets[at]) - begin
                found[at] = payload_of(data[low : low + int(lengths[at])], path, int(rows[at]))
        return found

    def _read(self, number: int, begin: int, end: int) -> memoryview:
        file = self._files.files[number]
        if self._open is None or self._open[0] != number:
            self.close()
            self._open = (number, self._files.open(file))
        source = self._open[1]
        if hasattr(source, "fetch"):
            cast(Fetches, source).fetch([(begin, end - begin)])
        source.seek(begin)
        data = source.read(end - begin)
        if len(data) != end - begin:
            path = self._files.path(file)
            raise CorruptionError(f"{path} ends within an entry", path=path)
        return memoryview(data)

    def close(self) -> None:
        if self._open is not None:
            self._open[1].close()
            self._open = None


def _spread_values(values: Sequence[bytes | memoryview | None], rows: Ints, count: int, kind: DataType) -> pa.Array:
    """An array of `count` rows with values at some of them; the others are empty."""
    sizes, known = np.zeros(count, np.int64), np.ones(count, np.bool_)
    sizes[rows] = [0 if value is None else len(value) for value in values]
    known[rows] = [value is not None for value in values]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    data = b"".join(value for value in values if value is not None)
    bits = None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little").tobytes())
    nulls = int(count - np.count_nonzero(known))
    return pa.Array.from_buffers(
        to_arrow_type(kind), count, [bits, pa.py_buffer(offsets.tobytes()), pa.py_buffer(data)], nulls
    )
