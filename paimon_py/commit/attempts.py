"""Attempts to publish a snapshot: plan on the latest one, write metadata, publish, classify the outcome, repeat.

Source: docs/format.md §15; Java `FileStoreCommitImpl`, `RetryWaiter`; docs/reliability.md §6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NoReturn, cast

import msgspec

from paimon_py.commit.conflicts import Conflict
from paimon_py.commit.drafts import Drafts
from paimon_py.commit.entry_lists import row_count, whole_row_count
from paimon_py.commit.key_indexes import without_dead_indexes
from paimon_py.commit.next_snapshot import Author, next_snapshot
from paimon_py.commit.postponed_times import in_waiting_order
from paimon_py.commit.sequence_maximum import with_maximum
from paimon_py.commit.snapshot_delta import SnapshotDelta, stamp, track_rows
from paimon_py.commit.state import Already, Planned, State
from paimon_py.commit.strict_mode import StrictMode
from paimon_py.env import is_distant
from paimon_py.errors import (
    CommitConflictError,
    CommitRetriesExhaustedError,
    CommitUnknownError,
    PaimonError,
    SnapshotExpiredError,
)
from paimon_py.files.physical import tracks_rows
from paimon_py.logs import COMMITS, fields
from paimon_py.metadata.committer import Committed, LostRace, Publication, Unknown
from paimon_py.metadata.completeness import require_complete
from paimon_py.metadata.history import SnapshotLog
from paimon_py.metadata.manifest_merge import ManifestSettings
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import EventPlace, TableRoot
from paimon_py.metadata.users import UserHistory
from paimon_py.spec.events import CommitEvent, ConflictEvent, RaceEvent
from paimon_py.spec.iceberg import writes_iceberg
from paimon_py.spec.key_indexes import index_columns
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.sequence_property import keeps_sequence_property
from paimon_py.spec.snapshot import Snapshot
from paimon_py.storage.store import FileMissingError

PATIENCE_SECONDS = 60.0
"""The time before which a commit does not give up, however many races it loses, unless `commit.max-retries` is set."""

_ATTEMPT_SECONDS = 5.0
"""The least time limit of an attempt, however short snapshots are retained: the parent is checked again afterwards."""


class Published(msgspec.Struct, frozen=True):
    """A snapshot of this commit, its delta, and its parent."""

    snapshot: Snapshot
    part: SnapshotDelta
    parent: Snapshot | None


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of retries after lost races; `count_max` None: ten, but not before PATIENCE_SECONDS."""

    count_max: int | None
    timeout_seconds: float | None
    first_wait_seconds: float
    longest_wait_seconds: float

    @classmethod
    def of(cls, options: Options) -> Limits:
        """The limits in a table's options."""
        timeout = options.find_duration("commit.timeout")
        return cls(
            count_max=options.get_int("commit.max-retries") if options.is_set("commit.max-retries") else None,
            timeout_seconds=None if timeout is None else timeout / 1000,
            first_wait_seconds=options.get_duration("commit.min-retry-wait") / 1000,
            longest_wait_seconds=options.get_duration("commit.max-retry-wait") / 1000,
        )

    def are_exhausted(self, lost: int, elapsed_seconds: float) -> bool:
        """Whether a commit gives up after `lost` lost races."""
        if self.timeout_seconds is not None and elapsed_seconds > self.timeout_seconds:
            return True
        if self.count_max is not None:
            return lost > self.count_max
        return lost > 10 and elapsed_seconds > PATIENCE_SECONDS

    def wait_seconds(self, lost: int, jitter: float) -> float:
        """The wait after the n-th lost race: exponential, bounded, multiplied by `jitter` (0 ≤ jitter < 1)."""
        longest = min(self.first_wait_seconds * 2.0 ** min(lost - 1, 30), self.longest_wait_seconds)
        return longest * jitter


