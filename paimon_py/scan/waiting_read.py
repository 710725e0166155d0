"""Reads partitions of postponed tables together with the rows that wait for their bucket.

Source: format.md §28.7; Java `PostponeMergeRead`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.codec.columns import numpy_values
from paimon_py.files.meter import Meter
from paimon_py.files.physical import KIND_FIELD, SEQUENCE_FIELD
from paimon_py.lsm.buffer import MergeBuffer
from paimon_py.lsm.engines import engine_of, unlooked_engine_of
from paimon_py.lsm.merge import RunSource, merge
from paimon_py.lsm.order import merge_order
from paimon_py.lsm.runs import SortedRun
from paimon_py.lsm.spill import SpilledRuns, SpillSettings
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.scan.request import Request, keep
from paimon_py.scan.split import Split
from paimon_py.scan.split_reader import PartReader, merge_fields
from paimon_py.scan.windows import read_plan
from paimon_py.spec.options import Options
from paimon_py.spec.schema import VALUE_KIND
from paimon_py.spec.types import Field

_MEMORY_MAX = 256 << 20
"""Waiting rows beyond this size go to local disk, whatever the table's `write-buffer-size`."""


def read_with_waiting(
    root: TableRoot, request: Request, by_key: Request, split: Split, meter: Meter | None = None
) -> Iterator[pa.RecordBatch]:
    """The matching rows of a partition, as they will be when the waiting rows are in their buckets.

    All runs of all buckets are merged at once with the waiting rows, which are newer: a key has one bucket.

    Args:
        by_key: the request to the files: only conditions on keys apply before the merge.
        split: its last part contains the waiting files, oldest first.

    Shapes: out — batches with at least the requested columns.
    Cost: the waiting rows in memory, up to `write-buffer-size` and 256 MiB, then sorted on local disk; a merge window
        of all runs.
    Raises: as `read_split`
    """
    ((*parts, waiting),) = split.chained
    schema = request.schema
    order, engine = merge_order(schema), unlooked_engine_of(schema)
    runs = [SortedRun(run) for part in parts for run in part.sections[0].runs]
    wanted = merge_fields(schema, request.read_fields, runs, order, engine)
    fields = tuple(dict.fromkeys((*wanted, SEQUENCE_FIELD, KIND_FIELD)))
    sources = [_rows_of_run(root, by_key, part, SortedRun(run), fields, meter) for part in parts
               for run in part.sections[0].runs]  # fmt: skip
    first = 1 + max((file.max_sequence for part in parts for file in part.files), default=-1)
    sources.append(_waiting_rows(root, by_key, waiting, fields, first))
    names = tuple(field.name for field in request.read_fields) or (order.keys[0].name,)
    plan = read_plan(
        order, engine, names, drop_deletes=True, memory=root.env.memory, first_rows=request.first_rows
    )
    for batch in merge(sources, plan):
        if meter is not None:
            meter.rows_merged += batch.num_rows
        yield keep(batch, request.mask)


def _rows_of_run(
    root: TableRoot, request: Request, part: Split, run: SortedRun, fields: Sequence[Field], meter: Meter | None
) -> RunSource:
    """A run of one bucket."""
    reader = PartReader(root, request, part, meter, shows_dead=False)

    def batches(batch_rows: int) -> Iterator[pa.RecordBatch]:
        return (keep(batch, request.key_mask) for batch in reader.run(fields, run.files, batch_rows))

    row_bytes = _row_bytes(run.size_bytes, run.row_count, fields, request)
    return RunSource(run.files[0].name, run.row_count, row_bytes, batches)


def _waiting_rows(
    root: TableRoot, request: Request, part: Split, fields: Sequence[Field], first_sequence: int
) -> RunSource:
    """The waiting rows as one run: each key once, merged as a writer merges them."""
    schema, files = request.schema, part.files
    own = tuple(field for field in fields if field not in (SEQUENCE_FIELD, KIND_FIELD))
    shown = to_arrow_schema(fields)
    options = Options(schema.options)
    limit = max(1, min(options.get_memory("write-buffer-size"), _MEMORY_MAX))
    settings = SpillSettings.of(options)
    settings = msgspec.structs.replace(
        settings, run_bytes=min(settings.run_bytes, max(1, limit // 4)), max_bytes=SpillSettings().max_bytes
    )
    bucket = OpenTable(root, schema).bucket(part.partition, part.bucket)

    def batches(batch_rows: int) -> Iterator[pa.RecordBatch]:
        spilled = SpilledRuns(root.env.spill, settings)
        buffer = MergeBuffer(merge_order(schema), engine_of(schema), first_sequence, spilled)
        try:
            for file in files:
                for batch in bucket.stored_rows(file, (KIND_FIELD, *own)):
                    rows = keep(batch, request.key_mask)
                    kinds = rows.column(VALUE_KIND)
                    buffer.add(rows.drop_columns([VALUE_KIND]), kinds if numpy_values(kinds).any() else None)
                    if buffer.size_bytes > limit:
                        buffer.spill()
            for batch in buffer.drain():
                rows = pa.RecordBatch.from_arrays([batch.column(name) for name in shown.names], schema=shown)
                for start in range(0, rows.num_rows, batch_rows):
                    yield rows.slice(start, batch_rows)
        finally:
            buffer.clear()

    size, count = sum(file.size_bytes for file in files), sum(file.row_count for file in files)
    return RunSource("waiting rows", count, _row_bytes(size, count, fields, request), batches)


def _row_bytes(size_bytes: int, row_count: int, fields: Sequence[Field], request: Request) -> int:
    return max(16, 3 * size_bytes * len(fields) // max(1, row_count * len(request.schema.fields))) + 8 * len(fields)
