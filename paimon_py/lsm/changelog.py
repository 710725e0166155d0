"""The changes of a merge as change rows: the rows of a key before and after become -U and +U, or +I or -D.

The caller knows the window row of each key before the merge (a lookup, the top level); the engine returns the row
after.

Source: format.md §14; Java `FullChangelogMergeFunctionWrapper`, `LookupChangelogMergeFunctionWrapper`,
`FirstRowMergeFunctionWrapper`, `EqualiserCodeGenerator`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.columns import AnyArray, Ints, Mask, from_numpy, numpy_values, validity_mask
from paimon_py.lsm.codes import codes_of
from paimon_py.lsm.groups import Merged
from paimon_py.lsm.sort_encoding import combine_chunks
from paimon_py.spec.options import Options
from paimon_py.spec.schema import DELETE, INSERT, SEQUENCE_NUMBER, UPDATE_AFTER, UPDATE_BEFORE, VALUE_KIND, TableSchema
from paimon_py.spec.types import Atomic, Field


class ChangeRules(msgspec.Struct, frozen=True, kw_only=True):
    """The conversion of changes to rows.

    Attributes:
        columns: the columns of a change row: the system columns, then the table's.
        compared: a row is unchanged if all these columns are equal; None: every merged row counts as changed.
        keeps_kinds: the row of a new key keeps its kind, +I or +U.
    """

    columns: tuple[str, ...]
    compared: tuple[Field, ...] | None = None
    keeps_kinds: bool = False

    @classmethod
    def of(cls, schema: TableSchema) -> ChangeRules:
        """The rules of a table whose compactions write a changelog."""
        options = Options(schema.options)
        ignored = options.get_list("changelog-producer.row-deduplicate-ignore-fields")
        compared = tuple(field for field in schema.fields if field.name not in ignored)
        return cls(
            columns=(SEQUENCE_NUMBER, VALUE_KIND, *schema.names),
            compared=compared if options.get_bool("changelog-producer.row-deduplicate") else None,
            keeps_kinds=options.get_enum("merge-engine") == "first-row",
        )


def change_rows(
    columns: Mapping[str, pa.ChunkedArray], before: Ints, merged: Merged, reported: Mask, rules: ChangeRules
) -> pa.Table:
    """The change rows of one window.

    -U and -D contain the row before, with its sequence number; +U and +I contain the row after. A row of kind -U or -D
    counts as no row.

    Shapes: `before` - per key of `merged` its window row before the merge, -1 for none; `reported` - False for keys
     that did not take part; out - `rules.columns`, by key, a -U immediately before its +U.
    Cost: gathers the rows; a comparison stops at the first column that differs.
    """
    kinds = numpy_values(combine_chunks(columns[VALUE_KIND]))
    after_kinds = numpy_values(combine_chunks(merged.columns[VALUE_KIND])) if VALUE_KIND in merged.columns else None
    if after_kinds is None:
        after_kinds = kinds[merged.rows]
    is_after = reported & ((after_kinds & 1) == 0)
    is_before = reported & (before >= 0)
    if kinds.any():
        is_before[is_before] = (kinds[before[is_before]] & 1) == 0
    both = np.flatnonzero(is_before & is_after)
    if rules.compared is not None and len(both):
        same = both[~_differ(columns, before, merged, both, rules.compared)]
        is_before[same] = is_after[same] = False
    new_kinds = after_kinds if rules.keeps_kinds else INSERT
    old_kinds = np.where(is_after, UPDATE_BEFORE, DELETE).astype(np.int8)
    made = _pairs(old_kinds, np.where(is_before, UPDATE_AFTER, new_kinds))
    places = np.flatnonzero(_pairs(is_before, is_after))
    rows = _pairs(before, merged.rows)[places]
    index = from_numpy(rows, pa.int64())
    arrays: dict[str, pa.Array] = {VALUE_KIND: from_numpy(made[places], pa.int8())}
    for name in rules.columns:
        if name in merged.columns and name != VALUE_KIND:
            column = columns[name]
            both_sides = pa.chunked_array([*column.chunks, merged.columns[name]], type=column.type)
            mixed = np.where(places & 1, len(column) + (places >> 1), rows)
            arrays[name] = pc.take(both_sides, from_numpy(mixed, pa.int64()), boundscheck=False)
    stored = pa.table({name: columns[name] for name in rules.columns if name not in arrays})
    kept = pc.take(stored, index, boundscheck=False)
    return pa.table({name: arrays[name] if name in arrays else kept.column(name) for name in rules.columns})


def _pairs(first: AnyArray, second: AnyArray) -> AnyArray:
    """Interleave the values of the rows before and after, key by key."""
    pairs = np.empty((len(first), 2), first.dtype)
    pairs[:, 0], pairs[:, 1] = first, second
    return pairs.ravel()


def insertions(batch: pa.RecordBatch, rules: ChangeRules) -> pa.RecordBatch:
    """The change rows of keys that did not exist before: every +I and +U as +I."""
    kinds = numpy_values(batch.column(VALUE_KIND))
    adds = (kinds & 1) == 0
    if not adds.all():
        batch = batch.filter(from_numpy(adds, pa.bool_()))
    batch = batch.select(list(rules.columns))
    if not kinds.any():
        return batch
    place = batch.schema.get_field_index(VALUE_KIND)
    new = from_numpy(np.zeros(batch.num_rows, np.int8), pa.int8())
    return batch.set_column(place, batch.schema.field(place), new)


def _differ(
    columns: Mapping[str, pa.ChunkedArray], before: Ints, merged: Merged, keys: Ints, compared: tuple[Field, ...]
) -> Mask:
    """A mask of the given keys whose row after differs from the row before."""
    differ = np.zeros(len(keys), np.bool_)
    unknown = np.arange(len(keys))
    for field in compared:
        if field.name not in columns:
            continue
        left, column = before[keys[unknown]], columns[field.name]
        if field.name in merged.columns:
            right = combine_chunks(merged.columns[field.name].take(from_numpy(keys[unknown], pa.int64())))
        else:
            right = _take(column, merged.rows[keys[unknown]])
        other = ~_equal(_take(column, left), right, field)
        differ[unknown[other]] = True
        unknown = unknown[~other]
        if not len(unknown):
            break
    return differ


def _take(column: pa.ChunkedArray, rows: Ints) -> pa.Array:
    return combine_chunks(column.take(from_numpy(rows, pa.int64())))


def _equal(left: pa.Array, right: pa.Array, field: Field) -> Mask:
    """A mask of the rows with equal values: nulls are equal, NaN equals NaN, -0.0 differs from 0.0."""
    if not isinstance(field.type, Atomic) or pa.types.is_floating(left.type):
        codes: Ints = codes_of([pa.concat_arrays([left, right])], [field.type])
        same: Mask = codes[: len(left)] == codes[len(left) :]
        return same
    same = numpy_values(pc.fill_null(pc.equal(left, right), False))
    if left.null_count or right.null_count:
        same |= ~(validity_mask(left) | validity_mask(right))
    return same
