"""A streaming query beside the driver: Spark's calls → offsets, splits and what reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as st

from paimon_py.distributed import ROW_KIND_COLUMN, BatchLimits, Offset, Reading
from paimon_py.errors import UsageError
from paimon_py.spark.convert import fit
from paimon_py.spark.entry import travelling
from paimon_py.spark.source.limits import LIMITS, limits_of
from paimon_py.spark.source.opening import NEW_CHECKPOINT, batches_of
from paimon_py.spark.source.options import CHANGELOG, KINDS, STREAMS, TRUNCATE, asked_of
from paimon_py.spark.source.read import projection
from paimon_py.spark.split_groups import shares_of_source
from paimon_py.spark.types import arrow_schema

Json = dict[str, Any]
Part = tuple[Callable[[Sequence[bytes]], Iterator[pa.RecordBatch]], list[bytes]]


class Query:
    """One streaming query, for as long as its process lives."""

    def __init__(self, options: Mapping[str, str], wanted: st.StructType, limited: bool) -> None:
        """Open the table.

        Args:
            wanted: the columns that Spark takes, in order.
            limited: whether this Spark can limit a batch.

        Raises:
            SchemaError: the table has not these columns with these types.
            UsageError: limits where Spark has none.
        """
        asked = asked_of(options).only_for(STREAMS)
        self._limits = limits_of(asked.own)
        if not limited and self.has_limits:
            given = ", ".join(name for name in LIMITS if name in asked.own)
            raise UsageError(f"{given}: sources in Python can limit a batch from Spark 4.2 on")
        self._batches = batches_of(asked)
        names = projection(self._batches.reading.schema, wanted)
        columns = [name for name in names if name != ROW_KIND_COLUMN]
        self._batches.columns = columns or None
        self._read = ReadChanges(self._batches.reading, wanted, asked.flag(TRUNCATE))
        self._until: int | None = None

    @property
    def has_limits(self) -> bool:
        """Whether options limit a batch."""
        return self._limits != BatchLimits()

    def initial(self) -> Json:
        """Where a new query begins."""
        return self._batches.beginning().as_json()

    def latest(self, start: Json | None, everything: bool) -> Json:
        """How far the next batch goes.

        Args:
            start: where the batch begins, None where Spark does not say.
            everything: whether limits do not count.
        """
        if start is None:
            return self._batches.latest().as_json()
        limits = BatchLimits() if everything else self._limits
        return self._batches.following(_offset(start), limits, self._until).end.as_json()

    def stop_at_what_is_there(self) -> None:
        """Let the query end with the snapshot that is the latest now."""
        self._until = self._batches.now()

    def parts(self, start: Json, end: Json) -> list[Part]:
        """What tasks read of a batch: the function that reads, and the splits that it takes."""
        splits = self._batches.between(_offset(start), _offset(end))
        read = travelling(self._read)
        return [(read, list(map(bytes, share))) for share in shares_of_source(splits)]

    def on_done(self, end: Json) -> None:
        """Note for the consumer that a batch is done."""
        self._batches.acknowledge(_offset(end))


def _offset(value: Json) -> Offset:
    return Offset.of(value, NEW_CHECKPOINT)


class ReadChanges:
    """Runs on an executor: the splits of a task in, their rows out, with their kinds where those are wanted."""

    def __init__(self, reading: Reading, wanted: st.StructType, truncate_nanos: bool) -> None:
        self.reading = reading
        self.target = arrow_schema(wanted)
        self.truncate_nanos = truncate_nanos

    def __call__(self, splits: Sequence[bytes]) -> Iterator[pa.RecordBatch]:
        names = self.target.names
        drops = ROW_KIND_COLUMN in self.reading.schema.names and ROW_KIND_COLUMN not in names
        for batch in chain.from_iterable(map(self.reading.batches, splits)):
            rows = _without_kinds(batch) if drops else batch
            yield from fit(rows.select(names), self.target, self.truncate_nanos)


def _without_kinds(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows that say what is there now.

    Raises: UsageError for a deletion, which nobody would see.
    """
    kinds = batch.column(ROW_KIND_COLUMN).cast(pa.string())
    if pc.any(pc.equal(kinds, "-D")).as_py():
        raise UsageError(
            f"rows were deleted, which cannot be told without their kinds: set {KINDS}=true for a column "
            f"{ROW_KIND_COLUMN!r}, or {CHANGELOG}=true for a first column 'rowkind'"
        )
    old = pc.equal(kinds, "-U")
    return batch.filter(pc.invert(old)) if pc.any(old).as_py() else batch
