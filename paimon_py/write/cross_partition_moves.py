"""The handling of rows whose keys may be in other partitions. Pure.

- deduplicate: the row is written to its own partition, and a −D with its values to the key's previous partition;
- partial-update, aggregation: the row is written to the partition that contains its key;
- first-row: the row is dropped if another partition contains its key.

A deleted key keeps its location. Rows with equal keys are processed in order of arrival.

Source: Java `GlobalIndexAssigner`, `DeleteExistingProcessor`, `UseOldExistingProcessor`, `SkipNewExistingProcessor`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from paimon_py.codec.columns import Ints, Mask, distinct_integers
from paimon_py.write.bucket_counts import BucketCounts

_SHIFT = 32
_LOW = 0xFFFF_FFFF
_END = np.iinfo(np.int64).max
_NOWHERE = np.empty(0, np.int64)


def packed_places(parts: Ints, buckets: Ints) -> Ints:
    """Locations packed into integers: the number of a partition, and of a bucket in it."""
    places: Ints = (parts << _SHIFT) | buckets
    return places


def part_of(places: Ints) -> Ints:
    """The partitions of packed locations."""
    parts: Ints = places >> _SHIFT
    return parts


def bucket_of(places: Ints) -> Ints:
    """The buckets of packed locations."""
    buckets: Ints = places & _LOW
    return buckets


class Batch(NamedTuple):
    """Rows and the partitions of their values.

    `order`: rows sorted by key, stable; `starts`: the start of each key in it; `parts`: the partition of every row;
    `known`: the location of every key, −1 for none.
    """

    order: Ints
    starts: Mask
    parts: Ints
    known: Ints


class CrossPartitionMoves(NamedTuple):
    """The target partitions of rows.

    `rows`: their numbers, in write order; `places`: the location of each; `deletes`: a mask of −D rows for the old
    location of a key, None for none. `keys`: the keys with a new location, and `new_places`.
    """

    rows: Ints
    places: Ints
    deletes: Mask | None
    keys: Ints
    new_places: Ints


class KeyCounts:
    """The number of keys by partition and bucket."""

    def __init__(self, target_rows: int, number: int = 0, writers: int = 1) -> None:
        """Args: as for `BucketCounts`"""
        self._target = target_rows
        self._number = number
        self._writers = writers
        self._partitions: dict[int, BucketCounts] = {}

    def of(self, part: int) -> BucketCounts:
        """The bucket counts of a partition."""
        if part not in self._partitions:
            self._partitions[part] = BucketCounts(self._target, self._number, self._writers)
        return self._partitions[part]

    def assign(self, parts: Ints, rows: Ints, left: Ints, left_rows: Ints) -> Ints:
        """The locations of keys that arrive in partitions with these rows, while others leave their locations."""
        places = np.empty(len(parts), np.int64)
        left_parts = part_of(left)
        coming, leaving = np.lexsort((rows, parts)), np.lexsort((left_rows, left_parts))
        numbers = distinct_integers(np.concatenate([parts, left_parts]))
        comes = np.searchsorted(parts[coming], np.append(numbers, _END)).tolist()
        leaves = np.searchsorted(left_parts[leaving], np.append(numbers, _END)).tolist()
        for at, part in enumerate(numbers.tolist()):
            own, gone = coming[comes[at] : comes[at + 1]], leaving[leaves[at] : leaves[at + 1]]
            buckets = self.of(part).assign(2 * rows[own] + 1, bucket_of(left[gone]), 2 * left_rows[gone])
            places[own] = packed_places(np.full(len(own), part), buckets)
        return places

    def add(self, places: Ints, count: int) -> None:
        """Add a key at each of these locations, or, with −1, remove one."""
        ordered = np.sort(places)
        firsts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if len(ordered) else _NOWHERE
        sizes = np.diff(np.append(firsts, len(ordered)))
        for place, size in zip(ordered[firsts].tolist(), sizes.tolist(), strict=True):
            self.of(place >> _SHIFT).add(place & _LOW, count * size)


Decide = Callable[[Batch, KeyCounts], CrossPartitionMoves]

def delete_old(batch: Batch, counts: KeyCounts) -> CrossPartitionMoves:
    """Every row is written to its own partition, and its key moves there."""
    order, starts = batch.order, batch.starts
    parts = batch.parts[order]
    begins = starts.copy()
    begins[1:] |= parts[1:] != parts[:-1]
    at = np.flatnonzero(begins)
    rows, parts, leads = order[at], parts[at], starts[at]
    before = np.full(len(at), -1, np.int64)
    before[leads] = batch.known
    stays = leads & (before >= 0) & (part_of(before) == parts)
    gone = np.flatnonzero(leads & (before >= 0) & ~stays)
    comes = np.flatnonzero(~stays)
    places = before.copy()
    places[comes] = counts.assign(parts[comes], rows[comes], before[gone], rows[gone])
    follows = np.flatnonzero(~leads)
    before[follows] = places[follows - 1]
    counts.add(before[follows], -1)
    ends = np.append(leads[1:], True)
    keys = np.flatnonzero(places[ends] != batch.known)
    own = np.empty(len(order), np.int64)
    own[order] = places[np.cumsum(begins) - 1]
    dead = np.flatnonzero((before >= 0) & ~stays)
    if not len(dead):
        return CrossPartitionMoves(np.arange(len(own)), own, None, keys, places[ends][keys])
    sources = np.concatenate([rows[dead], np.arange(len(own))])
    again = np.argsort(sources, kind="stable")
    every = np.concatenate([before[dead], own])
    return CrossPartitionMoves(sources[again], every[again], again < len(dead), keys, places[ends][keys])


def use_old(batch: Batch, counts: KeyCounts) -> CrossPartitionMoves:
    """Every row is written to the partition that contains its key."""
    keys = np.flatnonzero(batch.known < 0)
    rows = batch.order[batch.starts][keys]
    places = batch.known.copy()
    places[keys] = counts.assign(batch.parts[rows], rows, _NOWHERE, _NOWHERE)
    own = np.empty(len(batch.order), np.int64)
    own[batch.order] = places[np.cumsum(batch.starts) - 1]
    return CrossPartitionMoves(np.arange(len(own)), own, None, keys, places[keys])


def skip_new(batch: Batch, counts: KeyCounts) -> CrossPartitionMoves:
    """Only rows whose own partition already contains their key are kept."""
    moves = use_old(batch, counts)
    rows = np.flatnonzero(part_of(moves.places) == batch.parts)
    return moves._replace(rows=rows, places=moves.places[rows])


BY_ENGINE: dict[str, Decide] = {
    "deduplicate": delete_old,
    "partial-update": use_old,
    "aggregation": use_old,
    "first-row": skip_new,
}
