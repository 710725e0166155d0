"""Assigns new keys to buckets in a partition whose buckets are filled by key count. Pure.

A key is assigned to the first bucket with room, in the order of their numbers; if there is none, a new bucket gets the
smallest free number. A key that leaves frees its place. If several writers fill a partition, each has its own numbers.

Source: Java `crosspartition.BucketAssigner`.
"""

from __future__ import annotations

import itertools

import numpy as np

from paimon_py.codec.columns import Ints, Mask


class BucketCounts:
    """The number of keys in each bucket of one partition."""

    def __init__(self, target_rows: int, number: int = 0, writers: int = 1) -> None:
        """`target_rows`: the number of keys at which a bucket is full; `number`: that of the writer among `writers`."""
        self._target = target_rows
        self._number = number
        self._writers = writers
        self.counts: dict[int, int] = {}

    def add(self, bucket: int, count: int) -> None:
        """Count keys that a bucket contains, or, with a negative count, no longer contains; other writers count those
        of their buckets.
        """
        if bucket % self._writers == self._number:
            self.counts[bucket] = self.counts.get(bucket, 0) + count

    def assign(self, times: Ints, left: Ints, left_times: Ints) -> Ints:
        """The bucket of every arriving key, while other keys leave.

        Shapes: `times` and `left_times` ascend, and no time occurs twice; `left`: the buckets that keys leave.
        Cost: one pass over arriving and leaving keys per bucket that has room or loses keys, repeated for each number
          that becomes free and is reused.
        """
        parts = []
        while True:
            counts, found, waiting = self._fill(times, left, left_times)
            if not len(waiting) or self._next() > max(self.counts, default=-1):
                break
            early, gone = times < times[waiting[0]], left_times < times[waiting[0]]
            self.counts, found, _ = self._fill(times[early], left[gone], left_times[gone])
            self.counts[self._next()] = 0
            parts.append(found)
            times, left, left_times = times[~early], left[~gone], left_times[~gone]
        self.counts = counts
        while len(waiting):
            number = self._next()
            found[waiting[: self._target]] = number
            self.counts[number] = min(self._target, len(waiting))
            waiting = waiting[self._target :]
        return np.concatenate([*parts, found])

    def _next(self) -> int:
        """The smallest free number of this writer."""
        return next(number for number in itertools.count(self._number, self._writers) if number not in self.counts)

    def _fill(self, times: Ints, left: Ints, left_times: Ints) -> tuple[dict[int, int], Ints, Ints]:
        """The final counts without new buckets, the bucket of every key, and the keys that no bucket has room for."""
        counts = dict(self.counts)
        found = np.full(len(times), -1, np.int64)
        waiting = np.arange(len(times))
        lost = np.bincount(left) if len(left) else np.empty(0, np.int64)
        for bucket in sorted(counts):
            count = counts[bucket]
            gone = int(lost[bucket]) if bucket < len(lost) else 0
            if len(waiting) and (gone or count < self._target):
                taken = _fits(self._target - count, times[waiting], left_times[left == bucket] if gone else _NEVER)
                found[waiting[taken]] = bucket
                count += int(np.count_nonzero(taken))
                waiting = waiting[~taken]
            counts[bucket] = count - gone
        return counts, found, waiting


_NEVER = np.empty(0, np.int64)


def _fits(room: int, times: Ints, left_times: Ints) -> Mask:
    """A mask of the keys that a bucket with this room takes; `room` is negative if the bucket is overfull."""
    if not len(left_times):
        taken: Mask = np.arange(len(times)) < room
        return taken
    if room < 0:
        if len(left_times) < -room:
            return np.zeros(len(times), np.bool_)
        late = times > left_times[-room - 1]
        taken = np.zeros(len(times), np.bool_)
        taken[late] = _fits(0, times[late], left_times[-room:])
        return taken
    events = np.concatenate([times, left_times])
    order = np.argsort(events, kind="stable")
    comes = order < len(times)
    over = np.cumsum(np.where(comes, 1, -1)) - room
    refused = np.maximum.accumulate(np.maximum(over, 0))
    taken = np.zeros(len(times), np.bool_)
    taken[order[comes]] = (np.diff(refused, prepend=0) == 0)[comes]
    return taken
