"""ANSI store assignment in a data source: tasks cast columns whose types differ from those of the table, like INSERT.

Spark does not cast rows for a data source, so the casts that Spark does for `write_spark` are done on Arrow columns. A
value out of range fails the task; the fraction of a number that becomes an integer is truncated.

Source: Spark `Cast` (ANSI), `SparkDateTimeUtils`; Java `LocalDate.atStartOfDay`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as st

from paimon_py.distributed import cast_values
from paimon_py.errors import SchemaError, UsageError
from paimon_py.spark.assignment import TypeMismatch, refusal
from paimon_py.spark.clocks import arrow_zone
from paimon_py.spark.types import arrow_type


class StoreAssignment:
    """Runs on an executor: casts columns of rows.

    Args:
        casts: the columns to cast, by position.
        zone: the time zone of the session, if an option gives it.

    Raises: UsageError for a zone that is unknown on this machine.
    """

    def __init__(self, casts: Sequence[TypeMismatch], zone: str | None) -> None:
        self.casts = casts
        self.zone = None if zone is None else arrow_zone(zone)

    def __call__(self, batch: pa.RecordBatch, session_zone: str | None) -> pa.RecordBatch:
        """`session_zone`: the session's time zone, if the task knows it.

        Raises: SchemaError for a value that its column cannot contain; UsageError if the zone is needed but unknown.
        """
        zone = self.zone or session_zone or next((one.type.tz for one in batch.schema if _is_instant(one.type)), None)
        columns = batch.columns
        for unlike in self.casts:
            try:
                columns[unlike.place] = _Caster(zone).cast(columns[unlike.place], unlike.given, unlike.wanted)
            except (_OutOfRange, pa.ArrowInvalid, SchemaError) as error:
                why = "a value is out of range"
                raise SchemaError(refusal(unlike, why), fields=(unlike.field.name,)) from error
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)

    def types(self, given: st.StructType) -> st.StructType:
        """The columns with their types after the casts."""
        fields = list(given.fields)
        for unlike in self.casts:
            field = fields[unlike.place]
            fields[unlike.place] = st.StructField(field.name, unlike.wanted, field.nullable)
        return st.StructType(fields)


class _OutOfRange(Exception):
    """A value is out of range of the other type."""


class _Caster:
    def __init__(self, zone: str | None) -> None:
        self._zone = zone

    def cast(self, array: pa.Array, given: st.DataType, wanted: st.DataType) -> pa.Array:
        if given == wanted:
            return array
        if isinstance(wanted, (st.ArrayType, st.MapType)):
            return self._cast_elements(array, given, wanted)
        if isinstance(wanted, st.StringType):
            return self._text(array)
        if isinstance(wanted, st.NumericType):
            return _number(array, arrow_type(wanted))
        return self._time(array, wanted)

    def _cast_elements(self, array: pa.Array, given: st.DataType, wanted: st.DataType) -> pa.Array:
        whole = array.take(pa.array(np.arange(len(array))))  # without an offset, and no elements under NULLs
        is_null = np.append(np.asarray(whole.is_null()), False)
        offsets = pa.array(np.asarray(whole.offsets), pa.int32(), mask=is_null)
        if isinstance(wanted, st.ArrayType):
            return pa.ListArray.from_arrays(offsets, self.cast(whole.values, given.elementType, wanted.elementType))
        keys = self.cast(whole.keys, given.keyType, wanted.keyType)
        return pa.MapArray.from_arrays(offsets, keys, self.cast(whole.items, given.valueType, wanted.valueType))

    def _text(self, array: pa.Array) -> pa.Array:
        kind = array.type
        if pa.types.is_timestamp(kind):
            texts = pc.cast(self._wall(array), pa.string())
            shown = pc.replace_substring_regex(texts, r"(\.\d*?)0+$", r"\1")
            return pc.replace_substring_regex(shown, r"\.$", "")
        if pa.types.is_binary(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
            return pc.cast(array, pa.string())
        return cast_values(array, pa.string())

    def _time(self, array: pa.Array, wanted: st.DataType) -> pa.Array:
        if isinstance(wanted, st.DateType):
            return pc.cast(pc.floor_temporal(self._wall(array), unit="day"), pa.date32())
        wall = pc.cast(array, pa.timestamp("us"))
        if isinstance(wanted, st.TimestampNTZType):
            return wall
        return pc.assume_timezone(wall, self._known_zone(), ambiguous="earliest", nonexistent="latest")

    def _wall(self, array: pa.Array) -> pa.Array:
        """The local times of instants in the session's time zone."""
        if not _is_instant(array.type):
            return array
        return pc.local_timestamp(pc.cast(array, pa.timestamp(array.type.unit, self._known_zone())))

    def _known_zone(self) -> str:
        if self._zone is None:
            raise UsageError(
                "dates and times are cast by the clocks of the session, and Spark does not give its data sources the"
                " zone that it has by default: set spark.sql.session.timeZone, or give .option('timeZone', 'UTC')"
            )
        return arrow_zone(self._zone)


def _number(array: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_integer(target):
        return _whole(array, target)
    if pa.types.is_floating(target) and not pa.types.is_decimal(array.type):
        return pc.cast(array, target, safe=False)
    made = cast_values(array, target)
    if made.null_count != array.null_count:
        raise _OutOfRange
    return made


def _whole(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Truncate numbers to integers."""
    if pa.types.is_floating(array.type):
        cut = pc.trunc(array)
        bits = target.bit_width - 1
        inside = pc.and_(pc.greater_equal(cut, -(2.0**bits)), pc.less(cut, 2.0**bits))
        if pc.all(inside).as_py() is False:
            raise _OutOfRange
        return pc.cast(cut, target)
    if pa.types.is_decimal(array.type):
        array = pc.cast(pc.round(array, 0, "towards_zero"), pa.decimal128(38, 0))
    return pc.cast(array, target)


def _is_instant(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.tz is not None
