"""Scans of chain tables: partitions of this branch, then those of the snapshot branch, then merged ones.

A partition that neither of these branches has is the nearest older partition of the snapshot branch, merged with the
partitions of the delta branch since then.

Source: format.md §28.6; Java `ChainTableFileStoreTable`, `ChainGroupReadTable`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from paimon_py.errors import OptionError, TableNotFoundError, UnsupportedError, UsageError
from paimon_py.expr.prune import Bounds
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.scan.branches_scan import BranchesScan, require_alike, state_at
from paimon_py.scan.chain_plan import CHAIN_TABLE, BranchFiles, chosen_partitions, links_of, plan_links
from paimon_py.scan.chain_read import BranchRows, read_chained
from paimon_py.scan.measure import ScanMeter
from paimon_py.scan.own_options import merge_alike
from paimon_py.scan.plan_snapshot import Ordered, Planned, SnapshotPlanner, packing_of
from paimon_py.scan.read import estimate_split
from paimon_py.scan.read_estimate import ReadEstimate
from paimon_py.scan.request import Request, asked_bucket
from paimon_py.scan.row_shape import PlainRows
from paimon_py.scan.scan import Scan
from paimon_py.scan.split import Split
from paimon_py.scan.time_travel import FoundState, Travel
from paimon_py.spec.blobs import mentions_blobs
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.supported import check_scannable

if TYPE_CHECKING:
    from paimon_py.scan.top_n import TopN

_SNAPSHOT = "scan.fallback-snapshot-branch"
_DELTA = "scan.fallback-delta-branch"


def chain_scan(found: Scan, *, options: Mapping[str, str] | None, **asked: Any) -> Scan:
    """The scan of a chain table. `found`: the scan of this branch alone, `asked`: its arguments.

    A branch that the options name, and a table whose options do not name both, is read alone, as in Java.

    Cost: a list and a get for each branch.
    Raises:
        OptionError: a branch does not exist.
        UnsupportedError: what the scan asks for is not defined for several branches.
        UsageError: branches with different columns.
    """
    root, schema = found._root, found._table_schema
    named = {**schema.options, **(options or {})}
    names = [named.get(option, "") for option in (_SNAPSHOT, _DELTA)]
    if not all(names) or root.branch.lower() in (name.lower() for name in names):
        return found
    _require_plain(found)
    others = []
    for option, name in zip((_SNAPSHOT, _DELTA), names, strict=True):
        branch = root.on_branch(name)
        try:
            other = branch.schemas.latest()
        except TableNotFoundError as error:
            message = f"option {option}: {root.path} has no branch {name!r}"
            raise OptionError(message, option=option, value=name) from error
        check_scannable(other)
        require_alike(OpenTable(root, schema), branch, other)
        others.append(Scan(branch, other, options=options, **asked))
    snapshot, delta = others
    _require_same_merge(root, snapshot._table_schema, delta._table_schema)
    return ChainScan(found, snapshot, delta)


class ChainScan(BranchesScan):
    """A scan of a chain table: of this branch, of the snapshot branch, and of the delta branch.

    Merged partitions are splits of this branch, whose parts belong to the other branches.
    """

    def __init__(self, own: Scan, snapshot: Scan, delta: Scan) -> None:
        self.__dict__.update(own.__dict__)
        self._others = (snapshot, delta)

    @property
    def _other_states(self) -> tuple[Scan, ...]:
        for other in self._others:
            if other._found is None:
                other._found = (state_at(other._root, other._extent, other._table_schema),)
        return self._others

    # -- planning -----------------------------------------------------------------------------------------------------

    def _plan(self) -> Planned:
        snapshot, delta = self._other_states
        splits: list[Split] = []
        pushed, skipped, given = Planned.nothing().pushed, Planned.nothing().skipped, None
        for scan in (self, snapshot):
            planner = Scan._planner(scan, scan._table_request, given)
            if planner is not None:
                planned = planner.plan()
                splits += planned.splits
                pushed, skipped = planned.pushed, skipped.plus(planned.skipped)
                if scan is self:
                    given = planner.partitions()
        return Planned((*splits, *self._merged_splits(snapshot, delta, given)), pushed, skipped)

    def _merged_splits(self, snapshot: Scan, delta: Scan, own: pa.Array | None) -> list[Split]:
        """The splits of partitions of the delta branch alone. `own`: the partitions of this branch."""
        deltas = _files_of(delta)
        if deltas is None:
            return []
        snapshots, request = _files_of(snapshot), self._table_request
        anchors = [] if snapshots is None else snapshots.partitions
        chosen = chosen_partitions(request.schema, request.predicate, deltas.partitions)
        given = frozenset([*anchors, *([] if own is None else own.to_pylist())])
        wanted = [partition for partition in deltas.partitions if partition in chosen and partition not in given]
        links = links_of(snapshot._table_schema, anchors, deltas.partitions, wanted)
        splits = plan_links(links, snapshots, deltas, request, packing_of(request.schema))
        return [msgspec.structs.replace(split, branch=self._root.branch) for split in splits]

    def _collect(self, first: TopN, meter: ScanMeter | None) -> None:
        plan, request = self._whole_plan, self._ordered_request
        nothing = pa.nulls(0, request.arrow_schema.field(self._order[0].field.name).type)
        bounds = Bounds(min=nothing, max=nothing)
        ordered = Ordered(plan, bounds, pa.nulls(0, pa.int64()), tuple(() for _ in plan.splits))
        first.collect(ordered, lambda split, _: self._alike(self._read_in_order(split, meter), request))

    def _read_in_order(self, split: Split, meter: ScanMeter | None) -> Iterator[pa.RecordBatch]:
        """The rows of a split with the columns to order by."""
        if split.chained:
            return self._merge(split, lambda scan: scan._ordered_request, meter)
        scan = self._of(split) or self
        return Scan._read_ordered(scan, split, None, meter)

    # -- reading ------------------------------------------------------------------------------------------------------

    def _require_own(self, split: Split) -> None:
        known = {self._root.branch, *(other._root.branch for other in self._others)}
        strange = {part.branch for part in split.runs} - known
        if strange:
            raise UsageError(f"the split belongs to the branches {sorted(strange)}: read it with the scan that made it")
        super()._require_own(msgspec.structs.replace(split, chained=()))

    def _count(self, split: Split, most: int | None) -> int:
        if not split.chained:
            return super()._count(split, most)
        total = 0
        for batch in self._merge(split, lambda scan: scan._table_request.counting):
            total += batch.num_rows
            if most is not None and total >= most:
                break
        return total

    def _estimate(self, split: Split) -> ReadEstimate:
        if not split.chained:
            return super()._estimate(split)
        branches = self._branches(lambda scan: scan._table_request)
        each = [estimate_split(branches[part.branch].root, branches[part.branch].by_key, part) for part in split.runs]
        return ReadEstimate(
            sum(one.index_files for one in each), sum(one.index_rows for one in each),
            tuple(part for one in each for part in one.parts),
        )  # fmt: skip

    def _read(self, split: Split, meter: ScanMeter | None = None) -> Iterator[pa.RecordBatch]:
        if split.chained:
            return self._alike(self._merge(split, lambda scan: scan._table_request, meter), self._request)
        return super()._read(split, meter)

    def _merge(
        self, split: Split, request_of: Callable[[Scan], Request], meter: ScanMeter | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a merged split, by the rules of the delta branch, as in Java."""
        branches, delta = self._branches(request_of), self._others[1]._root.branch
        names = list(branches[delta].request.columns)
        found = read_chained(split, branches[delta], branches, meter)
        return (batch.select(names) for batch in found if batch.num_rows)

    def _branches(self, request_of: Callable[[Scan], Request]) -> dict[str, BranchRows]:
        return {other._root.branch: BranchRows(other._root, request_of(other)) for other in self._other_states}


