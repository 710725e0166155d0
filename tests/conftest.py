"""What a run of tests takes.

`pytest` with nothing named is the short run: no Java, Spark, servers or site, and a sample of the cells of tests that
cost much (`@pytest.mark.dear(share)`), drawn by a seed that the last lines tell. `--everything` is what CI runs. Whoever
names files or tests gets all of what was named.
"""

from __future__ import annotations

import gc
import random
from collections import defaultdict
from datetime import datetime, timezone

import pytest

HEAVY_NEEDS = ("java", "spark", "server", "site", "slow")
"""Marks of tests that the short run leaves to CI."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("paimon_py")
    group.addoption("--everything", action="store_true", help="all tests that are not heavy, and all their cells: what CI runs")
    group.addoption("--seed", help="draws the cells of dear tests in a short run (the day, as 2026-11-27)")


def pytest_configure(config: pytest.Config) -> None:
    """Decided once, by the process that the user began; the workers of xdist are told."""
    if hasattr(config, "workerinput"):
        config.option.everything, config.option.seed = config.workerinput["taken"]
        return
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        config.option.everything = True
    if config.option.seed is None:
        config.option.seed = f"{datetime.now(timezone.utc):%Y-%m-%d}"


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node) -> None:
    node.workerinput["taken"] = (node.config.option.everything, node.config.option.seed)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the short run does not take."""
    if config.option.everything:
        return
    left_out = {item.nodeid for item in items if any(item.get_closest_marker(mark) for mark in HEAVY_NEEDS)}
    cells = defaultdict(list)
    for item in items:
        if item.get_closest_marker("dear"):
            cells[item.nodeid.partition("[")[0]].append(item)
    for name, grid in cells.items():
        (share,) = grid[0].get_closest_marker("dear").args
        taken = random.Random(f"{config.option.seed} {name}").sample(grid, -(-len(grid) // share))
        left_out.update({item.nodeid for item in grid} - {item.nodeid for item in taken})
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
    items[:] = [item for item in items if item.nodeid not in left_out]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let the garbage collector look at what tests make, and not at twenty thousand tests, each time it runs."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    if not config.option.everything:
        terminalreporter.write_line(f"short run: cells of dear tests by --seed={config.option.seed}; --everything runs all, as CI does")
