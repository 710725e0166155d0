"""The contents of the directory of Iceberg metadata when a publication begins.

Source: docs/format.md §25.9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from paimon_py.errors import CorruptionError
from paimon_py.iceberg.directory import IcebergDirectory, version_numbers
from paimon_py.iceberg.metadata import IcebergVersion, KnownVersion
from paimon_py.metadata.snapshots import Snapshots
from paimon_py.spec.snapshot import Snapshot


class FoundVersions:
    """The versions in a listing of the directory; each is read once, when it is first needed.

    Attributes:
        names: the names of all files.
        numbers: the numbers of the versions, ascending.
        snapshots: the snapshots of the table that were read together with the list; None for a missing one.
    """

    def __init__(
        self, directory: IcebergDirectory, snapshots: Snapshots | None = None, number: int | None = None,
        meanwhile: Callable[[], None] | None = None, known: KnownVersion | None = None,
    ) -> None:  # fmt: skip
        """Read the list.

        Args:
            number: read this snapshot, the previous one, and its version in parallel, too.
            meanwhile: called in parallel, too.
            known: a version that need not be decoded again.
        """
        self._directory = directory
        self._known = known
        self._read: dict[int, IcebergVersion | None] = {}
        self.names: list[str] = []
        self.snapshots: dict[int, Snapshot | None] = {}
        calls: list[Callable[[], None]] = [lambda: self.names.extend(directory.list_names())]
        if snapshots is not None and number is not None:
            find = snapshots.find
            calls += [partial(self._keep, find, one) for one in (number, number - 1) if one > 0]
            calls += [partial(self._try, number - 1)] if number > 1 else []
        calls += [] if meanwhile is None else [meanwhile]
        directory.at_once(calls)
        self.numbers = version_numbers(self.names)

    def _keep(self, find: Callable[[int], Snapshot | None], number: int) -> None:
        self.snapshots[number] = find(number)

    def get(self, number: int) -> IcebergVersion | None:
        """A version; None if it is missing or broken."""
        self.read(number)
        return self._read.get(number) if number in self.numbers else None

    def read(self, number: int) -> None:
        """Read a version, unless it is missing or was read before."""
        if number not in self._read and number in self.numbers:
            self._try(number)

    def _try(self, number: int) -> None:
        try:
            version = self._directory.version(number, self._known)
        except CorruptionError:
            self._read[number] = None
        else:
            if version is not None:  # one that is missing may be written at any time
                self._read[number] = version

    def newest(self) -> IcebergVersion | None:
        """The newest version that can be read."""
        return next((version for number in reversed(self.numbers) if (version := self.get(number)) is not None), None)

    def first_row_id(self) -> int:
        """The first row id that no version has assigned."""
        return max((version.next_row_id or 0 for version in self._all(self.numbers)), default=0)

    def _all(self, numbers: Iterable[int]) -> list[IcebergVersion]:
        return [version for number in numbers if (version := self.get(number)) is not None]
