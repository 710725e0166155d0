"""Committing: what to publish of changes, in which order, and what becomes of their files.

Source: format.md §15; Java `FileStoreCommitImpl`; notes on reliability §6.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

import msgspec

from paimon_py.codec.columns import binary_array
from paimon_py.codec.partition_choice import PartitionChoice
from paimon_py.commit.attempts import Already, Attempts, Planned, Planner
from paimon_py.commit.changes import BucketChanges, Changes
from paimon_py.commit.compaction_fit import (
    PASSED_OVER,
    fit_compactions,
    is_committed,
    strangers,
    without_compaction,
)
from paimon_py.commit.conflicts import (
    Conflict,
    Placed,
    bucket_count_conflict,
    deletion_conflict,
    is_same_table,
    schema_conflict,
)
from paimon_py.commit.deletion_index import index_entries
from paimon_py.commit.foreign import Foreign, base_of, committed_by, names_added
from paimon_py.commit.hash_plan import HashIndexes, replaced_hashes
from paimon_py.commit.index_plan import (
    compacted_index,
    index_after,
    made_index,
    missing_index,
    written_files,
    written_index,
)
from paimon_py.commit.key_base import KeyFollower, require_replacing
from paimon_py.commit.leftovers import delete_files, delete_index_files, delete_unnamed_index_files
from paimon_py.commit.numbering import Numbering, Renumber
from paimon_py.commit.overwrite import DynamicOverwrite, Overwrite, replaced_partitions
from paimon_py.commit.plan import (
    Author,
    Bucket,
    Part,
    commit_user,
    compact_part,
    compaction_files,
    overwrite_part,
    own_files,
    upgraded,
    write_part,
)
from paimon_py.commit.presence import check_origin, missing_file
from paimon_py.commit.request import CommitRequest
from paimon_py.commit.result import CommitResult
from paimon_py.errors import (
    CommitUnknownError,
    PaimonError,
    UsageError,
)
from paimon_py.lsm.order import key_ranks
from paimon_py.metadata.entry_filter import EntryFilter
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode, counts_anew
from paimon_py.spec.data_file import DataFile, ManifestEntry
from paimon_py.spec.layout import POSTPONE_BUCKET
from paimon_py.spec.manifest import IndexEntry
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import BATCH_COMMIT_IDENTIFIER, Base, CommitKind, Snapshot

__all__ = ["CommitRequest", "CommitResult", "DynamicOverwrite", "Overwrite", "Renumber", "commit"]


def commit(
    root: TableRoot, schema: TableSchema, changes: Changes, request: CommitRequest, *, renumber: Renumber
) -> CommitResult:
    """Publish changes as one snapshot, or two if they hold a compaction.

    An empty batch makes no snapshot, with or without an identifier, unless the table's options
    `snapshot.ignore-empty-commit` or `commit.force-create-snapshot` ask for one; an overwrite makes one even if it
    changes nothing, except a dynamic one without new files.

    Raises:
        UsageError: new files lie outside the partition to overwrite, are of another table, or are not there.
        CommitConflictError: the changes do not fit what others committed; nothing was published.
        CommitRetriesExhaustedError: others won every race; nothing was published.
        CommitUnknownError: the snapshot may have been published; no file was deleted. The same call may be repeated.
        StorageError: the store failed; nothing was published.
    """
    return _Commit(root, schema, changes, request, renumber).run()


class _Commit:
    """One call of `commit`."""

    def __init__(
        self, root: TableRoot, schema: TableSchema, changes: Changes, request: CommitRequest, renumber: Renumber
    ) -> None:
        self.root = root
        self.schema = schema
        self.changes = changes
        self.request = request
        self.options = Options(schema.options)
        self.has_written = False
        self.parent: Snapshot | None = None
        self.missing: str | None = None
        self.fitting = changes
        self.dropped: dict[int, Conflict] = {}
        marks = [mark for mark in (request.watermark, changes.watermark) if mark is not None]
        self.author = Author(
            user=request.user or self._batch_user(),
            identifier=BATCH_COMMIT_IDENTIFIER if request.identifier is None else request.identifier,
            watermark=max(marks, default=None),
            properties=request.properties,
            operation=request.operation,
        )
        self.attempts = Attempts(root, schema, self.author)
        self.numbering = Numbering(changes, renumber, self._delete)
        self.keeps_numbers = self.options.get_bool("sequence.snapshot-ordering") or counts_anew(schema)
        part = write_part(changes)
        self.numbered = bool(schema.primary_keys) or any(entry.total_buckets > 0 for entry in part.adds)
        replaces = request.overwrite is not None
        self.base = base_of(root, changes)
        self.hashes = HashIndexes(root, schema, self.base)
        self.keys = None if changes.keys is None else KeyFollower(root, changes.keys)
        self.written_index = [entry for bucket in changes.buckets for entry in written_files(bucket)]
        self.named: frozenset[str] = frozenset()
        self.own_names = frozenset(entry.file.name for entry in part.adds)
        self.foreign = Foreign(
            root,
            self.base,
            part.partitions,
            self.own_names,
            deltas=(self.numbered and not replaces) or request.user is not None or request.check_files,
        )

    def run(self) -> CommitResult:
        """Commit."""
        replayed = self._replayed()
        if replayed is not None:
            return replayed
        if self.request.check_files:
            check_origin(self.root, self.schema, self.changes)
            self.missing = missing_file(self.root, self.schema, self.changes)
        result = CommitResult()
        planner = self._first_planner()
        if planner is not None:
            done = self._publish(planner)
            if isinstance(done, Already):
                self._delete_unnamed(self.written_index)
                known = (done.snapshot.id,) if done.snapshot else ()
                return CommitResult(
                    snapshot_id=known[0] if known else None,
                    snapshot_ids=known,
                    already_committed=True,
                    attempts=self.attempts.count,
                )
            self.has_written = True
            self._tidy()
            adds = write_part(self.numbering.current()).adds
            rows = sum(entry.file.row_count for entry in adds)
            result = CommitResult(snapshot_ids=(done.id,), row_count=rows, file_count=len(adds))
        result = self._with_compaction(result)
        ids = result.snapshot_ids
        return msgspec.structs.replace(result, snapshot_id=ids[-1] if ids else None, attempts=self.attempts.count)

    def _with_compaction(self, result: CommitResult) -> CommitResult:
        """Publish what was compacted, too; if that cannot be, it is dropped, unless there is nothing else to keep."""
        current = self.numbering.current()
        self.dropped = {at: PASSED_OVER for at in self.numbering.moved if self.changes.buckets[at].compact_before}
        if compact_part(current).is_empty:
            return self._with_dropped(result)
        moved = dict(self.dropped)
        try:
            done = self._publish(self._plan_compaction)
        except CommitUnknownError:
            raise
        except PaimonError as error:
            if not self.has_written:
                raise
            lost = {at: Conflict(str(error)) for at, bucket in enumerate(current.buckets) if bucket.compact_before}
            self.dropped = {**lost, **moved}
            self.fitting = msgspec.structs.replace(current, buckets=tuple(map(without_compaction, current.buckets)))
        else:
            if isinstance(done, Already):
                # others may have moved the same files, with index files of their own
                self._delete_unnamed([entry for bucket in current.buckets for entry in made_index(bucket)])
                return msgspec.structs.replace(result, already_committed=True)
            self.dropped.update(moved)
            result = msgspec.structs.replace(result, snapshot_ids=(*result.snapshot_ids, done.id))
            if not self.has_written:
                adds = compact_part(self.fitting).adds
                rows = sum(entry.file.row_count for entry in adds)
                result = msgspec.structs.replace(result, row_count=rows, file_count=len(adds))
        self._delete_compactions(at for at in self.dropped if at not in moved)
        return self._with_dropped(result)

    def _with_dropped(self, result: CommitResult) -> CommitResult:
        if not self.dropped:
            return result
        buckets = [self.changes.buckets[at] for at in sorted(self.dropped)]
        return msgspec.structs.replace(
            result,
            dropped_compaction=self.dropped[min(self.dropped)].reason,
            dropped_buckets=tuple((bucket.partition, bucket.bucket) for bucket in buckets),
        )

    # -- what to publish --------------------------------------------------------------------------------------------

    def _batch_user(self) -> str:
        user = commit_user(self.changes) or self.root.env.ids.uuid()
        prefix = self.options.find_str("commit.user-prefix")
        return f"{prefix}_{user}" if prefix else user

    def _replayed(self) -> CommitResult | None:
        """The answer to an identifier that the user has committed already; files made in vain are deleted."""
        if self.request.identifier is None:
            return None
        found = committed_by(self.root, self.author.user, self.request.identifier)
        if not found:
            return None
        known = names_added(self.root, self.base)
        if known is not None:
            self._delete([(b, [file for file in own_files(b) if file.name not in known]) for b in self.changes.buckets])
            self._delete_unnamed(self.written_index)
        ids = tuple(sorted(s.id for s in found if s.commit_identifier == self.request.identifier))
        return CommitResult(snapshot_id=ids[-1] if ids else None, snapshot_ids=ids, already_committed=True)

    def _first_planner(self) -> Planner | None:
        """How to plan what was written; None if there is nothing to publish."""
        part = write_part(self.changes)
        if self.request.overwrite is not None:
            if isinstance(self.request.overwrite, DynamicOverwrite) and not part.adds:
                return None
            require_replacing(self.changes)
            if self.missing is None:
                self._renumber({})
            adds = self._upgraded(write_part(self.numbering.current()).adds)
            partitions = sorted(part.partitions)
            matches = replaced_partitions(self.request.overwrite, partitions)
            return lambda latest: self._plan_overwrite(latest, adds, matches)
        wants_empty = self.options.get_bool("commit.force-create-snapshot")
        wants_empty = wants_empty or self.options.find_str("snapshot.ignore-empty-commit") == "false"
        has_work = not part.is_empty or any(b.new_index != b.deleted_index for b in self.changes.buckets)
        return self._plan_write if has_work or (wants_empty and self.changes.is_empty) else None

    def _plan_write(self, latest: Snapshot | None) -> Planned:
        self.parent = latest
        conflict = self._changed_meanwhile(latest)
        if conflict is not None:
            return conflict
        if self.attempts.count == 1 or self.numbered:
            self.foreign.advance(latest)
        already = self._already()
        if already is not None:
            return already
        overtaken = self._moved_keys(latest) or (self.request.check(latest) if self.request.check is not None else None)
        if overtaken is not None:
            return overtaken
        self._require_files()
        if self.numbered:
            self._renumber(self.foreign.highest)
        current = self.numbering.current()
        part = write_part(current)
        conflict = bucket_count_conflict(part.adds, self.foreign.bucket_counts)
        if conflict is None and part.deletes:
            conflict = deletion_conflict(self._live(latest, part), part.entries)
        return conflict or self._with_index(latest, part, current)

    def _moved_keys(self, latest: Snapshot | None) -> Conflict | None:
        """Whether a key that can move between partitions may lie elsewhere than its writer knew."""
        if self.keys is None or not any(bucket.new_files for bucket in self.changes.buckets):
            return None
        return self.keys.advance(latest) or self.keys.missing()

    def _with_index(self, latest: Snapshot | None, part: Part, current: Changes) -> Part | Conflict:
        """The part with the index files that the table has after it."""
        if not any(bucket.new_index or bucket.deleted_index for bucket in current.buckets):
            return part
        index = index_entries(self.root, latest)
        changed = written_index(current.buckets)
        conflict = missing_index(index, changed)
        if conflict is not None:
            return conflict
        after = index_after(index, changed, by_bucket=bool(self.schema.primary_keys))
        hashed = self.hashes.after(after, latest, current.buckets)
        if isinstance(hashed, Conflict):
            return hashed
        self.named = frozenset(entry.name for entry in hashed)
        return part if hashed == index else msgspec.structs.replace(part, index=hashed)

    def _plan_overwrite(
        self, latest: Snapshot | None, adds: tuple[ManifestEntry, ...], matches: PartitionChoice
    ) -> Planned:
        conflict = self._changed_meanwhile(latest) or bucket_count_conflict(adds, {})
        if conflict is not None:
            return conflict
        if self.attempts.count == 1:
            self.foreign.advance(latest)
        live = []
        if latest is not None:
            live = self.root.manifests.live_entries(latest, EntryFilter(partitions=matches)).entries()
            if self.request.spares_waiting or bucket_mode(self.schema) is not BucketMode.POSTPONED:
                live = [entry for entry in live if entry.bucket != POSTPONE_BUCKET]
        self.foreign.own_names.update(self.own_names & {entry.file.name for entry in live})
        already = self._already()
        if already is not None:
            return already
        overtaken = self.request.check(latest) if self.request.check is not None else None
        if overtaken is not None:
            return overtaken
        self._require_files()
        index = entries = index_entries(self.root, latest)
        if entries:
            gone = matches(binary_array([entry.partition for entry in entries])).tolist()
            index = tuple(entry for entry, is_gone in zip(entries, gone, strict=True) if not is_gone)
        index = replaced_hashes(index, self.numbering.current().buckets)
        self.named = frozenset(entry.name for entry in index)
        return overwrite_part(adds, live, None if index == entries else index)

    def _plan_compaction(self, latest: Snapshot | None) -> Planned:
        current = self.numbering.current()
        part = compact_part(current)
        live = self._live(latest, part)
        if not self.has_written:
            if is_committed(current.buckets, live):
                return Already(None)
            self._require_files()
        ranks = {}
        if self.schema.primary_keys:
            leveled = [entry for entry in (*live, *part.adds) if entry.file.level >= 1]
            ranks = {placed.name: (placed.min_rank, placed.max_rank) for placed in self._placed(leveled)}
        keyed = bool(self.schema.primary_keys)
        index = index_entries(self.root, latest)
        passed_over = {}
        if self.has_written and keyed and self.request.overwrite is None:
            passed_over = strangers(current.buckets, cache(self._added_since), live)
        fit = fit_compactions(current.buckets, live, ranks, index=index, keyed=keyed, passed_over=passed_over)
        self.fitting, self.dropped = msgspec.structs.replace(current, buckets=fit.buckets), fit.dropped
        part = compact_part(self.fitting)
        if part.is_empty:
            return next(iter(fit.dropped.values()))
        after = index_after(index, compacted_index(fit.buckets), by_bucket=keyed)
        return part if after == index else msgspec.structs.replace(part, index=after)

    def _added_since(self, base: Base) -> set[str] | None:
        """Names of the files that others added after a snapshot and before what this commit has written.

        None also if rows were taken away in between: a key that was looked up may be gone without a new file.
        """
        if base.is_of(self.parent):
            return set()
        last_id = 0 if self.parent is None else self.parent.id
        between = map(self.root.snapshots.find, range(base.id + 1, last_id + 1))
        if any(snapshot is None or snapshot.commit_kind is CommitKind.OVERWRITE for snapshot in between):
            return None
        return names_added(self.root, base, last_id=last_id)

    def _changed_meanwhile(self, latest: Snapshot | None) -> Conflict | None:
        expected = self.request.expected_snapshot_id
        if expected is not None and expected != (latest.id if latest else 0):
            return Conflict(f"the latest snapshot is {latest.id if latest else 'none'}, not {expected} as expected")
        written = {file.schema_id for bucket in self.changes.buckets for file in bucket.new_files}
        now = self.root.schemas.latest() if written else None
        if now and not is_same_table(self.root.schemas.get(self.schema.id), self.schema):
            return Conflict(f"schema {self.schema.id} is not what it was: {self.root.path} is another table now")
        conflicts = (schema_conflict(self.root.schemas.get(number), now) for number in sorted(written) if now)
        return next((conflict for conflict in conflicts if conflict is not None), None)

    def _already(self) -> Already | Conflict | None:
        """Whether these files are in the table: the answer to an earlier commit was lost, or the caller repeats it."""
        for snapshot in self.foreign.snapshots:
            if (snapshot.commit_user, snapshot.commit_identifier) == (self.author.user, self.author.identifier) and (
                self.request.identifier is not None or self.request.user is None
            ):
                return Already(snapshot)
        own = self.foreign.own_names
        if not own:
            return None
        return Already(None) if own >= self.own_names else Conflict(f"file {min(own)} is in the table already")

    def _require_files(self) -> None:
        """Refuse to name files that are not there; asked after `_already`, since a commit may have replaced them."""
        if self.missing is not None:
            raise UsageError(
                f"nothing was committed: {self.missing} is not there as it was written. The changes are of another "
                "table, or their files were deleted since; write the rows again and commit what that returns"
            )

    # -- publishing -------------------------------------------------------------------------------------------------

    def _renumber(self, highest: Mapping[Bucket, int]) -> None:
        """Let our rows come after all that was committed before them. A bucket that moves loses its compaction."""
        if not self.keeps_numbers:
            self.numbering.follow(highest)

    def _publish(self, planner: Planner) -> Snapshot | Already:
        """Try until the snapshot is published, or certainly cannot be; then what this commit wrote is deleted."""
        try:
            done = self.attempts.publish(planner)
        except CommitUnknownError:
            raise
        except PaimonError:
            self._give_up()
            raise
        if isinstance(done, Already):
            self._give_up()
        return done

    # -- files ------------------------------------------------------------------------------------------------------

    def _live(self, latest: Snapshot | None, part: Part) -> list[ManifestEntry]:
        """Live files of the buckets that a part touches."""
        if latest is None:
            return []
        wanted = part.buckets
        partitions = PartitionChoice.of_rows(part.partitions)
        numbers = frozenset(bucket for _, bucket in wanted)
        live = self.root.manifests.live_entries(latest, EntryFilter(partitions=partitions, buckets=numbers)).entries()
        return [entry for entry in live if (entry.partition, entry.bucket) in wanted]

    def _upgraded(self, adds: tuple[ManifestEntry, ...]) -> tuple[ManifestEntry, ...]:
        upgrades = self.request.upgrades or self.options.get_bool("overwrite-upgrade")
        if not adds or not self.schema.primary_keys or not upgrades:
            return adds
        if not compact_part(self.numbering.current()).is_empty:
            return adds
        levels = self.options.find_int("num-levels") or self.options.get_int("num-sorted-run.compaction-trigger") + 1
        ranks = {placed.name: (placed.min_rank, placed.max_rank) for placed in self._placed(adds)}
        return upgraded(adds, ranks, levels - 1)

    def _placed(self, entries: Sequence[ManifestEntry]) -> list[Placed]:
        """Entries with the ranks of their keys."""
        if not entries:
            return []
        types = [field.type for field in self.schema.key_fields]
        lows, highs = key_ranks([e.file.min_key for e in entries], [e.file.max_key for e in entries], types)
        ranks = zip(entries, lows.tolist(), highs.tolist(), strict=True)
        return [Placed(e.partition, e.bucket, e.file.level, e.file.name, low, high) for e, low, high in ranks]

    def _tidy(self) -> None:
        """After publication: delete files that the snapshot does without."""
        self._delete(self.numbering.replaced())
        for position, bucket in enumerate(self.changes.buckets):
            if position in self.numbering.moved:
                delete_index_files(self.root, self.schema, made_index(bucket))
            elif self.request.overwrite is not None:
                self._delete([(bucket, bucket.changelog_files)])
        self._delete_unnamed([entry for entry in self.written_index if entry.name not in self.named])

    def _give_up(self) -> None:
        """After a certain failure: delete what this commit wrote. The changes' own files are the caller's."""
        if not self.has_written:
            self.hashes.discard()
            self._delete(self.numbering.made())

    def _delete_compactions(self, positions: Iterable[int]) -> None:
        """Delete what dropped compactions made, unless the same changes were committed before.

        That cannot be of a bucket whose rows were published just now.
        """
        known = names_added(self.root, self.base)
        kept = {file.name for bucket in self.fitting.buckets for file in bucket.added_files} | (known or set())
        unsure: list[IndexEntry] = []
        for bucket in (self.changes.buckets[at] for at in positions):
            is_new = self.has_written and bool(bucket.new_files)
            if known is None and not is_new:
                continue
            self._delete([(bucket, [file for file in compaction_files(bucket) if file.name not in kept])])
            if is_new:
                delete_index_files(self.root, self.schema, made_index(bucket))
            else:
                unsure += made_index(bucket)
        self._delete_unnamed(unsure)

    def _delete_unnamed(self, made: Sequence[IndexEntry]) -> None:
        delete_unnamed_index_files(self.root, self.schema, self.changes, made)

    def _delete(self, gone: Iterable[tuple[BucketChanges, Sequence[DataFile]]]) -> None:
        """Delete data files that no snapshot names; what cannot be deleted stays as an orphan."""
        for bucket, files in gone:
            delete_files(self.root, self.schema, bucket.partition, bucket.bucket, files)
