"""Checks that strings are UTF-8 before they are passed to other libraries, which rely on it."""

from __future__ import annotations

from typing import TypeVar

import pyarrow as pa

from paimon_py.codec.columns import child_range
from paimon_py.errors import CorruptionError

D = TypeVar("D", pa.Table, pa.RecordBatch)


def with_valid_text(data: D) -> D:
    """Returns the data unchanged, after checking that all strings are UTF-8.

    Files of other writers, and damaged ones, may contain other bytes, for which polars would read memory outside its
    buffers.

    Cost: 1-2 ns a string.
    Raises: CorruptionError with the name of the first column that has other bytes.
    """
    for field, column in zip(data.schema, data.columns, strict=True):
        if _has_text(field.type):
            for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else (column,):
                try:
                    _check(chunk)
                except pa.ArrowInvalid as error:
                    raise CorruptionError(
                        f"column {field.name!r} contains bytes that are not UTF-8; to_arrow() returns them as they are"
                    ) from error
    return data


def _has_text(kind: pa.DataType) -> bool:
    if pa.types.is_nested(kind):
        return any(_has_text(kind.field(at).type) for at in range(kind.num_fields))
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _check(array: pa.Array) -> None:
    """Raises: ArrowInvalid for a string in use that is not UTF-8."""
    kind = array.type
    if not _has_text(kind) or not len(array):
        return
    if pa.types.is_struct(kind):
        for part in array.flatten():
            _check(part)
    elif pa.types.is_fixed_size_list(kind):
        _check(array.flatten())
    elif pa.types.is_nested(kind):
        _, _, first, last = child_range(array)
        _check(array.values.slice(first, last - first))
    else:
        array.validate(full=True)
