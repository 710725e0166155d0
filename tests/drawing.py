"""Which cells a run takes of tests that cost much, by what they cost when somebody last looked.

`costs.txt` beside this file has a line for each test function that costs more than a moment: the seconds of one cell.
A run gives each function the same budget, and takes grids of cheap cells whole. A function that costs more is drawn
down to it: as many cells as the budget pays for, and a function whose one cell is dearer than that runs now and then. A
property that Hypothesis draws values for runs always, with as many examples as the budget pays for.
`@pytest.mark.budget(30)` gives a test of its own more; `@pytest.mark.budget(None)` is for tests that every run takes
whole.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import hypothesis
import pytest

COSTS = Path(__file__).with_name("costs.txt")
MOMENT = 0.4
"""Seconds of a whole function below which nobody writes down what it costs."""
SHORT, EVERYTHING = 0.8, 2.0
"""Seconds for each function in the short run, and in the one with Java, Spark and servers."""
CHEAP = 0.05
"""Seconds of a cell up to which a grid runs whole: it is often a single cell that notices a mistake."""
EXAMPLES_MIN = 6
"""Examples of a property that every run draws, whatever they cost."""
RULES = "tests/house/"
"""Rules that look at the whole package: every change may break them, so every run takes them."""


def function_of(test: str) -> str:
    """The function of a cell: the name that pytest gives it, without its parameters."""
    return test.partition("[")[0]


def read_costs(file: Path = COSTS) -> dict[str, float]:
    """Seconds of one cell by function."""
    lines = (line.split() for line in file.read_text(encoding="utf-8").splitlines())
    return {name: float(seconds) for seconds, name in lines}


def write_costs(durations: Mapping[str, float], file: Path = COSTS) -> None:
    """Write down what functions cost in a run (seconds by test); those that did not run keep their lines."""
    by_function: dict[str, list[float]] = defaultdict(list)
    for test, seconds in durations.items():
        by_function[function_of(test)].append(seconds)
    costs = read_costs(file) if file.exists() else {}
    for name, cells in by_function.items():
        costs.pop(name, None)
        if sum(cells) >= MOMENT:
            costs[name] = sum(cells) / len(cells)
    file.write_text("".join(f"{seconds:.2f} {name}\n" for name, seconds in sorted(costs.items())), encoding="utf-8")


def cells_to_run(cells: list[str], cost: float, budget: float, rng: random.Random) -> set[str]:
    """As many of the cells as the budget pays for; what is left of it pays for one more in so many runs."""
    affordable = budget / cost
    count = int(affordable) + (rng.random() < affordable % 1)
    return set(cells) if count >= len(cells) else set(rng.sample(cells, count))


def not_drawn(items: Iterable[pytest.Item], seed: str, budget: float, costs: Mapping[str, float]) -> set[str]:
    """The tests that a run with this seed leaves out."""
    rest: set[str] = set()
    for name, grid in _with_costs(items, costs).items():
        limit = _limit(grid[0], budget)
        if limit is not None and costs[name] > CHEAP:
            cost = min(costs[name], limit) if _is_property(grid[0]) else costs[name]
            cells = [item.nodeid for item in grid]
            rest |= set(cells) - cells_to_run(cells, cost, limit, random.Random(f"{seed} {name}"))
    return rest


def reduce_examples(items: Iterable[pytest.Item], budget: float, costs: Mapping[str, float]) -> None:
    """Let properties that cost more than the budget draw fewer examples: no property is left out as a whole."""
    for name, grid in _with_costs(items, costs).items():
        limit = _limit(grid[0], budget)
        if limit is not None and costs[name] > limit and _is_property(grid[0]):
            test = grid[0].obj  # type: ignore[attr-defined]
            drawn = test._hypothesis_internal_use_settings  # where hypothesis.settings writes what it decorates
            count = examples_to_run(drawn.max_examples, costs[name], limit)
            test._hypothesis_internal_use_settings = hypothesis.settings(drawn, max_examples=count)


def examples_to_run(count: int, cost: float, budget: float) -> int:
    """As many examples of a property as the budget pays for, but a few in any case."""
    return min(count, max(EXAMPLES_MIN, int(count * budget / cost)))


def _with_costs(items: Iterable[pytest.Item], costs: Mapping[str, float]) -> dict[str, list[pytest.Item]]:
    """The cells of functions whose cost is known, by function."""
    grids = defaultdict(list)
    for item in items:
        name = function_of(item.nodeid)
        if costs.get(name):
            grids[name].append(item)
    return grids


def _limit(item: pytest.Item, budget: float) -> float | None:
    """The seconds that a run spends on the function of a cell; None: all that it takes."""
    mark = item.get_closest_marker("budget")
    if mark:
        limit: float | None = mark.args[0]
        return limit
    return None if item.nodeid.startswith(RULES) else budget


def _is_property(item: pytest.Item) -> bool:
    return hasattr(getattr(item, "obj", None), "hypothesis")
