"""Calculations over Arrow columns.

Integers are calculated as BIGINT, decimals exactly with up to 76 digits, all others as DOUBLE; `/` of integers is a
DOUBLE, `/` of decimals has the digits of Spark, and `%` has the sign of its left side. The result of NULL is NULL. As
in ANSI SQL and Spark, a sum beyond BIGINT and a division by zero are errors; the branches of CASE are calculated only
for rows that take them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.decimal_digits import quotient, quotient_type, scaled_down
from paimon_py.errors import SchemaError
from paimon_py.expr import times
from paimon_py.expr.arrays import in_plain_type, literal_array
from paimon_py.expr.literal import BinaryValue, DateValue, DecimalValue, LiteralValue, TimestampValue
from paimon_py.expr.predicate import (
    Arithmetic,
    Case,
    ColumnValue,
    FunctionCall,
    Negative,
    Predicate,
    Ref,
    Sign,
    ValueTree,
    value_text,
)
from paimon_py.expr.sql_intervals import NOW
from paimon_py.spec.types import Atomic, Root

Columns = Mapping[str, pa.Array]
Value = Callable[[Columns, int], pa.Array]

_DIGITS = 76
_OF_LONG = 19
_UNITS = ("s", "ms", "us", "ns")
_LONG = 1 << 63
_CHECKED: dict[Sign, str] = {
    "+": "add_checked", "-": "subtract_checked", "*": "multiply_checked", "/": "divide_checked",
}  # fmt: skip
_TEXT = {name: f"utf8_{name}" for name in ("upper", "lower", "trim", "ltrim", "rtrim")}


class Surroundings(Protocol):
    """The columns and conditions available to a calculation."""

    def reader(self, ref: Ref) -> tuple[Callable[[Columns], pa.Array], str, pa.DataType]:
        """A function that takes a column, or something inside it, from a batch; the column's name; the type."""

    def mask(self, condition: Predicate) -> tuple[frozenset[str], Callable[[Columns], pa.Array]]:
        """The columns of a condition, and a function that returns the rows for which the condition is true."""


class Calculated(NamedTuple):
    """The function of a value, the columns that it needs, and its type."""

    value: Value
    names: frozenset[str]
    type: pa.DataType


def calculate(what: ValueTree, around: Surroundings) -> Calculated:
    """Prepare a calculation for many batches.

    Cost: one pass per sign, function and branch.
    Raises:
        UsageError: an unknown column.
        SchemaError: incompatible types. The value raises the same for a row that cannot be calculated.
    """
    if isinstance(what, ColumnValue):
        return _of_column(what.column, around)
    if isinstance(what, Arithmetic):
        return _arithmetic(what, around)
    if isinstance(what, Negative):
        return _of_numbers("-", [calculate(what.value, around)])
    if isinstance(what, FunctionCall):
        return _call(what, around)
    if isinstance(what, Case):
        return _case(what, around)
    return _constant(what)


def _of_column(column: Ref, around: Surroundings) -> Calculated:
    read, name, kind = around.reader(column)

    def value(columns: Columns, rows: int) -> pa.Array:
        del rows
        return _plain(read(columns))

    return Calculated(value, frozenset([name]), _plain(pa.array([], kind)).type)


def _plain(array: pa.Array) -> pa.Array:
    """Numbers as BIGINT, DOUBLE or a decimal of 256 bits, and strings without views."""
    kind, types = array.type, pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(array.storage)
    if types.is_dictionary(kind):
        return _plain(array.dictionary_decode())
    if types.is_uint64(kind):
        return array.cast(pa.decimal256(20, 0))
    if types.is_integer(kind):
        return array.cast(pa.int64())
    if types.is_floating(kind):
        return array.cast(pa.float32()).cast(pa.float64()) if types.is_float16(kind) else array.cast(pa.float64())
    if types.is_decimal(kind):
        return array.cast(pa.decimal256(kind.precision, kind.scale))
    return array.cast(pa.string()) if types.is_large_string(kind) or types.is_string_view(kind) else array


def _constant(literal: LiteralValue | None) -> Calculated:
    one = _one(literal)

    def value(columns: Columns, rows: int) -> pa.Array:
        del columns
        return pa.repeat(one[0], rows)

    return Calculated(value, frozenset(), one.type)


