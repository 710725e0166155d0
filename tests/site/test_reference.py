"""The API reference has every public name, each on one page."""

from __future__ import annotations

import collections
import importlib
import inspect
import re
from pathlib import Path

import paimon_py
import paimon_py.cdc
import paimon_py.distributed
import paimon_py.executors
import paimon_py.spark
import paimon_py.types

PAGES = sorted((Path(__file__).parents[2] / "docs" / "reference").glob("*.md"))
SHOWN = collections.Counter(name for page in PAGES for name in re.findall(r"^::: (\S+)$", page.read_text(), re.M))
PLAIN = {"Progress"}
"""Names for shapes of functions; the pages that take them say what they are called with."""


def shown(path):
    """What a line of a page shows."""
    module, _, name = path.rpartition(".")
    if module.rpartition(".")[2][0].isupper():
        return getattr(shown(module), name)
    return getattr(importlib.import_module(module), name)


def test_every_name_is_shown_once():
    assert [name for name, times in SHOWN.items() if times != 1] == []
    found = [shown(path) for path in SHOWN]
    wanted = {
        name: getattr(module, name)
        for module in (paimon_py, paimon_py.types, paimon_py.cdc, paimon_py.distributed, paimon_py.executors, paimon_py.spark)
        for name in module.__all__
        if name not in PLAIN
    }
    lost = [name for name, value in wanted.items() if not any(value is each for each in found)]
    assert lost == []


def test_every_verb_of_a_table_is_shown():
    verbs = {name for name, _ in inspect.getmembers(paimon_py.Table) if not name.startswith("_")}
    assert {path.rpartition(".")[2] for path in SHOWN if path.startswith("paimon_py.table.Table.")} == verbs


def test_the_index_names_what_each_page_shows():
    index = (PAGES[0].parent / "index.md").read_text()
    for page in PAGES:
        if page.name == "index.md":
            continue
        line = next(line for line in index.splitlines() if f"({page.name})" in line)
        names = [path.rpartition(".")[2] for path in re.findall(r"^::: (\S+)$", page.read_text(), re.M)]
        assert re.findall(r"`(\w+)`", line) == names
