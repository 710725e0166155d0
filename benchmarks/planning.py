"""`python -m benchmarks.planning`: what it costs to plan scans of a table whose newest snapshot names a million files.

The metadata are real, the data files are named only. Every line is a process of its own: CPU of the plan after opening
the table, and what its peak of memory lies above what it had then.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from benchmarks.child import resident_mb
from paimon_py import Catalog, col
from paimon_py.executors import ProcessExecutor
from paimon_py.expr.predicate import Predicate
from paimon_py.testing.named_files import name_files

CONDITIONS: dict[str, Predicate | None] = {
    "everything": None,
    "one partition of ten": col("p") == 3,
    "no key": col("k") == -1,
    "no value": col("v") == "none",
}
ONE_BY_ONE = "everything, one by one"
"""All splits, by `iter_splits`, none of which is kept."""
BY_TASKS = "everything, by tasks"
"""The same by the tasks of two processes: what they cost the process that takes the splits."""


class Line(NamedTuple):
    """One plan: its splits, CPU seconds, megabytes."""

    plan: str
    splits: int
    seconds: float
    megabytes: float


def make(directory: str, files: int) -> None:
    """A table by keys and one without, of so many files each in ten partitions; a fiftieth more was deleted again."""
    catalog = Catalog.open(directory, {"fs.local.fsync": "false"})
    catalog.create_database("db")
    keys = [pa.field("p", pa.int32(), nullable=False), pa.field("k", pa.int64(), nullable=False)]
    columns = pa.schema([*keys, ("v", pa.string())])
    for name, key, bucket in (("append", [], "-1"), ("keyed", ["p", "k"], "1")):
        options = {"bucket": bucket, "write-only": "true"}
        table = catalog.create_table(f"db.{name}", columns, primary_key=key, partition_by=["p"], options=options)
        table.write_arrow(pa.table({"p": pa.array(range(10), pa.int32()), "k": range(10), "v": ["v"] * 10}))
        name_files(table, files, deleted=files // 50)


def measure(directory: str, table: str, condition: str) -> Line:
    """One plan in this process."""
    opened = Catalog.open(directory).table(f"db.{table}")
    had = resident_mb("VmHWM")
    start = time.process_time()
    if condition == ONE_BY_ONE:
        count = sum(1 for _ in opened.scan().iter_splits())
    elif condition == BY_TASKS:
        with ProcessExecutor(2) as executor:
            scan = opened.scan(options={"scan.plan.executor-manifests": "0"})
            count = sum(1 for _ in scan.iter_splits(executor=executor))
    else:
        count = len(opened.scan(where=CONDITIONS[condition]).splits())
    seconds = time.process_time() - start
    grown = resident_mb("VmHWM") - had
    return Line(f"{table}, {condition}", count, seconds, grown)


def main(arguments: Sequence[str] | None = None) -> list[Line]:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planning", description=__doc__)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--measure", nargs=3, metavar=("DIRECTORY", "TABLE", "CONDITION"), help="one line, as JSON")
    given = parser.parse_args(arguments)
    if given.measure:
        line = measure(*given.measure)
        print(json.dumps(line))
        return [line]
    lines = []
    with tempfile.TemporaryDirectory() as directory:
        make(directory, given.files)
        print(f"{'plan':<32}{'splits':>10}{'CPU':>12}{'memory':>12}")
        for table in ("append", "keyed"):
            for condition in (*CONDITIONS, ONE_BY_ONE, BY_TASKS):
                command = [sys.executable, "-m", "benchmarks.planning", "--measure", directory, table, condition]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                line = Line(*json.loads(done.stdout.splitlines()[-1]))
                print(f"{line.plan:<32}{line.splits:>10}{line.seconds:>10.2f} s{line.megabytes:>9.0f} MB")
                lines.append(line)
    return lines


if __name__ == "__main__":
    main()
