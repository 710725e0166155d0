"""Caches decoded manifests as columns. A manifest never changes, so its name identifies it.

Files that were needed together are stored in one batch: the next plan of the same table uses it unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from paimon_py.codec.manifest.columns import EntryColumns, concat

Fetch = Callable[[Sequence[str]], tuple[EntryColumns, list[int]]]
"""Reads manifests by name: returns their entries, in order, and the number of entries of each."""


class _Place(msgspec.Struct, frozen=True):
    """The range of the entries of one manifest."""

    batch: EntryColumns
    start: int
    stop: int


class ManifestCache:
    """Caches entries by the name of their manifest, at most `max_bytes`.

    Threads may share the cache: a race only costs a second read.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._places: dict[str, _Place] = {}
        self._at_most = 0  # an upper bound of the cached bytes: they are counted only when it is too large

    def load(self, names: Sequence[str], fetch: Fetch, *, holds: bool = True) -> EntryColumns:
        """The entries of the manifests `names`, in this order; `fetch` is called once, for those not cached.

        Args:
            holds: cache what was read; False if it would be evicted before its next use.
        """
        places = [self._places.get(name) for name in names]
        missing = [name for name, place in zip(names, places, strict=True) if place is None]
        if missing:
            columns, counts = fetch(missing)
            if holds:
                self._hold(missing, counts, columns)
            read = dict(zip(missing, _places(counts, columns), strict=True))
            places = [read[name] if place is None else place for name, place in zip(names, places, strict=True)]
        held = [place for place in places if place is not None]
        if len({id(place.batch) for place in held}) == 1:
            return _within(held)
        columns = concat(_pieces(held))
        if holds:
            self._hold(names, [place.stop - place.start for place in held], columns)
        return columns

    def hold(self, name: str, columns: EntryColumns) -> None:
        """Cache the entries of a manifest that was just written."""
        self._hold([name], [len(columns)], columns)

    def forget(self, name: str) -> None:
        """Remove a deleted manifest from the cache."""
        self._places.pop(name, None)

    @property
    def nbytes(self) -> int:
        """The memory of all cached entries, in bytes."""
        return sum({id(place.batch): place.batch.nbytes for place in list(self._places.values())}.values())

    def _hold(self, names: Sequence[str], counts: Sequence[int], columns: EntryColumns) -> None:
        if columns.nbytes > self.max_bytes:
            return
        for name, place in zip(names, _places(counts, columns), strict=True):
            self._places.pop(name, None)
            self._places[name] = place
        self._at_most += columns.nbytes
        if self._at_most > self.max_bytes:
            self._make_room()

    def _make_room(self) -> None:
        """If the cache is too large, evict the oldest batches until a quarter is free."""
        held, left = list(self._places.items()), self.nbytes
        dropped: set[int] = set()
        if left > self.max_bytes:
            newest = id(held[-1][1].batch)
            for _, place in held:
                batch = id(place.batch)
                if 4 * left > 3 * self.max_bytes and batch not in dropped and batch != newest:
                    dropped.add(batch)
                    left -= place.batch.nbytes
            self._places = {name: place for name, place in held if id(place.batch) not in dropped}
        self._at_most = left


def _places(counts: Sequence[int], columns: EntryColumns) -> list[_Place]:
    places = []
    start = 0
    for count in counts:
        places.append(_Place(columns, start, start + count))
        start += count
    return places


def _join(places: Sequence[_Place]) -> list[_Place]:
    """Join neighbours in one batch to one range."""
    ranges: list[_Place] = []
    for place in places:
        last = ranges[-1] if ranges else None
        if last is not None and last.batch is place.batch and last.stop == place.start:
            ranges[-1] = _Place(place.batch, last.start, place.stop)
        elif place.stop > place.start:
            ranges.append(place)
    return ranges


def _within(places: Sequence[_Place]) -> EntryColumns:
    """The ranges of one batch, sharing its buffer."""
    batch = places[0].batch
    ranges = _join(places)
    if len(ranges) == 1:
        start, stop = ranges[0].start, ranges[0].stop
        return batch if stop - start == len(batch) else batch.take(slice(start, stop))
    return batch.take(np.concatenate([np.arange(part.start, part.stop) for part in ranges] or [np.arange(0)]))


def _pieces(places: Sequence[_Place]) -> list[EntryColumns]:
    return [part.batch.take(slice(part.start, part.stop)) for part in _join(places)]
