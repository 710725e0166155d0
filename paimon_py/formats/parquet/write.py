"""Writes one Parquet file.

Source: format.md §8.3, §9.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.row_size import row_bytes
from paimon_py.codec.variant.arrays import as_variants
from paimon_py.codec.variant.shred import shred
from paimon_py.errors import SchemaError
from paimon_py.formats.base import ROW_GROUP_ROWS, ColumnBounds, WriteSettings
from paimon_py.formats.bounds import RunningBounds
from paimon_py.formats.guards import GuardedSink
from paimon_py.formats.parquet.dictionary import dictionary_columns
from paimon_py.formats.parquet.footer import fixed_to_int96, split_tail, tail, with_root_name
from paimon_py.formats.parquet.int96 import to_int96
from paimon_py.formats.parquet.options import block_bytes, chosen_dictionaries, writer_arguments
from paimon_py.formats.parquet.schema import (
    has_footer_bounds,
    is_int96,
    is_variant_type,
    physical_schema,
)
from paimon_py.formats.parquet.shredding import Wanted, columns_with_groups, inference_of, is_shredded, with_groups
from paimon_py.formats.parquet.statistics import GroupStatistics, bound_array, group_statistics
from paimon_py.formats.reshape import as_leaf, leaves, reshape
from paimon_py.spec.shredding import shredded_columns
from paimon_py.spec.types import Atomic, DataType, Field

LONG_VALUE_BYTES = 4000
"""Values somewhat longer than this get no bounds in footers; the bounds are then computed here."""


class ParquetFileWriter:
    """Collects batches into row groups; see `FileWriter`.

    Cost: holds one row group of Arrow data, without copies.
    """

    def __init__(self, sink: BinaryIO, fields: Sequence[Field], settings: WriteSettings) -> None:
        self._sink = GuardedSink(sink)
        self._fields = tuple(fields)
        self._settings = settings
        self._raw: list[pa.RecordBatch] = []
        self._raw_rows = 0
        self._inference = inference_of(settings.options, fields)
        self._take_apart(shredded_columns(settings.options))
        self._strict = [_hides_nulls(field.type) for field in fields]
        self._options = settings.options
        self._block_bytes = block_bytes(settings)
        self._bounds = [_tracker(field, settings.without_stats) for field in fields]
        self._computed: list[set[int]] = [set() for _ in fields]
        self._writer: pq.ParquetWriter | None = None
        self._metadata: list[pq.FileMetaData] = []
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = self._pending_bytes = 0
        self._flushed_rows = self._flushed_bytes = self._groups = 0

    def _take_apart(self, wanted: Wanted) -> None:
        """Set up the file's layout, with the VARIANT columns in `wanted` shredded."""
        self._shredded = wanted
        self._schema = with_groups(physical_schema(self._fields), self._fields, wanted)
        self._leaves = columns_with_groups(self._fields, wanted)
        self._arguments = writer_arguments(self._settings, self._leaves)

    @property
    def row_count(self) -> int:
        return self._flushed_rows + self._pending_rows + self._raw_rows

    @property
    def bytes_written(self) -> int:
        ratio = self._sink.position / self._flushed_bytes if self._flushed_bytes else 1.0
        waiting = self._pending_bytes + sum(map(row_bytes, self._raw))
        return self._sink.position + int(waiting * min(ratio, 1.0))

    def write(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows == 0:
            return
        if self._inference is not None:
            self._raw.append(batch)
            self._raw_rows += batch.num_rows
            if self._raw_rows >= self._inference.rows:
                self._infer()
            return
        physical = self._physical(batch)
        self._pending.append(physical)
        self._pending_rows += physical.num_rows
        self._pending_bytes += row_bytes(physical)
        if self._pending_rows >= ROW_GROUP_ROWS or self._pending_bytes >= self._block_bytes:
            self._flush(last=False)

    def _infer(self) -> None:
        """Infer the shredding from the first rows, and write them."""
        assert self._inference is not None
        waiting, self._raw, self._raw_rows = self._raw, [], 0
        self._take_apart(self._inference.of(waiting))
        self._inference = None
        for batch in waiting:
            self.write(batch)

    def close(self) -> list[ColumnBounds]:
        if self._inference is not None:
            self._infer()
        self._flush(last=True)
        with self._encoding() as writer:
            self._sink.hold()
            writer.close()
            body, footer = split_tail(self._sink.release())
            columns = frozenset(leaf.path for leaf in self._leaves if is_int96(leaf.type))
            footer = fixed_to_int96(footer, columns) if columns else footer
            self._sink.write(body + tail(with_root_name(footer)))
        return self._result()

    def abort(self) -> None:
        self._pending, self._raw = [], []
        if self._writer is not None:
            # RuntimeError: after a failed close pyarrow has no metadata
            with contextlib.suppress(pa.ArrowException, OSError, RuntimeError):
                self._writer.close()
            self._writer.is_open = False  # else it closes again on garbage collection

    def _physical(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = []
        for field, target, strict in zip(self._fields, self._schema, self._strict, strict=True):
            array = batch.column(field.name)
            if not target.nullable and array.null_count:
                raise SchemaError(f"column {field.name} is NOT NULL but holds null", fields=(field.name,))
            if is_shredded(field, self._shredded):
                array = shred(array, self._shredded[field.name], target.type)
            elif strict or not array.type.equals(target.type):
                array = reshape(array, field.type, target.type, _leaf)
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _flush(self, *, last: bool) -> None:
        table = pa.Table.from_batches(self._pending, self._schema)
        group_rows = self._group_rows()
        rows = table.num_rows if last else table.num_rows // group_rows * group_rows
        written = table.slice(0, rows)
        with self._encoding() as writer:
            if rows:
                writer.write_table(written, row_group_size=group_rows)
        groups = -(-rows // group_rows)
        self._measure(written, range(self._groups, self._groups + groups))
        self._groups += groups
        rest = table.slice(rows)
        self._pending = rest.to_batches() if rest.num_rows else []
        self._pending_rows = rest.num_rows
        left = row_bytes(rest) if rest.num_rows else 0
        self._flushed_rows += rows
        self._flushed_bytes += self._pending_bytes - left
        self._pending_bytes = left

    def _group_rows(self) -> int:
        if self._pending_bytes < self._block_bytes:
            return ROW_GROUP_ROWS
        return max(1, min(ROW_GROUP_ROWS, self._block_bytes * self._pending_rows // self._pending_bytes))

    @contextlib.contextmanager
    def _encoding(self) -> Iterator[pq.ParquetWriter]:
        """The writer, created on first use; its output reaches the sink inside the block only, unless it fails."""
        with self._sink.flowing():
            try:
                if self._writer is None:
                    self._writer = self._make_writer()
                yield self._writer
            except pa.ArrowInvalid as error:
                raise SchemaError(f"rows cannot be written as Parquet: {error}") from error

    def _make_writer(self) -> pq.ParquetWriter:
        estimated = dictionary_columns(self._pending, self._fields, self._leaves, self._group_rows())
        dictionaries = chosen_dictionaries(self._options, self._leaves, estimated)
        return pq.ParquetWriter(
            self._sink,
            self._schema,
            use_dictionary=dictionaries or False,
            metadata_collector=self._metadata,
            **self._arguments,
        )

    def _measure(self, table: pa.Table, groups: range) -> None:
        """Count nulls, and compute the bounds that the footer will not contain."""
        for column, tracker, computed, field in zip(
            table.columns, self._bounds, self._computed, self._fields, strict=True
        ):
            tracker.null_count += column.null_count
            if not tracker.ordered:
                continue
            if _needs_computing(column, field.type):
                computed.update(groups)
                for chunk in column.chunks:
                    tracker.add_values(chunk)

    def _result(self) -> list[ColumnBounds]:
        """The bounds of all fields, from the computed ones or the footer."""
        (metadata,) = self._metadata
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        flat = iter([index for index, leaf in enumerate(self._leaves) if leaf.flat])
        result = []
        for field, tracker, computed in zip(self._fields, self._bounds, self._computed, strict=True):
            if not isinstance(field.type, Atomic) or is_variant_type(field.type):
                result.append(ColumnBounds())
                continue
            column = next(flat)
            if tracker.ordered:
                chunks = [group_statistics(group, column) for i, group in enumerate(groups) if i not in computed]
                _include(tracker, chunks)
            result.append(tracker.result())
        return result


def _tracker(field: Field, without: frozenset[str]) -> RunningBounds:
    kind = field.type
    ordered = isinstance(kind, Atomic) and not is_int96(kind) and field.name not in without
    ordered = ordered and not is_variant_type(kind)
    return RunningBounds(to_arrow_type(kind), ordered=ordered)


def _include(tracker: RunningBounds, chunks: Sequence[GroupStatistics]) -> None:
    chunks = [chunk for chunk in chunks if chunk.has_values]
    if not chunks:
        return
    kind = tracker.kind
    file_kind = pa.timestamp("ms", kind.tz) if pa.types.is_timestamp(kind) and kind.unit == "s" else kind
    bounds = bound_array([bound for chunk in chunks for bound in (chunk.low, chunk.high)], file_kind, kind)
    if bounds.null_count:
        tracker.ordered = False
    elif len(chunks) == 1:
        tracker.include(bounds[0], bounds[1])
    else:
        tracker.add_values(bounds)


def _needs_computing(column: pa.ChunkedArray, kind: object) -> bool:
    if isinstance(kind, Atomic) and not has_footer_bounds(kind):
        return True
    if not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
        return False
    return any(_longest(chunk) > LONG_VALUE_BYTES for chunk in column.chunks)


def _longest(array: pa.Array) -> int:
    """The length in bytes of the longest value of a string or binary array."""
    buffer = array.buffers()[1]
    if buffer is None or len(array) == 0:
        return 0
    offsets = np.frombuffer(buffer, np.int32, count=len(array) + 1, offset=array.offset * 4)
    if int(offsets[-1]) - int(offsets[0]) <= LONG_VALUE_BYTES:
        return 0
    return int(np.max(offsets[1:] - offsets[:-1]))


def _hides_nulls(kind: DataType) -> bool:
    """Whether values of NULL rows may contain nulls that files cannot store."""
    found = leaves(kind)
    return any(map(is_variant_type, found)) or (not isinstance(kind, Atomic) and not all(x.nullable for x in found))


def _leaf(array: pa.Array, kind: Atomic, target: pa.DataType) -> pa.Array:
    if is_variant_type(kind):
        return as_variants(array)
    array = as_leaf(array, pa.timestamp("ns", array.type.tz) if is_int96(kind) else target)
    if is_int96(kind):
        array = to_int96(array)
    if kind.nullable or not array.null_count:
        return array
    # nulls here belong to NULL rows, for which Arrow's writer accepts no nulls
    buffers = [None, *array.buffers()[1:]]
    return pa.Array.from_buffers(array.type, len(array), buffers, null_count=0, offset=array.offset)
