"""The map of the house shows the house: rooms and files that it names exist, and no room is missing."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "paimon_py"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_every_file_that_the_page_names_exists():
    missing = []
    for name in re.findall(r"`([a-z_/]+\.py)`", PAGE):
        if not any((base / name).exists() for base in (PACKAGE, ROOT)):
            missing.append(name)
    assert missing == []


def test_every_room_stands_in_the_layers():
    layers = PAGE.split("## Layers")[1].split("## Writing")[0]
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")} - {"testing"}
    assert {room for room in rooms if not re.search(rf"\b{room}\b", layers)} == set()


def test_every_room_says_what_it_contains():
    rooms = list(PACKAGE.rglob("__init__.py"))
    assert [str(path) for path in rooms if not ast.get_docstring(ast.parse(path.read_text()))] == []
