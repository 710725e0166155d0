"""`python -m benchmarks.large_commit`: what one commit of a large job costs its driver.

So many tasks hand over changes of so many buckets each, with so many files a bucket; the files are made up: their
names and keys are random, their statistics are those of six columns. "handed over" is what Spark collects, all tasks
together. The driver reads the changes of all tasks, puts them together and commits once. "again" is a commit of the
same size on top of the first, "replaced" one that takes the files of the first two away and adds one for each bucket,
as a full compaction does. Each line is CPU seconds, what the peak of memory lies above the start of the process's work,
calls of the store, and the manifest files of the new snapshot with their bytes.

A commit looks whether each new file is there. On a local disk it asks for each of them, and the store of the measure
says that it is there. With `--distant` the same directory looks like an object store, whose listings, one call for each
1,000 names, contain the files of this step and of those before.
"""

from __future__ import annotations

import argparse
import bisect
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from benchmarks import data
from benchmarks.child import resident_mb
from paimon_py import Catalog, Changes, Table
from paimon_py.commit.changes import BucketChanges, Edit
from paimon_py.env import Env
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.data_file import DataFile
from paimon_py.storage.store import FileStatus, ListFrom
from paimon_py.testing.counting_store import CountingStore

_MADE_UP = "-0000-4000-8000-"
_SCHEME = "s3://"
_LINE_BYTES, _PAGE = 96, 1000
STEPS = ("first", "again", "replaced")


class Line(NamedTuple):
    """One commit."""

    step: str
    files: int
    handed_over: int
    seconds: float
    megabytes: float
    calls: int
    manifests: int
    manifest_bytes: int


class Counted(CountingStore):
    """Counts calls without remembering their paths."""

    def _count(self, verb: str, path: str) -> None:  # noqa: ARG002
        self.calls[verb] += 1


class Named:
    """Sorted paths in a file, in lines of the same length: they take no memory."""

    def __init__(self, place: Path) -> None:
        self._file = os.open(place, os.O_RDONLY) if place.exists() else None
        self._count = place.stat().st_size // _LINE_BYTES if self._file is not None else 0

    @staticmethod
    def add(place: Path, paths: Iterable[str]) -> None:
        """Add paths to those of a file."""
        known = place.read_text().split() if place.exists() else []
        place.write_text("".join(f"{path:<{_LINE_BYTES - 1}}\n" for path in sorted({*known, *paths})))

    def page(self, start: str) -> list[str]:
        """The first paths from one on."""
        first = bisect.bisect_left(range(self._count), start, key=lambda at: self._read(at, 1)[0])
        return self._read(first, _PAGE)

    def _read(self, at: int, count: int) -> list[str]:
        assert self._file is not None
        return os.pread(self._file, count * _LINE_BYTES, at * _LINE_BYTES).decode().split()


class Distant:
    """A local disk at URLs, as an object store has them; it lists names of a file besides."""

    def __init__(self, store: Any, names: Named, size: int) -> None:
        self._store = store
        self._names = names
        self._size = size

    def page_lister(self) -> ListFrom:
        """See `page_lister`."""
        return self._page

    def _page(self, directory: str, start: str) -> list[FileStatus]:
        found = self._names.page(start[len(directory) + 1 :])
        paths = [f"{directory}/{path}" for path in found]
        return [FileStatus(path, path.rpartition("/")[2], self._size, False) for path in paths]

    def __getattr__(self, verb: str) -> Any:
        def call(path: str, *rest: Any, within: str | None = None) -> Any:
            here = {} if within is None else {"within": within.replace(_SCHEME, "/")}
            found = getattr(self._store, verb)(path.replace(_SCHEME, "/"), *rest, **here)
            if verb == "list":
                return [msgspec.structs.replace(one, path=one.path.replace("/", _SCHEME, 1)) for one in found]
            return found

        return call


class Complete:
    """A store that holds files which nobody wrote."""

    def __init__(self, store: Any, size: int) -> None:
        self._store = store
        self._size = size

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def stat(self, path: str) -> FileStatus | None:
        """What is there, and files that are not."""
        found: FileStatus | None = self._store.stat(path)
        if found is None and _MADE_UP in path:
            name = path.rpartition("/")[2]
            return FileStatus(path=path, name=name, size_bytes=self._size, is_directory=False, modified_millis=0)
        return found


def make(directory: str, buckets: int) -> None:
    """A table, and beside it changes with one real file, like which all others are."""
    catalog = Catalog.open(directory, {"fs.local.fsync": "false"})
    catalog.create_database("db")
    options = {"bucket": str(buckets), "write-only": "true"}
    table = catalog.create_table("db.t", data.SCHEMA, primary_key=["k"], options=options)
    with table.writer() as writer:
        writer.write_arrow(data.narrow(np.arange(100), 1))
        Path(directory, "model").write_bytes(bytes(writer.changes()))
        writer.abort()


def made_up(model: Changes, tasks: int, buckets: int, files: int, step: str) -> Iterator[bytes]:
    """What the tasks hand over."""
    bucket = model.buckets[0]
    file = bucket.written.added[0]

    def of_bucket(number: int, label: str, count: int) -> tuple[DataFile, ...]:
        generator = np.random.default_rng(number)
        digits, lows = generator.integers(2**62, size=count), generator.integers(2**40, size=count)
        names = (f"data-{label}{number:05d}{_MADE_UP}{digit:016x}-0.parquet" for digit in digits.tolist())
        return tuple(_with_keys(file, name, low) for name, low in zip(names, lows.tolist(), strict=True))

    def changed(number: int) -> BucketChanges:
        if step != "replaced":
            edit = Edit(added=of_bucket(number, {"first": "aaa", "again": "bbb"}[step], files))
            return msgspec.structs.replace(bucket, bucket=number, written=edit)
        old = (*of_bucket(number, "aaa", files), *of_bucket(number, "bbb", files))
        top = tuple(msgspec.structs.replace(one, level=5) for one in of_bucket(number, "ccc", 1))
        return msgspec.structs.replace(bucket, bucket=number, written=Edit(), compacted=Edit(added=top, deleted=old))

    for task in range(tasks):
        numbers = range(task * buckets, (task + 1) * buckets)
        yield bytes(msgspec.structs.replace(model, buckets=tuple(map(changed, numbers))))


