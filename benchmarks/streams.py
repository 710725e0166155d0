"""`python -m benchmarks.streams`: what a stream over many small commits costs per commit, at its start and at its end.

A table gets one row a commit. One stream catches up with all of them; another one follows, and is asked after each.
CPU is of this process; store calls are counted, and say the same on every machine.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import pyarrow as pa

from paimon_py import Catalog, Stream, Table
from paimon_py.env import Env
from paimon_py.metadata.root import TableRoot
from paimon_py.testing.counting_store import CountingStore

PARTS = 10


class Cost(NamedTuple):
    """What some commits cost a stream: milliseconds of CPU and store calls, each by commit."""

    millis: float
    calls: float


class Line(NamedTuple):
    """One stream: the cost of the first tenth of the commits, of the last tenth, and of all."""

    stream: str
    first: Cost
    last: Cost
    all: Cost


def counting(table: Table) -> tuple[Table, CountingStore]:
    """The same table, opened by somebody else, with a count of the store's calls."""
    store = CountingStore(table._root.store)
    return Table(TableRoot(store, table.location, Env()), table.schema, table.name), store


def measured(label: str, commits: int, run: Callable[[int], tuple[float, int]]) -> Line:
    """The cost of a run of so many commits; `run(number)` takes one."""
    parts = []
    for part in range(PARTS):
        cpu, store_calls = 0.0, 0
        for number in range(part * commits // PARTS, (part + 1) * commits // PARTS):
            spent, calls = run(number)
            cpu, store_calls = cpu + spent, store_calls + calls
        parts.append(Cost(1000 * cpu * PARTS / commits, store_calls * PARTS / commits))
    whole = Cost(sum(part.millis for part in parts) / PARTS, sum(part.calls for part in parts) / PARTS)
    return Line(label, parts[0], parts[-1], whole)


def taken(stream: Stream, store: CountingStore) -> tuple[float, int]:
    """CPU seconds and store calls of polling; the data file of the step is opened outside of both."""
    before, start = sum(store.calls.values()), time.process_time()
    step = stream.poll()
    spent, calls = time.process_time() - start, sum(store.calls.values()) - before
    assert step is not None and step.to_arrow().num_rows == 1
    return spent, calls


def main(arguments: Sequence[str] | None = None) -> list[Line]:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streams", description=__doc__)
    parser.add_argument("--commits", type=int, default=1000)
    commits = parser.parse_args(arguments).commits
    with tempfile.TemporaryDirectory() as directory:
        catalog = Catalog.open(directory, {"fs.local.fsync": "false"})
        catalog.create_database("db")
        columns = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.string())])
        options = {"bucket": "1", "write-only": "true"}
        table = catalog.create_table("db.t", columns, primary_key=["k"], options=options)
        reader, store = counting(table)
        following = reader.stream(from_=1)
        following.poll()

        def follow(number: int) -> tuple[float, int]:
            table.write_arrow(pa.table({"k": [number], "v": ["v"]}))
            return taken(following, store)

        lines = [measured("follows", commits, follow)]
        late, late_store = counting(table)
        catching = late.stream(from_=1)
        lines.append(measured("catches up", commits, lambda _: taken(catching, late_store)))
    print(f"{'per commit':<12}{'first tenth':>24}{'last tenth':>24}{'all':>24}")
    for line in lines:
        costs = (f"{cost.millis:.2f} ms, {cost.calls:.2f} calls" for cost in line[1:])
        print(f"{line.stream:<12}" + "".join(f"{cost:>24}" for cost in costs))
    return lines


if __name__ == "__main__":
    main()