class Attempts:
    """Publishes the snapshots of one commit.

    Attributes:
        count: the number of attempts.
        snapshot_log: the known snapshots of the table.
        seen: the latest snapshot and schema, if just read: the first attempt plans on them.
        users: the history of users that number their commits.
    """

    def __init__(self, table: OpenTable, author: Author, settings: ManifestSettings | None = None) -> None:
        """`settings`: for merging manifests; by default those of the table."""
        options = table.options
        self.count = 0
        self.snapshot_log = SnapshotLog(table.root)
        self._table = table
        self._root = table.root
        self._schema = table.schema
        self._author = author
        self.seen: tuple[Snapshot | None, TableSchema | None] | None = None
        self.users = UserHistory(self.snapshot_log, table.root)
        self._strict_mode = StrictMode(table, author.user)
        self._limits = Limits.of(options)
        self._settings = settings or ManifestSettings.of(options)
        self._by_snapshot = options.get_bool("sequence.snapshot-ordering")
        self._has_indexes = bool(index_columns(options))
        self._is_shown = writes_iceberg(table.schema)
        self._keeps_maximum = keeps_sequence_property(options)
        self._tracks_rows = tracks_rows(table.schema)
        self._groups_rows = options.get_bool("row-tracking.partition-group-on-commit")
        self._patience_seconds = max(options.get_duration("snapshot.time-retained") / 2000, _ATTEMPT_SECONDS)

    def publish(self, plan: Callable[[State], Planned]) -> Published | Already:
        """Try until the snapshot is published, or certainly cannot be. `plan` is called before every attempt.

        Raises:
            CommitConflictError: the plan does not fit what others committed.
            CommitRetriesExhaustedError: others won every race.
            CommitUnknownError: the snapshot may have been published; no file was deleted.
            LockTimeoutError: others held the lock of the table; nothing was published.
            StorageError: the store failed; nothing was published.
        """
        self._root.store.require_new(self._root.path)
        clock, ids = self._root.env.clock, self._root.env.ids
        drafts = Drafts(self._root, [field.type for field in self._schema.partition_fields], self._settings)
        began, lost = clock.elapsed(), 0
        while True:
            self.count += 1
            try:
                outcome = self._attempt(plan, drafts)
            except PaimonError:
                drafts.discard()
                raise
            match outcome:
                case Published():
                    self._log(outcome, attempt=lost + 1, seconds=clock.elapsed() - began)
                    return outcome
                case Already():
                    drafts.discard()
                    return outcome
                case Conflict(reason):
                    drafts.discard()
                    raise self._conflict_error(reason)
                case Unknown(reason, snapshot_id):
                    raise self._unknown_error(reason, snapshot_id)
                case LostRace(reason, was_visible):
                    if was_visible:
                        drafts.discard()  # a list of its own gives the next snapshot another mark
                    else:
                        drafts.forget_attempt()
                case _:
                    _never(outcome)
            lost += 1
            if self._limits.are_exhausted(lost, clock.elapsed() - began):
                drafts.discard()
                raise self._exhausted_error(lost, reason)
            wait = self._limits.wait_seconds(lost, ids.jitter())
            self._report_race(lost, wait, reason)
            clock.sleep(wait)

    def _conflict_error(self, reason: str) -> CommitConflictError:
        COMMITS.warning(
            "%s: a conflict, nothing was committed: %s", self._root.path, reason,
            extra=fields(self._root, outcome="conflict"),
        )  # fmt: skip
        self._report_failure("conflict", reason)
        return CommitConflictError(f"nothing was committed: {reason}", table=self._root.path)

    def _unknown_error(self, reason: str, snapshot_id: int) -> CommitUnknownError:
        COMMITS.warning(
            "%s: was snapshot %d published? %s", self._root.path, snapshot_id, reason,
            extra=fields(self._root, snapshot_id=snapshot_id, outcome="unknown"),
        )  # fmt: skip
        self._report_failure("unknown", reason)
        return CommitUnknownError(
            f"it is not known whether snapshot {snapshot_id} was published: {reason}. No file was deleted;"
            " check whether its rows are in the table, or commit the changes of this error again"
            " (error.changes): they are recognised if they were committed",
            table=self._root.path,
            snapshot_id=snapshot_id,
        )

    def _exhausted_error(self, lost: int, reason: str) -> CommitRetriesExhaustedError:
        COMMITS.warning(
            "%s: gave up, others were faster %d times: %s", self._root.path, lost, reason,
            extra=fields(self._root, attempts=lost, outcome="given-up"),
        )  # fmt: skip
        self._report_failure("given-up", reason)
        return CommitRetriesExhaustedError(
            f"other writers were faster {lost} times (last: {reason}); nothing was committed."
            " Try again, or raise commit.max-retries or commit.timeout",
            table=self._root.path,
        )

    def _report_race(self, lost: int, wait: float, reason: str) -> None:
        COMMITS.info(
            "%s: attempt %d lost, the next one in %.2f s: %s", self._root.path, lost, wait, reason,
            extra=fields(self._root, attempt=lost, wait_seconds=wait),
        )  # fmt: skip
        if self._root.env.observers:
            event = RaceEvent(**self._root.event_place(), attempt=lost, wait_seconds=wait, reason=reason)
            self._root.env.observers.report_and_log(event)

    def _report_failure(self, outcome: Literal["conflict", "given-up", "unknown"], reason: str) -> None:
        observers = self._root.env.observers
        if observers:
            said = ConflictEvent(**self._root.event_place(), outcome=outcome, reason=reason, attempts=self.count)
            observers.report_and_log(said)

    def _log(self, done: Published, *, attempt: int, seconds: float) -> None:
        snapshot, part = done.snapshot, done.part
        COMMITS.info(
            "%s: snapshot %d, %s by %s: %d files added, %d deleted, %s rows; attempt %d, %.2f s",
            self._root.path, snapshot.id, snapshot.commit_kind.value, snapshot.commit_user, len(part.adds),
            len(part.deletes), snapshot.delta_record_count, attempt, seconds,
            extra=fields(
                self._root, snapshot_id=snapshot.id, commit_kind=snapshot.commit_kind.value, user=snapshot.commit_user,
                identifier=snapshot.commit_identifier, added_files=len(part.adds), deleted_files=len(part.deletes),
                rows=snapshot.delta_record_count, attempt=attempt, seconds=seconds,
            ),
        )  # fmt: skip
        upkeep = self._root.maintenance
        upkeep.committed, upkeep.committed_delta = snapshot, part.entries if self._is_shown else None
        if self._root.env.observers:
            upkeep.events.append(commit_event(self._root.event_place(), done, attempt, seconds))

    def _attempt(
        self, plan: Callable[[State], Planned], drafts: Drafts
    ) -> Published | Already | Conflict | LostRace | Unknown:
        root, clock = self._root, self._root.env.clock
        deadline = clock.elapsed() + self._patience_seconds
        latest, newest = self.seen or latest_of(root)
        self.seen = None
        state = State(self._table, latest, self.snapshot_log, newest)
        try:
            planned = self._strict_mode.check(plan(state), state)
            if not isinstance(planned, SnapshotDelta):
                return planned
            if planned.is_manifest_merge and not drafts.merges(latest):
                return Already()
            now = clock.local_millis()
            number = latest.id + 1 if latest else 1
            part = stamp(planned, number, now) if self._by_snapshot else planned
            part = in_waiting_order(part, state, now)
            if self._tracks_rows:
                part = track_rows(part, number, state.next_row_id, grouped=self._groups_rows)
            part = without_dead_indexes(part, state) if self._has_indexes else part
            author = with_maximum(self._author, part, state) if self._keeps_maximum else self._author
            lists = drafts.write(latest, part)
        except SnapshotExpiredError as error:
            return LostRace(str(error))
        except FileMissingError as error:  # another process that commits the same changes may have replaced files
            root.schemas.latest()
            if root.snapshots.latest() == latest:
                return Conflict(
                    f"{error.path} no longer exists: others committed the same changes and rolled back, or"
                    " discarded them; write the rows again and commit the new changes"
                )
            return LostRace(str(error))
        known = self.users.seen
        snapshot = next_snapshot(
            latest, part, lists, author, schema=state.newest_schema, uuid=root.env.ids.uuid(),
            time_millis=clock.millis(),
            known=known[1] if known is not None and latest is not None and known[0] == latest.mark else None,
        )  # fmt: skip
        done: Publication = root.committer().publish(snapshot, latest, deadline=deadline)
        return Published(done.snapshot, part, latest) if isinstance(done, Committed) else done


