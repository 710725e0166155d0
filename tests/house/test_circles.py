"""No module needs itself by way of others, not even through an import inside a function."""

from __future__ import annotations

import ast
from pathlib import Path

from house.package import tree_of

ROOT = Path(__file__).parents[2]
PUBLIC = "paimon_py"
"""The package's own module, which has no code: it imports everything, and adapters import the public names from it."""


def modules(root=ROOT):
    """Each module's tree, by its dotted name."""
    found = {}
    for path in sorted((root / PUBLIC).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = tree_of(path)
    return found


def imported(tree, known):
    """The modules that a tree imports, wherever the import stands; what only type checkers see does not count."""
    found, pending = set(), [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending.extend(node.orelse)
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            whole = (f"{node.module}.{alias.name}" for alias in node.names)
            found.update(name if name in known else node.module for name in whole)
        pending.extend(ast.iter_child_nodes(node))
    return found & known.keys()


def circle(trees):
    """The names of a circle of imports, or nothing."""
    needs = {name: imported(tree, trees) - {name, PUBLIC} for name, tree in trees.items() if name != PUBLIC}
    while True:
        free = {name for name, others in needs.items() if not others & needs.keys()}
        if not free:
            return sorted(needs)
        needs = {name: others for name, others in needs.items() if name not in free}


def test_no_module_needs_itself_by_way_of_others():
    assert circle(modules()) == []


def test_a_circle_is_seen_at_the_top_and_inside_a_function():
    a, b = ast.parse("from paimon_py.b import x"), ast.parse("def f():\n    from paimon_py import a")
    assert circle({"paimon_py.a": a, "paimon_py.b": b, "paimon_py.c": ast.parse("")}) == ["paimon_py.a", "paimon_py.b"]
    typed = ast.parse("if TYPE_CHECKING:\n    from paimon_py import a")
    assert circle({"paimon_py.a": a, "paimon_py.b": typed}) == []
