"""Columns of a DataFrame whose types differ from those of the table: cast as INSERT would, or refused in Spark's terms.

Types that the core accepts are passed to it, and it checks every value. For the others Spark's ANSI store assignment
determines what Spark may cast: DECIMAL to DOUBLE, DATE to TIMESTAMP, INT to STRING. Instants and local times are not
cast to each other, and structs are not cast, because Spark would match their fields by position.

Source: Spark `Cast.canANSIStoreAssign`.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as st

from paimon_py.distributed import sql_type, takes_type, to_arrow_type
from paimon_py.errors import SchemaError
from paimon_py.spark.jobs import error_text
from paimon_py.spark.types import column_type, spark_form
from paimon_py.types import Atomic, Field, Root

if TYPE_CHECKING:
    from paimon_py.spark.case_rule import CaseRule
    from paimon_py.types import TableSchema

_TIMES = (st.DateType, st.TimestampType, st.TimestampNTZType)
_OF_TIMES = ((st.DateType, st.TimestampType), (st.DateType, st.TimestampNTZType), (st.TimestampType, st.DateType),
             (st.TimestampNTZType, st.DateType))  # fmt: skip


class TypeMismatch(NamedTuple):
    """A column that the core does not accept without a cast."""

    place: int
    field: Field
    given: st.DataType
    wanted: st.DataType


def assign_types(df: DataFrame, schema: TableSchema, names: CaseRule, job: str) -> DataFrame:
    """A DataFrame with the types that a table accepts.

    Args:
        job: the job that writes the rows; a value that its column cannot contain fails the job.

    Raises: SchemaError that lists the columns with incompatible types.
    """
    casts = {unlike.place: _cast(unlike, job) for unlike in assignable(df.schema, schema, names)}
    if not casts:
        return df
    plain = df.toDF(*map(str, range(len(df.columns))))
    columns = [f"{casts.get(place, f'`{place}`')} AS `{place}`" for place in range(len(df.columns))]
    return plain.selectExpr(*columns).toDF(*df.columns)


def assignable(given: st.StructType, schema: TableSchema, names: CaseRule) -> list[TypeMismatch]:
    """The columns of a DataFrame that INSERT casts to the types of a table.

    Raises: SchemaError that lists the columns with incompatible types.
    """
    found = list(_unlike(given, schema, names))
    problems = [one for one in found if _is_time(one.field) or not _may(one.given, one.wanted)]
    if problems:
        lines = "".join(f"\n  {refusal(unlike)}" for unlike in problems)
        raise SchemaError(
            f"the data do not fit the table:{lines}", fields=tuple(unlike.field.name for unlike in problems)
        )
    return found


def _unlike(given: st.StructType, schema: TableSchema, names: CaseRule) -> Iterator[TypeMismatch]:
    known = names.rename(given.fieldNames(), schema.names)
    for place, (name, column) in enumerate(zip(known, given, strict=True)):
        field = schema.field(name) if name in schema.names else None
        if field is None or isinstance(column.dataType, st.NullType):
            continue
        wanted = to_arrow_type(field.type)
        is_count = _is_time(field) and isinstance(column.dataType, st.IntegerType)
        if not is_count and not takes_type(field, column_type(column, wanted)):
            yield TypeMismatch(place, field, column.dataType, _spark_type(wanted))


def _is_time(field: Field) -> bool:
    """Whether a column has the type TIME, for which Spark uses integers: milliseconds of the day."""
    return isinstance(field.type, Atomic) and field.type.root is Root.TIME


def _spark_type(kind: pa.DataType) -> st.DataType:
    return spark_form(kind, times=False)[1]


def _may(given: st.DataType, wanted: st.DataType) -> bool:
    """Whether Spark assigns values of one type to columns of another."""
    if isinstance(given, st.ArrayType) and isinstance(wanted, st.ArrayType):
        return _may_inside(given.elementType, wanted.elementType) and wanted.containsNull >= given.containsNull
    if isinstance(given, st.MapType) and isinstance(wanted, st.MapType):
        inside = _may_inside(given.keyType, wanted.keyType) and _may_inside(given.valueType, wanted.valueType)
        return inside and wanted.valueContainsNull >= given.valueContainsNull
    if isinstance(wanted, st.StringType):
        return isinstance(given, (st.NumericType, st.BooleanType, st.BinaryType, *_TIMES))
    if isinstance(given, st.NumericType) and isinstance(wanted, st.NumericType):
        return True
    return (type(given), type(wanted)) in _OF_TIMES


def _may_inside(given: st.DataType, wanted: st.DataType) -> bool:
    """The same inside arrays and maps, where a value that does not fit could not be distinguished from NULL."""
    return given == wanted or (_may(given, wanted) and not _may_overflow(given, wanted))


def _may_overflow(given: st.DataType, wanted: st.DataType) -> bool:
    """Whether a value may be out of range of the other type."""
    return isinstance(wanted, (st.IntegralType, st.DecimalType)) and isinstance(given, st.NumericType)


def _cast(unlike: TypeMismatch, job: str) -> str:
    """The SQL of a cast that fails for a value outside the range of the type."""
    column, kind = f"`{unlike.place}`", unlike.wanted.simpleString()
    if not _may_overflow(unlike.given, unlike.wanted):
        return f"CAST({column} AS {kind})"
    said = error_text(SchemaError(refusal(unlike, "a value is out of range"), fields=(unlike.field.name,)), job)
    tried, text = f"TRY_CAST({column} AS {kind})", base64.b64encode(said.encode()).decode()
    failed = f"CAST(RAISE_ERROR(CAST(UNBASE64('{text}') AS STRING)) AS {kind})"
    return f"CASE WHEN {column} IS NOT NULL AND {tried} IS NULL THEN {failed} ELSE {tried} END"


def refusal(unlike: TypeMismatch, why: str | None = None) -> str:
    """Why a column is refused, and what to write in Spark; `why`: the reason, if it is not the types alone."""
    name, given = unlike.field.name, unlike.given
    what = f"{name}: {given.simpleString()} given, {sql_type(unlike.field.type)} needed"
    if why is not None:
        return f"{what}; {why}"
    return f"{what}; {_advice(unlike)}"


def _advice(unlike: TypeMismatch) -> str:
    name, kind = unlike.field.name, unlike.wanted.simpleString()
    if _is_time(unlike.field):
        return "give the milliseconds of the day as int"
    if _has_fields(unlike.wanted):  # a cast would match the fields by position
        return f"fields of structs are found by their names as they are: give {kind}"
    if not _casts(unlike.given, unlike.wanted):
        return f"Spark casts none to the other: give {kind}"
    quoted = name if name.isidentifier() else "`{}`".format(name.replace("`", "``"))
    return f"cast({quoted} as {kind}) in Spark makes one of the other"


def _has_fields(kind: st.DataType) -> bool:
    if isinstance(kind, st.ArrayType):
        return _has_fields(kind.elementType)
    if isinstance(kind, st.MapType):
        return _has_fields(kind.keyType) or _has_fields(kind.valueType)
    return isinstance(kind, st.StructType)


def _casts(given: st.DataType, wanted: st.DataType) -> bool:
    """Whether Spark has a cast, with or without ANSI mode, between types without structs. Source: Spark `Cast`."""
    if given == wanted or isinstance(wanted, st.StringType):
        return True
    if isinstance(given, st.ArrayType) and isinstance(wanted, st.ArrayType):
        return _casts(given.elementType, wanted.elementType)
    if isinstance(given, st.MapType) and isinstance(wanted, st.MapType):
        return _casts(given.keyType, wanted.keyType) and _casts(given.valueType, wanted.valueType)
    if isinstance(given, st.StringType):
        return not isinstance(wanted, (st.ArrayType, st.MapType))
    if isinstance(wanted, st.BinaryType):
        return isinstance(given, st.IntegralType)
    numbers = (st.NumericType, st.BooleanType)
    if isinstance(given, numbers):
        return isinstance(wanted, (*numbers, st.TimestampType))
    return isinstance(given, _TIMES) and isinstance(
        wanted, (*_TIMES, *numbers) if isinstance(given, st.TimestampType) else _TIMES
    )
