"""The tags of one table: named copies of snapshots.

Source: format.md §4.2, §16.3; Java `TagManager`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Protocol

import msgspec

from paimon_py.codec.snapshot_json import tag_from_json, tag_to_json
from paimon_py.errors import AlreadyExistsError, CommitConflictError, TagNotFoundError
from paimon_py.spec.layout import CUT, TAG_PREFIX, tag_directory, tag_path
from paimon_py.spec.option_names import near_text
from paimon_py.spec.snapshot import Snapshot, TagValue
from paimon_py.storage.store import Delete, FileMissingError, FileStatus, Get, List, Put, PutNew, Stat

_LIKE_A_DAY = re.compile(r"\d{4}-\d")


class TagStore(Get, Put, PutNew, List, Stat, Delete, Protocol):
    """The store operations that this module uses."""


class Tags:
    """The tags of one table directory (or branch directory)."""

    __slots__ = ("_path", "_store")

    def __init__(self, store: TagStore, path: str) -> None:
        self._store = store
        self._path = path

    def names(self) -> list[str]:
        """Names of all tags, sorted. Cost: one list."""
        return sorted(self.name_of(status) for status in self.files())

    def files(self) -> list[FileStatus]:
        """The files of all tags, by name. Cost: one list."""
        return [status for status in self._store.list(tag_directory(self._path)) if _is_tag(status)]

    def beside_cut(self) -> tuple[list[TagValue], bool]:
        """All tags, sorted by name; and whether the history is being cut (`metadata.cuts`). Cost: as `list`."""
        found = self._store.list(tag_directory(self._path))
        names = sorted(self.name_of(status) for status in found if _is_tag(status))
        return self.those(names), any(status.name == CUT for status in found)

    @staticmethod
    def name_of(status: FileStatus) -> str:
        """The name of the tag of a file."""
        return status.name[len(TAG_PREFIX) :]

    def those(self, names: Iterable[str]) -> list[TagValue]:
        """The tags with listed names; one that is deleted in the meantime is omitted. Cost: one get per tag."""
        return list(self._read_all(names))

    def list(self) -> list[TagValue]:
        """All tags, sorted by name; one that is deleted in the meantime is omitted. Cost: one list, one get per tag."""
        return self.those(self.names())

    def get(self, name: str) -> TagValue:
        """One tag.

        Raises:
            TagNotFoundError: there is none with this name.
            UsageError: not a name for a tag.
        """
        path = tag_path(self._path, name)
        try:
            return tag_from_json(self._store.get(path), name, path)
        except FileMissingError as error:
            raise self._missing(name) from error

    def create(
        self,
        name: str,
        snapshot: Snapshot,
        *,
        now: datetime | None = None,
        time_retained: timedelta | None = None,
    ) -> TagValue:
        """Create a tag of a snapshot. With a retention, `now` (wall clock of the writer's zone) is stored with it.

        Raises:
            AlreadyExistsError: the name is taken.
            FileMissingError: the table was renamed or dropped.
            UsageError: not a name for a tag.
            StorageUnknownError: the store did not say whether the tag was created.
        """
        tag = _make(name, snapshot, now, time_retained)
        if not self._put_new(tag):
            raise self._exists_error(name)
        return tag

    def rename(self, old: TagValue, new_name: str) -> TagValue:
        """Give a tag another name; for a moment it has both. If interrupted, a repeated call continues.

        Cost: a put, two gets and a delete.
        Raises:
            AlreadyExistsError: another tag has the new name.
            CommitConflictError: the tag was moved or deleted in the meantime, or its table was.
        """
        name = old.name
        tag = msgspec.structs.replace(old, name=new_name)
        if name == new_name or (not self._put_new(tag) and self.get(new_name) != tag):
            raise self._exists_error(new_name)
        if not self.delete_same(old):
            self.delete_same(tag)
            raise CommitConflictError(
                f"nothing was done: others moved the tag {name!r} of {self._path}; call again", table=self._path
            )
        return tag

    def replace(
        self, name: str, snapshot: Snapshot, *, now: datetime, time_retained: timedelta | None = None
    ) -> TagValue:
        """Move a tag to another snapshot, in one step. Raises: as the store"""
        return self.put(_make(name, snapshot, now, time_retained))

    def put(self, tag: TagValue) -> TagValue:
        """Write the file of a tag, also over another one. Raises: as the store"""
        path = tag_path(self._path, tag.name)
        self._store.put(path, tag_to_json(tag), within=self._path)
        return tag

    def _put_new(self, tag: TagValue) -> bool:
        path = tag_path(self._path, tag.name)
        return self._store.put_new(path, tag_to_json(tag), within=self._path)

    def _exists_error(self, name: str) -> AlreadyExistsError:
        return AlreadyExistsError(f"tag {name!r} of {self._path} already exists", path=tag_path(self._path, name))

    def delete_same(self, tag: TagValue) -> bool:
        """Delete the file of a tag unless it contains something else by now.

        Returns: False if it does, or there is none. Cost: a get and a delete.
        """
        try:
            is_same = self.get(tag.name) == tag
        except TagNotFoundError:
            return False
        if is_same:
            self._store.delete(tag_path(self._path, tag.name))
        return is_same

    def delete(self, name: str) -> None:
        """Delete the file of a tag; files that only the tag references become orphans.

        Raises:
            TagNotFoundError: there is none with this name.
        """
        path = tag_path(self._path, name)
        if self._store.stat(path) is None:
            raise self._missing(name)
        self._store.delete(path)

    def _read_all(self, names: Iterable[str]) -> Iterator[TagValue]:
        for name in names:
            path = tag_directory(self._path) + "/" + TAG_PREFIX + name
            try:
                yield tag_from_json(self._store.get(path), name, path)
            except FileMissingError:
                continue

    def _missing(self, name: str) -> TagNotFoundError:
        way = ""
        if name.isdecimal():
            way = f"; a snapshot is named by a number, {int(name)}, and a string names a tag"
        elif _LIKE_A_DAY.match(name):
            way = "; a time is a datetime or a date, and a string names a tag"
        else:
            way = near_text(name, self.names(), "tags")
        return TagNotFoundError(f"no tag {name!r} in {self._path}{way}", path=self._path)


def _make(name: str, snapshot: Snapshot, now: datetime | None, time_retained: timedelta | None) -> TagValue:
    """A tag as it is stored; its creation time is only needed if it is not kept for ever."""
    if time_retained is None:
        return TagValue(name=name, snapshot=snapshot)
    if now is None:
        raise TypeError("a tag with a retention needs the time it is created")
    return TagValue(
        name=name,
        snapshot=snapshot,
        create_time=(now.year, now.month, now.day, now.hour, now.minute, now.second, now.microsecond * 1000),
        time_retained_seconds=time_retained.total_seconds(),
    )


def _is_tag(status: FileStatus) -> bool:
    return not status.is_directory and status.name.startswith(TAG_PREFIX) and status.name != TAG_PREFIX
