"""Converts batches of an older file to the requested schema.

Columns match by field id: renamed columns are found, dropped ones are ignored, added ones are null (even if an old name
is reused), and changed types are cast from the file's type directly. Columns with a known constant value are filled in.

Source: format.md §3.3; Java `SchemaEvolutionUtil`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_schema, to_arrow_type
from paimon_py.files.casts.cast import cast
from paimon_py.files.casts.types import same_type
from paimon_py.spec.types import Field


class Evolution:
    """The conversion of one file's batches to `read_fields`.

    Attributes:
        sources: the needed columns of the file, each once, in the order of `read_fields`.
        columns: their names in the file.
        schema: the Arrow schema of the result.
    """

    __slots__ = ("_filled", "_is_plain", "_steps", "columns", "schema", "sources")

    def __init__(
        self, file_fields: Sequence[Field], read_fields: Sequence[Field], known: Mapping[int, pa.Array] | None = None
    ) -> None:
        """`known`: arrays of one value by field id, for constant columns; `file_fields` are then the others."""
        self._filled = dict(known or {})
        by_id = {field.id: field for field in file_fields}
        self.sources = tuple(by_id[field.id] for field in read_fields if field.id in by_id)
        self.columns = tuple(field.name for field in self.sources)
        self.schema = to_arrow_schema(read_fields)
        self._steps = tuple((by_id.get(field.id), field) for field in read_fields)
        self._is_plain = all(source is not None and same_type(source.type, field.type) for source, field in self._steps)

    def with_known(self, known: Mapping[int, pa.Array]) -> Evolution:
        """The same conversion where columns that files lack have these values."""
        if not known:
            return self
        other = object.__new__(Evolution)
        other._filled = dict(known)
        other.sources, other.schema, other.columns = self.sources, self.schema, self.columns
        other._steps, other._is_plain = self._steps, self._is_plain
        return other

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch in the requested schema.

        Shapes: in — `columns`, in order, with the Arrow types of the file's fields; out — `schema`, same rows.
        Cost: only cast columns and nulls for missing columns are new.
        Raises:
            SchemaError: a stored value is invalid in the current type of the column.
            UnsupportedError: the cast is not supported.
        """
        if not self._steps or (self._is_plain and batch.schema.equals(self.schema)):
            return batch
        arrays: list[pa.Array] = []
        position = 0
        for source, field in self._steps:
            if source is None:
                arrays.append(self._constant(field, batch.num_rows))
            else:
                arrays.append(cast(batch.column(position), source.type, field.type, column=field.name))
                position += 1
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _constant(self, field: Field, count: int) -> pa.Array:
        """The known value of a column, else nulls; cached for the longest batch."""
        values = self._filled.get(field.id)
        if values is None:
            return pa.nulls(count, to_arrow_type(field.type))
        if len(values) < count:
            values = self._filled[field.id] = pa.repeat(values[0], count)
        return values.slice(0, count)
