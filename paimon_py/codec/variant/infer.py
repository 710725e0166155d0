"""Infers the columns worth shredding variants into: the most frequent types of their parts.

Source: format.md §8.9; Java `InferVariantShreddingSchema`.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

import msgspec

from paimon_py.codec.variant.decode import plain_decimal
from paimon_py.codec.variant.layout import (
    ARRAY,
    FLOAT,
    NULL,
    OBJECT,
    PRIMITIVE,
    basic_type,
    check_apart,
    children_at,
    key_at,
    keys_of,
    scalar_at,
)
from paimon_py.spec.types import STRING, ArrayType, Atomic, DataType, Field, Root, RowType

_VARIANT = Atomic(Root.VARIANT)
_DIGITS_MAX = 38
_COMPACT = 18


class InferRules(msgspec.Struct, frozen=True):
    """Limits of shredding.

    `fields_max`: maximum number of columns of one variant column. `depth_max`: maximum depth of nested objects and
    arrays. `least_share`: minimum share of rows that must contain a field.
    """

    fields_max: int = 300
    depth_max: int = 50
    least_share: float = 0.1


class _Seen:
    """Statistics of some nodes: their number, their kinds, and their parts."""

    __slots__ = ("count", "element", "fields", "kind", "scale", "whole")

    def __init__(self) -> None:
        self.count = 0
        self.kind: str | None = None
        self.whole = self.scale = 0
        self.fields: dict[str, _Seen] = {}
        self.element: _Seen | None = None

    def meet(self, value: bytes, keys: tuple[str, ...], at: int, depth: int) -> None:
        """Add a node."""
        self.count += 1
        basic = basic_type(value, at)
        if self.kind == "variant" or (basic == PRIMITIVE and value[at] >> 2 == NULL):
            return
        if basic not in (OBJECT, ARRAY):
            self._scalar(value, at)
            return
        self._agree("object" if basic == OBJECT else "array" if depth > 0 else "variant")
        if self.kind == "variant" or depth <= 0:
            self.kind = "variant"
            return
        found = children_at(value, at)
        check_apart(value, found.places)
        if basic == ARRAY:
            self.element = self.element or _Seen()
            for place in found.places:
                self.element.meet(value, keys, place, depth - 1)
            return
        for number, place in zip(found.ids, found.places, strict=True):
            self.fields.setdefault(key_at(keys, number), _Seen()).meet(value, keys, place, depth - 1)

    def _agree(self, kind: str) -> None:
        self.kind = kind if self.kind in (None, kind) else "variant"

    def _scalar(self, value: bytes, at: int) -> None:
        found = scalar_at(value, at)
        if isinstance(found, bool):
            self._agree("boolean")
        elif isinstance(found, (int, Decimal)):
            self._agree("number")
            number = plain_decimal(Decimal(found))
            digits, exponent = number.as_tuple().digits, int(number.as_tuple().exponent)
            self.scale = max(self.scale, -exponent)
            self.whole = max(self.whole, len(digits) + exponent)
        elif isinstance(found, float):
            self._agree("float" if value[at] == FLOAT << 2 else "double")
        else:
            self._agree("text" if isinstance(found, str) and value[at] != _UUID_HEAD else "variant")


_UUID_HEAD = 20 << 2


def infer(variants: Iterable[tuple[bytes, bytes] | None], rules: InferRules) -> DataType | None:
    """The type to shred a column into; None if it should not be shredded.

    Cost: some microseconds per row and key.
    Raises: CorruptionError for bytes that are not variants.
    """
    seen, rows = _Seen(), 0
    for one in variants:
        rows += 1
        if one is not None:
            seen.meet(one[0], keys_of(one[1]), 0, rules.depth_max)
    left = [rules.fields_max]
    found = _type(seen, rows * rules.least_share, left)
    return None if found == _VARIANT else found


def _type(seen: _Seen, least: float, left: list[int]) -> DataType:
    """The type of some nodes. `left`: the number of columns that are still allowed."""
    left[0] -= 1
    if left[0] < 0 or seen.kind in (None, "variant"):
        return _VARIANT
    if seen.kind == "object":
        names = sorted(name for name, field in seen.fields.items() if field.count >= least and name.strip())
        fields: list[Field] = []
        for name in names:
            if left[0] <= 0:
                break
            fields.append(Field(len(fields), name, _type(seen.fields[name], least, left)))
        return RowType(tuple(fields)) if fields else _VARIANT
    if seen.kind == "array":
        return _VARIANT if seen.element is None else ArrayType(_type(seen.element, least, left))
    return _scalar_type(seen)


def _scalar_type(seen: _Seen) -> DataType:
    if seen.kind != "number":
        return {
            "boolean": Atomic(Root.BOOLEAN), "double": Atomic(Root.DOUBLE), "float": Atomic(Root.FLOAT), "text": STRING,
        }[seen.kind or ""]  # fmt: skip
    digits = max(seen.whole, 0) + seen.scale
    if digits > _DIGITS_MAX:
        return _VARIANT
    if seen.scale == 0 and digits <= _COMPACT:
        return Atomic(Root.BIGINT)
    return Atomic(Root.DECIMAL, precision=_COMPACT if digits <= _COMPACT else _DIGITS_MAX, scale=seen.scale)
