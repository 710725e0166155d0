"""Sequence numbers of a commit's new rows: larger than all numbers committed before.

A writer continues from the largest number it found. If others committed in the meantime, the new files are rewritten
with larger numbers, so that the later commit also has the newer rows.

Source: docs/reliability.md §3 (b).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from paimon_py.commit.changes import Bucket, BucketChanges, Changes, Edit, pack_buckets
from paimon_py.commit.reassign_sequences import renumber
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.layout import POSTPONE_BUCKET

Renumber = Callable[[OpenTable, BucketChanges, int], Edit]


class SequenceAssignment:
    """The changes of one commit, rewritten whenever their sequence numbers must grow.

    Attributes:
        current: the changes, with the files that replace renumbered ones.
        moved: positions of the buckets whose new files were rewritten, with the offset of their numbers.
    """

    def __init__(self, files: OpenTable, changes: Changes, rewrite: Renumber | None = None) -> None:
        """`rewrite`: rewrites new files; by default `renumber`."""
        self._files = files
        self._rewrite = rewrite or renumber
        self._changes = changes
        self.current = changes
        self.moved: dict[int, int] = {}
        self._replaced: dict[int, BucketChanges] = {}

    def follow(self, highest: Mapping[Bucket, int]) -> None:
        """Renumber new rows to follow these numbers. A renumbered bucket loses its compaction.

        Raises: what `renumber` raises; `discard` still deletes what was written before.
        """
        changed = False
        try:
            for position, offset in enumerate(offsets(self._changes.buckets, highest)):
                if offset == self.moved.get(position, 0):
                    continue
                original = self._changes.buckets[position]
                written = self._rewrite(self._files, original, offset)
                self._delete(position)
                self.moved[position] = offset
                self._replaced[position] = msgspec.structs.replace(original.without_compaction(), written=written)
                changed = True
        finally:
            if changed:
                self._replace()

    def discard(self) -> None:
        """Delete the rewritten files; no snapshot references them."""
        for position in self.moved:
            self._delete(position)

    def delete_replaced(self) -> None:
        """Delete the writers' files that were replaced, and the results of their compactions."""
        for position in self.moved:
            bucket = self._changes.buckets[position]
            kept = {file.name for file in self._replaced[position].made_files}
            place = self._files.bucket(*bucket.place)
            place.delete([file for file in bucket.made_files if file.name not in kept])
            self._files.delete_index(bucket.compacted.made_index)

    def _replace(self) -> None:
        buckets = (self._replaced.get(at, bucket) for at, bucket in enumerate(self._changes.buckets))
        self.current = msgspec.structs.replace(self._changes, buckets=pack_buckets(buckets))

    def _delete(self, position: int) -> None:
        """Delete the files of an earlier rewrite of a bucket."""
        if position not in self._replaced:
            return
        original = self._changes.buckets[position]
        old = {file.name for file in original.made_files}
        made = [file for file in self._replaced[position].written.made_files if file.name not in old]
        self._files.bucket(*original.place).delete(made)


def offsets(buckets: Sequence[BucketChanges], highest: Mapping[Bucket, int]) -> list[int]:
    """Offsets that raise the sequence numbers of each bucket's changes above all committed ones.

    Changes of one bucket are numbered in order, so that the later of two writers in `buckets` wins. Rows of the
    postpone bucket have no sequence numbers yet.

    Args:
        buckets: changes, in order of precedence.
        highest: the largest sequence number that others have committed, per bucket.
    """
    # Example: 9 is committed in bucket A, nothing in B. Two writers have 5..7 and 5..6 for A, one has 0..3 for B. The
    # offsets are 5, 8, 0: the rows get 10..12, then 13..14, and 0..3.
    seen = dict(highest)
    result = []
    for changes in buckets:
        files = changes.written.added
        if not files or changes.bucket == POSTPONE_BUCKET:
            result.append(0)
            continue
        key = changes.place
        numbered = (*files, *changes.written.changelog)
        lowest = min(file.min_sequence for file in numbered)
        offset = max(0, seen[key] + 1 - lowest) if key in seen else 0
        result.append(offset)
        seen[key] = max(file.max_sequence for file in numbered) + offset
    return result
