"""Commits: which changes to publish, in which order, and the fate of their files.

Read from top to bottom: written files are published first, then compacted ones. Each is a proposal
(`proposals.py`), which `attempts.py` plans on the latest state, writes and publishes, until it is published or
certainly cannot be.

Source: docs/format.md §15; Java `FileStoreCommitImpl`; docs/reliability.md §6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paimon_py.codec.partition_choice import PartitionChoice
from paimon_py.commit.attempts import Attempts, Published, latest_of
from paimon_py.commit.changes import Changes, with_index
from paimon_py.commit.compaction_fit import PASSED_OVER, Fit
from paimon_py.commit.conflicts import Conflict
from paimon_py.commit.duplicate_check import DuplicateCheck
from paimon_py.commit.entry_lists import whole_row_count
from paimon_py.commit.hash_indexes import HashIndexes
from paimon_py.commit.key_follower import require_replacing
from paimon_py.commit.missing_files import check_origin, missing_file
from paimon_py.commit.next_snapshot import Author, batch_user
from paimon_py.commit.overwrite import DynamicOverwrite, Overwrite, replaced_partitions
from paimon_py.commit.proposals import CompactProposal, OverwriteProposal, Requirements, WriteProposal
from paimon_py.commit.request import CommitRequest
from paimon_py.commit.result import CommitResult
from paimon_py.commit.sequence_numbers import Renumber, SequenceAssignment
from paimon_py.commit.snapshot_delta import SnapshotDelta, compact_part, write_part
from paimon_py.commit.state import Already, Proposal, State, plan
from paimon_py.commit.uncommitted import delete_compaction, delete_made, delete_unnamed_index, discarding_on_failure
from paimon_py.commit.validate_changes import validate_changes
from paimon_py.env import is_distant
from paimon_py.errors import CommitConflictError, CommitUnknownError, PaimonError
from paimon_py.logs import COMPACTIONS, fields
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.commit_label import CommitLabel
from paimon_py.spec.data_file import ManifestEntry
from paimon_py.spec.options import Options
from paimon_py.spec.snapshot import BATCH_COMMIT_IDENTIFIER, Base, Snapshot, SnapshotId, StepSnapshotId
from paimon_py.spec.users import StepNumber

__all__ = [
    "CommitLabel", "CommitRequest", "CommitResult", "DynamicOverwrite", "Overwrite", "commit", "committed_before",
]  # fmt: skip


def commit(
    table: OpenTable,
    changes: Changes,
    request: CommitRequest,
    *,
    renumber: Renumber | None = None,
) -> CommitResult:
    """Publish changes as one snapshot, or two if they contain a compaction.

    Empty changes create no snapshot, with or without an identifier, unless the table's options
    `snapshot.ignore-empty-commit` or `commit.force-create-snapshot` require one; an overwrite creates one even if it
    changes nothing, except a dynamic one without new files.

    Raises:
        UsageError: new files are outside the partition to overwrite, belong to another table, or do not exist.
        CorruptionError: changes from another process contain values that no snapshot may have.
        CommitConflictError: the changes do not fit what others committed; nothing was published.
        CommitRetriesExhaustedError: others won every race; nothing was published.
        CommitUnknownError: the snapshot may have been published; no file was deleted. The error carries the changes,
            which can be committed again.
        TableNotFoundError: the table was renamed or dropped.
        StorageError: the store failed; nothing was published.
    """
    return _Commit(table, changes, request, renumber).run()


def committed_before(
    table: OpenTable, label: CommitLabel, overwrite: Overwrite | None = None
) -> CommitResult | None:
    """The earlier commit of a user under a number; None if there is none, or the label has no number.

    `overwrite`: what the commit is going to replace.

    Cost: the latest snapshot, plus that of `UserHistory.last`.
    Raises:
        UsageError: the user has committed a larger number, and no commit under this number remains.
        CommitConflictError: the number was committed for another step of a stream; the step before it was rolled back
            in the table that is followed, and is still in this one; or it cannot be determined.
    """
    if label.identifier is None:
        return None
    latest, _ = latest_of(table.root)
    changes = Changes(schema_id=table.schema.id, base=Base.of(latest), buckets=(), branch=table.root.branch)
    found = _Commit(table, changes, CommitRequest(label=label, overwrite=overwrite), None).earlier(latest)
    return None if found is None else CommitResult.of_earlier(found.snapshots)


class _Looked:
    """The results of one parallel request: the latest snapshot, and the path of a new file that does not exist."""

    def __init__(self) -> None:
        self.latest: Snapshot | None = None
        self.missing: str | None = None


class _Commit:
    """One call of `commit`.

    Attempts change `numbering` (rewritten files), `hashes` (rewritten index files) and which compactions of a
    `CompactProposal` fit; nothing else changes.
    """

    def __init__(self, table: OpenTable, changes: Changes, request: CommitRequest, renumber: Renumber | None) -> None:
        self.root, self.schema, self.changes, self.request = table.root, table.schema, changes, request
        self.options = table.options
        self.files = table
        self.author = _author(table.root, self.options, changes, request)
        self.attempts = Attempts(table, self.author)
        self.numbering = SequenceAssignment(self.files, changes, renumber)
        self.hashes = HashIndexes(table)
        by_user = request.label.identifier is not None or request.label.user is None
        self.repeats = DuplicateCheck(
            self.attempts.snapshot_log, self.attempts.users, changes, self.author, by_user=by_user
        )
        self.requires = Requirements(table, changes, request, self.repeats)

    def run(self) -> CommitResult:
        """Run the commit."""
        if self.request.check_files:
            check_origin(self.files, self.changes)
            validate_changes(self.files, self.changes)
        looked = self._look()
        known = self._committed_before(looked)
        if known is not None:
            return self._already(known)
        if self.request.check_files:
            self.requires.missing = missing_file(self.files, self.changes) if looked is None else looked.missing
        try:
            return self._publish_all()
        except CommitUnknownError as error:
            error.changes = bytes(self.numbering.current)
            error.user, error.identifier = self.request.label.user, self.request.label.identifier
            raise

    def _publish_all(self) -> CommitResult:
        proposal = self._write_proposal()
        written = None if proposal is None else self._publish(proposal)
        if isinstance(written, Already):
            return self._already(written)
        if written is not None:
            self._tidy(written.part)
        return self._result(written, *self._publish_compaction(written))

    # -- what to publish --------------------------------------------------------------------------------------------

    def _look(self) -> _Looked | None:
        """The latest snapshot and the first missing file, fetched in parallel; None if that saves no time."""
        if self.request.label.identifier is None or not self.request.check_files or not is_distant(self.root.path):
            return None
        looked = _Looked()

        def snapshot() -> None:
            looked.latest, newest = latest_of(self.root)
            self.attempts.seen = looked.latest, newest

        def files() -> None:
            looked.missing = missing_file(self.files, self.changes)

        self.root.env.at_once(self.root.path, [snapshot, files])
        return looked

    def _committed_before(self, looked: _Looked | None) -> Already | None:
        """The commit that had this identifier, or these files; looked up before anything is written."""
        if self.request.label.identifier is None:
            return None
        if looked is None:
            latest, _ = self.attempts.seen = latest_of(self.root)
            return self.earlier(latest)
        return self.earlier(looked.latest)

    def earlier(self, latest: Snapshot | None) -> Already | None:
        """The commit up to a snapshot that had this identifier, or these files.

        Raises: UsageError, CommitConflictError
        """
        state = State(self.files, latest, self.attempts.snapshot_log)
        found = self.repeats(state)
        if isinstance(found, Conflict):
            raise CommitConflictError(f"nothing was committed: {found.reason}", table=self.root.path)
        return found

    def _write_proposal(self) -> Proposal | None:
        """The proposal for written files; None if there is nothing to publish."""
        part, overwrite = write_part(self.changes.buckets), self.request.overwrite
        if overwrite is None:
            wants_empty = self.options.get_bool("commit.force-create-snapshot")
            wants_empty = wants_empty or self.options.find_str("snapshot.ignore-empty-commit") == "false"
            index = with_index(self.changes.buckets)
            has_index = any(bucket.written.added_index != bucket.written.deleted_index for bucket in index)
            if part.is_empty and not has_index and not (wants_empty and self.changes.is_empty):
                return None
            return WriteProposal(self.schema, part, self.numbering, self.hashes, self.requires)
        if isinstance(overwrite, DynamicOverwrite) and not part.adds:
            return None
        require_replacing(self.changes)
        if self.requires.missing is None:
            self.numbering.follow({})
        chosen = replaced_partitions(overwrite, sorted(part.partitions))
        return OverwriteProposal(self.schema, self.numbering.current, chosen, self.request, self.requires)

    def _publish_compaction(self, written: Published | None) -> tuple[Published | Already | None, dict[int, Conflict]]:
        """Publish the compactions as well, on top of the written files.

        Returns: the outcome, and why compactions were dropped, by position. A compaction that does not fit is dropped,
            unless there is nothing else to keep.
        """
        changes = self.numbering.current
        moved = {at: PASSED_OVER for at in self.numbering.moved if self.changes.buckets[at].compacted.deleted}
        if compact_part(changes.buckets).is_empty:
            return None, moved
        replaces = self.request.overwrite is not None
        proposal = CompactProposal(self.schema, changes, self.requires, written, replaces=replaces)
        done: Published | Already | None = None
        try:
            done = self._publish(proposal, keeps=written)
        except PaimonError as error:
            if written is None or isinstance(error, CommitUnknownError):
                raise
            proposal.drop_all(str(error))
        if isinstance(done, Already):
            if self.request.is_new:
                self.files.delete_index([entry for bucket in changes.buckets for entry in bucket.compacted.made_index])
            return done, moved
        if proposal.fit.dropped:
            why = next(iter(proposal.fit.dropped.values())).reason
            COMPACTIONS.info(
                "%s: %d buckets stay uncompacted: %s", self.root.path, len(proposal.fit.dropped), why,
                extra=fields(self.root, buckets=len(proposal.fit.dropped)),
            )  # fmt: skip
            self._delete_dropped(proposal.fit, written)
        return done, {**proposal.fit.dropped, **moved}

    def _result(
        self, written: Published | None, compacted: Published | Already | None, dropped: Mapping[int, Conflict]
    ) -> CommitResult:
        """The result of the commit; rows and files are those of its first snapshot."""
        done = [one for one in (written, compacted) if isinstance(one, Published)]
        ids = tuple(SnapshotId.of(one.snapshot) for one in done)
        adds: Sequence[ManifestEntry] = done[0].part.adds if done else ()
        return CommitResult(
            snapshot_id=ids[-1] if ids else None,
            snapshot_ids=ids,
            before=SnapshotId.of(done[0].parent) if done else None,
            already_committed=written is None and isinstance(compacted, Already),
            row_count=whole_row_count(adds),
            file_count=len(adds),
            attempts=self.attempts.count,
            dropped_compaction=dropped[min(dropped)].reason if dropped else None,
            dropped_buckets=tuple(self.changes.buckets[at].place for at in sorted(dropped)),
        )

    def _already(self, done: Already) -> CommitResult:
        """The result if the changes are already in the table.

        Their files are kept: the call that published some may be about to publish others. But if the identifier was
        committed with other files, these files will never be published.
        """
        if self.request.label.identifier is not None and self.repeats.are_foreign():
            delete_made(self.files, self.changes.buckets)
            made = [entry for bucket in with_index(self.changes.buckets) for entry in bucket.written.made_index]
            delete_unnamed_index(self.files, self.changes, made)
        return CommitResult.of_earlier(done.snapshots, self.attempts.count)

    # -- publishing, and files --------------------------------------------------------------------------------------

    def _publish(self, proposal: Proposal, *, keeps: Published | None = None) -> Published | Already:
        """Try until the snapshot is published or certainly cannot be; then delete the files that this commit wrote.

        `keeps`: the snapshot that was published before, which references the files that this commit wrote.
        """
        with discarding_on_failure(lambda: None if keeps else self._discard()):
            done = self.attempts.publish(lambda state: plan(proposal, state))
        if isinstance(done, Already) and not keeps:
            self._discard()
        return done

    def _discard(self) -> None:
        """Delete the files that this commit wrote and no snapshot references. Files of the changes are kept."""
        self.hashes.discard()
        self.numbering.discard()

    def _tidy(self, part: SnapshotDelta) -> None:
        """Delete files of the changes that the published snapshot does not use."""
        self.numbering.delete_replaced()
        if self.request.overwrite is not None:
            for bucket in self.changes.buckets:
                self.files.bucket(*bucket.place).delete(bucket.written.changelog + bucket.compacted.changelog)
        made = [entry for bucket in with_index(self.changes.buckets) for entry in bucket.written.made_index]
        named = {entry.name for entry in part.index or ()}
        delete_unnamed_index(self.files, self.changes, [entry for entry in made if entry.name not in named])

    def _delete_dropped(self, fit: Fit, written: Published | None) -> None:
        """Delete the files of dropped compactions, unless the same changes were committed before.

        This is impossible for a bucket whose rows were just published.
        """
        kept = {file.name for bucket in fit.buckets for file in bucket.made_files}
        known = self.repeats.names_since(self.changes.base)
        for bucket in (self.changes.buckets[at] for at in fit.dropped):
            if written is not None and bucket.written.added:
                delete_compaction(self.files, bucket, keep=kept | (known or set()))
            elif known is not None:
                files = [file for file in bucket.compaction_files if file.name not in kept | known]
                self.files.bucket(*bucket.place).delete(files)
                delete_unnamed_index(self.files, self.changes, bucket.compacted.made_index)


def _author(root: TableRoot, options: Options, changes: Changes, request: CommitRequest) -> Author:
    marks = [mark for mark in (request.watermark, changes.watermark) if mark is not None]
    user = request.label.user or batch_user(changes) or root.env.ids.uuid()
    prefix = options.find_str("commit.user-prefix")
    identifier = request.label.identifier
    step = identifier if isinstance(identifier, (StepNumber, StepSnapshotId)) else None
    return Author(
        user=f"{prefix}_{user}" if prefix and not request.label.user else user,
        identifier=BATCH_COMMIT_IDENTIFIER if identifier is None else int(identifier),
        watermark=max(marks, default=None),
        properties=request.properties,
        operation=request.operation,
        same_rows=request.same_rows,
        source=None if step is None else step.source,
        source_history=None if step is None or _replaces_all(request) else step.history,
    )


def _replaces_all(request: CommitRequest) -> bool:
    """Whether a commit leaves no row of an earlier one."""
    return isinstance(request.overwrite, PartitionChoice) and request.overwrite.is_all
