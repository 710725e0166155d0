"""Reads changes of a table whose keys move between partitions: of each snapshot first the rows that end a key in its
old bucket, then all others.

A key that moves is deleted in one bucket and added in another, and nothing in the files orders the two. Whoever applies
the changes by key must not delete the row that was just added.

Source: docs/changes.md; Java returns the buckets in any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import Mask, from_numpy
from paimon_py.env import SpillPlace
from paimon_py.lsm.order import dense_ranks
from paimon_py.scan.bag_read import DeferredRows, memory_limit
from paimon_py.scan.diff_read import ReadRun
from paimon_py.scan.request import Request
from paimon_py.scan.row_kinds import ROW_KIND_FIELD
from paimon_py.scan.split import Split, may_delete
from paimon_py.spec.schema import DELETE, ROW_KINDS


def read_moving(
    request: Request, snapshots: Sequence[Sequence[Split]], read: ReadRun, place: SpillPlace
) -> Iterator[pa.RecordBatch]:
    """The changes of some snapshots, given as splits of their buckets. `read`: reads the rows of one bucket, in order;
    `place`: where rows wait on local disk.

    Shapes: out — non-empty batches of `request.arrow_schema` and `_row_kind`.
    Cost: keys and kinds of buckets with deletes are read twice; `write-buffer-size`, at most 256 MiB, in memory; the
      rest is written to local disk.
    Raises: as `read_split`, and StorageError if the local disk is full.
    """
    for runs in snapshots:
        if may_delete(runs):
            yield from _ends_first(request, runs, read, place)
        else:
            for run in runs:
                yield from read(request, run)


def _ends_first(
    request: Request, runs: Sequence[Split], read: ReadRun, place: SpillPlace
) -> Iterator[pa.RecordBatch]:
    """The changes of one snapshot: first the rows of keys that end in their bucket."""
    with DeferredRows(place, memory_limit(request.schema)) as held:
        for run in runs:
            for batch, ending in _with_ends(request, run, read):
                first, later = batch.filter(_mask(ending)), batch.filter(_mask(~ending))
                if first.num_rows:
                    yield first
                if later.num_rows:
                    held.add(later)
        yield from held.rows()


def _with_ends(request: Request, run: Split, read: ReadRun) -> Iterator[tuple[pa.RecordBatch, Mask]]:
    """The rows of a bucket, each with whether its key ends in this bucket."""
    ends = _ends(request, run, read) if may_delete([run]) else None
    place = 0
    for batch in read(request, run):
        end = place + batch.num_rows
        yield batch, np.zeros(batch.num_rows, np.bool_) if ends is None else ends[place:end]
        place = end


def _ends(request: Request, run: Split, read: ReadRun) -> Mask:
    """A mask of the rows of a bucket whose key is deleted by its last row."""
    # Example: 1 +I, 1 -D, 2 -D, 2 +I, 3 -D → True, True, False, False, True.
    keys = request.schema.primary_keys
    batches = list(read(msgspec.structs.replace(request, columns=keys), run))
    if not batches:
        return np.zeros(0, np.bool_)
    rows = pa.Table.from_batches(batches)
    ranks = dense_ranks([rows[name] for name in keys])
    deletes = np.asarray(rows[ROW_KIND_FIELD.name].to_numpy() == ROW_KINDS[DELETE])
    last: Mask = np.zeros(int(ranks.max()) + 1, np.bool_)
    last[ranks] = deletes  # of several rows of a key the last one counts
    found: Mask = last[ranks]
    return found


def _mask(values: Mask) -> pa.Array:
    return from_numpy(values, pa.bool_())
