"""Sequence numbers of a commit's new rows: after those of everything that was committed before them.

A writer counts on from what it found. If others committed meanwhile, the new files are written again with larger
numbers, so that the later commit is also the newer row.

Source: notes on reliability §3 (b).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from paimon_py.commit.changes import BucketChanges, Changes
from paimon_py.commit.compaction_fit import without_compaction
from paimon_py.commit.plan import Bucket, offsets, own_files
from paimon_py.spec.data_file import DataFile

Renumber = Callable[[BucketChanges, int], BucketChanges]
"""Writes the new files of a bucket again, sequence numbers larger by an offset. The files it read must stay: if the
outcome of the commit is unknown, the caller commits them again."""

Files = tuple[BucketChanges, Sequence[DataFile]]
"""Some files of a bucket."""


class Numbering:
    """The changes of one commit, as often as they must be written again.

    Attributes:
        moved: positions of the buckets whose new files were written again.
    """

    def __init__(self, changes: Changes, renumber: Renumber, delete: Callable[[Iterable[Files]], None]) -> None:
        """`delete` takes files that nobody needs."""
        self._changes = changes
        self._renumber = renumber
        self._delete = delete
        self.moved: dict[int, tuple[int, BucketChanges]] = {}

    def follow(self, highest: Mapping[Bucket, int]) -> None:
        """Let new rows come after these numbers. A bucket that moves loses its compaction.

        Raises: what `renumber` raises.
        """
        for position, offset in enumerate(offsets(self._changes.buckets, highest)):
            original = self._changes.buckets[position]
            before = self.moved.get(position)
            if offset == (before[0] if before else 0):
                continue
            alone = msgspec.structs.replace(
                without_compaction(original), deleted_files=(), new_index=(), deleted_index=()
            )
            moved = msgspec.structs.replace(
                self._renumber(alone, offset),
                deleted_files=original.deleted_files,
                new_index=original.new_index,
                deleted_index=original.deleted_index,
            )
            if before is not None:
                self._delete([(original, self._written(position))])
            self.moved[position] = (offset, moved)

    def current(self) -> Changes:
        """The changes with the files that take the place of renumbered ones."""
        buckets = [
            self.moved[position][1] if position in self.moved else bucket
            for position, bucket in enumerate(self._changes.buckets)
        ]
        return msgspec.structs.replace(self._changes, buckets=tuple(buckets))

    def made(self) -> list[Files]:
        """Files that were written here."""
        return [(self._changes.buckets[position], self._written(position)) for position in self.moved]

    def replaced(self) -> list[Files]:
        """The writers' files that others have taken the place of."""
        found: list[Files] = []
        for position, (_, moved) in self.moved.items():
            bucket = self._changes.buckets[position]
            kept = {file.name for file in moved.added_files}
            found.append((bucket, [file for file in own_files(bucket) if file.name not in kept]))
        return found

    def _written(self, position: int) -> list[DataFile]:
        old = {file.name for file in self._changes.buckets[position].added_files}
        return [file for file in self.moved[position][1].added_files if file.name not in old]
