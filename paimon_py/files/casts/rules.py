"""Selects the rule that casts a column from one type to another.

Source: Java `CastExecutors`, `SchemaEvolutionUtil.createCastExecutor`, release 2.0; time zone UTC.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.errors import UnsupportedError
from paimon_py.files.casts import nested as cast_nested
from paimon_py.files.casts import numbers as cast_number
from paimon_py.files.casts import parse as cast_parse
from paimon_py.files.casts import text as cast_text
from paimon_py.files.casts import times as cast_time
from paimon_py.files.casts.job import Cast
from paimon_py.files.casts.types import inner_types, same_type
from paimon_py.spec.cast_rules import STRINGS, is_text
from paimon_py.spec.type_text import sql_type
from paimon_py.spec.types import (
    MAX_LENGTH,
    STRING,
    ArrayType,
    Atomic,
    DataType,
    MapType,
    MultisetType,
    Root,
    RowType,
)

_Rule = Callable[[pa.Array, Cast], pa.Array]

_BYTES = {Root.BINARY, Root.VARBINARY}
_INTEGERS = set(cast_number.INTEGERS)
_NUMBERS = _INTEGERS | set(cast_number.FLOATS)
_TIMESTAMPS = {Root.TIMESTAMP, Root.TIMESTAMP_LTZ}
_WHOLE_TEXT_ONLY = {Root.DATE, Root.TIME, *_TIMESTAMPS}
"""Types that can be cast to STRING but not to a shorter string type."""


def convert(array: pa.Array, source: DataType, target: DataType, column: str) -> pa.Array:
    """See `cast`."""
    return _convert(array, Cast(source, target, column))


def is_supported(source: DataType, target: DataType) -> bool:
    """Whether Paimon can cast a column of one type to the other."""
    if same_type(source, target):
        return True
    if isinstance(source, RowType) and isinstance(target, RowType):
        given = {field.id: field.type for field in source.fields}
        return all(is_supported(given.get(field.id, field.type), field.type) for field in target.fields)
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return is_supported(source.element, target.element)
    if isinstance(source, MapType) and isinstance(target, MapType):
        return same_type(source.key, target.key) and is_supported(source.value, target.value)
    if is_text(target) and not isinstance(source, Atomic):
        return all(is_supported(part, STRING) for part in inner_types(source)) and _is_printed(source)
    if is_text(source) and not isinstance(target, Atomic):
        return all(is_supported(STRING, part) for part in inner_types(target)) and _is_printed(target)
    return isinstance(source, Atomic) and isinstance(target, Atomic) and _rule(source, target) is not None


def _convert(array: pa.Array, job: Cast) -> pa.Array:
    source, target = job.source, job.target
    if same_type(source, target) and (isinstance(source, Atomic) or array.type.equals(to_arrow_type(target))):
        return array
    if isinstance(source, RowType) and isinstance(target, RowType):
        return cast_nested.row(array, job, _convert)
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return cast_nested.array_to_array(array, job, _convert)
    if isinstance(source, MapType) and isinstance(target, MapType) and same_type(source.key, target.key):
        return cast_nested.map_to_map(array, job, _convert)
    if isinstance(source, MultisetType) and isinstance(target, MultisetType) and same_type(source, target):
        return cast_nested.map_to_map(array, job, _convert)
    if is_text(target) and _is_printed(source):
        return cast_nested.nested_to_text(array, job, _convert)
    if is_text(source) and _is_printed(target):
        return cast_nested.text_to_nested(array, job, _convert)
    rule = _rule(source, target) if isinstance(source, Atomic) and isinstance(target, Atomic) else None
    if rule is None:
        raise _unsupported_cast(job)
    return rule(array, job)


def _unsupported_cast(job: Cast) -> UnsupportedError:
    where = f"column {job.column}: " if job.column else ""
    change = f"{sql_type(job.source)} to {sql_type(job.target)}"
    return UnsupportedError(f"{where}Paimon has no cast from {change}", feature=f"cast from {change}")


def _rule(source: Atomic, target: Atomic) -> _Rule | None:
    given, wanted = source.root, target.root
    if wanted in STRINGS:
        if given in _WHOLE_TEXT_ONLY and (wanted is not Root.VARCHAR or target.length != MAX_LENGTH):
            return None
        return _TO_TEXT.get(given)
    if given in STRINGS:
        return _FROM_TEXT.get(wanted)
    if given in _BYTES and wanted in _BYTES:
        return cast_text.bytes_to_bytes
    return _number_rule(given, wanted) or _time_rule(given, wanted)


def _number_rule(given: Root, wanted: Root) -> _Rule | None:
    if given in _NUMBERS:
        if wanted in _NUMBERS:
            return cast_number.number_to_number
        if wanted is Root.DECIMAL:
            return cast_number.number_to_decimal
        if wanted is Root.BOOLEAN and given in _INTEGERS:
            return cast_number.number_to_boolean
    if given is Root.DECIMAL:
        if wanted in _NUMBERS:
            return cast_number.decimal_to_number
        if wanted is Root.DECIMAL:
            return cast_number.decimal_to_decimal
    if given is Root.BOOLEAN and (wanted in _NUMBERS or wanted is Root.DECIMAL):
        return cast_number.boolean_to_number
    return None


def _time_rule(given: Root, wanted: Root) -> _Rule | None:
    if given in _TIMESTAMPS:
        if wanted in _TIMESTAMPS:
            return cast_time.timestamp_to_timestamp
        if wanted in (Root.INT, Root.BIGINT):
            return cast_time.timestamp_to_integer
        return {Root.DATE: cast_time.timestamp_to_date, Root.TIME: cast_time.timestamp_to_time}.get(wanted)
    if wanted in _TIMESTAMPS:
        return {
            Root.INT: cast_time.integer_to_timestamp,
            Root.BIGINT: cast_time.integer_to_timestamp,
            Root.DATE: cast_time.date_to_timestamp,
            Root.TIME: cast_time.time_to_timestamp,
        }.get(given)
    return None


_TO_TEXT: dict[Root, _Rule] = {
    **dict.fromkeys([*_INTEGERS, Root.BOOLEAN], cast_text.integer_to_text),
    **dict.fromkeys(cast_number.FLOATS, cast_text.float_to_text),
    **dict.fromkeys(_TIMESTAMPS, cast_text.timestamp_to_text),
    **dict.fromkeys(STRINGS, cast_text.text_to_text),
    **dict.fromkeys(_BYTES, cast_text.bytes_to_text),
    Root.DECIMAL: cast_text.decimal_to_text,
    Root.DATE: cast_text.date_to_text,
    Root.TIME: cast_text.time_to_text,
}
_FROM_TEXT: dict[Root, _Rule] = {
    **dict.fromkeys(_INTEGERS, cast_parse.text_to_integer),
    **dict.fromkeys(cast_number.FLOATS, cast_parse.text_to_float),
    **dict.fromkeys(_TIMESTAMPS, cast_parse.text_to_timestamp),
    **dict.fromkeys(_BYTES, cast_text.text_to_bytes),
    Root.BOOLEAN: cast_parse.text_to_boolean,
    Root.DECIMAL: cast_parse.text_to_decimal,
    Root.DATE: cast_parse.text_to_date,
    Root.TIME: cast_parse.text_to_time,
}


def _is_printed(kind: DataType) -> bool:
    return isinstance(kind, (ArrayType, MapType, RowType))
