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
from paimon_py.metadata.history import SnapshotLog, replaces_all
from paimon_py.metadata.origins import origin_of
from paimon_py.metadata.root import TableRoot
from paimon_py.metadata.user_files import UserFile
from paimon_py.spec.layout import MAIN_BRANCH
from paimon_py.spec.snapshot import Base, Snapshot
from paimon_py.spec.users import SourceHistory, UserCommit, Users, users_of


class RolledBackNumber(msgspec.Struct, frozen=True):
    """The last numbered commit of a user was rolled back: smaller numbers may have been committed, others were not."""

    identifier: int

    def doubt(self, user: str, number: int) -> str:
        """Why it is unknown whether a smaller number was committed, as a text."""
        return (
            f"it cannot be determined whether {user!r} has committed the number {number}: the snapshots that recorded"
            " it have expired or were rolled back. Check whether its rows are in the table; if not, commit them under"
            f" the number {self.identifier} or a larger one"
        )


class UserHistory:
    """Finds the last numbered commit of a user in the history of a table.

    Attributes:
        seen: the result of the last search for all users, and the mark of the snapshot for which it holds.
    """

    def __init__(self, snapshot_log: SnapshotLog, root: TableRoot) -> None:
        self._snapshot_log = snapshot_log
        self._root = root
        self.seen: tuple[str, Users] | None = None

    def last(
        self, latest: Snapshot | None, user: str, asked: int = 0
    ) -> UserCommit | RolledBackNumber | None:
        """The last numbered commit of a user up to a snapshot; None if there is none.

        If only the user's file contains it, it counts only if it is shown to be in the history of the snapshot.

        Args:
            asked: the number in question: for a larger one than that of the file, nothing needs to be shown.

        Cost: none if the snapshot contains its users; otherwise a get for each snapshot down to one that does, or to
            the last one of the user; and a get for the user's file if all those have expired, or two in a branch; then
            also up to two gets, and the manifests of the latest snapshot.
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
        return self._by_file(latest, user, unknown_until, asked)

    def undone_step(
        self, latest: Snapshot | None, user: str, last: UserCommit, history: SourceHistory | None
    ) -> str | None:
        """Why no later step can follow the last one of a user, as a text: the table that is followed was rolled back,
        and its rows are still here. None if one can follow, as far as is known.

        Cost: see `SourceHistory.lacks`; if it lacks the step, a get for each snapshot since, and mostly no more.
        """
        if history is None or last.source is None or not history.lacks(last.source):
            return None
        for snapshot in self._snapshot_log.newest_first(latest):
            if snapshot.id <= last.snapshot_id:
                break
            if replaces_all(self._root.manifests, snapshot):
                return None
        return last.undone_step(user)

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

    def _by_file(
        self, latest: Snapshot | None, user: str, unknown_until: int, asked: int
    ) -> UserCommit | RolledBackNumber | None:
        value = self._root.users.find(user)
        if value is None:
            return self._before_branch(user)
        if value.user != user or latest is None:
            return None
        identifier, number = value.commit.identifier, value.commit.snapshot_id
        is_there = self._contains(latest, Base(number, value.mark))
        if number > unknown_until or is_there is False:
            return RolledBackNumber(identifier)
        if is_there or (asked <= identifier and self._is_shown(latest, value)):
            return value.commit
        return RolledBackNumber(identifier + 1)

    def _contains(self, latest: Snapshot, base: Base) -> bool | None:
        """Whether a history contains a snapshot; None if that one has expired, or its mark is unknown."""
        there = next(self._snapshot_log.newest_first(latest, below=base.id + 1), None)
        if there is not None and there.id != base.id:
            return None
        there = there or self._root.changelogs.find(base.id)
        return None if there is None or not base.mark else base.is_of(there)

    def _is_shown(self, latest: Snapshot, value: UserFile) -> bool:
        """Whether the expired commit of a user's file is in a history: by a snapshot that was built on it, or its
        files.
        """
        seen_by = value.seen_by
        if seen_by is not None and seen_by.id <= latest.id and self._contains(latest, seen_by):
            return True
        manifests = self._root.manifests
        if not value.added:
            return False
        entries = manifests.read_entries(manifests.base_and_delta(latest))
        return not set(value.added).isdisjoint(entries.names().to_pylist())

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
    files = [UserFile(user, commit, "", Base.of(last)) for user, commit in commits.items()]
    for value in root.users.all() if unknown_until else ():
        if value.user not in commits:
            number = value.commit.snapshot_id
            there = root.snapshots.find(number) if number <= unknown_until else None
            is_before = number <= unknown_until and (there is None or there.mark == value.mark)
            files.append(value if is_before else value.rolled_back())
    return files


def keep_numbers(root: TableRoot, going: Sequence[Snapshot], latest: Sequence[Snapshot]) -> None:
    """Write the files of users whose last commits only expiring snapshots show, as those of other writers do.

    Args:
        going: the expiring snapshots, ascending.
        latest: the latest one, if it is known.

    Cost: none if the latest snapshot contains all users; otherwise a list, a get per user, and a put for those whose
        commits these snapshots show.
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
    seen_by = Base.of(latest[0] if latest else going[-1])
    files = {value.user: value for value in root.users.all()}
    for user in (commits.keys() | files.keys()) - known.commits.keys():
        there, commit = files.get(user), commits.get(user)
        if commit is None or (there is not None and there.commit == commit):
            if there is not None and any(marks.get(base.id) == base.mark for base in there.shown_by):
                root.users.put(msgspec.structs.replace(there, seen_by=seen_by))
        elif there is None or not _stays(root, there, going[-1]):
            root.users.put(UserFile(user, commit, marks.get(commit.snapshot_id, ""), seen_by))


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
