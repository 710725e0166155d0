"""The package's own source, parsed once for all rules of a file of tests."""

from __future__ import annotations

import ast
import functools
from pathlib import Path


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def nodes_of(path: Path) -> list[ast.AST]:
    """Every node of a module."""
    return list(ast.walk(tree_of(path)))


def forget() -> None:
    """Let the trees go: a million nodes."""
    tree_of.cache_clear()
    nodes_of.cache_clear()
