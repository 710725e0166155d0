"""The files that store the last number of each user, which outlive the snapshots that contain it.

Source: docs/format.md §4.3; docs/decisions/0030-lineage.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Protocol, Union

import msgspec

from paimon_py.arguments import decoding_metadata
from paimon_py.codec.json import decode_object, pretty
from paimon_py.errors import CorruptionError
from paimon_py.spec.layout import join, user_directory
from paimon_py.spec.snapshot import Base, Snapshot
from paimon_py.spec.users import UserCommit
from paimon_py.storage.store import DeleteFile, FileMissingError, FileStatus, Get, List, Put

if TYPE_CHECKING:
    from paimon_py.metadata.manifests import Manifests

USER_PREFIX = "user-"
_NO_SNAPSHOT = 2**63 - 1


class UserFileStore(Get, Put, List, DeleteFile, Protocol):
    """The store operations that this module uses."""


class UserFile(msgspec.Struct, frozen=True):
    """The last numbered commit of a user, and what shows later whether it is still in the history.

    Attributes:
        mark: the mark of its snapshot; empty if unknown.
        seen_by: a later snapshot that is built on it, if one is known.
        added: names of some data files that it added.
        since_millis: the time of the commit by the clock of the store, if the file was rewritten since.
    """

    user: str
    commit: UserCommit
    mark: str
    seen_by: Base | None = None
    added: tuple[str, ...] = ()
    since_millis: int | None = None

    @property
    def shown_by(self) -> tuple[Base, ...]:
        """The snapshots whose histories contain the commit, its own one first."""
        own = Base(self.commit.snapshot_id, self.mark)
        return (own,) if self.seen_by is None else (own, self.seen_by)

    @property
    def is_rolled_back(self) -> bool:
        """Whether the commit was rolled back."""
        return self.commit.snapshot_id == _NO_SNAPSHOT

    def rolled_back(self) -> UserFile:
        """The file after the commit was rolled back: its snapshot is one that never exists."""
        return UserFile(self.user, UserCommit(self.commit.identifier, _NO_SNAPSHOT, self.commit.source), self.mark)


ADDED_MAX = 8
"""The maximum number of data files that the file of a user names."""


def number_of(snapshot: Snapshot, manifests: Manifests) -> UserFile | None:
    """The number of a commit to store; None if it has none, or the snapshot is not its first.

    Cost: none after a commit, whose manifests were just written.
    """
    users = snapshot.users
    commit = None if users is None or not snapshot.is_numbered else users.commits.get(snapshot.commit_user)
    if commit is None or commit.snapshot_id != snapshot.id:
        return None
    added = manifests.read_entries(manifests.delta(snapshot)).additions().names()[:ADDED_MAX].to_pylist()
    return UserFile(snapshot.commit_user, commit, snapshot.mark, added=tuple(added))


class UserFiles:
    """The files of users in one table directory (or branch directory)."""

    __slots__ = ("_path", "_store")

    def __init__(self, store: UserFileStore, path: str) -> None:
        self._store = store
        self._path = path

    def find(self, user: str) -> UserFile | None:
        """The file of a user; None if it does not exist. Cost: one get.

        Raises: CorruptionError if it is damaged.
        """
        try:
            return self._read(self.path_of(user))
        except FileMissingError:
            return None

    def put(self, value: UserFile) -> None:
        """Write the file of a user, replacing an existing one. Cost: one put.

        Raises: FileMissingError if the table was renamed or dropped.
        """
        self._store.put(self.path_of(value.user), user_file_data(value), within=self._path)

    def files(self) -> list[FileStatus]:
        """The files of all users. Cost: one list."""
        found = self._store.list(user_directory(self._path))
        return [one for one in found if not one.is_directory and one.name.startswith(USER_PREFIX)]

    def all(self) -> Iterator[UserFile]:
        """All of them; one that is deleted in the meantime is omitted. Cost: one list, and one get for each."""
        for status in self.files():
            try:
                value = self._read(status.path)
            except FileMissingError:
                continue
            is_first = value.since_millis is None
            yield msgspec.structs.replace(value, since_millis=status.modified_millis) if is_first else value

    def commit_millis(self, file: FileStatus) -> int | None:
        """The time of a user's last commit, by the clock of the store; None if unknown. Cost: one get."""
        try:
            since = self._read(file.path).since_millis
        except (FileMissingError, CorruptionError):
            since = None
        return file.modified_millis if since is None else since

    def name_of(self, file: FileStatus) -> str:
        """The user of a file; the name of the file if it can no longer be read. Cost: one get."""
        try:
            return self._read(file.path).user
        except (FileMissingError, CorruptionError):
            return file.name

    def delete(self, user: str) -> None:
        """Delete the file of a user, if it exists."""
        self._store.delete(self.path_of(user))

    def path_of(self, user: str) -> str:
        """The path of a user's file."""
        return join(user_directory(self._path), user_file_name(user))

    def _read(self, path: str) -> UserFile:
        data = self._store.get(path)
        with decoding_metadata(path):
            return _decode(decode_object(data, path), path)


def user_file_name(user: str) -> str:
    """The name of a user's file: a digest, since names of users are arbitrary strings."""
    return USER_PREFIX + hashlib.blake2b(user.encode(), digest_size=16).hexdigest()


def user_file_data(value: UserFile) -> bytes:
    """The content of a user's file."""
    commit = value.commit
    data: dict[str, object] = {
        "user": value.user, "identifier": commit.identifier, "snapshotId": commit.snapshot_id, "mark": value.mark
    }  # fmt: skip
    if commit.source is not None:
        data["source"] = commit.source
    if value.seen_by is not None:
        data["seenBy"] = [value.seen_by.id, value.seen_by.mark]
    if value.added:
        data["added"] = list(value.added)
    if value.since_millis is not None:
        data["since"] = value.since_millis
    return pretty(data)


def _decode(data: Mapping[str, object], path: str) -> UserFile:
    user, mark, source = data.get("user"), data.get("mark"), data.get("source")
    numbers = [data.get(name) for name in ("identifier", "snapshotId")]
    if not isinstance(user, str) or not isinstance(mark, str) or not (source is None or isinstance(source, str)):
        raise CorruptionError(f"{path}: the file of a user is damaged", path=path)
    identifier, snapshot_id = (one if isinstance(one, int) and not isinstance(one, bool) else -1 for one in numbers)
    if min(identifier, snapshot_id) < 0:
        raise CorruptionError(f"{path}: the file of a user is damaged: {numbers}", path=path)
    try:
        seen_by = msgspec.convert(data.get("seenBy"), Union[tuple[int, str], None])
        added = msgspec.convert(data.get("added", ()), tuple[str, ...])
        since = msgspec.convert(data.get("since"), Union[int, None])
    except msgspec.ValidationError as error:
        raise CorruptionError(f"{path}: the file of a user is damaged: {error}", path=path) from error
    commit = UserCommit(identifier, snapshot_id, source)
    return UserFile(user, commit, mark, seen_by and Base(*seen_by), added, since)
