"""`python -m benchmarks.indexes`: how many rows a query of an indexed table looks at, beside those that match.

Counts, not times: they are the same on every machine. The table holds eight files, each sorted by `day`; the other
columns are random. A perfect index would hand the reader exactly the matching rows.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from paimon_py import Catalog, Predicate, Schema, Table, col

FILES = 8
ROWS = 100_000
COLUMNS = [("day", "INT"), ("user", "BIGINT"), ("kind", "STRING"), ("price", "DOUBLE")]
OPTIONS = {
    "file-index.bitmap.columns": "kind,day",
    "file-index.bsi.columns": "user",
    "file-index.range-bitmap.columns": "price",
    "file-index.bloom-filter.columns": "user",
    "file-index.bloom-filter.user.items": str(ROWS),
}


class Counts(NamedTuple):
    """One query: the rows that match, those handed to the filter with indexes and without."""

    query: str
    matching: int
    looked_at: int
    without: int

    @property
    def ratio(self) -> float:
        """Rows looked at per matching row."""
        return self.looked_at / max(self.matching, 1)


def build(directory: str, rows: int) -> Table:
    """The table: eight files of so many rows."""
    catalog = Catalog.open(directory)
    catalog.create_database("db")
    table = catalog.create_table("db.t", Schema(COLUMNS), options=OPTIONS)
    dice = np.random.default_rng(7)
    for file in range(FILES):
        days = np.sort(dice.integers(file * 10, file * 10 + 12, rows)).astype(np.int32)
        kinds = pa.array([f"kind-{number}" for number in range(50)])
        table.write_arrow(
            pa.table(
                {
                    "day": days,
                    "user": dice.integers(0, 10 * rows, rows),
                    "kind": kinds.take(pa.array(dice.integers(0, 50, rows))),
                    "price": dice.normal(100, 30, rows).round(2),
                }
            )
        )
    return table


def queries(table: Table) -> list[tuple[str, Predicate]]:
    """Filters by name."""
    user = table.scan(columns=["user"]).head(1)["user"][0].as_py()
    return [
        ("one day", col("day") == 31),
        ("one kind of some days", (col("day") >= 20) & (col("day") < 24) & (col("kind") == "kind-7")),
        ("one user", col("user") == user),
        ("users below", col("user") < 500),
        ("dear", col("price") > 190.0),
        ("a kind or dear", (col("kind") == "kind-3") | (col("price") > 200.0)),
        ("nothing", (col("user") == user) & (col("kind") == "kind-none")),
    ]


def counts(table: Table) -> list[Counts]:
    """What every query looks at."""
    found = []
    for name, where in queries(table):
        plan = table.scan(where=where).explain()
        bare = table.scan(where=where, options={"file-index.read.enabled": "false"})
        matching = table.scan(where=where).count()
        assert matching == bare.count(), name
        found.append(Counts(name, matching, plan.row_count - plan.index_rows, bare.explain().row_count))
    return found


def main(arguments: Sequence[str] | None = None) -> list[Counts]:
    """Parse the command line, count and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.indexes", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help="per file")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory:
        found = counts(build(directory, chosen.rows))
    print("| query | matching | looked at with indexes | without |\n|---|---|---|---|")
    for line in found:
        print(f"| {line.query} | {line.matching:,} | {line.looked_at:,} ({line.ratio:.2f}x) | {line.without:,} |")
    return found


if __name__ == "__main__":
    main()
