"""Metadata tables: system tables whose rows describe a table or a warehouse, instead of being rows of the table.

A metadata table is a value: a name, columns, and a function that yields its rows in batches. Conditions and columns
are applied to the batches; the function may check what is needed, and skip reading the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.columns import Mask, from_numpy
from paimon_py.errors import UnsupportedError
from paimon_py.expr.predicate import Predicate
from paimon_py.expr.prune import Bounds, may_match
from paimon_py.lsm.sort_encoding import combine_chunks
from paimon_py.metadata.root import TableRoot
from paimon_py.scan.moments import wall_millis
from paimon_py.scan.time_travel import Travel, find_state
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Snapshot
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Field

if TYPE_CHECKING:
    from paimon_py.expr.sql_intervals import Now

CHUNK_ROWS = 4_096
"""The number of rows per batch."""

T = TypeVar("T")
Columns: TypeAlias = Mapping[str, Callable[[T], Any]]
"""Columns of a metadata table as texts such as "snapshot_id BIGINT NOT NULL", in order, and their functions."""

_ARROW = (pa.Array, pa.ChunkedArray)


class RowRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The columns and rows that a scan needs from a metadata table.

    Attributes:
        fields: all columns.
        columns: names of the columns that are returned, or that the predicate needs.
        predicate: bound to the fields; rows that do not match are removed later.
    """

    fields: tuple[Field, ...]
    columns: frozenset[str]
    predicate: Predicate | None = None

    def kind(self, name: str) -> pa.DataType:
        """The Arrow type of a column."""
        return to_arrow_type(next(field.type for field in self.fields if field.name == name))

    def may_match(self, count: int, columns: Mapping[str, Bounds]) -> Mask:
        """A mask of the `count` rows, or groups of rows, that may include a wanted row, by bounds of some columns."""
        if self.predicate is None:
            return np.ones(count, np.bool_)
        return may_match(self.predicate, columns, pa.nulls(count, pa.int64()))

    def matching(self, name: str, values: Sequence[T]) -> list[T]:
        """The values of one column that a wanted row may have, none of them NULL."""
        wanted = self.may_match(len(values), {name: exactly(pa.array(values, self.kind(name)))})
        return [value for value, keep in zip(values, wanted.tolist(), strict=True) if keep]

    def rows(self, values: Sequence[T], columns: Columns[T]) -> pa.RecordBatch:
        """A batch with one row for each value: each needed column is the function's result for the value."""
        return self.batch(len(values), values, {text: _of_each(get) for text, get in columns.items()})

    def batch(self, count: int, part: T, columns: Columns[T]) -> pa.RecordBatch:
        """A batch of `count` rows: each needed column is the function's result for `part`, an Arrow array or a list."""
        arrays, names = [], []
        for field, get in zip(self.fields, columns.values(), strict=True):
            if field.name in self.columns:
                kind, made = to_arrow_type(field.type), get(part)
                arrays.append(combine_chunks(made).cast(kind) if isinstance(made, _ARROW) else pa.array(made, kind))
                names.append(field.name)
        if not arrays:
            return pa.record_batch([pa.nulls(count)], ["rows"]).select([])
        return pa.RecordBatch.from_arrays(arrays, names)


class TableState(msgspec.Struct, frozen=True, kw_only=True):
    """A table as of one snapshot; None if it has none or the rows do not depend on it."""

    root: TableRoot
    schema: TableSchema
    snapshot: Snapshot | None = None


class MetadataTableDef(msgspec.Struct, frozen=True, kw_only=True):
    """A metadata table.

    Attributes:
        name: the name after the `$`, or `sys.`.
        fields: its columns.
        keys: its primary key.
        make: returns the rows, from a `TableState` or a `Warehouse`, with at least the requested columns.
        has_states: whether the rows belong to one snapshot, so that earlier ones can be requested.
    """

    name: str
    fields: tuple[Field, ...]
    keys: tuple[str, ...] = ()
    make: Callable[[RowRequest, Any], Iterator[pa.RecordBatch]]
    has_states: bool = False

    @property
    def schema(self) -> TableSchema:
        """The columns and the key."""
        return TableSchema(id=0, fields=self.fields, highest_field_id=len(self.fields) - 1, primary_keys=self.keys)


class Origin(Protocol):
    """The source of a metadata table."""

    @property
    def path(self) -> str:
        """Directory or URL, for messages."""

    @property
    def clock(self) -> Now:
        """The current time, for conditions."""

    def find(self) -> Snapshot | None:
        """The snapshot to which the rows belong; None for none."""

    def at(self, snapshot: Snapshot | None, /) -> Any:
        """The argument for `MetadataTableDef.make`."""


class TableSource(msgspec.Struct, frozen=True):
    """A table, and its requested state; None if the rows depend on no state."""

    root: TableRoot
    schema: TableSchema
    travel: Travel | None = None

    @property
    def path(self) -> str:
        """Directory or URL of the table."""
        return self.root.path

    @property
    def clock(self) -> Now:
        """The clock of the table."""
        return self.root.env.clock

    def find(self) -> Snapshot | None:
        """The snapshot of the state; None for an empty table.

        Raises: as `find_state`, and UnsupportedError for a state with only some of the files of a snapshot.
        """
        if self.travel is None:
            return None
        found = find_state(self.root, self.travel, self.schema)
        if found.files is not None:
            raise UnsupportedError("system tables by the creation time of files", feature="scan.file-creation-time")
        return found.snapshot

    def at(self, snapshot: Snapshot | None) -> TableState:
        """The table as of a snapshot, with its schema if it was requested."""
        schema = self.schema
        if snapshot is not None and self.travel is not None and not self.travel.is_latest:
            schema = self.root.schemas.get(snapshot.schema_id)
        return TableState(root=self.root, schema=schema, snapshot=snapshot)


def fields_of(columns: Columns[Any]) -> tuple[Field, ...]:
    """The columns as fields."""
    parts = [text.partition(" ") for text in columns]
    return tuple(Field(at, name, parse_type(kind)) for at, (name, _, kind) in enumerate(parts))


def exactly(values: pa.Array) -> Bounds:
    """The bounds of a column with known values; null for an unknown value."""
    return Bounds(min=values, max=values, null_count=pa.array([0], pa.int64()).take(_zeros(len(values))))


def chunks(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """The values in parts of at most `CHUNK_ROWS`."""
    for at in range(0, len(values), CHUNK_ROWS):
        yield values[at : at + CHUNK_ROWS]


def wall_time(millis: int | None) -> int | None:
    """A time as a TIMESTAMP without zone, as in Java's system tables: on a clock of this machine's zone."""
    return None if millis is None else wall_millis(millis)


def _of_each(get: Callable[[T], Any]) -> Callable[[Sequence[T]], list[Any]]:
    return lambda values: [get(value) for value in values]


def _zeros(count: int) -> pa.Array:
    return from_numpy(np.zeros(count, np.int64), pa.int64())
