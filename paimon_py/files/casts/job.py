"""The parameters and errors of casts, and conversion of each distinct value once."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any

import msgspec
import pyarrow as pa

from paimon_py.errors import SchemaError
from paimon_py.spec.type_text import sql_type
from paimon_py.spec.types import Atomic, DataType


class Cast(msgspec.Struct, frozen=True):
    """A cast: the stored type, the target type, and the column (for messages; nested fields by path)."""

    source: DataType
    target: DataType
    column: str = ""

    @property
    def source_type(self) -> Atomic:
        """The source type of a cast between atomic types."""
        assert isinstance(self.source, Atomic)
        return self.source

    @property
    def target_type(self) -> Atomic:
        """The target type of a cast between atomic types."""
        assert isinstance(self.target, Atomic)
        return self.target


def bad_value(job: Cast, value: object, why: str = "") -> SchemaError:
    """The error for a stored value that is invalid in the current type of the column."""
    where = f"column {job.column}: " if job.column else ""
    text = repr(value) if len(repr(value)) <= 100 else f"{repr(value)[:100]}…"
    reason = f" ({why})" if why else ""
    back = f"table.alter(UpdateColumnType({job.column!r}, {sql_type(job.source)!r}))"
    way = f"; {back} lets the column be read again" if job.column else ""
    return SchemaError(
        f"{where}the stored {sql_type(job.source)} value {text} cannot be read as {sql_type(job.target)}{reason}"
        f"{way}",
        fields=(job.column,) if job.column else (),
    )


def by_distinct(array: pa.Array, convert: Callable[[Any], Any], kind: pa.DataType, job: Cast) -> pa.Array:
    """Convert each distinct value once in Python.

    `convert` gets a Python value, returns one that is valid for `kind` (None for null), and raises ValueError for an
    invalid value.

    Cost: one Python call per distinct value; rows are gathered in bulk.
    """
    encoded = array.dictionary_encode()
    converted = []
    for value in encoded.dictionary.to_pylist():
        try:
            converted.append(convert(value))
        except (ValueError, decimal.InvalidOperation) as error:
            raise bad_value(job, value, str(error) if isinstance(error, ValueError) else "") from error
    return pa.array(converted, type=kind).take(encoded.indices)
