"""Scans of postponed tables that include the rows that wait for their bucket (`postpone.merge-on-read`).

A partition with waiting rows is one split: its buckets, merged with the waiting rows. All others are read as usual.

Source: format.md §28.7; Java `PostponeMergeReadBuilder`, which its engines use, release 2.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.manifest.columns import EntryColumns
from paimon_py.codec.partition_choice import PartitionChoice
from paimon_py.errors import UnsupportedError
from paimon_py.expr.prune import Bounds
from paimon_py.expr.split import split_conjuncts
from paimon_py.metadata.entry_filter import EntryFilter
from paimon_py.metadata.postponed_order import oldest_first
from paimon_py.scan import prune_entries as prune
from paimon_py.scan.measure import ScanMeter
from paimon_py.scan.plan import data_files
from paimon_py.scan.plan_snapshot import Ordered, Planned, SnapshotPlanner
from paimon_py.scan.read import estimate_split
from paimon_py.scan.read_estimate import ReadEstimate
from paimon_py.scan.request import Request, asked_bucket
from paimon_py.scan.scan import Scan
from paimon_py.scan.split import Section, Split
from paimon_py.scan.time_travel import FoundState, Travel
from paimon_py.scan.waiting_read import read_with_waiting
from paimon_py.spec.blobs import mentions_blobs
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.layout import POSTPONE_BUCKET
from paimon_py.spec.postponed import MERGES_WAITING
from paimon_py.spec.snapshot import Snapshot

if TYPE_CHECKING:
    from paimon_py.scan.top_n import TopN

def waiting_scan(found: Scan, beside: str | None) -> Scan:
    """The scan with waiting rows; `found`: the one without. `beside`: the option that names another branch to read.

    Scans of changes, and of the state of the last compaction, have no waiting rows, as in Java.

    Raises: UnsupportedError for scans of several branches, of single buckets, and of BLOBs.
    """
    if found.reads_changes:
        return found
    extent = found._extent
    assert isinstance(extent, Travel)
    if extent.compacted:
        return found
    if beside is not None:
        raise _refusal(f"several branches ({beside})")
    if asked_bucket(found._table_schema) is not None:
        raise _refusal("single buckets (scan.bucket)")
    if any(mentions_blobs(field.type) for field in found._table_schema.fields):
        raise _refusal("BLOBs")
    return WaitingScan(found)


class WaitingScan(Scan):
    """A scan whose rows are those of the buckets, merged with the rows that wait for their bucket."""

    _takes_shares = False

    def __init__(self, found: Scan) -> None:
        self.__dict__.update(found.__dict__)

    # -- planning -----------------------------------------------------------------------------------------------------

    def _plan_lazily(self) -> Iterator[Split]:
        yield from self._whole_plan.splits

    def _plan(self) -> Planned:
        state, request = self._state, self._table_request
        if not isinstance(state, FoundState) or state.snapshot is None:
            return super()._plan()
        if request.files is not None:
            raise _refusal("files chosen by their time")
        waiting = _waiting_files(self, request, state.snapshot)
        if not waiting:
            return super()._plan()
        planner = SnapshotPlanner(self._root, request, state.snapshot, pa.array(list(waiting), pa.binary()))
        planned = planner.plan()
        others = [partition for partition in planner.partitions().to_pylist() if partition not in waiting]
        beside = SnapshotPlanner(self._root, _by_key(request), state.snapshot, pa.array(others, pa.binary()))
        parts: dict[bytes, list[Split]] = {}
        for split in beside.plan().splits:
            parts.setdefault(split.partition, []).extend(split.only([section]) for section in split.sections)
        merged = [
            msgspec.structs.replace(last, sections=(), chained=((*parts.get(partition, ()), last),))
            for partition, last in waiting.items()
        ]
        skipped = msgspec.structs.replace(planned.skipped, uncompacted=planned.skipped.uncompacted - _count(waiting))
        return Planned((*planned.splits, *merged), planned.pushed, skipped)

    def _collect(self, first: TopN, meter: ScanMeter | None) -> None:
        plan, request = self._whole_plan, self._ordered_request
        nothing = pa.nulls(0, request.arrow_schema.field(self._order[0].field.name).type)
        files: tuple[tuple[int, ...], ...] = tuple(() for _ in plan.splits)
        ordered = Ordered(plan, Bounds(min=nothing, max=nothing), pa.nulls(0, pa.int64()), files)
        first.collect(ordered, lambda split, _: self._read_in_order(split, meter))

    def _read_in_order(self, split: Split, meter: ScanMeter | None) -> Iterator[pa.RecordBatch]:
        if split.chained:
            return self._merge(split, self._ordered_request, meter)
        return self._read_ordered(split, None, meter)

    # -- reading ------------------------------------------------------------------------------------------------------

    def _require_own(self, split: Split) -> None:
        super()._require_own(msgspec.structs.replace(split, chained=()))

    def _count(self, split: Split, most: int | None) -> int:
        if not split.chained:
            return super()._count(split, most)
        total = 0
        for batch in self._merge(split, self._table_request.counting):
            total += batch.num_rows
            if most is not None and total >= most:
                break
        return total

    def _estimate(self, split: Split) -> ReadEstimate:
        if not split.chained:
            return super()._estimate(split)
        each = [estimate_split(self._root, _by_key(self._table_request), part) for part in split.runs[:-1]]
        return ReadEstimate(
            sum(one.index_files for one in each), sum(one.index_rows for one in each),
            tuple(part for one in each for part in one.parts),
        )  # fmt: skip

    def _read(self, split: Split, meter: ScanMeter | None = None) -> Iterator[pa.RecordBatch]:
        if split.chained:
            return self._view.show(self._request, self._merge(split, self._table_request, meter))
        return super()._read(split, meter)

    def _parcel(self, splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
        if any(split.chained for split in splits):
            return self._one_by_one(splits)
        return super()._parcel(splits)

    def _merge(self, split: Split, request: Request, meter: ScanMeter | None = None) -> Iterator[pa.RecordBatch]:
        schema = request.arrow_schema
        for batch in read_with_waiting(self._root, request, _by_key(request), split, meter):
            if batch.num_rows:
                picked = batch.select(list(request.columns))
                yield pa.RecordBatch.from_arrays(picked.columns, schema=schema) if picked.num_columns else picked


def _waiting_files(scan: Scan, request: Request, snapshot: Snapshot) -> dict[bytes, Split]:
    """The waiting files of each partition that may match, as a split with a run for each file, oldest first."""
    chosen: Callable[[pa.Array], np.ndarray] | None = None
    by_partition = None
    if request.predicate is not None:
        by_partition = split_conjuncts(request.predicate, request.schema.partition_keys)[0]
    if by_partition is not None:
        chosen = PartitionChoice.where(request.schema, by_partition)
    live = scan._root.manifests.live_entries(
        snapshot, EntryFilter(partitions=chosen, buckets=frozenset({POSTPONE_BUCKET}))
    )
    prune.check_entries(live, request.schema, scan._root.schemas.get)
    ordered: EntryColumns = oldest_first(scan._root, snapshot, live)
    runs: dict[bytes, list[tuple[DataFile]]] = {}
    for partition, file in zip(ordered.partitions().to_pylist(), data_files(ordered), strict=True):
        runs.setdefault(partition, []).append((file,))
    return {
        partition: Split(
            snapshot_id=snapshot.id, schema_id=request.schema.id, partition=partition, bucket=POSTPONE_BUCKET,
            total_buckets=POSTPONE_BUCKET, sections=(Section(runs=tuple(files), raw=False),), branch=scan._root.branch,
        )
        for partition, files in runs.items()
    }  # fmt: skip


def _count(waiting: dict[bytes, Split]) -> int:
    return sum(len(split.files) for split in waiting.values())


def _by_key(request: Request) -> Request:
    """The request to files whose rows are merged with others: only conditions on keys apply to them."""
    if request.predicate is None:
        return request
    names = request.schema.primary_keys
    return msgspec.structs.replace(request, predicate=split_conjuncts(request.predicate, names)[0])


def _refusal(what: str) -> UnsupportedError:
    return UnsupportedError(
        f"paimon_py cannot read {what} together with rows that wait for their bucket ('{MERGES_WAITING}' = 'true'):"
        f" set it to 'false' for this scan, scan(options={{'{MERGES_WAITING}': 'false'}})", feature=MERGES_WAITING,
    )  # fmt: skip
