"""The proposals of a commit: edits as one snapshot, and their requirements on the latest state.

Each proposal is evaluated before every attempt. The docstring of its class names what an attempt may change:
files rewritten with larger numbers, merged hash indexes, and which compactions still fit.

Source: docs/format.md §15; Java `FileStoreCommitImpl`; docs/reliability.md §6.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from paimon_py.codec.columns import binary_array
from paimon_py.codec.partition_choice import PartitionChoice
from paimon_py.commit.attempts import Published
from paimon_py.commit.changes import BucketChanges, Changes, pack_buckets, with_compaction, with_index
from paimon_py.commit.column_files import column_conflict
from paimon_py.commit.compaction_fit import Fit, fit_compactions, foreign_files, is_committed
from paimon_py.commit.concurrent_commits import ConcurrentCommits
from paimon_py.commit.conflicts import Conflict, LevelFile, apply, bucket_count_conflict, schema_conflict
from paimon_py.commit.duplicate_check import DuplicateCheck
from paimon_py.commit.entry_lists import bucket_counts
from paimon_py.commit.hash_indexes import HashIndexes, replaced_hashes
from paimon_py.commit.index_plan import compacted_index, index_after, missing_index, written_index
from paimon_py.commit.key_follower import KeyFollower
from paimon_py.commit.request import CommitRequest
from paimon_py.commit.sequence_numbers import SequenceAssignment
from paimon_py.commit.snapshot_delta import SnapshotDelta, compact_part, overwrite_part, upgrade, write_part
from paimon_py.commit.state import Already, Requirement, State
from paimon_py.errors import CorruptionError, UsageError
from paimon_py.files.physical import evolves_columns
from paimon_py.lazy import lazy_property
from paimon_py.lsm.order import key_ranks
from paimon_py.metadata.history import HistoryGap, SnapshotLog
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode, counts_anew
from paimon_py.spec.data_file import ManifestEntry
from paimon_py.spec.layout import POSTPONE_BUCKET
from paimon_py.spec.option_changes import changed_rules
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Base, CommitKind


class Requirements:
    """The requirements of changes on the latest state, set by the caller and the table."""

    def __init__(self, table: OpenTable, changes: Changes, request: CommitRequest, repeats: DuplicateCheck) -> None:
        self._table = table
        self._root = table.root
        self._schema = table.schema
        self._changes = changes
        self._request = request
        self._repeats = repeats
        self._keys = None if changes.keys is None else KeyFollower(changes.keys)
        self.missing: str | None = None

    def of_rows(self) -> Sequence[Requirement]:
        """Requirements of changes that add rows."""
        return (
            self.same_table, self.same_rules, self.check_unchanged, self.new, self.keys_known, self.check,
            self.files_there,
        )

    def of_overwrite(self) -> Sequence[Requirement]:
        """Requirements of changes that replace rows."""
        return self.same_table, self.same_rules, self.check_unchanged, self.new, self.check, self.files_there

    def same_table(self, _: State) -> Conflict | None:
        """Check that the table is the one that was opened. Raises: TableNotFoundError if its schema was rolled back."""
        schemas = self._root.schemas
        try:
            found = schemas.get(self._schema.id)
        except CorruptionError:
            schemas.require_same(self._schema)
            raise
        if found.is_same_version(self._schema):
            return None
        return Conflict(f"schema {self._schema.id} has changed: {self._root.path} is another table now")

    @lazy_property
    def _schemas(self) -> tuple[set[int], set[int]]:
        """The schemas under which new files were made, and those under which rows were written."""
        made, written = set[int](), set[int]()
        for bucket in self._changes.buckets:
            made.update(file.schema_id for edit in (bucket.written, bucket.compacted) for file in edit.made_files)
            written.update(file.schema_id for file in bucket.written.added)
        return made, written

    def same_rules(self, state: State) -> Conflict | None:
        """Check that the options that decide the meaning of rows are those under which files were written."""
        schemas, now = self._root.schemas, state.newest_schema
        known = {self._schema.id, self._changes.schema_id, *self._schemas[0]}
        for number in sorted(known - {now.id}):
            changed = changed_rules(schemas.get(number).options, now.options)
            if changed:
                return Conflict(
                    f"the options {', '.join(changed)} of {self._root.path} changed after schema {number}, under which"
                    " these changes were made: call refresh(), or open the table again, and write again"
                )
        return None

    def check_unchanged(self, state: State) -> Conflict | None:
        """Check that the latest snapshot is the expected one, and that the latest schema accepts the rows."""
        latest, expected = state.latest, self._request.expected_snapshot_id
        if expected is not None and expected != (latest.id if latest else 0):
            return Conflict(f"the latest snapshot is {latest.id if latest else 'none'}, not {expected} as expected")
        written = self._schemas[1]
        if not written:
            return None
        schemas, now = self._root.schemas, state.newest_schema
        if max(written) > now.id:
            return Conflict(
                f"schema {max(written)} of {self._root.path}, under which the changes were written, no longer exists: a"
                " fast_forward removed it. Call refresh(), or open the table again, and write again"
            )
        conflicts = (schema_conflict(schemas.get(number), now) for number in sorted(written))
        return next((conflict for conflict in conflicts if conflict is not None), None)

    def new(self, state: State) -> Conflict | Already | None:
        """Check that the changes were not committed before. Changes made for this very commit cannot have been."""
        return None if self._request.is_new and self._request.label.identifier is None else self._repeats(state)

    def keys_known(self, state: State) -> Conflict | None:
        """Check that all keys that can move between partitions are where the writer assumed them to be."""
        if self._keys is None or not any(bucket.written.added for bucket in self._changes.buckets):
            return None
        return self._keys.advance(state.snapshot_log, state.latest) or self._keys.missing()

    def check(self, state: State) -> Conflict | None:
        """Run the check of the caller."""
        return None if self._request.check is None else self._request.check(state)

    def files_there(self, _: State) -> None:
        """Check that all files exist. Runs last, because a commit that already succeeded may have replaced them.

        Raises: UsageError
        """
        if self.missing is not None:
            raise UsageError(
                f"nothing was committed: {self.missing} does not exist as it was written. The changes belong to"
                " another table, or their files have been deleted; write the rows again and commit the new changes"
            )


class WriteProposal:
    """Proposes written files.

    An attempt may rewrite files under larger sequence numbers (`numbering`) and unite hash indexes (`hashes`).
    """

    def __init__(
        self, schema: TableSchema, part: SnapshotDelta, numbering: SequenceAssignment, hashes: HashIndexes,
        requires: Requirements,
    ) -> None:  # fmt: skip
        """`part`: the edits of the changes, as their writers made them."""
        changes = numbering.current
        self._part = changes.buckets, part
        self._schema = schema
        self._numbering = numbering
        self._hashes = hashes
        self._concurrent = ConcurrentCommits(changes, part.partitions)
        self._has_numbers = bool(schema.primary_keys) or any(
            count > 0 for counts in bucket_counts(part.adds).values() for count in counts
        )
        self._keeps_numbers = Options(schema.options).get_bool("sequence.snapshot-ordering") or counts_anew(schema)
        self._evolves = evolves_columns(schema)
        self.requirements = requires.of_rows()

    def part(self, state: State) -> SnapshotDelta | Conflict:
        """The new files, with sequence numbers after all others, and the resulting index files of the table."""
        if self._has_numbers:
            self._concurrent.follow(state)
            if not self._keeps_numbers:
                self._numbering.follow(self._concurrent.highest)
        buckets, part = self._part
        if buckets is not self._numbering.current.buckets:
            part = write_part(self._numbering.current.buckets)
            self._part = self._numbering.current.buckets, part
        conflict = bucket_count_conflict(part.adds, self._concurrent.bucket_counts)
        if conflict is None and part.deletes:
            after = apply(state.live_in(part.buckets), part.entries)
            conflict = after if isinstance(after, Conflict) else None
        if conflict is None and self._evolves and any(entry.file.first_row_id is not None for entry in part.adds):
            conflict = column_conflict(self._schema, part, state.live_in(part.buckets), state.index)
        return conflict or self._with_index(state, part)

    def _with_index(self, state: State, part: SnapshotDelta) -> SnapshotDelta | Conflict:
        changes = self._numbering.current
        if not any(bucket.written.changes_index for bucket in with_index(changes.buckets)):
            return part
        changed = written_index(with_index(changes.buckets))
        conflict = missing_index(state.index, changed)
        if conflict is not None:
            return conflict
        after = index_after(state.index, changed, by_bucket=bool(self._schema.primary_keys))
        hashed = self._hashes.after(after, state, changes)
        if isinstance(hashed, Conflict):
            return hashed
        return part if hashed == state.index else msgspec.structs.replace(part, index=hashed)


class OverwriteProposal:
    """Proposes new files that replace all others of some partitions. Attempts change nothing."""

    def __init__(
        self, schema: TableSchema, changes: Changes, chosen: PartitionChoice, request: CommitRequest,
        requires: Requirements,
    ) -> None:  # fmt: skip
        self._schema = schema
        self._changes = changes
        self._chosen = chosen
        self._spares_waiting = request.spares_waiting or bucket_mode(schema) is not BucketMode.POSTPONED
        upgrades = request.upgrades or Options(schema.options).get_bool("overwrite-upgrade")
        self._adds = _upgrade(schema, changes) if upgrades else write_part(changes.buckets).adds
        self.requirements = requires.of_overwrite()

    def part(self, state: State) -> SnapshotDelta | Conflict:
        """The new files, and the files that they replace."""
        conflict = bucket_count_conflict(self._adds, {})
        if conflict is not None:
            return conflict
        live = state.live(self._chosen)
        if self._spares_waiting:
            live = [entry for entry in live if entry.bucket != POSTPONE_BUCKET]
        index = state.index
        if index:
            gone = self._chosen(binary_array([entry.partition for entry in index])).tolist()
            index = tuple(entry for entry, is_gone in zip(index, gone, strict=True) if not is_gone)
        index = replaced_hashes(index, self._changes.buckets)
        return overwrite_part(self._adds, live, None if index == state.index else index)


class CompactProposal:
    """Proposes the compactions that still fit.

    An attempt may drop compactions (`fit`).

    Attributes:
        fit: the changes with the compactions that the last attempt kept, and why it dropped the others.
    """

    def __init__(
        self, schema: TableSchema, changes: Changes, requires: Requirements, written: Published | None, *,
        replaces: bool,
    ) -> None:  # fmt: skip
        """`written`: the snapshot of the same changes published before; `replaces`: it replaced other rows."""
        self._schema = schema
        self._changes = changes
        self._written = written is not None
        self._parent = None if written is None else written.parent
        self._follows_rows = written is not None and bool(schema.primary_keys) and not replaces
        self._replaces = replaces
        self.fit = Fit(changes.buckets, {})
        self.requirements: Sequence[Requirement] = (
            () if written else (requires.same_table, requires.same_rules, self._new, requires.files_there)
        )

    def part(self, state: State) -> SnapshotDelta | Conflict | Already:
        """The compactions that still fit; a conflict if none does, unless an earlier call published some of them."""
        buckets, keyed = self._changes.buckets, bool(self._schema.primary_keys)
        part = compact_part(buckets)
        live = state.live_in(part.buckets)
        leveled = [entry for entry in (*live, *part.adds) if entry.file.level >= 1] if keyed else []
        ranks = {placed.name: (placed.min_rank, placed.max_rank) for placed in placed_by_key(self._schema, leveled)}
        passed_over = (
            foreign_files(buckets, lambda base: self._files_added_by_others(state.snapshot_log, base), live)
            if self._follows_rows else {}
        )
        self.fit = fit_compactions(buckets, live, ranks, index=state.index, keyed=keyed, passed_over=passed_over)
        part = compact_part(self.fit.buckets)
        if self._replaces:
            part = msgspec.structs.replace(part, changelog=())
        if part.is_empty:
            again = not self._written and self._was_published(state)
            return Already() if again else next(iter(self.fit.dropped.values()))
        returning = state.returning(part)
        if returning is not None:
            return Conflict(
                f"file {returning.file.name} had the same entry before; merge the manifests first (compact_manifests)"
            )
        after = index_after(state.index, compacted_index(self.fit.buckets), by_bucket=keyed)
        return part if after == state.index else msgspec.structs.replace(part, index=after)

    def drop_all(self, reason: str) -> None:
        """Drop every compaction: none could be published."""
        buckets = self._changes.buckets
        dropped = {at: Conflict(reason) for at, bucket in enumerate(buckets) if bucket.compacted.deleted}
        self.fit = Fit(pack_buckets(bucket.without_compaction() for bucket in buckets), dropped)

    def _new(self, state: State) -> Already | None:
        buckets = self._changes.buckets
        return Already() if is_committed(buckets, state.live_in(compact_part(buckets).buckets)) else None

    def _was_published(self, state: State) -> bool:
        """Whether some of these compactions are or were in the table: an earlier call may have dropped others.

        Cost: a get for each snapshot since the changes were made, and two for its delta.
        """
        made = {file.name for bucket in self._changes.buckets for file in bucket.compaction_files}
        history = state.snapshot_log.after(self._changes.base, state.latest)
        names = history if isinstance(history, HistoryGap) else history.added_names()
        known = (entry.file.name for entry in state.live()) if isinstance(names, HistoryGap) else names.to_pylist()
        return not made.isdisjoint(known)

    def _files_added_by_others(self, snapshot_log: SnapshotLog, base: Base) -> frozenset[str] | None:
        """Names of the files that others added after a snapshot and before the files that this commit has written.

        None also if rows were removed in between: a key that was looked up may be gone without a new file.
        """
        history = snapshot_log.after(base, self._parent)
        if isinstance(history, HistoryGap) or any(one.commit_kind is CommitKind.OVERWRITE for one in history.snapshots):
            return None
        names = history.added_names()
        return None if isinstance(names, HistoryGap) else frozenset(names.to_pylist())


def placed_by_key(schema: TableSchema, entries: Sequence[ManifestEntry]) -> list[LevelFile]:
    """Entries with the ranks of their keys."""
    if not entries:
        return []
    types = [field.type for field in schema.key_fields]
    lows, highs = key_ranks([e.file.min_key for e in entries], [e.file.max_key for e in entries], types)
    ranks = zip(entries, lows.tolist(), highs.tolist(), strict=True)
    return [LevelFile(e.partition, e.bucket, e.file.level, e.file.name, low, high) for e, low, high in ranks]


def _upgrade(schema: TableSchema, changes: Changes) -> Sequence[ManifestEntry]:
    """The new files of an overwrite, on the top level if they do not overlap."""
    options, adds = Options(schema.options), write_part(changes.buckets).adds
    if not adds or not schema.primary_keys or _compacts(changes.buckets):
        return adds
    levels = options.find_int("num-levels") or options.get_int("num-sorted-run.compaction-trigger") + 1
    ranks = {placed.name: (placed.min_rank, placed.max_rank) for placed in placed_by_key(schema, adds)}
    return upgrade(adds, ranks, levels - 1)


def _compacts(buckets: Sequence[BucketChanges]) -> bool:
    return any(not bucket.compacted.is_empty for bucket in with_compaction(buckets))
