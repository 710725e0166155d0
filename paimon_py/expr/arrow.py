"""Evaluate bound predicates on Arrow columns.

Shapes: every mask has one slot per row; inside, null means unknown; at the top unknown becomes false.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.arrays import AnyArray
from paimon_py.errors import SchemaError, UsageError
from paimon_py.expr import like
from paimon_py.expr.arrays import column_type, conform, literal_array
from paimon_py.expr.literal import BinaryValue, LiteralValue
from paimon_py.expr.pairs import KERNELS, comparison, float_bits
from paimon_py.expr.predicate import (
    And,
    Compare,
    CompareColumns,
    Constant,
    In,
    IsNull,
    Or,
    Predicate,
    Ref,
    TextMatch,
    ValueTest,
)
from paimon_py.expr.references import calculates, columns_of
from paimon_py.spec.types import Atomic, Root

Columns = Union[pa.RecordBatch, Mapping[str, pa.Array]]
_FEW_ROWS = 4
"""A set larger than this multiple of the rows is searched instead of hashed."""
Test = Callable[[pa.Array], pa.Array]
Filter = Callable[[Columns], pa.Array]
PartialFilter = Callable[[Columns, pa.Array], pa.Array]
"""A filter for some rows, given by a mask without nulls."""


def evaluate(predicate: Predicate, columns: Columns) -> pa.BooleanArray:
    """The rows that match, as a mask without nulls.

    Shapes: `columns` is a batch, or arrays of one length by name; columns have the Arrow type of their table type
        (other types are cast if nothing is lost), or are dictionaries.
    Cost: about one pass per leaf; parts of an AND that can no longer change the answer are skipped.
    """
    return prepare(predicate)(columns)


def prepare(predicate: Predicate) -> Filter:
    """`evaluate` for many batches: literals are converted to Arrow once.

    Raises: ValueError if the predicate was not bound.
    """
    mask = _node(predicate)

    def top(columns: Columns) -> pa.Array:
        found = mask(columns)
        return pc.fill_null(found, _FALSE) if found.null_count else found

    return top


def pinned_values(predicate: Predicate) -> dict[str, pa.Array]:
    """Columns for which matching rows can only have certain values, and these values (not null, possibly repeated).

    Only top-level columns fixed by `==` or IN in the predicate itself or in one part of its AND are found; of several
    such parts the one with the fewest values is used.
    """
    found: dict[str, pa.Array] = {}
    for part in predicate.parts if isinstance(predicate, And) else (predicate,):
        literals: Sequence[LiteralValue]
        if isinstance(part, Compare) and part.operator == "==":
            literals = (part.literal,)
        elif isinstance(part, In) and not part.negated:
            literals = part.literals
        else:
            continue
        name = part.column.name
        if len(part.column.path) == 1 and (name not in found or len(literals) < len(found[name])):
            found[name] = literal_array(literals, column_type(part.column))
    return found


_FALSE = literal_array([False], Atomic(Root.BOOLEAN))[0]


def _node(predicate: Predicate) -> Filter:
    if isinstance(predicate, Constant):
        value = predicate.value
        return lambda columns: _constant(columns, value)
    if isinstance(predicate, (And, Or)):
        early = [_node(part) for part in predicate.parts if not calculates(part)]
        late = [_among_rows(part) for part in predicate.parts if calculates(part)]
        return _all(early, late) if isinstance(predicate, And) else _any(early, late)
    if isinstance(predicate, IsNull):
        return _null_mask(predicate)
    if isinstance(predicate, (Compare, In, TextMatch)):
        return _leaf(predicate.column, test_of(predicate))
    if isinstance(predicate, CompareColumns):
        return _pair(predicate)
    if isinstance(predicate, ValueTest):
        return _values(predicate)
    raise ValueError(f"{predicate!r} is not bound")


def _constant(columns: Columns, value: bool) -> pa.Array:
    size = _size(columns)
    bits = np.full((size + 7) // 8, 0xFF if value else 0, np.uint8)
    return pa.Array.from_buffers(pa.bool_(), size, [None, pa.py_buffer(bits)])


def _size(columns: Columns) -> int:
    return columns.num_rows if isinstance(columns, pa.RecordBatch) else len(next(iter(columns.values()), ()))


def _all(masks: list[Filter], late: list[PartialFilter]) -> Filter:
    """Rows for which all masks are true; the late ones are evaluated only for rows for which the others are."""

    def mask(columns: Columns) -> pa.Array:
        found = masks[0](columns) if masks else _constant(columns, True)
        for other in masks[1:]:
            if found.true_count == 0:
                break
            found = pc.and_kleene(found, other(columns))
        for last in late:
            if found.true_count == 0:
                break
            found = pc.and_kleene(found, last(columns, pc.fill_null(found, _FALSE)))
        return found

    return mask


def _any(masks: list[Filter], late: list[PartialFilter]) -> Filter:
    """Rows for which a mask is true; the late ones are evaluated only for rows for which no other is."""

    def mask(columns: Columns) -> pa.Array:
        found = masks[0](columns) if masks else _constant(columns, False)
        for other in masks[1:]:
            found = pc.or_kleene(found, other(columns))
        for last in late:
            found = pc.or_kleene(found, last(columns, pc.invert(pc.fill_null(found, _FALSE))))
        return found

    return mask


def _among_rows(predicate: Predicate) -> PartialFilter:
    """A condition on calculated values, evaluated for some rows; null for all others."""
    mask, names = _node(predicate), columns_of(predicate)

    def some(columns: Columns, chosen: pa.Array) -> pa.Array:
        if chosen.true_count == len(chosen):
            return mask(columns)
        found = mask({name: columns[name].filter(chosen) for name in names})
        return pc.replace_with_mask(pa.nulls(len(chosen), pa.bool_()), chosen, found)

    return some


def _values(leaf: ValueTest) -> Filter:
    from paimon_py.expr.value_test import prepare_values

    values, test = prepare_values(leaf, prepare), _node(leaf.test)

    def mask(columns: Columns) -> pa.Array:
        try:
            calculated = values(columns, _size(columns))
        except UsageError as error:
            if leaf.keeps_failing:
                return _constant(columns, True)
            if not isinstance(error, SchemaError):  # a condition of CASE cannot be decided
                raise
            raise UsageError(f"{leaf!r} cannot be decided: {error}") from error
        return test(calculated)

    return mask


def _column(columns: Columns, ref: Ref) -> pa.Array:
    """The column's array; a field of a null ROW is null."""
    array = columns[ref.name]
    for step in ref.path[1:]:
        array = pc.struct_field(array, [step])
    return array


