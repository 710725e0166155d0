"""Casts between dates, times, timestamps and numbers.

Timestamps with local time zone are instants; the session zone is UTC, so both kinds of timestamps store the same
numbers. Digits beyond the target precision are truncated: below a millisecond toward the past, from milliseconds on
toward 1970 (Java stores milliseconds and the nanoseconds inside them separately).

Source: Java `TimestampTo…CastRule`, `DateToTimestampCastRule`, `NumericPrimitiveToTimestamp`,
`DateTimeUtils.truncate`, release 2.0.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.columns import Ints, from_numpy, nulls_or_none, numpy_values
from paimon_py.files.casts.job import Cast, bad_value
from paimon_py.spec.types import Root

DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
SECONDS_PER_DAY = 86_400
MILLIS_PER_DAY = 86_400_000


def timestamp_to_timestamp(array: pa.Array, job: Cast) -> pa.Array:
    """Cast to another precision, with or without local time zone."""
    values = _integers(array)
    given, wanted = job.source_type.precision or 0, job.target_type.precision or 0
    held = DIGITS[array.type.unit]
    if wanted < given:
        values = _cut(values, held, wanted)
    return _timestamps(array, values, held, job)


def timestamp_to_date(array: pa.Array, job: Cast) -> pa.Array:
    """The day."""
    days = _integers(array) // (SECONDS_PER_DAY * 10 ** DIGITS[array.type.unit])
    return from_numpy(days.astype(np.int32), to_arrow_type(job.target), nulls_or_none(array))


def timestamp_to_time(array: pa.Array, job: Cast) -> pa.Array:
    """The milliseconds of the day."""
    clock = _millis(array) % MILLIS_PER_DAY
    return from_numpy(clock.astype(np.int32), to_arrow_type(job.target), nulls_or_none(array))


def timestamp_to_integer(array: pa.Array, job: Cast) -> pa.Array:
    """Seconds since 1970, truncated toward zero; INT gets the low bits."""
    millis = _millis(array)
    seconds = _toward_zero(millis, 1000) // 1000
    dtype = np.int64 if job.target_type.root is Root.BIGINT else np.int32
    return from_numpy(seconds.astype(dtype), to_arrow_type(job.target), nulls_or_none(array))


def integer_to_timestamp(array: pa.Array, job: Cast) -> pa.Array:
    """Seconds since 1970; the milliseconds wrap around at 64 bits."""
    return _timestamps(array, _integers(array) * 1000, 3, job)


def date_to_timestamp(array: pa.Array, job: Cast) -> pa.Array:
    """Midnight of the day."""
    return _timestamps(array, _integers(array) * SECONDS_PER_DAY, 0, job)


def time_to_timestamp(array: pa.Array, job: Cast) -> pa.Array:
    """The time of day on 1970-01-01."""
    return _timestamps(array, _integers(array), 3, job)


def _integers(array: pa.Array) -> Ints:
    return numpy_values(array).astype(np.int64)


def _millis(array: pa.Array) -> Ints:
    values, held = _integers(array), DIGITS[array.type.unit]
    return values // 10 ** (held - 3) if held >= 3 else values * 1000


def _toward_zero(values: Ints, step: int) -> Ints:
    down = values - values % step
    down[(values < 0) & (down != values)] += step
    return down


def _cut(values: Ints, held: int, wanted: int) -> Ints:
    """Drop the digits after `wanted`, keeping the unit of `held` digits."""
    if wanted > 3:
        step: int = 10 ** (held - wanted)
        return values - values % step
    below: int = 10 ** max(held - 3, 0)
    millis = values // below if held >= 3 else values * 1000
    cut = _toward_zero(millis, 10 ** (3 - wanted))
    return cut * below if held >= 3 else cut // 1000


def _timestamps(array: pa.Array, values: Ints, held: int, job: Cast) -> pa.Array:
    kind = to_arrow_type(job.target)
    wanted = DIGITS[kind.unit]
    validity = nulls_or_none(array)
    if wanted <= held:
        return from_numpy(values // 10 ** (held - wanted), kind, validity)
    factor = 10 ** (wanted - held)
    limit = np.iinfo(np.int64).max // factor
    outside = (values > limit) | (values < -limit)
    if validity is not None:
        outside &= validity
    if outside.any():
        at = int(np.argmax(outside))
        raise bad_value(job, int(values[at]), f"in units of 1e-{held} s; outside what {kind} can hold")
    return from_numpy(values * factor, kind, validity)
