"""Writes one Parquet file.

Source: format.md §8.3, §9.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.row_size import row_bytes
from paimon_py.codec.variant.arrays import as_variants
from paimon_py.codec.variant.shred import shred
from paimon_py.errors import SchemaError
from paimon_py.formats.base import ROW_GROUP_ROWS, SLICES_BYTES, ColumnBounds, FileWriter, WriteSettings
from paimon_py.formats.bounds import RunningBounds
from paimon_py.formats.guards import GuardedSink
from paimon_py.formats.parquet.dictionary import dictionary_columns
from paimon_py.formats.parquet.footer import finished_tail
from paimon_py.formats.parquet.int96 import to_int96
from paimon_py.formats.parquet.options import block_bytes, chosen_dictionaries, writer_arguments
from paimon_py.formats.parquet.schema import (
    LeafColumn,
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


WHOLE_FILE_BYTES = 1 << 20
"""Rows of a file up to so many bytes are encoded in memory and reach the sink at once."""


class _Column(NamedTuple):
    """The properties of a column that do not depend on its rows.

    Attributes:
        kind: its Arrow type in the table; None for inner columns.
        ordered: whether bounds are wanted of it; `computed`: always from the values, not from the footer.
        strict: whether below a NULL there may be one that no file holds.
    """

    field: Field
    kind: pa.DataType | None
    ordered: bool
    computed: bool
    strict: bool


class _Layout(NamedTuple):
    """The layout of the columns in a file. `shredded`: the parts of VARIANT columns that get columns of their own."""

    shredded: Wanted
    schema: pa.Schema
    leaves: list[LeafColumn]
    arguments: dict[str, Any]
    int96: frozenset[tuple[str, ...]]


class ParquetEncoder:
    """Begins files with the same columns and settings."""

    def __init__(self, fields: Sequence[Field], settings: WriteSettings) -> None:
        self.fields = tuple(fields)
        self.settings = settings
        self.block_bytes = block_bytes(settings)
        self.inference = inference_of(settings.options, fields)
        self.columns = [_column(field, settings.without_stats) for field in fields]
        self.layout = self.lay_out(shredded_columns(settings.options))

    def __call__(self, sink: BinaryIO) -> FileWriter:
        """Begin a file."""
        return ParquetFileWriter(sink, self)

    def lay_out(self, wanted: Wanted) -> _Layout:
        """The layout that stores the `wanted` parts of VARIANT columns in columns of their own."""
        leaves = columns_with_groups(self.fields, wanted)
        return _Layout(
            shredded=wanted,
            schema=with_groups(physical_schema(self.fields), self.fields, wanted),
            leaves=leaves,
            arguments=writer_arguments(self.settings, leaves),
            int96=frozenset(leaf.path for leaf in leaves if is_int96(leaf.type)),
        )

    @property
    def encodes_slices(self) -> bool:
        """Whether files of slices are laid out like all others: not by the values in them, nor in small row groups."""
        return self.inference is None and self.block_bytes >= 4 * SLICES_BYTES

    @property
    def ordered_columns(self) -> frozenset[str]:
        """The columns whose bounds in a file are their least and greatest values, except NaN."""
        return frozenset(column.field.name for column in self.columns if column.ordered)

    def slices(self, batch: pa.RecordBatch, cuts: Sequence[int]) -> Iterator[bytes]:
        """One file for each slice of a batch between two `cuts`, in memory.

        Cost: a copy of the bytes of each file.
        Raises: SchemaError if rows cannot be written.
        """
        physical = self.physical(batch, self.layout)
        for start, end in itertools.pairwise(cuts):
            yield self._whole_file(physical.slice(start, end - start))

    def _whole_file(self, rows: pa.RecordBatch) -> bytes:
        sink = pa.BufferOutputStream()
        writer = self.make_writer(sink, self.layout, [rows], ROW_GROUP_ROWS)
        try:
            writer.write_table(pa.Table.from_batches([rows]), row_group_size=ROW_GROUP_ROWS)
            writer.close()
        except BaseException as error:
            writer.is_open = False  # else it closes again on garbage collection
            if isinstance(error, pa.ArrowInvalid):
                raise _unwritable(error) from error
            raise
        return finished_tail(sink.getvalue().to_pybytes(), self.layout.int96)

    def make_writer(
        self, sink: object, layout: _Layout, first: list[pa.RecordBatch], group_rows: int,
        metadata: list[pq.FileMetaData] | None = None,
    ) -> pq.ParquetWriter:  # fmt: skip
        """Arrow's writer of a file, with dictionaries for columns that repeat in the first row group.

        `metadata`: receives the footer.
        """
        estimated = dictionary_columns(first, self.fields, layout.leaves, group_rows)
        dictionaries = chosen_dictionaries(self.settings.options, layout.leaves, estimated)
        return pq.ParquetWriter(
            sink, layout.schema, use_dictionary=dictionaries or False, metadata_collector=metadata, **layout.arguments
        )

    def physical(self, batch: pa.RecordBatch, layout: _Layout) -> pa.RecordBatch:
        """The columns as files store them.

        Raises: SchemaError if a column holds NULL and must not.
        """
        arrays = []
        for column, target in zip(self.columns, layout.schema, strict=True):
            field = column.field
            array = batch.column(field.name)
            if not target.nullable and array.null_count:
                raise SchemaError(f"column {field.name} is NOT NULL but holds null", fields=(field.name,))
            if layout.shredded and is_shredded(field, layout.shredded):
                array = shred(array, layout.shredded[field.name], target.type)
            elif column.strict or not array.type.equals(target.type):
                array = reshape(array, field.type, target.type, _leaf)
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, schema=layout.schema)


class ParquetFileWriter:
    """Collects batches into row groups; see `FileWriter`.

    Cost: holds one row group of Arrow data, without copies.
    """

    def __init__(self, sink: BinaryIO, encoder: ParquetEncoder) -> None:
        self._sink = GuardedSink(sink)
        self._encoder = encoder
        self._layout = encoder.layout
        self._raw: list[pa.RecordBatch] = []
        self._raw_rows = 0
        self._inference = encoder.inference
        self._block_bytes = encoder.block_bytes
        self._bounds = [RunningBounds(column.kind, ordered=column.ordered) for column in encoder.columns]
        self._computed: list[set[int]] = [set() for _ in encoder.columns]
        self._writer: pq.ParquetWriter | None = None
        self._whole: pa.BufferOutputStream | None = None
        self._metadata: list[pq.FileMetaData] = []
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = self._pending_bytes = 0
        self._flushed_rows = self._flushed_bytes = self._groups = 0

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
        physical = self._encoder.physical(batch, self._layout)
        self._pending.append(physical)
        self._pending_rows += physical.num_rows
        self._pending_bytes += row_bytes(physical)
        if self._pending_rows >= ROW_GROUP_ROWS or self._pending_bytes >= self._block_bytes:
            self._flush(last=False)

    def _infer(self) -> None:
        """Infer the shredding from the first rows, and write them."""
        assert self._inference is not None
        waiting, self._raw, self._raw_rows = self._raw, [], 0
        self._layout = self._encoder.lay_out(self._inference.of(waiting))
        self._inference = None
        for batch in waiting:
            self.write(batch)

    def close(self) -> list[ColumnBounds]:
        if self._inference is not None:
            self._infer()
        if self._writer is None and self._pending_bytes <= WHOLE_FILE_BYTES:
            self._whole = pa.BufferOutputStream()
        self._flush(last=True)
        with self._encoding() as writer:
            self._sink.hold()
            writer.close()
            held = self._sink.release()
            end = held if self._whole is None else self._whole.getvalue().to_pybytes()
            self._sink.write(finished_tail(end, self._layout.int96))
        return self._result()

    def abort(self) -> None:
        self._pending, self._raw = [], []
        if self._writer is not None:
            # RuntimeError: after a failed close pyarrow has no metadata
            with contextlib.suppress(pa.ArrowException, OSError, RuntimeError):
                self._writer.close()
            self._writer.is_open = False  # else it closes again on garbage collection

    def _flush(self, *, last: bool) -> None:
        table = pa.Table.from_batches(self._pending, self._layout.schema)
        group_rows = self._group_rows()
        rows = table.num_rows if last else table.num_rows // group_rows * group_rows
        written = table if rows == table.num_rows else table.slice(0, rows)
        with self._encoding() as writer:
            if rows:
                writer.write_table(written, row_group_size=group_rows)
        groups = -(-rows // group_rows)
        self._measure(written, range(self._groups, self._groups + groups))
        self._groups += groups
        self._pending, self._pending_rows, left = [], table.num_rows - rows, 0
        if self._pending_rows:
            rest = table.slice(rows)
            self._pending, left = rest.to_batches(), row_bytes(rest)
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
                    self._writer = self._encoder.make_writer(
                        self._sink if self._whole is None else self._whole, self._layout, self._pending,
                        self._group_rows(), self._metadata,
                    )  # fmt: skip
                yield self._writer
            except pa.ArrowInvalid as error:
                raise _unwritable(error) from error

    def _measure(self, table: pa.Table, groups: range) -> None:
        """Count nulls, and compute those bounds that the footer will not have."""
        for values, tracker, computed, column in zip(
            table.columns, self._bounds, self._computed, self._encoder.columns, strict=True
        ):
            tracker.null_count += values.null_count
            if tracker.ordered and (column.computed or _are_long(values)):
                computed.update(groups)
                for chunk in values.chunks:
                    tracker.add_values(chunk)

    def _result(self) -> list[ColumnBounds]:
        """The bounds of all fields, from the computed ones or the footer."""
        (metadata,) = self._metadata
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        flat = iter([index for index, leaf in enumerate(self._layout.leaves) if leaf.flat])
        result = []
        for column, tracker, computed in zip(self._encoder.columns, self._bounds, self._computed, strict=True):
            if column.kind is None:
                result.append(ColumnBounds())
                continue
            place = next(flat)
            if tracker.ordered:
                chunks = [group_statistics(group, place) for i, group in enumerate(groups) if i not in computed]
                _include(tracker, column.kind, [chunk for chunk in chunks if chunk.has_values])
            result.append(tracker.result())
        return result


def _unwritable(error: pa.ArrowInvalid) -> SchemaError:
    return SchemaError(f"rows cannot be written as Parquet: {error}")


def _column(field: Field, without: frozenset[str]) -> _Column:
    kind = field.type
    if not isinstance(kind, Atomic) or is_variant_type(kind):
        return _Column(field, None, ordered=False, computed=False, strict=_hides_nulls(kind))
    ordered = not is_int96(kind) and field.name not in without
    return _Column(field, to_arrow_type(kind), ordered, not has_footer_bounds(kind), _hides_nulls(kind))


def _include(tracker: RunningBounds, kind: pa.DataType, chunks: Sequence[GroupStatistics]) -> None:
    """Widen the bounds by what the footer says of row groups that have values."""
    if not chunks:
        return
    file_kind = pa.timestamp("ms", kind.tz) if pa.types.is_timestamp(kind) and kind.unit == "s" else kind
    bounds = bound_array([bound for chunk in chunks for bound in (chunk.low, chunk.high)], file_kind, kind)
    if bounds.null_count:
        tracker.ordered = False
    elif len(chunks) == 1:
        tracker.include(bounds)
    else:
        tracker.add_values(bounds)


def _are_long(column: pa.ChunkedArray) -> bool:
    """Whether there are values beyond what footers hold as bounds."""
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
