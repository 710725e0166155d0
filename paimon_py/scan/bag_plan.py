"""Plans the difference of two states of a table without a primary key: files in only one of them, by partition.

Files that both states have with the same dead rows are not read; if other files store columns of the same rows, these
must be equal too. Remaining files are compared by partition, since a rescale moves rows between buckets.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from paimon_py.metadata.root import TableRoot
from paimon_py.scan.ends import Ends
from paimon_py.scan.explain import Skipped
from paimon_py.scan.plan_snapshot import Planned
from paimon_py.scan.request import Request
from paimon_py.scan.split import Compared, Split
from paimon_py.scan.state_files import FileKey, StateFiles, common_files


def plan_bags(root: TableRoot, request: Request, ends: Ends) -> Planned:
    """Plan the difference of two states.

    Conditions can be evaluated on each row, since equal rows are equal in all columns.

    Cost: like planning a scan of each state.
    Raises: SnapshotExpiredError: a snapshot has expired.
    """
    asked = msgspec.structs.replace(request, columns=request.schema.names, kinds=False)
    states = [StateFiles(root, asked, each) for each in (ends.start, ends.last) if each is not None]
    common = common_files(states)
    sides = [_by_partition(state, common) for state in states]
    before, after = (sides[0] if len(sides) > 1 else {}), sides[-1]
    splits = [_split(before.get(each, []), after.get(each, []), ends) for each in sorted({*before, *after})]
    return planned_difference(states, common, splits)


def planned_difference(states: list[StateFiles], common: set[FileKey], splits: Iterable[Split]) -> Planned:
    """The plan of a difference, with counts of what was skipped. `common`: the files that are not read."""
    skipped = Skipped()
    for state in states:
        skipped = skipped.plus(state.planner.count_skipped())
    skipped = msgspec.structs.replace(skipped, same=skipped.same + len(states) * len(common))
    return Planned(tuple(splits), states[-1].planner.pushed_down, skipped)


def _by_partition(state: StateFiles, common: set[FileKey]) -> dict[bytes, list[Split]]:
    found: dict[bytes, list[Split]] = {}
    for split in state.splits(state.other_files(common)):
        found.setdefault(split.partition, []).append(split)
    return found


def _split(before: Iterable[Split], after: Iterable[Split], ends: Ends) -> Split:
    return difference_split(Compared(before=tuple(before), after=tuple(after), removals=True), ends)


def difference_split(compared: Compared, ends: Ends) -> Split:
    """The split of a difference."""
    first = (*compared.before, *compared.after)[0]
    return msgspec.structs.replace(
        first, snapshot_id=ends.last.id, sections=(), deletions={}, since=ends.since, compared=compared
    )
