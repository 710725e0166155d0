"""`python -m benchmarks.scale`: what each of Spark's tasks is handed as there are more of them: 1x, 4x, 16x.

Ratios alone. "bytes" is what one task is handed, its function and its own work; "CPU" is what unpickling that takes;
both beside 1x of the way before. With `--spark` also "tree": CPU of the whole tree of processes for each task of a job
that does nothing with its work, beside 1x of the same way.

- "function": how work travelled before, that of all tasks within the function which each task gets.
- "rows": how it travels now, each task's bytes as a row to the one task (`paimon_py.spark.task_rows`).
- "compact": tasks of 13.8 kB, as `compact_spark` hands out for twenty runs in a bucket.
- "read": a split of one small file for each task, as `convert_to_spark` hands out.
"""

from __future__ import annotations

import argparse
import pickle
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
from pyspark import cloudpickle

from benchmarks.spark import cpu_of_tree, session
from paimon_py import Catalog, Schema, Table
from paimon_py.compaction.compact import COMPACT
from paimon_py.executors import Job
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spark import convert, executor, jobs, task_rows

TASK_BYTES = 13_800
"""Size of a compaction task of twenty runs."""
FACTORS = (1, 4, 16)
WAYS = {"function": 1 << 40, "rows": task_rows.WITHIN_BYTES}
Handle = Callable[[Iterable[bytes]], Iterator[Any]]


class Growth(NamedTuple):
    """What one way of one step costs one task at each factor: bytes, seconds of unpickling, seconds of the tree."""

    step: str
    way: str
    size_bytes: tuple[float, ...]
    cpu: tuple[float, ...]
    tree: tuple[float, ...] = ()


def small_table(directory: str) -> Table:
    """A table of one row."""
    catalog = Catalog.open(f"{directory}/lake", {"fs.local.fsync": "false"})
    catalog.create_database("db")
    table = catalog.create_table("db.t", Schema([("k", "BIGINT"), ("v", "STRING")]))
    table.write_arrow(pa.table({"k": [1], "v": ["a"]}))
    return table


def steps(table: Table) -> dict[str, tuple[Handle, bytes]]:
    """What runs on each task, and the work of one."""
    scan = table.scan()
    (split,) = scan.splits()
    read = convert._ReadSplits(scan, scan.schema, False)
    compact = executor._RunTasks(Job(COMPACT, OpenTable(table._root, table.schema)))
    return {"compact": (compact, bytes(TASK_BYTES)), "read": (read, msgspec.msgpack.encode([bytes(split)]))}


def grown(step: str, way: str, handle: Handle, work: bytes, tasks: int) -> Growth:
    """What a task is handed, at each factor of so many tasks."""
    sizes, costs = [], []
    for factor in FACTORS:
        items = [bytes(bytearray(work)) for _ in range(tasks * factor)]
        within = way == "function"
        data = cloudpickle.dumps(task_rows._InlineWork(items, handle) if within else task_rows._RowWork(handle))
        sizes.append(len(data) + (0 if within else len(work)))
        found = []
        for _ in range(5):
            begun = time.process_time()
            pickle.loads(data)
            found.append(time.process_time() - begun)
        costs.append(min(found))
    return Growth(step, way, tuple(sizes), tuple(costs))


def nothing(items: Iterable[bytes]) -> Iterator[bytes]:
    """A task that does nothing with its work."""
    for item in items:
        yield item[:8]


def tree(spark: Any, way: str, work: bytes, tasks: int) -> tuple[float, ...]:
    """CPU of the tree of processes for each task of a job, at each factor: the second of two runs."""
    costs = []
    before, task_rows.WITHIN_BYTES = task_rows.WITHIN_BYTES, WAYS[way]
    try:
        for factor in FACTORS:
            items = [bytes(bytearray(work)) for _ in range(tasks * factor)]
            for _ in range(2):
                begun = cpu_of_tree()
                frame, handed = task_rows.send_work(spark, items, nothing)
                assert len(jobs.gather(frame, handed)) == len(items), "work was lost"
                cost = (cpu_of_tree() - begun) / len(items)
            costs.append(cost)
    finally:
        task_rows.WITHIN_BYTES = before
    return tuple(costs)


def show(growth: Growth, first: Growth) -> None:
    """Print ratios to the smallest job: of the way before, and of the same way for the whole tree."""
    lines = [("bytes", growth.size_bytes, first.size_bytes[0]), ("CPU", growth.cpu, first.cpu[0])]
    if growth.tree:
        lines.append(("tree", growth.tree, growth.tree[0]))
    for what, values, unit in lines:
        told = "  ".join(f"{value / unit:8.3f}" for value in values)
        print(f"{growth.step + ', ' + growth.way:<20}{what:<6}{told}", flush=True)


def main(arguments: Sequence[str] | None = None) -> list[Growth]:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--tasks", type=int, default=250, help="at 1x")
    parser.add_argument("--spark", type=int, default=0, help="tasks at 1x of jobs that run; 0: none runs")
    parser.add_argument("--memory", default="2g", help="of the JVM")
    given = parser.parse_args(arguments)
    found = []
    with tempfile.TemporaryDirectory() as directory:
        spark = session(None, f"{directory}/lake", given.memory) if given.spark else None
        try:
            print(f"{'':<26}" + "  ".join(f"{factor:>7}x" for factor in FACTORS), flush=True)
            for step, (handle, work) in steps(small_table(directory)).items():
                own = []
                for way in WAYS:
                    growth = grown(step, way, handle, work, given.tasks)
                    if spark is not None:
                        growth = growth._replace(tree=tree(spark, way, work, given.spark))
                    own.append(growth)
                    show(growth, own[0])
                found += own
        finally:
            if spark is not None:
                spark.stop()
    return found


if __name__ == "__main__":
    main()
