"""The request to readers: columns, condition, row kinds, and files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.codec.columns import numpy_values
from paimon_py.expr.arrow import Filter, prepare
from paimon_py.expr.predicate import Predicate
from paimon_py.expr.references import columns_of
from paimon_py.expr.split import split_conjuncts
from paimon_py.files.constant_columns import ConstantColumns
from paimon_py.files.physical import TRACKED_FIELDS, evolves_columns, without_row_ids
from paimon_py.lazy import lazy_property
from paimon_py.scan.reach import reach
from paimon_py.spec.blobs import AS_DESCRIPTOR, blob_place
from paimon_py.spec.options import Options
from paimon_py.spec.schema import ROW_ID, SEQUENCE_NUMBER, TableSchema
from paimon_py.spec.types import Field
from paimon_py.spec.visibility import clusters_keys

RAW_BATCH_ROWS = 65_536
_FEW_ROWS = 4096
_FEW_BYTES = 256 << 10
_JOINED = 16
"""The number of the largest small batches that one batch is made of at most."""


class FileChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A selection of the files of a state: those at one level, above a level, or created at a time or later (local time
    in milliseconds).
    """

    level: int | None = None
    above_level: int | None = None
    created_since_millis: int | None = None


def join_choices(one: FileChoice | None, other: FileChoice) -> FileChoice:
    """The files that both select; at most one of them selects a level."""
    if one is None:
        return other
    return msgspec.structs.replace(other, level=one.level if other.level is None else other.level)


