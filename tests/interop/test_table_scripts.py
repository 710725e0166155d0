"""Every bucket mode with every operation on its rows: the same by Java, by us, and by both in turn.

`shrink.py` makes a failing script small.
"""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest
import table_scripts
from engine_play import TURNS, play
from table_play import check

pytestmark = pytest.mark.java

CELLS = {script.about: script for script in table_scripts.cells()}
KEYS = {script.about: script for script in table_scripts.of_keys()}
SEEDS = range(150)


def quick() -> list[str]:
    """One story of each mode, every story at least once."""
    told: Counter[str] = Counter()
    names = []
    for mode in table_scripts.TABLES:
        plot = min(table_scripts.MODES[mode].stories, key=lambda one: told[one])
        told[plot] += 1
        names.append(f"{mode}: {plot}")
    assert set(told) == set(table_scripts.STORIES)
    return names


def bounded(names, some) -> list:
    """All names with their numbers; what bounded runs leave out is marked."""
    return [pytest.param(number, name, id=name, marks=() if name in some else pytest.mark.full) for number, name in enumerate(names)]


def turns(number: int) -> tuple[str, ...]:
    """Java alone, and both in one of two orders."""
    return ("j", ("oj", "jo")[number % 2])


def test_there_are_enough_scripts():
    assert len(CELLS) >= 200
    assert len(KEYS) >= 40


@pytest.mark.budget(10)
@pytest.mark.parametrize(("number", "name"), bounded(CELLS, quick()))
def test_a_mode_and_an_operation_end_alike_whoever_acts(number, name, java, tmp_path):
    check(CELLS[name], play(java("2.0.0"), tmp_path, CELLS[name], turns(number)))


@pytest.mark.parametrize(("number", "name"), bounded(KEYS, list(KEYS)[::7]))
def test_keys_of_a_type_stay_in_their_buckets_whoever_acts(number, name, java, tmp_path):
    check(KEYS[name], play(java("2.0.0"), tmp_path, KEYS[name], turns(number)))


@pytest.mark.full
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_script_ends_alike_whoever_acts(seed, java, tmp_path):
    script = table_scripts.drawn(seed)
    check(script, play(java("2.0.0"), tmp_path, script, TURNS))


OLDER = {
    "0.9.0": ("fixed", "fixed vectors", "fixed sequence", "dynamic parts", "files in buckets"),
    "1.4.2": ("fixed by some columns", "fixed vectors of 64 bits", "fixed partial-update", "hive", "dynamic", "dynamic vectors", "dynamic at most two",
              "postponed parts", "files in parts", "files, vectors", "files in buckets"),
}  # fmt: skip
PLOTS = {"0.9.0": ("merge", "look", "rescale", "shared", "index"), "1.4.2": ("merge", "look", "rescale", "shared", "publish", "overwrite", "index")}
"""Java 0.9 cannot drop partitions through its tables."""

OLD_QUICK = ("dynamic parts: merge", "postponed parts: publish", "files, vectors: merge")
OLD = [
    pytest.param(version, name, id=f"{version} {name}", marks=() if name in OLD_QUICK else pytest.mark.full)
    for version, modes in OLDER.items()
    for mode in modes
    for name in (f"{mode}: {plot}" for plot in PLOTS[version])
    if name in CELLS
]


@pytest.mark.parametrize(("version", "name"), OLD)
def test_older_javas_and_we_take_turns(version, name, java, tmp_path):
    script = CELLS[name]
    if version == "0.9.0" and "file-index.bitmap.columns" in script.options:  # it cannot read newer bitmaps
        script = dataclasses.replace(script, options={**script.options, "file-index.bitmap.v.version": "1", "file-index.bitmap.k.version": "1"})
    check(script, play(java(version), tmp_path, script, ("j", "oj", "jo")))
