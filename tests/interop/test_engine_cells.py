"""Every engine, function, way of deleting, format and level: the same by Java, by us, and by both in turn."""

from __future__ import annotations

import engine_cells
import pytest
from engine_play import check, play

pytestmark = pytest.mark.java

QUICK = engine_cells.quick()
"""What CI plays; the whole matrix is played with `-m full`."""
ALL = {script.about: script for script in [*QUICK, *engine_cells.every()]}
CASES = [pytest.param(script, id=name, marks=() if script in QUICK else pytest.mark.full) for name, script in ALL.items()]


@pytest.mark.parametrize("script", CASES)
def test_a_cell_of_the_matrix_ends_alike_whoever_plays_it(script, java, tmp_path):
    turns = ("j", "o", "oj") if script in QUICK else ("j", "o", "oj", "jo")
    check(script, play(java("2.0.0"), tmp_path, script, turns))
