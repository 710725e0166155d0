"""Plans the difference of two states of a table without a primary key: files in only one of them, by partition.

Files that both states have with the same dead rows are not read; if other files store columns of the same rows, these
must be equal too. Remaining files are compared by partition, since a rescale moves rows between buckets.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from paimon_py.files.physical import evolves_columns
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.metadata.row_ranges import row_ranges
from paimon_py.scan.ends import Ends
from paimon_py.scan.explain import Skipped
from paimon_py.scan.plan import Packing, PlanOrigin, splits_of
from paimon_py.scan.plan_snapshot import Planned, SnapshotPlanner, deletions_of
from paimon_py.scan.request import Request
from paimon_py.scan.split import Compared, Split
from paimon_py.spec.snapshot import Snapshot

_WHOLE = Packing(target_bytes=1 << 62, open_file_bytes=1)
_Key = tuple[bytes, int, str, object, frozenset[str]]


def plan_bags(root: TableRoot, request: Request, ends: Ends) -> Planned:
    """Plan the difference of two states.

    Conditions can be evaluated on each row, since equal rows are equal in all columns.

    Cost: like planning a scan of each state.
    Raises: SnapshotExpiredError: a snapshot has expired.
    """
    asked = msgspec.structs.replace(request, columns=request.schema.names, kinds=False)
    states = [_Files(root, asked, each) for each in (ends.start, ends.last) if each is not None]
    common = set.intersection(*(set(state.keys) for state in states)) if len(states) > 1 else set[_Key]()
    sides = [state.splits(common) for state in states]
    before, after = (sides[0] if len(sides) > 1 else {}), sides[-1]
    splits = [_split(before.get(each, []), after.get(each, []), ends) for each in sorted({*before, *after})]
    skipped = Skipped()
    for state in states:
        skipped = skipped.plus(state.planner.count_skipped())
    skipped = msgspec.structs.replace(skipped, same=skipped.same + len(states) * len(common))
    return Planned(tuple(splits), states[-1].planner.pushed_down, skipped)


class _Files:
    """The files of one state."""

    def __init__(self, root: TableRoot, request: Request, snapshot: Snapshot) -> None:
        self.planner = SnapshotPlanner(root, request, snapshot)
        self._entries = self.planner.candidates()
        self._deletions = deletions_of(OpenTable(root, request.schema), snapshot)
        entries = self._entries
        partitions, names = entries.partitions().to_pylist(), entries.names().to_pylist()
        beside = [frozenset((name,)) for name in names]
        if evolves_columns(request.schema):
            for files in row_ranges(entries).files():
                together = frozenset(names[at] for at in files)
                for at in files:
                    beside[at] = together
        self.keys: list[_Key] = []
        for partition, bucket, name, together in zip(partitions, entries.bucket.tolist(), names, beside, strict=True):
            places = self._deletions.get((partition, bucket), {})
            dead = frozenset((each, places[each]) for each in together if each in places)
            self.keys.append((partition, bucket, name, dead, together))
        self._place = PlanOrigin(
            snapshot_id=snapshot.id, schema_id=request.schema.id, deletions=self._deletions, branch=root.branch
        )

    def splits(self, common: set[_Key]) -> dict[bytes, list[Split]]:
        """The files that are not in `common`, by partition."""
        kept = np.flatnonzero([key not in common for key in self.keys])
        entries, grouped, wanted = self.planner.sections(self._entries.take(kept))
        found: dict[bytes, list[Split]] = {}
        for split in splits_of(entries, grouped, wanted, self._place, _WHOLE):
            found.setdefault(split.partition, []).append(split)
        return found


def _split(before: Iterable[Split], after: Iterable[Split], ends: Ends) -> Split:
    compared = Compared(before=tuple(before), after=tuple(after), removals=True)
    first = (*compared.before, *compared.after)[0]
    return msgspec.structs.replace(
        first, snapshot_id=ends.last.id, sections=(), deletions={}, since=ends.since, compared=compared
    )
