"""INT96 timestamps: twelve bytes, nanoseconds of the day and the Julian day, little-endian.

Source: format.md §8.3; Java `ParquetRowDataWriter`, `TimestampColumnReader`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import Ints, numpy_values, validity_mask
from paimon_py.errors import UnsupportedError
from paimon_py.formats.reshape import with_values

INT96_STORAGE = pa.binary(12)
NANOS_FEATURE = "nanosecond timestamps outside 1677-09-21T00:12:43.145224192 … 2262-04-11T23:47:16.854775807"
_PARTS = np.dtype([("nanos", "<i8"), ("day", "<u4")])
_EPOCH_DAY = 2_440_588
_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_DAY_NANOS = 86_400_000_000_000


def to_int96(array: pa.Array) -> pa.Array:
    """Timestamps with nanoseconds as 12-byte binaries."""
    days, rest = np.divmod(numpy_values(array), _DAY_NANOS)
    out = np.empty(len(array), _PARTS)
    out["nanos"] = rest
    out["day"] = days + _EPOCH_DAY
    return with_values(array, out.view(np.uint8), INT96_STORAGE)


def from_int96(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Convert 12-byte binaries to timestamps in the unit of `target`, exactly.

    Raises:
        UnsupportedError: a value does not fit in 64-bit nanoseconds.
    """
    days, rest = _days(array)
    per_day = _PER_DAY[target.unit]
    rest //= _DAY_NANOS // per_day
    _check_range(array, days, rest, per_day)
    return with_values(array, days * per_day + rest, target)


def is_finer_than_micros(array: pa.Array) -> bool:
    """Whether one of the 12-byte binaries has digits below the microsecond."""
    _, rest = _days(array)
    return bool((rest % 1_000 != 0)[validity_mask(array)].any())


def _days(array: pa.Array) -> tuple[Ints, Ints]:
    data = array.buffers()[1]
    if data is None or len(array) == 0:
        return np.zeros(len(array), np.int64), np.zeros(len(array), np.int64)
    raw = np.frombuffer(data, _PARTS, count=len(array), offset=array.offset * _PARTS.itemsize)
    carry, rest = np.divmod(raw["nanos"], _DAY_NANOS)
    return raw["day"].astype(np.int64) - _EPOCH_DAY + carry, rest


def _check_range(array: pa.Array, days: Ints, rest: Ints, per_day: int) -> None:
    first_day, first_rest = divmod(-(2**63), per_day)
    last_day, last_rest = divmod(2**63 - 1, per_day)
    low = (days < first_day) | ((days == first_day) & (rest < first_rest))
    high = (days > last_day) | ((days == last_day) & (rest > last_rest))
    if bool(((low | high) & validity_mask(array)).any()):
        raise UnsupportedError(f"a value is out of range: {NANOS_FEATURE} have no Arrow type", feature=NANOS_FEATURE)
