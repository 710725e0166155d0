"""Each check that ends in `CorruptionError` is in the list that says whether Java refuses the same (`foreign.refusals`)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from foreign.damages import DAMAGES
from foreign.refusals import APART, REFUSALS, REFUSES, WRONG

PACKAGE = Path(__file__).parents[2] / "paimon_py"


def checks(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(function, words) of each check of a module."""

    def walk(node: ast.AST, names: list[str], function: ast.AST) -> Iterator[tuple[str, str]]:
        for child in ast.iter_child_nodes(node):
            inner, own = names, function
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                inner, own = [*names, child.name], child
            if isinstance(child, ast.Call) and getattr(child.func, "id", None) == "CorruptionError":
                yield ".".join(names), ast.unparse(message(child.args[0], function))
            yield from walk(child, inner, own)

    yield from walk(tree, [], tree)


def message(given: ast.expr, function: ast.AST) -> ast.expr:
    """What a message is made of, also where it has a name."""
    if not isinstance(given, ast.Name):
        return given
    found = [
        node for node in ast.walk(function)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == given.id and node.lineno <= given.lineno
    ]  # fmt: skip
    return max(found, key=lambda node: node.lineno).value if found else given


def test_the_list_has_every_check_once():
    asked = dict.fromkeys(REFUSALS, 0)
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        module = path.relative_to(PACKAGE).as_posix()
        source = path.read_text()
        found = list(checks(ast.parse(source))) if "CorruptionError(" in source else []
        known = REFUSALS.get(module, [])
        for function, words in found:
            rows = [row for row in known if row.function == function and row.words in words]
            asked[module] = asked.get(module, 0) + len(rows)
            if len(rows) != 1:
                wrong.append(f"{module} {function}: {words}: {len(rows)} rows")
    wrong += [f"{module} has fewer checks than rows" for module, rows in REFUSALS.items() if asked[module] < len(rows)]
    assert not wrong, "\n".join(wrong)


def test_each_row_says_what_java_does_and_why():
    named = set()
    for rows in REFUSALS.values():
        for row in rows:
            assert row.java in (REFUSES, WRONG, APART) and row.reason, row
            named.update(row.damages)
    assert named == set(DAMAGES), named ^ set(DAMAGES)


def test_a_check_without_a_row_is_found():
    tree = ast.parse("class A:\n    def f(self):\n        text = 'a'\n        raise CorruptionError(text, path=1)\n")
    assert list(checks(tree)) == [("A.f", "'a'")]
