"""Bounds of whole numbers in values that travel: what Java can hold, checked where bytes become values."""

from __future__ import annotations

from typing import Annotated

import msgspec

_LONG_MAX = 2**63 - 1

Long = Annotated[int, msgspec.Meta(ge=-(2**63), le=_LONG_MAX)]
"""A whole number of 64 bits."""

Count = Annotated[int, msgspec.Meta(ge=0, le=_LONG_MAX)]
"""A whole number of 64 bits that is not negative: a count, a size, a position, an id."""

SEQUENCE_MAX = 2**62
"""No bucket gets so many rows: a larger sequence number is damage, and the next ones would not fit."""

Level = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
"""A level of a bucket."""

BucketNumber = Annotated[int, msgspec.Meta(ge=-2, le=2**31 - 1)]
"""A bucket, or how many there are; -1 and -2 stand for tables without fixed buckets."""


def is_long(value: object) -> bool:
    """Whether a value is a whole number of 64 bits."""
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value <= _LONG_MAX
