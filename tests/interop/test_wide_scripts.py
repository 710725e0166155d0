"""Tables of any shape whose columns change between operations on their rows: the same by Java, by us, and by both in turn."""

from __future__ import annotations

import pytest
from engine_play import play
from table_play import check
from wide_scripts import MODES, wide

pytestmark = pytest.mark.java

TURNS = (("j", "oj"), ("j", "jo"), ("j", "o"))
SEEDS = range(200)
QUICK = (1, 18, 56)


def test_every_mode_is_drawn():
    assert {wide(seed).about.split(": ")[1].rpartition(" ")[0] for seed in SEEDS} == set(MODES)


@pytest.mark.parametrize("seed", [seed if seed in QUICK else pytest.param(seed, marks=pytest.mark.full) for seed in SEEDS])
def test_a_table_of_any_shape_ends_alike_whoever_acts(seed, java, tmp_path):
    script = wide(seed)
    check(script, play(java("2.0.0"), tmp_path, script, TURNS[seed % 3]))


@pytest.mark.full
@pytest.mark.parametrize("seed", range(1200, 1240))
def test_an_older_java_and_we_take_turns_at_tables_of_any_shape(seed, java, tmp_path):
    script = wide(seed)
    check(script, play(java("1.4.2"), tmp_path, script, TURNS[seed % 3]))
