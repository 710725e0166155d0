"""Does the suite notice bugs? Every plant is put into a copy of the package, and one of its judges has to fail."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from planted.planting import PACKAGE, ROOT, SECONDS_MAX, StalePlantError, copied, planted, run_tests, sources
from planted.plants import FOUND_AT_ONCE, FOUND_BY_SEEDS, PLANTS, TWELVE, Plant
from simulation.programs import FAMILIES

SOURCES = sources(ROOT / PACKAGE)


def test_there_are_enough_plants_and_every_one_has_a_name():
    names = [plant.name for plant in PLANTS]
    assert len(set(names)) == len(names) >= 30


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_plants_can_be_planted_and_judged(plant):
    path, text = planted(plant, SOURCES)
    compile(text, path, "exec")
    assert text != SOURCES[path]
    assert plant.judges
    for judge in plant.judges:
        place, _, test = judge.partition("::")
        assert (ROOT / "tests" / place).exists()
        assert f"def {test}(" in (ROOT / "tests" / place).read_text() if test else True


def test_a_plant_whose_snippet_is_gone_or_there_twice_is_named():
    for snippet in ("no such line", "from __future__ import annotations"):
        with pytest.raises(StalePlantError, match="'stale'.*found"):
            planted(Plant("stale", snippet, "", ()), SOURCES)


def test_a_copy_is_what_is_imported_in_it(tmp_path):
    root = copied(tmp_path)
    shown = subprocess.run(
        [sys.executable, "-c", f"import {PACKAGE}; print({PACKAGE}.__file__)"],
        cwd=root, env={"PYTHONPATH": str(root)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert shown.stdout.strip() == str(root / PACKAGE / "__init__.py")


@pytest.mark.full
def test_judges_find_nothing_where_nothing_is_planted(tmp_path):
    judges = sorted({judge for plant in PLANTS for judge in plant.judges})
    done = run_tests(copied(tmp_path), judges, seconds=1800)
    assert done.returncode == 0, done.stdout[-3000:]


def assert_noticed(plant, directory, judges, **limits):
    root = copied(directory)
    path, text = planted(plant, sources(root / PACKAGE))
    path.write_text(text)
    done = run_tests(root, judges, **limits)
    assert done.returncode == 1, f"no test noticed: {plant.name}\n{done.stdout[-3000:]}{done.stderr[-1000:]}"


@pytest.mark.full
@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_planted_bugs_are_noticed(plant, tmp_path):
    assert_noticed(plant, tmp_path, plant.judges)


SEARCH = """
import logging, sys
from simulation.programs import FAMILIES, run_seed

logging.disable(logging.CRITICAL)
others = {each.__name__ for each in FAMILIES} - {sys.argv[1]}
for seed in range(int(sys.argv[2])):
    _, wrong = run_seed(seed, frozenset(others))
    if wrong:
        sys.exit(f"seed {seed}: {wrong[0]}")
"""


def found_by_seeds(root, family, count):
    """What the first seed of a family of schedules says that fails in a checkout; "" if none does."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SEARCH, family, str(count)],
        cwd=root, env={**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{root / 'tests'}"},
        capture_output=True, text=True, timeout=SECONDS_MAX,
    )  # fmt: skip
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr
    return done.stderr


def test_every_one_of_the_twelve_has_seeds_that_look_for_it():
    sought = [[start for start in FOUND_BY_SEEDS if plant.name.startswith(start)] for plant in TWELVE]
    assert [len(starts) for starts in sought] == [1] * len(FOUND_BY_SEEDS)
    assert {family for family, _ in FOUND_BY_SEEDS.values()} <= {family.__name__ for family in FAMILIES}


@pytest.mark.parametrize(
    "start", [pytest.param(start, marks=() if start in FOUND_AT_ONCE else pytest.mark.full) for start in FOUND_BY_SEEDS]
)
def test_seeds_find_each_of_the_twelve_that_nobody_forces(start, tmp_path):
    root = copied(tmp_path)
    path, text = planted(next(plant for plant in TWELVE if plant.name.startswith(start)), sources(root / PACKAGE))
    path.write_text(text)
    assert found_by_seeds(root, *FOUND_BY_SEEDS[start]).startswith("seed ")


@pytest.mark.full
@pytest.mark.parametrize("family", sorted({family for family, _ in FOUND_BY_SEEDS.values()}))
def test_the_same_seeds_find_nothing_where_nothing_is_planted(family):
    most = max(count for other, count in FOUND_BY_SEEDS.values() if other == family)
    assert found_by_seeds(ROOT, family, most) == ""


@pytest.mark.parametrize("family", sorted({FOUND_BY_SEEDS[start][0] for start in FOUND_AT_ONCE}))
def test_a_few_of_the_same_seeds_find_nothing_where_nothing_is_planted(family):
    assert found_by_seeds(ROOT, family, max(FOUND_BY_SEEDS[start][1] for start in FOUND_AT_ONCE)) == ""
