"""`python -m benchmarks.growth`: what one unit costs as there are more of it: CPU at a hundredth, a tenth and all.

A cost that is the same at each size is linear in all; one that falls is partly fixed. "Grows" is the last figure beside
the middle one: 1 for linear, 10 for quadratic.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from paimon_py import Catalog, Table, col
from paimon_py.testing.named_files import name_files

FULL = {"commits": 10_000, "files": 50_000, "partitions": 2_000, "columns": 2_000, "tags": 1_000, "keys": 100_000}
"""The largest number of each thing."""
SHARES = (0.01, 0.1, 1.0)
Step = tuple[str, Callable[[], object]]


class UnitCost(NamedTuple):
    """CPU seconds a unit of one step, at each number of units."""

    step: str
    units: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def grows(self) -> float:
        """The last figure beside the one before it."""
        return self.seconds[-1] / self.seconds[-2]


def create(directory: str, columns: pa.Schema, **about: object) -> Table:
    """A table in a warehouse of its own, without fsync and compactions."""
    catalog = Catalog.open(directory, {"fs.local.fsync": "false"})
    catalog.create_database("d")
    options = {"write-only": "true", **about.pop("options", {})}  # type: ignore[dict-item]
    return catalog.create_table("d.t", columns, options=options, **about)  # type: ignore[arg-type]


def narrow(count: int) -> pa.Table:
    """Keys from 0, and numbers."""
    return pa.table({"k": pa.array(np.arange(count)), "v": pa.array(np.arange(count) % 97)})


def commits(directory: str, count: int) -> Iterator[Step]:
    """A stream of commits of one row."""
    table = create(directory, narrow(1).schema, options={"snapshot.num-retained.min": "100000"})
    row = narrow(1)

    def stream() -> None:
        for _ in range(count):
            table.write_arrow(row)

    yield "commit", stream
    yield "plan after commits", lambda: Table.open(table.location).scan().splits()
    yield "count after commits", lambda: Table.open(table.location).scan().count()
    yield "read after commits", lambda: Table.open(table.location).scan().to_arrow()
    yield "list snapshots", lambda: list(Table.open(table.location).snapshots())


def files(directory: str, count: int) -> Iterator[Step]:
    """A snapshot of many files, which are named only."""
    table = create(directory, narrow(1).schema)
    table.write_arrow(narrow(1))
    name_files(table, count)
    yield "plan of files", lambda: Table.open(table.location).scan().splits()
    yield "plan of files by a key", lambda: Table.open(table.location).scan(where=col("k") == -1).splits()
    yield "count of files", lambda: Table.open(table.location).scan().count()
    yield "commit beside files", lambda: Table.open(table.location).write_arrow(narrow(1))


def partitions(directory: str, count: int) -> Iterator[Step]:
    """One commit into many partitions."""
    rows = narrow(count * 5).append_column("p", pa.array(np.arange(count * 5) % count))
    table = create(directory, rows.schema, partition_by=["p"])
    yield "write partitions", lambda: table.write_arrow(rows)
    yield "read partitions", lambda: Table.open(table.location).scan().to_arrow()
    yield "list partitions", lambda: Table.open(table.location).system("partitions").to_arrow()
    yield "delete from partitions", lambda: Table.open(table.location).delete(col("v") == 3)
    yield "compact partitions", lambda: Table.open(table.location).compact(full=True)


def columns(directory: str, count: int) -> Iterator[Step]:
    """A table with many columns, some of which are added later."""
    rows = pa.table({f"c{number}": pa.array(np.arange(100)) for number in range(count)})
    table = create(directory, rows.schema)
    yield "write columns", lambda: table.write_arrow(rows)
    yield "read columns", lambda: Table.open(table.location).scan().to_arrow()
    yield "read by a condition", lambda: Table.open(table.location).scan(where=col("c0") == 5).to_arrow()
    yield "update one of columns", lambda: Table.open(table.location).update(col("c0") == 5, {"c0": 7})


def tags(directory: str, count: int) -> Iterator[Step]:
    """Tags of one snapshot."""
    table = create(directory, narrow(1).schema)
    table.write_arrow(narrow(1))

    def each(change: Callable[[str], object]) -> Callable[[], object]:
        return lambda: [change(f"t{number}") for number in range(count)]

    yield "create tags", each(table.create_tag)
    yield "list tags", lambda: list(table.tags())
    yield "delete tags", each(table.delete_tag)


def keys(directory: str, count: int) -> Iterator[Step]:
    """Many keys at once."""
    rows = narrow(2 * count)
    schema = pa.schema([rows.schema.field("k").with_nullable(False), rows.schema.field("v")])
    table = create(directory, schema, primary_key=["k"], options={"bucket": "2"})
    table.write_arrow(rows.cast(schema))
    wanted = list(range(0, 2 * count, 2))
    yield "look keys up", lambda: Table.open(table.location).lookup(wanted)
    yield "isin of keys", lambda: Table.open(table.location).scan(where=col("k").isin(wanted)).to_arrow()
    yield "isin of values", lambda: Table.open(table.location).scan(where=col("v").isin(wanted)).to_arrow()
    yield "merge of keys", lambda: Table.open(table.location).merge(
        rows.slice(0, count).cast(schema), ["k"], when_matched_update=True, when_not_matched_insert=True
    )


THINGS: dict[str, Callable[[str, int], Iterator[Step]]] = {
    "commits": commits, "files": files, "partitions": partitions, "columns": columns, "tags": tags, "keys": keys,
}  # fmt: skip


def measure(thing: str, most: int) -> list[UnitCost]:
    """All steps with one thing, at each share of `most`."""
    counts = tuple(max(1, int(most * share)) for share in SHARES)
    found: dict[str, list[float]] = {}
    for count in counts:
        with tempfile.TemporaryDirectory() as directory:
            for name, step in THINGS[thing](directory, count):
                begun = time.process_time()
                step()
                found.setdefault(name, []).append((time.process_time() - begun) / count)
    return [UnitCost(name, counts, tuple(seconds)) for name, seconds in found.items()]


def main(arguments: Sequence[str] | None = None) -> list[UnitCost]:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--only", default=",".join(THINGS))
    parser.add_argument("--scale", type=float, default=1.0)
    given = parser.parse_args(arguments)
    lines = []
    for thing in given.only.split(","):
        for line in measure(thing, int(FULL[thing] * given.scale)):
            costs = "".join(f"{seconds * 1e6:>12.1f}" for seconds in line.seconds)
            print(f"{line.step:<26}{line.units[-1]:>8} {thing:<11}{costs} µs each, grows {line.grows:.2f}", flush=True)
            lines.append(line)
    return lines


if __name__ == "__main__":
    main()
