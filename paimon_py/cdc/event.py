"""Values that decoders and the sink share: events, columns and changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Union

import msgspec
import pyarrow as pa

from paimon_py.cdc.computed import Computed
from paimon_py.errors import UsageError
from paimon_py.spec.types import DataType


class Event(msgspec.Struct, frozen=True):
    """One record of a topic. `position`: identifies the record, such as `partition:offset`.

    `timestamp`: the creation time of the record, in milliseconds since 1970.
    """

    value: bytes | None
    key: bytes | None = None
    topic: str = ""
    position: str = ""
    partition: int | None = None
    offset: int | None = None
    timestamp: int | None = None


class SourceColumn(msgspec.Struct, frozen=True, cache_hash=True):
    """A column as an event declares it; `encoding` selects how `columns.build` converts its JSON values.

    Attributes:
        declared: the source's type name, if type mappings depend on it.
        read_as: the type to which values are decoded before they are converted to `type`; None for `type` itself.
        computed: computes the values from another column; None for a column of the source.
        choices: the names of an enumeration or a set, in order.
        refused: the reason why the column is not supported, or empty. An event with it is a dead letter, unless routes
            exclude the column.
    """

    name: str
    type: DataType
    encoding: str
    scale: int = 0
    declared: str = ""
    read_as: DataType | None = None
    computed: Computed | None = None
    choices: tuple[str, ...] = ()
    refused: str = ""


class Change(msgspec.Struct, frozen=True, gc=False):
    """The changes of one event to one table: rows with their kinds, in order.

    `keys`: the primary key that the event declares, or empty. A row of kind -D may contain only keys. `origin`: the
    event's metadata, by the names of metadata columns. `lacking`: columns whose values the event does not contain, and
    the reason; their values are NULL in the rows, and must not be written. `keyless`: the reason why the key of the
    event cannot be read, or empty: then only routes can say which columns are the key.
    """

    database: str
    table: str
    columns: tuple[SourceColumn, ...]
    keys: tuple[str, ...]
    rows: tuple[tuple[str, dict[str, Any]], ...]
    origin: Mapping[str, Any] = {}
    lacking: Mapping[str, str] = {}
    keyless: str = ""


class InvalidEvent(msgspec.Struct, frozen=True, gc=False):
    """An event that cannot be applied, and the reason; it becomes a dead letter."""

    reason: str


class NoChange(msgspec.Struct, frozen=True, gc=False):
    """An event that changes no row of a selected table, such as a tombstone or a heartbeat; it is counted."""

    reason: str


Decoded = Union[Change, InvalidEvent, NoChange]


def events_of(data: object) -> Iterator[Event]:
    """Convert any source of events to events.

    Args:
        data: events; strings, bytes or None as values; an Arrow array of them; or an Arrow table, batch or reader with
            a column `value` and optionally `key`, `topic`, `partition`, `offset`, `timestamp`, as from Spark's Kafka
            source: its rows are ordered by topic, partition and offset.
    Raises: UsageError for other types.
    """
    if isinstance(data, pa.RecordBatchReader):
        data = data.read_all()
    if isinstance(data, (pa.Table, pa.RecordBatch)):
        yield from _of_table(data)
        return
    if isinstance(data, (pa.Array, pa.ChunkedArray)):
        data = data.to_pylist()
    if isinstance(data, (str, bytes)) or not isinstance(data, Iterable):
        given = type(data).__name__
        raise UsageError(f"events are a list of events, strings or bytes, or an Arrow column of them, not {given}")
    for number, item in enumerate(data):
        yield item if isinstance(item, Event) else Event(value=_bytes(item), position=str(number))


def of_lines(lines: Iterable[str]) -> Iterator[Event]:
    """Parse lines `topic TAB key TAB value`, where `null` stands for a missing key or value; positions are lines."""
    for number, line in enumerate(lines):
        topic, _, rest = line.rstrip("\r\n").partition("\t")
        key, _, value = rest.partition("\t")
        yield Event(topic=topic, position=str(number), key=_present(key), value=_present(value))


_COLUMNS = ("value", "key", "topic", "partition", "offset", "timestamp")


def _present(text: str) -> bytes | None:
    return None if text == "null" else text.encode("utf-8", "surrogatepass")


def _of_table(data: pa.Table | pa.RecordBatch) -> Iterator[Event]:
    names = set(data.schema.names)
    if "value" not in names:
        raise UsageError(f"a table of events has a column 'value', may have {list(_COLUMNS[1:])}, not {sorted(names)}")
    if "offset" in names:
        data = data.sort_by([(name, "ascending") for name in ("topic", "partition", "offset") if name in names])
    return events_of_rows(data)


def events_of_rows(data: pa.Table | pa.RecordBatch) -> Iterator[Event]:
    """The events of a table with a column `value`, in the order of its rows."""
    names = set(data.schema.names)
    nothing = [None] * data.num_rows
    columns = [_values(data.column(name)) if name in names else nothing for name in _COLUMNS]
    for number, (value, key, topic, partition, offset, timestamp) in enumerate(zip(*columns, strict=True)):
        position = str(number) if offset is None else f"{'' if partition is None else partition}:{offset}"
        yield Event(_bytes(value), _bytes(key), str(topic or ""), position, partition, offset, timestamp)


def _values(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
    found: list[Any] = column.to_pylist()
    return found


def _bytes(value: object) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    raise UsageError(f"an event is a string, bytes or None, not {type(value).__name__}")
