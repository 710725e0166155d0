"""Assigns keys to dynamic buckets: to the bucket that already has the hash, otherwise to one with room. Pure.

Source: format.md §7.4; Java `PartitionIndex`, `HashBucketAssigner`, `BucketAssigner`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
import numpy as np
import numpy.typing as npt

from paimon_py.codec.binary_row.hash import hash_row
from paimon_py.codec.columns import Int32s, Ints, Mask
from paimon_py.errors import OptionError, UsageError
from paimon_py.spec.options import Options

Shorts = npt.NDArray[np.int16]
Keep = Callable[[Int32s], Mask]

BUCKETS_MAX = 32_767
_FIRST_SLOTS = 16
_HALF = 32
_LOW = 0xFFFF_FFFF


class AssignerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of buckets: maximum size and number. Assigner `number` of `count` fills only its own buckets."""

    target_rows: int = 2_000_000
    buckets_max: int | None = None
    count: int = 1
    number: int = 0

    def owns(self, bucket: int) -> bool:
        """Whether this assigner fills the bucket."""
        return bucket % self.count == self.number % self.count


def with_limits(settings: AssignerSettings, options: Options) -> AssignerSettings:
    """The settings with the limits that a table's options set.

    Raises: OptionError for limits that allow no bucket.
    """
    target = _at_least_one("dynamic-bucket.target-row-num", options.get_int("dynamic-bucket.target-row-num"))
    most: int | None = options.get_int("dynamic-bucket.max-buckets")
    most = None if most == -1 else _at_least_one("dynamic-bucket.max-buckets", most or 0)
    return msgspec.structs.replace(settings, target_rows=target, buckets_max=most)


def _at_least_one(name: str, value: int) -> int:
    if value < 1:
        raise OptionError(f"option {name!r} is {value}; it must be at least 1", option=name, value=str(value))
    return value


def assigners_of(partition: bytes, hashes: Int32s, *, channels: int, assigners: int) -> Int32s:
    """The channel that each key of a partition belongs to when `assigners` of `channels` writers share a partition."""
    own = np.abs(np.fmod(hashes, np.int32(assigners)))
    numbers: Int32s = ((start_of(partition, channels) + own) % channels).astype(np.int32)
    return numbers


def start_of(partition: bytes, channels: int) -> int:
    """The channel of the first assigner of a partition; the next channels are those of the others."""
    return abs(int(np.fmod(hash_row(partition), channels)))


