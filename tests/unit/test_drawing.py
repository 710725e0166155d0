"""What a run draws of tests that cost much."""

from __future__ import annotations

import random
from pathlib import Path

import drawing
import hypothesis
import hypothesis.strategies
import pytest

GRID = [f"tests/unit/test_a.py::test_grid[{n}]" for n in range(10)]


def runs_of(cost: float, budget: float) -> list[set[str]]:
    return [drawing.cells_to_run(GRID, cost, budget, random.Random(seed)) for seed in range(400)]


@pytest.mark.parametrize(("cost", "budget", "most"), [(0.5, 2.0, 4), (0.3, 1.0, 4), (4.0, 1.0, 1), (0.1, 1.0, 10), (0.05, 1.0, 10)])
def test_a_budget_pays_for_its_seconds_on_average(cost, budget, most):
    runs = runs_of(cost, budget)
    assert max(len(run) for run in runs) == most
    spent = sum(len(run) for run in runs) * cost / len(runs)
    assert spent == pytest.approx(min(budget, cost * len(GRID)), rel=0.2)


def test_every_cell_has_its_turn():
    assert set().union(*runs_of(4.0, 1.0)) == set(GRID)


def test_costs_are_the_means_of_a_run_and_others_keep_theirs(tmp_path):
    file = tmp_path / "costs.txt"
    drawing.write_costs({"a::old": 5.0, "a::grid[0]": 1.0}, file)
    drawing.write_costs({"a::grid[0]": 2.0, "a::grid[1]": 4.0, "a::cheap": 0.01}, file)
    assert drawing.read_costs(file) == {"a::old": 5.0, "a::grid": 3.0}
    drawing.write_costs({"a::grid[0]": 0.01}, file)
    assert drawing.read_costs(file) == {"a::old": 5.0}


class Cell:
    """As much of a test as the drawing looks at."""

    def __init__(self, nodeid: str, mark: pytest.Mark | None = None) -> None:
        self.nodeid, self.mark = nodeid, mark

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return self.mark


def test_a_mark_gives_a_test_a_budget_of_its_own_and_rules_are_whole():
    costs = {"tests/unit/test_a.py::test_grid": 1.0, "tests/house/test_b.py::test_rule": 50.0}
    rule = Cell("tests/house/test_b.py::test_rule")
    cheap = Cell("tests/unit/test_a.py::test_cheap")
    plain = drawing.not_drawn([*map(Cell, GRID), rule, cheap], "day", 3.0, costs)
    assert plain < set(GRID)
    assert len(plain) == 7
    more = [Cell(name, pytest.mark.budget(9).mark) for name in GRID]
    assert len(drawing.not_drawn(more, "day", 3.0, costs)) == 1
    whole = [Cell(name, pytest.mark.budget(None).mark) for name in GRID]
    assert drawing.not_drawn(whole, "day", 3.0, costs) == set()


def a_property(name: str, **settings) -> tuple[Cell, list[int]]:
    seen: list[int] = []

    @hypothesis.settings(deadline=None, database=None, **settings)
    @hypothesis.given(hypothesis.strategies.integers())
    def drawn(value):
        seen.append(value)

    cell = Cell(name)
    cell.obj = drawn
    return cell, seen


@pytest.mark.parametrize(("cost", "examples"), [(0.5, 100), (2.0, 100), (4.0, 50), (40.0, drawing.EXAMPLES_MIN)])
def test_a_property_runs_every_day_with_the_examples_that_its_budget_pays_for(cost, examples):
    cell, seen = a_property(GRID[0])
    costs = {"tests/unit/test_a.py::test_grid": cost}
    assert all(drawing.not_drawn([cell], f"day {day}", 2.0, costs) == set() for day in range(30))
    drawing.reduce_examples([cell, cell], 2.0, costs)
    cell.obj()
    assert examples // 2 <= len(set(seen)) and len(seen) <= examples + 2


def test_a_property_with_a_budget_of_its_own_or_fewer_examples_keeps_them():
    assert drawing.examples_to_run(3, 40.0, 1.0) == 3
    cell, seen = a_property(GRID[0], max_examples=20)
    cell.mark = pytest.mark.budget(None).mark
    drawing.reduce_examples([cell], 2.0, {"tests/unit/test_a.py::test_grid": 40.0})
    cell.obj()
    assert len(seen) >= 15


def test_grids_of_cheap_cells_are_whole():
    grid = [Cell(f"tests/unit/test_a.py::test_grid[{n}]") for n in range(500)]
    assert drawing.not_drawn(grid, "day", 0.8, {"tests/unit/test_a.py::test_grid": drawing.CHEAP}) == set()
    assert len(drawing.not_drawn(grid, "day", 0.8, {"tests/unit/test_a.py::test_grid": 2 * drawing.CHEAP})) >= 490


def test_the_seed_decides():
    costs = {"tests/unit/test_a.py::test_grid": 1.0}
    days = [drawing.not_drawn(list(map(Cell, GRID)), f"2026-11-{day}", 3.0, costs) for day in (10, 10, 11, 12, 13)]
    assert days[0] == days[1]
    assert len({frozenset(day) for day in days}) > 1


def test_costs_are_those_of_tests_that_are_there():
    root = Path(__file__).parents[2]
    source = {file: (root / file).read_text(encoding="utf-8") for file in {name.partition("::")[0] for name in drawing.read_costs()}}
    plain = [name for name in drawing.read_costs() if name.count("::") == 1]  # classes may inherit theirs from a suite
    gone = [name for name in plain if f"def {name.rpartition('::')[2]}(" not in source[name.partition("::")[0]]]
    assert gone == [], "run with --write-costs, or delete their lines"
