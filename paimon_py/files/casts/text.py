"""Casts to strings and bytes.

Source: Java `…ToStringCastRule`, `BinaryStringUtils.toCharacterString`, `toBinaryString`, `DateTimeUtils.format…`,
release 2.0.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.columns import from_numpy, nulls_or_none, numpy_values
from paimon_py.files.casts.float_text import float_texts
from paimon_py.files.casts.job import Cast, by_distinct
from paimon_py.files.casts.times import DIGITS, MILLIS_PER_DAY
from paimon_py.spec.types import MAX_LENGTH, Atomic, Root


def integer_to_text(array: pa.Array, job: Cast) -> pa.Array:
    """Decimal digits; for booleans `true` and `false`."""
    return fit_text(pc.cast(array, pa.string()), job.target_type)


def float_to_text(array: pa.Array, job: Cast) -> pa.Array:
    """Floats formatted as in Java."""
    return fit_text(float_texts(array), job.target_type)


def decimal_to_text(array: pa.Array, job: Cast) -> pa.Array:
    """Plain notation with all digits of the scale."""
    texts = pc.cast(array, pa.string())
    if pc.any(pc.match_substring(texts, "E")).as_py():
        texts = by_distinct(array, lambda value: format(value, "f"), pa.string(), job)
    return fit_text(texts, job.target_type)


def date_to_text(array: pa.Array, _job: Cast) -> pa.Array:
    """`2024-05-14`."""
    return pc.cast(array, pa.string())


def time_to_text(array: pa.Array, job: Cast) -> pa.Array:
    """`12:34:56.7`: at most `precision` digits of the second, without trailing zeros after the first digit."""
    millis = numpy_values(array).astype(np.int64) % MILLIS_PER_DAY
    texts = pc.cast(from_numpy(millis.astype(np.int32), pa.time32("ms"), nulls_or_none(array)), pa.string())
    precision = job.source_type.precision or 0
    if precision == 0:
        return pc.utf8_slice_codeunits(texts, 0, 8)
    fraction = millis % 1000
    significant = np.select([fraction % 100 == 0, fraction % 10 == 0], [1, 2], 3)
    shown = np.minimum(significant, precision)
    cuts = [pc.utf8_slice_codeunits(texts, 0, 9 + digits) for digits in (1, 2, 3)]
    return pc.choose(from_numpy(shown - 1, pa.int64()), *cuts)


def timestamp_to_text(array: pa.Array, job: Cast) -> pa.Array:
    """`2024-01-02 03:04:05.678`: at least `precision` digits of the second, more only if they are not zero."""
    unit = array.type.unit
    texts = pc.cast(array.view(pa.timestamp(unit)), pa.string())
    held, precision = DIGITS[unit], job.source_type.precision or 0
    if precision >= held:
        return texts
    kept = rf"\d{{{precision}}}"
    trimmed = pc.replace_substring_regex(texts, rf"(\.{kept}\d*?)0+$", r"\1")
    return pc.replace_substring_regex(trimmed, r"\.$", "")


def text_to_text(array: pa.Array, job: Cast) -> pa.Array:
    """Truncate to the length of the target; CHAR is padded with blanks."""
    return fit_text(array, job.target_type)


def bytes_to_text(array: pa.Array, job: Cast) -> pa.Array:
    """The bytes as UTF-8, of any length; invalid bytes become U+FFFD, as in Java."""
    try:
        return pc.cast(array, pa.string())
    except pa.ArrowInvalid:
        return by_distinct(array, lambda value: value.decode("utf-8", "replace"), pa.string(), job)


def text_to_bytes(array: pa.Array, job: Cast) -> pa.Array:
    """The UTF-8 bytes, like `bytes_to_bytes`."""
    return fit_bytes(pc.cast(array, pa.binary()), job)


def bytes_to_bytes(array: pa.Array, job: Cast) -> pa.Array:
    """Truncate to the length of the target; BINARY is padded with zeros."""
    return fit_bytes(array, job)


def fit_text(texts: pa.Array, kind: Atomic) -> pa.Array:
    """Strings of at most the type's length in code points, padded with blanks for CHAR."""
    length = kind.length or MAX_LENGTH
    if length == MAX_LENGTH:
        return texts
    cut = pc.utf8_slice_codeunits(texts, 0, length)
    return pc.utf8_rpad(cut, width=length, padding=" ") if kind.root is Root.CHAR else cut


def fit_bytes(values: pa.Array, job: Cast) -> pa.Array:
    """Bytes of at most the type's length, padded with zeros for BINARY."""
    kind = job.target_type
    length = kind.length or MAX_LENGTH
    if length == MAX_LENGTH:
        return values
    cut = pc.binary_slice(values, 0, length)
    shortest = pc.min(pc.binary_length(cut)).as_py()
    if kind.root is Root.BINARY and shortest is not None and shortest < length:
        return by_distinct(cut, lambda value: value.ljust(length, b"\0"), pa.binary(), job)
    return cut
