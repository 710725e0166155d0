"""What a run of tests takes.

`pytest` with nothing named is the short run: no Java, Spark, servers or site, and a sample of the cells of tests that
cost much (`@pytest.mark.dear(share)`), drawn by a seed that the last lines show. `--everything` adds what needs Java,
Spark, servers or the site: CI runs this. `--cells=all` takes every cell. Files or tests that are named run whole.
"""

from __future__ import annotations

import gc
import os
import random
import sys
from collections import defaultdict
from datetime import datetime, timezone

import pytest

HEAVY_NEEDS = ("java", "spark", "server", "site", "slow")
"""Marks of tests that the short run leaves to CI."""


sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
"""The hundreds of processes that tests start would compile paimon_py anew, a second each."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("paimon_py")
    group.addoption("--everything", action="store_true", help="all tests that are not heavy: what CI runs")
    group.addoption("--cells", choices=("some", "all"), default="some", help="of dear tests: those drawn by --seed, or all")
    group.addoption("--seed", help="draws the cells of dear tests (the day, as 2026-11-27)")


def pytest_configure(config: pytest.Config) -> None:
    """Decided once, by the process that the user began; the workers of xdist are told."""
    if hasattr(config, "workerinput"):
        for name, value in config.workerinput["taken"].items():
            setattr(config.option, name, value)
        return
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        config.option.everything, config.option.cells = True, "all"
    if config.option.seed is None:
        config.option.seed = f"{datetime.now(timezone.utc):%Y-%m-%d}"


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node) -> None:
    node.workerinput["taken"] = {name: getattr(node.config.option, name) for name in ("everything", "cells", "seed")}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what this run does not take."""
    left_out = set()
    if not config.option.everything:
        left_out |= {item.nodeid for item in items if any(item.get_closest_marker(mark) for mark in HEAVY_NEEDS)}
    if config.option.cells != "all":
        left_out |= _not_drawn(items, config.option.seed)
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
    items[:] = [item for item in items if item.nodeid not in left_out]


def _not_drawn(items: list[pytest.Item], seed: str) -> set[str]:
    """Cells of dear tests that this seed does not draw."""
    cells = defaultdict(list)
    for item in items:
        if item.get_closest_marker("dear"):
            cells[item.nodeid.partition("[")[0]].append(item.nodeid)
    rest = set()
    for item in items:
        grid = cells.pop(item.nodeid.partition("[")[0], None)
        if grid:
            (share,) = item.get_closest_marker("dear").args
            rest |= set(grid) - set(random.Random(f"{seed} {item.nodeid.partition('[')[0]}").sample(grid, -(-len(grid) // share)))
    return rest


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let the garbage collector look at what tests make, and not at twenty thousand tests, each time it runs."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    if config.option.cells != "all":
        terminalreporter.write_line(f"cells of dear tests by --seed={config.option.seed}; --cells=all runs all of them")
