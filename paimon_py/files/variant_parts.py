"""Reads requested parts of VARIANT columns in place of the columns."""

from __future__ import annotations

import msgspec
import pyarrow as pa

from paimon_py.files.casts.cast import cast
from paimon_py.spec.types import DataType, Field, RowType, VariantParts


def with_wanted_parts(stored: Field, read: Field | None) -> Field:
    """The field of a file, with the requested parts in place of its variants, also inside ROWs."""
    if read is None or not isinstance(read.type, RowType):
        return stored
    return msgspec.structs.replace(stored, type=_type_to_read(stored.type, read.type))


def cast_array(array: pa.Array, source: DataType, target: DataType) -> pa.Array:
    """Cast values by Paimon's cast rules."""
    return cast(array, source, target)


def _type_to_read(stored: DataType, read: RowType) -> DataType:
    if isinstance(read, VariantParts):
        return read
    if not isinstance(stored, RowType):
        return stored
    by_id = {field.id: field for field in read.fields}
    return msgspec.structs.replace(
        stored, fields=tuple(with_wanted_parts(field, by_id.get(field.id)) for field in stored.fields)
    )
