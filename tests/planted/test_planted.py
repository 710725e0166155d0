"""Does the suite notice bugs? Every plant is put into a copy of the package, and one of its judges has to fail."""

from __future__ import annotations

import subprocess
import sys

import pytest
from planted.planting import PACKAGE, ROOT, StalePlantError, copied, planted, run_tests, sources
from planted.plants import FOUND_BY_SEEDS, PLANTS, Plant

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


@pytest.mark.full
@pytest.mark.parametrize("plant", FOUND_BY_SEEDS, ids=lambda plant: plant.name)
def test_schedules_find_planted_bugs_that_nobody_forces(plant, tmp_path):
    judge = "simulation/test_simulation.py::test_no_schedule_breaks_a_table"
    assert_noticed(plant, tmp_path, [judge], seconds=500)
