"""Decides which columns of an engine a table accepts without a cast, and casts the others."""

from __future__ import annotations

import pyarrow as pa

from paimon_py.codec.arrow_types import from_arrow_type
from paimon_py.files.casts.cast import cast
from paimon_py.spec.types import Field
from paimon_py.write.convert import plan
from paimon_py.write.misfits import place_of
from paimon_py.write.steps import Refusal


def takes_type(field: Field, given: pa.DataType) -> bool:
    """Whether a column accepts values of an Arrow type; each value is checked when it is written."""
    return not isinstance(plan(given, field.type, place_of(field.name)), Refusal)


def cast_values(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast values to another type as Paimon does after a change of a column's type.

    Raises:
        SchemaError: a value is invalid in the target type.
        UnsupportedError: Paimon does not support the cast.
    """
    return cast(array, from_arrow_type(array.type), from_arrow_type(target))