def _with_keys(file: DataFile, name: str, low: int) -> DataFile:
    """A file like another one, with keys from `low` on."""
    first, last = (number.to_bytes(8, "little") for number in (low, low + file.row_count))
    least, most = file.min_key[:-8] + first, file.max_key[:-8] + last
    values = file.value_stats
    at = len(least)  # the key is the first column
    return msgspec.structs.replace(
        file, name=name, min_key=least, max_key=most,
        key_stats=msgspec.structs.replace(file.key_stats, min_values=least, max_values=most),
        value_stats=msgspec.structs.replace(
            values, min_values=values.min_values[: at - 8] + first + values.min_values[at:],
            max_values=values.max_values[: at - 8] + last + values.max_values[at:],
        ),
    )  # fmt: skip


def hand_over(directory: str, tasks: int, buckets: int, files: int, step: str) -> None:
    """Write what the tasks hand over to a file, and the sizes of the parts to another."""
    with Catalog.open(directory).table("db.t").writer() as writer:
        buckets_of = Changes.from_bytes(Path(directory, "model").read_bytes()).buckets
        model = msgspec.structs.replace(writer.changes(), buckets=buckets_of)
    sizes = []
    made = (
        f"bucket-{one.bucket}/{file.name}"
        for handed in made_up(model, tasks, buckets, files, step)
        for one in Changes.from_bytes(handed).buckets
        for file in one.made_files
    )
    Named.add(Path(directory, "names"), made)
    with open(Path(directory, "handed"), "wb") as sink:
        for handed in made_up(model, tasks, buckets, files, step):
            sink.write(handed)
            sizes.append(len(handed))
    Path(directory, "sizes").write_text(json.dumps(sizes))


def opened(directory: str, size: int, *, distant: bool) -> tuple[Table, Counted]:
    """The table in a store that counts its calls."""
    table = Catalog.open(directory).table("db.t")
    whole: Any = Complete(table._root.store, size)
    store = Counted(Distant(whole, Named(Path(directory, "names")), size) if distant else whole)
    counting: Any = store
    place = table.location.replace("/", _SCHEME, 1) if distant else table.location
    return Table(TableRoot(counting, place, Env()), table.schema, "db.t"), store


def measure(directory: str, tasks: int, buckets: int, files: int, step: str, *, distant: bool) -> Line:
    """The commit of one step in this process; the steps before are done."""
    arguments = (directory, tasks, buckets, files, step)
    maker = multiprocessing.get_context("spawn").Process(target=hand_over, args=arguments)
    maker.start()
    maker.join()
    assert maker.exitcode == 0, "nothing was handed over"
    sizes = json.loads(Path(directory, "sizes").read_text())
    model = Changes.from_bytes(Path(directory, "model").read_bytes())
    size = model.buckets[0].made_files[0].size_bytes
    table, store = opened(directory, size, distant=distant)
    with open(Path(directory, "handed"), "rb") as source:
        collected = [source.read(size) for size in sizes]
    had = _resident()
    start = time.process_time()
    done = table.commit(Changes.concat(map(Changes.from_bytes, collected)))
    seconds = time.process_time() - start
    calls = sum(store.calls.values())
    assert done.snapshot_id is not None
    manifests = table.system("manifests").scan(columns=["file_size"]).to_arrow()["file_size"].to_pylist()
    count = tasks * buckets * (files if step != "replaced" else 2 * files + 1)
    grown = max(0.0, resident_mb("VmHWM") - had)
    return Line(step, count, sum(sizes), seconds, grown, calls, len(manifests), sum(manifests))


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1024**2


def main(arguments: Sequence[str] | None = None) -> list[Line]:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_commit", description=__doc__)
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--buckets", type=int, default=10, help="of each task")
    parser.add_argument("--files", type=int, default=10, help="of each bucket")
    parser.add_argument("--steps", nargs="+", default=STEPS, choices=STEPS, help="which commits to measure")
    parser.add_argument("--distant", action="store_true", help="the table is in an object store")
    parser.add_argument("--measure", nargs=2, metavar=("DIRECTORY", "STEP"), help="one line, as JSON")
    given = parser.parse_args(arguments)
    if given.measure:
        directory, step = given.measure
        line = measure(directory, given.tasks, given.buckets, given.files, step, distant=given.distant)
        print(json.dumps(line))
        return [line]
    lines = []
    with tempfile.TemporaryDirectory() as directory:
        make(directory, given.tasks * given.buckets)
        for step in given.steps:
            asked = [f"--{name}={getattr(given, name)}" for name in ("tasks", "buckets", "files")]
            asked += ["--distant"] if given.distant else []
            command = [sys.executable, "-m", "benchmarks.large_commit", *asked, "--measure", directory, step]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            line = Line(*json.loads(done.stdout.splitlines()[-1]))
            print(
                f"{step:<10}{line.files:>9,} entries {line.handed_over / 2**20:>8.1f} MB handed over "
                f"{line.seconds:>7.2f} s {line.megabytes:>6.0f} MB {line.calls:>7,} calls "
                f"{line.manifests:>4} manifests {line.manifest_bytes / 2**20:>7.1f} MB",
                flush=True,
            )
            lines.append(line)
    return lines


if __name__ == "__main__":
    main()
