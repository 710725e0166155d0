"""What a run of tests takes.

`pytest` with nothing named is the short run: no Java, Spark, servers or site, and of tests that cost much as many cells
as a budget pays for (`drawing.py`), drawn by a seed that the last lines show. `--everything` adds what needs Java, Spark,
servers or the site, and more cells: CI runs this. `--cells=all` takes every cell. What is named runs whole.
"""

from __future__ import annotations

import gc
import os
import sys
from datetime import datetime, timezone

import drawing
import pytest

HEAVY_NEEDS = ("java", "spark", "server", "site", "slow")
"""Marks of tests that the short run leaves to CI."""


sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
"""The hundreds of processes that tests start would compile paimon_py anew, a second each."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("paimon_py")
    group.addoption("--everything", action="store_true", help="all tests that are not heavy: what CI runs")
    group.addoption("--cells", choices=("some", "all"), default="some", help="of tests that cost much: those drawn by --seed, or all")
    group.addoption("--seed", help="draws the cells of tests that cost much (the day, as 2026-11-27)")
    group.addoption("--write-costs", action="store_true", help="run all cells, and write down in tests/costs.txt what they cost")


def pytest_configure(config: pytest.Config) -> None:
    """Decided once, by the process that the user began; the workers of xdist are told."""
    if hasattr(config, "workerinput"):
        for name, value in config.workerinput["taken"].items():
            setattr(config.option, name, value)
        return
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        config.option.everything, config.option.cells = True, "all"
    if config.option.write_costs:
        config.option.cells = "all"
    if config.option.seed is None:
        config.option.seed = f"{datetime.now(timezone.utc):%Y-%m-%d}"


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node) -> None:
    node.workerinput["taken"] = {name: getattr(node.config.option, name) for name in ("everything", "cells", "seed")}


def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, name: str, obj: object) -> list[pytest.Item] | None:
    """Spend no time on the cells of whole functions that this run leaves out."""
    own = getattr(obj, "pytestmark", None)
    if not isinstance(own, list) or not collector.istestfunction(obj, name):
        return None
    marks = {mark.name for mark in own} | {mark.name for mark in collector.iter_markers()}
    return [] if marks & _left_out(collector.config) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what this run does not take."""
    marks = _left_out(config)
    left_out = {item.nodeid for item in items if marks and any(mark.name in marks for mark in item.iter_markers())}
    if config.option.cells != "all":
        budget = drawing.EVERYTHING if config.option.everything else drawing.SHORT
        costs = drawing.read_costs()
        left_out |= drawing.not_drawn(items, config.option.seed, budget, costs)
        drawing.reduce_examples(items, budget, costs)
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
    items[:] = [item for item in items if item.nodeid not in left_out]


def _left_out(config: pytest.Config) -> set[str]:
    """Marks of tests that this run does not take."""
    heavy = set() if config.option.everything else set(HEAVY_NEEDS)
    return heavy | ({"full"} if config.option.markexpr == "not full" else set())


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let the garbage collector look at what tests make, and not at twenty thousand tests, each time it runs."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    if config.option.cells != "all":
        terminalreporter.write_line(f"tests that cost much by --seed={config.option.seed}; --cells=all runs all of them")
    if config.option.write_costs:
        reports = [report for outcome in ("passed", "failed") for report in terminalreporter.getreports(outcome)]
        drawing.write_costs({report.nodeid: report.duration for report in reports if report.when == "call"})
