"""Splits bound predicates: by columns, and for the columns of a file."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa

from paimon_py.expr.arrow import evaluate
from paimon_py.expr.bind import all_of, any_of, bind
from paimon_py.expr.predicate import (
    And,
    Compare,
    CompareColumns,
    Constant,
    In,
    IsNull,
    IsTrue,
    Not,
    Or,
    Predicate,
    Ref,
    TextMatch,
    ValueTest,
)
from paimon_py.expr.references import columns_of, keeping_failing, may_fail
from paimon_py.spec.types import Atomic, Field, Root, RowType

_INTEGERS = (Root.TINYINT, Root.SMALLINT, Root.INT, Root.BIGINT)


def split_conjuncts(predicate: Predicate, columns: Collection[str]) -> tuple[Predicate | None, Predicate | None]:
    """Split a predicate in two: what these columns alone can decide, and the rest. Both together are equivalent to it.

    Parts of an AND that also need other columns are in the rest; what they imply for `columns` alone is in the first
    result as well, so that `(p = 1 AND x > 2) OR (p = 2 AND x > 3)` prunes by p. So are parts whose values
    cannot be calculated for some rows: the first result, which may meet deleted rows, is true for such rows.
    """
    wanted = frozenset(columns)
    only: list[Predicate] = []
    rest: list[Predicate] = []
    for part in predicate.parts if isinstance(predicate, And) else (predicate,):
        only.append(_weaken(part, wanted))
        if not columns_of(part) <= wanted or may_fail(part):
            rest.append(part)
    return _unless_true(all_of(only)), _unless_true(all_of(rest))


def decide(predicate: Predicate, known: pa.RecordBatch) -> Predicate:
    """The remainder of a bound predicate if every row has these values.

    Shapes: `known` — one row. Parts that read no other column become true or false; true if they cannot be calculated.
    """
    if isinstance(predicate, And):
        return all_of(decide(part, known) for part in predicate.parts)
    if isinstance(predicate, Or):
        return any_of(decide(part, known) for part in predicate.parts)
    columns = columns_of(predicate)
    if not columns or not columns <= set(known.schema.names):
        return predicate
    return Constant(bool(evaluate(keeping_failing(predicate), known)[0].as_py()))


def translate(predicate: Predicate, fields: Sequence[Field]) -> Predicate:
    """The implications of a bound predicate for rows as stored in an older file.

    Columns are found by field id, so the result has the file's names and types. It is safe for skipping files, row
    groups and rows before the schema is evolved, but may keep more rows than the predicate: for a missing column, or
    one whose type changed without keeping the order, the result is `Constant(True)`.
    """
    if isinstance(predicate, And):
        return all_of(translate(part, fields) for part in predicate.parts)
    if isinstance(predicate, Or):
        return any_of(translate(part, fields) for part in predicate.parts)
    if isinstance(predicate, Constant):
        return predicate
    if isinstance(predicate, ValueTest):
        return Constant(True)
    if isinstance(predicate, (Not, IsTrue)):
        raise ValueError(f"{predicate!r} is not bound")
    if isinstance(predicate, CompareColumns):
        left, right = _find(predicate.left, fields), _find(predicate.right, fields)
        if left is None or right is None:
            return Constant(True)
        return bind(CompareColumns(Ref(left.path), predicate.operator, Ref(right.path)), fields)
    ref = _find(predicate.column, fields)
    if ref is None or ref == predicate.column:
        return Constant(True) if ref is None else predicate
    return bind(_with_ref(predicate, Ref(ref.path)), fields)


def _weaken(predicate: Predicate, columns: frozenset[str]) -> Predicate:
    if isinstance(predicate, And):
        return all_of(_weaken(part, columns) for part in predicate.parts)
    if isinstance(predicate, Or):
        return any_of(_weaken(part, columns) for part in predicate.parts)
    return keeping_failing(predicate) if columns_of(predicate) <= columns else Constant(True)


def _unless_true(predicate: Predicate) -> Predicate | None:
    return None if predicate == Constant(True) else predicate


def _with_ref(leaf: Compare | In | IsNull | TextMatch, ref: Ref) -> Predicate:
    if isinstance(leaf, Compare):
        return Compare(ref, leaf.operator, leaf.literal)
    if isinstance(leaf, In):
        return In(ref, leaf.literals, negated=leaf.negated)
    if isinstance(leaf, IsNull):
        return IsNull(ref, leaf.negated)
    return TextMatch(ref, leaf.test, leaf.pattern, leaf.negated)


def _find(ref: Ref, fields: Sequence[Field]) -> Ref | None:
    """The column by ids among the file's fields, if its values there compare as they will after evolution."""
    path: list[str] = []
    field: Field | None = None
    for field_id in ref.ids:
        field = next((field for field in fields if field.id == field_id), None)
        if field is None:
            return None
        path.append(field.name)
        fields = field.type.fields if isinstance(field.type, RowType) else ()
    if field is None or not isinstance(field.type, Atomic) or not isinstance(ref.type, Atomic):
        return None
    return Ref(tuple(path), ref.ids, field.type) if _keeps_values(field.type, ref.type) else None


def _keeps_values(old: Atomic, new: Atomic) -> bool:
    """Whether casting old to new changes no value, so that a literal can be fitted to the old type instead."""
    if old.root is new.root:
        if old.root is Root.DECIMAL:
            whole = (new.precision or 10) - (new.scale or 0) >= (old.precision or 10) - (old.scale or 0)
            return whole and (new.scale or 0) >= (old.scale or 0)
        if old.root in (Root.CHAR, Root.BINARY):
            return old.length == new.length
        precise = (new.precision if new.precision is not None else 6) >= (
            old.precision if old.precision is not None else 6
        )
        return precise and (new.length or 1) >= (old.length or 1)
    both = old.root in _INTEGERS and new.root in _INTEGERS
    return both and _INTEGERS.index(old.root) < _INTEGERS.index(new.root)
