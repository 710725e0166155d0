"""Exact running sums of integers of up to 128 bits, group by group."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paimon_py.codec.columns import Ints, Mask, Words

_LOW = 0xFFFF_FFFF
_TOP = 1 << 31


class Wide(NamedTuple):
    """Signed 128-bit integers in two halves, saturated at the largest and smallest value."""

    low: Words
    high: Ints

    @classmethod
    def of_integers(cls, values: Ints) -> Wide:
        """Extend 64-bit integers."""
        return cls(values.view(np.uint64), values >> 63)

    def at(self, rows: Ints | Mask) -> Wide:
        """The integers at `rows`."""
        return Wide(self.low[rows], self.high[rows])

    def halves(self) -> Words:
        """The pairs of halves."""
        return np.stack((self.low, self.high.view(np.uint64)), axis=1)

    def outside(self, least: int, most: int) -> Mask:
        """A mask of the integers less than `least` or more than `most`, both within 128 bits."""
        (least_high, least_low), (most_high, most_low) = divmod(least, 1 << 64), divmod(most, 1 << 64)
        less = (self.high < least_high) | ((self.high == least_high) & (self.low < np.uint64(least_low)))
        more = (self.high > most_high) | ((self.high == most_high) & (self.low > np.uint64(most_low)))
        found: Mask = less | more
        return found


def running_sums(values: Wide, subtract: Mask | None, starts: Ints, ends: Ints) -> Wide:
    """The sum of every group up to and including each of its rows; groups follow each other without gaps.

    Cost: 40 ns a row: four limbs of 32 bits, one running sum each, then the carries.
    """
    limbs = [
        (values.low & np.uint64(_LOW)).astype(np.int64),
        (values.low >> np.uint64(32)).astype(np.int64),
        values.high & _LOW,
        values.high >> 32,
    ]
    lengths = ends - starts
    for number, limb in enumerate(limbs):
        signed = limb if subtract is None else np.where(subtract, -limb, limb)
        sums = np.cumsum(signed)
        before = np.where(starts > 0, sums[starts - 1], 0)
        limbs[number] = sums - np.repeat(before, lengths)
    for lower, upper in ((0, 1), (1, 2), (2, 3)):
        limbs[upper] = limbs[upper] + (limbs[lower] >> 32)
        limbs[lower] = limbs[lower] & _LOW
    low = limbs[0].view(np.uint64) | (limbs[1].view(np.uint64) << np.uint64(32))
    high = (np.clip(limbs[3], -_TOP, _TOP - 1) << 32) | limbs[2]
    high[limbs[3] >= _TOP] = (1 << 63) - 1
    high[limbs[3] < -_TOP] = -(1 << 63)
    return Wide(low, high)