class Request(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The data to read from every split. Derived properties are computed once per request.

    `schema`: the schema of the rows. `columns`: names to return, in order. `predicate`: bound to the schema; rows that
    do not match are left out. `every_level`: read rows that no compaction has seen, though the table hides them.
    `kinds`: rows come with `_row_kind`, and keys whose newest row is a delete come as that row; rows that are changes
    always do. `files`: read these files as if there were no others. `bucket`: read this bucket alone. `first_rows`: the
    reader may end after so many rows, so that little is read ahead; the rows are the same.
    """

    schema: TableSchema
    columns: tuple[str, ...]
    predicate: Predicate | None = None
    every_level: bool = False
    kinds: bool = False
    files: FileChoice | None = None
    bucket: int | None = None
    first_rows: int | None = None

    @lazy_property
    def fields(self) -> tuple[Field, ...]:
        """The returned columns."""
        return tuple(self.schema.field(name) for name in self.columns)

    @lazy_property
    def arrow_schema(self) -> pa.Schema:
        """The Arrow schema of the returned columns."""
        return to_arrow_schema(self.fields)

    @lazy_property
    def returns_blobs(self) -> bool:
        """Whether BLOBs are returned, which may be references."""
        return any(blob_place(self.schema, field) is not None for field in self.fields)

    def with_references(self) -> Request:
        """The same request for references in place of the bytes of BLOBs, as rows contain them."""
        options = {**self.schema.options, AS_DESCRIPTOR: "true"}
        return msgspec.structs.replace(self, schema=msgspec.structs.replace(self.schema, options=options))

    @lazy_property
    def read_fields(self) -> tuple[Field, ...]:
        """The returned columns and those of the predicate, in the order of the schema."""
        names = set(self.columns) | (set() if self.predicate is None else columns_of(self.predicate))
        return tuple(field for field in self.schema.fields if field.name in names)

    @lazy_property
    def stored_schema(self) -> TableSchema:
        """The schema of the columns in files."""
        return without_row_ids(self.schema)

    @lazy_property
    def constant_columns(self) -> ConstantColumns:
        """The columns that files do not store."""
        return ConstantColumns.of(self.schema)

    @lazy_property
    def counting(self) -> Request:
        """The same without columns, for counting the matching rows."""
        if self.predicate is not None and SEQUENCE_NUMBER in columns_of(self.predicate):
            return self  # sequence numbers depend on the columns if these are stored in several files
        return msgspec.structs.replace(self, columns=())

    @lazy_property
    def mask(self) -> Filter | None:
        """The filter for matching rows; None for all."""
        return None if self.predicate is None else prepare(self.predicate)

    @lazy_property
    def by_key(self) -> Predicate | None:
        """The part of the predicate on the primary key alone; None if there is none."""
        if self.predicate is None or not self.schema.primary_keys:
            return None
        return split_conjuncts(self.predicate, self.schema.primary_keys)[0]

    @lazy_property
    def key_mask(self) -> Filter | None:
        """The filter for rows with matching keys; None for all."""
        return None if self.by_key is None else prepare(self.by_key)

    @lazy_property
    def row_id_mask(self) -> Filter | None:
        """The filter for rows with matching row ids; None for all."""
        if self.predicate is None or ROW_ID not in columns_of(self.predicate):
            return None
        by_id = split_conjuncts(self.predicate, [ROW_ID])[0]
        return None if by_id is None else prepare(by_id)

    @lazy_property
    def beyond(self) -> Callable[[pa.RecordBatch], bool] | None:
        """Whether a batch in key order is beyond the last key that matches; None if no key bounds it."""
        if self.by_key is None or clusters_keys(self.schema):
            return None
        return reach(self.by_key, self.schema.key_fields[0].name)

    @lazy_property
    def asks_indexes(self) -> bool:
        """Whether to use index files to skip rows."""
        return self.predicate is not None and Options(self.schema.options).get_bool("file-index.read.enabled")


def keys_only(request: Request) -> Request:
    """The request to each state for a request of their difference: all columns of the rows with matching keys.

    Other conditions are applied to the changes, not to the compared rows.
    """
    schema = request.schema
    return Request(schema=schema, columns=schema.names, predicate=request.by_key, bucket=request.bucket)


def ids_only(request: Request) -> Request:
    """The request to each state for a request of their difference by row ids: all columns and the ids of rows.

    Only conditions that hold for both states of a row or for neither are evaluated: on row ids, and on partitions where
    no row moves to another one.
    """
    schema = request.schema
    if ROW_ID not in schema.names:
        schema = msgspec.structs.replace(schema, fields=(*schema.fields, *TRACKED_FIELDS))
    lasting = (ROW_ID, *schema.partition_keys) if evolves_columns(schema) else (ROW_ID,)
    predicate = None if request.predicate is None else split_conjuncts(request.predicate, lasting)[0]
    return msgspec.structs.replace(request, schema=schema, columns=schema.names, predicate=predicate, kinds=False)


def every_bucket(schema: TableSchema) -> TableSchema:
    """The schema without the option `scan.bucket`, to read every bucket."""
    options = {name: text for name, text in schema.options.items() if name != "scan.bucket"}
    return msgspec.structs.replace(schema, options=options)


def asked_bucket(schema: TableSchema) -> int | None:
    """The bucket to which the option `scan.bucket` limits what scans and streams return; verbs that change rows, care
    and lookups see every bucket.
    """
    return Options(schema.options).find_int("scan.bucket")


def keep(batch: pa.RecordBatch, mask: Filter | None) -> pa.RecordBatch:
    """The rows for which the mask is true; adjacent rows are a slice, without a copy."""
    if mask is None or not batch.num_rows:
        return batch
    flags = mask(batch)
    count = flags.true_count
    if count == batch.num_rows:
        return batch
    if count == 0:
        return batch.slice(0, 0)
    rows = np.flatnonzero(numpy_values(flags))
    if int(rows[-1]) - int(rows[0]) == count - 1:
        return batch.slice(int(rows[0]), count)
    return batch.filter(flags)


def join_small(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows, with small neighbouring batches of the same columns as one: a filter of each costs more than their
    rows.
    """
    small: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        batch_bytes = batch.get_total_buffer_size()
        is_small = batch.num_rows <= _FEW_ROWS and batch_bytes <= _FEW_BYTES
        is_full = rows > _JOINED * _FEW_ROWS or size > _JOINED * _FEW_BYTES
        if small and (not is_small or is_full or not batch.schema.equals(small[0].schema)):
            yield from _one(small)
            small, rows, size = [], 0, 0
        if is_small:
            small.append(batch)
            rows, size = rows + batch.num_rows, size + batch_bytes
        else:
            yield batch
    yield from _one(small)


def _one(batches: list[pa.RecordBatch]) -> Sequence[pa.RecordBatch]:
    if len(batches) < 2:
        return batches
    found: list[pa.RecordBatch] = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return found
