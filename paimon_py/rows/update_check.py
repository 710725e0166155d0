"""Whether an updated row of a primary-key table will have the requested values when it is read.

A written row does not replace the older one in every table: with sequence fields the larger one wins, and partial
updates ignore NULL values. Such updates are refused instead of being lost silently.
"""

from __future__ import annotations

import msgspec
import pyarrow as pa

from paimon_py.codec.columns import Ints, from_numpy
from paimon_py.errors import UsageError
from paimon_py.lsm.engines import engine_of
from paimon_py.lsm.groups import Engine, Groups
from paimon_py.lsm.order import MergeOrder, merge_order, sort_batch
from paimon_py.lsm.same_values import same_values
from paimon_py.lsm.sort_encoding import combine_chunks
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema


class UpdateCheck(msgspec.Struct, frozen=True):
    """Merges old and new rows as a reader does. `engine` None: the new row always wins."""

    order: MergeOrder
    engine: Engine | None

    @classmethod
    def of(cls, schema: TableSchema) -> UpdateCheck:
        """The check for a table."""
        keys = tuple(schema.field(name) for name in schema.primary_keys)  # rows of several partitions may be mixed
        order = msgspec.structs.replace(merge_order(schema), keys=keys)
        plain = Options(schema.options).get_enum("merge-engine") == "deduplicate" and not order.sequence
        return cls(order, None if plain else engine_of(schema))

    def require(self, old: pa.RecordBatch, new: pa.RecordBatch) -> None:
        """Refuse new rows that will not be read as they are.

        Shapes: complete rows of the table with the same keys in the same order, without repeated keys.
        Cost: one sort and one merge of both.
        Raises: UsageError; the message names a column.
        """
        if self.engine is None or not new.num_rows:
            return
        both = {name: pa.concat_arrays([old.column(name), new.column(name)]) for name in old.schema.names}
        needed = {field.name for field in (*self.order.keys, *self.order.sequence)}
        sorted_by = {name: column for name, column in both.items() if name in needed}
        rows, starts = sort_batch(self.order, sorted_by, runs_sorted=False)
        merged = self.engine(Groups(rows, starts), {name: pa.chunked_array([c]) for name, c in both.items()})
        wanted = rows.reshape(-1, 2).max(axis=1)
        for name, column in both.items():
            made = merged.columns[name] if name in merged.columns else _pick(column, merged.rows)
            if not _same(made, _pick(column, wanted)):
                raise UsageError(
                    f"column {name!r} would not have the value that is set here: the merge engine combines the old"
                    " and the new row differently. A sequence field must not decrease, and a partial update cannot"
                    " set NULL or an aggregated column. Nothing was changed"
                )


def _pick(column: pa.Array, rows: Ints) -> pa.Array:
    return column.take(from_numpy(rows, pa.int64()))


def _same(left: pa.Array | pa.ChunkedArray, right: pa.Array) -> bool:
    """Whether two columns contain the same values; NaN equals NaN, also in nested values, and −0.0 differs from 0.0."""
    return bool(same_values(combine_chunks(left), right).all())
