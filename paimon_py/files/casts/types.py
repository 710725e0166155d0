"""Relations between two types: equality, order, and nested types.

Source: Java `CastExecutors`, release 2.0.
"""

from __future__ import annotations

from paimon_py.spec.types import ArrayType, Atomic, DataType, MapType, MultisetType, Root, RowType, VectorType

_DIGITS = {Root.TINYINT: 3, Root.SMALLINT: 5, Root.INT: 10, Root.BIGINT: 19}
_FLOATS = {Root.FLOAT, Root.DOUBLE}
_TIMESTAMPS = {Root.TIMESTAMP, Root.TIMESTAMP_LTZ}


def same_type(source: DataType, target: DataType) -> bool:
    """Whether types are equal except for NOT NULL (descriptions, defaults and ids in rows are ignored)."""
    if isinstance(source, Atomic) and isinstance(target, Atomic):
        return (source.root, source.length, source.precision, source.scale, source.parameters) == (
            target.root,
            target.length,
            target.precision,
            target.scale,
            target.parameters,
        )
    if isinstance(source, RowType) and isinstance(target, RowType):
        return len(source.fields) == len(target.fields) and all(
            a.id == b.id and a.name == b.name and same_type(a.type, b.type)
            for a, b in zip(source.fields, target.fields, strict=True)
        )
    if isinstance(source, VectorType) and isinstance(target, VectorType) and source.length != target.length:
        return False
    return type(source) is type(target) and all(map(same_type, inner_types(source), inner_types(target)))


def keeps_order(source: DataType, target: DataType) -> bool:
    """Whether the cast preserves order and never returns null, so that cast bounds are still bounds."""
    if same_type(source, target):
        return True
    if not isinstance(source, Atomic) or not isinstance(target, Atomic):
        return False
    given, wanted = source.root, target.root
    if given in _DIGITS:
        if wanted is Root.DECIMAL:
            return _DIGITS[given] <= (target.precision or 0) - (target.scale or 0)
        return wanted in _FLOATS or (wanted in _DIGITS and _DIGITS[given] < _DIGITS[wanted])
    if given is Root.DECIMAL and wanted is Root.DECIMAL:
        more_scale = (target.scale or 0) - (source.scale or 0)
        return 0 <= more_scale <= (target.precision or 0) - (source.precision or 0)
    if given in _TIMESTAMPS and wanted in _TIMESTAMPS:
        return (source.precision or 0) <= (target.precision or 0)
    if (given is wanted is Root.VARCHAR) or (given is wanted is Root.VARBINARY):
        return (source.length or 0) <= (target.length or 0)
    return (given is Root.FLOAT and wanted is Root.DOUBLE) or (given is Root.DATE and wanted in _TIMESTAMPS)


def inner_types(kind: DataType) -> tuple[DataType, ...]:
    """The types nested directly in a type."""
    if isinstance(kind, RowType):
        return tuple(field.type for field in kind.fields)
    if isinstance(kind, MapType):
        return kind.key, kind.value
    if isinstance(kind, (ArrayType, MultisetType, VectorType)):
        return (kind.element,)
    return ()
