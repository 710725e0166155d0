"""Users that number their commits: the last number that each has committed, also after its snapshots have expired.

Every snapshot that paimon_py commits contains the last number of each user (`Snapshot.users`), so rollbacks, branches
and tags need no special handling. Snapshots of other writers do not; they are searched one by one. If such a writer has
expired all snapshots that contain users, a small file for each user remains: a backup, which is written after each
numbered commit and read in no other case.

Source: docs/reliability.md §3 (h); docs/decisions/0030-lineage.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from paimon_py.metadata.history import SnapshotLog
from paimon_py.metadata.user_files import UserFiles
from paimon_py.spec.snapshot import Snapshot
from paimon_py.spec.users import UserCommit, Users, users_of


class Rolled(msgspec.Struct, frozen=True):
    """The last numbered commit of a user was rolled back: smaller numbers may have been committed, others were not."""

    identifier: int


class UserHistory:
    """Finds the last numbered commit of a user in the history of a table.

    Attributes:
        seen: the result of the last search for all users, and the mark of the snapshot for which it holds.
    """

    def __init__(self, chronicle: SnapshotLog, files: UserFiles) -> None:
        self._chronicle = chronicle
        self._files = files
        self.seen: tuple[str, Users] | None = None

    def last(self, latest: Snapshot | None, user: str) -> UserCommit | Rolled | None:
        """The last numbered commit of a user up to a snapshot; None if there is none.

        Cost: none if the snapshot contains its users; otherwise a get for each snapshot down to one that does, or to
            the last one of the user; and a get for the user's file if all those have expired.
        Raises: CorruptionError if the user's file is damaged.
        """
        commits: dict[str, UserCommit] = {}
        unknown_until = latest.id if latest is not None else 0
        for snapshot in self._relevant(latest):
            found = users_of(snapshot)
            commits = {**found.commits, **commits}
            unknown_until = found.unknown_until if snapshot.users is not None else snapshot.id - 1
            if user in commits:
                break
        if latest is not None:
            self.seen = latest.mark, _bound(commits, unknown_until)
        if user in commits or not unknown_until:
            return commits.get(user)
        return self._by_file(latest, user)

    def _relevant(self, latest: Snapshot | None) -> Iterator[Snapshot]:
        """The snapshots to search, newest first; ranges that a snapshot's users already cover are skipped."""
        below: int | None = None
        while True:
            for snapshot in self._chronicle.newest_first(latest, below=below):
                yield snapshot
                if snapshot.users is not None:
                    below = snapshot.users.unknown_until + 1
                    break
            else:
                return

    def _by_file(self, latest: Snapshot | None, user: str) -> UserCommit | Rolled | None:
        value = self._files.find(user)
        if value is None or value.user != user or latest is None:
            return None
        number = value.commit.snapshot_id
        there = next(self._chronicle.newest_first(latest, below=number + 1), None)
        if number > latest.id or (there is not None and there.id == number and there.mark != value.mark):
            return Rolled(value.commit.identifier)
        return value.commit


def _bound(commits: Mapping[str, UserCommit], unknown_until: int) -> Users:
    """Users in the order of their commits, the latest at the end."""
    users = Users({}, unknown_until)
    for name, commit in sorted(commits.items(), key=lambda item: item[1].snapshot_id):
        users = users.after(name, commit)
    return users
