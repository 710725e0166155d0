"""Writes one ORC file.

Source: format.md §8.4, §9; Java `OrcWriterFactory`, `RowDataVectorizer`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from pyarrow import orc

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.columns import from_numpy, numpy_values, validity_mask
from paimon_py.codec.row_size import row_bytes
from paimon_py.errors import OptionError, SchemaError, UnsupportedError
from paimon_py.formats.base import (
    LAST_SECOND_FEATURE,
    YEARS_FEATURE,
    ColumnBounds,
    WriteSettings,
    flag_option,
    number_option,
)
from paimon_py.formats.bounds import RunningBounds
from paimon_py.formats.field_ids import identified_schema
from paimon_py.formats.guards import GuardedSink
from paimon_py.formats.orc.old_times import with_old_times
from paimon_py.formats.reshape import TIMESTAMPS, as_leaf, leaves, reshape
from paimon_py.spec.bounds import TIME_SECONDS_MAX
from paimon_py.spec.types import Atomic, Field, Root

LEGACY_LTZ = "orc.timestamp-ltz.legacy.type"

_CODECS = {"none": "uncompressed", "zlib": "zlib", "snappy": "snappy", "lz4": "lz4", "zstd": "zstd"}
_UNWRITABLE = ("lzo", "brotli")
_SMALL_LEVEL = 3
_LEVELS = {"speed": 1, "compression": _SMALL_LEVEL}
_PER_SECOND = {"ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_MEMORY_BLOCK = 64 << 10
_MANY_COLUMNS = 200
_UNBOUNDED = frozenset({Root.BINARY, Root.VARBINARY})


class OrcFileWriter:
    """Passes batches to the native writer, which collects stripes; see `FileWriter`.

    Cost: 0.9 to 1.5 MB of memory per column, 0.6 to 0.9 MB with 200 or more columns.

    Timestamps with local time zone are written as plain timestamps in UTC if `orc.timestamp-ltz.legacy.type` is true,
    else as instants; Java then reads the correct time in every zone.
    Cost: the buffers of the native writer; from the first time before 1970 with a fraction of a second on, also the
      compressed bytes of the rest of the file, which is written at the end.
    """

    def __init__(self, sink: BinaryIO, fields: Sequence[Field], settings: WriteSettings) -> None:
        self._sink = GuardedSink(sink, quiet=True)
        self._fields = tuple(fields)
        legacy = flag_option(settings.options, LEGACY_LTZ, default=True)
        self._schema = identified_schema(fields, b"paimon.id", lambda kind: _layout(kind, legacy=legacy))
        self._checked = [any(leaf.root in TIMESTAMPS for leaf in leaves(field.type)) for field in fields]
        self._nested = [not isinstance(field.type, Atomic) for field in fields]
        self._bounds = [_tracker(field, settings.without_stats) for field in fields]
        self._arguments = _arguments(settings, sum(len(leaves(field.type)) for field in fields))
        self._level = _LEVELS[self._arguments["compression_strategy"]]
        self._holds = False
        self._writer: orc.ORCWriter | None = None
        self._raw_bytes = self._raw_at_position = 0
        self._rows = 0

    @property
    def row_count(self) -> int:
        return self._rows

    @property
    def bytes_written(self) -> int:
        position = self._position
        ratio = position / self._raw_at_position if self._raw_at_position else 1.0
        return position + int((self._raw_bytes - self._raw_at_position) * min(ratio, 1.0))

    @property
    def _position(self) -> int:
        return self._sink.position + self._sink.held_bytes

    def write(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows == 0:
            return
        physical = self._physical(batch)
        position = self._position
        with self._encoding() as writer:
            writer.write(pa.Table.from_batches([physical]))
        for field, tracker in zip(self._fields, self._bounds, strict=True):
            tracker.add(batch.column(field.name))
        self._rows += batch.num_rows
        self._raw_bytes += row_bytes(physical)
        if self._position > max(position, 3):
            self._raw_at_position = self._raw_bytes

    def close(self) -> list[ColumnBounds]:
        with self._encoding() as writer:
            if self._rows == 0:
                writer.write(self._schema.empty_table())
            writer.close()
            if self._holds:
                end = self._sink.release()
                self._sink.write(with_old_times(self._sink.position, end, self._level))
        return [tracker.result() for tracker in self._bounds]

    def abort(self) -> None:
        if self._writer is not None:
            with contextlib.suppress(pa.ArrowException, OSError):
                self._writer.close()
            self._writer.is_open = False

    def _physical(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = []
        whole = from_numpy(np.arange(batch.num_rows), pa.int64())
        for field, target, checked, nested in zip(self._fields, self._schema, self._checked, self._nested, strict=True):
            # pyarrow's ORC writer ignores the offsets of nested arrays and would write the values of other rows.
            array = batch.column(field.name).take(whole) if nested else batch.column(field.name)
            if not target.nullable and array.null_count:
                raise SchemaError(f"column {field.name} is NOT NULL but holds null", fields=(field.name,))
            # It also does not treat the values of a NULL row inside a row as NULL: reshaping does.
            if checked or nested or not array.type.equals(target.type):
                array = reshape(array, field.type, target.type, self._leaf)
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _leaf(self, array: pa.Array, kind: Atomic, target: pa.DataType) -> pa.Array:
        if kind.root not in TIMESTAMPS:
            return array.view(target) if kind.root is Root.TIME else as_leaf(array, target)
        stamps = as_leaf(array, target)
        if _has_old(stamps) and not self._holds:
            self._sink.hold()
            self._holds = True
        return stamps

    @contextlib.contextmanager
    def _encoding(self) -> Iterator[orc.ORCWriter]:
        """The writer, created on first use; its output reaches the sink inside the block only, unless it fails."""
        with self._sink.flowing():
            try:
                if self._writer is None:
                    self._writer = orc.ORCWriter(pa.PythonFile(self._sink, mode="w"), **self._arguments)
                yield self._writer
            except (pa.ArrowException, OSError) as error:
                if self._sink.error is not None:
                    raise self._sink.error from error
                if not isinstance(error, pa.ArrowInvalid):
                    raise
                raise SchemaError(f"rows cannot be written as ORC: {error}") from error
            if self._sink.error is not None:
                raise self._sink.error


def _layout(kind: Atomic, *, legacy: bool) -> pa.DataType:
    arrow = to_arrow_type(kind)
    if kind.root is Root.TIME:
        return pa.int32()
    if kind.root is Root.TIMESTAMP_LTZ and legacy:
        return pa.timestamp(arrow.unit)
    return arrow


def _tracker(field: Field, without: frozenset[str]) -> RunningBounds:
    kind = field.type
    ordered = isinstance(kind, Atomic) and kind.root not in _UNBOUNDED and field.name not in without
    return RunningBounds(to_arrow_type(kind), ordered=ordered)


def _arguments(settings: WriteSettings, columns: int) -> dict[str, Any]:
    """Arguments of `ORCWriter` for a file with this number of columns, including nested ones.

    The writer has two levels, fast and small: zstd levels 1 and 3, and likewise for other codecs.

    Raises:
        OptionError: not an ORC codec.
        UnsupportedError: a codec that pyarrow cannot write.
    """
    options = settings.options
    option = "orc.compress" if "orc.compress" in options else "file.compression"
    name = options.get("orc.compress", settings.compression)
    word = name.strip().lower()
    if word in _UNWRITABLE:
        raise UnsupportedError(f"ORC files with {word} cannot be written", feature=f"{option}={word}")
    if word not in _CODECS:
        raise OptionError(f"{name!r} is not a codec of ORC; allowed: {', '.join(_CODECS)}", option=option, value=name)
    level = number_option(options, "orc.compression.zstd.level", settings.zstd_level)
    default = "compression" if word == "zstd" and level >= _SMALL_LEVEL else "speed"
    strategy = options.get("orc.compression.strategy", default).strip().lower()
    if strategy not in _LEVELS:
        raise OptionError(
            f"option 'orc.compression.strategy' is {strategy!r}; it must be one of {', '.join(_LEVELS)}",
            option="orc.compression.strategy",
            value=strategy,
        )
    return {
        "compression": _CODECS[word],
        "compression_strategy": strategy,
        "stripe_size": settings.block_size_bytes or number_option(options, "orc.stripe.size", 64 << 20),
        "row_index_stride": number_option(options, "orc.row.index.stride", 10_000),
        "compression_block_size": _whole_blocks(number_option(options, "orc.compress.size", _block_bytes(columns))),
    }


def _block_bytes(columns: int) -> int:
    """The default compression block size in bytes; each open column holds a few times as much."""
    return _MEMORY_BLOCK if columns >= _MANY_COLUMNS else 256 << 10


def _whole_blocks(size: int) -> int:
    """The next larger size that the native writer accepts."""
    return -(-size // _MEMORY_BLOCK) * _MEMORY_BLOCK


def _has_old(array: pa.Array) -> bool:
    """Whether a time before 1970 has a fraction of a second: pyarrow writes it differently from Java.

    Raises: UnsupportedError: a time that Java would misread in any encoding.
    """
    values = numpy_values(array)
    if array.null_count:
        values = values[validity_mask(array)]
    if len(values) == 0:
        return False
    unit, low = array.type.unit, int(values.min())
    if unit in ("s", "ms") and max(-low, int(values.max())) > TIME_SECONDS_MAX * (1 if unit == "s" else 1_000):
        raise UnsupportedError(f"a value is out of range: {YEARS_FEATURE} cannot be written", feature=YEARS_FEATURE)
    if low >= 0 or unit == "s":
        return False
    second, milli = _PER_SECOND[unit], _PER_SECOND[unit] // 1000
    old = values[values < 0]
    if bool(np.any((old >= milli - second) & (old % milli != 0))):
        message = f"{LAST_SECOND_FEATURE} cannot be written: Java would read them a second late; use Parquet"
        raise UnsupportedError(message, feature=LAST_SECOND_FEATURE)
    return bool(np.any(old % second))
