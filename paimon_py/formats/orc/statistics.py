"""The stripe statistics of ORC files.

Source: ORC v1 specification, `orc_proto.proto`: Metadata, StripeStatistics, ColumnStatistics.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import MAX_PREC, Context, Decimal, InvalidOperation
from typing import Any, NamedTuple

import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.columns import integer_array, text_array
from paimon_py.expr.prune import Bounds
from paimon_py.formats.base import GREGORIAN_DAYS
from paimon_py.formats.orc.chunks import join
from paimon_py.formats.orc.footer import SeekRead, Tail, parts, read_at, unzigzag
from paimon_py.spec.types import Atomic, Field, Root

_STATISTICS = 1
_COUNT, _INTEGERS, _STRINGS, _DECIMALS, _DATES = 1, 2, 4, 6, 7
_LOW, _HIGH = 1, 2
_METADATA_LENGTH = 5
_INTEGER_TYPES = frozenset((Root.TINYINT, Root.SMALLINT, Root.INT, Root.BIGINT, Root.TIME))
_EXACT = Context(prec=MAX_PREC)


class _Known(NamedTuple):
    """The bounds of one column in one stripe, and the number of non-NULL values; None if unknown."""

    low: Any = None
    high: Any = None
    values: int | None = None


def stripe_bounds(source: SeekRead, tail: Tail, fields: Sequence[Field]) -> dict[str, Bounds]:
    """The bounds of columns, one slot per stripe; columns without known bounds are omitted.

    Strings, integers, decimals, dates and times have bounds, other types null counts.
    Cost: reads the statistics of all columns once, and decodes those of `fields`.
    Raises: ValueError, EOFError, IndexError for damage; UnsupportedError for a codec.
    """
    stripes = _stripes(source, tail)
    if len(stripes) != len(tail.stripes):
        return {}
    root = tail.types[0]
    places = dict(zip(root.names, root.children, strict=True))
    rows = [stripe.row_count for stripe in tail.stripes]
    found = {}
    for field in fields:
        if field.name in places and isinstance(field.type, Atomic):
            known = [_known_bounds(columns[places[field.name]], field.type) for columns in stripes]
            found[field.name] = _bounds(known, field.type, rows)
    return found


def _stripes(source: SeekRead, tail: Tail) -> list[list[bytes]]:
    """The statistics of all columns, by stripe."""
    length = next((part.value for part in parts(tail.postscript) if part.number == _METADATA_LENGTH), 0)
    if not length or length > tail.footer_at:
        return []
    message = join(tail.chunks, read_at(source, tail.footer_at - length, length))
    stripes = [part.data for part in parts(message) if part.number == _STATISTICS]
    columns = [[part.data for part in parts(stripe) if part.number == _STATISTICS] for stripe in stripes]
    return columns if all(len(each) == len(tail.types) for each in columns) else []


def _known_bounds(statistics: bytes, kind: Atomic) -> _Known:
    found = {part.number: part for part in parts(statistics)}
    count = found[_COUNT].value if _COUNT in found else None
    number = _number_of(kind)
    if number not in found:
        return _Known(values=count)
    ends = {part.number: part for part in parts(found[number].data)}
    if _LOW not in ends or _HIGH not in ends:
        return _Known(values=count)
    if number in (_INTEGERS, _DATES):
        low, high = unzigzag(ends[_LOW].value), unzigzag(ends[_HIGH].value)
        return _Known(values=count) if number == _DATES and low < GREGORIAN_DAYS else _Known(low, high, count)
    low_text, high_text = ends[_LOW].data.decode(), ends[_HIGH].data.decode()
    if number == _STRINGS:
        return _Known(low_text, high_text, count)
    return _Known(_to_unscaled(low_text, kind), _to_unscaled(high_text, kind), count)


def _number_of(kind: Atomic) -> int:
    """The field number of the statistics with a type's bounds; 0 for none."""
    if kind.root in _INTEGER_TYPES:
        return _INTEGERS
    return {Root.VARCHAR: _STRINGS, Root.DECIMAL: _DECIMALS, Root.DATE: _DATES}.get(kind.root, 0)


def _to_unscaled(text: str, kind: Atomic) -> int:
    try:
        number = Decimal(text).scaleb(kind.scale or 0, context=_EXACT)
    except InvalidOperation as error:
        raise ValueError(f"{text!r} is not a decimal") from error
    if number != number.to_integral_value():
        raise ValueError(f"{text!r} has more than {kind.scale} digits after the point")
    return int(number)


def _bounds(known: Sequence[_Known], kind: Atomic, rows: Sequence[int]) -> Bounds:
    nulls = [None if each.values is None else total - each.values for each, total in zip(known, rows, strict=True)]
    lows, highs = ([each.low for each in known], [each.high for each in known])
    target = to_arrow_type(kind)
    low, high = (_array(values, kind, target) for values in (lows, highs))
    return Bounds(min=low, max=high, null_count=integer_array(nulls, pa.int64()))


def _array(values: Sequence[Any], kind: Atomic, target: pa.DataType) -> pa.Array:
    if _number_of(kind) == 0:
        return pa.nulls(len(values), target)
    return text_array(values) if kind.root is Root.VARCHAR else integer_array(values, target)
