"""The package's own source, parsed once for all rules that a process checks."""

from __future__ import annotations

import ast
import functools
import gc
from pathlib import Path
from typing import cast

PACKAGE = Path(__file__).parents[2] / "paimon_py"


def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a module of the package."""
    return cast(ast.Module, nodes_of(path)[0])


def nodes_of(path: Path) -> list[ast.AST]:
    """Every node of a module of the package, the module itself first."""
    return _nodes()[path]


@functools.cache
def _nodes() -> dict[Path, list[ast.AST]]:
    """A million nodes, which the garbage collector need not look at."""
    gc.collect()
    gc.disable()
    try:
        return {path: list(ast.walk(ast.parse(path.read_text(encoding="utf-8")))) for path in PACKAGE.rglob("*.py")}
    finally:
        gc.freeze()
        gc.enable()
