"""`python -m benchmarks.system_tables`: what system tables of a table with many snapshots and files cost.

The metadata are real, the data files are named only. Every line is a process of its own: CPU of it after opening the
table, calls of the store, and what its peak of memory lies above what it had then. Batches are taken one after another
and dropped.
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
from paimon_py import Catalog, Table
from paimon_py.env import Env
from paimon_py.metadata.root import TableRoot
from paimon_py.testing.counting_store import CountingStore
from paimon_py.testing.named_files import name_files

SCANS = (
    ("snapshots", None, None),
    ("snapshots", None, "snapshot_id = 77"),
    ("files", None, None),
    ("files", ["file_path", "level"], None),
    ("files", None, "partition = '{3}'"),
    ("file_key_ranges", None, None),
    ("buckets", None, None),
    ("partitions", None, None),
    ("manifests", None, None),
)


class Line(NamedTuple):
    """One scan: its rows, CPU seconds, calls of the store, megabytes."""

    scan: str
    rows: int
    seconds: float
    calls: int
    megabytes: float


def make(directory: str, snapshots: int, files: int) -> None:
    """A table whose newest snapshot has `files` files in ten partitions, a manifest for each ten thousand of one."""
    catalog = Catalog.open(directory, {"fs.local.fsync": "false"})
    catalog.create_database("db")
    keys = [pa.field("p", pa.int32(), nullable=False), pa.field("k", pa.int64(), nullable=False)]
    columns = pa.schema([*keys, ("v", pa.string())])
    options = {"bucket": "1", "write-only": "true"}
    table = catalog.create_table("db.t", columns, primary_key=["p", "k"], partition_by=["p"], options=options)
    table.write_arrow(pa.table({"p": pa.array(range(10), pa.int32()), "k": range(10), "v": ["v"] * 10}))
    name_files(table, files)
    root = table._root
    stored = json.loads(root.store.get(f"{root.path}/snapshot/snapshot-2"))
    for number in range(3, snapshots + 1):
        data = json.dumps({**stored, "id": number}).encode()
        root.store.put(f"{root.path}/snapshot/snapshot-{number}", data)
    root.store.put(f"{root.path}/snapshot/LATEST", str(snapshots).encode())


def measure(directory: str, number: int) -> Line:
    """One scan in this process."""
    name, columns, where = SCANS[number]
    table = Catalog.open(directory).table("db.t")
    store = CountingStore(table._root.store)
    table = Table(TableRoot(store, table.location, Env()), table.schema, "db.t")
    had = resident_mb("VmHWM")
    start = time.process_time()
    rows = sum(batch.num_rows for batch in table.system(name).scan(columns=columns, where=where).to_reader())
    seconds = time.process_time() - start
    grown = resident_mb("VmHWM") - had
    label = f"${name}" + (f", {len(columns)} columns" if columns else "") + (f", {where}" if where else "")
    return Line(label, rows, seconds, sum(store.calls.values()), grown)


def main(arguments: Sequence[str] | None = None) -> list[Line]:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.system_tables", description=__doc__)
    parser.add_argument("--snapshots", type=int, default=10_000)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--measure", nargs=2, metavar=("DIRECTORY", "NUMBER"), help="one line, as JSON")
    given = parser.parse_args(arguments)
    if given.measure:
        line = measure(given.measure[0], int(given.measure[1]))
        print(json.dumps(line))
        return [line]
    lines = []
    with tempfile.TemporaryDirectory() as directory:
        make(directory, given.snapshots, given.files)
        print(f"{'scan':<36}{'rows':>10}{'CPU':>12}{'calls':>10}{'memory':>12}")
        for number in range(len(SCANS)):
            command = [sys.executable, "-m", "benchmarks.system_tables", "--measure", directory, str(number)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            line = Line(*json.loads(done.stdout.splitlines()[-1]))
            print(f"{line.scan:<36}{line.rows:>10}{line.seconds:>10.2f} s{line.calls:>10}{line.megabytes:>9.0f} MB")
            lines.append(line)
    return lines


if __name__ == "__main__":
    main()
