"""Attempts at publishing a snapshot: plan on the latest one, write metadata, publish, classify what came of it, repeat.

Source: format.md §15; Java `FileStoreCommitImpl`; notes on reliability §6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, Union

import msgspec

from paimon_py.commit.conflicts import Conflict
from paimon_py.commit.drafts import Drafts
from paimon_py.commit.plan import Author, Limits, Part, next_snapshot, stamped
from paimon_py.commit.publish import Committed, Conflicted, LostRace, Outcome, Unknown, publish
from paimon_py.errors import (
    CommitConflictError,
    CommitRetriesExhaustedError,
    CommitUnknownError,
    PaimonError,
    SnapshotExpiredError,
)
from paimon_py.metadata.manifest_merge import ManifestSettings
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Snapshot


class Already(msgspec.Struct, frozen=True):
    """There is nothing to publish: somebody, we it seems, has committed this."""

    snapshot: Snapshot | None


Planned = Union[Part, Conflict, Already]
Planner = Callable[[Union[Snapshot, None]], Planned]


class Attempts:
    """Publishes the snapshots of one commit.

    Attributes:
        count: how often it was tried.
    """

    def __init__(
        self, root: TableRoot, schema: TableSchema, author: Author, settings: ManifestSettings | None = None
    ) -> None:
        """`settings`: for merging manifests, by default the table's."""
        options = Options(schema.options)
        self.count = 0
        self._root = root
        self._author = author
        self._limits = Limits.of(options)
        self._settings = settings or ManifestSettings.of(options)
        self._types = [field.type for field in schema.partition_fields]
        self._by_snapshot = options.get_bool("sequence.snapshot-ordering")
        self._retention_seconds = options.get_duration("snapshot.time-retained") / 1000

    def publish(self, planner: Planner) -> Snapshot | Already:
        """Try until the snapshot is published, or certainly cannot be.

        Raises:
            CommitConflictError: the plan does not fit what others committed.
            CommitRetriesExhaustedError: others won every race.
            CommitUnknownError: the snapshot may have been published; no file was deleted.
            StorageError: the store failed; nothing was published.
        """
        clock, ids = self._root.env.clock, self._root.env.ids
        drafts = Drafts(self._root, self._types, self._settings)
        began, lost = clock.elapsed(), 0
        while True:
            self.count += 1
            try:
                outcome = self._attempt(planner, drafts)
            except PaimonError:
                drafts.discard()
                raise
            match outcome:
                case Committed(snapshot):
                    return snapshot
                case Already():
                    drafts.discard()
                    return outcome
                case Conflicted(conflict):
                    drafts.discard()
                    raise CommitConflictError(f"nothing was committed: {conflict.reason}", table=self._root.path)
                case Unknown(reason, snapshot_id):
                    raise CommitUnknownError(
                        f"it is not known whether snapshot {snapshot_id} was published: {reason}. No file was deleted;"
                        " commit the same changes again, it is recognised if they are in the table",
                        table=self._root.path,
                        snapshot_id=snapshot_id,
                    )
                case LostRace(reason):
                    drafts.forget_attempt()
                case _:
                    _never(outcome)
            lost += 1
            if self._limits.are_exhausted(lost, clock.elapsed() - began):
                drafts.discard()
                raise CommitRetriesExhaustedError(
                    f"other writers were faster {lost} times (last: {reason}); nothing was committed."
                    " Try again, or raise commit.max-retries or commit.timeout",
                    table=self._root.path,
                )
            clock.sleep(self._limits.wait_seconds(lost, ids.jitter()))

    def _attempt(self, planner: Planner, drafts: Drafts) -> Outcome | Already:
        clock = self._root.env.clock
        started = clock.elapsed()
        latest = self._root.snapshots.latest()
        try:
            planned = planner(latest)
            if isinstance(planned, Conflict):
                return Conflicted(planned)
            if isinstance(planned, Already) or (planned.is_manifest_merge and not drafts.merges(latest)):
                return planned if isinstance(planned, Already) else Already(latest)
            if self._by_snapshot:
                planned = stamped(planned, latest.id + 1 if latest else 1)
            written = drafts.write(latest, planned)
        except SnapshotExpiredError as error:
            return LostRace(str(error))
        snapshot = next_snapshot(
            latest,
            planned,
            written,
            self._author,
            schema_id=self._root.schemas.latest().id,
            uuid=self._root.env.ids.uuid(),
            time_millis=clock.millis(),
        )
        return publish(self._root, snapshot, latest, deadline=started + self._retention_seconds / 2)


def _never(outcome: NoReturn) -> NoReturn:
    raise AssertionError(f"unexpected outcome {outcome}")
