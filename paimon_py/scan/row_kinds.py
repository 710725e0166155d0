"""The column `_row_kind` of changes."""

from __future__ import annotations

import functools

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import AnyArray, Int32s, Mask, numpy_values, validity_bitmap
from paimon_py.errors import CorruptionError
from paimon_py.spec.schema import ROW_KIND_COLUMN, ROW_KINDS, VALUE_KIND

ROW_KIND_FIELD = pa.field(ROW_KIND_COLUMN, pa.string(), nullable=False)

_LETTERS = np.frombuffer("".join(ROW_KINDS).encode(), np.uint16)
"""The two bytes of each kind."""


def row_kinds(batch: pa.RecordBatch) -> pa.Array:
    """The kind of every row as a string; rows without a stored kind are additions.

    Shapes: a batch with or without the column `_VALUE_KIND`.
    Raises: CorruptionError for an invalid kind.
    """
    place = batch.schema.get_field_index(VALUE_KIND)
    if place < 0:
        return texts_of(np.zeros(batch.num_rows, np.int8))
    return kind_texts(batch.column(place))


def kind_texts(kinds: pa.Array) -> pa.Array:
    """The strings of stored kinds.

    Raises: CorruptionError for an invalid kind.
    """
    numbers = numpy_values(kinds)
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < len(ROW_KINDS):
        wrong = numbers[(numbers < 0) | (numbers >= len(ROW_KINDS))][0]
        raise CorruptionError(f"a row has the kind {wrong}, which is not one of {', '.join(ROW_KINDS)}")
    return texts_of(numbers)


def texts_of(numbers: AnyArray, valid: Mask | None = None) -> pa.Array:
    """The strings of kinds from 0 to 3, NULL if not `valid`.

    Each string has two bytes, so that the offsets are known in advance.
    """
    letters = _LETTERS[numbers] if numbers.any() else np.full(len(numbers), _LETTERS[0])
    bitmap, nulls = validity_bitmap(valid)
    buffers = [bitmap, pa.py_buffer(_offsets(len(numbers))), pa.py_buffer(letters)]
    return pa.Array.from_buffers(pa.string(), len(numbers), buffers, null_count=nulls)


@functools.lru_cache(maxsize=2)
def _offsets(texts: int) -> Int32s:
    """The offsets of strings of two bytes. Most batches have the same length, so the last two results are cached."""
    return np.arange(0, 2 * texts + 2, 2, dtype=np.int32)
