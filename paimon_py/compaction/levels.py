"""The tree of one bucket: level 0, where every file is a run of its own, and one run per higher level.

Source: format.md §13.1; Java `Levels`, `LevelSortedRun`.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from paimon_py.spec.data_file import DataFile


class LevelRun(msgspec.Struct, frozen=True):
    """A sorted run and the level it lies on; the files of a higher level stand in key order."""

    level: int
    files: tuple[DataFile, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.size_bytes for file in self.files)


def level_runs(files: Iterable[DataFile]) -> tuple[LevelRun, ...]:
    """The runs of a bucket, newest first: the files of level 0, then every level that is not empty.

    Files of higher levels keep the order in which they are given.
    """
    levels: dict[int, list[DataFile]] = {}
    for file in files:
        levels.setdefault(file.level, []).append(file)
    newest = sorted(levels.pop(0, []), key=_newest_first)
    higher = [LevelRun(level, tuple(levels[level])) for level in sorted(levels)]
    return (*(LevelRun(0, (file,)) for file in newest), *higher)


def _newest_first(file: DataFile) -> tuple[int, int, int, str]:
    return -file.max_sequence, file.min_sequence, file.creation_time_millis or 0, file.name
