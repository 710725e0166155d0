"""Selects the small files of an append table to join into larger ones. Pure.

Source: format.md §13.4; Java 2.0 `BucketedAppendCompactManager` (fixed buckets), `AppendCompactCoordinator` (no
buckets).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from paimon_py.spec.data_file import DataFile
from paimon_py.spec.options import Options

_APPEND_TARGET_BYTES = 256 << 20
_FULL_FILES_MIN = 3

Files = tuple[DataFile, ...]


class AppendSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The options of an append table that decide what is compacted. Sizes in bytes.

    Attributes:
        target_bytes: target size of a file.
        small_bytes: files below this size are small.
        file_count_min: the number of small files that must accumulate.
        open_file_bytes: the cost of opening a file, expressed in bytes.
        dead_ratio: share of deleted rows above which a file is rewritten.
        looks_at_deletions: the table has deletion vectors.
        rewrite_all: a full compaction rewrites every file.
    """

    target_bytes: int = _APPEND_TARGET_BYTES
    small_bytes: int = _APPEND_TARGET_BYTES * 7 // 10
    file_count_min: int = 5
    open_file_bytes: int = 4 << 20
    dead_ratio: float = 0.2
    looks_at_deletions: bool = False
    rewrite_all: bool = False

    @classmethod
    def of(cls, options: Options) -> AppendSettings:
        """The settings in a table's options."""
        target = options.find_size("target-file-size") or _APPEND_TARGET_BYTES
        return cls(
            target_bytes=target,
            small_bytes=int(target * options.get_float("compaction.small-file-ratio")),
            file_count_min=options.get_int("compaction.min.file-num"),
            open_file_bytes=options.get_memory("source.split.open-file-cost"),
            dead_ratio=options.get_float("compaction.delete-ratio-threshold"),
            looks_at_deletions=options.get_bool("deletion-vectors.enabled"),
            rewrite_all=options.get_bool("compaction.force-rewrite-all-files"),
        )


class DeadCounts(msgspec.Struct, frozen=True):
    """Deletion vectors of some files: the deleted rows by file (None: unknown), and the index file of each vector."""

    counts: Mapping[str, int | None] = {}
    index_files: Mapping[str, str] = {}


def bucket_tasks(files: Sequence[DataFile], settings: AppendSettings, dead: DeadCounts, *, full: bool) -> list[Files]:
    """Groups of neighbouring files of a fixed bucket; rows keep the order in which they were written.

    A full compaction joins everything after the large files at the beginning, if most files are small. Any other
    compaction works like Java's writer: it joins `file_count_min` consecutive files whose total size is not far above
    the target, and continues with the result as the next file while it is small.
    """
    ordered = sorted(files, key=age)
    if full:
        chosen = _full_group(ordered, settings, dead)
        return [chosen] if chosen else []
    return [group for group in _windows(ordered, settings) if len(group) > 1]


def next_window(files: Sequence[DataFile], settings: AppendSettings) -> Files:
    """The next group of neighbouring files that a writer of a fixed bucket joins; empty if too few are small."""
    window: deque[DataFile] = deque()
    size = 0
    for file in sorted(files, key=age):
        window.append(file)
        size += file.size_bytes
        if len(window) >= max(2, settings.file_count_min):
            return tuple(window)
        if size >= 2 * settings.target_bytes:
            size -= window.popleft().size_bytes
    return ()


def unaware_tasks(files: Sequence[DataFile], settings: AppendSettings, dead: DeadCounts, *, full: bool) -> list[Files]:
    """Groups of small files of a partition without buckets, packed by size; the order of files does not matter.

    Leftover files are too few to be worth a compaction, unless it is full. A file with many deleted rows is grouped
    with all files of the same index file.
    """
    rest = [file for file in files if file.size_bytes < settings.small_bytes or _is_dead(file, settings, dead)]
    groups: list[Files] = []
    if settings.looks_at_deletions:
        by_index: dict[str, list[DataFile]] = {}
        for file in rest:
            if file.name in dead.index_files:
                by_index.setdefault(dead.index_files[file.name], []).append(file)
        together = sorted(by_index.values(), key=lambda group: sum(file.size_bytes for file in group))
        bins, left = _fill_bins(together, settings)
        groups += [*bins, left] if left else bins
        rest = [file for file in rest if file.name not in dead.index_files]
    bins, left = _fill_bins([[file] for file in sorted(rest, key=lambda file: file.size_bytes)], settings)
    groups += bins
    if len(left) >= settings.file_count_min or (full and len(left) > 1):
        groups.append(left)
    return [tuple(sorted(group, key=age)) for group in groups]


def _fill_bins(groups: Sequence[Sequence[DataFile]], settings: AppendSettings) -> tuple[list[Files], Files]:
    """Bins of more than one file that reach twice the target size, and the files left over."""
    bins: list[Files] = []
    current: list[DataFile] = []
    size = 0
    for group in groups:
        current += group
        size += sum(file.size_bytes + settings.open_file_bytes for file in group)
        if len(current) > 1 and size >= 2 * settings.target_bytes:
            bins.append(tuple(current))
            current, size = [], 0
    return bins, tuple(current)


def _full_group(files: list[DataFile], settings: AppendSettings, dead: DeadCounts) -> Files | None:
    chosen = tuple(files)
    if settings.rewrite_all:
        return chosen
    while chosen and chosen[0].size_bytes >= settings.small_bytes and chosen[0].name not in dead.counts:
        chosen = chosen[1:]
    if settings.looks_at_deletions:
        return chosen if len(chosen) > 1 or (chosen and chosen[0].name in dead.counts) else None
    small = sum(file.size_bytes < settings.small_bytes for file in chosen)
    return chosen if small > len(chosen) - small and len(chosen) >= _FULL_FILES_MIN else None


def _windows(files: Sequence[DataFile], settings: AppendSettings) -> list[Files]:
    """Groups of neighbouring files, joined step by step until no more can be joined."""
    waiting = deque(_Joined([file], file.size_bytes) for file in files)
    done: list[_Joined] = []
    window: deque[_Joined] = deque()
    size = 0
    while waiting:
        window.append(waiting.popleft())
        size += window[-1].size_bytes
        if len(window) >= max(2, settings.file_count_min):
            first, *others = window
            joined = _Joined(first.files, size)
            joined.files.extend(file for other in others for file in other.files)
            if size < settings.small_bytes:
                waiting.appendleft(joined)
            else:
                done.append(joined)
            window.clear()
            size = 0
        elif size >= 2 * settings.target_bytes:
            done.append(window.popleft())
            size -= done[-1].size_bytes
    return [tuple(joined.files) for joined in (*done, *window)]


class _Joined(NamedTuple):
    """Neighbouring files that count as one file, with its expected size."""

    files: list[DataFile]
    size_bytes: int


def _is_dead(file: DataFile, settings: AppendSettings, dead: DeadCounts) -> bool:
    if file.name not in dead.counts:
        return False
    count = dead.counts[file.name]
    return count is None or count > file.row_count * settings.dead_ratio


def age(file: DataFile) -> tuple[int, int, int, str]:
    """The sort key that orders files as their rows were written."""
    return file.min_sequence, file.max_sequence, file.creation_time_millis or 0, file.name