def commit_event(place: EventPlace, done: Published, attempts: int, seconds: float) -> CommitEvent:
    """The event of a published snapshot for observers."""
    snapshot, adds, deletes = done.snapshot, done.part.adds, done.part.deletes
    return CommitEvent(
        **place, snapshot_id=snapshot.id, schema_id=snapshot.schema_id, commit_kind=snapshot.commit_kind.value,
        operation=snapshot.operation, user=snapshot.commit_user, identifier=snapshot.commit_identifier,
        watermark=snapshot.watermark,
        added_files=len(adds), deleted_files=len(deletes),
        added_rows=whole_row_count(adds),
        deleted_rows=whole_row_count(deletes),
        added_bytes=sum(entry.file.size_bytes for entry in adds),
        deleted_bytes=sum(entry.file.size_bytes for entry in deletes),
        changelog_files=len(done.part.changelog),
        changelog_rows=row_count(done.part.changelog),
        total_rows=snapshot.total_record_count, attempts=attempts, seconds=seconds,
    )  # fmt: skip


def latest_of(root: TableRoot) -> tuple[Snapshot | None, TableSchema | None]:
    """The latest snapshot; and the latest schema if the store can return both at once, otherwise None.

    Raises:
        TableNotFoundError: the table no longer exists.
        CommitConflictError: the history is being truncated, or has a gap.
    """
    if not is_distant(root.path):
        latest = root.snapshots.latest()
        require_complete(root, latest)
        return latest, None
    asked: list[Callable[[], Snapshot | TableSchema | None]] = [root.snapshots.latest, root.schemas.latest]
    found, newest = root.env.at_once(root.path, asked)
    latest = cast("Snapshot | None", found)
    require_complete(root, latest)
    return latest, cast("TableSchema", newest)


def _never(outcome: NoReturn) -> NoReturn:
    raise AssertionError(f"unexpected outcome {outcome}")
