"""What lies in the directory of Iceberg metadata when a publication begins.

Source: docs/format.md §25.9.
"""

from __future__ import annotations

from collections.abc import Iterable

from paimon_py.errors import CorruptionError
from paimon_py.iceberg.directory import IcebergDirectory, version_numbers
from paimon_py.iceberg.metadata import IcebergVersion


class FoundVersions:
    """The versions that were listed; each is read once, when it is asked for.

    Attributes:
        names: of all files.
        numbers: of the versions, ascending.
    """

    def __init__(self, directory: IcebergDirectory) -> None:
        """Cost: one list."""
        self._directory = directory
        self._read: dict[int, IcebergVersion | None] = {}
        self.names: list[str] = directory.list_names()
        self.numbers = version_numbers(self.names)

    def get(self, number: int) -> IcebergVersion | None:
        """A version; None if there is none, or it is broken."""
        self.read(number)
        return self._read.get(number)

    def read(self, number: int) -> None:
        """Read a version, unless there is none or it was read before."""
        if number in self._read or number not in self.numbers:
            return
        try:
            self._read[number] = self._directory.version(number)
        except CorruptionError:
            self._read[number] = None

    def newest(self) -> IcebergVersion | None:
        """The newest version that can be read."""
        return next((version for number in reversed(self.numbers) if (version := self.get(number)) is not None), None)

    def first_row_id(self) -> int:
        """The first row id that no version has given."""
        return max((version.next_row_id or 0 for version in self._all(self.numbers)), default=0)

    def _all(self, numbers: Iterable[int]) -> list[IcebergVersion]:
        return [version for number in numbers if (version := self.get(number)) is not None]
