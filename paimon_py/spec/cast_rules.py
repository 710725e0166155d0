"""The type changes that the format allows: implicit casts preserve every value, explicit casts may not.

Source: format.md §3.3; Java `DataTypeCasts` (allowed changes) and `CastExecutors` (implemented casts).
"""

from __future__ import annotations

from paimon_py.spec.type_text import sql_type, with_nullability
from paimon_py.spec.types import MAX_LENGTH, ArrayType, Atomic, DataType, MapType, Root, RowType

STRINGS = frozenset((Root.CHAR, Root.VARCHAR))
BINARIES = frozenset((Root.BINARY, Root.VARBINARY))
INTEGERS = frozenset((Root.TINYINT, Root.SMALLINT, Root.INT, Root.BIGINT))
FLOATS = frozenset((Root.FLOAT, Root.DOUBLE))
NUMBERS = INTEGERS | FLOATS | {Root.DECIMAL}
TIMESTAMPS = frozenset((Root.TIMESTAMP, Root.TIMESTAMP_LTZ))
_ONLY_TO_STRING = TIMESTAMPS | {Root.DATE, Root.TIME}
_INSTANTS = _ONLY_TO_STRING | {Root.INT, Root.BIGINT}
_STRUCTURED = frozenset((ArrayType, MapType, RowType))

_IMPLICIT: dict[Root, frozenset[Root]] = {
    Root.CHAR: frozenset((Root.CHAR,)),
    Root.VARCHAR: STRINGS,
    Root.BINARY: frozenset((Root.BINARY,)),
    Root.VARBINARY: BINARIES,
    Root.DECIMAL: NUMBERS,
    Root.SMALLINT: frozenset((Root.TINYINT,)),
    Root.INT: frozenset((Root.TINYINT, Root.SMALLINT)),
    Root.BIGINT: frozenset((Root.TINYINT, Root.SMALLINT, Root.INT)),
    Root.FLOAT: INTEGERS | {Root.DECIMAL},
    Root.DOUBLE: NUMBERS,
    Root.DATE: frozenset((Root.TIMESTAMP,)),
    Root.TIME: frozenset((Root.TIMESTAMP,)),
    Root.TIMESTAMP: TIMESTAMPS,
    Root.TIMESTAMP_LTZ: TIMESTAMPS,
}

_TO_STRING = NUMBERS | STRINGS | BINARIES | {Root.BOOLEAN}
_TO_SMALL = NUMBERS | STRINGS | {Root.BOOLEAN}
_EXPLICIT: dict[Root, frozenset[Root]] = {
    Root.CHAR: _TO_STRING,
    Root.VARCHAR: _TO_STRING,
    Root.BOOLEAN: STRINGS | INTEGERS,
    Root.BINARY: STRINGS | BINARIES,
    Root.VARBINARY: STRINGS | BINARIES,
    Root.DECIMAL: STRINGS | {Root.BOOLEAN},
    Root.TINYINT: _TO_SMALL,
    Root.SMALLINT: _TO_SMALL,
    Root.INT: _TO_SMALL | TIMESTAMPS,
    Root.BIGINT: _TO_SMALL | TIMESTAMPS,
    Root.FLOAT: _TO_SMALL,
    Root.DOUBLE: _TO_SMALL,
    Root.DATE: TIMESTAMPS | STRINGS,
    Root.TIME: TIMESTAMPS | STRINGS,
    Root.TIMESTAMP: _INSTANTS | STRINGS,
    Root.TIMESTAMP_LTZ: _INSTANTS | STRINGS,
}
"""Explicit casts by source type, without the pairs that Java's rules allow but its code does not implement."""


def is_text(kind: DataType) -> bool:
    """Whether a column of the type holds strings, of any length."""
    return isinstance(kind, Atomic) and kind.root in STRINGS


