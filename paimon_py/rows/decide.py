"""The decisions of `delete` and `update` on rows, batch by batch.

Source: Java `DeleteFromPaimonTableCommand`, `UpdatePaimonTableCommand`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.codec.columns import Ints, Mask, numpy_values
from paimon_py.expr.arrow import Filter
from paimon_py.rows.values import Assignment, Columns, Scope
from paimon_py.spec.schema import TableSchema

KEEP, DELETE, UPDATE = 0, 1, 2



_NOTHING: Mask = np.empty(0, np.bool_)


class Decision(NamedTuple):
    """The decision on each row of a batch.

    `actions`: KEEP, DELETE or UPDATE. `matches`: the source row with the new values, −1 for none. `choices`: the clause
    that decided. Both are None without a source.
    """

    actions: npt.NDArray[np.int8]
    matches: Ints | None = None
    choices: Ints | None = None

    def of(self, rows: Ints) -> Decision:
        """The decision on some of the rows."""
        matches = None if self.matches is None else self.matches[rows]
        return Decision(self.actions[rows], matches, None if self.choices is None else self.choices[rows])


class Operation(Protocol):
    """A pass over the rows of a table.

    Attributes:
        names: columns of the table that `decide` reads.
        is_doubtful: whether the operation may turn out to be undefined. Then all rows are decided and `check` is called
        before any row is written.
            before one is written.
        adds_rows: whether `inserts` may return rows.
        inserts_last: whether inserted rows may have primary keys of rows that another pass changes. Then all passes
            change rows before one of them inserts.
        seen: state collected by `decide`; everything that `inserts` needs.
    """

    names: frozenset[str]
    is_doubtful: bool
    adds_rows: bool
    inserts_last: bool
    seen: Mask

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Decide on rows that contain at least `names`.

        Raises: UsageError if the result is undefined.
        """

    def update(self, batch: pa.RecordBatch, decision: Decision) -> pa.RecordBatch:
        """The updated versions of all rows of the table."""

    def check(self) -> None:
        """Check the operation after all rows have been decided.

        Raises: UsageError if `inserts` would.
        """

    def inserts(self) -> Iterator[pa.RecordBatch]:
        """The rows to insert, after all rows have been decided."""


class DeleteWhere:
    """An `Operation` that deletes the rows that match a condition."""

    is_doubtful = False
    adds_rows = False
    inserts_last = False
    seen = _NOTHING

    def __init__(self, mask: Filter, names: frozenset[str]) -> None:
        self.names = names
        self._mask = mask

    def decide(self, batch: pa.RecordBatch) -> Decision:
        return Decision(_flags(self._mask, batch) * np.int8(DELETE))

    def update(self, batch: pa.RecordBatch, decision: Decision) -> pa.RecordBatch:
        raise AssertionError(f"nothing is updated, of {batch.num_rows} rows and {decision}")

    def check(self) -> None:
        """Never raises."""

    def inserts(self) -> Iterator[pa.RecordBatch]:
        return iter(())


class UpdateWhere:
    """An `Operation` that sets columns of the rows that match a condition."""

    is_doubtful = False
    adds_rows = False
    inserts_last = False
    seen = _NOTHING

    def __init__(
        self, mask: Filter, names: frozenset[str], schema: TableSchema, values: Sequence[Assignment], scope: Scope
    ) -> None:
        self.names = names
        self._mask = mask
        self._schema = schema
        self._values = values
        self._scope = scope

    def decide(self, batch: pa.RecordBatch) -> Decision:
        return Decision(_flags(self._mask, batch) * np.int8(UPDATE))

    def update(self, batch: pa.RecordBatch, decision: Decision) -> pa.RecordBatch:
        del decision
        return with_values(self._schema, batch, self._values, self._scope.columns(batch, None))

    def check(self) -> None:
        """Never raises."""

    def inserts(self) -> Iterator[pa.RecordBatch]:
        return iter(())


def with_values(
    schema: TableSchema, batch: pa.RecordBatch, values: Sequence[Assignment], columns: Columns
) -> pa.RecordBatch:
    """Rows of the table with some columns set from `columns`, which have the same number of rows."""
    made: Mapping[str, pa.Array] = {each.field.name: each.value(columns, batch.num_rows) for each in values}
    arrays = [made[name] if name in made else batch.column(name) for name in schema.names]
    loose = [pa.field(field.name, field.type) for field in to_arrow_schema(schema.fields)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(loose))


def _flags(mask: Filter, batch: pa.RecordBatch) -> npt.NDArray[np.int8]:
    flags: npt.NDArray[np.int8] = numpy_values(mask(batch)).astype(np.int8)
    return flags
