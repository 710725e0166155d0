"""Scans of tables that read missing partitions from a second branch.

Each branch is planned as a separate scan; a partition is read from the first branch with visible files for it. Splits
record their branch.

Source: Java `FallbackReadFileStoreTable`, `FileStoreTableFactory`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paimon_py.errors import SnapshotExpiredError, SnapshotNotFoundError, TableNotFoundError
from paimon_py.metadata.branches import FALLBACK, PRIMARY
from paimon_py.metadata.open_table import OpenTable
from paimon_py.scan.branches_scan import BranchesScan, require_alike, state_at
from paimon_py.scan.measure import ScanMeter
from paimon_py.scan.plan_snapshot import Planned
from paimon_py.scan.scan import Scan
from paimon_py.scan.split import Split
from paimon_py.scan.time_travel import FoundState, Travel
from paimon_py.spec.options import Options
from paimon_py.spec.postponed import merges_waiting
from paimon_py.spec.supported import check_scannable

if TYPE_CHECKING:
    from paimon_py.scan.top_n import TopN


def open_scan(table: OpenTable, *, options: Mapping[str, str] | None = None, **asked: Any) -> Scan:
    """The scan of a table, with other branches if options name some. Changes are always those of the branch alone.

    Cost: for another branch, a list and a get.
    Raises: as `Scan`, and UsageError for branches with different columns.
    Warns: PaimonWarning if the other branch does not exist; only the rows of this branch are read, as in Java.
    """
    found = Scan(table.root, table.schema, options=options, **asked)
    named = {**table.schema.options, **(options or {})}
    if Options(named).get_bool("chain-table.enabled"):
        from paimon_py.scan.chain import chain_scan

        return chain_scan(found, options=options, **asked)
    option = next((option for option in (FALLBACK, PRIMARY) if named.get(option, "").strip()), None)
    if merges_waiting(found._table_schema):
        from paimon_py.scan.waiting import waiting_scan

        return waiting_scan(found, beside=option)
    if option is None or found.reads_changes or named[option] == table.root.branch:
        return found
    other = table.root.on_branch(named[option])
    try:
        other_schema = other.schemas.latest()
    except TableNotFoundError:
        from paimon_py.logs import warn

        warn(
            f"{table.root.path} has no branch {named[option]!r}, which {option} names: {table.root.branch!r} is read"
            " alone"
        )
        return found
    check_scannable(other_schema)
    if found.is_latest:
        require_alike(table, other, other_schema)
    return FallbackScan(found, Scan(other, other_schema, options=options, **asked), wins=option == PRIMARY)


class FallbackScan(BranchesScan):
    """A scan of two branches with the same columns, which may differ in nullability."""

    def __init__(self, own: Scan, other: Scan, *, wins: bool) -> None:
        """`wins`: the partitions of the other branch take precedence."""
        self.__dict__.update(own.__dict__)
        self._others = (other,)
        self._wins = wins

    # -- states -------------------------------------------------------------------------------------------------------

    @property
    def _other_states(self) -> tuple[Scan, ...]:
        other = self._others[0]
        if other._found is None:
            other._found = (self._state_beside(),)
        return self._others

    def _state_beside(self) -> FoundState:
        """Snapshots of branches are unrelated: a snapshot is matched by its time.

        If the other branch is younger, its first snapshot is used, as in Java.
        """
        other, own = self._others[0], self._state
        extent = other._extent
        assert isinstance(extent, Travel)
        version = extent.version or ""
        by_id = extent.snapshot_id is not None or (version.isascii() and version.isdigit())
        if not by_id or extent != self._extent or not isinstance(own, FoundState) or own.snapshot is None:
            return state_at(other._root, extent, other._table_schema)
        try:
            return FoundState(other._root.snapshots.by_time(own.snapshot.time_millis))
        except SnapshotExpiredError:
            raise
        except SnapshotNotFoundError:
            return FoundState(other._root.snapshots.find(1))

    # -- planning -----------------------------------------------------------------------------------------------------

    def _plan(self) -> Planned:
        splits: list[Split] = []
        pushed, skipped, given = Planned.nothing().pushed, Planned.nothing().skipped, None
        for scan in self._in_order():
            planner = Scan._planner(scan, scan._table_request, given)
            if planner is not None:
                planned = planner.plan()
                splits += planned.splits
                pushed, skipped, given = planned.pushed, skipped.plus(planned.skipped), planner.partitions()
        return Planned(tuple(splits), pushed, skipped)

    def _collect(self, first: TopN, meter: ScanMeter | None) -> None:
        given = None
        for scan in self._in_order():
            planner = Scan._planner(scan, scan._ordered_request, given)
            if planner is not None:
                ordered = planner.plan_ordered(scan._order[0].field)
                first.collect(ordered, lambda split, threshold, scan=scan: self._alike(  # type: ignore[misc]
                    scan._read_ordered(split, threshold if scan is self else None, meter), self._ordered_request
                ))  # fmt: skip
                given = planner.partitions()

    def _in_order(self) -> tuple[Scan, Scan]:
        """The scans of both branches, the one whose partitions take precedence first."""
        (other,) = self._other_states
        require_alike(OpenTable(self._root, self._state_schema), other._root, other._state_schema)
        return (other, self) if self._wins else (self, other)
