"""The Parquet groups of shredded VARIANT columns.

Source: format.md §8.9; Java `PaimonShreddingUtils.variantShreddingSchema`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.variant.arrays import as_variants, each
from paimon_py.codec.variant.form import METADATA, TYPED, VALUE
from paimon_py.codec.variant.infer import InferRules, infer
from paimon_py.formats.field_ids import element_id
from paimon_py.formats.parquet.schema import FIELD_ID, LeafColumn, is_variant_type, leaf_columns
from paimon_py.spec.options import Options
from paimon_py.spec.shredding import OPTION as SHREDDING_SCHEMA
from paimon_py.spec.types import MAX_LENGTH, ArrayType, Atomic, DataType, Field, Root, RowType

_BYTES = Atomic(Root.VARBINARY, length=MAX_LENGTH)
_DICTIONARY = Atomic(Root.VARBINARY, nullable=False, length=MAX_LENGTH)

Wanted = Mapping[str, DataType]
"""The target types of VARIANT columns, by name."""


def with_groups(schema: pa.Schema, fields: Sequence[Field], wanted: Wanted) -> pa.Schema:
    """The schema of a file with groups for the shredded VARIANT columns."""
    for at, field in enumerate(fields):
        if is_shredded(field, wanted):
            metadata = _field(METADATA, pa.binary(), 0, nullable=False)
            group = pa.struct([metadata, *_parts(wanted[field.name], 1)])
            schema = schema.set(at, schema.field(at).with_type(group))
    return schema


def columns_with_groups(fields: Sequence[Field], wanted: Wanted) -> list[LeafColumn]:
    """The leaf columns of such a file, in order."""
    found: list[LeafColumn] = []
    for field in fields:
        if is_shredded(field, wanted):
            found.append(LeafColumn((field.name, METADATA), _DICTIONARY, flat=False))
            found += _leaves((field.name,), wanted[field.name])
        else:
            found += leaf_columns([field])
    return found


def is_shredded(field: Field, wanted: Wanted) -> bool:
    """Whether a column is shredded: a VARIANT column itself, not one with nested variants."""
    return is_variant_type(field.type) and field.name in wanted and not is_variant_type(wanted[field.name])


class Inference(NamedTuple):
    """Infers the shredding from a file's first rows.

    `columns`: the VARIANT columns. `rows`: the number of rows to examine.
    """

    columns: tuple[str, ...]
    rows: int
    rules: InferRules

    def of(self, batches: Sequence[pa.RecordBatch]) -> Wanted:
        """The target type of each column that is worth shredding."""
        found = {}
        for name in self.columns:
            arrays = [as_variants(batch.column(name)) for batch in batches]
            kind = infer(islice((one for array in arrays for one in each(array)), self.rows), self.rules)
            if kind is not None:
                found[name] = kind
        return found


def inference_of(options: Mapping[str, str], fields: Sequence[Field]) -> Inference | None:
    """The inference configured by a table's options, if any; columns with a configured type are excluded."""
    typed = Options(options)
    columns = tuple(field.name for field in fields if is_variant_type(field.type))
    if not columns or not typed.get_bool("variant.inferShreddingSchema") or typed.find_str(SHREDDING_SCHEMA):
        return None
    rules = InferRules(
        fields_max=typed.get_int("variant.shredding.maxSchemaWidth"),
        depth_max=typed.get_int("variant.shredding.maxSchemaDepth"),
        least_share=typed.get_float("variant.shredding.minFieldCardinalityRatio"),
    )
    return Inference(columns, typed.get_int("variant.shredding.maxInferBufferRow"), rules)


def leaf_arrays(array: pa.Array) -> list[pa.Array]:
    """The leaf columns of a group, in file order."""
    kind = array.type
    if pa.types.is_struct(kind):
        return [leaf for at in range(kind.num_fields) for leaf in leaf_arrays(array.field(at))]
    return leaf_arrays(array.flatten()) if pa.types.is_list(kind) else [array]


def _field(name: str, kind: pa.DataType, number: int, *, nullable: bool = True) -> pa.Field:
    return pa.field(name, kind, nullable, metadata={FIELD_ID: str(number).encode()})


def _parts(kind: DataType, first: int) -> list[pa.Field]:
    """`value` and `typed_value` of a node; their ids start at `first`."""
    value = _field(VALUE, pa.binary(), first)
    return [value] if is_variant_type(kind) else [value, _field(TYPED, _typed_value(kind, first + 1), first + 1)]


def _typed_value(kind: DataType, number: int) -> pa.DataType:
    if isinstance(kind, RowType):
        return pa.struct([_field(f.name, pa.struct(_parts(f.type, 0)), f.id, nullable=False) for f in kind.fields])
    if isinstance(kind, ArrayType):
        return pa.list_(_field("element", pa.struct(_parts(kind.element, 0)), element_id(number, 1)))
    return to_arrow_type(kind)


def _leaves(path: tuple[str, ...], kind: DataType) -> list[LeafColumn]:
    value = LeafColumn((*path, VALUE), _BYTES, flat=False)
    if is_variant_type(kind):
        return [value]
    typed = (*path, TYPED)
    if isinstance(kind, RowType):
        return [value, *(leaf for field in kind.fields for leaf in _leaves((*typed, field.name), field.type))]
    if isinstance(kind, ArrayType):
        return [value, *_leaves((*typed, "list", "element"), kind.element)]
    assert isinstance(kind, Atomic)
    return [value, LeafColumn(typed, kind, flat=False)]
