"""Reads splits of chain tables, whose rows are merged from several partitions and branches.

Source: Java `MergeFileSplitRead.createChainReader`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.codec.binary_row import decode_one
from paimon_py.files.meter import Meter
from paimon_py.files.physical import KIND_FIELD
from paimon_py.lsm.engines import unlooked_engine_of
from paimon_py.lsm.merge import RunSource, merge
from paimon_py.lsm.order import merge_order
from paimon_py.lsm.runs import SortedRun, oldest_first
from paimon_py.metadata.root import TableRoot
from paimon_py.scan.branches_scan import in_types
from paimon_py.scan.chain_plan import keys_within_partitions
from paimon_py.scan.request import RAW_BATCH_ROWS, Request, keep
from paimon_py.scan.split import Split
from paimon_py.scan.split_reader import PartReader, merge_fields
from paimon_py.scan.windows import read_plan
from paimon_py.spec.types import Field


class BranchRows(NamedTuple):
    """A branch, and the request to its rows."""

    root: TableRoot
    request: Request

    @property
    def by_key(self) -> Request:
        """The request to files of other partitions: only conditions on keys apply to their rows."""
        return msgspec.structs.replace(self.request, predicate=keys_within_partitions(self.request))


def read_chained(
    split: Split, merged: BranchRows, branches: Mapping[str, BranchRows], meter: Meter | None = None
) -> Iterator[pa.RecordBatch]:
    """The matching rows of a split, section by section. `merged`: the branch whose options say how rows are merged.

    Shapes: out — batches with at least the requested columns, in the types of `merged`.
    Cost: one merge window in memory, plus the open files.
    Raises: as `read_split`
    """
    partition_fields = merged.request.schema.partition_fields
    columns = decode_one(split.partition, [field.type for field in partition_fields])
    values = {field.name: column[0] for field, column in zip(partition_fields, columns, strict=True)}
    for parts in split.chained:
        for batch in _section(parts, merged, branches, values, meter):
            if meter is not None:
                meter.rows_merged += batch.num_rows
            yield keep(batch, merged.request.mask)


def _section(
    parts: Sequence[Split], merged: BranchRows, branches: Mapping[str, BranchRows], values: Mapping[str, pa.Scalar],
    meter: Meter | None,
) -> Iterator[pa.RecordBatch]:  # fmt: skip
    """The merged rows. Runs are in the order of the chain, which decides between rows that are otherwise as new."""
    request = merged.request
    order, engine = merge_order(request.schema), unlooked_engine_of(request.schema)
    runs_of = [oldest_first(map(SortedRun, part.sections[0].runs)) for part in parts]
    runs = [run for own in runs_of for run in own]
    fields = merge_fields(request.schema, request.read_fields, runs, order, engine)
    deletes = any(run.may_delete for run in runs) or any(part.deletions for part in parts)
    fields = fields if KIND_FIELD in fields or not deletes else (*fields, KIND_FIELD)
    readers = [PartReader(branches[part.branch].root, branches[part.branch].by_key, part, meter) for part in parts]
    sources = [
        _source(reader, branches[part.branch], run, fields, values)
        for part, reader, own in zip(parts, readers, runs_of, strict=True)
        for run in own
    ]
    if len(runs) == 1 and not deletes:
        yield from sources[0].open(RAW_BATCH_ROWS)
        return
    names = tuple(field.name for field in request.read_fields) or (order.keys[0].name,)
    yield from merge(sources, read_plan(
        order, engine, names, drop_deletes=True, memory=merged.root.env.memory, first_rows=request.first_rows
    ))  # fmt: skip


def _source(
    reader: PartReader, branch: BranchRows, run: SortedRun, fields: Sequence[Field], values: Mapping[str, pa.Scalar]
) -> RunSource:
    """A run of one part; partition keys get the values of the partition that is returned."""
    own = {field.name: field for field in branch.request.schema.fields}
    stored = tuple(own.get(field.name, field) for field in fields if field.name not in values)
    schema = to_arrow_schema(fields)
    mask = branch.by_key.key_mask

    def batches(batch_rows: int) -> Iterator[pa.RecordBatch]:
        for batch in reader.run(stored, run.files, batch_rows):
            rows = keep(batch, mask)
            columns = [
                pa.repeat(values[field.name], rows.num_rows) if field.name in values else rows.column(field.name)
                for field in fields
            ]
            yield in_types(pa.RecordBatch.from_arrays(columns, names=schema.names), schema)

    row_bytes = max(16, 3 * run.size_bytes * len(fields) // max(1, run.row_count * len(own)))
    return RunSource(run.files[0].name, run.row_count, row_bytes + 8 * len(fields), batches)