def _null_mask(leaf: IsNull) -> Filter:
    kernel = pc.is_valid if leaf.negated else pc.is_null

    def mask(columns: Columns) -> pa.Array:
        array = _column(columns, leaf.column)
        has_nulls = pa.types.is_dictionary(array.type) and array.dictionary.null_count
        return kernel(_decode(array) if has_nulls else array)

    return mask


def _leaf(ref: Ref, test: Test) -> Filter:
    type_ = column_type(ref)

    def mask(columns: Columns) -> pa.Array:
        array = _column(columns, ref)
        if pa.types.is_dictionary(array.type):
            return test(conform(array.dictionary, type_)).take(array.indices)
        return test(conform(array, type_))

    return mask


def _pair(leaf: CompareColumns) -> Filter:
    left, right = column_type(leaf.left), column_type(leaf.right)
    test = comparison(left, right, leaf.operator)

    def mask(columns: Columns) -> pa.Array:
        return test(
            conform(_decode(_column(columns, leaf.left)), left), conform(_decode(_column(columns, leaf.right)), right)
        )

    return mask


def _decode(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def test_of(leaf: Compare | In | TextMatch) -> Test:
    """A leaf as a function from an array of its column's type to a mask in which null is unknown."""
    type_ = column_type(leaf.column)
    if isinstance(leaf, TextMatch):
        return _text_test(leaf)
    if isinstance(leaf, In):
        return _in_test(leaf, type_)
    scalar = literal_array([leaf.literal], type_)[0]
    if isinstance(leaf.literal, float):
        return _float_test(leaf.operator, leaf.literal, scalar)
    kernel = KERNELS[leaf.operator]
    return lambda array: kernel(array, scalar)


def _in_test(leaf: In, type_: Atomic) -> Test:
    keys = literal_array(leaf.literals, type_)
    floats = type_.root in (Root.FLOAT, Root.DOUBLE)
    values = float_bits(keys) if floats else keys
    ordered = np.sort(_integers(values)) if _is_integral(values.type) else None

    def test(array: pa.Array) -> pa.Array:
        stored = float_bits(array) if floats else array
        if ordered is not None and stored.type == values.type and _FEW_ROWS * len(stored) < len(ordered):
            found = _among(stored, ordered)
        else:
            found = pc.is_in(stored, value_set=values)
        found = pc.invert(found) if leaf.negated else found
        return pc.and_(found, pc.is_valid(array)) if leaf.negated and array.null_count else found

    return test


def _is_integral(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_temporal(kind))


def _among(array: pa.Array, ordered: AnyArray) -> pa.Array:
    """`pc.is_in` of an ordered set, False for nulls, without building a table of the whole set for each few rows."""
    stored = _integers(array)
    at = np.minimum(np.searchsorted(ordered, stored), len(ordered) - 1)
    packed = np.packbits(ordered[at] == stored, bitorder="little")
    found = pa.Array.from_buffers(pa.bool_(), len(array), [None, pa.py_buffer(packed)], null_count=0)
    return pc.and_(found, pc.is_valid(array)) if array.null_count else found


def _integers(array: pa.Array) -> AnyArray:
    """The stored integers; arbitrary for nulls."""
    width = array.type.bit_width // 8
    data = array.buffers()[1]
    if data is None:
        return np.zeros(len(array), f"<i{width}")
    return np.frombuffer(data, f"<i{width}", count=len(array), offset=array.offset * width)


def _float_test(operator: str, value: float, scalar: Any) -> Test:
    """A float comparison as in Java's `compare`: −0.0 before 0.0, NaN after everything and equal to itself.

    Arrow compares by IEEE: NaN is unordered, which is right for < <= == with a number (a NaN row does not match)
    and, negated, for >= > !=. Zeros of both signs are distinguished by their bits.
    """
    if value != value:
        return (lambda array: pc.invert(pc.is_nan(array))) if operator == "!=" else pc.is_nan
    positive = {">=": "<", ">": "<=", "!=": "=="}.get(operator)
    if positive is not None:
        inner = _float_test(positive, value, scalar)
        return lambda array: pc.invert(inner(array))
    if value != 0:
        kernel = KERNELS[operator]
        return lambda array: kernel(array, scalar)
    negative = bool(np.signbit(value))
    if operator == "==":
        return lambda array: pc.equal(_bits(array), _bits_of(array, negative))
    if operator == ("<=" if negative else "<"):
        return lambda array: pc.or_(pc.less(array, scalar), pc.equal(_bits(array), _bits_of(array, True)))
    kernel = pc.less if negative else pc.less_equal
    return lambda array: kernel(array, scalar)


def _bits(array: pa.Array) -> pa.Array:
    return array.view(pa.int32() if array.type == pa.float32() else pa.int64())


def _bits_of(array: pa.Array, negative: bool) -> Any:
    """The bits of a zero with the sign, in the width of the array."""
    if array.type == pa.float32():
        return _ZERO32[negative]
    return _ZERO64[negative]


_ZERO32 = literal_array([0, -(1 << 31)], Atomic(Root.INT))
_ZERO64 = literal_array([0, -(1 << 63)], Atomic(Root.BIGINT))


def _text_test(leaf: TextMatch) -> Test:
    pattern = leaf.pattern.data if isinstance(leaf.pattern, BinaryValue) else leaf.pattern
    if leaf.test in ("like", "ilike"):
        kernel, pattern = pc.match_substring_regex, like.regex(str(pattern), ignore_case=leaf.test == "ilike")
    else:
        kernel = {"starts_with": pc.starts_with, "ends_with": pc.ends_with, "contains": pc.match_substring}[leaf.test]
    if leaf.negated:
        return lambda array: pc.invert(kernel(array, pattern))
    return lambda array: kernel(array, pattern)
