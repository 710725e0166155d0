"""Ranges of integers in serialized values: what Java can represent, checked when bytes are decoded."""

from __future__ import annotations

from typing import Annotated

import msgspec

_LONG_MAX = 2**63 - 1

Long = Annotated[int, msgspec.Meta(ge=-(2**63), le=_LONG_MAX)]
"""A signed 64-bit integer."""

Count = Annotated[int, msgspec.Meta(ge=0, le=_LONG_MAX)]
"""A non-negative 64-bit integer: a count, a size, a position, an id."""

SEQUENCE_MAX = 2**62
"""The maximum sequence number: larger ones are damage, and leave no room for new ones."""

TIME_SECONDS_MAX = _LONG_MAX // 1_000 - 1
"""The last second since 1970 that files can hold: milliseconds in 64 bits, and ORC keeps fractions apart."""

Level = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
"""A level of a bucket."""

BucketNumber = Annotated[int, msgspec.Meta(ge=-2, le=2**31 - 1)]
"""A bucket number or a number of buckets; -1 and -2 stand for tables without fixed buckets."""


def is_long(value: object) -> bool:
    """Whether a value is a signed 64-bit integer."""
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value <= _LONG_MAX