class KnownHashes:
    """Hashes and the bucket of each.

    They are stored in a few sorted arrays; the newest one is the smallest, so that adding hashes is cheap.
    Memory: six bytes per hash.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[Int32s, Shorts]] = []

    def find(self, hashes: Int32s) -> Shorts:
        """The bucket of each hash; -1 if it is unknown."""
        buckets = np.full(len(hashes), -1, np.int16)
        for known, places in self._parts:
            if not len(known):
                continue
            at = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
            hit = known[at] == hashes
            buckets[hit] = places[at[hit]]
        return buckets

    def add(self, hashes: Int32s, buckets: Shorts) -> None:
        """Add hashes that are not known yet."""
        order = np.argsort(hashes, kind="stable")
        hashes, buckets = hashes[order], buckets[order]
        while self._parts and len(self._parts[-1][0]) <= 2 * len(hashes):
            older, places = self._parts.pop()
            hashes, buckets = np.concatenate([older, hashes]), np.concatenate([places, buckets])
            order = np.argsort(hashes, kind="stable")
            hashes, buckets = hashes[order], buckets[order]
        self._parts.append((hashes, buckets))


class PartitionBuckets:
    """The hashes of one partition and the bucket of each."""

    def __init__(
        self, settings: AssignerSettings, known: Iterable[tuple[int, Int32s]], keep: Keep | None = None
    ) -> None:
        """`known`: buckets and their hashes, in the order of the index manifest; `keep`: selects possible hashes."""
        self._settings = settings
        found = list(known)
        self._known = KnownHashes()
        if found:
            hashes = np.concatenate([own for _, own in found])
            buckets = np.repeat(np.array([bucket for bucket, _ in found], np.int16), [len(own) for _, own in found])
            mine = slice(None) if keep is None else keep(hashes)
            self._known.add(hashes[mine], buckets[mine])
        counts = [(bucket, len(own)) for bucket, own in found if len(own) and settings.owns(bucket)]
        sizes = dict(counts)
        self._open = [(bucket, sizes[bucket]) for bucket in _java_order(counts)]
        self._buckets = {bucket for bucket, _ in counts}
        self._next = settings.number % settings.count

    def assign(self, hashes: Int32s) -> tuple[Ints, dict[int, Int32s]]:
        """The bucket of each hash, and the new hashes by bucket, in order of first occurrence.

        Cost: about 0.1 µs per hash.
        Raises: UsageError if there are too many buckets.
        """
        words = np.sort((hashes.astype(np.int64) << _HALF) | np.arange(len(hashes)))
        ordered, rows = (words >> _HALF).astype(np.int32), words & _LOW
        begins = np.ones(len(words), np.bool_)
        begins[1:] = ordered[1:] != ordered[:-1]
        buckets, fresh = self._assign(ordered[begins], rows[begins])
        numbers = np.empty(len(hashes), np.int64)
        numbers[rows] = buckets[np.cumsum(begins) - 1]
        return numbers, fresh

    def _assign(self, distinct: Int32s, first: Ints) -> tuple[Shorts, dict[int, Int32s]]:
        """The bucket of each distinct hash, and the new ones by bucket; `first`: the first occurrence of each."""
        buckets = self._known.find(distinct)
        missing = np.flatnonzero(buckets < 0)
        fresh: dict[int, Int32s] = {}
        if len(missing):
            came = missing if self._has_room(len(missing)) else _in_order(missing, first[missing])
            start = 0
            for bucket, size in self._places(distinct[came]):
                rows = came[start : start + size]
                buckets[rows] = bucket
                own = distinct[rows]
                fresh[bucket] = np.concatenate([fresh[bucket], own]) if bucket in fresh else own
                start += size
            self._known.add(distinct[missing], buckets[missing])
        return buckets, fresh

    def _places(self, hashes: Int32s) -> Iterable[tuple[int, int]]:
        """Buckets for new hashes and the number of hashes for each, in order."""
        left = len(hashes)
        target = self._settings.target_rows
        while left:
            if self._open and self._open[0][1] >= target:
                del self._open[0]
                continue
            if not self._open:
                bucket = self._new_bucket()
                if bucket is None:
                    yield from self._overflow(hashes[len(hashes) - left :])
                    return
                self._open.append((bucket, 0))
            bucket, size = self._open[0]
            taken = min(left, target - size)
            self._open[0] = (bucket, size + taken)
            left -= taken
            yield bucket, taken

    def _has_room(self, count: int) -> bool:
        """Whether the next bucket has room for all of them, so that their order does not matter."""
        used = next((size for _, size in self._open if size < self._settings.target_rows), 0)
        return used + count <= self._settings.target_rows

    def _new_bucket(self) -> int | None:
        """The smallest free number; None if the maximum number of buckets is reached."""
        most = self._settings.buckets_max
        while self._next in self._buckets:
            self._next += self._settings.count
        if self._next >= (BUCKETS_MAX if most is None else most):
            if most is None:
                raise UsageError(
                    f"a partition has {len(self._buckets)} buckets, and no more can be numbered; raise the option "
                    f"'dynamic-bucket.target-row-num' ({self._settings.target_rows})"
                )
            return None
        self._buckets.add(self._next)
        return self._next

    def _overflow(self, hashes: Int32s) -> Iterable[tuple[int, int]]:
        """If all buckets are full and no more are allowed: distribute hashes over them by value (Java: at random)."""
        if not self._buckets:
            raise UsageError(
                "no bucket is left for this assigner: the option 'dynamic-bucket.max-buckets' is smaller than the "
                "number of writers"
            )
        choice = np.array(sorted(self._buckets))[np.abs(hashes.astype(np.int64)) % len(self._buckets)]
        for bucket in choice.tolist():
            yield bucket, 1


def _in_order(items: Ints, places: Ints) -> Ints:
    """Items ordered by their distinct positions; a sort would take ten times as long."""
    spread = np.full(int(places.max()) + 1, -1, np.int64)
    spread[places] = items
    return spread[spread >= 0]


def _java_order(counts: list[tuple[int, int]]) -> list[int]:
    """Buckets in the iteration order of Java's hash table.

    The table starts with 16 slots and doubles when it is three quarters full; a bucket is inserted at the head of its
    slot.
    """
    slots: list[list[int]] = [[] for _ in range(_FIRST_SLOTS)]
    size = 0
    for bucket, count in counts:
        for step in range(min(count, 2)):
            if size > len(slots) * 3 // 4:
                slots = _double(slots)
            if step == 0:
                slots[bucket % len(slots)].insert(0, bucket)
                size += 1
    return [bucket for slot in slots for bucket in slot]


def _double(slots: list[list[int]]) -> list[list[int]]:
    larger: list[list[int]] = [[] for _ in range(2 * len(slots))]
    for slot in slots:
        for bucket in slot:
            larger[bucket % len(larger)].append(bucket)
    return larger
