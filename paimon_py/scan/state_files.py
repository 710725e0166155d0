"""The files of one state of a table without a primary key, to be compared with those of another state."""

from __future__ import annotations

import numpy as np

from paimon_py.codec.columns import Ints
from paimon_py.codec.manifest.columns import ABSENT
from paimon_py.files.physical import evolves_columns
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.metadata.row_ranges import row_ranges
from paimon_py.scan.plan import Packing, PlanOrigin, splits_of
from paimon_py.scan.plan_snapshot import SnapshotPlanner, deletions_of
from paimon_py.scan.request import Request
from paimon_py.scan.split import Split
from paimon_py.spec.snapshot import Snapshot

FileKey = tuple[bytes, int, str, object, frozenset[str], int]
_WHOLE = Packing(target_bytes=1 << 62, open_file_bytes=1)


class StateFiles:
    """The files of one state.

    Attributes:
        planner: the plan of the state, which counts what was skipped.
        entries: the files.
        keys: for each file a value that is equal in two states if the file has the same live rows in both: its
            partition, bucket and name, its dead rows, the files with other columns of its rows, and its first row id.
    """

    def __init__(self, root: TableRoot, request: Request, snapshot: Snapshot, *, by_id: bool = False) -> None:
        """`by_id`: the same rows with other ids are other rows, as after Java's `reassign_row_id`."""
        self.planner = SnapshotPlanner(root, request, snapshot)
        self.entries = self.planner.candidates()
        self._deletions = deletions_of(OpenTable(root, request.schema), snapshot)
        entries = self.entries
        partitions, names = entries.partitions().to_pylist(), entries.names().to_pylist()
        beside = [frozenset((name,)) for name in names]
        if evolves_columns(request.schema):
            for files in row_ranges(entries).files():
                together = frozenset(names[at] for at in files)
                for at in files:
                    beside[at] = together
        self.keys: list[FileKey] = []
        firsts = entries.first_row_id.tolist() if by_id else [ABSENT] * len(names)
        buckets = entries.bucket.tolist()
        for partition, bucket, name, together, first in zip(partitions, buckets, names, beside, firsts, strict=True):
            places = self._deletions.get((partition, bucket), {})
            dead = frozenset((each, places[each]) for each in together if each in places)
            self.keys.append((partition, bucket, name, dead, together, first))
        self._place = PlanOrigin(
            snapshot_id=snapshot.id, schema_id=request.schema.id, deletions=self._deletions, branch=root.branch
        )

    def other_files(self, common: set[FileKey]) -> Ints:
        """The numbers of the files that are not in `common`."""
        found: Ints = np.flatnonzero([key not in common for key in self.keys])
        return found

    def splits(self, files: Ints) -> list[Split]:
        """Some of the files, as one split for each partition and bucket."""
        entries, grouped, wanted = self.planner.sections(self.entries.take(files))
        return splits_of(entries, grouped, wanted, self._place, _WHOLE)


def common_files(states: list[StateFiles]) -> set[FileKey]:
    """The files that two states have with the same live rows; none of a single state."""
    return set.intersection(*(set(state.keys) for state in states)) if len(states) > 1 else set[FileKey]()
