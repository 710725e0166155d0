"""Conditions of other libraries as predicates that keep at least the rows that the condition keeps.

Libraries compare in their own ways: NaN with numbers, zeros of both signs, times of different units. So a condition
becomes a `Claim`: a predicate that a scan may use to skip rows, and whether it is exact. The caller applies the
condition itself to the remaining rows unless the claim is exact. Conditions without a claim stay with the other
library.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.expr.bind import all_of, any_of
from paimon_py.expr.literal import to_literal
from paimon_py.expr.predicate import Compare, Constant, In, IsNull, Not, Operator, Or, Predicate, Ref, TextMatch

_UNITS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_DOUBLE_DIGITS, _FLOAT_DIGITS = 53, 24
_FLOAT_MAX = float(np.finfo(np.float32).max)


class Claim(msgspec.Struct, frozen=True):
    """The predicate of a condition on rows of a table.

    Attributes:
        predicate: every row that the condition keeps matches the predicate.
        exact: the condition is true, false and unknown for the same rows as the predicate.
    """

    predicate: Predicate
    exact: bool = True


class ForeignColumns:
    """Columns under the names that another library uses."""

    def __init__(self, schema: pa.Schema, paths: Mapping[str, tuple[str, ...]]) -> None:
        """`schema`: the schema in the library; `paths`: the path of each column in the table."""
        self._schema, self._paths = schema, paths

    def find(self, names: Sequence[str]) -> tuple[Ref, pa.DataType] | None:
        """The column, or the field inside a ROW, and its type; None if the table does not have it."""
        if names[0] not in self._paths:
            return None
        kind: pa.DataType = self._schema.field(names[0]).type
        for name in names[1:]:
            if not pa.types.is_struct(kind) or kind.get_field_index(name) < 0:
                return None
            kind = kind.field(name).type
        return Ref((*self._paths[names[0]], *names[1:])), kind

    def compare(self, names: Sequence[str], operator: Operator, value: pa.Scalar) -> Claim | None:
        """A claim for `column operator value`."""
        found = self.find(names)
        if found is None or not _fits(found[1], value):
            return None
        ref, kind = found
        if pa.types.is_floating(kind):
            return Claim(_float(ref, operator, float(value.as_py())), exact=False)
        return Claim(Compare(ref, operator, _literal(value)))

    def isin(self, names: Sequence[str], values: Iterable[pa.Scalar]) -> Claim | None:
        """A claim for a column that equals one of the values; NULL counts as a value."""
        found, listed = self.find(names), list(values)
        known = [value for value in listed if value.is_valid]
        if found is None or pa.types.is_floating(found[1]) or not all(_fits(found[1], value) for value in known):
            return None
        one_of: Predicate = In(found[0], tuple(_literal(value) for value in known))
        return Claim(one_of if len(known) == len(listed) else Or((IsNull(found[0]), one_of)), exact=False)

    def is_null(self, names: Sequence[str], *, negated: bool) -> Claim | None:
        """A claim for a column that is NULL, or is not NULL."""
        found = self.find(names)
        return None if found is None else Claim(IsNull(found[0], negated=negated))

    def text(self, names: Sequence[str], test: Any, pattern: object) -> Claim | None:
        """A claim for a string that starts with, ends with or contains another."""
        found = self.find(names)
        if found is None or not pa.types.is_string(found[1]) or not isinstance(pattern, str):
            return None
        return Claim(TextMatch(found[0], test, pattern))


def constant(value: object) -> Claim | None:
    """A claim for a condition that is the same for all rows."""
    return Claim(Constant(value)) if isinstance(value, bool) else None


def all_claims(parts: Sequence[Claim | None]) -> Claim | None:
    """The claim for conditions joined by AND: those without a claim are ignored."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    exact = len(known) == len(parts) and all(part.exact for part in known)
    return Claim(all_of(part.predicate for part in known), exact)


def any_claim(parts: Sequence[Claim | None]) -> Claim | None:
    """The claim for conditions joined by OR; None unless each condition has one."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or not known:
        return None
    return Claim(any_of(part.predicate for part in known), all(part.exact for part in known))


def no_claim(part: Claim | None) -> Claim | None:
    """The claim for a negated condition; None if the claim is not exact, since it keeps more rows."""
    return None if part is None or not part.exact else Claim(Not(part.predicate))


def _literal(value: pa.Scalar) -> Any:
    return to_literal(value)


def _fits(kind: pa.DataType, value: pa.Scalar) -> bool:
    """Whether every library compares a column of the type with the value without rounding either."""
    types, given = pa.types, value.type
    if not value.is_valid:
        return False
    if types.is_boolean(kind) or types.is_date32(kind) or types.is_time(kind):
        return bool(given == kind)
    if types.is_integer(kind):
        return bool(types.is_integer(given))
    if types.is_floating(kind):
        return _is_exact(kind, given, value.as_py())
    if types.is_decimal(kind):
        return bool(types.is_integer(given) or (types.is_decimal(given) and given.scale <= kind.scale))
    if types.is_string(kind):
        return bool(types.is_string(given) or types.is_large_string(given) or types.is_string_view(given))
    if types.is_binary(kind) or types.is_fixed_size_binary(kind):
        return bool(types.is_binary(given) or types.is_large_binary(given) or types.is_binary_view(given))
    return bool(types.is_timestamp(kind) and types.is_timestamp(given)) and _is_same_time(kind, given, value.value)


def _is_exact(kind: pa.DataType, given: pa.DataType, number: Any) -> bool:
    is_double = pa.types.is_float64(kind)
    if pa.types.is_integer(given):
        return bool(abs(number) <= 1 << (_DOUBLE_DIGITS if is_double else _FLOAT_DIGITS))
    if not pa.types.is_floating(given) or number != number or abs(number) > _FLOAT_MAX:
        return bool(is_double and pa.types.is_floating(given) and number == number)
    return is_double or bool(float(np.float32(number)) == number)


def _is_same_time(kind: pa.DataType, given: pa.DataType, count: int) -> bool:
    """Whether the column can hold a time, in a unit at least as fine: coarser ones round the column."""
    step = _UNITS[kind.unit] // _UNITS[given.unit]
    return (kind.tz is None) == (given.tz is None) and step >= 1 and count % step == 0


def _float(ref: Ref, operator: Operator, number: float) -> Predicate:
    """A comparison that keeps both zeros if libraries do not distinguish them, and NaN as the largest number."""
    if number != 0:
        return Compare(ref, operator, number)
    if operator in ("==", "!="):
        both = In(ref, (0.0, -0.0), negated=operator == "!=")
        return both if operator == "==" else IsNull(ref, negated=True)
    return Compare(ref, operator, 0.0 if operator in ("<", "<=") else -0.0)
