"""Values in the notation of the golden corpus and the oracle as Arrow arrays."""

import datetime
import decimal

import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.spec.types import ArrayType, MapType, MultisetType, Root, RowType

_UNITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def arrow_array(values, kind) -> pa.Array:
    """Values of a Paimon type, written as JSON, as an Arrow array."""
    arrow = to_arrow_type(kind)
    return pa.array([_plain(value, kind, arrow) for value in values], type=arrow)


def canonical(array: pa.Array) -> list[str]:
    """Values that compare as Java's would be printed: NaN equals NaN, −0.0 is not 0.0."""
    if pa.types.is_date(array.type) or pa.types.is_time(array.type):
        array = array.view(pa.int32())
    if pa.types.is_timestamp(array.type):
        array = array.view(pa.int64())
    return [repr(value) for value in array.to_pylist()]


def _plain(value, kind, arrow):
    if value is None:
        return None
    if isinstance(kind, ArrayType):
        return [_plain(item, kind.element, arrow.value_type) for item in value]
    if isinstance(kind, (MapType, MultisetType)):
        parts = (kind.key, kind.value) if isinstance(kind, MapType) else (kind.element, None)
        return [
            (_plain(k, parts[0], arrow.key_type), _plain(v, parts[1], arrow.item_type) if parts[1] else v)
            for k, v in value
        ]
    if isinstance(kind, RowType):
        return {f.name: _plain(value[f.name], f.type, arrow.field(f.name).type) for f in kind.fields}
    return _atomic(value, kind.root, arrow)


def _atomic(value, root, arrow):
    if root in (Root.FLOAT, Root.DOUBLE):
        return float(str(value).replace("Infinity", "inf"))
    if root is Root.DECIMAL:
        return decimal.Decimal(value)
    if root in (Root.BINARY, Root.VARBINARY):
        return bytes.fromhex(value)
    if root is Root.DATE:
        return datetime.date.fromisoformat(value)
    if root is Root.TIME:
        return _nanos_of_day(value) // 1_000_000
    if root in (Root.TIMESTAMP, Root.TIMESTAMP_LTZ):
        day, clock = value.split("T")
        days = (datetime.date.fromisoformat(day) - datetime.date(1970, 1, 1)).days
        return (days * 86_400 * 10**9 + _nanos_of_day(clock)) // 10 ** (9 - _UNITS[arrow.unit])
    return value


def _nanos_of_day(text: str) -> int:
    clock, _, fraction = text.partition(".")
    parts = [int(part) for part in clock.split(":")] + [0]
    return (parts[0] * 3600 + parts[1] * 60 + parts[2]) * 10**9 + int((fraction or "0").ljust(9, "0"))
