"""Decides whether changes were committed before: a writer repeats them, or several processes commit the same bytes.

A numbered commit is recognised by its user and number (`metadata/users.py`), every commit by the names of its files:
files of other snapshots never have them. Files that were rewritten under larger sequence numbers contain the name of
the original ones. All snapshots after the creation of the changes are searched. If some of these have expired,
everything that is left is searched, including tags and live files; a commit that is not found there is refused, since
it cannot be decided.

Source: docs/reliability.md §3 (h); Java `FileStoreCommitImpl.filterCommitted`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from paimon_py.commit.changes import Changes, with_index
from paimon_py.commit.conflicts import Conflict
from paimon_py.commit.next_snapshot import Author
from paimon_py.commit.state import Already, Refusal, State
from paimon_py.errors import PaimonError, UsageError
from paimon_py.files.naming import earlier_names
from paimon_py.lazy import lazy_property
from paimon_py.metadata.history import HistoryGap, SnapshotLog, SnapshotRange
from paimon_py.metadata.users import RolledBackNumber, UserHistory
from paimon_py.spec.snapshot import BATCH_COMMIT_IDENTIFIER, Base, Snapshot
from paimon_py.spec.users import UserCommit

_UNDECIDABLE = Conflict(
    "it cannot be determined whether these changes were committed before: snapshots that may have contained them have"
    " expired or were rolled back. Check whether their rows are in the table; if not, write them again"
)


class DuplicateCheck:
    """Follows the snapshots that may contain changes; a requirement of the commit."""

    def __init__(
        self, snapshot_log: SnapshotLog, users: UserHistory, changes: Changes, author: Author, *, by_user: bool
    ) -> None:
        """`by_user`: the user alone identifies the files."""
        self._snapshot_log = snapshot_log
        self._users = users
        self._author = author
        self._by_user = by_user
        self._changes = changes
        self._made_after = self._position = changes.made_after or changes.base
        self._looked = False

    @lazy_property
    def _names_made(self) -> frozenset[str]:
        return _made_names(self._changes)

    @lazy_property
    def _names(self) -> frozenset[str]:
        return frozenset(file.name for bucket in self._changes.buckets for file in bucket.written.added)

    def __call__(self, state: State) -> Refusal | None:
        """Refuse changes that were already committed; None if they were not.

        Cost: none if the changes were made on the latest snapshot; otherwise a get for each snapshot since, and two for
            its delta. With a number, additionally that of `UserHistory.last`.
        Raises: UsageError for a number below the last one of the user.
        """
        found = self._find(state)
        self._position, self._looked = Base.of(state.latest), True
        return found

    def are_foreign(self) -> bool:
        """Whether no snapshot ever referenced a file that was made for the changes; False if this cannot be determined.

        Changes are untrusted bytes: whatever time they claim to be made, they may not delete a file of the table.
        """
        names = self.names_since(self._made_after)
        return names is not None and self._names_made.isdisjoint(_with_earlier(names)) and self._has_none_left()

    def names_since(self, base: Base) -> set[str] | None:
        """Names of all files that were added after a base; None if this cannot be determined, also if the store fails.

        Only used to decide which files may be deleted, when the outcome of the commit is already known.
        """
        try:
            history = self._snapshot_log.until_now(base)
            names = history if isinstance(history, HistoryGap) else history.added_names()
        except PaimonError:
            return None
        return None if isinstance(names, HistoryGap) else set(names.to_pylist())

    def _has_none_left(self) -> bool:
        try:
            left = self._snapshot_log.existing_names()
        except PaimonError:
            return False
        return not isinstance(left, HistoryGap) and self._names_made.isdisjoint(left)

    def _find(self, state: State) -> Refusal | None:
        latest, certain = state.latest, False
        if not self._looked and self._is_numbered:
            last = self._users.last(latest, self._author.user, self._author.identifier)
            refusal = self._by_number(state, last)
            if refusal is not None:
                return refusal
            certain = last is not None
        history = self._snapshot_log.after(self._position, latest)
        found = history if isinstance(history, HistoryGap) else self._search_history(history)
        if found is None and self._is_numbered and isinstance(history, SnapshotRange):
            self._check_larger(history)
        return self._anywhere(state, certain=certain) if isinstance(found, HistoryGap) else found

    @property
    def _is_numbered(self) -> bool:
        return self._author.identifier != BATCH_COMMIT_IDENTIFIER

    def _by_number(self, state: State, last: UserCommit | RolledBackNumber | None) -> Refusal | None:
        """The decision by the last number of the user; None for a larger one.

        Raises: UsageError for a smaller number that was not committed, as far as can be determined.
        """
        user, number = self._author.user, self._author.identifier
        if last is None:
            return None
        if isinstance(last, RolledBackNumber):
            return None if last.identifier <= number else Conflict(last.doubt(user, number))
        if last.identifier < number:
            reason = self._users.undone_step(state.latest, user, last, self._author.source_history)
            return None if reason is None else Conflict(reason)
        if last.identifier == number:
            return self._same(state, last)
        for snapshot in self._snapshot_log.newest_first(state.latest, below=last.snapshot_id):
            if self._is_ours(snapshot):
                commit = None if snapshot.users is None else snapshot.users.commits.get(self._author.user)
                return self._other_step(commit) or Already((snapshot,))
            if snapshot.commit_user == self._author.user and snapshot.commit_identifier < number:
                break
        found = self._anywhere(state, certain=True)
        if found is None:
            raise self._lower(last.identifier)
        return found

    def _other_step(self, commit: UserCommit | None) -> Conflict | None:
        """A conflict if a commit under the same number was made for another step of a stream."""
        if commit is None:
            return None
        reason = commit.other_step(self._author.user, self._author.identifier, self._author.source)
        return None if reason is None else Conflict(reason)

    def _same(self, state: State, last: UserCommit) -> Refusal:
        other = self._other_step(last)
        if other is not None:
            return other
        after = self._snapshot_log.newest_first(state.latest, below=last.snapshot_id + 2)
        snapshots = [one for one in itertools.islice(after, 2) if self._is_ours(one)]
        return Already(tuple(reversed(snapshots)))

    def _check_larger(self, history: SnapshotRange) -> None:
        """Refuse a number if the user has committed a larger one in the meantime.

        Raises: UsageError
        """
        for snapshot in history.snapshots:
            is_later = snapshot.is_numbered and snapshot.commit_identifier > self._author.identifier
            if is_later and snapshot.commit_user == self._author.user:
                raise self._lower(snapshot.commit_identifier)

    def _lower(self, last: int) -> UsageError:
        user, number = self._author.user, self._author.identifier
        return UsageError(
            f"nothing was committed: the last number of {user!r} is {last}, and {number} is smaller. The numbers of a"
            f" user must grow: commit under a number above {last}, or as another user"
        )

    def _anywhere(self, state: State, *, certain: bool) -> Refusal | None:
        """The decision by everything that is left."""
        found = [self._search_history(one) for one in self._snapshot_log.all_existing(state.latest).each()]
        for one in found:
            if isinstance(one, (Already, Conflict)):
                return one
        if not self._names:
            return None
        line = list(self._snapshot_log.newest_first(state.latest))
        whole = not line or line[-1].id in (1, self._position.id + 1)
        whole = whole and not any(isinstance(one, HistoryGap) for one in found)
        live = self._judge_names(entry.file.name for entry in state.live())
        return live or (None if certain or whole else _UNDECIDABLE)

    def _search_history(self, history: SnapshotRange) -> Refusal | HistoryGap | None:
        for snapshot in history.snapshots:
            if self._by_user and self._is_ours(snapshot):
                return Already((snapshot,))
        if not history.snapshots or not self._names:
            return None
        names = history.added_names()
        return names if isinstance(names, HistoryGap) else self._judge_names(names.to_pylist())

    def _is_ours(self, snapshot: Snapshot) -> bool:
        return (snapshot.commit_user, snapshot.commit_identifier) == (self._author.user, self._author.identifier)

    def _judge_names(self, names: Iterable[str]) -> Refusal | None:
        """The decision from names of files that are, or were, in the table."""
        own = self._names.intersection(_with_earlier(names))
        if not own:
            return None
        return Already() if own == self._names else Conflict(f"file {min(own)} is in the table already")


def _made_names(changes: Changes) -> frozenset[str]:
    """Names of all files that the changes claim to have made."""
    files = (file for bucket in changes.buckets for file in bucket.made_files)
    edits = (edit for bucket in with_index(changes.buckets) for edit in (bucket.written, bucket.compacted))
    index = (entry.name for edit in edits for entry in edit.made_index)
    return frozenset((*(name for file in files for name in (file.name, *file.extra_files)), *index))


def _with_earlier(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        yield name
        yield from earlier_names(name)
