"""`python -m benchmarks.frames`: what queries of polars and DuckDB cost over the same scan with `where` and `columns`.

Each line compares a query of a library with a scan that is told columns, condition and limit by hand and hands the rows
to the same library. All take turns in one process; figures are the least seconds of the repeats.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from paimon_py import Catalog, Schema, Table, col

FILES = 4
COLUMNS = [("k", "BIGINT NOT NULL"), ("a", "BIGINT"), ("x", "DOUBLE"), ("s", "STRING"), ("u", "STRING")]


class Line(NamedTuple):
    """One query: rows, seconds of the scan and of the library's own query, and how many times as long that is."""

    query: str
    library: str
    rows: int
    scan_seconds: float
    query_seconds: float

    @property
    def ratio(self) -> float:
        """Seconds of the query over those of the scan."""
        return self.query_seconds / self.scan_seconds


def make(directory: str, rows: int) -> Table:
    """A table of some files, ordered by `k`."""
    catalog = Catalog.open(directory, {"fs.local.fsync": "false"})
    catalog.create_database("db")
    table = catalog.create_table("db.t", Schema(COLUMNS))
    random = np.random.default_rng(7)
    part = max(1, rows // FILES)
    for at in range(0, part * FILES, part):
        table.write_arrow(
            pa.table(
                {
                    "k": np.arange(at, at + part), "a": random.integers(0, 1000, part), "x": random.random(part),
                    "s": np.char.add("v", random.integers(0, 100, part).astype(str)),
                    "u": np.char.add("user", random.integers(0, 1_000_000, part).astype(str)),
                }
            )
        )  # fmt: skip
    return table


def queries(table: Table, rows: int) -> list[tuple[str, str, Callable[[], int], Callable[[], int]]]:
    """Names, libraries, scans and queries."""
    import duckdb
    import polars

    connection = duckdb.connect()
    scan = table.scan()
    lazy = scan.to_polars(lazy=True)
    scan.to_duckdb(connection, "lazy")
    k, a, s = map(polars.col, "kas")
    low, high = rows // 4, rows // 4 + rows // 80
    asked: list[tuple[str, dict[str, Any], Any, str]] = [
        ("2 % of the rows", {"columns": ["k", "x"], "where": (col("a") >= 500) & (col("s") == "v7")},
         lazy.filter((a >= 500) & (s == "v7")).select("k", "x"), "select k, x from lazy where a >= 500 and s = 'v7'"),
        ("90 % of the rows", {"columns": ["k", "u"], "where": col("a") >= 100},
         lazy.filter(a >= 100).select("k", "u"), "select k, u from lazy where a >= 100"),
        ("a range of keys", {"columns": ["k"], "where": (col("k") >= low) & (col("k") < high)},
         lazy.filter((k >= low) & (k < high)).select("k"), f"select k from lazy where k >= {low} and k < {high}"),
        ("ten rows", {"limit": 10}, lazy.head(10), "select * from lazy limit 10"),
    ]  # fmt: skip

    def framed(given: dict[str, Any]) -> int:
        return int(table.scan(**given).to_polars().height)

    def answered(sql: str) -> int:
        return int(connection.sql(sql).to_arrow_table().num_rows)

    def by_hand(given: dict[str, Any]) -> int:
        reader = table.scan(**given).to_reader()
        return int(connection.from_arrow(reader).to_arrow_table().num_rows)

    found: list[tuple[str, str, Callable[[], int], Callable[[], int]]] = []
    for name, given, frame, sql in asked:
        found += [
            (name, "polars", partial(framed, given), lambda frame=frame: frame.collect().height),
            (name, "DuckDB", partial(by_hand, given), partial(answered, sql)),
        ]  # fmt: skip
    return found


def least(works: Sequence[Callable[[], int]], repeats: int) -> tuple[list[int], list[float]]:
    """Rows and least seconds of some works that take turns."""
    seconds = [float("inf")] * len(works)
    rows = [0] * len(works)
    for _ in range(repeats):
        for at, work in enumerate(works):
            start = time.perf_counter()
            rows[at] = work()
            seconds[at] = min(seconds[at], time.perf_counter() - start)
    return rows, seconds


def main(arguments: Sequence[str] | None = None) -> list[Line]:
    """Measure, print, and return the lines."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.frames", description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--output", help="a JSON file for the figures")
    given = parser.parse_args(arguments)
    lines = []
    with tempfile.TemporaryDirectory() as directory:
        for name, library, scan, query in queries(make(directory, given.rows), given.rows):
            rows, seconds = least([scan, query], given.repeats)
            assert rows[0] == rows[1], (name, library, rows)
            lines.append(Line(name, library, rows[0], *seconds))
            shown = f"{seconds[0]:.4f} s  {seconds[1]:.4f} s  {lines[-1].ratio:.2f}x"
            print(f"{name:20} {library:8} {rows[0]:>10,} rows  {shown}")
    if given.output:
        with open(given.output, "w") as file:
            json.dump([{**line._asdict(), "ratio": line.ratio} for line in lines], file, indent=1)
    return lines


if __name__ == "__main__":
    main()
