"""The consumers of one table: names under which readers of changes record their progress.

Source: format.md §4.2, §16.5; Java `ConsumerManager`, `Consumer`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, Union

import msgspec

from paimon_py.arguments import decoding_metadata
from paimon_py.codec.json import decode_object, pretty
from paimon_py.env import Clock, SystemClock
from paimon_py.errors import ConsumerNotFoundError, CorruptionError
from paimon_py.html import AsPage
from paimon_py.metadata.snapshots import ReadPolicy
from paimon_py.spec.json_values import whole_number
from paimon_py.spec.layout import (
    CONSUMER_MARK_PREFIX,
    CONSUMER_PREFIX,
    consumer_directory,
    consumer_mark_path,
    consumer_path,
    join,
)
from paimon_py.spec.snapshot import Base
from paimon_py.storage.store import Delete, FileMissingError, FileStatus, Get, List, Put, Stat

_NEXT = "nextSnapshot"
_MARKS = "marks"
_RESET = "reset"


class ConsumerStore(Get, Put, List, Stat, Delete, Protocol):
    """The store operations that this module uses."""


class Consumer(AsPage, msgspec.Struct, frozen=True):
    """The progress of a reader of changes.

    Attributes:
        name: the consumer's name.
        next_snapshot_id: the first snapshot that it has not read; expiry keeps this one and later ones.
    """

    name: str
    next_snapshot_id: int


class Reset(msgspec.Struct, frozen=True):
    """The reset of a consumer that has acknowledged no step since.

    Attributes:
        returned: the steps that its streams have returned since, by their snapshots. What was committed before is none
            of these.
    """

    returned: tuple[Base, ...] = ()


class _ResetTo(msgspec.Struct, frozen=True):
    next: int
    returned: tuple[tuple[int, str], ...]


class Consumers:
    """The consumers of one table directory (or branch directory)."""

    __slots__ = ("_clock", "_path", "_policy", "_store")

    def __init__(
        self, store: ConsumerStore, path: str, clock: Clock | None = None, policy: ReadPolicy | None = None
    ) -> None:
        self._store = store
        self._path = path
        self._clock = clock or SystemClock()
        self._policy = policy or ReadPolicy()

    def all(self) -> list[Consumer]:
        """All consumers, by name; one that is deleted in the meantime is omitted.

        Cost: one list, and one get per consumer.
        Raises: CorruptionError as `find`
        """
        return self.those(self.names())

    def names(self) -> list[str]:
        """Names of all consumers, sorted. Cost: one list."""
        return [status.name[len(CONSUMER_PREFIX) :] for status in self._files()]

    def those(self, names: Iterable[str]) -> list[Consumer]:
        """The consumers with listed names; one that is deleted in the meantime is omitted.

        Cost: one get per consumer.
        Raises: CorruptionError as `find`
        """
        directory = consumer_directory(self._path)
        found = (self._read(name, join(directory, CONSUMER_PREFIX + name)) for name in names)
        return [consumer for consumer in found if consumer is not None]

    def find(self, name: str) -> Consumer | None:
        """One consumer; None if there is none with this name. Cost: one get.

        Raises:
            UsageError: not a name for a consumer.
            CorruptionError: the file does not contain a consumer, also after reading it again.
        """
        return self._read(name, consumer_path(self._path, name))

    def require(self, name: str) -> None:
        """Check that there is a consumer with a name, readable or not. Cost: one stat.

        Raises:
            ConsumerNotFoundError: there is none with this name.
            UsageError: not a name for a consumer.
        """
        path = consumer_path(self._path, name)
        if self._store.stat(path) is None:
            raise ConsumerNotFoundError(
                f"no consumer {name!r} in {self._path}: a stream with consumer_id={name!r} creates it when its first "
                "step is acknowledged",
                path=path,
            )

    def put(self, consumer: Consumer, *read: Base, reset: Reset | None = None) -> None:
        """Record the progress of a consumer, replacing the earlier record.

        The file of a consumer contains only a number, as in Java. A second file contains the marks of the snapshots
        that this number may follow, so that another history is noticed.

        Args:
            read: the snapshot before the next one; and the one recorded before, so that a crash between the two files
                leaves neither without its mark.
            reset: the consumer was reset, and has acknowledged nothing since.

        Cost: two puts.
        Raises:
            FileMissingError: the table was renamed or dropped.
            StorageUnknownError: the store did not say whether the record was written; it may be written again.
        """
        marks: dict[str, object] = {_MARKS: {str(base.id + 1): base.mark for base in read if base.mark is not None}}
        if reset is not None:
            returned = [[base.id, base.mark] for base in reset.returned]
            marks[_RESET] = {"next": consumer.next_snapshot_id, "returned": returned}
        self._store.put(consumer_mark_path(self._path, consumer.name), pretty(marks), within=self._path)
        data = pretty({_NEXT: consumer.next_snapshot_id})
        self._store.put(consumer_path(self._path, consumer.name), data, within=self._path)

    def put_mark(self, consumer: Consumer, read: Base) -> None:
        """Record the mark of the last snapshot that a consumer has read, where another program moved the consumer.

        Cost: a put.
        """
        marks = {str(consumer.next_snapshot_id): read.mark}
        self._store.put(consumer_mark_path(self._path, consumer.name), pretty({_MARKS: marks}), within=self._path)

    def read_by(self, consumer: Consumer) -> Base | None:
        """The last snapshot that a consumer has read, by id and mark; None if the mark is unknown. Cost: one get.

        Raises: CorruptionError if the file with the mark is damaged.
        """
        return self.read_or_reset(consumer)[0]

    def read_or_reset(self, consumer: Consumer) -> tuple[Base | None, Reset | None]:
        """The result of `read_by`; and the reset to this snapshot, if the consumer has acknowledged no step since.

        Cost, Raises: as `read_by`
        """
        path, number = consumer_mark_path(self._path, consumer.name), consumer.next_snapshot_id
        try:
            data = self._store.get(path)
        except FileMissingError:
            return None, None
        with decoding_metadata(path):
            found = decode_object(data, path)
            marks = found.get(_MARKS)
            mark = marks.get(str(number)) if isinstance(marks, dict) else None
            to = msgspec.convert(found.get(_RESET), Union[_ResetTo, None])
        read = Base(number - 1, mark) if isinstance(mark, str) and number > 1 else None
        is_reset = to is not None and to.next == number
        return read, Reset(tuple(Base(*base) for base in to.returned)) if to is not None and is_reset else None

    def delete(self, name: str) -> None:
        """Delete a consumer, readable or not, if it exists. Raises: UsageError: not a name for a consumer."""
        self._store.delete(consumer_path(self._path, name))
        self._store.delete(consumer_mark_path(self._path, name))

    def write_times(self) -> dict[str, int]:
        """The last write time of each consumer, if the store reports it: epoch milliseconds of its clock, by name.

        Cost: one list.
        """
        times = ((status.name[len(CONSUMER_PREFIX) :], status.modified_millis) for status in self._files())
        return {name: millis for name, millis in times if millis is not None}

    def expire(self, names: Iterable[str], older_than_millis: int, check: Callable[[], object]) -> list[str]:
        """Delete those of the given consumers whose file was last written before a time.

        Args:
            names: listed names.
            older_than_millis: epoch milliseconds of the store's clock (`store_clock.py`), not of this machine's.
            check: called before each deletion.

        Returns: the names of the deleted consumers. Cost: a stat for each, and a delete for each of these.
        """
        directory, gone = consumer_directory(self._path), []
        for name in names:
            path = join(directory, CONSUMER_PREFIX + name)
            status = self._store.stat(path)
            if status is not None and _is_older(status, older_than_millis):
                check()
                self._store.delete(path)
                self._store.delete(join(directory, CONSUMER_MARK_PREFIX + name))
                gone.append(name)
        return gone

    def orphan_marks(self) -> list[FileStatus]:
        """Files with marks of deleted consumers: Java deletes consumers and leaves these. Cost: one list."""
        found = self._store.list(consumer_directory(self._path))
        names = {one.name[len(CONSUMER_PREFIX) :] for one in found if one.name.startswith(CONSUMER_PREFIX)}
        marks = [one for one in found if not one.is_directory and one.name.startswith(CONSUMER_MARK_PREFIX)]
        return [one for one in marks if one.name[len(CONSUMER_MARK_PREFIX) :] not in names]

    def _files(self) -> list[FileStatus]:
        found = self._store.list(consumer_directory(self._path))
        named = [status for status in found if not status.is_directory and status.name.startswith(CONSUMER_PREFIX)]
        return sorted((status for status in named if status.name != CONSUMER_PREFIX), key=lambda status: status.name)

    def _read(self, name: str, path: str) -> Consumer | None:
        """Decode a file; read it again while it does not end like JSON: Java does not replace files atomically."""
        try:
            for _ in range(self._policy.attempts - 1):
                data = self._store.get(path)
                if data.rstrip().endswith(b"}"):
                    return _decode(name, data, path)
                self._clock.sleep(self._policy.wait_seconds)
            return _decode(name, self._store.get(path), path)
        except FileMissingError:
            return None


def _is_older(status: FileStatus, millis: int) -> bool:
    """Whether a file was certainly last written before a time."""
    return status.modified_millis is not None and status.modified_millis < millis


def _decode(name: str, data: bytes, path: str) -> Consumer:
    way = f"delete_consumer({name!r}) removes it, reset_consumer({name!r}, …) rewrites it"
    try:
        with decoding_metadata(path):
            next_id = decode_object(data, path).get(_NEXT)
    except CorruptionError as error:
        raise CorruptionError(f"consumer {name!r} is damaged: {error}; {way}", path=path) from error
    found = whole_number(next_id)
    if found is None or found < 0:
        raise CorruptionError(
            f"{path}: consumer {name!r} is damaged: {_NEXT!r} is {next_id!r}, not a snapshot id; {way}", path=path
        )
    return Consumer(name, found)
