"""Refuses values of the right Arrow type that a column cannot hold: strings too long, times too far from 1970."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.spec.bounds import TIME_SECONDS_MAX
from paimon_py.spec.type_text import sql_type
from paimon_py.spec.types import MAX_LENGTH, Atomic, Root
from paimon_py.write.misfits import ColumnPlace, Misfit

Check = Callable[[pa.Array, ColumnPlace], None]
"""Raises Misfit for the first value that a column cannot hold."""

_TEXTS = frozenset({Root.CHAR, Root.VARCHAR})
_BINARIES = frozenset({Root.BINARY, Root.VARBINARY, Root.BLOB})
_TIMESTAMPS = frozenset({Root.TIMESTAMP, Root.TIMESTAMP_LTZ})
_SHOWN = 60
"""The number of characters of a string that messages show."""


def limit_check(target: Atomic) -> Check | None:
    """The check for a type; None if it holds all values of its Arrow type."""
    if target.root in _TIMESTAMPS and target.precision == 0:
        return lambda array, place: _check_seconds(array, target, place)
    limit = target.length
    if target.root not in _TEXTS | _BINARIES or limit is None or limit >= MAX_LENGTH:
        return None
    check = _check_characters if target.root in _TEXTS else _check_bytes
    return lambda array, place: check(array, limit, target, place)


def _check_seconds(array: pa.Array, target: Atomic, place: ColumnPlace) -> None:
    """Files and statistics store milliseconds in 64 bits."""
    seconds = array.view(pa.int64())
    ends = pc.min_max(seconds)
    low, high = ends["min"].as_py() or 0, ends["max"].as_py() or 0
    if low >= -TIME_SECONDS_MAX and high <= TIME_SECONDS_MAX:
        return
    row = pc.index(pc.greater(pc.abs(pc.max_element_wise(seconds, -(2**63) + 1)), TIME_SECONDS_MAX), True).as_py()
    after = f", {seconds[row]} s since 1970) does not fit {sql_type(target)}: the limit is {TIME_SECONDS_MAX} s"
    raise Misfit(place, row, ": a time (", f"{after}; change the value")


def _check_characters(array: pa.Array, limit: int, target: Atomic, place: ColumnPlace) -> None:
    if _longest(pc.binary_length(array)) > limit:
        _check_lengths(array, pc.utf8_length(array), limit, "characters", target, place)


def _check_bytes(array: pa.Array, limit: int, target: Atomic, place: ColumnPlace) -> None:
    _check_lengths(array, pc.binary_length(array), limit, "bytes", target, place)


def _longest(lengths: pa.Array) -> int:
    return pc.max(lengths).as_py() or 0


def _check_lengths(
    array: pa.Array, lengths: pa.Array, limit: int, unit: str, target: Atomic, place: ColumnPlace
) -> None:
    if _longest(lengths) <= limit:
        return
    row = pc.index(pc.greater(lengths, limit), True).as_py()
    shown = repr(array[row].as_py())
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
    fix = f"shorten it, or widen the column with table.alter(UpdateColumnType({place.column!r}, …))"
    raise Misfit(place, row, f": {shown} (", f", {lengths[row]} {unit}) does not fit {sql_type(target)}; {fix}")
