"""Parts of VARIANT columns, `col("payload").variant("$.user.id", "BIGINT")`, in conditions and values of row verbs.

Rows are read with whole columns, from which the parts are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.errors import UnsupportedError
from paimon_py.expr.arrow import Columns, Filter, prepare
from paimon_py.expr.bind import all_of, any_of, bind
from paimon_py.expr.predicate import And, Constant, IsNull, Or, Predicate, Ref
from paimon_py.expr.references import refs_of
from paimon_py.files.variant_parts import cast_array
from paimon_py.formats.parquet.variants import parts_of
from paimon_py.spec.types import Atomic, Field, Root, VariantParts
from paimon_py.spec.variant_paths import with_parts

_VARIANT = Atomic(Root.VARIANT)


def bind_with_parts(predicate: Predicate, fields: Sequence[Field]) -> Predicate:
    """`bind`, also for parts of columns of type VARIANT.

    Raises: as `bind`; UnsupportedError for parts of a variant inside a ROW.
    """
    bound = bind(predicate, fields, takes_parts=True)
    for ref in refs_of(bound):
        _require_column(ref)
    return bound


def filter_of(predicate: Predicate) -> Filter:
    """The mask of the rows that match a bound predicate, from whole columns."""
    mask, kinds = prepare(predicate), _kinds(refs_of(predicate))
    if not kinds:
        return mask

    def compute_mask(columns: Columns) -> pa.Array:
        by_name = columns
        if isinstance(columns, pa.RecordBatch):
            by_name = dict(zip(columns.schema.names, columns.columns, strict=True))
        parts = {name: parts_of(by_name[name], kind, cast_array) for name, kind in kinds.items()}
        return mask({**by_name, **parts})

    return compute_mask


def without_parts(predicate: Predicate) -> Predicate:
    """A condition that all rows meet that match a bound predicate, and that does not read parts."""
    if isinstance(predicate, (And, Or)):
        parts = [without_parts(part) for part in predicate.parts]
        return all_of(parts) if isinstance(predicate, And) else any_of(parts)
    return Constant(True) if any(ref.part is not None for ref in refs_of(predicate)) else predicate


def part_reader(ref: Ref, field: Field) -> tuple[Callable[[Mapping[str, pa.Array]], pa.Array], Field]:
    """A function that takes a part from the columns of a batch, and the part as a field.

    Args:
        ref: the part, of the column `field`.

    Raises: UsageError for a column of another type; UnsupportedError for parts of a variant inside a ROW.
    """
    (bound,) = refs_of(bind(IsNull(ref), [field], takes_parts=True))
    _require_column(bound)
    assert bound.part is not None
    part, kinds = bound.part, _kinds([bound])

    def read(columns: Mapping[str, pa.Array]) -> pa.Array:
        return pc.struct_field(parts_of(columns[field.name], kinds[field.name], cast_array), [part.name])

    return read, part


def _kinds(refs: Sequence[Ref]) -> dict[str, VariantParts]:
    """The requested parts by column."""
    found: dict[str, list[Ref]] = {}
    for ref in refs:
        if ref.part is not None:
            found.setdefault(ref.name, []).append(ref)
    kinds = {name: with_parts(_VARIANT, [ref.part for ref in own if ref.part]) for name, own in found.items()}
    return {name: kind for name, kind in kinds.items() if isinstance(kind, VariantParts)}


def _require_column(ref: Ref) -> None:
    if ref.part is not None and len(ref.column_path) > 1:
        raise UnsupportedError(
            f"{ref}: parts of variants inside a ROW are for scan, changes and stream; find the keys of rows with a scan"
            " first", feature="parts of variants inside a ROW outside scans",
        )  # fmt: skip
