"""Converts JSON strings and structs from users to variants."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.variant.arrays import as_variants, of_encoded
from paimon_py.codec.variant.encode import from_json
from paimon_py.codec.variant.form import is_pair
from paimon_py.errors import CorruptionError, SchemaError
from paimon_py.write.misfits import ColumnPlace, Misfit
from paimon_py.write.steps import Step

WAY = (
    "pass JSON strings, such as json.dumps(…) of each value, paimon_py.variant(…) values in rows, or structs of "
    "bytes `value` and `metadata`"
)


def variant_step(source: pa.DataType, place: ColumnPlace) -> Step | None:
    """The conversion to variants from JSON strings or from their two parts; None for other types.

    The step raises Misfit for a string that is not JSON, and for bytes that are not a variant.
    """
    if is_pair(source):
        return lambda array: _check(array, place)
    if pa.types.is_string(source) or pa.types.is_large_string(source):
        return lambda array: _parse(array, place)
    return None


def _parse(array: pa.Array, place: ColumnPlace) -> pa.Array:
    """Parse each distinct string once."""
    texts = array.dictionary_encode()
    made = []
    for number, text in enumerate(texts.dictionary.to_pylist()):
        try:
            made.append(from_json(text))
        except SchemaError as error:
            row = int(pc.index(texts.indices, number).as_py())
            raise Misfit(place, row, ": the string (", f") is not a variant: {error}; {WAY}") from error
    return of_encoded(made).take(texts.indices)


def _check(array: pa.Array, place: ColumnPlace) -> pa.Array:
    try:
        return as_variants(array)
    except CorruptionError as error:
        row = next(at for at in range(len(array)) if _is_damaged(array.slice(at, 1)))
        raise Misfit(place, row, ": the value (", f") is not a variant: {error}; {WAY}") from error


def _is_damaged(array: pa.Array) -> bool:
    try:
        as_variants(array)
    except CorruptionError:
        return True
    return False
