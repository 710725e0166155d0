"""Rows that expire by age: the options `record-level.expire-time` and `record-level.time-field`.

Only compactions drop them; readers return all rows.

Source: Java `RecordLevelExpire`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.binary_row import decode_one
from paimon_py.codec.columns import Ints, Mask, from_numpy, numpy_values, validity_mask
from paimon_py.files.casts.cast import cast
from paimon_py.files.casts.types import keeps_order
from paimon_py.files.physical import bounded_fields
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.types import Field

_MILLIS_FROM = 1_000_000_000_000
"""BIGINT values of at least this are milliseconds, smaller ones seconds."""
_PER_MILLI = {"us": 1_000, "ns": 1_000_000}


class RecordExpiry(msgspec.Struct, frozen=True):
    """Expires rows whose `field` is before `oldest` (epoch seconds). Rows with NULL never expire."""

    field: Field
    oldest: int

    @classmethod
    def of(cls, schema: TableSchema, now_millis: int) -> RecordExpiry | None:
        """The expiry of a table's rows; None if rows do not expire."""
        options = Options(schema.options)
        age = options.find_duration("record-level.expire-time")
        name = options.find_str("record-level.time-field")
        if age is None or name is None or not schema.primary_keys:
            return None
        return cls(schema.field(name), now_millis // 1000 - age // 1000)

    def alive(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows that have not expired. Batches without the column are unchanged.

        Cost: 5 ns per row, and a copy of batches that lose rows.
        """
        for batch in batches:
            if self.field.name not in batch.schema.names:
                yield batch
                continue
            ended = self._has_ended(batch.column(self.field.name))
            if not ended.any():
                yield batch
            elif not ended.all():
                yield batch.filter(from_numpy(~ended, pa.bool_()))

    def find_expired(self, files: Iterable[DataFile], schema_of: Callable[[int], TableSchema]) -> frozenset[str]:
        """The names of files that contain an expired row according to their statistics."""
        return frozenset(file.name for file in files if self._is_expired(file, schema_of(file.schema_id)))

    def _is_expired(self, file: DataFile, schema: TableSchema) -> bool:
        fields = bounded_fields(schema, file.bounded_columns)
        slot = next((at for at, field in enumerate(fields) if field.id == self.field.id), None)
        if slot is None or not keeps_order(fields[slot].type, self.field.type):
            return False
        (low,) = decode_one(file.value_stats.min_values, [field.type for field in fields], [slot])
        return bool(self._has_ended(cast(low, fields[slot].type, self.field.type)).any())

    def _has_ended(self, times: pa.Array) -> Mask:
        ended: Mask = _seconds(times) < self.oldest
        return ended & validity_mask(times) if times.null_count else ended


def _seconds(times: pa.Array) -> Ints:
    kind = times.type
    values = numpy_values(times).astype(np.int64)
    if pa.types.is_int64(kind):
        return np.where(values >= _MILLIS_FROM, values // 1000, values)
    if not pa.types.is_timestamp(kind) or kind.unit == "s":
        return values
    millis = values // _PER_MILLI.get(kind.unit, 1)
    seconds: Ints = np.where(millis < 0, -(-millis // 1000), millis // 1000)
    return seconds
