"""Plans the difference of two states: the files of both → sections of keys → those that may differ → splits.

Sections of both states with overlapping keys form a cluster. A cluster with the same files in both states is skipped.

Source: Java `SnapshotReaderImpl.readIncrementalDiff`, release 2.0; docs/changes.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import Ints
from paimon_py.codec.manifest.columns import EntryColumns
from paimon_py.errors import UnsupportedError
from paimon_py.files.physical import ROW_ID_FIELD, tracks_rows
from paimon_py.lsm.intervals import runs_of, sections_of
from paimon_py.lsm.order import dense_ranks
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.scan import prune_entries as prune
from paimon_py.scan.bag_plan import plan_bags
from paimon_py.scan.ends import Ends
from paimon_py.scan.id_plan import plan_ids
from paimon_py.scan.own_options import merge_alike, under
from paimon_py.scan.plan import Deletions, Grouped, Packing, PlanOrigin, splits_of
from paimon_py.scan.plan_snapshot import Planned, SnapshotPlanner, deletions_of, packing_of
from paimon_py.scan.request import Request, keys_only
from paimon_py.scan.split import Compared, Section, Split
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.packing import pack
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Snapshot
from paimon_py.spec.visibility import clusters_keys


def plan_diff(root: TableRoot, request: Request, ends: Ends) -> Planned:
    """Plan the difference of two states.

    Cost: like planning a scan of each state.
    Raises:
        SnapshotExpiredError: a snapshot has expired.
        UnsupportedError: the table's files are not sorted by its key.
    """
    schema = request.schema
    if not schema.primary_keys:
        return _plan_rows(root, request, ends) if ends.removals else _plan_added(root, request, ends)
    if clusters_keys(schema):
        raise UnsupportedError(
            "states of a table with pk-clustering-override cannot be compared: its files are not sorted by the key;"
            " mode='delta' returns the rows that were written",
            feature="changes in mode='diff' of a table with pk-clustering-override",
        )
    every_level = ends.of_call or ends.of_step or not ends.removals
    asked = msgspec.structs.replace(keys_only(request), every_level=every_level)
    first, last = _schema_ids(schema, ends)
    before = [] if ends.start is None else [_State(root, asked, ends.start, first)]
    after = _State(root, asked, ends.last, last)
    if before and not ends.removals:
        before[0].leave_out(after)
    planner = _Clusters(schema, [*before, after])
    splits = list(planner.splits(ends, packing_of(schema)))
    skipped = after.planner.count_skipped()
    for state in before:
        skipped = skipped.plus(state.planner.count_skipped())
    return Planned(
        tuple(splits), after.planner.pushed_down,
        msgspec.structs.replace(skipped, same=skipped.same + planner.same_files),
    )


def _plan_rows(root: TableRoot, request: Request, ends: Ends) -> Planned:
    """The difference of two states of a table without a primary key.

    Rows with ids are compared by their ids in the steps of a stream, and if row ids are requested; all others by value.
    """
    if tracks_rows(request.schema) and (ends.of_step or ROW_ID_FIELD in request.schema.fields):
        planned = plan_ids(root, request, ends)
        if planned is not None:
            return planned
    return plan_bags(root, request, ends)


def _schema_ids(schema: TableSchema, ends: Ends) -> tuple[int, int]:
    """The ids of the schemas whose options apply to the two states."""
    if not ends.removals:
        return schema.id, schema.id
    last = schema.id if ends.now else ends.last.schema_id
    return (last if ends.start is None or ends.of_call else ends.start.schema_id), last


def _plan_added(root: TableRoot, request: Request, ends: Ends) -> Planned:
    """The rows of files that only the later state has, as Java reads tables without a key.

    Source: Java `RawFileSplitRead.createReader`, release 2.0.
    """
    after = _State(root, request, ends.last, request.schema.id)
    if ends.start is not None:
        _State(root, request, ends.start, request.schema.id).leave_out(after)
    entries, grouped, wanted = after.planner.sections(after.entries)
    place = PlanOrigin(
        snapshot_id=ends.last.id, schema_id=request.schema.id, deletions=after.deletions, since=ends.since,
        branch=root.branch,
    )  # fmt: skip
    splits = splits_of(entries, grouped, wanted, place, packing_of(request.schema))
    return Planned(tuple(splits), after.planner.pushed_down, after.planner.count_skipped())


class _State:
    """The files of one state."""

    def __init__(self, root: TableRoot, request: Request, snapshot: Snapshot, schema_id: int) -> None:
        """`schema_id`: the schema whose options apply to the state."""
        self.schema = under(OpenTable(root, request.schema), schema_id)
        self.schema_id = schema_id
        self.planner = SnapshotPlanner(root, msgspec.structs.replace(request, schema=self.schema), snapshot)
        self.snapshot = snapshot
        self.branch = root.branch
        self.entries = self.planner.candidates()
        self.deletions: Deletions = deletions_of(OpenTable(root, self.schema), snapshot)
        self._schema_of = root.schemas.get

    def leave_out(self, other: _State) -> None:
        """Remove the files that both states have at the same level from both, as Java does."""
        mine, others = _identities(self.entries), _identities(other.entries)
        common = set(mine) & set(others)
        self.entries = self.entries.take(np.array([one not in common for one in mine], np.bool_))
        other.entries = other.entries.take(np.array([one not in common for one in others], np.bool_))

    def group(self) -> tuple[EntryColumns, Grouped, list[int]]:
        """The files, their sections, and the indexes of the requested sections."""
        entries, grouped, wanted = self.planner.sections(self.entries)
        numbers = range(len(grouped.sections))
        return entries, grouped, [number for number in numbers if wanted is None or wanted[number]]

    def key_columns(self, entries: EntryColumns, which: str) -> list[pa.Array]:
        """The smallest or largest key of every file."""
        return prune.key_columns(entries, which, self.schema, self._schema_of)


class _Part(msgspec.Struct, frozen=True):
    """One section of one state."""

    state: int
    partition: bytes
    bucket: int
    total_buckets: int
    section: Section


class _Clusters:
    """Sections of one or two states, the later one last, clustered by key."""

    def __init__(self, schema: TableSchema, states: Sequence[_State]) -> None:
        self._schema = schema
        self._states = states
        self._parts: list[_Part] = []
        self._low, self._high = self._ranks()
        self._alike = merge_alike(states[0].schema, states[-1].schema)
        self.same_files = 0

    def splits(self, ends: Ends, packing: Packing) -> Iterator[Split]:
        """Splits of the clusters that may differ, ordered by partition, bucket and key."""
        for group in self._groups():
            places = np.array(group, np.int64)
            clusters = [places[cluster].tolist() for cluster in sections_of(self._low[places], self._high[places])]
            differing = [cluster for cluster in clusters if not self._is_same(cluster)]
            for packed in pack(differing, lambda cluster: self._weight(cluster, packing), packing.target_bytes):
                yield self._split([part for cluster in packed for part in cluster], ends)

    def _ranks(self) -> tuple[Ints, Ints]:
        """Fill the list of parts; returns the ranks of the smallest and largest key of each."""
        if all(not len(state.entries) for state in self._states):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        found = [state.group() for state in self._states]
        both = list(zip(self._states, found, strict=True))
        lows = [state.key_columns(each[0], "min_key") for state, each in both]
        highs = [state.key_columns(each[0], "max_key") for state, each in both]
        ranks = dense_ranks([pa.chunked_array(columns) for columns in zip(*lows, *highs, strict=True)])
        count = len(ranks) // 2
        start, low, high = 0, [], []
        for number, (entries, grouped, wanted) in enumerate(found):
            for section in wanted:
                files = np.array([file for run in grouped.sections[section] for file in run], np.int64)
                low.append(int(ranks[start + files].min()))
                high.append(int(ranks[count + start + files].max()))
                self._parts.append(_part(number, entries, grouped, section))
            start += len(entries)
        return np.array(low, np.int64), np.array(high, np.int64)

    def _groups(self) -> list[list[int]]:
        """The parts whose keys may be equal: those of a bucket if keys stay in their bucket, else of a partition."""
        mode = bucket_mode(self._schema)
        totals: dict[bytes, set[int]] = {}
        for part in self._parts:
            totals.setdefault(part.partition, set()).add(part.total_buckets)
        groups: dict[object, list[int]] = {}
        for number, part in enumerate(self._parts):
            stays = mode is BucketMode.FIXED and len(totals[part.partition]) == 1
            place = (part.partition, part.bucket) if stays else part.partition
            groups.setdefault(None if mode is BucketMode.CROSS_PARTITION else place, []).append(number)
        return list(groups.values())

    def _is_same(self, cluster: Sequence[int]) -> bool:
        """Whether the cluster has the same files with the same dead rows in both states; counts them if so."""
        if len(self._states) < 2 or not self._alike:
            return False
        sides = [set[object](), set[object]()]
        for number in cluster:
            part = self._parts[number]
            dead = self._states[part.state].deletions.get((part.partition, part.bucket), {})
            sides[part.state] |= {
                (part.partition, part.bucket, file.name, file.level, dead.get(file.name))
                for file in part.section.files
            }
        if sides[0] != sides[1]:
            return False
        self.same_files += 2 * len(sides[0])
        return True

    def _weight(self, cluster: Sequence[int], packing: Packing) -> int:
        files = (file for number in cluster for file in self._parts[number].section.files)
        return max(sum(file.size_bytes for file in files), packing.open_file_bytes)

    def _split(self, numbers: Sequence[int], ends: Ends) -> Split:
        last = len(self._states) - 1
        first = self._parts[numbers[0]]
        sides = [
            tuple(self._runs([number for number in numbers if self._parts[number].state == state]))
            for state in range(last + 1)
        ]
        return Split(
            snapshot_id=self._states[last].snapshot.id,
            schema_id=self._schema.id,
            partition=first.partition,
            bucket=first.bucket,
            total_buckets=first.total_buckets,
            sections=(),
            since=ends.since,
            branch=self._states[last].branch,
            compared=Compared(
                before=sides[0] if last else (), after=sides[last], removals=ends.removals, old_rows=ends.of_step
            ),
        )

    def _runs(self, numbers: Sequence[int]) -> Iterator[Split]:
        """Sections of one state as sorted runs of one bucket each."""
        buckets: dict[tuple[bytes, int], list[int]] = {}
        for number in numbers:
            part = self._parts[number]
            buckets.setdefault((part.partition, part.bucket), []).append(number)
        for (partition, bucket), members in buckets.items():
            ordered = sorted(members, key=lambda number: (self._low[number], self._high[number]))
            state = self._states[self._parts[ordered[0]].state]
            dead = state.deletions.get((partition, bucket), {})
            for run in runs_of(ordered, self._low, self._high):
                sections = tuple(self._parts[number].section for number in run)
                names = [file.name for section in sections for file in section.files] if dead else []
                yield Split(
                    snapshot_id=state.snapshot.id,
                    branch=state.branch,
                    schema_id=state.schema_id,
                    partition=partition,
                    bucket=bucket,
                    total_buckets=self._parts[run[0]].total_buckets,
                    sections=sections,
                    deletions={name: dead[name] for name in names if name in dead},
                )


def _part(state: int, entries: EntryColumns, grouped: Grouped, number: int) -> _Part:
    runs = tuple(tuple(grouped.files[file] for file in run) for run in grouped.sections[number])
    raw = len(runs) == 1 and all(file.delete_row_count == 0 for file in runs[0])
    first = grouped.sections[number][0][0]
    return _Part(
        state,
        entries.partitions()[first].as_py(),
        int(entries.bucket[first]),
        int(entries.total_buckets[first]),
        Section(runs=runs, raw=raw),
    )


def _identities(entries: EntryColumns) -> list[tuple[object, ...]]:
    """The identity of each file: equal in two states only for the same file at the same level."""
    return list(zip(entries.names().to_pylist(), entries.level.tolist(), strict=True))
