"""Splits a batch by partition and bucket, whole columns at a time.

Source: format.md §7; Java `KeyAndBucketExtractor`; measurements in benchmarks/README.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_py.codec.binary_row import encode
from paimon_py.codec.binary_row.hash import hash_rows
from paimon_py.codec.buckets import bucket_numbers
from paimon_py.codec.columns import Int32s, Ints, from_numpy, numpy_values
from paimon_py.errors import OptionError
from paimon_py.spec.data_file import EMPTY_ROW
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.types import Field

Codes = npt.NDArray[Any]

Assign = Callable[[bytes, Int32s], Ints]
"""The bucket of each key of a partition, from the hashes."""

_TABLE_MAX = 1 << 20
_RADIX_MAX = 1 << 16


class Routed(NamedTuple):
    """Rows of one partition and bucket, in order of arrival. `kinds` None means all +I."""

    partition: bytes
    bucket: int
    batch: pa.RecordBatch
    kinds: pa.Array | None


class Router:
    """Routes rows to their partitions, and there to a single bucket, to buckets by hash, or to assigned buckets."""

    def __init__(self, schema: TableSchema, *, buckets: int = 1, only: int = 0, assign: Assign | None = None) -> None:
        """`buckets`: the number of buckets for hashing; `only`: the number of a single bucket; `assign`: returns the
        buckets of keys.

        Raises: OptionError if there is no key to hash.
        """
        self._assign = assign
        self._key_fields = schema.key_fields
        self._buckets = buckets
        self._function = Options(schema.options).get_enum("bucket-function.type")
        self._partition_fields = schema.partition_fields
        self._bucket_fields = tuple(schema.field(name) for name in schema.bucket_keys)
        self._only = only
        if buckets > 1 and not self._bucket_fields:
            message = f"the table has {buckets} buckets, and neither a primary key nor the option 'bucket-key'"
            raise OptionError(message, option="bucket-key")

    def route(self, batch: pa.RecordBatch, kinds: pa.Array | None = None) -> list[Routed]:
        """The rows of each partition and bucket that occurs, in no particular order.

        Shapes: in — columns of the table by name; out — every row once.
        Cost: 5–60 ns per row for the codes; one take of all columns, none if the rows are already grouped. The results
          share memory with the batch or with that one copy.
        """
        if batch.num_rows == 0:
            return []
        parts, partitions = partition_codes(batch, self._partition_fields)
        buckets = self._hash(batch) if self._assign is None else self._assign_dynamic(batch, parts, partitions)
        if parts is None and buckets is None:
            return [Routed(partitions[0], self._only, batch, kinds)]
        width = self._buckets if self._assign is None or buckets is None else int(buckets.max()) + 1
        return route_rows(batch, kinds, _combine(parts, buckets, width), width, partitions, only=self._only)

    def bucket_numbers(self, batch: pa.RecordBatch) -> Codes:
        """The number assigned to each row, in order."""
        return self._assign_dynamic(batch, *partition_codes(batch, self._partition_fields))

    def _hash(self, batch: pa.RecordBatch) -> Codes | None:
        if self._buckets == 1:
            return None
        columns = [batch.column(field.name) for field in self._bucket_fields]
        types = [field.type for field in self._bucket_fields]
        return bucket_numbers(columns, types, self._buckets, self._function)

    def _assign_dynamic(self, batch: pa.RecordBatch, parts: Ints | None, partitions: Sequence[bytes]) -> Codes:
        """The dynamic bucket of each row, partition by partition."""
        assert self._assign is not None
        hashes = hash_rows(
            [batch.column(field.name) for field in self._key_fields], [field.type for field in self._key_fields]
        )
        if parts is None:
            return self._assign(partitions[0], hashes)
        buckets = np.empty(batch.num_rows, np.int64)
        ends = np.cumsum(np.bincount(parts, minlength=len(partitions)))
        for partition, rows in zip(partitions, np.split(np.argsort(parts, kind="stable"), ends[:-1]), strict=True):
            buckets[rows] = self._assign(partition, hashes[rows])
        return buckets


def partition_codes(batch: pa.RecordBatch, fields: Sequence[Field]) -> tuple[Ints | None, list[bytes]]:
    """The partition of each row as an index (None: all belong to the first), and the serialized partitions."""
    if not fields:
        return None, [EMPTY_ROW]
    encoded = [_distinct(batch.column(field.name)) for field in fields]
    if all(len(values) == 1 for _, values in encoded):
        return None, _serialize([values for _, values in encoded], fields)
    codes, size = encoded[0][0], len(encoded[0][1])
    for indices, values in encoded[1:]:
        codes = codes * len(values) + indices
        size *= len(values)
    codes, groups = _compress(codes, size)
    columns = []
    rest = groups
    for _, values in reversed(encoded):
        rest, own = np.divmod(rest, len(values))
        columns.append(values.take(from_numpy(own, pa.int64())))
    return codes, _serialize(columns[::-1], fields)


def route_rows(
    batch: pa.RecordBatch,
    kinds: pa.Array | None,
    codes: Ints,
    width: int,
    partitions: Sequence[bytes],
    *,
    only: int = 0,
) -> list[Routed]:
    """The rows of each code, which is partition index times `width` plus bucket; `only`: the bucket for 0."""
    short, groups = _narrow(codes, len(partitions) * width)
    counts = np.bincount(short, minlength=len(groups))
    used = np.flatnonzero(counts)
    if len(used) > 1 and bool((short[1:] < short[:-1]).any()):
        order = from_numpy(np.argsort(short, kind="stable"), pa.int64())
        batch = batch.take(order)
        kinds = None if kinds is None else kinds.take(order)
    out, start = [], 0
    for code, size in zip(groups[used].tolist(), counts[used].tolist(), strict=True):
        part, bucket = divmod(code, width)
        bucket = bucket or only
        rows = batch if size == batch.num_rows else batch.slice(start, size)
        own = kinds if kinds is None or size == batch.num_rows else kinds.slice(start, size)
        out.append(Routed(partitions[part], bucket, rows, own))
        start += size
    return out


def _distinct(column: pa.Array) -> tuple[Ints, pa.Array]:
    """The index of each value among the distinct ones, and these; null is a value, as are both zeros and every NaN."""
    kind = column.type
    if pa.types.is_floating(kind):
        column = column.view(pa.int32() if pa.types.is_float32(kind) else pa.int64())
    encoded = column.dictionary_encode(null_encoding="encode")
    values = encoded.dictionary
    if pa.types.is_floating(kind):
        values = values.view(kind)
    return numpy_values(encoded.indices).astype(np.int64), values


def _serialize(columns: Sequence[pa.Array], fields: Sequence[Field]) -> list[bytes]:
    rows: list[bytes] = encode(columns, [field.type for field in fields]).to_pylist()
    return rows


def _combine(parts: Ints | None, buckets: Codes | None, width: int) -> Ints:
    if parts is None:
        assert buckets is not None
        return buckets.astype(np.int64)
    return parts if buckets is None else parts * width + buckets


def _compress(codes: Ints, size: int) -> tuple[Ints, Ints]:
    """Codes renumbered from 0 without gaps, and the old code of each new one."""
    if size > _TABLE_MAX:
        groups, inverse = np.unique(codes, return_inverse=True)
        return inverse.astype(np.int64), groups
    seen = np.bincount(codes, minlength=size) > 0
    groups = np.flatnonzero(seen)
    if len(groups) == size:
        return codes, groups
    return (np.cumsum(seen) - 1)[codes], groups


def _narrow(codes: Ints, size: int) -> tuple[Codes, Ints]:
    """Codes in the smallest unsigned type (numpy sorts these by radix), and the value of each."""
    if size <= 256:
        return codes.astype(np.uint8), np.arange(size, dtype=np.int64)
    if size > _RADIX_MAX:
        codes, groups = _compress(codes, size)
        return (codes.astype(np.uint16) if len(groups) <= _RADIX_MAX else codes), groups
    return codes.astype(np.uint16), np.arange(size, dtype=np.int64)
