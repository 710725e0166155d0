"""What a reader is asked for: columns, rows that match, kinds, files."""

from __future__ import annotations

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.codec.columns import numpy_values
from paimon_py.expr.arrow import Filter
from paimon_py.expr.predicate import Predicate
from paimon_py.expr.split import split_conjuncts
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.types import Field


class FileChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Some of the files of a state: those of one level, of higher levels than one, or made at a time or later (wall
    clock, in milliseconds).
    """

    level: int | None = None
    above_level: int | None = None
    created_since_millis: int | None = None


def joined(one: FileChoice | None, other: FileChoice) -> FileChoice:
    """The files that both choose; at most one of them chooses a level."""
    if one is None:
        return other
    return msgspec.structs.replace(other, level=one.level if other.level is None else other.level)


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What to read of every split.

    `schema`: the schema of the rows. `columns`: names to return, in order. `predicate`: bound to the schema; rows that
    do not match are left out. `every_level`: read rows that no compaction has seen, though the table hides them.
    `kinds`: rows come with `_row_kind`, and keys whose newest row is a delete come as that row; rows that are changes
    always do. `files`: read these files as if there were no others.
    """

    schema: TableSchema
    columns: tuple[str, ...]
    predicate: Predicate | None = None
    every_level: bool = False
    kinds: bool = False
    files: FileChoice | None = None

    @property
    def fields(self) -> tuple[Field, ...]:
        """The returned columns."""
        return tuple(self.schema.field(name) for name in self.columns)

    @property
    def arrow_schema(self) -> pa.Schema:
        """The returned columns for Arrow."""
        return to_arrow_schema(self.fields)


def keys_only(request: Request) -> Request:
    """What to read of each state for a request of their difference: all columns of the rows with keys that match.

    Other conditions are asked of what has changed, not of the rows that are compared.
    """
    schema, predicate = request.schema, request.predicate
    by_key = None if predicate is None else split_conjuncts(predicate, schema.primary_keys)[0]
    return Request(schema=schema, columns=schema.names, predicate=by_key)


def keep(batch: pa.RecordBatch, mask: Filter | None) -> pa.RecordBatch:
    """The rows for which the mask is true; neighbouring rows are a slice, without a copy."""
    if mask is None or not batch.num_rows:
        return batch
    flags = mask(batch)
    count = flags.true_count
    if count == batch.num_rows:
        return batch
    if count == 0:
        return batch.slice(0, 0)
    rows = np.flatnonzero(numpy_values(flags))
    if int(rows[-1]) - int(rows[0]) == count - 1:
        return batch.slice(int(rows[0]), count)
    return batch.filter(flags)
