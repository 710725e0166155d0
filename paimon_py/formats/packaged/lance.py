"""Data files of the format `lance`, by the package `pylance`.

Source: docs/decisions/0035-packaged-formats.md; Java's module `paimon-lance`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, BinaryIO

import pyarrow as pa

from paimon_py.formats.base import Encoder, FileWriter, OpenFile, ReadSettings, WriteSettings
from paimon_py.formats.packaged.local import local_path
from paimon_py.formats.packaged.opened import PackagedOpenFile, load_package, packaged
from paimon_py.formats.packaged.written import packaged_encoder
from paimon_py.spec.types import Field

_DEFAULTS = ReadSettings()
_AHEAD = 2
"""Batches that are decoded ahead of the reader."""

_VERSION = "2.1"
"""The version of the format in new files: the releases of pypaimon read no later one."""


class LanceFormat:
    """Format `lance`."""

    name = "lance"

    def open(
        self,
        source: BinaryIO,
        path: str,
        fields: Sequence[Field],
        size_bytes: int,  # noqa: ARG002
        settings: ReadSettings = _DEFAULTS,
    ) -> OpenFile:
        reader = load_package("lance.file", self.name, path).LanceFileReader
        return PackagedOpenFile(LanceFile(reader, source, path, settings), path, fields, settings)

    def create(self, sink: BinaryIO, fields: Sequence[Field], settings: WriteSettings) -> FileWriter:
        return self.encoder(fields, settings)(sink)

    def encoder(self, fields: Sequence[Field], settings: WriteSettings) -> Encoder:
        writer = load_package("lance.file", self.name).LanceFileWriter
        return packaged_encoder(self.name, fields, settings, partial(LanceRows, writer))


class LanceFile:
    """See `PackagedFile`. The package reads local files; others are copied to local disk first."""

    def __init__(self, reader: Any, source: BinaryIO, path: str, settings: ReadSettings) -> None:
        """`reader`: the class of the package."""
        self._reader = reader
        self._place, self._release = local_path(source, path, settings.spill)
        try:
            with packaged(path):
                metadata = reader(self._place).metadata()
                self.row_count = metadata.num_rows
                self.schema = metadata.schema
        except BaseException:
            self._release()
            raise

    def batches(self, columns: Sequence[str], start: int, count: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
        opened = self._reader(self._place, columns=list(columns))
        found = opened.read_range(start, count, batch_size=batch_rows, batch_readahead=_AHEAD)
        yield from found.to_batches()

    def close(self) -> None:
        self._release()


class LanceRows:
    """See `WrittenFile`. Rows are copied: the package takes no slices of texts."""

    def __init__(self, writer: Any, path: str, schema: pa.Schema) -> None:
        """`writer`: the class of the package."""
        self._file = writer(path, schema, version=_VERSION)

    def write(self, batch: pa.RecordBatch) -> None:
        self._file.write_batch(pa.ipc.read_record_batch(batch.serialize(), batch.schema))

    def close(self) -> None:
        self._file.close()

    def abort(self) -> None: ...
