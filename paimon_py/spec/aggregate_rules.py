"""The aggregate function of each column with its settings, and the rules that schemas must follow.

Java checks the name of a function when a table is created and the rest when rows are first merged; paimon_py checks
everything when the table is created or altered.

Source: format.md §12.5; Java `AggregateMergeFunction.getAggFuncName`, `FieldAggregatorFactory`, `CoreOptions`,
`SchemaValidation.validateMergeFunctionFactory`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from paimon_py.errors import OptionError, SchemaError
from paimon_py.spec.option_names import DEFAULT_AGGREGATE, FIELDS_PREFIX
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.type_text import sql_type
from paimon_py.spec.types import MAX_LENGTH, ArrayType, Atomic, DataType, Field, MapType, Root, RowType

FUNCTIONS = (
    "bool_and",
    "bool_or",
    "collect",
    "first_non_null_value",
    "first_not_null_value",
    "first_value",
    "hll_sketch",
    "last_non_null_value",
    "last_value",
    "listagg",
    "max",
    "merge_map",
    "merge_map_with_keytime",
    "min",
    "nested_partial_update",
    "nested_update",
    "primary-key",
    "product",
    "rbm32",
    "rbm64",
    "sum",
    "theta_sketch",
)
"""Every function of Java 2.0; `first_not_null_value` is the old name of `first_non_null_value`."""

RETRACTABLE = frozenset(
    ("sum", "product", "last_value", "last_non_null_value", "collect", "merge_map", "nested_update", "primary-key")
)
"""The functions that can retract a value; all others refuse −U and −D rows."""

REMOVE_ON_DELETE = "aggregation.remove-record-on-delete"

_TEXTS = frozenset((Root.CHAR, Root.VARCHAR))
_NO_ORDER = frozenset((Root.BOOLEAN, Root.VARIANT, Root.BLOB, Root.GEOMETRY, Root.GEOGRAPHY))
_NO_ORDER_IN_ROWS = _NO_ORDER - {Root.BOOLEAN}
_NULL_KEYS = ("merge", "ignore", "error")


class Aggregate(msgspec.Struct, frozen=True, kw_only=True):
    """The aggregate function of a column with its settings.

    `ignore_retract`: ignore −U and −D rows. `distinct`: of collect and listagg. `delimiter`: of listagg. `nested_key`,
    `nested_sequence`: fields of the ROW inside an ARRAY; `null_keys`: how nested_update treats a key that contains NULL
    (merge it like any other, ignore the row, or fail). `count_limit`: the maximum number of rows that nested_update
    collects. `time_field`: index in the ROW of the string that merge_map_with_keytime compares.
    """

    field: Field
    function: str
    ignore_retract: bool = False
    distinct: bool = False
    delimiter: str = ","
    nested_key: tuple[str, ...] = ()
    nested_sequence: tuple[str, ...] = ()
    null_keys: str = "merge"
    count_limit: int = 2**31 - 1
    time_field: int = -1


def column_function(schema: TableSchema, name: str) -> str:
    """The function of a column under the aggregation engine.

    Keys keep their values and sequence fields the last value; other columns have the column's own option, the default
    for all columns, or last_non_null_value.
    """
    if name in Options(schema.options).get_list("sequence.field"):
        return "last_value"
    if name in schema.primary_keys:
        return "primary-key"
    named = named_function(schema, name)
    return "last_non_null_value" if named is None else named


def named_function(schema: TableSchema, name: str) -> str | None:
    """The function that the options configure for a column: its own, or the default for all columns."""
    return schema.options.get(f"{FIELDS_PREFIX}{name}.aggregate-function", schema.options.get(DEFAULT_AGGREGATE))


def aggregate_of(schema: TableSchema, name: str, function: str) -> Aggregate:
    """The aggregate `function` of a column, with the settings in the column's options.

    Raises:
        OptionError: an unknown function, or an option that breaks a rule.
        SchemaError: the function does not support the column's type.
    """
    field = schema.field(name)
    _check_name(schema, name, function)
    reader = _FieldOptions(schema.options, name)
    made = Aggregate(
        field=field,
        function="first_non_null_value" if function == "first_not_null_value" else function,
        ignore_retract=reader.flag("ignore-retract"),
        distinct=reader.flag("distinct"),
        delimiter=schema.options.get(reader.name("list-agg-delimiter"), ","),
        nested_key=reader.names("nested-key"),
        nested_sequence=reader.names("nested-sequence-field"),
        null_keys=reader.choice("nested-key-null-strategy", _NULL_KEYS),
        count_limit=reader.number("count-limit", 2**31 - 1),
    )
    if made.ignore_retract and Options(schema.options).get_bool(REMOVE_ON_DELETE):
        option = reader.name("ignore-retract")
        raise OptionError(
            f"option {option!r} cannot be combined with {REMOVE_ON_DELETE!r}: one ignores -D rows, the other removes "
            "the record; unset one of them",
            option=option,
            value="true",
        )
    _check_type(made)
    if made.function in ("nested_update", "nested_partial_update"):
        _check_nested(made, reader)
    if made.function == "merge_map_with_keytime":
        return msgspec.structs.replace(made, time_field=_time_field(made, reader))
    return made


def check_aggregates(schema: TableSchema, options: Options) -> None:
    """Check the aggregate functions of a table whose merge engine uses them.

    Raises: as `aggregate_of`.
    """
    engine = options.get_enum("merge-engine")
    if not schema.primary_keys or engine not in ("aggregation", "partial-update"):
        return
    for name in schema.names:
        named = named_function(schema, name)
        if named is not None:
            _check_name(schema, name, named)
        if engine == "aggregation":
            aggregate_of(schema, name, column_function(schema, name))
        elif named is not None and name not in schema.primary_keys and name not in _group_fields(options):
            aggregate_of(schema, name, named)


def _group_fields(options: Options) -> frozenset[str]:
    """The columns that order sequence groups; they have no aggregate function."""
    suffix = ".sequence-group"
    keys = (key for key in options if key.startswith(FIELDS_PREFIX) and key.endswith(suffix))
    return frozenset(name for key in keys for name in key[len(FIELDS_PREFIX) : -len(suffix)].split(","))


class _FieldOptions:
    """The typed options `fields.<column>.…` of one column."""

    def __init__(self, options: Mapping[str, str], column: str) -> None:
        self._options = options
        self._prefix = f"{FIELDS_PREFIX}{column}."

    def name(self, suffix: str) -> str:
        return self._prefix + suffix

    def text(self, suffix: str) -> str | None:
        return self._options.get(self._prefix + suffix)

    def flag(self, suffix: str) -> bool:
        text = self.text(suffix)
        if text is None:
            return False
        if text.lower() not in ("true", "false"):
            raise self.wrong(suffix, "'true' or 'false'")
        return text.lower() == "true"

    def number(self, suffix: str, default: int) -> int:
        text = self.text(suffix)
        if text is None:
            return default
        digits = text[1:] if text[:1] in "+-" else text
        if not (digits.isascii() and digits.isdigit()) or not -(2**31) <= int(text) < 2**31:
            raise self.wrong(suffix, "a whole number of 32 bits")
        return int(text)

    def names(self, suffix: str) -> tuple[str, ...]:
        text = self.text(suffix)
        return () if text is None else tuple(part.strip() for part in text.split(","))

    def choice(self, suffix: str, choices: tuple[str, ...]) -> str:
        text = self.text(suffix)
        if text is None:
            return choices[0]
        if text.lower() not in choices:
            raise self.wrong(suffix, "one of " + ", ".join(repr(choice) for choice in choices))
        return text.lower()

    def wrong(self, suffix: str, allowed: str) -> OptionError:
        text = self.text(suffix)
        return OptionError(
            f"option {self.name(suffix)!r} is {text!r}; it must be {allowed}", option=self.name(suffix), value=text
        )


def _check_name(schema: TableSchema, column: str, function: str) -> None:
    if function in FUNCTIONS:
        return
    option = f"{FIELDS_PREFIX}{column}.aggregate-function"
    if option not in schema.options:
        option = DEFAULT_AGGREGATE
    raise OptionError(
        f"option {option!r} is {function!r}, which is not an aggregate function; use one of {', '.join(FUNCTIONS)}",
        option=option,
        value=function,
    )


def _check_type(made: Aggregate) -> None:
    data_type = made.field.type
    needed = _needed_type(made.function, data_type)
    if needed:
        raise SchemaError(
            f"aggregate function {made.function} of column {made.field.name!r} needs {needed}, not "
            f"{sql_type(data_type)}; choose another function (option "
            f"'{FIELDS_PREFIX}{made.field.name}.aggregate-function') or another type",
            fields=(made.field.name,),
        )


def _needed_type(function: str, data_type: DataType) -> str:
    """The type that the function needs; empty if the given type fits."""
    fits, needed = _TYPES.get(function, (_anything, ""))
    return "" if fits(data_type) else needed


def _anything(_: DataType) -> bool:
    return True


def _of_roots(*roots: Root) -> Callable[[DataType], bool]:
    return lambda data_type: isinstance(data_type, Atomic) and data_type.root in roots


def _is_ordered(data_type: DataType) -> bool:
    return isinstance(data_type, Atomic) and data_type.root not in _NO_ORDER


def _is_string(data_type: DataType) -> bool:
    return isinstance(data_type, Atomic) and data_type.root is Root.VARCHAR and data_type.length == MAX_LENGTH


def _is_timed_map(data_type: DataType) -> bool:
    return (
        isinstance(data_type, MapType) and isinstance(data_type.value, RowType) and len(data_type.value.fields) >= 2
    )


def _is_nested_table(data_type: DataType) -> bool:
    return isinstance(data_type, ArrayType) and isinstance(data_type.element, RowType)


_NUMBER = (
    _of_roots(Root.TINYINT, Root.SMALLINT, Root.INT, Root.BIGINT, Root.FLOAT, Root.DOUBLE, Root.DECIMAL),
    "a number",
)
_ORDERED = (_is_ordered, "a type that has an order (of BOOLEAN, too, Java 2.0 has none: use bool_and, bool_or)")
_BOOLEAN = (_of_roots(Root.BOOLEAN), "BOOLEAN")
_BYTES = (_of_roots(Root.VARBINARY), "VARBINARY")
_NESTED_TABLE = (_is_nested_table, "ARRAY of ROW")
_TYPES: dict[str, tuple[Callable[[DataType], bool], str]] = {
    "sum": _NUMBER,
    "product": _NUMBER,
    "min": _ORDERED,
    "max": _ORDERED,
    "bool_and": _BOOLEAN,
    "bool_or": _BOOLEAN,
    "listagg": (_is_string, "STRING (VARCHAR without a length)"),
    "rbm32": _BYTES,
    "rbm64": _BYTES,
    "theta_sketch": _BYTES,
    "hll_sketch": _BYTES,
    "collect": (lambda data_type: isinstance(data_type, ArrayType), "ARRAY"),
    "merge_map": (lambda data_type: isinstance(data_type, MapType), "MAP"),
    "merge_map_with_keytime": (_is_timed_map, "MAP whose values are ROWs of at least two fields"),
    "nested_update": _NESTED_TABLE,
    "nested_partial_update": _NESTED_TABLE,
}


def _check_nested(made: Aggregate, reader: _FieldOptions) -> None:
    if not made.nested_key:
        if made.function == "nested_partial_update":
            option = reader.name("nested-key")
            raise OptionError(f"nested_partial_update of column {made.field.name!r} needs {option!r}", option=option)
        for suffix in ("nested-key-null-strategy", "nested-sequence-field"):
            if reader.text(suffix) is not None:
                option = reader.name(suffix)
                raise OptionError(f"option {option!r} needs {reader.name('nested-key')!r}", option=option)
    row = nested_row(made.field)
    for suffix, names in (("nested-key", made.nested_key), ("nested-sequence-field", made.nested_sequence)):
        missing = [name for name in names if name not in row]
        if missing:
            raise reader.wrong(suffix, f"fields of the ROW, which are {list(row)}; {missing[0]!r} is not one of them")
    for name in made.nested_sequence:
        kind = row[name]
        if not isinstance(kind, Atomic) or kind.root in _NO_ORDER_IN_ROWS:
            raise reader.wrong("nested-sequence-field", f"fields that have an order; {name!r} is {sql_type(kind)}")


def nested_row(field: Field) -> dict[str, DataType]:
    """The fields of the ROW inside an ARRAY column."""
    assert isinstance(field.type, ArrayType)
    assert isinstance(field.type.element, RowType)
    return {inner.name: inner.type for inner in field.type.element.fields}


def _time_field(made: Aggregate, reader: _FieldOptions) -> int:
    """Position of the time in the ROW: option `ts-field`, else the last field."""
    assert isinstance(made.field.type, MapType)
    assert isinstance(made.field.type.value, RowType)
    fields = made.field.type.value.fields
    names = [inner.name for inner in fields]
    wanted = reader.text("ts-field")
    if wanted is not None and wanted not in names:
        raise reader.wrong("ts-field", f"a field of the ROW, one of {names}")
    place = len(fields) - 1 if wanted is None else names.index(wanted)
    kind = fields[place].type
    if not isinstance(kind, Atomic) or kind.root not in _TEXTS:
        raise SchemaError(
            f"merge_map_with_keytime of column {made.field.name!r} compares times as texts; its time field "
            f"{names[place]!r} is {sql_type(kind)}. Make it STRING, or name another with {reader.name('ts-field')!r}",
            fields=(made.field.name,),
        )
    return place
