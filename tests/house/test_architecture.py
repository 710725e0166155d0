"""The map of the house shows the house: rooms and files that it names exist, and no room is missing."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from house.package import nodes_of, tree_of

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "paimon_py"
PAGE, DETAILS = ((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("architecture.md", "internals.md"))
WORDS_MAX = 950
"""What a reader takes in in four minutes."""


def test_the_map_is_read_in_four_minutes():
    assert len(re.sub(r"```.*?```", "", PAGE, flags=re.S).split()) <= WORDS_MAX


def test_every_file_that_the_pages_name_exists():
    missing = []
    for name in re.findall(r"`([a-z_/]+\.py)`", PAGE + DETAILS):
        if not any((base / name).exists() for base in (PACKAGE, ROOT)):
            missing.append(name)
    assert missing == []


def test_every_room_stands_in_the_layers():
    layers = PAGE.split("## Layers")[1].split("\n## ")[0]
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")} - {"testing"}
    assert {room for room in rooms if not re.search(rf"\b{room}\b", layers)} == set()


def test_every_room_says_what_it_contains():
    rooms = list(PACKAGE.rglob("__init__.py"))
    assert [str(path) for path in rooms if not ast.get_docstring(tree_of(path))] == []


# where a root and a schema are not one table: values that users make, or a schema that comes first
ROOT_BESIDE_SCHEMA = {
    "catalog/catalog.py:check_new", "iceberg/versions.py:__init__", "metadata/open_table.py:__init__",
    "rows/keyed.py:__init__", "scan/branches_scan.py:state_at", "scan/scan.py:__init__", "scan/time_travel.py:_find",
    "scan/time_travel.py:find_state", "stream/reading.py:__init__", "stream/stream.py:__init__", "system/table.py:__init__",
    "table/table.py:__init__",
}  # fmt: skip


def test_a_table_under_a_schema_travels_as_one_value():
    """`OpenTable` in place of `root, schema`; the list only becomes shorter."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in nodes_of(path):
            if isinstance(node, ast.FunctionDef):
                names = {one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
                if {"root", "schema"} <= names:
                    found.add(f"{path.relative_to(PACKAGE).as_posix()}:{node.name}")
    assert found == ROOT_BESIDE_SCHEMA
