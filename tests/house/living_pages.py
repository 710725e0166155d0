"""Runs the blocks of a page of the documentation while strangers use the same tables between them.

    python living_pages.py WHO PAGE SEED…   runs the page undisturbed, then once for each seed, and compares the tables

`WHO` is `strangers`, `neighbours`, or both with a comma between.

What strangers do leaves the rows as they are: other keys come and go, files are merged, old snapshots expire, tags and
branches come and go, a commit is rolled back. A recipe that is right ends with the same rows whoever was there.

Neighbours write rows under other keys and into other partitions, and these stay. What a page asserts of its own rows is not
looked at then; the whole table is: the rows of the page as if it had been alone, and every row of every neighbour, unless
the page is one of those in `TAKES_ALL`.

In a program (`.py`) they come after each call that writes.

"""

from __future__ import annotations

import ast
import contextlib
import itertools
import json
import os
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from paimon_py import Catalog, Table, TableNotFoundError, col
from paimon_py.spec.options import Options

BLOCK = re.compile(r"^(?P<before>[^\n]*)\n+```python\n(?P<code>.*?)```", re.S | re.M)


class _Unasserted(ast.NodeTransformer):
    """What a program asserts is evaluated and not looked at."""

    def visit_Assert(self, node: ast.Assert) -> ast.AST:  # noqa: N802
        return ast.copy_location(ast.Expr(node.test), node)


def blocks(page: Path) -> list[str]:
    """The Python blocks of a page that run, or the cells of a notebook."""
    if page.suffix == ".ipynb":
        cells = json.loads(page.read_text())["cells"]
        return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return [m["code"] for m in BLOCK.finditer(page.read_text()) if not m["before"].startswith("<!-- not run")]


TAKES_ALL = {
    "copy-table.md": "a copy is what its source is, and a rollback takes what came later",
    "keep-in-step.md": "what the source does not list goes",
    "roll-back.md": "a rollback takes what came later",
}
"""Pages whose recipes are to take the rows of others, too, and why."""


GOES_BACK = ("first-hour.ipynb", "live-changes.ipynb", "quickstart.py")
"""Pages that go back to the first snapshots of their table: nothing expires there."""


def place_of(table: Table) -> str:
    """The path of a table below the directory that a run has for itself, or the place of temporary directories."""
    path = table.location.removeprefix("file://")
    return re.sub(r"^/?tmp\w{8}/", "", os.path.relpath(path, tempfile.gettempdir()))


def tables_of(names: dict[str, Any]) -> list[Table]:
    """Every table of the catalogs and of the tables that a program has at hand, each once."""
    places = [value.location for value in names.values() if isinstance(value, Table)]
    for catalog in [value for value in names.values() if isinstance(value, Catalog)]:
        places += [catalog.table(f"{base}.{name}").location for base in catalog.databases() for name in catalog.tables(base)]
    found = []
    for place in dict.fromkeys(places):
        try:
            found.append(Table.open(place))
        except TableNotFoundError:  # the page has dropped it
            continue
    return found


# -- what strangers do ----------------------------------------------------------------------------------------------


def _other(value: Any) -> Any:
    """A value that no page has, of the kind of this one."""
    match value:
        case bool():
            return not value
        case str():
            return f"{value} of a stranger"
        case date():
            return value.replace(year=1871)
        case bytes():
            return value + b"~"
        case _:
            return value + 70_000


def views_of(table: Table) -> list[str]:
    """Columns that take views, and give the bytes of other tables."""
    return Options(table.schema.options).get_list("blob-view-field")


def row_of(table: Table) -> pa.Table | None:
    """A row of the table under another key, or None where there is none to begin with."""
    some = table.scan(limit=1).to_arrow()
    if not some.num_rows:
        return None
    (row,) = some.to_pylist()
    for name in table.schema.primary_keys or some.schema.names[:1]:
        row[name] = None if row[name] is None else _other(row[name])
    row.update(dict.fromkeys(views_of(table)))
    return pa.Table.from_pylist([row], schema=some.schema)


