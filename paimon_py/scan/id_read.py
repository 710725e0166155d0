"""Reads the difference of two states of a table with row tracking: deleted, added and changed rows, by their ids.

Both states are read once; of files that both have, only rows that died in between. Rows are partitioned by their ids
until each part fits in memory; the others are kept on local disk. BLOBs are compared as references, so that bytes of
unchanged rows are not read.

Source: docs/changes.md; Java has no such reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import Ints, Mask, Words, from_numpy, numpy_values
from paimon_py.errors import CorruptionError
from paimon_py.expr.references import columns_of
from paimon_py.lsm.same_values import same_values
from paimon_py.lsm.sort_encoding import combine_chunks
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.scan.bag_read import BATCH_ROWS, HASH, STATE, DeferredRows, HashParts, mark_rows, memory_limit
from paimon_py.scan.blob_values import BlobValues
from paimon_py.scan.dead_since import state_runs
from paimon_py.scan.diff_read import ReadRun
from paimon_py.scan.request import Request, ids_only, keep
from paimon_py.scan.row_kinds import ROW_KIND_FIELD, texts_of
from paimon_py.scan.same_blobs import SameBlobs
from paimon_py.scan.split import Compared
from paimon_py.spec.blobs import AS_DESCRIPTOR, mentions_blobs
from paimon_py.spec.schema import DELETE, INSERT, ROW_ID, UPDATE_AFTER, UPDATE_BEFORE

_MIX = np.uint64(0x9E3779B97F4A7C15)
"""An odd number whose multiples distribute consecutive ids over the leading bits."""


def read_id_difference(
    root: TableRoot, request: Request, compared: Compared, read: ReadRun
) -> Iterator[pa.RecordBatch]:
    """Deleted rows (−D) and old values of changed rows (−U), then added rows (+I) and new values (+U). `read`: reads
    the rows of one run.

    Shapes: out — non-empty batches of `request.arrow_schema` and `_row_kind`.
    Cost: `write-buffer-size`, at most 256 MiB, in memory, and as much for new rows; the rest is written to local disk
      and read again, once per factor of 32.
    Raises: as `read_split`, and StorageError if the local disk is full.
    """
    asked = _state_request(request, compared)
    runs = state_runs(root, asked, compared)
    rows = chain.from_iterable(mark_rows(read(request, run), state, _numbers) for state, request, run in runs)
    wanted = frozenset(compared.identified or ()) & set(asked.columns)
    blobs = SameBlobs.of(OpenTable(root, asked.schema))
    place, limit = root.env.spill, memory_limit(request.schema)

    def compare(batches: Sequence[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, Ints]]:
        yield from _difference(batches, wanted, blobs)

    states = sorted({run.snapshot_id for run in (*compared.before, *compared.after)})
    shown = _Shown(root, request, states)
    with DeferredRows(place, limit) as held:
        for found, kinds in HashParts(place, limit, compare).differences(rows):
            batch = found.drop_columns([STATE.name, HASH.name]).append_column(ROW_KIND_FIELD, texts_of(kinds))
            if kinds[0] in (DELETE, UPDATE_BEFORE):
                yield from shown.batches(batch)
            else:
                held.add(batch)
        for batch in held.rows():
            yield from shown.batches(batch)


def _state_request(request: Request, compared: Compared) -> Request:
    """The request to each state: the columns to compare and to return, BLOBs as references."""
    asked = ids_only(request)
    schema = asked.schema
    names = {*(compared.identified or ()), *request.columns, ROW_ID}
    names |= set() if request.predicate is None else columns_of(request.predicate)
    columns = tuple(name for name in schema.names if name in names)
    if any(mentions_blobs(schema.field(name).type) for name in columns):
        schema = msgspec.structs.replace(schema, options={**schema.options, AS_DESCRIPTOR: "true"})
    return msgspec.structs.replace(asked, schema=schema, columns=columns)


def _numbers(batch: pa.RecordBatch) -> Words:
    """A number for each row id, which distributes consecutive ids."""
    ids = numpy_values(batch.column(ROW_ID)).astype(np.uint64)
    with np.errstate(over="ignore"):
        numbers: Words = ids * _MIX
    return numbers


def _difference(
    batches: Sequence[pa.RecordBatch], wanted: frozenset[str], blobs: SameBlobs | None
) -> Iterator[tuple[pa.RecordBatch, Ints]]:
    """The difference of rows that fit in memory together: first what is gone, then what is new, both ordered by id.

    `wanted`: the columns to compare.
    """
    # Example: row 1 is a, then a; row 2 is a, then b; row 3 was deleted; row 4 is new.
    #   2 -U a, 3 -D; then 2 +U b, 4 +I.
    rows = pa.Table.from_batches(batches)
    states = numpy_values(combine_chunks(rows[STATE.name]))
    ids = numpy_values(combine_chunks(rows[ROW_ID]))
    order = np.lexsort((states, ids))
    ids, after = ids[order], states[order] == 1
    if ((ids[1:] == ids[:-1]) & (after[1:] == after[:-1])).any():
        raise CorruptionError("two rows of one state have the same row id")
    firsts = np.flatnonzero(ids[1:] == ids[:-1])
    values = {name: combine_chunks(rows[name]) for name in wanted}
    paired: Mask = np.zeros(len(ids), np.bool_)
    paired[firsts] = paired[firsts + 1] = True
    shown = ~paired
    changed = firsts[~_same(values, order[firsts], order[firsts + 1], blobs)]
    shown[changed] = shown[changed + 1] = True
    for side, kinds in ((~after, (UPDATE_BEFORE, DELETE)), (after, (UPDATE_AFTER, INSERT))):
        picked = np.flatnonzero(shown & side)
        for start in range(0, len(picked), BATCH_ROWS):
            some = picked[start : start + BATCH_ROWS]
            found = rows.take(from_numpy(order[some], pa.int64())).combine_chunks().to_batches()[0]
            yield found, np.where(paired[some], *kinds)


def _same(values: Mapping[str, pa.Array], one: Ints, other: Ints, blobs: SameBlobs | None) -> Mask:
    """A mask of the pairs of equal rows; BLOBs are compared last, since their bytes may have to be read."""
    found: Mask = np.ones(len(one), np.bool_)
    last = frozenset[str]() if blobs is None else blobs.names
    for name in sorted(values, key=lambda name: name in last):
        left = np.flatnonzero(found)
        before, after = (values[name].take(from_numpy(side[left], pa.int64())) for side in (one, other))
        found[left] = blobs.same(before, after) if blobs is not None and name in last else same_values(before, after)
    return found


class _Shown:
    """Turns compared rows into those that are returned: the rows that match, with the bytes of BLOBs."""

    def __init__(self, root: TableRoot, request: Request, snapshots: Sequence[int]) -> None:
        self._mask = request.mask
        self._names = [*request.columns, ROW_KIND_FIELD.name]
        self._schema = request.arrow_schema.append(ROW_KIND_FIELD)
        self._references = BlobValues.of(root, request, snapshots, apart=True) if request.returns_blobs else None

    def batches(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The rows to return; none of the batches is empty."""
        found = keep(rows, self._mask)
        if not found.num_rows:
            return
        picked = found.select(self._names)
        filled = [picked] if self._references is None else self._references.fill(picked)
        for batch in filled:
            yield pa.RecordBatch.from_arrays(batch.columns, schema=self._schema)
