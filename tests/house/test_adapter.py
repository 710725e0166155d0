"""The Spark adapter knows the public names of paimon_py, and less and less of what is behind them."""

from __future__ import annotations

import ast
from pathlib import Path

import paimon_py

PACKAGE = Path(__file__).parents[2] / "paimon_py"
PUBLIC = {"paimon_py", "paimon_py.cdc", "paimon_py.distributed", "paimon_py.env", "paimon_py.errors", "paimon_py.executors", "paimon_py.types"}
MODULES_MOST = 57
ATTRIBUTES_MOST = 20
"""How many private modules and attributes the adapter uses: these numbers only fall."""


def nodes():
    for path in sorted((PACKAGE / "spark").rglob("*.py")):
        yield from ast.walk(ast.parse(path.read_text()))


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


def test_the_adapter_imports_no_more_private_modules():
    found = {module for node in nodes() for module in modules(node) if is_private(module)}
    assert len(found) == MODULES_MOST, f"write {len(found)} if that is less: {sorted(found)}"


def test_the_adapter_uses_no_more_private_attributes():
    found = [
        ast.unparse(node)
        for node in nodes()
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
        and ast.unparse(node.value) not in ("self", "cls")
    ]  # fmt: skip
    assert len(found) == ATTRIBUTES_MOST, f"write {len(found)} if that is less: {sorted(found)}"
