"""Streaming methods of `Table`: streaming reads, consumers, and idempotent writers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from paimon_py.arguments import as_list, as_python
from paimon_py.errors import CommitConflictError, UsageError
from paimon_py.expr.column_list import ColumnList
from paimon_py.expr.predicate import Predicate
from paimon_py.metadata.consumers import Consumer, Reset
from paimon_py.metadata.history import SnapshotLog
from paimon_py.scan.moments import age_of, as_age
from paimon_py.spec.bounds import is_long
from paimon_py.spec.options import Options
from paimon_py.spec.snapshot import BATCH_COMMIT_IDENTIFIER, StepSnapshotId
from paimon_py.spec.users import StepNumber
from paimon_py.table.verbs import TableVerbs, at_table_door, reads

if TYPE_CHECKING:
    from paimon_py.metadata.users import UserHistory
    from paimon_py.stream.stream import Stream


@at_table_door
class TableStreams(TableVerbs):
    """Methods of `Table` for streams, consumers, and the commits of a user."""

    @reads
    def stream(
        self,
        *,
        from_: int | str | datetime | None = None,
        columns: ColumnList | None = None,
        where: Predicate | str | None = None,
        until: int | str | datetime | None = None,
        options: Mapping[str, str] | None = None,
        consumer_id: str | None = None,
    ) -> Stream:
        """Stream the changes of the table: steps of rows with `_row_kind`, one for each snapshot that has changes.

        Without a changelog producer, a step contains the rows as they were written; compactions and overwrites then
        produce nothing, unless 'streaming-read-overwrite' or, in tables without primary key,
        'streaming-read-append-overwrite' is set. With a producer, a step contains the changelog of the snapshot. If the
        table tracks rows, commits that change rows produce the rows before and after, and `_ROW_ID` is a column.

        Args:
            from_: "full" (all rows of the latest snapshot, then later changes; the default, unless the options `scan.*`
                say otherwise), "latest" (only later changes), "earliest" (from the oldest remaining snapshot), a
                snapshot id (the first one to read), a datetime, or the `position` of a step.
            columns: names of the columns to return, in this order; None for all. `_row_kind` comes last.
            where: rows to return, as `col("a") > 3` or SQL text.
            until: the last snapshot: an id, a datetime (the last one committed at or before), or "now" (the latest one
                when the stream is created). A stream from "full" starts no later than this snapshot.
            options: `scan.mode` and related options, `scan.bounded.watermark`, `continuous.discovery-interval`, …
            consumer_id: the stream continues at the position of this consumer, and `from_` applies only to a new one;
                steps are acknowledged.

        Raises:
            UsageError: an invalid start or end, an unknown column, a wrong literal, a position of another table.
            CorruptionError: the consumer is damaged.
            UnsupportedError: the table uses a feature that paimon_py cannot read; a start that only batch reads
                support.
        """
        from paimon_py.stream.stream import Stream

        return Stream(
            self._root, self._schema, from_=from_, columns=columns, where=where, until=until, options=options,
            consumer_id=consumer_id,
        )  # fmt: skip

    # -- consumers ----------------------------------------------------------------------------------------------------

    @reads
    def consumers(self) -> list[Consumer]:
        """All consumers, by name: the stream readers of the table, and the position of each.

        Raises:
            CorruptionError: a consumer file is damaged.
        """
        return self._root.check_listed(self._root.consumers.all())

    def reset_consumer(self, name: str, next_snapshot_id: int) -> Consumer:
        """Move a consumer to another snapshot; the file of a damaged consumer is rewritten.

        After a rollback, call it when the tables that this stream fills are in line again: numbers of steps
        (`Step.identifier`) that follow removed snapshots are accepted from now on.

        Running streams do not notice the change, and move the consumer with the next step that they acknowledge.

        Raises:
            ConsumerNotFoundError: the consumer does not exist.
            UsageError: the id is neither that of a snapshot nor the next one.
            SnapshotExpiredError: the snapshot and its changelog have expired.
        """
        from paimon_py.stream.begin import before
        from paimon_py.stream.follower import require_following

        if not is_long(next_snapshot_id) or next_snapshot_id < 1:
            raise UsageError(f"next_snapshot_id is the number of a snapshot, from 1, not {next_snapshot_id!r}")
        self._root.consumers.require(name)
        require_following(self._root, next_snapshot_id)
        consumer, read = Consumer(name, int(next_snapshot_id)), before(self._root, next_snapshot_id)
        self._root.require_same(self._schema)
        self._root.consumers.put(consumer, read, reset=Reset())
        return consumer

    def delete_consumer(self, name: str) -> None:
        """Delete a consumer; expiry no longer waits for it.

        Running streams do not notice the change, and create the consumer again with the next step that they
        acknowledge: stop them first.

        Raises:
            ConsumerNotFoundError: the consumer does not exist.
        """
        self._root.consumers.require(name)
        self._root.require_same(self._schema)
        self._root.consumers.delete(name)

    def expire_consumers(self, older_than: timedelta | str | None = None) -> list[str]:
        """Delete consumers that have not moved for a given time, by the clock of the store.

        Args:
            older_than: the minimum idle time; None: the option 'consumer.expiration-time', which may be unset.

        Returns: the names of the deleted consumers; none if the store does not report modification times.

        Raises: UsageError if `older_than` is not an age.
        """
        from paimon_py.maintain.cleanup.expire_consumers import expire_consumers

        millis = Options(self._newest.options).find_duration("consumer.expiration-time")
        if older_than is not None:
            age = as_age(older_than)
            if not isinstance(age, timedelta):
                raise UsageError(f"older_than is an age such as timedelta(days=7) or '7d', not {older_than!r}")
            millis = age_of("older_than", age)
        found = [] if millis is None else list(expire_consumers(self._root, millis).names)
        return self._root.check_listed(found)

    # -- writers that come back ---------------------------------------------------------------------------------------

    @reads
    def committed(self, user: str) -> int | None:
        """The largest identifier that a user has committed; None if there is none.

        Also None if that commit was rolled back and the snapshots that recorded earlier ones have expired; or if
        other writers expired all snapshots that recorded it, and nothing shows that they did not roll it back. A
        repeated commit of a smaller identifier is then refused, and not taken for committed.

        Cost: a get for each snapshot since the user's last commit, or for all of them if the user has none.
        """
        from paimon_py.metadata.users import RolledBackNumber

        last = self._users().last(self._root.latest(), _check_user(user))
        return None if last is None or isinstance(last, RolledBackNumber) else last.identifier

    @reads
    def filter_committed(self, user: str, identifiers: Iterable[int]) -> list[int]:
        """Filter identifiers down to those that the user has not committed yet: what a restarted writer has to commit.

        Identifiers of a user increase, so all identifiers up to the largest committed one are done.

        Returns: the others, ascending.
        Cost: as `committed`; none if no identifiers are given.
        Raises: CommitConflictError: it cannot be determined whether an identifier was committed, see `committed`; or it
            is the number of a stream's step, and the user has committed its number for another step, larger ones for
            another table, or a step of a snapshot that was rolled back since.
        """
        from paimon_py.metadata.users import RolledBackNumber

        asked = list(map(as_python, as_list("identifiers are whole numbers", identifiers)))
        for number in asked:
            if not is_long(number) or not 0 <= number < BATCH_COMMIT_IDENTIFIER:
                raise UsageError(f"identifiers are whole numbers from 0 to 2**63-2, not {number!r}")
        numbers = sorted(set(asked))
        if not numbers:
            return numbers
        users, latest = self._users(), self._root.latest()
        last = users.last(latest, _check_user(user), numbers[0])
        if isinstance(last, RolledBackNumber) and numbers[0] < last.identifier:
            raise CommitConflictError(last.doubt(user, numbers[0]), table=self._root.path)
        if last is None or isinstance(last, RolledBackNumber):
            return numbers
        for number in numbers:
            if isinstance(number, (StepNumber, StepSnapshotId)):
                reason = last.other_step(user, number, number.source) or (
                    users.undone_step(latest, user, last, number.history) if number > last.identifier else None
                )
                if reason is not None:
                    raise CommitConflictError(reason, table=self._root.path)
        return [number for number in numbers if number > last.identifier]

    def _users(self) -> UserHistory:
        from paimon_py.metadata.users import UserHistory

        return UserHistory(SnapshotLog(self._root), self._root)


def _check_user(user: str) -> str:
    if not isinstance(user, str) or not user:
        raise UsageError(f"user is the name under which commits are made, not {user!r}")
    return user
