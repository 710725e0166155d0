"""`python -m benchmarks.cleaning`: what expiry of many snapshots and a search for orphans cost.

Every line is a process of its own: CPU of it after opening the table, calls of the store, and what its peak of memory
lies above what it had then. "expiry": of all but one of so many commits of one row. "orphans": a table with so many
named files, and a ninth as many that nothing names, which are deleted; "listed" takes the files from a store that only
says that they are there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from benchmarks import system_tables
from benchmarks.child import resident_mb
from paimon_py import Catalog, Table
from paimon_py.env import Env
from paimon_py.metadata.root import TableRoot
from paimon_py.storage.store import FileStatus
from paimon_py.testing import named_files
from paimon_py.testing.counting_store import CountingStore

PARTITIONS = 10
ORPHANS_OF = 10
_LONG_AGO = 1_000_000_000_000
KINDS = ("expiry", "orphans", "orphans, listed")


class Line(NamedTuple):
    """One step: how many files went, CPU seconds, calls of the store, megabytes."""

    step: str
    files: int
    seconds: float
    calls: int
    megabytes: float


def names(files: int, partition: int) -> list[str]:
    """The files of a partition, with orphans among them."""
    step = named_files.FILES_PER_MANIFEST
    numbers = [
        number
        for start in range(partition * step, files, PARTITIONS * step)
        for number in range(start, min(start + step, files))
    ]
    orphans = [f"orphan-{partition}-{number}" for number in range(len(numbers) // (ORPHANS_OF - 1))]
    return [*(named_files.file_name(number) for number in numbers), *orphans]


class Listed:
    """A store whose buckets hold files that nobody made."""

    def __init__(self, store: Any, files: int) -> None:
        self._store = store
        self._files = files

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def list(self, directory: str) -> list[FileStatus]:
        """What is there, and in a bucket the files that are not."""
        if not directory.endswith("/bucket-0"):
            found: list[FileStatus] = self._store.list(directory)
            return found
        partition = int(directory.split("p=")[1].partition("/")[0])
        like = FileStatus(path="", name="", size_bytes=1, is_directory=False, modified_millis=_LONG_AGO)
        replace = msgspec.structs.replace
        return [replace(like, path=f"{directory}/{name}", name=name) for name in names(self._files, partition)]


def make(directory: str, kind: str, count: int) -> None:
    """The table of a step."""
    if kind != "expiry":
        system_tables.make(directory, 2, count)
        for partition in range(PARTITIONS if kind == "orphans" else 0):
            bucket = Path(directory, "db.db", "t", f"p={partition}", "bucket-0")
            bucket.mkdir(parents=True, exist_ok=True)
            for name in names(count, partition):
                (bucket / name).touch()
                os.utime(bucket / name, (_LONG_AGO // 1000, _LONG_AGO // 1000))
        return
    catalog = Catalog.open(directory, {"fs.local.fsync": "false"})
    catalog.create_database("db")
    columns = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.string())])
    options = {"bucket": "1", "write-only": "true"}
    table = catalog.create_table("db.t", columns, primary_key=["k"], options=options)
    for number in range(count):
        table.write_arrow(pa.table({"k": [number % 10], "v": ["v"]}), overwrite={} if number % 100 == 99 else None)


def measure(directory: str, kind: str, count: int) -> Line:
    """One step in this process."""
    table = Catalog.open(directory).table("db.t")
    store = CountingStore(table._root.store)
    opened: Any = Listed(store, count) if kind == "orphans, listed" else store
    table = Table(TableRoot(opened, table.location, Env()), table.schema, "db.t")
    had = resident_mb("VmHWM")
    start = time.process_time()
    if kind == "expiry":
        done = table.expire_snapshots(retain_min=1, retain_max=1, older_than=timedelta(0), max_deletes=count)
        assert len(done.snapshot_ids) == count - 1
        went = done.data_files + done.index_files + done.metadata_files
    else:
        found = table.remove_orphans(dry_run=False)
        assert found.left_files == 0
        went = found.files
    seconds = time.process_time() - start
    grown = resident_mb("VmHWM") - had
    return Line(f"{kind}, {count:,}", went, seconds, sum(store.calls.values()), grown)


def main(arguments: Sequence[str] | None = None) -> list[Line]:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cleaning", description=__doc__)
    parser.add_argument("--counts", type=int, nargs=3, default=[1000, 100_000, 1_000_000], help="of the three steps")
    parser.add_argument("--measure", nargs=3, metavar=("DIRECTORY", "KIND", "COUNT"), help="one line, as JSON")
    given = parser.parse_args(arguments)
    if given.measure:
        line = measure(given.measure[0], given.measure[1], int(given.measure[2]))
        print(json.dumps(line))
        return [line]
    lines = []
    print(f"{'step':<28}{'files went':>12}{'CPU':>12}{'calls':>10}{'memory':>12}")
    for kind, count in zip(KINDS, given.counts, strict=True):
        with tempfile.TemporaryDirectory() as directory:
            make(directory, kind, count)
            command = [sys.executable, "-m", "benchmarks.cleaning", "--measure", directory, kind, str(count)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        line = Line(*json.loads(done.stdout.splitlines()[-1]))
        print(f"{line.step:<28}{line.files:>12}{line.seconds:>10.2f} s{line.calls:>10}{line.megabytes:>9.0f} MB")
        lines.append(line)
    return lines


if __name__ == "__main__":
    main()
