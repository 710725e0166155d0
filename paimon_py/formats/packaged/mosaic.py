"""Data files of the format `mosaic`, by the package `paimon-mosaic`.

Source: docs/decisions/0035-packaged-formats.md; Java's module `paimon-mosaic`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, BinaryIO

import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.formats.base import Encoder, FileWriter, OpenFile, ReadSettings, WriteSettings, row_batches
from paimon_py.formats.packaged.local import local_path
from paimon_py.formats.packaged.opened import PackagedOpenFile, load_package, packaged
from paimon_py.formats.packaged.written import packaged_encoder
from paimon_py.spec.types import Atomic, Field, Root

_DEFAULTS = ReadSettings()
_BUFFER_BYTES = 1 << 20


class MosaicFormat:
    """Format `mosaic`."""

    name = "mosaic"

    def open(
        self,
        source: BinaryIO,
        path: str,
        fields: Sequence[Field],
        size_bytes: int,
        settings: ReadSettings = _DEFAULTS,
    ) -> OpenFile:
        package = load_package("mosaic", self.name, path)
        return PackagedOpenFile(MosaicFile(package, source, path, size_bytes, settings), path, fields, settings)

    def create(self, sink: BinaryIO, fields: Sequence[Field], settings: WriteSettings) -> FileWriter:
        return self.encoder(fields, settings)(sink)

    def encoder(self, fields: Sequence[Field], settings: WriteSettings) -> Encoder:
        package = load_package("mosaic", self.name)
        options = package.WriterOptions(zstd_level=max(settings.zstd_level, 1))
        return packaged_encoder(self.name, fields, settings, partial(MosaicRows, package, options), _leaf_type)


class MosaicFile:
    """See `PackagedFile`. The package reads from several threads: files of other stores are copied to local disk."""

    def __init__(self, package: Any, source: BinaryIO, path: str, size_bytes: int, settings: ReadSettings) -> None:
        self._package = package
        self._size_bytes = size_bytes
        place, self._release = local_path(source, path, settings.spill)
        try:
            with packaged(path):
                self._source = pa.memory_map(place)
                opened = self._open()
                self._counts = [opened.row_group_num_rows(number) for number in range(opened.num_row_groups)]
                self.row_count = sum(self._counts)
                self.schema = opened.schema
        except BaseException:
            self._release()
            raise

    def batches(self, columns: Sequence[str], start: int, count: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
        opened, first = self._open(), 0
        opened.project(list(columns))
        for number, length in enumerate(self._counts):
            low, high = max(start - first, 0), min(start + count - first, length)
            first += length
            if low < high:
                group = opened.read_row_group(number).slice(low, high - low)
                yield from row_batches(group, batch_rows)

    def close(self) -> None:
        self._source.close()
        self._release()

    def _open(self) -> Any:
        source = self._source
        return self._package.MosaicReader.from_input_file(
            lambda offset, length: source.read_at(length, offset), self._size_bytes
        )


class MosaicRows:
    """See `WrittenFile`."""

    def __init__(self, package: Any, options: Any, path: str, schema: pa.Schema) -> None:
        self._sink = pa.OSFile(path, "wb")
        self._file = package.MosaicWriter(self._sink, schema, options)

    def write(self, batch: pa.RecordBatch) -> None:
        self._file.write(batch)

    def close(self) -> None:
        self._file.close()
        self._sink.close()

    def abort(self) -> None:
        self._file.close()
        self._sink.close()


def _leaf_type(kind: Atomic) -> pa.DataType:
    """The package knows neither seconds nor large binaries."""
    found = to_arrow_type(kind)
    if kind.root is Root.BLOB:
        return pa.binary()
    return pa.timestamp("ms", found.tz) if pa.types.is_timestamp(found) and found.unit == "s" else found
