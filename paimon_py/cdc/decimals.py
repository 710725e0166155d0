"""Converts the decimals of a column at once, as Debezium sends most of them: unscaled numbers in base64. Pure."""

from __future__ import annotations

import re
from binascii import a2b_base64
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import from_numpy

_LINES = re.compile(
    r"(?:(?:[A-Za-z0-9+/]{4}){0,2}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})\n)*", re.ASCII
)
"""Numbers of 1 to 9 bytes, each with a line break behind it."""


def decimals_of(raw: Sequence[Any], arrow: pa.DataType) -> pa.Array | None:
    """The decimals; None unless all values are NULL, or base64 of unscaled numbers of 64 bits that fit the type."""
    texts = [value for value in raw if value is not None]
    try:
        lines = "\n".join(texts) + "\n"
    except TypeError:
        return None
    if not texts or not pa.types.is_decimal128(arrow) or lines.count("\n") != len(texts) or not _LINES.fullmatch(lines):
        return None
    numbers = [int.from_bytes(each, "big", signed=True) for each in map(a2b_base64, texts)]
    largest = max(max(numbers), -min(numbers))
    if largest >= 10**arrow.precision or largest >= 1 << 63:
        return None
    valid = None if len(texts) == len(raw) else np.array([value is not None for value in raw], np.bool_)
    words = np.zeros((len(raw), 2), np.int64)
    words[slice(None) if valid is None else valid, 0] = numbers
    words[:, 1] = words[:, 0] >> 63
    return from_numpy(words, arrow, valid)