def _one(literal: LiteralValue | None) -> pa.Array:
    if literal is None:
        return pa.nulls(1)
    if isinstance(literal, DecimalValue):
        return _of_decimal(Decimal(literal.text))
    if isinstance(literal, BinaryValue):
        return pa.array([literal.data], pa.binary())
    if isinstance(literal, (bool, int, float, str)):
        return pa.array([literal])
    if isinstance(literal, TimestampValue):
        root = Root.TIMESTAMP_LTZ if literal.zoned else Root.TIMESTAMP
        return literal_array([literal], Atomic(root, precision=9 if literal.nanos % 1_000 else 6))
    return literal_array([literal], Atomic(Root.DATE if isinstance(literal, DateValue) else Root.TIME))


def _of_decimal(number: Decimal) -> pa.Array:
    """A number with the digits as written, an integer as BIGINT if possible."""
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    if exponent == 0 and -_LONG <= number < _LONG:
        return pa.array([int(number)], pa.int64())
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    if precision > _DIGITS:
        raise SchemaError(f"{number} has more than {_DIGITS} digits")
    return pa.array([number], pa.decimal256(precision, scale))


# -- numbers ----------------------------------------------------------------------------------------------------------


def _arithmetic(what: Arithmetic, around: Surroundings) -> Calculated:
    sides = [calculate(side, around) for side in (what.left, what.right)]
    if what.sign in ("+", "-") and pa.types.is_date32(sides[0].type) and pa.types.is_integer(sides[1].type):
        return _plus_days(what.sign, sides)
    for at, side in enumerate((what.left, what.right)):
        if pa.types.is_decimal(sides[1 - at].type) and isinstance(side, float):
            sides[at] = _constant(DecimalValue(repr(side)))
    return _of_numbers(what.sign, sides)


def _plus_days(sign: Sign, sides: Sequence[Calculated]) -> Calculated:
    """A date plus or minus a number of days."""

    def value(columns: Columns, rows: int) -> pa.Array:
        dates, days = (side.value(columns, rows) for side in sides)
        try:
            return times.add_days(dates, days if sign == "+" else pc.negate_checked(days))
        except pa.ArrowInvalid as error:
            raise SchemaError(f"a date {sign} a number of days is not a date: {error}") from error

    return Calculated(value, _names(sides), pa.date32())


def _of_numbers(sign: Sign, sides: Sequence[Calculated]) -> Calculated:
    """A sum, difference, product or quotient of two numbers, or the negation of one."""
    for side in sides:
        if not (_is_number(side.type) or pa.types.is_null(side.type)):
            hint = "; texts are put together with concat(…) or ||" if pa.types.is_string(side.type) else ""
            raise SchemaError(f"{sign} takes numbers, not {side.type}{hint}")
    kind = _common([side.type for side in sides])
    if pa.types.is_null(kind) or (sign == "/" and pa.types.is_integer(kind)):
        kind = pa.float64()
    if sign == "%" and pa.types.is_decimal(kind):
        raise SchemaError("% takes integers and floats, not decimals")
    name = "negate_checked" if len(sides) == 1 else _CHECKED.get(sign, "")

    def of(arrays: Sequence[pa.Array]) -> pa.Array:
        given = [_as(array, _exact(array.type, kind)) for array in arrays]
        if sign == "/" and pa.types.is_decimal(kind):  # Arrow's own division errs
            return quotient(given[0], given[1], quotient_type(given[0].type, given[1].type))
        if sign == "%":
            return _remainder(given[0], given[1])
        return pc.call_function(name, given)

    def value(columns: Columns, rows: int) -> pa.Array:
        arrays = [side.value(columns, rows) for side in sides]
        if sign in ("/", "%"):
            _refuse_zero(arrays, sign)
        try:
            return of(arrays)
        except pa.ArrowInvalid as error:
            row = _first_failing(of, arrays, rows)
            shown = [str(array[row]) for array in arrays]
            text = f" {sign} ".join(shown) if len(shown) > 1 else f"{sign}({shown[0]})"
            beyond = "BIGINT" if pa.types.is_integer(kind) else str(kind)
            raise SchemaError(f"{text} (row {row} of a batch) goes beyond {beyond}") from error

    try:
        made = of([pa.array([], side.type) for side in sides])
    except pa.ArrowInvalid as error:
        raise SchemaError(f"{sign}: the result has more than {_DIGITS} digits; round(…) its parts first") from error
    return Calculated(value, _names(sides), made.type)


