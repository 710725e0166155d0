"""Sorting tables while the store fails and others are faster: every row is there once, before, after and in between."""

from __future__ import annotations

import pytest
from faults import compaction_support as support
from faults.compaction_support import Scene, built, check_table, content, orphans, table_on, unsure
from faults.test_compaction_rivals import RIVALS, Done, everywhere, expire, nothing

from paimon_py import PaimonError, Table
from paimon_py.testing.fault_store import MODES, for_each_fault

LOADS = tuple(tuple((1, (7 * k + load) % 40, k % 5, None if k % 9 == 0 else -k) for k in range(12)) for load in range(3))
SMALL = {"target-file-row-num": "10", "write-buffer-size": "1 kb"}
INCREMENTAL = {"clustering.incremental": "true", "clustering.columns": "v,k", "num-sorted-run.compaction-trigger": "2"}
SCENES = {
    "plain": Scene(engine="append", loads=LOADS, options=SMALL),
    "vectors": Scene(engine="append", loads=LOADS, options={**SMALL, "deletion-vectors.enabled": "true"}, dead=4),
    "levels": Scene(engine="append", loads=LOADS, options={**SMALL, **INCREMENTAL}),
}


def sort(table: Table) -> list[Done]:
    """Cluster everything, by way of the disk."""
    asked = {} if "clustering.incremental" in table.schema.options else {"order_by": ["v", "k"], "strategy": "zorder"}
    table.compact(full=True, **asked)
    return []


def sorts(table: Table) -> Done:
    sort(table)
    return Done(0, nothing)


def deletes_and_expires(table: Table) -> Done:
    """Marks or rewrites rows, and the snapshot that was looked at is gone."""
    done = Done(table.delete("v = 3").snapshot_ids[0], without_threes)
    expire(table)
    return done


def without_threes(scene: Scene, state: dict) -> dict:
    return {row: count for row, count in state.items() if row[2] != 3}


OTHERS = {
    **{name: RIVALS[name] for name in ("writer", "compactor", "overwrite", "truncate", "new column", "expiry")},
    "sorting compactor": sorts,
    "delete": deletes_and_expires,
}


def run_faults(name: str, modes, share=None) -> int:
    scene = SCENES[name]

    def check(store, outcome):
        table = table_on(store, "checker")
        named = check_table(table, scene)
        assert content(table, scene) == state
        if outcome.error is not None:
            assert unsure(outcome) or isinstance(outcome.error, PaimonError)
        if not unsure(outcome) and outcome.fault.verb != "delete":
            assert orphans(table, named) == []
        sort(table)
        assert content(table, scene) == state
        check_table(table, scene)

    state = built(scene)[2]
    return for_each_fault(lambda: built(scene)[0], lambda store: sort(table_on(store, "worker")), check, modes=modes, share=share)


@pytest.mark.parametrize("name", SCENES)
def test_some_calls_of_a_sort_fail(name):
    assert run_faults(name, ("before", "after"), share=lambda call, mode: call % 19 == len(mode)) > 10


@pytest.mark.full
@pytest.mark.parametrize("name", SCENES)
def test_every_call_of_a_sort_fails_or_is_the_last(name):
    assert run_faults(name, MODES) > 100


@pytest.mark.parametrize("name", SCENES)
def test_at_some_calls_of_a_sort_others_are_faster(name):
    for place, rival in enumerate(OTHERS):
        everywhere(SCENES[name], sort, OTHERS[rival], share=lambda at, f=place: at % 97 == 11 * f)


@pytest.mark.full
@pytest.mark.parametrize("rival", OTHERS)
@pytest.mark.parametrize("name", SCENES)
def test_whenever_others_are_faster_than_a_sort_the_data_is_kept(name, rival):
    assert everywhere(SCENES[name], sort, OTHERS[rival]) > 20


def test_a_sort_spills_and_leaves_nothing_behind():
    scene = SCENES["plain"]
    store, _, state = built(scene)
    assert support.calls_of(scene, sort) > 60
    sort(table_on(store, "me"))
    assert orphans(table_on(store, "checker")) == []
    assert content(table_on(store, "checker"), scene) == state
