"""Rows of postponed buckets: written to separate files, unsorted and unmerged, until a compaction publishes them.

Source: format.md §7.3; Java `PostponeBucketFileStoreWrite`, `PostponeBucketWriter`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_field
from paimon_py.codec.columns import from_numpy, numpy_values
from paimon_py.errors import UnsupportedError
from paimon_py.files.layout import FileLayout, file_layout
from paimon_py.files.physical import KIND_FIELD, SEQUENCE_FIELD
from paimon_py.files.stats import StatsMode
from paimon_py.files.writer import RollingWriter
from paimon_py.formats.avro.schema import record_schema
from paimon_py.lsm.buffer import MergeBuffer
from paimon_py.lsm.engines import engine_of
from paimon_py.lsm.order import merge_order
from paimon_py.metadata.new_files import FileRules, NewFiles
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.layout import POSTPONE_BUCKET
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.write.append import AppendWriter
from paimon_py.write.bucket_writer import OpenBucket
from paimon_py.write.route import Router
from paimon_py.write.routing import Routing
from paimon_py.write.settings import WriterSettings

_UNKNOWN_SEQUENCE = -1


class PostponedBuckets(Routing):
    """One postponed bucket per partition, until a compaction assigns the rows to buckets."""

    total_buckets = POSTPONE_BUCKET
    follows = compacts = False

    def __init__(self, schema: TableSchema) -> None:
        self.route = Router(schema, only=POSTPONE_BUCKET).route

    def writers(self, table: OpenTable, settings: WriterSettings) -> OpenBucket:  # noqa: ARG002
        """Opens the writers of partitions; file names distinguish the writers."""
        schema, layout, ids = table.schema, waiting_layout(table.schema), table.root.env.ids
        prefix = table.options.get_str("data-file.prefix")
        prefix = f"{prefix}-u-{ids.uuid()}-s-{int(ids.jitter() * 0x7FFF_FFFF)}-w-"
        rules = FileRules.of(table, prefix=prefix)

        def open_bucket(partition: bytes, bucket: int, _: int) -> PostponedWriter:
            files = NewFiles(table.bucket(partition, bucket), rules)
            return PostponedWriter(partition, schema, partial(files.begin, layout))

        return open_bucket


def waiting_layout(schema: TableSchema) -> FileLayout:
    """The layout of postponed files: Avro without statistics if Avro supports the types, else the table's layout."""
    if _fits_avro(schema):
        layout = file_layout(schema, format_name="avro", stats_mode="none")
    else:
        layout = file_layout(schema)
        if Options(schema.options).get_str("metadata.stats-mode") != "none":
            return layout
    return msgspec.structs.replace(layout, key_mode=StatsMode("none"))


class PostponedWriter(AppendWriter):
    """Writes the rows of one partition to files, in order; each row keeps its kind."""

    def __init__(self, partition: bytes, schema: TableSchema, open_files: Callable[[int], RollingWriter]) -> None:
        super().__init__(partition, POSTPONE_BUCKET, 0, open_files)
        self._schema = schema
        self._may_retract = False

    def write(self, batch: pa.RecordBatch, kinds: pa.Array | None = None) -> None:
        """Add rows of the table's schema; `kinds` is int8, None if all are +I.

        Raises: UsageError for a kind that the merge engine does not accept.
        """
        if kinds is not None and not self._may_retract:
            self._check_retract(batch, kinds)
        count = batch.num_rows
        numbers = from_numpy(np.full(count, _UNKNOWN_SEQUENCE, np.int64), pa.int64())
        given = from_numpy(np.zeros(count, np.int8), pa.int8()) if kinds is None else kinds
        schema = pa.schema([to_arrow_field(SEQUENCE_FIELD), to_arrow_field(KIND_FIELD), *batch.schema])
        super().write(pa.RecordBatch.from_arrays([numbers, given, *batch.columns], schema=schema))

    def _check_retract(self, batch: pa.RecordBatch, kinds: pa.Array) -> None:
        """Merge a row and its retraction as a test, so that no compaction fails on a kind that it cannot merge."""
        removals = np.flatnonzero(numpy_values(kinds) & 1)
        if not len(removals):
            return
        at = int(removals[0])
        buffer = MergeBuffer(merge_order(self._schema), engine_of(self._schema), 0, None)
        buffer.add(batch.slice(at, 1), from_numpy(np.zeros(1, np.int8), pa.int8()))
        buffer.add(batch.slice(at, 1), kinds.slice(at, 1))
        for _ in buffer.drain():
            pass
        self._may_retract = True


def _fits_avro(schema: TableSchema) -> bool:
    try:
        record_schema(schema.fields)
    except UnsupportedError:
        return False
    return True
