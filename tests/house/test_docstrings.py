"""Docstrings begin with a verb or a noun: no reader has to look for what "it", "those" or "of which" stands for."""

from __future__ import annotations

import ast
from pathlib import Path

from house.package import nodes_of

PACKAGE = Path(__file__).parents[2] / "paimon_py"
POINTERS = {
    *("it", "its", "they", "them", "their", "this", "these", "those", "that", "there", "here", "such", "so"),
    *("as", "of", "with", "without", "by", "for", "from", "and", "but", "or", "because", "none"),
}


def docstrings(nodes):
    """Line and text of every string that stands alone: docstrings, and strings below constants."""
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value.strip()


def test_docstrings_do_not_begin_with_a_word_that_points_elsewhere():
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for line, text in docstrings(nodes_of(path)):
            if text and text.split()[0].lower() in POINTERS:
                found.append(f"{path.relative_to(PACKAGE)}:{line}: {text.splitlines()[0]}")
    assert found == []
