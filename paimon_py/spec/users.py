"""Users that number their commits, so that a repeated commit is recognised. Pure.

Source: format.md §4.3; docs/decisions/0030-lineage.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from paimon_py.spec.snapshot import Snapshot

USERS_MAX = 200
"""The maximum number of users in a snapshot: those that committed most recently."""


class SourceHistory(Protocol):
    """The history of a table that is followed, as of a step of its stream."""

    def lacks(self, source: str) -> bool:
        """Whether the step with a position is certainly not before this one, in the same history."""
        ...


class StepNumber(int):
    """A commit identifier that stands for a step of another table's stream.

    Attributes:
        source: the position after the step. Equal numbers with different positions are never mistaken for each other.
        history: the history of the step, if the table can be asked.
    """

    source: str
    history: SourceHistory | None

    def __new__(cls, number: int, source: str, history: SourceHistory | None = None) -> StepNumber:
        found = super().__new__(cls, number)
        found.source, found.history = source, history
        return found

    def __reduce__(self) -> tuple[object, ...]:
        return StepNumber, (int(self), self.source, self.history)


class UserCommit(msgspec.Struct, frozen=True, array_like=True):
    """The last numbered commit of a user.

    Attributes:
        identifier: its number.
        snapshot_id: the first snapshot that it created.
        source: the position in another table's stream that was committed under the number; None if unknown.
    """

    identifier: int
    snapshot_id: int
    source: str | None = None

    def other_step(self, user: str, asked: int, source: str | None) -> str | None:
        """Why a number of a user cannot be this one or an earlier one, as a text: it stands for another step of a
        stream, or for a step of another table. None if it may be; `source`: the position that it stands for.
        """
        if source is None or self.source is None or self.source == source or asked > self.identifier:
            return None
        tables = {_table_of(source), _table_of(self.source)}
        if asked < self.identifier and (len(tables) == 1 or None in tables):
            return None
        return (
            f"{user!r} has committed the number {self.identifier} for another step, {self.source}, and this one is"
            f" {source}: the table that is followed was rolled back or created again. Bring this table in line with"
            " it, and continue as another user"
        )

    def undone_step(self, user: str) -> str:
        """Why no later step can follow, if the table that is followed no longer contains the snapshot of this one."""
        return (
            f"snapshot {self.snapshot_id} has the rows of a step, {self.source}, that {user!r} committed, but the table"
            " that is followed was rolled back or created again, and no longer contains that snapshot. Bring this"
            " table in line with it; then call reset_consumer(…) for the consumer of the stream, or continue as another"
            " user"
        )


def _table_of(source: str) -> str | None:
    """The part of a position that identifies the table; None if it is unknown."""
    parts = source.split(":")
    return parts[2] if len(parts) > 2 and parts[2] != "-" else None


class Users(msgspec.Struct, frozen=True, omit_defaults=True):
    """The last numbered commit of each user, as of a snapshot.

    Attributes:
        commits: by user, the most recent commit last.
        unknown_until: users missing in `commits` may have made numbered commits up to and including this snapshot; 0 if
            they have made none.
    """

    commits: Mapping[str, UserCommit] = {}
    unknown_until: int = 0

    def after(self, user: str, commit: UserCommit) -> Users:
        """The users after a numbered commit; drops those that committed longest ago if there are too many."""
        commits = {name: one for name, one in self.commits.items() if name != user} | {user: commit}
        unknown_until = self.unknown_until
        for name in list(commits)[: max(0, len(commits) - USERS_MAX)]:
            unknown_until = max(unknown_until, commits.pop(name).snapshot_id)
        return Users(commits, unknown_until)


def users_of(snapshot: Snapshot | None) -> Users:
    """The users as of a snapshot, from its file; None stands for the empty table."""
    if snapshot is None:
        return Users()
    if snapshot.users is not None:
        return snapshot.users
    own = {snapshot.commit_user: UserCommit(snapshot.commit_identifier, snapshot.id)}
    return Users(own if snapshot.is_numbered else {}, snapshot.id)
