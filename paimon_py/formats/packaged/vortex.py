"""Data files of the format `vortex`, by the package `vortex-data`.

Source: docs/decisions/0035-packaged-formats.md; Java's module `paimon-vortex`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from paimon_py.errors import PaimonError
from paimon_py.formats.base import Encoder, FileWriter, OpenFile, ReadSettings, WriteSettings
from paimon_py.formats.packaged.local import SPILL, local_path
from paimon_py.formats.packaged.opened import PackagedOpenFile, load_package, packaged
from paimon_py.formats.packaged.written import packaged_encoder
from paimon_py.spec.types import Field
from paimon_py.storage.range_reader import RangeReader

_DEFAULTS = ReadSettings()
_SCANNED_ROWS = 1 << 20
"""The rows of one scan, whose positions are a list."""

_EDITION = "core2025.10.0"
"""The oldest set of encodings: later ones end a reader of the release that pypaimon requires."""


class VortexFormat:
    """Format `vortex`."""

    name = "vortex"

    def open(
        self, source: BinaryIO, path: str, fields: Sequence[Field], size_bytes: int, settings: ReadSettings = _DEFAULTS
    ) -> OpenFile:
        package = load_package("vortex", self.name, path)
        return PackagedOpenFile(VortexFile(package, source, path, size_bytes, settings), path, fields, settings)

    def create(self, sink: BinaryIO, fields: Sequence[Field], settings: WriteSettings) -> FileWriter:
        return self.encoder(fields, settings)(sink)

    def encoder(self, fields: Sequence[Field], settings: WriteSettings) -> Encoder:
        package = load_package("vortex.io", self.name)
        return packaged_encoder(self.name, fields, settings, partial(VortexRows, package))


class VortexFile:
    """See `PackagedFile`. Ranges of the file are fetched from its source, one at a time.

    Releases before 0.93 read local files alone: others are copied to local disk first.
    """

    def __init__(self, vortex: Any, source: BinaryIO, path: str, size_bytes: int, settings: ReadSettings) -> None:
        """`vortex`: the package."""
        self._array = vortex.array
        self._source = _Source(source, size_bytes)
        self._release: Callable[[], None] = source.close
        with packaged(path):
            if hasattr(vortex, "open_readable"):
                self._file = self._source.call(lambda: vortex.open_readable(self._source, without_segment_cache=True))
            else:
                place, self._release = local_path(source, path, settings.spill)
                self._file = vortex.open(place)
            self.row_count = len(self._file)
            self.schema = self._file.dtype.to_arrow_schema()

    def batches(self, columns: Sequence[str], start: int, count: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
        is_whole = start == 0 and count == self.row_count
        for begin in [start] if is_whole else range(start, start + count, _SCANNED_ROWS):
            indices = None
            if not is_whole:
                indices = self._array(pa.array(np.arange(begin, min(begin + _SCANNED_ROWS, start + count))))
            scan = self._file.scan(list(columns), indices=indices, batch_size=batch_rows)
            found = scan.to_arrow()
            while (batch := self._source.call(partial(next, found, None))) is not None:
                yield batch

    def close(self) -> None:
        self._release()


class _Source(RangeReader):
    """The open file, for threads of the package, which read one after the other; keeps the error of a read."""

    def __init__(self, source: BinaryIO, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self._source = source
        self._failed: PaimonError | None = None

    def _read_at(self, start: int, length: int) -> bytes:
        try:
            self._source.seek(start)
            return self._source.read(length)
        except PaimonError as error:
            self._failed = error
            raise

    def call(self, work: Callable[[], Any]) -> Any:
        """The result of a call of the package. Raises: the error of the store, if a read failed."""
        try:
            return work()
        except Exception as error:
            if self._failed is not None:
                raise self._failed from error
            raise


class VortexRows:
    """See `WrittenFile`. The package takes all rows at once: they are stored as Arrow until then."""

    def __init__(self, package: Any, path: str, schema: pa.Schema) -> None:
        """`package`: its module `io`."""
        self._options = package.VortexWriteOptions.default()
        if hasattr(self._options, "with_edition"):
            self._options = self._options.with_edition(_EDITION)
        self._path = path
        self._stored = SPILL.create()
        self._sink = self._stored.open_write()
        self._rows = pa.ipc.new_stream(self._sink, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        self._rows.write_batch(batch)

    def close(self) -> None:
        self._rows.close()
        self._sink.close()
        with pa.memory_map(self._stored.path) as source, pa.ipc.open_stream(source) as rows:
            self._options.write(rows, self._path)

    def abort(self) -> None:
        self._sink.close()
        self._stored.delete()
