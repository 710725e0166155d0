"""Docstrings begin with a verb or a noun: no reader has to look for what "it", "those" or "of which" stands for.

Texts for users say what a thing is not, or that it does not exist: never that it "is no" other thing.
"""

from __future__ import annotations

import ast
import re
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


IS_NO = re.compile(r"\b(?:is|are) no(?:ne)?\b(?! longer)")
IS_NO_MAX = 7
"""How many texts say so today: the number may only fall."""


def texts(nodes):
    """Line and text of every string, and of every piece of an f-string, that does not stand alone."""
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.lineno, node.value


def test_texts_say_that_a_thing_does_not_exist():
    """`table 'x' does not exist`, `'x' is not a table`: never `there is no table 'x'` or `'x' is no table`."""
    found = [
        f"{path.relative_to(PACKAGE)}:{line}: {text}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line, text in texts(nodes_of(path))
        if IS_NO.search(text)
    ]
    assert len(found) <= IS_NO_MAX, "\n".join(found)