def _files_of(scan: Scan) -> BranchFiles | None:
    """The files of a branch; None for an empty branch."""
    state = scan._state
    if not isinstance(state, FoundState) or state.snapshot is None:
        return None
    return BranchFiles(SnapshotPlanner(scan._root, Request(schema=scan._state_schema, columns=()), state.snapshot))


def _require_plain(scan: Scan) -> None:
    """Refuse what has no meaning, or another one in Java, for rows of several branches."""
    if scan.reads_changes:
        raise _refusal("changes")
    if scan._view != PlainRows() or scan._files is not None:
        raise _refusal("system tables")
    extent = scan._extent
    assert isinstance(extent, Travel)
    if extent != Travel(timestamp_millis=extent.timestamp_millis):
        raise _refusal("states other than the latest and those at a time")
    if asked_bucket(scan._table_schema) is not None:
        raise _refusal("single buckets (scan.bucket)")
    if any(mentions_blobs(field.type) for field in scan._table_schema.fields):
        raise _refusal("BLOBs")


def _require_same_merge(root: TableRoot, snapshot: TableSchema, delta: TableSchema) -> None:
    """Refuse branches that merge rows differently: Java reads both by the options of the delta branch."""
    if not merge_alike(snapshot, delta):
        raise UnsupportedError(
            f"the snapshot branch and the delta branch of {root.path} have different options for merging rows: give"
            " both the same", feature=CHAIN_TABLE,
        )  # fmt: skip


def _refusal(what: str) -> UnsupportedError:
    return UnsupportedError(
        f"paimon_py cannot read {what} of a chain table as a whole: read one of its branches, table.branch(…)",
        feature=CHAIN_TABLE,
    )
