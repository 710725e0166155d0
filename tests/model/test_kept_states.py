"""Random lives of a table that is cared for; see `kept_life.py`."""

from __future__ import annotations

import pytest
from model.kept_life import KeptLife

STEPS = 60
SHARDS, LIVES = 40, 26
assert SHARDS * LIVES * STEPS >= 60_000


@pytest.mark.parametrize("seed", range(3))
def test_a_life_keeps_what_it_keeps(seed):
    KeptLife(seed).play(STEPS)


def test_lives_let_things_go():
    went = {"files": 0, "snapshots": 0, "expired reads": 0}
    for seed in range(104, 108):
        life = KeptLife(seed)
        life.play(STEPS)
        went = {name: count + life.went[name] for name, count in went.items()}
    assert min(went.values()) > 0, went


@pytest.mark.full
@pytest.mark.parametrize("shard", range(SHARDS))
def test_many_lives_keep_what_they_keep(shard):
    for seed in range(1000 + shard * LIVES, 1000 + (shard + 1) * LIVES):
        KeptLife(seed).play(STEPS)
