"""`python -m benchmarks.containers --limits 256,512,1024`: what a container of so many MB can do.

Each step runs in a process of its own inside a control group with that limit, as in a container, with the defaults of
the library. Rows take about 80 bytes. A step that the kernel ends is shown as `killed`; one that the library refuses,
with its error. Needs root, and control groups of version 1 or 2.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from paimon_py import Catalog, PaimonError

GROUPS = Path("/sys/fs/cgroup")
SCHEMA = pa.schema([
    pa.field("id", pa.int64(), nullable=False), ("name", pa.string()), ("amount", pa.float64()), ("note", pa.string()),
])  # fmt: skip
BY_DAY = SCHEMA.append(pa.field("day", pa.string()))
BATCH_ROWS = 100_000
Step = Callable[[Catalog, int], object]


def rows(count: int, *, days: int = 0) -> pa.RecordBatchReader:
    """Rows with the ids below `count`, each batch in random order. `days`: the number of partitions."""
    schema = BY_DAY if days else SCHEMA
    return pa.RecordBatchReader.from_batches(schema, _batches(count, schema, days))


def _batches(count: int, schema: pa.Schema, days: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, count, BATCH_ROWS):
        rng = np.random.default_rng(start)
        ids = rng.permutation(np.arange(start, min(start + BATCH_ROWS, count)))
        columns = [ids, [f"name-{one % 1000}" for one in ids], rng.random(len(ids)), [f"{one:050}" for one in ids]]
        columns += [[f"day-{one % days}" for one in ids]] if days else []
        yield pa.record_batch([pa.array(column) for column in columns], schema=schema)


def _create(catalog: Catalog, _count: int) -> None:
    catalog.create_database("d")
    catalog.create_table("d.keyed", SCHEMA, primary_key=["id"], options={"bucket": "2"})
    catalog.create_table("d.appended", SCHEMA)
    catalog.create_table("d.days", BY_DAY, partition_by=["day"])
    catalog.create_table("d.moving", BY_DAY, primary_key=["id"], partition_by=["day"])
    options = {"bucket": "1", "changelog-producer": "full-compaction"}
    catalog.create_table("d.changes", SCHEMA, primary_key=["id"], options=options)


def _changelog(catalog: Catalog, count: int) -> None:
    table = catalog.table("d.changes")
    for share in (1, 2):
        table.write_arrow(rows(count // share))
        table.compact(full=True)


STEPS: dict[str, Step] = {
    "create five tables": _create,
    "load a keyed table": lambda catalog, count: catalog.table("d.keyed").write_arrow(rows(count)),
    "replace half of its rows": lambda catalog, count: catalog.table("d.keyed").write_arrow(rows(count // 2)),
    "read it in batches": lambda catalog, _: sum(map(len, catalog.table("d.keyed").scan().to_reader())),
    "read it as one table": lambda catalog, _: catalog.table("d.keyed").scan().to_arrow(),
    "filter it by a value": lambda catalog, _: catalog.table("d.keyed").scan(where="amount < 0.001").to_arrow(),
    "compact it fully": lambda catalog, _: catalog.table("d.keyed").compact(full=True),
    "update half of its rows": lambda catalog, _: catalog.table("d.keyed").update("amount > 0.5", {"name": "new"}),
    "rescale it to 8 buckets": lambda catalog, _: catalog.table("d.keyed").rescale(8),
    "look up a key": lambda catalog, _: catalog.table("d.keyed").lookup({"id": 7}),
    "group it by SQL": lambda catalog, _: catalog.sql("SELECT name, sum(amount) FROM d.keyed GROUP BY name").to_arrow(),
    "load an append table": lambda catalog, count: catalog.table("d.appended").write_arrow(rows(count)),
    "upsert into it": lambda catalog, count: catalog.table("d.appended").upsert(rows(count // 20), on=["id"]),
    "delete a tenth": lambda catalog, _: catalog.table("d.appended").delete("amount < 0.1"),
    "sort it": lambda catalog, _: catalog.table("d.appended").compact(full=True, order_by=["name", "id"]),
    "load 500 partitions": lambda catalog, count: catalog.table("d.days").write_arrow(rows(count // 4, days=500)),
    "load keys that move": lambda catalog, count: catalog.table("d.moving").write_arrow(rows(count // 4, days=5)),
    "changelog by full compaction": _changelog,
}  # fmt: skip


def run_step(warehouse: str, name: str, count: int) -> None:
    """Carry out one step in this process, and print what it took."""
    try:
        STEPS[name](Catalog.open(warehouse), count)
        outcome = "done"
    except PaimonError as error:
        outcome = f"{type(error).__name__}: {error}"
    usage = resource.getrusage(resource.RUSAGE_SELF)
    print(f"{outcome}\t{usage.ru_maxrss >> 10}\t{usage.ru_utime + usage.ru_stime:.1f}")


def group_of(limit_mb: int) -> Path:
    """A control group with a limit; returns its directory."""
    is_second = (GROUPS / "cgroup.controllers").exists()
    group = (GROUPS if is_second else GROUPS / "memory") / f"paimon-py-{limit_mb}"
    group.mkdir(exist_ok=True)
    (group / ("memory.max" if is_second else "memory.limit_in_bytes")).write_text(str(limit_mb << 20))
    return group


def measure(warehouse: Path, name: str, count: int, limit_mb: int) -> str:
    """Carry out one step in a control group; returns a cell of the table."""
    group = group_of(limit_mb)
    step = ["--step", name, "--rows", str(count), "--work", str(warehouse)]
    enter = ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"]
    child = [*enter, sys.executable, "-W", "ignore", "-m", "benchmarks.containers", *step]
    done = subprocess.run(child, capture_output=True, text=True, check=False)
    if done.returncode < 0:
        return "killed"
    if done.returncode:
        raise SystemExit(done.stderr)
    outcome, peak_mb, seconds = done.stdout.splitlines()[-1].split("\t")
    return f"{peak_mb} MB, {seconds} s" if outcome == "done" else outcome.partition(":")[0]


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.containers", description=__doc__)
    parser.add_argument("--limits", default="256,512,1024", help="sizes of containers in MB")
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--work", type=Path, help="directory for the tables")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.step:
        run_step(str(options.work), options.step, options.rows)
        return
    limits = [int(limit) for limit in options.limits.split(",")]
    print("| step |", " | ".join(f"{limit} MB" for limit in limits), "|")
    print("|---|" + "---|" * len(limits))
    with tempfile.TemporaryDirectory(dir=options.work) as work:
        for name in STEPS:
            cells = [measure(Path(work) / str(limit), name, options.rows, limit) for limit in limits]
            print(f"| {name} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
