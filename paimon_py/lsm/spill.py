"""Sorted runs of a write buffer on local disk: compressed Arrow streams that are finally merged into one run.

Source: Java `BinaryExternalSortBuffer`, `BinaryExternalMerger`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial

import msgspec
import pyarrow as pa

from paimon_py.codec.row_size import pieces_of, row_bytes
from paimon_py.env import SpillFile, SpillPlace
from paimon_py.errors import OptionError, StorageError
from paimon_py.logs import SPILLS, fields
from paimon_py.lsm.groups import Groups, Merged
from paimon_py.lsm.merge import Plan, RunSource, merge
from paimon_py.lsm.spill_errors import spilling
from paimon_py.memory import MemoryShares
from paimon_py.spec.options import Options

_RUN_BYTES = 64 << 20
_BLOCK_BYTES = 1 << 20
_OF_RUNS = 32
_WORTH_COMPRESSING = 0.5
_PLAIN = pa.ipc.IpcWriteOptions(use_threads=False)
_CODECS = {"zstd": "zstd", "lz4": "lz4", "lzo": "lz4", "none": None}
"""The files are private to one writer: if a table sets LZO, which Arrow does not support, LZ4 is used instead."""


class SpillSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The spill settings of a table.

    Attributes:
        compresses_all: compress also if the first block compresses badly; true if the table sets a compression.
        max_runs: the number of runs that are merged, and of files that are open, at once.
        max_bytes: the disk space of one bucket's runs from which rows are written to level 0 instead.
        run_bytes: the size of the rows that are sorted at once; sorting takes the same amount of memory again.
        block_bytes: the unit of compression, which each open run holds in memory.
    """

    compression: str | None = "zstd"
    zstd_level: int = 1
    compresses_all: bool = True
    max_runs: int = 128
    max_bytes: int = (1 << 63) - 1
    run_bytes: int = _RUN_BYTES
    block_bytes: int = _BLOCK_BYTES

    def within(self, memory: MemoryShares) -> SpillSettings:
        """The same settings with shorter runs where the process has little memory."""
        return msgspec.structs.replace(self, run_bytes=memory.cap(self.run_bytes, _OF_RUNS))

    @classmethod
    def of(cls, options: Options) -> SpillSettings:
        """The settings of a table.

        Raises:
            OptionError: an unknown compression.
        """
        name = options.get_str("spill-compression").lower()
        if name not in _CODECS:
            known = ", ".join(_CODECS)
            message = f"'spill-compression' is {name!r}; allowed: {known}"
            raise OptionError(message, option="spill-compression", value=name)
        return cls(
            compression=_CODECS[name],
            zstd_level=options.get_int("spill-compression.zstd-level"),
            compresses_all=options.is_set("spill-compression") or options.is_set("spill-compression.zstd-level"),
            max_runs=max(2, options.get_int("local-sort.max-num-file-handles")),
            max_bytes=options.get_memory("write-buffer-spill.max-disk-size"),
            run_bytes=min(_RUN_BYTES, options.get_memory("write-buffer-size") // 4),
        )


class _Run(msgspec.Struct, frozen=True):
    file: SpillFile
    row_count: int
    row_bytes: int
    size_bytes: int
    schema: pa.Schema | None


class EveryRow:
    """An engine that merges nothing: returns all versions of a key, oldest first."""

    def inputs(self, wanted: frozenset[str]) -> frozenset[str]:
        """Only the wanted columns."""
        return wanted

    def __call__(self, groups: Groups, columns: Mapping[str, pa.ChunkedArray]) -> Merged:
        """All rows."""
        del columns
        return Merged(groups.order)


class SpilledRuns:
    """The runs of one bucket, oldest first. The caller must call `clear` at the end."""

    def __init__(self, place: SpillPlace, settings: SpillSettings) -> None:
        self._place = place
        self.settings = settings
        self._runs: list[_Run] = []
        self._chosen: pa.ipc.IpcWriteOptions | None = None

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def size_bytes(self) -> int:
        """The disk space in use, in bytes."""
        return sum(run.size_bytes for run in self._runs)

    @property
    def is_full(self) -> bool:
        """Whether the disk space that the table's options allow is used up."""
        return self.size_bytes >= self.settings.max_bytes

    def add(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Write one more run, newer than all others.

        Shapes: batches ordered by key, then oldest first, with the same columns in every run.
        Raises: StorageError: the local disk failed.
        """
        run = self._write_run(batches)
        self._runs.append(run)
        SPILLS.info(
            "spilled %d rows, %d bytes, to %s", run.row_count, run.size_bytes, run.file.path,
            extra=fields(None, rows=run.row_count, size_bytes=run.size_bytes),
        )  # fmt: skip

    def merge(self, plan: Plan) -> Iterator[pa.RecordBatch]:
        """Merge all runs; they are kept until `clear`.

        Cost: memory as of `merge`, and a block for each open run. Above `max_runs`, neighbouring runs are merged first,
            the fewest and smallest that suffice.
        Raises: StorageError: the local disk failed.
        """
        most = self.settings.max_runs
        while len(self._runs) > most:
            count = min(most, len(self._runs) - most + 1)
            self._unite(self._lightest(count), count, plan)
        return merge(_sources(self._runs), plan)

    def clear(self) -> None:
        """Delete all runs.

        Raises:
            StorageError: one could not be deleted; all were tried.
        """
        runs, self._runs = self._runs, []
        _delete_all(runs)

    def _lightest(self, count: int) -> int:
        sizes = [run.size_bytes for run in self._runs]
        return min(range(len(sizes) - count + 1), key=lambda start: sum(sizes[start : start + count]))

    def _unite(self, start: int, count: int, plan: Plan) -> None:
        picked = self._runs[start : start + count]
        keep_all = msgspec.structs.replace(plan, engine=EveryRow() if plan.repeats else plan.engine, drop_deletes=False)
        united = self._write_run(merge(_sources(picked), keep_all))
        self._runs[start : start + count] = [united]
        _delete_all(picked)

    def _write_run(self, batches: Iterable[pa.RecordBatch]) -> _Run:
        with _explain("a temporary directory", OSError):
            file = self._place.create()
        try:
            with _explain(file.path, OSError):
                return self._write(file, batches)
        except BaseException:
            with suppress(OSError, StorageError):
                file.delete()
            raise

    def _write(self, file: SpillFile, batches: Iterable[pa.RecordBatch]) -> _Run:
        rows = plain_bytes = 0
        writer: pa.ipc.RecordBatchStreamWriter | None = None
        schema: pa.Schema | None = None
        with file.open_write() as sink:
            for batch in batches:
                if writer is None:
                    schema = batch.schema
                    writer = pa.ipc.new_stream(sink, batch.schema, options=self._options(batch))
                for block in pieces_of(batch, self.settings.block_bytes):
                    writer.write_batch(block)
                rows += batch.num_rows
                plain_bytes += row_bytes(batch)
            if writer is not None:
                writer.close()
            return _Run(file, rows, plain_bytes // max(1, rows), sink.tell(), schema)

    def _options(self, first: pa.RecordBatch) -> pa.ipc.IpcWriteOptions:
        """The write options of runs; the first run determines them."""
        if self._chosen is None:
            self._chosen = self._choose(first)
        return self._chosen

    def _choose(self, first: pa.RecordBatch) -> pa.ipc.IpcWriteOptions:
        name = self.settings.compression
        if name is None:
            return _PLAIN
        level = self.settings.zstd_level if name == "zstd" else None
        options = pa.ipc.IpcWriteOptions(compression=pa.Codec(name, compression_level=level), use_threads=False)
        if self.settings.compresses_all:
            return options
        block = next(pieces_of(first, self.settings.block_bytes))
        sink = pa.MockOutputStream()
        with pa.ipc.new_stream(sink, block.schema, options=options) as writer:
            writer.write_batch(block)
        return options if sink.size() < _WORTH_COMPRESSING * row_bytes(block) else _PLAIN


def _sources(runs: Sequence[_Run]) -> list[RunSource]:
    return [RunSource(run.file.path, run.row_count, run.row_bytes, partial(_read, run)) for run in runs]


def _read(run: _Run, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """The blocks of a run, in the sizes in which they were written."""
    del batch_rows
    with _explain(run.file.path, OSError, pa.ArrowException), run.file.open_read() as source:
        reader = pa.ipc.open_stream(source, options=pa.ipc.IpcReadOptions(use_threads=False))
        if not reader.schema.equals(run.schema):
            raise pa.ArrowInvalid("other columns than were written")
        for block in reader:
            block.validate()
            yield block


def _explain(path: str, *kinds: type[Exception]) -> AbstractContextManager[None]:
    otherwise = ", or set 'write-buffer-spillable' to 'false'"
    return spilling("the write buffer", path, *kinds, otherwise=otherwise)


def _delete_all(runs: Iterable[_Run]) -> None:
    failed: StorageError | None = None
    for run in runs:
        try:
            with _explain(run.file.path, OSError):
                run.file.delete()
        except StorageError as error:
            failed = failed or error
    if failed is not None:
        raise failed
