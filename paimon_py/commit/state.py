"""The table as seen by one attempt to commit, and the possible outcomes of an attempt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, Union

import msgspec
import pyarrow.compute as pc

from paimon_py.codec.columns import Mask, numpy_values, text_array
from paimon_py.codec.manifest.columns import ABSENT, EntryColumns
from paimon_py.codec.partition_choice import PartitionChoice
from paimon_py.commit.changes import Bucket
from paimon_py.commit.conflicts import Conflict
from paimon_py.commit.deletion_index import index_entries
from paimon_py.commit.snapshot_delta import SnapshotDelta
from paimon_py.metadata.entry_filter import EntryFilter
from paimon_py.metadata.history import SnapshotLog
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.data_file import FileKind, ManifestEntry, identifier
from paimon_py.spec.manifest import IndexEntry
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Snapshot


class Already(msgspec.Struct, frozen=True):
    """Already committed, probably by this writer; `snapshots` lists where, if known."""

    snapshots: tuple[Snapshot, ...] = ()


class State:
    """The latest snapshot and its history; files and schemas are fetched on first use, and once.

    Attributes:
        latest: None for an empty table.
        snapshot_log: shared by all attempts of a commit.
    """

    def __init__(
        self,
        table: OpenTable,
        latest: Snapshot | None,
        snapshot_log: SnapshotLog,
        newest: TableSchema | None = None,
    ) -> None:
        """`newest`: the table's latest schema, if it was fetched with the snapshot."""
        self.latest = latest
        self.snapshot_log = snapshot_log
        self._table = table
        self._root = table.root
        self._schema = table.schema
        self._newest = newest
        self._index: tuple[IndexEntry, ...] | None = None
        self._live: dict[frozenset[Bucket], list[ManifestEntry]] = {}

    @property
    def newest_schema(self) -> TableSchema:
        """The table's latest schema. Raises: TableNotFoundError if the table no longer exists."""
        self._newest = self._newest or self._root.schemas.latest()
        return self._newest

    @property
    def next_row_id(self) -> int:
        """The id of the next new row of a table with row tracking.

        A snapshot of a writer that does not know it may lack the number; then it follows the ids of all files in
        its manifests, also of deleted ones: ids that were given twice would make the table unreadable.
        Raises: SnapshotExpiredError
        """
        if self.latest is None or self.latest.next_row_id is not None:
            return (self.latest and self.latest.next_row_id) or 0
        known = self._root.manifests.base_and_delta(self.latest)
        entries = self._root.manifests.read_entries(known, EntryFilter())
        numbered = entries.first_row_id != ABSENT
        ends = (entries.first_row_id + entries.row_count)[numbered]
        return int(ends.max()) if len(ends) else 0

    @property
    def index(self) -> tuple[IndexEntry, ...]:
        """All index files of the table. Raises: SnapshotExpiredError"""
        if self._index is None:
            self._index = index_entries(self._root, self.latest)
        return self._index

    def live(self, chosen: PartitionChoice | None = None) -> list[ManifestEntry]:
        """The live files of some partitions, or all. Raises: SnapshotExpiredError"""
        return self.live_columns(EntryFilter(partitions=chosen)).entries()

    def live_in(self, buckets: Iterable[Bucket]) -> list[ManifestEntry]:
        """The live files of some buckets. Raises: SnapshotExpiredError"""
        wanted = frozenset(buckets)
        if wanted not in self._live:
            partitions = PartitionChoice.of_rows(partition for partition, _ in wanted)
            numbers = frozenset(bucket for _, bucket in wanted)
            live = self.live_columns(EntryFilter(partitions=partitions, buckets=numbers))
            self._live[wanted] = [entry for entry in live.entries() if (entry.partition, entry.bucket) in wanted]
        return self._live[wanted]

    def returning(self, part: SnapshotDelta) -> ManifestEntry | None:
        """An entry to add that was added and deleted before, as far as manifests show; None if there is none.

        Entries are identified by name, level and extra files of the data file, and readers fold them in any order: an
        entry that returned would count as deleted. Only files that the part also deletes can return.
        """
        moved = {entry.file.name for entry in part.deletes}
        again = {identifier(entry): entry for entry in part.adds if entry.file.name in moved}
        if self.latest is None or not again:
            return None
        partitions = PartitionChoice.of_rows(entry.partition for entry in again.values())
        known = self._root.manifests.base_and_delta(self.latest)
        columns = self._root.manifests.read_entries(known, EntryFilter(partitions=partitions))
        named: Mask = numpy_values(pc.is_in(columns.names(), value_set=text_array(sorted(moved))))
        gone = columns.take((columns.kind == FileKind.DELETE) & named).entries()
        return next((again[key] for key in map(identifier, gone) if key in again), None)

    def live_columns(self, entry_filter: EntryFilter) -> EntryColumns:
        """Live files as columns. Raises: SnapshotExpiredError"""
        if self.latest is None:
            return EntryColumns.empty()
        return self._root.manifests.live_entries(self.latest, entry_filter)


Refusal = Union[Conflict, Already]
Planned = Union[SnapshotDelta, Conflict, Already]

Requirement = Callable[[State], Union[Conflict, Already, None]]
"""A requirement on the latest state; returns None if it holds."""


class Proposal(Protocol):
    """Edits to publish as one snapshot, and what they require of the latest state."""

    @property
    def requirements(self) -> Sequence[Requirement]:
        """The requirements, checked in this order before every attempt."""
        ...

    def part(self, state: State) -> SnapshotDelta | Conflict | Already:
        """The edits as they must look on the latest state; called when all requirements hold."""
        ...


def plan(proposal: Proposal, state: State) -> Planned:
    """The plan for the latest state: the first requirement that does not hold, or the edits."""
    for requirement in proposal.requirements:
        refusal = requirement(state)
        if refusal is not None:
            return refusal
    return proposal.part(state)
