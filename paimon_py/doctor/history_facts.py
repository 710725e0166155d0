"""Gathers the facts about the history of a table; nothing is changed."""

from __future__ import annotations

from itertools import pairwise

import msgspec

from paimon_py.doctor.facts import Broken, HistoryFacts, StrayConsumer
from paimon_py.errors import CorruptionError
from paimon_py.metadata.branches import branch_directories, branch_names
from paimon_py.metadata.hints import read_hint
from paimon_py.metadata.id_runs import runs_of_ids
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.layout import MAIN_BRANCH, latest_hint_path
from paimon_py.spec.snapshot import Base

NEWEST = 100
"""The number of snapshots whose parents are checked."""


def gather_history(root: TableRoot, broken: list[Broken]) -> HistoryFacts:
    """Check the history of a branch: its completeness, and consumers that are not on it.

    Cost: some lists, the LATEST hint, one get for each of the newest snapshots, and three for each consumer.
    """
    ids = root.snapshots.ids()
    found = HistoryFacts(
        runs=tuple((run[0], run[-1]) for run in runs_of_ids(ids)), seams=_seams(root, ids[-NEWEST:]),
        half_branches=_half_branches(root), hint=read_hint(root.store, latest_hint_path(root.branch_path)),
    )  # fmt: skip
    try:
        cut = None if root.history is not None else root.cuts.find()
        return msgspec.structs.replace(found, cut=None if cut is None else cut.call, astray=_astray(root, ids))
    except CorruptionError as error:
        broken.append(Broken(error.path or root.path, str(error)))
        return found


def _seams(root: TableRoot, ids: list[int]) -> tuple[int, ...]:
    snapshots = [one for number in ids if (one := root.snapshots.find(number)) is not None]
    neighbours = [(before, after) for before, after in pairwise(snapshots) if after.id == before.id + 1]
    return tuple(after.id for before, after in neighbours if after.follows(before) is False)


def _half_branches(root: TableRoot) -> tuple[str, ...]:
    if root.branch != MAIN_BRANCH or root.history is not None:
        return ()
    complete = set(branch_names(root))
    return tuple(name for name in branch_directories(root) if name not in complete)


def _astray(root: TableRoot, ids: list[int]) -> tuple[StrayConsumer, ...]:
    """The consumers that have read a snapshot which is no longer in the history."""
    last = ids[-1] if ids else 0
    found = []
    for consumer in root.consumers.all():
        read = root.consumers.read_by(consumer)
        if consumer.next_snapshot_id > last + 1 or (read is not None and _is_gone(root, read)):
            found.append(StrayConsumer(consumer.name, consumer.next_snapshot_id - 1))
    return tuple(found)


def _is_gone(root: TableRoot, read: Base) -> bool:
    """Whether a snapshot was replaced by another with its id; if none has the id, the next snapshot may show it."""
    there = root.find_kept(read.id)
    if there is not None:
        return not read.is_of(there)
    after = root.find_kept(read.id + 1)
    return after is not None and after.follows(read) is False
