"""Ways to plan a scan, each of which must lead to the same rows; they return the scan and its splits."""

from __future__ import annotations

import contextlib

import pytest

from paimon_py.executors import TaskResult
from paimon_py.metadata import manifests
from paimon_py.scan import bucket_parts, lazy_plan, plan_shares

BY_TASKS = {"scan.plan.executor-manifests": "0"}


class Disordered:
    """Runs tasks in a random order, some of them twice, each from bytes."""

    def __init__(self, rng):
        self.rng = rng

    def run(self, job, tasks):
        given = [bytes(task) for task in tasks]
        for task in self.rng.sample(given, len(given)):
            for _ in range(self.rng.choice([1, 1, 2])):
                yield TaskResult.from_bytes(job.run_bytes(task))


@contextlib.contextmanager
def small_parts(rng, *, fits=True):
    """Few entries are many here. `fits`: whether the entries of a snapshot fit into memory."""
    with pytest.MonkeyPatch.context() as patch:
        entries = rng.choice([1, 2, 7, 100])
        for module in (plan_shares, manifests, bucket_parts, lazy_plan):
            patch.setattr(module, "PART_ENTRIES", entries)
        if not fits:
            patch.setattr(manifests, "ENTRY_BYTES", 1 << 40)
        yield


def as_a_whole(rng, table, given):  # noqa: ARG001
    scan = table.scan(**given)
    return scan, scan.splits()


def lazily(rng, table, given):
    scan = table.scan(**given)
    with small_parts(rng, fits=rng.random() < 0.5):
        return scan, list(scan.iter_splits())


def by_tasks(rng, table, given):
    scan = table.scan(**{**given, "options": {**(given.get("options") or {}), **BY_TASKS}})
    with small_parts(rng):
        return scan, list(scan.iter_splits(executor=Disordered(rng)))


PLANS = (as_a_whole, lazily, by_tasks)
