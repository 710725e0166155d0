"""Decides from bounds whether files, row groups or runs may contain a matching row, for many at once.

The answer is never a wrong no: unknown values count as a maybe.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Union

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.arrays import Mask
from paimon_py.expr import like
from paimon_py.expr.arrays import column_type, conform, literal_array
from paimon_py.expr.literal import BinaryValue
from paimon_py.expr.pairs import FLOATS, KERNELS, as_floats, comparison
from paimon_py.expr.predicate import (
    And,
    Compare,
    CompareColumns,
    Constant,
    In,
    IsNull,
    Or,
    Predicate,
    TextMatch,
    ValueTest,
)
from paimon_py.spec.types import Atomic, Root

Leaf = Union[Compare, In, IsNull, TextMatch]

_NUMPY = {
    pa.int8().id: np.int8,
    pa.int16().id: np.int16,
    pa.int32().id: np.int32,
    pa.int64().id: np.int64,
    pa.float32().id: np.float32,
    pa.float64().id: np.float64,
    pa.date32().id: np.int32,
    pa.time32("ms").id: np.int32,
    pa.timestamp("ms").id: np.int64,
}


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """The known bounds of one column, one slot per file (or row group, …).

    Attributes:
        min: a lower bound of all values; null if unknown. May be a truncated string. Has the column's Arrow type.
        max: an upper bound of all values; null if unknown.
        null_count: the number of null rows; None, or null in a slot, if unknown.
        trusted_floats: whether the bounds of a FLOAT or DOUBLE column count NaN as the largest value. False for ORC
            files and Parquet footers, whose bounds may ignore NaN; then they are not used for predicates that NaN
            satisfies. One answer for all slots or one each.
    """

    min: pa.Array
    max: pa.Array
    null_count: pa.Array | None = None
    trusted_floats: bool | Mask = False


def may_match(predicate: Predicate, bounds: Mapping[str, Bounds], rows: pa.Array) -> Mask:
    """Whether each slot may contain a row that matches.

    Shapes: `rows` has the row count of each slot (null if unknown); every array in `bounds` has its length.
    Args:
        bounds: by top-level column; columns without bounds are unknown. Of a column with inner fields only the null
            count is used.
    Cost: a few vectorised comparisons per leaf.
    Raises: ValueError if the predicate was not bound.
    """
    if isinstance(predicate, Constant):
        return np.full(len(rows), predicate.value)
    if isinstance(predicate, And):
        found = np.ones(len(rows), np.bool_)
        for part in predicate.parts:
            found &= may_match(part, bounds, rows)
        return found
    if isinstance(predicate, Or):
        found = np.zeros(len(rows), np.bool_)
        for part in predicate.parts:
            found |= may_match(part, bounds, rows)
        return found
    if isinstance(predicate, CompareColumns):
        return _pair(predicate, bounds.get(predicate.left.name), bounds.get(predicate.right.name), rows)
    if isinstance(predicate, ValueTest):
        return may_match(predicate.test, _bounds_of_values(predicate, bounds), rows)
    if not isinstance(predicate, (Compare, In, IsNull, TextMatch)):
        raise ValueError(f"{predicate!r} is not bound")
    known = bounds.get(predicate.column.name)
    return np.ones(len(rows), np.bool_) if known is None else _leaf(predicate, known, rows)


def _bounds_of_values(test: ValueTest, bounds: Mapping[str, Bounds]) -> dict[str, Bounds]:
    """The known bounds of calculated values, by name."""
    from paimon_py.expr.value_bounds import bounds_of_values

    found: dict[str, Bounds] = {}
    for name, value in bounds_of_values(test, {name: (known.min, known.max) for name, known in bounds.items()}).items():
        known = bounds[value.column.name]
        trusted = value.grows and known.trusted_floats if column_type(value.column).root in FLOATS else True
        found[name] = Bounds(min=value.min, max=value.max, null_count=known.null_count, trusted_floats=trusted)
    return found


def _leaf(leaf: Leaf, known: Bounds, rows: pa.Array) -> Mask:
    nested = len(leaf.column.path) > 1
    if isinstance(leaf, IsNull) and not leaf.negated:
        return _flags(known, None if nested or known.null_count is None else pc.greater(known.null_count, _ZERO))
    found = _flags(known, None if known.null_count is None else pc.less(known.null_count, rows))
    if isinstance(leaf, IsNull) or nested or not found.any():
        return found
    type_ = column_type(leaf.column)
    low, high = conform(known.min, type_), conform(known.max, type_)
    if type_.root in FLOATS:
        inside = _flags(known, _floats_may(leaf, _known_float(low), _known_float(high), type_))
        return found & (inside | ~np.asarray(known.trusted_floats)) if _takes_nan(leaf) else found & inside
    return found & _flags(known, _values_may(leaf, low, high, type_))


def _pair(leaf: CompareColumns, left: Bounds | None, right: Bounds | None, rows: pa.Array) -> Mask:
    """Whether some values of two columns may compare like this, by the ends of their ranges."""
    found = np.ones(len(rows), np.bool_)
    for known in (left, right):
        if known is not None and known.null_count is not None:
            found &= _flags(known, pc.less(known.null_count, rows))
    if left is None or right is None or len(leaf.left.path) > 1 or len(leaf.right.path) > 1 or not found.any():
        return found
    one, other = column_type(leaf.left), column_type(leaf.right)
    low, high = conform(left.min, one), conform(left.max, one)
    other_low, other_high = conform(right.min, other), conform(right.max, other)
    if {one.root, other.root} & FLOATS:
        ends = (_end(low, other), _end(high, other), _end(other_low, one), _end(other_high, one))
        return found & _float_pair(leaf.operator, left, ends, (_is_sure(left, one), _is_sure(right, other)))
    if leaf.operator in ("<", "<="):
        return found & _flags(left, comparison(one, other, leaf.operator)(low, other_high))
    if leaf.operator in (">", ">="):
        return found & _flags(left, comparison(one, other, leaf.operator)(high, other_low))
    below, above = comparison(one, other, "<=")(low, other_high), comparison(one, other, ">=")(high, other_low)
    if leaf.operator == "==":
        return found & _flags(left, pc.and_kleene(below, above))
    single = pc.and_kleene(pc.equal(low, high), pc.equal(other_low, other_high))
    same = pc.and_kleene(single, comparison(one, other, "==")(low, other_low))
    return found & _flags(left, pc.invert(same))


def _float_pair(operator: str, known: Bounds, ends: tuple[pa.Array, ...], sure: tuple[Mask, Mask]) -> Mask:
    """Compare the ends as `_pair` does, if a column contains floats: writers mix up zeros, and some ignore NaN.

    Shapes: `ends` — least and greatest of one column, then of the other, as DOUBLE with null for NaN. `sure` — for each
        column whether its greatest end counts NaN.
    """
    low, high, other_low, other_high = ends
    below, above = _flags(known, pc.less_equal(low, other_high)), _flags(known, pc.greater_equal(high, other_low))
    if operator in ("<", "<="):
        return below | ~sure[1]
    if operator in (">", ">="):
        return above | ~sure[0]
    return (below & above) | ~(sure[0] | sure[1]) if operator == "==" else np.ones(len(below), np.bool_)


def _end(bound: pa.Array, beside: Atomic) -> pa.Array:
    return _known_float(as_floats(bound, beside))


def _is_sure(known: Bounds, type_: Atomic) -> Mask:
    return np.broadcast_to(np.asarray(True if type_.root not in FLOATS else known.trusted_floats), len(known.min))


def _flags(known: Bounds, mask: pa.Array | None) -> Mask:
    """A mask as numpy; unknown becomes True."""
    size = len(known.min)
    if mask is None or size == 0:
        return np.ones(size, np.bool_)
    bits = _bits(mask.buffers()[1], mask.offset, size)
    return bits if not mask.null_count else bits | ~_bits(mask.buffers()[0], mask.offset, size)


def _bits(buffer: pa.Buffer, offset: int, size: int) -> Mask:
    packed = np.frombuffer(buffer, np.uint8, (offset + size + 7) // 8)
    return np.unpackbits(packed, count=offset + size, bitorder="little")[offset:].view(np.bool_)


def _values_may(leaf: Compare | In | TextMatch, low: pa.Array, high: pa.Array, type_: Atomic) -> pa.Array | None:
    if isinstance(leaf, Compare):
        return _compare_may(leaf.operator, literal_array([leaf.literal], type_)[0], low, high)
    if isinstance(leaf, In):
        keys = literal_array(leaf.literals, type_)
        if leaf.negated:
            return pc.invert(pc.and_(pc.equal(low, high), pc.is_in(low, value_set=keys)))
        return _in_may(low, high, keys)
    pattern = leaf.pattern.data if isinstance(leaf.pattern, BinaryValue) else leaf.pattern.encode("utf-8")
    if leaf.test == "like":
        pattern = like.prefix(str(leaf.pattern)).encode("utf-8")
    if not pattern or leaf.test in ("ends_with", "contains", "ilike") or (leaf.negated and leaf.test == "like"):
        return None
    return _prefix_may(pattern, leaf.negated, low.cast(pa.binary()), high.cast(pa.binary()))


def _compare_may(operator: str, value: Any, low: pa.Array, high: pa.Array) -> pa.Array:
    if operator == "==":
        return pc.and_kleene(pc.less_equal(low, value), pc.greater_equal(high, value))
    if operator == "!=":
        return pc.or_kleene(pc.not_equal(low, value), pc.not_equal(high, value))
    return KERNELS[operator](low if operator in ("<", "<=") else high, value)


def _in_may(low: pa.Array, high: pa.Array, keys: pa.Array) -> pa.Array:
    """Whether some literal is within the bounds: one binary search per slot, for the first literal from `low` on.

    Values that numpy does not order are replaced by their ranks among bounds and literals.
    """
    if low.type.id in _NUMPY:
        return _fixed_in_may(low, high, _numbers(keys))
    ranks = pc.rank(pa.concat_arrays([low, high, keys]), tiebreaker="dense")
    numbers = np.frombuffer(ranks.buffers()[1], np.uint64, len(ranks), ranks.offset * 8)
    lows, highs = numbers[: len(low)], numbers[len(low) : 2 * len(low)]
    wanted = np.append(np.sort(numbers[2 * len(low) :]), np.iinfo(np.uint64).max)
    return _or_unknown(wanted[np.searchsorted(wanted, lows)] <= highs, low, high)


def _fixed_in_may(low: pa.Array, high: pa.Array, keys: npt.NDArray[Any]) -> pa.Array:
    keys = np.sort(keys)
    first = np.searchsorted(keys, _numbers(low))
    nearest = np.append(keys, np.zeros(1, keys.dtype))[first]
    return _or_unknown((first < len(keys)) & (nearest <= _numbers(high)), low, high)


def _numbers(array: pa.Array) -> npt.NDArray[Any]:
    """The values of a fixed-width column without copying; arbitrary where null."""
    dtype = np.dtype(_NUMPY[array.type.id])
    return np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * dtype.itemsize)


def _or_unknown(inside: Mask, low: pa.Array, high: pa.Array) -> pa.Array:
    packed = pa.py_buffer(np.packbits(inside, bitorder="little"))
    mask = pa.Array.from_buffers(pa.bool_(), len(inside), [None, packed])
    return pc.or_(mask, pc.or_(pc.is_null(low), pc.is_null(high)))


def _prefix_may(prefix: bytes, negated: bool, low: pa.Array, high: pa.Array) -> pa.Array:
    """Whether values with a prefix may occur: a range from the prefix to the last string that begins with it."""
    value = literal_array([BinaryValue(prefix)], Atomic(Root.VARBINARY))[0]
    if negated:
        return pc.invert(pc.and_kleene(pc.starts_with(low, prefix), pc.starts_with(high, prefix)))
    begins = pc.or_(pc.less(low, value), pc.starts_with(low, prefix))
    return pc.and_kleene(begins, pc.greater_equal(high, value))


def _known_float(bound: pa.Array) -> pa.Array:
    """Replace NaN bounds by null: they contain no information."""
    return pc.if_else(pc.is_nan(bound), _NULLS[bound.type], bound)


def _takes_nan(leaf: Compare | In | TextMatch) -> bool:
    """Whether a NaN row matches; for a NaN literal only == and != remain once bound."""
    if isinstance(leaf, Compare):
        return leaf.operator in (("==",) if leaf.literal != leaf.literal else ("!=", ">", ">="))
    return isinstance(leaf, In) and any(key != key for key in leaf.literals) is not leaf.negated


def _floats_may(leaf: Leaf, low: pa.Array, high: pa.Array, type_: Atomic) -> pa.Array | None:
    """Compare float bounds with a literal. A zero bound may be either zero, since writers mix up the two.

    Shapes: NaN bounds are null here. Arrow compares zeros as equal; only comparisons that distinguish them need care.
    """
    if isinstance(leaf, In):
        if leaf.negated:
            return None
        keys = _numbers(literal_array(leaf.literals, type_))
        inside = _fixed_in_may(low, high, keys[~np.isnan(keys)])
        return pc.or_(inside, pc.is_null(high)) if np.isnan(keys).any() else inside
    if not isinstance(leaf, Compare):
        return None
    value, operator = leaf.literal, leaf.operator
    if value != value:
        return None if operator == "!=" else pc.is_null(high)
    if value == 0:
        if operator == "!=":
            return None
        operator = {"<": "<=", ">": ">="}.get(operator, operator)  # type: ignore[assignment]
    return _compare_may(operator, literal_array([value], type_)[0], low, high)


_ZERO = literal_array([0], Atomic(Root.BIGINT))[0]
_NULLS = {
    target: pa.Array.from_buffers(target, 1, [pa.py_buffer(b"\0"), pa.py_buffer(b"\0" * 8)], 1)[0]
    for target in (pa.float32(), pa.float64())
}
