"""Converts between Arrow and Spark types, and determines the Arrow type in which Spark accepts a column.

Source: Spark's Python type mapping as observed on 3.5 to 4.x; Paimon's own Spark type mapping for the logical choice
(TIMESTAMP is TIMESTAMP_NTZ, TIMESTAMP WITH LOCAL TIME ZONE is TIMESTAMP).
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyspark
from pyspark.sql import SparkSession
from pyspark.sql import types as st

from paimon_py.errors import UnsupportedError

_HAS_TIME = hasattr(st, "TimeType") and tuple(int(part) for part in pyspark.__version__.split(".")[:2]) >= (4, 3)

_PLAIN: list[tuple[Callable[[pa.DataType], bool], pa.DataType, st.DataType]] = [
    (pa.types.is_boolean, pa.bool_(), st.BooleanType()),
    (pa.types.is_int8, pa.int8(), st.ByteType()),
    (pa.types.is_int16, pa.int16(), st.ShortType()),
    (pa.types.is_uint8, pa.int16(), st.ShortType()),
    (pa.types.is_int32, pa.int32(), st.IntegerType()),
    (pa.types.is_uint16, pa.int32(), st.IntegerType()),
    (pa.types.is_int64, pa.int64(), st.LongType()),
    (pa.types.is_uint32, pa.int64(), st.LongType()),
    (pa.types.is_float16, pa.float32(), st.FloatType()),
    (pa.types.is_float32, pa.float32(), st.FloatType()),
    (pa.types.is_float64, pa.float64(), st.DoubleType()),
    (pa.types.is_string, pa.string(), st.StringType()),
    (pa.types.is_large_string, pa.string(), st.StringType()),
    (pa.types.is_string_view, pa.string(), st.StringType()),
    (pa.types.is_binary, pa.binary(), st.BinaryType()),
    (pa.types.is_large_binary, pa.binary(), st.BinaryType()),
    (pa.types.is_binary_view, pa.binary(), st.BinaryType()),
    (pa.types.is_fixed_size_binary, pa.binary(), st.BinaryType()),
    (pa.types.is_date, pa.date32(), st.DateType()),
    (pa.types.is_null, pa.null(), st.NullType()),
]


def has_time(spark: SparkSession) -> bool:
    """Whether a session accepts columns of type TIME: from Spark 4.3 on, if its configuration allows it."""
    return _HAS_TIME and spark.conf.get("spark.sql.timeType.enabled", "false") == "true"


def spark_form(kind: pa.DataType, *, times: bool) -> tuple[pa.DataType, st.DataType]:
    """The Arrow type to hand to Spark for `kind`, and the Spark type it becomes.

    `times`: TIME stays TIME; otherwise it becomes milliseconds of the day as INT.

    Raises:
        UnsupportedError: Spark has no such type.
    """
    for test, arrow, spark in _PLAIN:
        if test(kind):
            return arrow, spark
    if pa.types.is_decimal(kind) and kind.precision <= 38:
        return pa.decimal128(kind.precision, kind.scale), st.DecimalType(kind.precision, kind.scale)
    if pa.types.is_timestamp(kind):
        if kind.tz is None:
            return pa.timestamp("us"), st.TimestampNTZType()
        return pa.timestamp("us", "UTC"), st.TimestampType()
    if pa.types.is_time(kind):
        return (pa.time64("ns"), st.TimeType(6)) if times else (pa.int32(), st.IntegerType())
    if pa.types.is_dictionary(kind):
        return spark_form(kind.value_type, times=times)
    return _nested_form(kind, times)


def _nested_form(kind: pa.DataType, times: bool) -> tuple[pa.DataType, st.DataType]:
    if pa.types.is_map(kind):
        key, spark_key = spark_form(kind.key_type, times=times)
        item, spark_item = spark_form(kind.item_type, times=times)
        nullable = kind.item_field.nullable
        return (
            pa.map_(key, pa.field("value", item, nullable)),
            st.MapType(spark_key, spark_item, nullable),
        )
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        item, spark_item = spark_form(kind.value_type, times=times)
        nullable = kind.value_field.nullable
        return pa.list_(pa.field("element", item, nullable)), st.ArrayType(spark_item, nullable)
    if pa.types.is_struct(kind):
        forms = [(field, *spark_form(field.type, times=times)) for field in kind]
        return (
            pa.struct([pa.field(field.name, arrow, field.nullable) for field, arrow, _ in forms]),
            st.StructType([st.StructField(field.name, spark, field.nullable) for field, _, spark in forms]),
        )
    raise UnsupportedError(f"Spark has no type for Arrow's {kind}", feature=f"Spark type for {kind}")


def spark_schemas(schema: pa.Schema, session: SparkSession | None) -> tuple[pa.Schema, st.StructType]:
    """The Arrow schema to pass to Spark and the Spark schema, with columns in order. `session`: None if unknown."""
    arrow, spark = _nested_form(pa.struct(list(schema)), session is not None and has_time(session))
    return pa.schema(list(arrow)), spark


_ARROW: dict[type[st.DataType], pa.DataType] = {
    st.BooleanType: pa.bool_(),
    st.ByteType: pa.int8(),
    st.ShortType: pa.int16(),
    st.IntegerType: pa.int32(),
    st.LongType: pa.int64(),
    st.FloatType: pa.float32(),
    st.DoubleType: pa.float64(),
    st.StringType: pa.string(),
    st.CharType: pa.string(),
    st.VarcharType: pa.string(),
    st.BinaryType: pa.binary(),
    st.DateType: pa.date32(),
    st.TimestampType: pa.timestamp("us", "UTC"),
    st.TimestampNTZType: pa.timestamp("us"),
    st.NullType: pa.null(),
}


def arrow_type(kind: st.DataType, like: pa.DataType | None = None) -> pa.DataType:
    """The Arrow type of a Spark type.

    The elements of `array()` and `map()` have the type VOID NOT NULL in Spark, which Arrow does not have: here they are
    nullable. A map has keys of type VOID only if it is empty.

    Args:
        like: a type whose parts replace those that are VOID here; otherwise keys become strings, and other parts null.

    Raises:
        UnsupportedError: Arrow, or paimon_py, has no such type (intervals, VARIANT, user-defined types).
    """
    if isinstance(kind, st.NullType) and like is not None:
        return like
    if type(kind) in _ARROW:
        return _ARROW[type(kind)]
    if isinstance(kind, st.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, st.ArrayType):
        element = arrow_type(kind.elementType, like.value_type if like is not None and pa.types.is_list(like) else None)
        return pa.list_(pa.field("element", element, kind.containsNull or _is_void(kind.elementType)))
    if isinstance(kind, st.MapType):
        known = (like.key_type, like.item_type) if like is not None and pa.types.is_map(like) else (None, None)
        key, item = arrow_type(kind.keyType, known[0]), arrow_type(kind.valueType, known[1])
        key = pa.string() if pa.types.is_null(key) else key
        return pa.map_(key, pa.field("value", item, kind.valueContainsNull or _is_void(kind.valueType)))
    if isinstance(kind, st.StructType):
        inner = {field.name: field.type for field in like} if like is not None and pa.types.is_struct(like) else {}
        return pa.struct([
            pa.field(f.name, column_type(f, inner.get(f.name)), f.nullable or _is_void(f.dataType))
            for f in kind.fields
        ])  # fmt: skip
    if _HAS_TIME and isinstance(kind, st.TimeType):
        return pa.time64("us")
    raise UnsupportedError(f"no Arrow type for Spark's {kind.simpleString()}", feature=f"Spark {kind.simpleString()}")


def column_type(column: st.StructField, like: pa.DataType | None = None) -> pa.DataType:
    """The Arrow type of a column, as `arrow_type`; errors name the column.

    Raises:
        UnsupportedError: Arrow, or paimon_py, has no such type.
    """
    try:
        return arrow_type(column.dataType, like)
    except UnsupportedError as error:
        raise UnsupportedError(f"column {column.name!r}: {error}", feature=error.feature) from None


def _is_void(kind: st.DataType) -> bool:
    return isinstance(kind, st.NullType)


def arrow_schema(kind: st.StructType) -> pa.Schema:
    """The Arrow schema of a DataFrame."""
    return pa.schema(list(arrow_type(kind)))
