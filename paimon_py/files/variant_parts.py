"""Parts of VARIANT columns that are wanted of a file in the place of the columns."""

from __future__ import annotations

import msgspec
import pyarrow as pa

from paimon_py.files.casts.cast import cast
from paimon_py.spec.types import DataType, Field, RowType, VariantParts


def with_wanted_parts(stored: Field, read: Field | None) -> Field:
    """The field of a file, with the parts of variants that are read of it in their place, also inside ROWs."""
    if read is None or not isinstance(read.type, RowType):
        return stored
    return msgspec.structs.replace(stored, type=_type_to_read(stored.type, read.type))


def cast_array(array: pa.Array, source: DataType, target: DataType) -> pa.Array:
    """Values of one type as another, by the rules of Paimon's casts."""
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