def _exact(given: pa.DataType, kind: pa.DataType) -> pa.DataType:
    """The type in which a number is calculated: decimals keep their own digits."""
    if not pa.types.is_decimal(kind):
        return kind
    return given if pa.types.is_decimal(given) else pa.decimal256(_OF_LONG, 0)


def _remainder(left: pa.Array, right: pa.Array) -> pa.Array:
    """The remainder of a division that rounds towards zero, so with the sign of `left`."""
    if pa.types.is_floating(left.type):
        known = pc.and_(left.is_valid(), right.is_valid())
        with np.errstate(invalid="ignore"):
            found = np.fmod(_doubles(left), _doubles(right))
        return pc.if_else(known, pa.array(found), pa.nulls(len(left), pa.float64()))
    by_one = pc.or_(pc.equal(right, 1), pc.equal(right, -1))  # whose quotient may be beyond BIGINT
    divisor = pc.if_else(by_one, pa.scalar(2, pa.int64()), right)
    rest = pc.subtract(left, pc.multiply(pc.divide(left, divisor), divisor))
    return pc.if_else(by_one, pc.multiply(left, 0), rest)


def _doubles(array: pa.Array) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.asarray(pc.fill_null(array, 1.0).to_numpy(zero_copy_only=False), np.float64)


def _refuse_zero(arrays: Sequence[pa.Array], sign: Sign) -> None:
    divisor = arrays[1]
    if pa.types.is_null(divisor.type):
        return
    zero = pc.and_(pc.equal(_as(divisor, pa.float64()), 0.0), arrays[0].is_valid())
    if pc.any(zero).as_py():
        row = pc.index(zero, True).as_py()
        raise SchemaError(
            f"{arrays[0][row]} {sign} {divisor[row]} (row {row} of a batch) divides by zero; write "
            f"a {sign} nullif(b, 0) for NULL"
        )


def _first_failing(of: Callable[[Sequence[pa.Array]], pa.Array], arrays: Sequence[pa.Array], count: int) -> int:
    """The first row for which `of` raises, among rows for which `of` raises."""
    first = 0
    while count > 1:
        half = count // 2
        try:
            of([array.slice(first, half) for array in arrays])
        except pa.ArrowInvalid:
            count = half
        else:
            first, count = first + half, count - half
    return first


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _common(kinds: Sequence[pa.DataType]) -> pa.DataType:
    """A common type for values of all types.

    Raises: SchemaError if there is none.
    """
    found = [kind for kind in kinds if not pa.types.is_null(kind)]
    if not found:
        return pa.null()
    if all(kind.equals(found[0]) for kind in found):
        return found[0]
    if all(pa.types.is_timestamp(kind) and kind.tz == found[0].tz for kind in found):
        return max(found, key=lambda kind: _UNITS.index(kind.unit))
    if not all(map(_is_number, found)):
        raise SchemaError(f"{' and '.join(sorted({str(kind) for kind in found}))} have no type in common")
    if any(pa.types.is_floating(kind) for kind in found):
        return pa.float64()
    decimals = [kind if pa.types.is_decimal(kind) else pa.decimal256(_OF_LONG, 0) for kind in found]
    scale = max(kind.scale for kind in decimals)
    return pa.decimal256(min(_DIGITS, max(kind.precision - kind.scale for kind in decimals) + scale), scale)


