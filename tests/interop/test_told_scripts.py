"""Random tables of every shape that tell what changes: the same by Java and by us, whoever reads it.

A few seeds of each suite in the bounded run.
"""

from __future__ import annotations

import pytest
import told_scripts
from engine_play import Disagreement, play

pytestmark = pytest.mark.java

SEEDS = {"engine": range(120), "table": range(80), "wide": range(80)}
QUICK = {"engine": (0, 1, 13), "table": (8, 26), "wide": (37,)}
TURNS = (("j", "o"), ("j", "oj"), ("j", "jo"))
DRAWN = {suite: [seed for seed in seeds if told_scripts.drawn(suite, seed)] for suite, seeds in SEEDS.items()}


def tell(suite: str, seed: int, session, folder, turns) -> None:
    script = told_scripts.drawn(suite, seed)
    try:
        told_scripts.check(script, play(session, folder, script, turns))
    except Disagreement as error:
        pytest.fail(f"{suite} {seed}: {error}\n{script.text()}", pytrace=False)


@pytest.mark.parametrize(("suite", "seed"), [(suite, seed) for suite in QUICK for seed in QUICK[suite]])
def test_a_table_tells_what_the_one_of_java_tells(suite, seed, java, tmp_path):
    tell(suite, seed, java("2.0.0"), tmp_path, ("j", "o"))


@pytest.mark.full
@pytest.mark.parametrize(("suite", "seed"), [(suite, seed) for suite in DRAWN for seed in DRAWN[suite] if seed not in QUICK[suite]])
def test_all_tables_tell_what_those_of_java_tell(suite, seed, java, tmp_path):
    tell(suite, seed, java("2.0.0"), tmp_path, TURNS[seed % 3])
