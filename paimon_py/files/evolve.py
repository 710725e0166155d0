"""Batches of an older file as batches of the schema that is read.

Columns match by field id: renamed ones follow, dropped ones vanish, added ones are null (also when an old name is used
again), changed types are cast from the file's type directly.

Source: format.md §3.3; Java `SchemaEvolutionUtil`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.files.cast import cast
from paimon_py.files.cast_types import same_type
from paimon_py.spec.types import Field


class Evolution:
    """How batches of one file become batches of `read_fields`.

    Attributes:
        sources: columns of the file that are needed, each once, in the order of `read_fields`.
        schema: Arrow schema of the result.
    """

    __slots__ = ("_is_plain", "_steps", "schema", "sources")

    def __init__(self, file_fields: Sequence[Field], read_fields: Sequence[Field]) -> None:
        by_id = {field.id: field for field in file_fields}
        self.sources = tuple(by_id[field.id] for field in read_fields if field.id in by_id)
        self.schema = to_arrow_schema(read_fields)
        self._steps = tuple((by_id.get(field.id), field) for field in read_fields)
        self._is_plain = all(source is not None and same_type(source.type, field.type) for source, field in self._steps)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of `sources` in the file."""
        return tuple(field.name for field in self.sources)

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch in the schema that is read.

        Shapes: in — `columns`, in order, with the Arrow types of the file's fields; out — `schema`, same rows.
        Cost: nothing is copied but cast columns and nulls for missing ones.
        Raises:
            SchemaError: a stored value has no meaning in the column's type of today.
            UnsupportedError: there is no such cast.
        """
        if not self._steps or (self._is_plain and batch.schema.equals(self.schema)):
            return batch
        arrays: list[pa.Array] = []
        position = 0
        for source, field in self._steps:
            if source is None:
                arrays.append(pa.nulls(batch.num_rows, self.schema.field(len(arrays)).type))
            else:
                arrays.append(cast(batch.column(position), source.type, field.type, column=field.name))
                position += 1
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)
