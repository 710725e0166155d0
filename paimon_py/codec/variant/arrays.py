"""Columns of variants: structs of the bytes of a value and of its dictionary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.arrays import Mask
from paimon_py.codec.columns import binary_array, nulls_or_none, numpy_values, validity_bitmap
from paimon_py.codec.variant.encode import encode, from_json
from paimon_py.codec.variant.form import ARROW, METADATA, VALUE, Encoded
from paimon_py.codec.variant.layout import VERSION, damage


def of_parts(values: pa.Array, metadata: pa.Array, valid: Mask | None = None) -> pa.Array:
    """A column of variants. NULL rows have empty parts."""
    bitmap, nulls = validity_bitmap(valid)
    children = [_without_nulls(values), _without_nulls(metadata)]
    return pa.Array.from_buffers(ARROW, len(values), [bitmap], null_count=nulls, children=children)


def of_value(value: object) -> Encoded | None:
    """The variant of a value in a row: a string is JSON; a mapping with the bytes of both parts is used as it is.

    Raises: SchemaError for values that a variant cannot hold.
    """
    if value is None or isinstance(value, Encoded):
        return value
    if isinstance(value, datetime) and value != value:  # NaT of pandas
        return None
    if isinstance(value, pa.Scalar):
        return of_value(value.as_py())
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return from_json(value)
    if isinstance(value, Mapping) and set(value) == {VALUE, METADATA} and all(
        isinstance(part, bytes) for part in value.values()
    ):  # fmt: skip
        return Encoded(value[VALUE], value[METADATA])
    return encode(value)


def of_encoded(found: Sequence[Encoded | None]) -> pa.Array:
    """A column of variants; None becomes NULL."""
    values = binary_array([None if one is None else one.value for one in found])
    metadata = binary_array([None if one is None else one.metadata for one in found])
    return of_parts(values, metadata, nulls_or_none(values))


def as_variants(array: pa.Array) -> pa.Array:
    """A struct of the two parts, in any field order and binary type, as a column of variants.

    Cost: copies only validity.
    Raises: CorruptionError for a row without one of its parts, or with a dictionary of another version.
    """
    valid = nulls_or_none(array)
    parts = array.flatten() if valid is not None else [array.field(at) for at in range(array.type.num_fields)]
    by_name = {field.name: _as_binary(part) for field, part in zip(array.type, parts, strict=True)}
    values, metadata = by_name[VALUE], by_name[METADATA]
    for part in (values, metadata):
        if part.null_count > array.null_count:
            raise damage("a row has no value, or no dictionary")
        _check_first_bytes(part, valid, dictionary=part is metadata)
    return of_parts(values, metadata, valid)


def each(array: pa.Array) -> Iterator[tuple[bytes, bytes] | None]:
    """Value and dictionary of each row, None for NULL."""
    values, metadata = array.field(0), array.field(1)
    for valid, value, keys in zip(
        numpy_values(pc.is_valid(array)), values.to_pylist(), metadata.to_pylist(), strict=True
    ):
        yield (value, keys) if valid else None


def _as_binary(array: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array if pa.types.is_binary(array.type) else array.cast(pa.binary())


def _without_nulls(array: pa.Array) -> pa.Array:
    if not array.null_count:
        return array
    return pc.fill_null(array, b"")


def _check_first_bytes(part: pa.Array, valid: Mask | None, *, dictionary: bool) -> None:
    """Refuse rows with empty parts, and dictionaries of another version, which later steps would not detect."""
    lengths = numpy_values(pc.fill_null(pc.binary_length(part), 0))
    there = np.ones(len(part), np.bool_) if valid is None else valid
    if (lengths[there] == 0).any():
        raise damage("a value or a dictionary has no bytes")
    data = part.buffers()[2]
    if not dictionary or data is None or not there.any():
        return
    offsets = np.frombuffer(part.buffers()[1], np.int32, count=len(part) + 1, offset=4 * part.offset)[:-1][there]
    if ((np.frombuffer(data, np.uint8)[offsets] & 0x0F) != VERSION).any():
        raise damage(f"a dictionary does not begin with version {VERSION}")


