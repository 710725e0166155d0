"""Types that hold the values of two others without loss. Pure.

Source: Java `UpdatedDataFieldsProcessFunctionBase.canConvert`.
"""

from __future__ import annotations

import msgspec

from paimon_py.spec.type_text import with_nullability
from paimon_py.spec.types import Atomic, DataType, Root

_ORDERS = ((Root.TINYINT, Root.SMALLINT, Root.INT, Root.BIGINT), (Root.FLOAT, Root.DOUBLE))
_BY_LENGTH = ((Root.CHAR, Root.VARCHAR), (Root.BINARY, Root.VARBINARY))
_BY_PRECISION = (Root.TIMESTAMP, Root.TIME)
_MAX_DIGITS = 38


def wider(old: DataType, new: DataType) -> DataType | None:
    """The type, nullable as the old one, that holds all values of both; None where the types are of two families.

    Decimals widen in digits before and after the point; Java takes the new type as it is, which may cut digits.
    """
    new = with_nullability(new, old.nullable)
    if old == new:
        return old
    if not isinstance(old, Atomic) or not isinstance(new, Atomic):
        return None
    for order in _ORDERS:
        if old.root in order and new.root in order:
            return old if order.index(old.root) >= order.index(new.root) else new
    for roots in _BY_LENGTH:
        if old.root in roots and new.root in roots:
            return old if (old.length or 0) >= (new.length or 0) else new
    if old.root is new.root and old.root in _BY_PRECISION:
        return old if (old.precision or 0) >= (new.precision or 0) else new
    if old.root is Root.DECIMAL and new.root is Root.DECIMAL:
        return _wider_decimal(old, new)
    return None


def _wider_decimal(old: Atomic, new: Atomic) -> Atomic | None:
    scale = max(old.scale or 0, new.scale or 0)
    whole = max((kind.precision or 0) - (kind.scale or 0) for kind in (old, new))
    if whole + scale > _MAX_DIGITS:
        return None
    return msgspec.structs.replace(old, precision=whole + scale, scale=scale)
