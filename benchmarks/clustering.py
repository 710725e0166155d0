"""`python -m benchmarks.clustering`: how many rows queries look at in a table that is sorted, beside those that match.

Counts, not times: they are the same on every machine. One table of 64 files is read as it was written, at random, then
sorted by one column after the other, and along both curves; statistics of files prune, and range bitmaps where the
table has them. A perfect index would hand the reader exactly the matching rows.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from paimon_py import Catalog, Predicate, Schema, Table, col

FILES = 64
ROWS = 640_000
SIDE = 10_000
COLUMNS = [("day", "INT"), ("user", "BIGINT"), ("price", "DOUBLE")]
INDEXES = {"file-index.range-bitmap.columns": "day,user"}
LAYOUTS = ("as written", "order", "zorder", "hilbert")
QUERIES: tuple[tuple[str, Predicate], ...] = (
    ("a tenth of the days", (col("day") >= 3_000) & (col("day") < 4_000)),
    ("a tenth of the users", (col("user") >= 3_000) & (col("user") < 4_000)),
    ("a quarter of both", (col("day") < 2_500) & (col("user") >= 5_000) & (col("user") < 7_500)),
    ("one user", col("user") == 1234),
)


class Counts(NamedTuple):
    """One query of one layout: the rows that match, those looked at by statistics alone, and with indexes too."""

    layout: str
    query: str
    matching: int
    by_statistics: int
    by_indexes: int

    @property
    def ratio(self) -> float:
        """Rows looked at per matching row."""
        return self.by_indexes / max(self.matching, 1)


def build(directory: str, rows: int) -> Table:
    """The table, in no order."""
    catalog = Catalog.open(directory)
    catalog.create_database("db")
    options = {"target-file-row-num": str(rows // FILES), **INDEXES}
    table = catalog.create_table("db.t", Schema(COLUMNS), options=options)
    dice = np.random.default_rng(7)
    table.write_arrow(
        pa.table(
            {
                "day": dice.integers(0, SIDE, rows).astype(np.int32),
                "user": dice.integers(0, SIDE, rows),
                "price": dice.normal(100, 30, rows).round(2),
            }
        )
    )
    return table


def counts(table: Table) -> list[Counts]:
    """What every query looks at in every layout."""
    found = []
    for layout in LAYOUTS:
        if layout != "as written":
            table.compact(full=True, order_by=["day", "user"], strategy=layout)
        for name, where in QUERIES:
            plan = table.scan(where=where).explain()
            bare = table.scan(where=where, options={"file-index.read.enabled": "false"}).explain()
            matching = table.scan(where=where).count()
            found.append(Counts(layout, name, matching, bare.row_count, plan.row_count - plan.index_rows))
    return found


def main(arguments: Sequence[str] | None = None) -> list[Counts]:
    """Parse the command line, count and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.clustering", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory:
        found = counts(build(directory, chosen.rows))
    print("| layout | query | matching | looked at by statistics | and indexes |\n|---|---|---|---|---|")
    for line in found:
        by_statistics = f"{line.by_statistics:,} ({line.by_statistics / max(line.matching, 1):.2f}x)"
        print(f"| {line.layout} | {line.query} | {line.matching:,} | {by_statistics} | {line.ratio:.2f}x |")
    return found


if __name__ == "__main__":
    main()
