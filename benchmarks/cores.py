"""`python -m benchmarks.cores`: what several cores gain over one, pairwise.

Every sample is a process of its own, pinned to the first core, or to the first so many (`--cores`); both take turns.
Lines are seconds of wall time and of CPU of a step, and its peak of resident memory, medians, and the ratio of wall
times of each pair. Wall time is fair on an idle machine alone. So "busy" is the part of the time in which the pinned
cores did anything but the step, by the kernel's counters: a pair with more than 5 % of that is taken again, up to
`--patience` times as often as pairs are wanted; then the least busy ones count.

Steps, of tables with 8 buckets, with 22 columns as in `benchmarks.memory`, or narrow ones as in `data.py`:
"read" makes an Arrow table of all rows, "stream" takes them batch by batch in any order, "in order" in theirs. "load"
writes them. Keyed tables have three runs in each bucket, of which a third of the rows is left.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks import data
from benchmarks.child import resident_mb
from paimon_py import Catalog, Table

BUCKETS = 8
BATCH_ROWS = 65_536
QUIET = 0.05
KINDS = ("keyed", "append", "keyed wide")
STEPS = ("read", "stream", "in order", "load")


class Sample(NamedTuple):
    """One step in one process."""

    wall: float
    cpu: float
    megabytes: float
    busy: float
    rows: int


class Line(NamedTuple):
    """Medians of one step on one core and on several, and the median ratio of pairs."""

    step: str
    one: Sample
    several: Sample
    ratio: float


def rows(kind: str, count: int, seed: int) -> pa.Table:
    """Rows in scattered order."""
    keys = np.random.default_rng(seed).permutation(count)
    return data.wide(keys, seed) if "wide" in kind else data.narrow(keys, seed)


def created(directory: str, kind: str) -> Table:
    """An empty table."""
    catalog = Catalog.open(directory, {"fs.local.fsync": "false"})
    catalog.create_database("db")
    keys = ["k"] if kind.startswith("keyed") else []
    options = {"bucket": str(BUCKETS), "write-only": "true", **({} if keys else {"bucket-key": "k"})}
    return catalog.create_table("db.t", rows(kind, 1, 0).schema, primary_key=keys, options=options)


def make(directory: str, kind: str, count: int) -> None:
    """A table to read."""
    table = created(directory, kind)
    for seed in range(3):
        table.write_arrow(rows(kind, count, seed))


def measure(directory: str, kind: str, step: str, count: int, cores: int) -> Sample:
    """One step in this process."""
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:cores]))
    work = _load(kind, count) if step == "load" else _read(Catalog.open(directory).table("db.t"), step)
    before, cpu, wall = _ticks(cores), _cpu(), time.perf_counter()
    found = work()
    wall, cpu = time.perf_counter() - wall, _cpu() - cpu
    busy = max(0.0, _ticks(cores) - before - cpu) / (wall * cores)
    return Sample(wall, cpu, resident_mb("VmHWM"), busy, found)


def _read(table: Table, step: str) -> Callable[[], int]:
    scan = table.scan()
    assert len(scan.splits()) == BUCKETS
    if step == "read":
        return lambda: scan.to_arrow().num_rows
    return lambda: sum(batch.num_rows for batch in scan.to_reader(in_order=step == "in order"))


def _load(kind: str, count: int) -> Callable[[], int]:
    given = pa.Table.from_batches(rows(kind, count, 0).combine_chunks().to_batches(max_chunksize=BATCH_ROWS))

    def load() -> int:
        with tempfile.TemporaryDirectory() as directory, created(directory, kind).writer() as writer:
            writer.write_arrow(given)
            return sum(file.row_count for bucket in writer.changes().buckets for file in bucket.written.added)

    return load


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _ticks(cores: int) -> float:
    """Seconds in which the pinned cores were not idle; 0 where that is not told."""
    if not os.path.exists("/proc/stat"):
        return 0.0
    pinned = {f"cpu{core}" for core in sorted(os.sched_getaffinity(0))[:cores]}
    with open("/proc/stat") as lines:
        found = [line.split() for line in lines if line.split(maxsplit=1)[0] in pinned]
    return sum(int(field) for line in found for field in (*line[1:4], *line[6:9])) / os.sysconf("SC_CLK_TCK")


def pairs(
    directory: str, kind: str, step: str, count: int, *, cores: int, repeats: int, patience: int = 1
) -> Line:
    """Samples in turns, each in a process of its own."""
    found: list[tuple[Sample, Sample]] = []
    while len(found) < patience * repeats and sum(map(_is_quiet, found)) < repeats:
        one, several = (_child(directory, kind, step, count, pinned) for pinned in (1, cores))
        assert one.rows == several.rows
        found.append((one, several))
    quietest = sorted(found, key=lambda pair: max(sample.busy for sample in pair))[:repeats]
    ratio = statistics.median(one.wall / several.wall for one, several in quietest)
    ones, more = zip(*quietest, strict=True)
    return Line(f"{step}, {kind}", _median(ones), _median(more), ratio)


def _is_quiet(pair: tuple[Sample, Sample]) -> bool:
    return max(sample.busy for sample in pair) <= QUIET


def _child(directory: str, kind: str, step: str, count: int, cores: int) -> Sample:
    asked = [directory, kind, step, str(count), str(cores)]
    command = [sys.executable, "-m", "benchmarks.cores", "--measure", *asked]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Sample(*json.loads(done.stdout.splitlines()[-1]))


def _median(samples: Sequence[Sample]) -> Sample:
    return Sample(*(statistics.median(column) for column in zip(*samples, strict=True)))


def main(arguments: Sequence[str] | None = None) -> list[Line]:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cores", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000, help="of one write; half as many wide ones")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--patience", type=int, default=1)
    parser.add_argument("--only", default="", help="part of the names of lines")
    parser.add_argument("--measure", nargs=5, metavar=("DIRECTORY", "KIND", "STEP", "ROWS", "CORES"))
    given = parser.parse_args(arguments)
    if given.measure:
        directory, kind, step, count, cores = given.measure
        print(json.dumps(measure(directory, kind, step, int(count), int(cores))))
        return []
    lines = []
    print(f"{'step':<24}{'wall':>18}{'CPU':>18}{'memory':>18}{'busy':>14}{'ratio':>8}")
    for kind in KINDS:
        count = given.rows // 2 if "wide" in kind else given.rows
        asked = [step for step in STEPS if given.only in f"{step}, {kind}"]
        with tempfile.TemporaryDirectory() as directory:
            if set(asked) - {"load"}:
                make(directory, kind, count)
            for step in asked:
                line = pairs(
                    directory, kind, step, count,
                    cores=given.cores, repeats=given.repeats, patience=given.patience,
                )  # fmt: skip
                one, more = line.one, line.several
                print(
                    f"{line.step:<24}{one.wall:>8.3f} {more.wall:>7.3f} s{one.cpu:>8.3f} {more.cpu:>7.3f} s"
                    f"{one.megabytes:>7.0f} {more.megabytes:>7.0f} MB{one.busy:>6.0%} {more.busy:>6.0%} "
                    f"{line.ratio:>7.2f}x",
                    flush=True,
                )
                lines.append(line)
    return lines


if __name__ == "__main__":
    main()
