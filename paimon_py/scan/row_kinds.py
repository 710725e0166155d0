"""The column `_row_kind` of rows that are changes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import AnyArray, numpy_values
from paimon_py.errors import CorruptionError
from paimon_py.spec.schema import ROW_KIND_COLUMN, ROW_KINDS, VALUE_KIND

ROW_KIND_FIELD = pa.field(ROW_KIND_COLUMN, pa.string(), nullable=False)

_LETTERS = np.frombuffer("".join(ROW_KINDS).encode(), np.uint16)
"""The two bytes of every kind."""


def row_kinds(batch: pa.RecordBatch) -> pa.Array:
    """The kind of every row as a text; rows without stored kind are additions.

    Shapes: a batch with or without the column `_VALUE_KIND`.
    Raises: CorruptionError for a number that is no kind.
    """
    place = batch.schema.get_field_index(VALUE_KIND)
    if place < 0:
        return _texts(np.zeros(batch.num_rows, np.int8))
    return kind_texts(batch.column(place))


def kind_texts(kinds: pa.Array) -> pa.Array:
    """The texts of stored kinds.

    Raises: CorruptionError for a number that is no kind.
    """
    numbers = numpy_values(kinds)
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < len(ROW_KINDS):
        wrong = numbers[(numbers < 0) | (numbers >= len(ROW_KINDS))][0]
        raise CorruptionError(f"a row has the kind {wrong}, which is none of {', '.join(ROW_KINDS)}")
    return _texts(numbers)


def _texts(numbers: AnyArray) -> pa.Array:
    """Texts of two bytes each: they lie one after the other, so that nothing has to be measured."""
    offsets = np.arange(0, 2 * len(numbers) + 2, 2, dtype=np.int32)
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(_LETTERS[numbers]))
