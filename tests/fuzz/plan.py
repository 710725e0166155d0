"""Which inputs a run takes: numbers of every target by its weight, and bits of every sweep."""

from __future__ import annotations

from fuzz.runner import Job
from fuzz.worker import targets

PART = 250
"""Inputs of one job at most, so that processes share them evenly."""


def seeded(inputs: int, first: int = 0, names=None) -> list[Job]:
    """About so many inputs over the targets by weight, at least one each, with numbers from `first`; sweeps take part by samples."""
    chosen = [target for name, target in targets().items() if target.weight and (names is None or name in names)]
    total = sum(target.weight for target in chosen if target.sweep is None) + sum(1 for target in chosen if target.sweep)
    jobs = []
    for target in chosen:
        count = -(-inputs * target.weight // total)
        if target.sweep is None:
            jobs += [Job(target.name, start, min(PART, first + count - start)) for start in range(first, first + count, PART)]
        else:
            bits = target.sweep()
            step = max(1, bits // count)
            jobs.append(Job(target.name, first % step, min(count, bits // step), step))
    return jobs


def swept(shard: int, shards: int) -> list[Job]:
    """A share of all bits of all sweeps."""
    found = []
    for target in targets().values():
        if target.sweep:
            count = len(range(shard, target.sweep(), shards))
            found.append(Job(target.name, shard, count, shards))
    return found
