"""The LSM tree of one bucket: level 0, where each file is its own run, and one run per higher level.

Source: format.md §13.1; Java `Levels`, `LevelSortedRun`.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from paimon_py.spec.data_file import DataFile


class LevelRun(msgspec.Struct, frozen=True):
    """A sorted run and its level; the files of a higher level are in key order."""

    level: int
    files: tuple[DataFile, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.size_bytes for file in self.files)


def level_runs(files: Iterable[DataFile]) -> tuple[LevelRun, ...]:
    """The runs of a bucket, newest first: the files of level 0, then each non-empty level.

    Files of higher levels keep the given order.
    """
    levels: dict[int, list[DataFile]] = {}
    for file in files:
        levels.setdefault(file.level, []).append(file)
    newest = sorted(levels.pop(0, []), key=_newest_first)
    higher = [LevelRun(level, tuple(levels[level])) for level in sorted(levels)]
    return (*(LevelRun(0, (file,)) for file in newest), *higher)


def _newest_first(file: DataFile) -> tuple[int, int, int, str]:
    return -file.max_sequence, file.min_sequence, file.creation_time_millis or 0, file.name
