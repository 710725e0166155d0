"""The Spark adapter knows Spark and the public names of paimon_py, and nothing between."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from house.package import nodes_of

import paimon_py

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "paimon_py"
PUBLIC = {"paimon_py", "paimon_py.cdc", "paimon_py.distributed", "paimon_py.env", "paimon_py.errors", "paimon_py.executors", "paimon_py.metrics", "paimon_py.types"}


def nodes():
    for path in sorted((PACKAGE / "spark").rglob("*.py")):
        yield from nodes_of(path)


def modules(node):
    """The modules that an import names."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom) or node.level:
        return []
    if node.module != "paimon_py":
        return [node.module]
    names = [alias.name for alias in node.names]
    return [f"paimon_py.{name}" for name in names if name not in paimon_py.__all__ and not name.startswith("__")]


def is_private(module):
    return module.startswith("paimon_py.") and module not in PUBLIC and not module.startswith("paimon_py.spark")


def test_the_adapter_imports_public_modules_alone():
    """Inner imports and those for type checkers count, too; the contract for import-linter sees the others."""
    assert {module for node in nodes() for module in modules(node) if is_private(module)} == set()


def test_the_adapter_uses_no_private_attributes():
    found = [
        ast.unparse(node)
        for node in nodes()
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
        and ast.unparse(node.value) not in ("self", "cls")
    ]  # fmt: skip
    assert found == []


def test_the_contract_names_every_private_room():
    text = (ROOT / "pyproject.toml").read_text().split('"the Spark adapter knows public names alone"')[1].split("]\n")[1]
    rooms = {path.stem for path in PACKAGE.glob("*.py")} | {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    private = {f"paimon_py.{room}" for room in rooms - {"__init__", "__main__", "spark"}} - PUBLIC
    assert set(re.findall(r'"([\w.]+)"', text)) == private
