"""Data files of the format `row`: rows one after the other, in blocks. Read only.

Source: format.md §28.4; Java `RowFileFormat`, release 2.0.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import zstandard
from pyroaring import BitMap

from paimon_py.codec.arrow_types import to_arrow_field
from paimon_py.codec.blobs import decode_deltas
from paimon_py.codec.columns import Ints
from paimon_py.errors import UnsupportedError
from paimon_py.expr.predicate import Predicate
from paimon_py.formats.base import (
    OpenFile,
    ReadOnlyFormat,
    ReadSettings,
    decoding,
    empty_rows,
    row_batches,
)
from paimon_py.formats.from_python import array_of
from paimon_py.formats.parts import Parts
from paimon_py.formats.row.values import Cursor, leaf_array, row_reader
from paimon_py.formats.stored import check_absent
from paimon_py.lazy import lazy_property
from paimon_py.spec.file_rules import MERGED_ROWS, MERGED_ROWS_HINT
from paimon_py.spec.schema import VALUE_KIND
from paimon_py.spec.types import Field

_FOOTER = struct.Struct("<qiqiB3xi")
_MAGIC = 0x524F5753
_VERSION = 1
_BLOCK_MAX = 1 << 31
_DEFAULTS = ReadSettings()


class RowFormat(ReadOnlyFormat):
    """Format `row`."""

    name = "row"

    def open(
        self, source: BinaryIO, path: str, fields: Sequence[Field], size_bytes: int, settings: ReadSettings = _DEFAULTS
    ) -> OpenFile:
        return RowOpenFile(source, path, fields, size_bytes, settings)


class RowOpenFile:
    """See `OpenFile`. All columns of a row are decoded to find the next one; blocks without a wanted row are skipped.
    """

    def __init__(
        self, source: BinaryIO, path: str, fields: Sequence[Field], size_bytes: int, settings: ReadSettings
    ) -> None:
        """Raises: UnsupportedError for a file of a table with primary keys."""
        self._source = source
        self._path = path
        self._fields = {field.name: field for field in fields}
        self._settings = settings
        if any(field.name == VALUE_KIND for field in settings.stored):
            raise UnsupportedError(f"{path}: {MERGED_ROWS}; {MERGED_ROWS_HINT}", feature=MERGED_ROWS, path=path)
        with decoding(path):
            self._rows, self._sizes, self._unpacked, self._firsts = self._index(size_bytes)

    @property
    def row_count(self) -> int:
        return self._rows

    def positioned_batches(
        self,
        columns: Sequence[str],
        *,
        batch_rows: int,
        predicate: Predicate | None = None,
        rows: BitMap | None = None,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        stored = {field.name: place for place, field in enumerate(self._settings.stored)}
        fields = [self._fields[name] for name in columns]
        for field in fields:
            if field.name not in stored:
                check_absent(self._path, field, list(stored), self._settings)
        schema = pa.schema([to_arrow_field(field) for field in fields])
        with decoding(self._path):
            read = row_reader(self._settings.stored)
        for position, groups in self.parts(predicate, rows).stretches():
            for group in groups:
                with decoding(self._path):
                    found = self._block(group, read) if columns else []
                    count = self._counts[group]
                    arrays = [
                        array_of([row[stored[field.name]] for row in found], field.type, target.type, leaf_array)
                        if field.name in stored
                        else pa.nulls(count, target.type)
                        for field, target in zip(fields, schema, strict=True)
                    ]
                    whole = pa.RecordBatch.from_arrays(arrays, schema=schema) if columns else empty_rows(count)
                for piece in row_batches(whole, batch_rows):
                    yield position, piece
                    position += piece.num_rows

    def parts(self, predicate: Predicate | None = None, rows: BitMap | None = None) -> Parts:  # noqa: ARG002
        return Parts.of(self._counts, None, rows)

    def close(self) -> None:
        self._source.close()

    @lazy_property
    def _counts(self) -> list[int]:
        """Rows of each block."""
        counts: list[int] = np.diff(np.append(self._firsts, self._rows)).tolist()
        return counts

    def _index(self, size_bytes: int) -> tuple[int, Ints, Ints, Ints]:
        """Rows of the file; of each block its size, its size once unpacked, and its first row."""
        self._source.seek(max(0, size_bytes - _FOOTER.size))
        footer = self._source.read(_FOOTER.size)
        if len(footer) != _FOOTER.size:
            raise ValueError("the file is shorter than its manifest entry says")
        rows, blocks, offset, length, version, magic = _FOOTER.unpack(footer)
        if magic != _MAGIC:
            raise ValueError("the file does not end as one of the format row does")
        if version != _VERSION:
            raise UnsupportedError(f"version {version} of the format row", feature="file.format=row of another version")
        if not 0 <= offset <= offset + length <= size_bytes - _FOOTER.size or rows < 0:
            raise ValueError("the index of blocks is outside the file")
        self._source.seek(offset)
        cursor = Cursor(self._source.read(length))
        lists = [decode_deltas(cursor.take(cursor.size()), self._path) for _ in range(3)]
        sizes, unpacked, firsts = lists
        whole = all(len(each) == blocks for each in lists) and cursor.at == length
        rising = blocks == 0 or (int(firsts[0]) == 0 and bool((np.diff(np.append(firsts, rows)) > 0).all()))
        if not whole or not rising or (blocks == 0) != (rows == 0) or int(sizes.sum()) != offset:
            raise ValueError("the index of blocks does not fit the file")
        if blocks and not 0 < int(unpacked.min()) <= int(unpacked.max()) < _BLOCK_MAX:
            raise ValueError("a block has a size that none has")
        return rows, sizes, unpacked, firsts

    def _block(self, number: int, read: object) -> list[list[object]]:
        """The rows of a block. Raises: ValueError where they do not fill it exactly."""
        assert callable(read)
        self._source.seek(int(self._sizes[:number].sum()))
        packed = self._source.read(int(self._sizes[number]))
        size, count = int(self._unpacked[number]), self._counts[number]
        try:
            if zstandard.frame_content_size(packed) not in (-1, size):
                raise ValueError("a block has another size than its index says")
            data = zstandard.ZstdDecompressor().decompress(packed, max_output_size=size)
        except zstandard.ZstdError as error:
            raise ValueError(f"a block cannot be unpacked: {error}") from error
        end = len(data) - 4 * (count + 1)
        if len(data) != size or end < 0 or int.from_bytes(data[-4:], "little") != count:
            raise ValueError("a block has another size or other rows than its index says")
        begins = [*np.frombuffer(data, "<i4", count, end).tolist(), end]
        cursor, found = Cursor(data[:end]), []
        for begin, stop in itertools.pairwise(begins):
            if begin != cursor.at:
                raise ValueError("a row does not begin where the one before it ends: it has other columns")
            found.append(read(cursor))
            if cursor.at != stop:
                raise ValueError("a row does not end where the next one begins: it has other columns")
        return found
