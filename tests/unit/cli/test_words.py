"""Advice of the library in the words of the command line: no message keeps a call that has a command."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

from paimon_py import Catalog, Table
from paimon_py.cli.app import commands
from paimon_py.cli.words import _COMMANDS, _COMPILED, _with_commands, in_commands
from paimon_py.codec.python_values import _SORTS

ROOT = Path(__file__).parents[3] / "paimon_py"
ELSEWHERE = {"testing", "cli", "spark", "cdc", "distributed", "metrics", "api_hints.py", "notebook.py"}
"""Parts of the package whose messages no command shows."""
IN_PYTHON = (
    "writer(", "commit(", "write_arrow(", "update(", "to_arrow(", "create_table(name, ", "register_observer(f)",
    "branch(…)", "expire_tags()", "expire_consumers(", "compaction_tasks()", "sql(", "open(", "changes()", "repair(",
    "clone_table(to=", "scan().", "scan(options=", "delete(where)", "to_duckdb(", "alter(*changes)",
    "compact(order_by=", "truncate(n)", "compact_manifests()", "import_delta(", "import_iceberg(",
)  # fmt: skip
"""Calls that no command makes."""


def messages():
    """All strings of the package with more than one word, except docstrings; values in them are 7 or 'x'."""
    for path in sorted(ROOT.rglob("*.py")):
        if path.relative_to(ROOT).parts[0] in ELSEWHERE:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        inner = {id(each) for node in ast.walk(tree) if isinstance(node, (ast.Expr, ast.JoinedStr)) for each in parts(node)}
        for node in ast.walk(tree):
            if id(node) not in inner and isinstance(text := text_of(node), str) and " " in text:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", text


def parts(node):
    return [node.value] if isinstance(node, ast.Expr) else [each for each in ast.walk(node) if each is not node]


def text_of(node):
    if isinstance(node, ast.JoinedStr):
        values = {True: "'x'", False: "7"}
        return "".join(
            part.value if isinstance(part, ast.Constant) else values[part.conversion == ord("r")] for part in node.values
        )
    return getattr(node, "value", None) if isinstance(node, ast.Constant) else None


MESSAGES = list(messages())
PUBLIC = {name for kind in (Table, Catalog) for name, _ in inspect.getmembers(kind, callable) if not name.startswith("_")}


def test_no_message_keeps_a_call_that_has_a_command():
    left = []
    for place, text in MESSAGES:
        shown = in_commands(text)
        for found in re.finditer(r"(?<![\w.])(?:(?:[Tt]able|[Cc]atalog)\.)?([a-z_]+)\(", shown):
            if found[1] in PUBLIC and not shown[found.start(1) :].startswith(IN_PYTHON):
                left.append((place, shown))
    assert left == []


def test_every_phrase_occurs_in_a_message_of_the_library():
    """A message that is reworded loses its phrase here, not in front of a user."""
    unused = {pattern.pattern for pattern, _ in _COMPILED}
    wanted = [f"pass {text}" for text in (*(text for _, text in MESSAGES), *(wanted for *_, wanted in _SORTS))]
    for text in (*(text for _, text in MESSAGES), *wanted):
        found = _with_commands(text)
        for pattern, wording in _COMPILED:
            found, count = pattern.subn(wording, found)
            if count:
                unused.discard(pattern.pattern)
    assert unused == set()


def test_every_command_and_option_exists():
    for verb, command in _COMMANDS.items():
        assert hasattr(Table, verb) or hasattr(Catalog, verb)
        name = command.text.split()[0]
        options = {each for param in commands.commands[name].params for each in param.opts}
        said = [each for each in (*command.positions, *command.options.values()) if each.startswith("--")]
        assert set(said) <= options, verb


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("write table.compact()", "write paimon-py compact TABLE"),
        ("Table.compact(full=True) or compact(where=…)", "paimon-py compact TABLE --full or paimon-py compact TABLE --where"),
        ("table.alter(SetOption('a', 'b c')) does", "paimon-py alter TABLE --set 'a=b c' does"),
        ("alter(RemoveOption('a'), SetOption('b', '1'))", "paimon-py alter TABLE --unset a --set b=1"),
        ("add it with table.alter(AddColumn(…))", "add it with paimon-py alter TABLE --add"),
        ("table.alter(UpdateColumnType('c', 'DECIMAL(9, 2)'))", "paimon-py alter TABLE --type 'c DECIMAL(9, 2)'"),
        ("table.expire_snapshots(retain_max=…)", "paimon-py expire TABLE --retain-max"),
        ("table.remove_orphans(dry_run=False)", "paimon-py orphans TABLE --delete"),
        ("table.reset_consumer('report', 2); readers", "paimon-py consumers TABLE reset report 2; readers"),
        ("v is VARCHAR and cannot be compared with 3: pass a str", "v is VARCHAR and cannot be compared with 3: give text in 'single quotes'"),
        ("x: pass a datetime.date, or ISO text such as '2024-01-31'", "x: give text such as '2024-01-31'"),
        ("x: pass a datetime.time, or a string such as '12:34:56.789'", "x: give text such as '12:34:56.789'"),
        ("column day: 7 (row 1) does not fit DATE: pass a datetime.date", "column day: 7 (row 1) does not fit DATE: give a date"),
        ("x: pass True or False", "x: give TRUE or FALSE"), ("x: pass bytes", "x: give bytes such as X'00ff'"),
        ("x: pass a whole number, not 'x'", "x: give a whole number, not 'x'"),
        ("x: pass an int or a decimal.Decimal", "x: give a number"),
        ("x is BIGINT and cannot be compared with 'a': pass a number", "x is BIGINT and cannot be compared with 'a': give a number"),
        ("table.rollback_to(7)", "paimon-py rollback TABLE 7"),
        ("rollback_to('a b') or rollback_to(a good tag)", "paimon-py rollback TABLE 'a b' or paimon-py rollback TABLE SNAPSHOT (a good tag)"),
        ("fast_forward('b', discard=True) discards", "paimon-py branch TABLE fast-forward b --discard discards"),
        ("give format= (--kind), 'csv'", "give --kind, 'csv'"),
        ("the newest 1 stay (retain_min)", "the newest 1 stay (--retain-min)"),
        ("write table.rescale(4)", "write paimon-py rescale TABLE 4"),
        ("table.compact(order_by=['a']) sorts", "table.compact(order_by=['a']) sorts"),
        ("table.write_arrow(table.scan().to_reader(), overwrite={})", "table.write_arrow(table.scan().to_reader(), overwrite={})"),
        ("compact(full=True", "compact(full=True"),
        ("file.format=row of c(1)", "file.format=row of c(1)"),
        ('col("k") is BIGINT, not "a"', 'k is BIGINT, not "a"'),
        ('col("pos", "x") == NULL; write col("pos", "x").is_null()', "pos.x == NULL; write pos.x IS NULL"),
        ('(col("ts") + INTERVAL \'1 day\') is always NULL', "(ts + INTERVAL '1 day') is always NULL"),
        ('to DATE only; a function casts: lambda rows: rows[\'a\']; catalog.sql("SELECT …") has',
         'to DATE only; paimon-py sql WAREHOUSE "SELECT …" has'),
        ("a mode='delta'; copy=True does", "a --mode delta; --copy does"),
        ("alter(SetOption('a', '1'))", "paimon-py alter TABLE --set a=1"),
        ("alter(SetOption('a', '1'), Unheard('b'))", "alter(SetOption('a', '1'), Unheard('b'))"),
        ("changes() returns them", "changes() returns them"),
        ("changes(start=3) returns them", "changes(start=3) returns them"),
    ],
)  # fmt: skip
def test_calls_are_shown_as_commands(said, shown):
    assert in_commands(said) == shown
