"""Columns that are computed from source columns, in Java's syntax: `y=year(at)`.

Source: Java `ComputedColumnUtils`, `Expression`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Context, Decimal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.errors import UsageError
from paimon_py.files.casts.cast import cast
from paimon_py.spec.cast_rules import STRINGS
from paimon_py.spec.type_text import parse_type, sql_type
from paimon_py.spec.types import STRING, Atomic, DataType, Root

_MICROS = Atomic(Root.TIMESTAMP, precision=6)
_INT = Atomic(Root.INT)
_FORM = re.compile(
    r"\s*(?:(?P<table>[^=().]+)\.)?(?P<name>[^=().]+?)\s*=\s*(?P<function>\w+)\s*\((?P<given>[^()]*)\)\s*"
)
_WHOLE = (Root.TINYINT, Root.SMALLINT, Root.INT, Root.BIGINT)
_EPOCHS = {"0": "s", "3": "ms", "6": "us", "9": "ns"}
_TOKENS = re.compile(r"'((?:[^']|'')*)'|(y+|M+|d+|H+|m+|s+|S+)|([A-Za-z\[\]{}#])|([^A-Za-z'\[\]{}#]+)")
_WIDTHS: dict[str, tuple[Callable[[pa.Array], pa.Array], tuple[int, ...]]] = {
    "y": (pc.year, (2, 4)), "M": (pc.month, (1, 2)), "d": (pc.day, (1, 2)), "H": (pc.hour, (1, 2)),
    "m": (pc.minute, (1, 2)), "s": (pc.second, (1, 2)),
}  # fmt: skip
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999
_WIDE = Context(prec=80)
_BLANKS = "".join(map(chr, range(33)))


class Computed(msgspec.Struct, frozen=True):
    """A column `name` of `table` (empty: of every table that has `field`), and the function that computes it.

    `field` is empty for functions that use no column.
    """

    table: str
    name: str
    function: str
    field: str
    given: tuple[str, ...]

    def __str__(self) -> str:
        inside = ", ".join([self.field, *self.given] if self.field else self.given)
        return f"{self.name}={self.function}({inside})"


def parse(text: str) -> Computed:
    """`y=year(at)` or `orders.y=year(at)`, with Java's functions and arguments.

    Raises: UsageError for invalid syntax, an unknown function or invalid arguments.
    """
    found = _FORM.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise UsageError(f"a computed column is written as 'y=year(at)' or 'orders.y=year(at)', not {text!r}")
    function = found["function"].lower()
    if function not in _FUNCTIONS:
        raise UsageError(f"{text!r}: function {function!r} does not exist; the functions are {sorted(_FUNCTIONS)}")
    parts = tuple(part.strip() for part in found["given"].split(","))
    field, given = ("", parts) if function == "cast" else (parts[0], parts[1:])
    made = Computed((found["table"] or "").strip(), found["name"].strip(), function, field, given)
    few, many = _FUNCTIONS[function][1:]
    if (function != "cast" and not field) or not few <= len(given) <= many:
        raise UsageError(f"{text!r}: {function!r} takes a column and {few} to {many} arguments")
    _FUNCTIONS[function][0](made, pa.nulls(1, pa.string()), STRING)  # reports invalid arguments
    return made


def type_of(column: Computed, source: DataType) -> DataType:
    """The type of the column if it is computed from one of type `source`.

    Raises: UsageError if the function does not support the type.
    """
    return compute(column, pa.nulls(0, to_arrow_type(source)), source)[1]


def compute(column: Computed, array: pa.Array, source: DataType) -> tuple[pa.Array, DataType]:
    """The values and their type; NULL for NULL.

    Cost: whole columns; case is changed once per distinct string.
    Raises: UsageError if the function does not support the type or a value.
    """
    return _FUNCTIONS[column.function][0](column, array, source)


def _root(source: DataType) -> Root | None:
    return source.root if isinstance(source, Atomic) else None


def _refusal(column: Computed, source: DataType) -> UsageError:
    return UsageError(f"computed column {column}: {column.function} does not support {sql_type(source)}")


def _number(column: Computed, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise UsageError(f"computed column {column}: {text!r} is not a whole number") from error


def _moments(column: Computed, array: pa.Array, source: DataType, precision: str | None) -> pa.Array:
    """Timestamps of the years 1 to 9999, from dates, timestamps, strings, and numbers since 1970."""
    found = _read_moments(column, array, source, precision)
    span = pc.min_max(found.cast(pa.int64())).as_py()
    if span["min"] is not None and not _FIRST <= span["min"] <= span["max"] <= _LAST:
        raise UsageError(f"computed column {column}: a time is outside the years 1 to 9999")
    return found


def _read_moments(column: Computed, array: pa.Array, source: DataType, precision: str | None) -> pa.Array:
    root = _root(source)
    if precision is not None and precision not in _EPOCHS:
        raise UsageError(f"computed column {column}: the precision is one of {sorted(_EPOCHS)}, not {precision!r}")
    if root in _WHOLE or (precision is not None and root in STRINGS):
        found = array.cast(pa.int64()).cast(pa.timestamp(_EPOCHS[precision or "0"]))
        return pc.floor_temporal(found, unit="microsecond").cast(pa.timestamp("us"))
    if precision is not None or root not in (Root.DATE, Root.TIMESTAMP, *STRINGS):
        raise _refusal(column, source)
    if root in STRINGS:
        if pc.any(pc.match_substring_regex(array, r"^\s*-?[0-9]+\s*$")).as_py():
            raise UsageError(f"computed column {column}: a number needs a precision")
        return cast(array, source, _MICROS, column=column.name)
    if pa.types.is_timestamp(array.type):
        array = pc.floor_temporal(array, unit="microsecond")
    return array.cast(pa.timestamp("us"))


def _part_of_time(column: Computed, array: pa.Array, source: DataType) -> tuple[pa.Array, DataType]:
    moments = _moments(column, array, source, column.given[0] if column.given else None)
    return getattr(pc, column.function)(moments).cast(pa.int32()), _INT


def _date_format(column: Computed, array: pa.Array, source: DataType) -> tuple[pa.Array, DataType]:
    moments = _moments(column, array, source, column.given[1] if len(column.given) > 1 else None)
    parts: list[pa.Array | pa.Scalar] = []
    place, pattern = 0, column.given[0]
    for token in _TOKENS.finditer(pattern):
        if token.start() != place or token[3]:
            break
        place = token.end()
        parts.append(_print_time(column, moments, token[2]) if token[2] else pa.scalar(_literal(token)))
    if place != len(pattern) or not pattern:
        raise _no_pattern(column, pattern)
    joined = pc.binary_join_element_wise(*[part.cast(pa.string()) for part in parts], "")
    return pc.if_else(moments.is_valid(), joined, pa.scalar(None, pa.string())), STRING


def _no_pattern(column: Computed, text: str) -> UsageError:
    return UsageError(f"computed column {column}: a pattern is made of yyyy MM dd HH mm ss S and 'text', not {text!r}")


def _literal(token: re.Match[str]) -> str:
    return token[4] if token[4] else (token[1].replace("''", "'") or "'")


def _print_time(column: Computed, moments: pa.Array, word: str) -> pa.Array:
    letter, width = word[0], len(word)
    if letter == "S" and width <= 6:
        inside = moments.cast(pa.int64())
        digits = pa.array(np.asarray(inside.fill_null(0)) % 1_000_000).cast(pa.string())
        return pc.utf8_slice_codeunits(pc.utf8_lpad(digits, 6, "0"), 0, width)
    read, widths = _WIDTHS.get(letter, (pc.year, ()))
    if width not in widths:
        raise _no_pattern(column, word)
    values = read(moments)
    text = pc.utf8_lpad(values.cast(pa.string()), 4 if letter == "y" else width, "0")
    return pc.utf8_slice_codeunits(text, 2, 4) if letter == "y" and width == 2 else text


def _substring(column: Computed, array: pa.Array, source: DataType) -> tuple[pa.Array, DataType]:
    begin = _number(column, column.given[0])
    end = _number(column, column.given[1]) if len(column.given) > 1 else None
    if begin < 0 or (end is not None and end <= begin):
        raise UsageError(f"computed column {column}: begin is 0 or more, and end comes after begin")
    text = cast(array, source, STRING, column=column.name)
    if (pc.min(pc.utf8_length(text)).as_py() or 0) < (begin if end is None else end) and text.null_count < len(text):
        raise UsageError(f"computed column {column}: a string is shorter than that")
    return pc.utf8_slice_codeunits(text, begin, end), STRING


def _truncate(column: Computed, array: pa.Array, source: DataType) -> tuple[pa.Array, DataType]:
    width, root = _number(column, column.given[0]), _root(source)
    if width < 0 or (width == 0 and root not in STRINGS):
        raise UsageError(f"computed column {column}: the width is 1 or more, not {width}")
    if root in STRINGS:
        if (pc.min(pc.utf8_length(array)).as_py() or 0) < width and array.null_count < len(array):
            raise UsageError(f"computed column {column}: a string is shorter than that")
        return pc.utf8_slice_codeunits(array, 0, width), source
    if root in _WHOLE:
        values = np.asarray(array.cast(pa.int64()).fill_null(0))
        cut = pa.array(values - values % width, mask=np.asarray(array.is_null()))
        return cut.cast(array.type), source
    if root is Root.DECIMAL:
        return _truncated_decimals(array, width), source
    raise _refusal(column, source)


def _truncated_decimals(array: pa.Array, width: int) -> pa.Array:
    """Digits of decimals rounded down to a multiple of `width`, once per distinct value."""
    encoded, scale = array.dictionary_encode(), array.type.scale
    unscaled = [int(value.scaleb(scale, _WIDE)) for value in encoded.dictionary.to_pylist()]
    cut = [Decimal(number - number % width).scaleb(-scale, _WIDE) for number in unscaled]
    return pa.array(cut, array.type).take(encoded.indices)


def _constant(column: Computed, array: pa.Array, source: DataType) -> tuple[pa.Array, DataType]:
    del source
    kind = parse_type(column.given[1]) if len(column.given) > 1 else STRING
    one = cast(pa.array([column.given[0]], pa.string()), STRING, kind, column=column.name)
    return one.take(pa.array(np.zeros(len(array), dtype=np.int64))), kind


def _changed_text(column: Computed, array: pa.Array, source: DataType) -> tuple[pa.Array, DataType]:
    if _root(source) is not Root.VARCHAR:
        raise _refusal(column, source)
    if column.function == "trim":
        return pc.utf8_trim(array, characters=_BLANKS), STRING
    encoded = array.dictionary_encode()
    change = str.upper if column.function == "upper" else str.lower
    changed = [change(value) for value in encoded.dictionary.to_pylist()]
    return pa.array(changed, pa.string()).take(encoded.indices), STRING


_Function = Callable[[Computed, pa.Array, DataType], "tuple[pa.Array, DataType]"]
_FUNCTIONS: dict[str, tuple[_Function, int, int]] = {
    **dict.fromkeys(("year", "month", "day", "hour", "minute", "second"), (_part_of_time, 0, 1)),
    "date_format": (_date_format, 1, 2), "substring": (_substring, 1, 2), "truncate": (_truncate, 1, 1),
    "cast": (_constant, 1, 2), **dict.fromkeys(("upper", "lower", "trim"), (_changed_text, 0, 0)),
}  # fmt: skip
"""The functions by name, with their minimum and maximum number of arguments after the column."""