def comes_and_goes(table: Table) -> None:
    """Another job writes a row and deletes it: two commits."""
    row = row_of(table)
    if row is None:
        return
    table.write_arrow(row)
    names = table.schema.primary_keys or row.schema.names[:1]
    condition = col(names[0]) == row[names[0]][0].as_py()
    for name in names[1:]:
        condition = condition & (col(name) == row[name][0].as_py())
    assert table.delete(condition).deleted == 1


def is_rolled_back(table: Table) -> None:
    """A wrong commit, and its undoing."""
    latest, row = table.snapshot(), row_of(table)
    if latest is not None and row is not None:
        table.write_arrow(row)
        table.rollback_to(latest.id)


def lives_on_a_branch(table: Table) -> None:
    """A trial that nobody takes over."""
    branch, row = table.create_branch("strangers"), row_of(table)
    if row is not None:
        branch.write_arrow(row)
    table.delete_branch("strangers")


def is_tagged(table: Table) -> None:
    table.create_tag("strangers")
    table.delete_tag("strangers")


def is_compacted(table: Table) -> None:
    table.compact(full=True)


def is_cared_for(table: Table) -> None:
    """The nightly job of a table whose snapshots are old."""
    table.compact()
    table.expire_snapshots(older_than=timedelta(0), retain_min=10, retain_max=10)
    table.remove_orphans(dry_run=False)


class Neighbours:
    """Jobs whose rows stay in the tables of a page.

    Attributes:
        written: how many rows each table got, by its place.
    """

    def __init__(self) -> None:
        self._values: set[Any] = set()
        self._count = 0
        self.written: dict[str, int] = {}

    def write(self, table: Table) -> None:
        """Write a row of which every value that can differ does."""
        some = table.scan(limit=1).to_arrow()
        if not some.num_rows:
            return
        self._count += 1
        place = place_of(table)
        (row,) = some.to_pylist()
        row.update(dict.fromkeys(views_of(table)))
        changed = {name: self._changed(row[name], some.schema.field(name).type) for name in row}
        own = {value for name, value in changed.items() if value != row[name]}
        if not own:
            return
        self._values |= own
        table.write_arrow(pa.Table.from_pylist([changed], schema=some.schema))
        self.written[place] = self.written.get(place, 0) + 1

    def apart(self, rows: list[dict[str, Any]]) -> tuple[list[str], int]:
        """The rows that are none of the neighbours', as texts in order, and how many are."""
        mine = [row for row in rows if not self._is_of(row)]
        return sorted(map(str, mine)), len(rows) - len(mine)

    def _is_of(self, row: dict[str, Any]) -> bool:
        return any(isinstance(value, (str, int, float, date)) and value in self._values for value in row.values())

    def _changed(self, value: Any, kind: pa.DataType) -> Any:
        if isinstance(value, str):
            return f"{value} of neighbour {self._count}"
        if isinstance(value, date):
            return value.replace(year=1871 + self._count)
        if pa.types.is_int32(kind) or pa.types.is_int64(kind) or pa.types.is_float64(kind):
            return None if value is None else value + 70_000_000 + self._count
        return value


ACTS: list[Callable[[Table], None]] = [comes_and_goes, is_rolled_back, lives_on_a_branch, is_tagged, is_compacted, is_cared_for]
ROWS_THAT_GO = ("deduplicate",)
"""Merge engines that forget a row which was deleted."""


def disturb(table: Table, rng: random.Random, *, keeps_past: bool = False) -> list[str]:
    """Some acts in some order; their names."""
    acts = [act for act in rng.sample(ACTS, 3) if act is not is_cared_for or not keeps_past]
    if table.snapshot() is None or table.options.get("merge-engine", "deduplicate") not in ROWS_THAT_GO:
        acts = [act for act in acts if act in (is_compacted, is_cared_for) and table.snapshot() is not None]
    for act in acts:
        act(table)
    return [act.__name__ for act in acts]


# -- a page ---------------------------------------------------------------------------------------------------------


