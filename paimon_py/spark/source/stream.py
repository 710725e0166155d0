"""A streaming query next to the driver: answers Spark's calls with offsets, splits and the function that reads them."""

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
from paimon_py.spark.entry import wrap_for_executor
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
            wanted: the columns that Spark expects, in order.
            limited: whether this version of Spark supports limits of a batch.

        Raises:
            SchemaError: the table does not have these columns with these types.
            UsageError: limits are set, but Spark does not support them.
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
        """The offset at which a new query begins."""
        return self._batches.beginning().as_json()

    def latest(self, start: Json | None, everything: bool) -> Json:
        """The end offset of the next batch.

        Args:
            start: the start of the batch, None if Spark does not pass it.
            everything: whether limits are ignored.
        """
        if start is None:
            return self._batches.latest().as_json()
        limits = BatchLimits() if everything else self._limits
        return self._batches.following(_offset(start), limits, self._until).end.as_json()

    def stop_at_what_is_there(self) -> None:
        """End the query with the snapshot that is the latest now."""
        self._until = self._batches.now()

    def parts(self, start: Json, end: Json) -> list[Part]:
        """The parts of a batch for tasks: the function that reads, and its splits."""
        splits = self._batches.between(_offset(start), _offset(end))
        read = wrap_for_executor(self._read)
        return [(read, share) for share in shares_of_source(splits)]

    def on_done(self, end: Json) -> None:
        """Record in the consumer that a batch is done."""
        self._batches.acknowledge(_offset(end))


def _offset(value: Json) -> Offset:
    return Offset.of(value, NEW_CHECKPOINT)


class ReadChanges:
    """Runs on an executor: reads the splits of a task, with row kinds if requested."""

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
    """The rows with their current values, without their kinds.

    Raises: UsageError for a deletion, which would be lost without its kind.
    """
    kinds = batch.column(ROW_KIND_COLUMN).cast(pa.string())
    if pc.any(pc.equal(kinds, "-D")).as_py():
        raise UsageError(
            f"rows were deleted, which cannot be shown without row kinds: set {KINDS}=true for a column "
            f"{ROW_KIND_COLUMN!r}, or {CHANGELOG}=true for a first column 'rowkind'"
        )
    old = pc.equal(kinds, "-U")
    return batch.filter(pc.invert(old)) if pc.any(old).as_py() else batch
