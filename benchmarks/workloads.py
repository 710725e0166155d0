"""The workloads: what is written, what is read, who is compared, what is to be reached."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks import data
from paimon_py import Catalog, Table

PAIMON = ("ours", "rust", "native", "pypaimon")


@dataclass(frozen=True)
class Measure:
    """One figure: a step run by several peers, and the ratios that are to be reached.

    `targets`: (peer, factor) means ours ≤ factor × peer. `repeat`: compare later calls in one process, not the first.
    """

    name: str
    step: str
    settings: dict
    peers: tuple[str, ...]
    targets: tuple[tuple[str, float], ...] = ()
    keyed: bool = False
    writes: bool = False
    repeats: int = 0
    base: str | None = None
    absolute: float | None = None
    unit: str = "cpu"
    per: int = 1
    extra: dict = field(default_factory=dict)


def fresh_table(path: Path, schema: object, keyed: bool, options: dict[str, str] | None = None) -> Path:
    """An empty table `db.t` in its own warehouse; returns its directory."""
    shutil.rmtree(path, ignore_errors=True)
    catalog = Catalog.open(str(path))
    catalog.create_database("db")
    settings = {"bucket": "1" if keyed else "-1", **({"write-only": "true"} if keyed else {}), **(options or {})}
    catalog.create_table("db.t", schema, primary_key=["k"] if keyed else [], options=settings)
    return path / "db.db" / "t"


def inputs(root: Path, scale: float) -> dict[str, list[str]]:
    """Write the input files; returns their paths by workload."""
    root.mkdir(parents=True, exist_ok=True)
    million = int(1_000_000 * scale)
    tenth = million // 10
    made = {
        "append": [data.narrow(np.arange(10 * million), 7)],
        "load-1m": [data.narrow(data.load_keys(million), 8)],
        "load-5m": [data.narrow(data.load_keys(5 * million), 9)],
        "upserts": [data.narrow(data.upsert_keys(tenth, million, i), 20 + i) for i in range(10)],
        "small": [data.narrow(np.arange(100) + 10**9, 5)],
    }
    paths: dict[str, list[str]] = {}
    for name, tables in made.items():
        paths[name] = []
        for number, table in enumerate(tables):
            path = root / f"{name}-{number}.arrow"
            data.store(table, path)
            paths[name].append(str(path))
    return paths


def merged_table(root: Path, paths: dict[str, list[str]]) -> Path:
    """The table of the read workloads: one load and ten upserts, eleven runs in one bucket."""
    path = fresh_table(root / "merged", data.SCHEMA, keyed=True)
    table = Table.open(str(path))
    for source in [*paths["load-1m"], *paths["upserts"]]:
        table.write_arrow(_mapped(source))
    return path


def many_commits(root: Path, count: int) -> Path:
    """A table of `count` commits of 100 rows in one bucket, keys ascending with the commits."""
    path = fresh_table(root / f"commits-{count}", data.SCHEMA, keyed=True)
    table = Table.open(str(path))
    for number in range(count):
        table.write_arrow(data.narrow(np.arange(100) + 100 * number, number))
    return path


def _mapped(path: str):
    import pyarrow as pa

    return pa.ipc.open_file(pa.memory_map(path)).read_all()


def measures(root: Path, scale: float, paths: dict[str, list[str]], commits: tuple[int, ...]) -> list[Measure]:
    """All figures, over tables that are made here."""
    merged = merged_table(root, paths)
    million = int(1_000_000 * scale)
    whole = {"table": str(merged), "raw": str(merged / "bucket-0")}
    low = million // 2
    result = [
        Measure("append 10 M rows", "write", {"inputs": paths["append"]}, ("raw", *PAIMON), (("raw", 1.05),), writes=True),
        Measure("primary-key load 1 M", "write", {"inputs": paths["load-1m"], "keyed": True}, ("raw", *PAIMON),
                (("raw", 1.1), ("rust", 1.0)), keyed=True, writes=True),
        Measure("primary-key load 5 M", "write", {"inputs": paths["load-5m"], "keyed": True}, ("raw", "ours", "rust", "native"),
                (("raw", 1.1), ("rust", 1.0)), keyed=True, writes=True),
        Measure("upsert 100 k, per commit (ten on 1 M)", "write", {"inputs": paths["upserts"], "keyed": True},
                ("raw", *PAIMON), (("rust", 1.0),), keyed=True, writes=True, base="load-1m", per=10),
        Measure("merged read, all columns, first call", "read", whole, PAIMON, (("rust", 1.0),)),
        Measure("merged read, all columns, repeated", "read", whole, ("ours", "rust", "native"), (("rust", 1.0),), repeats=3),
        Measure("merged read against a raw decode, repeated", "read", whole, ("ours",), (("raw", 1.8),), repeats=3,
                extra={"raw": "decode"}),
        Measure("merged read, two columns", "read", {**whole, "columns": ["k", "b"]}, PAIMON, (("rust", 0.5),)),
        Measure("merged read, 1 % key range", "read", {**whole, "range": [low, low + million // 100]}, PAIMON, (("rust", 1.5),)),
        Measure("merged read, one key", "read", {**whole, "range": [low, low]}, PAIMON),
        Measure("import", "nothing", {}, ("raw", *PAIMON), unit="import_cpu", absolute=0.25),
    ]  # fmt: skip
    for count in commits:
        path = many_commits(root, count)
        plan = {"table": str(path), "range": [50, 60]}
        result += [
            Measure(f"plan at {count} commits, warm process", "plan", plan, PAIMON, repeats=5,
                    absolute=0.012 if count >= 1000 else None),
            Measure(f"plan at {count} commits, fresh process", "plan", plan, PAIMON, absolute=0.060 if count >= 1000 else None),
            Measure(f"one more commit at {count}, warm process", "write",
                    {"inputs": paths["small"], "table": str(path), "keyed": True}, PAIMON,
                    (("rust", 1.0),) if count >= 1000 else (), repeats=5),
        ]  # fmt: skip
    return result
