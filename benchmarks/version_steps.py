"""Steps of `benchmarks.versions`, run by file name, so that `paimon_py` is the one that PYTHONPATH names.

`version_steps.py STEP DIRECTORY [SCALE]` prints the CPU seconds of a step, user and system, all threads. Only calls
that old versions know are made.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
import pyarrow as pa

from paimon_py import Catalog

WIDTH = 20
SCHEMA = pa.schema([pa.field("k", pa.int64(), nullable=False), *((f"c{at}", pa.float64()) for at in range(WIDTH))])
KEYED = {"primary_key": ["k"], "options": {"bucket": "2"}}


def rows(first, count):
    """Some rows by their keys."""
    keys = np.arange(first, first + count)
    return pa.table([keys, *([keys * 0.5] * WIDTH)], schema=SCHEMA)


def created(catalog, name, **settings):
    """A new table."""
    catalog.create_database("db", exist_ok=True)
    return catalog.create_table(f"db.{name}", SCHEMA, **settings)


def prepare(catalog, scale):
    """Make the table that open, plan and read look at: forty commits of overlapping keys."""
    table = created(catalog, "t", primary_key=["k"], options={"bucket": "8"})
    for at in range(40):
        table.write_arrow(rows(at * scale // 1000, scale // 250))


def open_table(catalog, scale):
    """Open a table 2,000 times."""
    for _ in range(2_000):
        catalog.table("db.t")


def plan(catalog, scale):
    """Plan a scan 150 times, each time on a table that was opened anew."""
    for _ in range(150):
        catalog.table("db.t").scan().splits()


def read(catalog, scale):
    """Read a table whole 20 times, and one key of it 40 times."""
    table = catalog.table("db.t")
    for _ in range(20):
        table.scan().to_arrow()
    for _ in range(40):
        table.scan(where="k = 77").to_arrow()


def commits(catalog, scale):
    """Commit 120 times ten rows to an append table, and 60 times to one with a primary key."""
    plain, keyed = created(catalog, "plain"), created(catalog, "keyed", **KEYED)
    for at in range(120):
        plain.write_arrow(rows(at, 10))
    for at in range(60):
        keyed.write_arrow(rows(at, 10))


def stream(catalog, scale):
    """Commit 80 hand-overs of one writer by identifier."""
    table = created(catalog, "stream", **KEYED)
    with table.writer() as writer:
        for at in range(80):
            writer.write_arrow(rows(at * 5, 10))
            table.commit(writer.changes(), user="stream", identifier=at)


def load(catalog, scale):
    """Load four times, compact, and read back."""
    table = created(catalog, "load", **KEYED)
    for at in range(4):
        table.write_arrow(rows(at * scale // 4, scale))
    table.compact(full=True)
    table.scan().to_arrow()


def change(catalog, scale):
    """Delete, update and merge a few rows, and look some up."""
    plain = created(catalog, "changed", options={"deletion-vectors.enabled": "true"})
    plain.write_arrow(rows(0, scale))
    plain.delete(f"k < {scale // 100}")
    plain.update(f"k < {scale // 50}", {"c1": 1.0})
    keyed = created(catalog, "merged", **KEYED)
    keyed.write_arrow(rows(0, scale))
    keyed.merge(rows(scale - 500, 1_000), on=["k"], when_matched_update=True, when_not_matched_insert=True)
    for at in range(20):
        keyed.lookup(pa.table({"k": [at * 7]}))


STEPS = {step.__name__: step for step in (open_table, plan, read, commits, stream, load, change)}
"""The steps that are compared. The first three need `prepare`."""


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    name, directory, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
    warehouse = Catalog.open(directory)
    run = prepare if name == "prepare" else STEPS[name]
    began = time.process_time()
    run(warehouse, size)
    print(time.process_time() - began)
