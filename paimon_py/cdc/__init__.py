"""Converts database change events to Arrow batches with row kinds and to schema changes, without Spark.

`Sink` writes events to a catalog; `debezium.decode`, `canal.decode` and `maxwell.decode` are pure decoders; `rows_of`
converts changes to Arrow.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from paimon_py.cdc.avro import avro_decoder, registry
from paimon_py.cdc.computed import Computed
from paimon_py.cdc.event import Change, Event, InvalidEvent, NoChange, SourceColumn, events_of, of_lines
from paimon_py.cdc.event_shares import DecodePart, EventShares, WriteEventsPart
from paimon_py.cdc.evolve import changes_for
from paimon_py.cdc.routes import Routes
from paimon_py.cdc.rows import ChangedRows, rows_of
from paimon_py.cdc.sink import Sink, SinkResult

if TYPE_CHECKING:
    from paimon_py.spark.events import SparkEvents

__all__ = [
    "Change",
    "ChangedRows",
    "Computed",
    "DecodePart",
    "Event",
    "EventShares",
    "InvalidEvent",
    "NoChange",
    "Routes",
    "Sink",
    "SinkResult",
    "SourceColumn",
    "SparkEvents",
    "WriteEventsPart",
    "avro_decoder",
    "changes_for",
    "events_of",
    "of_lines",
    "registry",
    "rows_of",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "SparkEvents":
        return importlib.import_module("paimon_py.spark").events_class()
    raise AttributeError(f"module 'paimon_py.cdc' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "canal", "debezium", "maxwell", *(name for name in globals() if name.startswith("__"))])
