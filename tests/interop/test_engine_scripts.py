"""Random tables of every engine, with compactions between writes: the same by Java, by us, and by both in turn.

`shrink.py` makes a failing seed small.
"""

from __future__ import annotations

import engine_scripts
import pytest
from engine_play import TURNS, Disagreement, check, play

pytestmark = pytest.mark.java

SEEDS = range(12)
MORE_SEEDS = range(12, 600)


@pytest.mark.parametrize("seed", [*SEEDS, *(pytest.param(seed, marks=pytest.mark.full) for seed in MORE_SEEDS)])
def test_a_random_script_ends_alike_whoever_plays_it(seed, java, tmp_path):
    script = engine_scripts.script(seed)
    try:
        check(script, play(java("2.0.0"), tmp_path, script, TURNS))
    except Disagreement as error:
        pytest.fail(f"seed {seed}: {error}\n{script.text()}", pytrace=False)


def test_a_seed_always_gives_the_same_script():
    assert engine_scripts.script(5) == engine_scripts.script(5)
    assert engine_scripts.script(5) != engine_scripts.script(6)