def _as(array: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return array if array.type.equals(kind) else array.cast(kind, safe=not pa.types.is_floating(kind))
    except pa.ArrowInvalid as error:
        raise SchemaError(f"a value of {array.type} goes beyond {kind}: {error}") from error


def _names(parts: Sequence[Calculated]) -> frozenset[str]:
    return frozenset().union(*(part.names for part in parts))


# -- functions and branches -------------------------------------------------------------------------------------------


def _call(what: FunctionCall, around: Surroundings) -> Calculated:
    name = what.function
    if name in times.FUNCTIONS:
        return _of_times(what, around)
    if name in NOW:
        raise SchemaError(f"{name}() is not known here; write the time, as in TIMESTAMP '2024-01-31 12:00:00'")
    given = [calculate(argument, around) for argument in what.arguments]
    kinds = [each.type for each in given]
    if name in _OF_TEXT:
        for kind in kinds[:1] if name in ("substring", "replace") else kinds:
            if not (pa.types.is_string(kind) or pa.types.is_null(kind)):
                raise SchemaError(f"{name} takes strings, not {kind}")
        common = pa.string()
    else:
        common = _common(kinds[:1] if name == "round" else kinds)
    if name in _OF_NUMBERS and not (_is_number(common) or pa.types.is_null(common)):
        raise SchemaError(f"{name} takes numbers, not {common}")
    constants = [] if name not in _WITH_CONSTANTS else [_constant_value(name, each) for each in given[1:]]
    taken = given[:1] if name in _WITH_CONSTANTS else given
    kernel = _kernel(name, common, constants)

    def value(columns: Columns, rows: int) -> pa.Array:
        arrays = [_as(each.value(columns, rows), common) for each in taken]
        try:
            return kernel(arrays)
        except pa.ArrowInvalid as error:
            row = _first_failing(kernel, arrays, rows)
            raise SchemaError(f"{name}({_show_value(arrays[0], row)}) (row {row} of a batch): {error}") from error

    try:
        made = kernel([pa.array([], common) for _ in taken])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaError(f"{name} of {common}: {error}") from error
    return Calculated(value, _names(given), made.type)


def _of_times(what: FunctionCall, around: Surroundings) -> Calculated:
    """A function of a date or timestamp, and constants."""
    place = times.FUNCTIONS[what.function]
    given = calculate(what.arguments[place], around)
    source = pa.timestamp("us") if pa.types.is_null(given.type) else given.type
    kernel = times.kernel(what.function, [one for at, one in enumerate(what.arguments) if at != place], source)

    def value(columns: Columns, rows: int) -> pa.Array:
        arrays = [_as(given.value(columns, rows), source)]
        try:
            return kernel(arrays)
        except pa.ArrowInvalid as error:
            row = _first_failing(kernel, arrays, rows)
            raise SchemaError(f"{value_text(what)} of {arrays[0][row]} (row {row} of a batch): {error}") from error

    return Calculated(value, given.names, kernel([pa.array([], source)]).type)


_OF_TEXT = frozenset(("concat", "length", "replace", "substring", *_TEXT))
_OF_NUMBERS = frozenset(("abs", "ceil", "floor", "round"))
_WITH_CONSTANTS = frozenset(("replace", "round", "substring"))


def _show_value(array: pa.Array, row: int) -> str:
    """A value for a message; strings of foreign files may not be UTF-8."""
    if not pa.types.is_string(array.type) or not array[row].is_valid:
        return str(array[row])
    return str(array[row].as_buffer().to_pybytes().decode("utf-8", "backslashreplace"))


def _constant_value(name: str, argument: Calculated) -> object:
    """The value of an argument that is the same for all rows."""
    if argument.names:
        raise SchemaError(f"{name}: only the first argument may be a column; write the others as literals")
    found = argument.value({}, 1)[0].as_py()
    if isinstance(found, (str, int)) and isinstance(found, str) == (name == "replace"):
        return found
    raise SchemaError(f"{name} does not take {found!r}")


def _kernel(name: str, kind: pa.DataType, fixed: Sequence[object]) -> Callable[[Sequence[pa.Array]], pa.Array]:
    if name in ("trim", "ltrim", "rtrim"):
        return lambda given: pc.call_function(_TEXT[name], [given[0]], pc.TrimOptions(characters=" "))
    if name in _TEXT:
        return lambda given: pc.call_function(_TEXT[name], [given[0]])
    if name == "round":
        return lambda given: _round(given[0], int(str(fixed[0])) if fixed else 0)
    if name == "substring":
        numbers = [int(str(number)) for number in fixed]
        return lambda given: _substring(given[0], *numbers)
    if name == "replace":
        old, new = map(str, fixed)
        return lambda given: pc.replace_substring(given[0], old, new) if old else given[0]
    if name in ("greatest", "least"):
        return in_plain_type(kind, _greatest if name == "greatest" else lambda given: pc.min_element_wise(*given))
    return {
        "abs": lambda given: given[0] if pa.types.is_null(kind) else pc.abs_checked(given[0]),
        "ceil": lambda given: given[0] if pa.types.is_integer(kind) else pc.ceil(_with_room(given[0])),
        "coalesce": lambda given: pc.coalesce(*given),
        "concat": lambda given: pc.binary_join_element_wise(*given, "", null_handling="emit_null"),
        "floor": lambda given: given[0] if pa.types.is_integer(kind) else pc.floor(_with_room(given[0])),
        "length": lambda given: pc.utf8_length(given[0]).cast(pa.int64()),
        "nullif": lambda given: pc.if_else(_equal(*given), pa.nulls(len(given[0]), given[0].type), given[0]),
    }[name]


def _greatest(given: Sequence[pa.Array]) -> pa.Array:
    """The largest values that are not NULL; NaN is larger than any number, as in Java and Spark, unlike in Arrow."""
    found = pc.max_element_wise(*given)
    if not pa.types.is_floating(found.type):
        return found
    for array in given:
        found = pc.if_else(pc.fill_null(pc.is_nan(array), False), array, found)
    return found


def _equal(one: pa.Array, other: pa.Array) -> pa.Array:
    """A mask of rows with equal values that are not NULL; NaN is equal to itself, as in Java and Spark."""
    found = pc.equal(one, other)
    if pa.types.is_floating(one.type):
        found = pc.or_(found, pc.and_(pc.is_nan(one), pc.is_nan(other)))
    return pc.fill_null(found, False)


def _with_room(array: pa.Array) -> pa.Array:
    """Decimals with one more digit before the point, which 9.5 needs to become 10."""
    kind = array.type
    if not pa.types.is_decimal(kind) or not kind.scale or kind.precision == _DIGITS:
        return array
    return array.cast(pa.decimal256(kind.precision + 1, kind.scale))


def _round(array: pa.Array, digits: int) -> pa.Array:
    """Round halves away from zero, as in SQL."""
    kind = array.type
    if pa.types.is_integer(kind) and digits >= 0:
        return array
    if pa.types.is_decimal(kind):
        if digits >= kind.scale:
            return array
        scale = max(0, digits)
        precision = min(_DIGITS, kind.precision + 1) - kind.scale + scale
        return scaled_down(array, digits, half_up=True).cast(pa.decimal256(min(_DIGITS, precision), scale))
    found = pc.round(array, digits, "half_towards_infinity")
    return found.cast(kind) if pa.types.is_integer(kind) else found


def _substring(array: pa.Array, start: int, length: int | None = None) -> pa.Array:
    """Characters from `start` on, counted from 1, or from the end if `start` is negative."""
    if length is not None and length <= 0:
        return pc.utf8_slice_codeunits(array, 0, 0)
    begin = start - 1 if start > 0 else start
    stop = None if length is None else begin + length
    return pc.utf8_slice_codeunits(array, begin, None if begin < 0 and stop is not None and stop >= 0 else stop)


def _case(what: Case, around: Surroundings) -> Calculated:
    branches = [
        (around.mask(condition), calculate(value, around))
        for condition, value in what.branches
    ]
    otherwise = calculate(what.otherwise, around)
    values = [*(value for _, value in branches), otherwise]
    kind = _common([value.type for value in values])
    names = _names(values).union(*(mask[0] for mask, _ in branches))

    def value(columns: Columns, rows: int) -> pa.Array:
        columns = {name: columns[name] for name in names}
        at = pa.array(np.arange(rows, dtype=np.int64))
        places: list[pa.Array] = []
        parts: list[pa.Array] = []

        def take(branch: Calculated, columns: Columns, at: pa.Array) -> None:
            places.append(at)
            parts.append(_as(branch.value(columns, len(at)), kind))

        for (_, mask), branch in branches:
            true = mask(columns) if columns else _always(mask, len(at))
            take(branch, {name: array.filter(true) for name, array in columns.items()}, at.filter(true))
            rest = pc.invert(true)
            columns, at = {name: array.filter(rest) for name, array in columns.items()}, at.filter(rest)
        take(otherwise, columns, at)
        order = pc.sort_indices(pa.concat_arrays(places))
        return pa.concat_arrays(parts).take(order)

    return Calculated(value, names, kind)


def _always(mask: Callable[[Columns], pa.Array], rows: int) -> pa.Array:
    """The mask of a condition without columns, such as TRUE."""
    return mask({"": pa.nulls(rows)})