def supports_cast(source: DataType, target: DataType, explicit: bool) -> bool:
    """Whether a column of type `source` may become `target`.

    Nullability matters only for implicit casts: a nullable type never implicitly becomes NOT NULL. Constructed types
    can only be cast to strings; their parts are changed by path.

    Args:
        source: the type in the files.
        target: the type for readers.
        explicit: also allow casts that may lose information or fail on some values.
    """
    if source.nullable and not target.nullable and not explicit:
        return False
    if _same(source, target):
        return True
    if not isinstance(target, Atomic):
        return False
    if not isinstance(source, Atomic):
        return explicit and target.root in STRINGS and type(source) in _STRUCTURED
    if source.root in _IMPLICIT.get(target.root, ()):
        return True
    if source.root in _ONLY_TO_STRING and target.root in STRINGS:
        return explicit and target.root is Root.VARCHAR and target.length == MAX_LENGTH
    return explicit and source.root in _EXPLICIT.get(target.root, ())


def _same(source: DataType, target: DataType) -> bool:
    return sql_type(with_nullability(source, True)) == sql_type(with_nullability(target, True))


def what_is_lost(source: DataType, target: DataType) -> str | None:
    """Describe, for users, how a cast changes values; None if all values are preserved except for rounding.

    Covers the casts that `supports_cast` allows. Source: Java `CastExecutors`, implemented in `files/casts/cast.py`.
    """
    if not isinstance(source, Atomic) or not isinstance(target, Atomic):
        return None
    given, wanted = source.root, target.root
    if wanted in STRINGS | BINARIES:
        return _of_length(source, target)
    if given in STRINGS:
        return "reads fail at strings that cannot be parsed"
    if wanted is Root.DECIMAL:
        whole = (target.precision or 0) - (target.scale or 0)
        scale = (source.scale or 0) if given is Root.DECIMAL else 0
        kept = _whole_digits(source) <= whole and scale <= (target.scale or 0)
        return None if kept else "numbers with more digits are rounded, or become NULL"
    if wanted in INTEGERS and given in NUMBERS | TIMESTAMPS:
        return _of_integer(given, wanted)
    if wanted is Root.BOOLEAN and given in NUMBERS:
        return "all numbers except 0 become true"
    if wanted is Root.FLOAT and given is Root.DOUBLE:
        return "numbers are rounded to 24 bits, and larger ones become infinite"
    if given in TIMESTAMPS and wanted in (Root.DATE, Root.TIME):
        return "the rest of each timestamp is lost"
    if given in TIMESTAMPS and wanted in TIMESTAMPS and (source.precision or 0) > (target.precision or 0):
        return "fractions of seconds are truncated"
    return None


def _of_length(source: Atomic, target: Atomic) -> str | None:
    limit = MAX_LENGTH if target.length is None else target.length
    if source.root in STRINGS | BINARIES:
        length = MAX_LENGTH if source.length is None else source.length
        return None if length <= limit else "longer values are truncated"
    return None if limit >= _TEXT_LENGTH_MAX else "longer strings are truncated"


def _of_integer(given: Root, wanted: Root) -> str | None:
    if given in INTEGERS:
        kept = _DIGITS[given] <= _DIGITS[wanted]
        return None if kept else "numbers out of range wrap around, 100000 to -31072 in a SMALLINT"
    if given in FLOATS:
        return "fractions are truncated, and numbers out of range become the nearest possible value"
    if given is Root.DECIMAL:
        return "fractions are truncated, and numbers out of range wrap around"
    return "timestamps are truncated to whole seconds"


_DIGITS = {Root.TINYINT: 3, Root.SMALLINT: 5, Root.INT: 10, Root.BIGINT: 19}
_TEXT_LENGTH_MAX = 400
"""The maximum length of a number, date or boolean as a string."""


def _whole_digits(source: Atomic) -> int:
    """The maximum number of digits before the decimal point."""
    if source.root is Root.DECIMAL:
        return (source.precision or 0) - (source.scale or 0)
    return _DIGITS.get(source.root, 0 if source.root is Root.BOOLEAN else 400)
