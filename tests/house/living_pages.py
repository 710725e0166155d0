"""Runs the blocks of a page of the documentation while strangers use the same tables between them.

    python living_pages.py PAGE SEED…      runs the page undisturbed, then once for each seed, and compares the tables

What strangers do leaves the rows as they are: other keys come and go, files are merged, old snapshots expire, tags and
branches come and go, a commit is rolled back. A recipe that is right ends with the same rows whoever was there.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
import tempfile
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from paimon_py import Catalog, Table, TableNotFoundError, col

BLOCK = re.compile(r"(?P<before>[^\n]*)\n+```python\n(?P<code>.*?)```", re.S)


def blocks(page: Path) -> list[str]:
    """The Python blocks of a page that run, or the cells of a notebook."""
    if page.suffix == ".ipynb":
        cells = json.loads(page.read_text())["cells"]
        return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return [m["code"] for m in BLOCK.finditer(page.read_text()) if not m["before"].startswith("<!-- not run")]


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


def row_of(table: Table) -> pa.Table | None:
    """A row of the table under another key, or None where there is none to begin with."""
    some = table.scan(limit=1).to_arrow()
    if not some.num_rows:
        return None
    (row,) = some.to_pylist()
    for name in table.schema.primary_keys or some.schema.names[:1]:
        row[name] = None if row[name] is None else _other(row[name])
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


ACTS: list[Callable[[Table], None]] = [comes_and_goes, is_rolled_back, lives_on_a_branch, is_tagged, is_compacted, is_cared_for]
ROWS_THAT_GO = ("deduplicate",)
"""Merge engines that forget a row which was deleted."""


def disturb(table: Table, rng: random.Random) -> list[str]:
    """Some acts in some order; their names."""
    acts = rng.sample(ACTS, 3)
    if table.snapshot() is None or table.options.get("merge-engine", "deduplicate") not in ROWS_THAT_GO:
        acts = [act for act in acts if act in (is_compacted, is_cared_for) and table.snapshot() is not None]
    for act in acts:
        act(table)
    return [act.__name__ for act in acts]


# -- a page ---------------------------------------------------------------------------------------------------------


def run(page: Path, seed: str | None) -> dict[str, list[str]]:
    """Every row of every table after the last block, by the table's name. Works in a directory of its own."""
    os.chdir(tempfile.mkdtemp())
    names: dict[str, Any] = {"__name__": "__main__"}
    rng = random.Random(seed)
    for number, code in enumerate(blocks(page)):
        exec(compile(code, f"{page.name}, block {number}", "exec"), names)
        for table in tables_of(names) if seed is not None else ():
            print(f"after block {number}, {table.name}: {', '.join(disturb(table, rng))}", file=sys.stderr)
    return {table.name: sorted(map(str, table.to_arrow().to_pylist())) for table in tables_of(names)}


def main(page: Path, seeds: list[str]) -> int:
    """Whether some seed ends with other rows."""
    alone = run(page, None)
    for seed in seeds:
        print(f"seed {seed}", file=sys.stderr)
        found = run(page, seed)
        different = [name for name in {*alone, *found} if alone.get(name) != found.get(name)]
        for name in different:
            print(f"{name}: alone {alone.get(name)}, with strangers {found.get(name)}", file=sys.stderr)
        if different:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