Rows = dict[str, list[dict[str, Any]]]


WRITING = ("write_arrow", "commit", "upsert", "update", "delete", "merge", "compact")


@contextlib.contextmanager
def meeting(act: Callable[[Table], None]) -> Iterator[dict[str, Table]]:
    """Do something to a table after each call of a program that writes to it. Gives the tables that were met."""
    met: dict[str, Table] = {}
    busy = False
    plain = {name: getattr(Table, name) for name in WRITING}

    def wrapped(name: str) -> Callable[..., Any]:
        def call(table: Table, *given: Any, **named: Any) -> Any:
            nonlocal busy
            done = plain[name](table, *given, **named)
            met[table.location] = table
            if not busy:
                busy = True
                try:
                    act(Table.open(table.location))
                finally:
                    busy = False
            return done

        return call

    for name in WRITING:
        setattr(Table, name, wrapped(name))
    try:
        yield met
    finally:
        for name in WRITING:
            setattr(Table, name, plain[name])


def run_program(page: Path, seed: str | None) -> Rows:
    """Every row of every table that a program writes to, but for what it made of strangers'. Works in a directory of its own.
    """
    os.chdir(tempfile.mkdtemp())
    rng = random.Random(seed)

    def act(table: Table) -> None:
        if seed is not None:
            print(f"{table.name}: {', '.join(disturb(table, rng, keeps_past=page.name in GOES_BACK))}", file=sys.stderr)

    with meeting(act) as met:
        exec(compile(page.read_text(), page.name, "exec"), {"__name__": "__main__"})
    found = {place_of(table): Table.open(table.location).to_arrow().to_pylist() for table in met.values()}
    return {place: [row for row in rows if " of a stranger" not in str(row)] for place, rows in found.items()}


def run(page: Path, seed: str | None, neighbours: Neighbours | None = None) -> Rows:
    """Every row of every table after the last block, by the table's place. Works in a directory of its own."""
    if page.suffix == ".py":
        return run_program(page, seed)
    os.chdir(tempfile.mkdtemp())
    names: dict[str, Any] = {"__name__": "__main__"}
    rng = random.Random(seed)
    for number, code in enumerate(blocks(page)):
        tree = ast.parse(code, f"{page.name}, block {number}")
        exec(compile(tree if neighbours is None else _Unasserted().visit(tree), f"{page.name}, block {number}", "exec"), names)
        for table in tables_of(names) if seed is not None else ():
            acts = disturb(table, rng, keeps_past=page.name in GOES_BACK)
            if neighbours is not None and rng.random() < 0.7:
                neighbours.write(table)
            print(f"after block {number}, {table.name}: {', '.join(acts)}", file=sys.stderr)
    return {place_of(table): table.to_arrow().to_pylist() for table in tables_of(names)}


def differences(alone: Rows, found: Rows, neighbours: Neighbours, *, takes_all: bool) -> list[str]:
    """What is different in each table: rows of the page, or how many rows neighbours have. `takes_all`: may have."""
    told = []
    for name in sorted({*alone, *found}):
        mine, count = neighbours.apart(found.get(name, []))
        wanted = sorted(map(str, alone.get(name, [])))
        if mine != wanted:
            told.append(f"{name}: alone {wanted}, with strangers {mine}")
        if count < neighbours.written.get(name, 0) and not takes_all:
            told.append(f"{name}: neighbours wrote {neighbours.written[name]} rows, of which {count} are there")
    return told


def main(page: Path, seeds: list[str], company: list[str]) -> int:
    """Whether some seed ends with other rows in some company."""
    alone = run(page, None)
    for seed, others in itertools.product(seeds, company):
        print(f"seed {seed}, {others}", file=sys.stderr)
        neighbours = Neighbours()
        found = run(page, seed, neighbours if others == "neighbours" else None)
        told = differences(alone, found, neighbours, takes_all=page.name in TAKES_ALL)
        print(*told, sep="\n", file=sys.stderr)
        if told:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[2]).resolve(), sys.argv[3:], sys.argv[1].split(",")))
