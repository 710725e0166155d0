"""Users that number their commits: the last number that each has committed, also after its snapshots have expired.

Every snapshot that paimon_py commits contains the last number of each user (`Snapshot.users`), so rollbacks, branches
and tags need no special handling. Snapshots of other writers do not; they are searched one by one. If such a writer has
expired all snapshots that contain users, a small file for each user remains: a backup, which is written after each
numbered commit and read in no other case.

Source: docs/reliability.md §3 (h); docs/decisions/0030-lineage.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from paimon_py.metadata.ancestry import is_built_on
from paimon_py.metadata.history import SnapshotLog
from paimon_py.metadata.origins import origin_of
from paimon_py.metadata.root import TableRoot
from paimon_py.metadata.user_files import UserFile
from paimon_py.spec.layout import MAIN_BRANCH
from paimon_py.spec.snapshot import Snapshot
from paimon_py.spec.users import UserCommit, Users, users_of


class RolledBackNumber(msgspec.Struct, frozen=True):
    """The last numbered commit of a user was rolled back: smaller numbers may have been committed, others were not."""

    identifier: int


class UserHistory:
    """Finds the last numbered commit of a user in the history of a table.

    Attributes:
        seen: the result of the last search for all users, and the mark of the snapshot for which it holds.
    """

    def __init__(self, snapshot_log: SnapshotLog, root: TableRoot) -> None:
        self._snapshot_log = snapshot_log
        self._root = root
        self.seen: tuple[str, Users] | None = None

    def last(self, latest: Snapshot | None, user: str) -> UserCommit | RolledBackNumber | None:
        """The last numbered commit of a user up to a snapshot; None if there is none.

        Cost: none if the snapshot contains its users; otherwise a get for each snapshot down to one that does, or to
            the last one of the user; and a get for the user's file if all those have expired, or two in a branch.
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
            for snapshot in self._snapshot_log.newest_first(latest, below=below):
                yield snapshot
                if snapshot.users is not None:
                    below = snapshot.users.unknown_until + 1
                    break
            else:
                return

    def _by_file(self, latest: Snapshot | None, user: str) -> UserCommit | RolledBackNumber | None:
        value = self._root.users.find(user)
        if value is None:
            return self._before_branch(user)
        if value.user != user or latest is None:
            return None
        number = value.commit.snapshot_id
        there = next(self._snapshot_log.newest_first(latest, below=number + 1), None)
        if number > latest.id or (there is not None and there.id == number and there.mark != value.mark):
            return RolledBackNumber(value.commit.identifier)
        return value.commit

    def _before_branch(self, user: str) -> RolledBackNumber | None:
        """The last commit of a user by the table's file, for a branch of another program, which may not contain it."""
        root = self._root
        if root.branch == MAIN_BRANCH or origin_of(root) is not None:
            return None
        value = root.on_branch(MAIN_BRANCH).users.find(user)
        return None if value is None else RolledBackNumber(value.commit.identifier + 1)


def users_until(root: TableRoot, last: Snapshot) -> list[UserFile]:
    """The files of users for a copy of a snapshot without those before it: what these contain, as far as they exist.

    None if the snapshot contains all its users. A later commit of a user counts as rolled back.

    Cost: none then; otherwise a get for each earlier snapshot down to one that does, and the files of all users.
    Raises: CorruptionError if the file of a user is damaged.
    """
    commits: dict[str, UserCommit] = {}
    one: Snapshot | None = last
    unknown_until = last.id
    while one is not None:
        found = users_of(one)
        commits = {**found.commits, **commits}
        unknown_until = found.unknown_until if one.users is not None else one.id - 1
        if one.users is not None:
            break
        before = root.snapshots.find(one.id - 1) if one.id > 1 else None
        one = before if before is not None and is_built_on(root.manifests, one, before) else None
    if last.users is not None and not unknown_until:
        return []
    files = [UserFile(user, commit, "") for user, commit in commits.items()]
    for value in root.users.all() if unknown_until else ():
        if value.user not in commits:
            number = value.commit.snapshot_id
            there = root.snapshots.find(number) if number <= unknown_until else None
            is_before = number <= unknown_until and (there is None or there.mark == value.mark)
            files.append(value if is_before else value.rolled_back())
    return files


def keep_numbers(root: TableRoot, going: Sequence[Snapshot], latest: Sequence[Snapshot]) -> None:
    """Write the files of users whose last commits only expiring snapshots contain, as those of other writers do.

    Args:
        going: the expiring snapshots, ascending.
        latest: the latest one, if it is known.

    Cost: none if the latest snapshot contains all users; otherwise a get or two, and mostly a put, per user of
        these snapshots.
    """
    known = users_of(latest[0]) if latest else Users({}, going[-1].id)
    if known.unknown_until < going[0].id:
        return
    commits: dict[str, UserCommit] = {}
    for one in reversed(going):
        found = users_of(one)
        commits = {**found.commits, **commits}
        if one.users is not None and not found.unknown_until:
            break
    marks = {one.id: one.mark for one in going}
    for user in commits.keys() - known.commits.keys():
        there, commit = root.users.find(user), commits[user]
        if there is None or (there.commit != commit and not _stays(root, there, going[-1])):
            root.users.put(UserFile(user, commit, marks.get(commit.snapshot_id, "")))


def _stays(root: TableRoot, value: UserFile, last_going: Snapshot) -> bool:
    """Whether the commit of a user's file is among the snapshots after the expiring ones. Cost: a get if it may be."""
    number = value.commit.snapshot_id
    there = root.snapshots.find(number) if number > last_going.id and not value.is_rolled_back else None
    return there is not None and there.mark == value.mark


def _bound(commits: Mapping[str, UserCommit], unknown_until: int) -> Users:
    """Users in the order of their commits, the latest at the end."""
    users = Users({}, unknown_until)
    for name, commit in sorted(commits.items(), key=lambda item: item[1].snapshot_id):
        users = users.after(name, commit)
    return users
