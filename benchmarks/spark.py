"""`python -m benchmarks.spark`: one Spark, `local[2]`, that reads, writes, compacts and merges in turns: ours, the Java
connector's way ("java") and Spark's own Parquet ("parquet").

Figures are CPU seconds of the whole tree of processes (the JVM with its compiler and collector, the Python workers and
this process) of one action, medians of rounds in which all take their turn, after a round that does not count. Ratios
are medians of each round's ratios. Rows: `data.py`; every peer has a table of its own with the same rows, and counts
and sums are compared.

- "read": all columns into Spark's `noop`; of a keyed table, three runs in each bucket to be merged.
- "write": rows that Spark reads from Parquet; keyed: four buckets, sorted, with one bucket in one task.
- "compact": a full compaction of four buckets with a load and five upserts of a tenth each.
- "merge": 100 k rows, half of them of keys that are there, into a keyed table of so many rows, four buckets.
- "splits": a table of 1,000 files in 1,000 partitions, a split each, whose rows are counted.

The connector: `--jar`, or what `PAIMON_TEST_SPARK_CONNECTOR` names; without any the lines have no "java".
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import paimon_py
from benchmarks import data
from paimon_py import Catalog, Table

BUCKETS = 4
KEYED = {"bucket": str(BUCKETS), "write-only": "true"}
Work = Callable[[], object]
"""One action of Spark. What comes back is compared between the peers of a line."""


class Turn(NamedTuple):
    """What a peer does in each round: the rest of the round is not measured.

    Attributes:
        ready: makes what the action needs.
        act: the action.
        check: what has to be the same for all peers, after the action.
    """

    ready: Work
    act: Work
    check: Work


class Line(NamedTuple):
    """One step: medians of CPU and wall seconds by peer, and of the ratio of ours to each other peer's CPU."""

    step: str
    cpu: dict[str, float]
    wall: dict[str, float]
    ratios: dict[str, float]


def nothing() -> None:
    """Needs nothing, and compares nothing."""


class Bench:
    """Tables of all peers in one session."""

    def __init__(self, spark: Any, directory: str, rows: int, *, java: bool) -> None:
        self.spark = spark
        self.directory = directory
        self.rows = rows
        self.java = java
        self.catalog = Catalog.open(f"{directory}/lake", {"fs.local.fsync": "false"})
        self.catalog.create_database("db")
        self.number = 0

    def table(self, kind: str) -> Table:
        """A new empty table, append or keyed; made by paimon_py, for Java too."""
        self.number += 1
        keys, options = (["k"], KEYED) if kind == "keyed" else ([], {"write-only": "true"})
        return self.catalog.create_table(f"db.t{self.number}", data.SCHEMA, primary_key=keys, options=options)

    def parquet(self, rows: pa.Table) -> Any:
        """The rows as a DataFrame that reads Parquet, of four files."""
        self.number += 1
        place = Path(self.directory, f"rows{self.number}")
        place.mkdir()
        step = -(-rows.num_rows // 4)
        for start in range(0, rows.num_rows, step):
            pq.write_table(rows.slice(start, step), place / f"{start}.parquet")
        read = self.spark.read.parquet(str(place))
        return read.selectExpr(*(f"cast({c} as timestamp_ntz) {c}" if c == "d" else c for c in read.columns))

    def drop(self, *tables: Table) -> None:
        """Delete tables."""
        for table in tables:
            self.catalog.drop_table(table.name)

    def of_java(self, table: Table) -> Any:
        """The table through the connector."""
        return self.spark.read.format("paimon").load(table.location)

    # -- the steps

    def read(self, kind: str) -> dict[str, Turn]:
        """See "read"."""
        table = self.table(kind)
        keys = np.random.default_rng(1).permutation(self.rows)
        for part in [keys] if kind == "append" else [keys, keys[::10], keys[5::10]]:
            table.write_arrow(data.narrow(part, len(part)))
        found = {"ours": Turn(nothing, lambda: noop(paimon_py.convert_to_spark(table, self.spark)), nothing)}
        if self.java:
            found["java"] = Turn(nothing, lambda: noop(self.of_java(table)), nothing)
        files = [str(path) for path in Path(table.location).rglob("data-*.parquet")]
        found["parquet"] = Turn(nothing, lambda: noop(self.spark.read.parquet(*files)), nothing)
        return found

    def write(self, kind: str) -> dict[str, Turn]:
        """See "write"."""
        df = self.parquet(data.narrow(np.random.default_rng(2).permutation(self.rows), 2))
        tables: dict[str, Table] = {}

        def fresh(peer: str) -> None:
            if peer in tables:
                self.drop(tables[peer])
            tables[peer] = self.table(kind)

        def rows(peer: str) -> tuple[int, int]:
            return of_rows(tables[peer])

        place = f"{self.directory}/written"
        found = {
            "ours": Turn(
                lambda: fresh("ours"), lambda: paimon_py.write_spark(tables["ours"], df), lambda: rows("ours")
            )
        }
        if self.java:
            found["java"] = Turn(
                lambda: fresh("java"),
                lambda: df.write.format("paimon").mode("append").save(tables["java"].location),
                lambda: rows("java"),
            )
        found["parquet"] = Turn(nothing, lambda: df.write.mode("overwrite").parquet(place), nothing)
        if kind == "keyed":
            sort = df.repartition(BUCKETS, "k").sortWithinPartitions("k")
            found["sorted parquet"] = Turn(nothing, lambda: sort.write.mode("overwrite").parquet(place), nothing)
        return found

    def compact(self) -> dict[str, Turn]:
        """See "compact"."""
        model = self.table("keyed")
        keys = np.random.default_rng(3).permutation(self.rows)
        for number in range(6):
            part = keys if number == 0 else keys[number :: 10]
            model.write_arrow(data.narrow(part, number))
        copies: dict[str, Table] = {}

        def fresh(peer: str) -> None:
            copies[peer] = self.copy(model, copies.get(peer))

        turns = {
            "ours": Turn(
                lambda: fresh("ours"),
                lambda: paimon_py.compact_spark(copies["ours"], full=True, spark=self.spark),
                lambda: of_rows(copies["ours"]),
            )
        }
        if self.java:
            turns["java"] = Turn(
                lambda: fresh("java"),
                lambda: self.spark.sql(f"CALL lake.sys.compact(table => '{copies['java'].name}')").collect(),
                lambda: of_rows(copies["java"]),
            )
        return turns

    def merge(self) -> dict[str, Turn]:
        """See "merge"."""
        model = self.table("keyed")
        model.write_arrow(data.narrow(np.arange(0, 2 * self.rows, 2), 4))
        source = self.parquet(data.narrow(np.linspace(0, self.rows, min(100_000, self.rows)).astype(np.int64), 5))
        copies: dict[str, Table] = {}

        def fresh(peer: str) -> None:
            copies[peer] = self.copy(model, copies.get(peer))

        def java() -> None:
            source.createOrReplaceTempView("source")
            self.spark.sql(
                f"MERGE INTO lake.{copies['java'].name} t USING source s ON t.k = s.k "
                "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            ).collect()

        turns = {
            "ours": Turn(
                lambda: fresh("ours"),
                lambda: paimon_py.merge_spark(
                    copies["ours"], source, ["k"], when_matched_update=True, when_not_matched_insert=True
                ),
                lambda: of_rows(copies["ours"]),
            )
        }
        if self.java:
            turns["java"] = Turn(lambda: fresh("java"), java, lambda: of_rows(copies["java"]))
        return turns

    def copy(self, model: Table, old: Table | None) -> Table:
        """A copy of a table's directory, in the place of the old copy."""
        if old is not None:
            self.drop(old)
        self.number += 1
        name = f"t{self.number}"
        shutil.copytree(model.location, Path(model.location).with_name(name))
        return self.catalog.table(f"db.{name}")

    def splits(self) -> dict[str, Turn]:
        """See "splits"."""
        count = 1000
        schema = pa.schema([pa.field("p", pa.int32()), pa.field("v", pa.int64())])
        table = self.catalog.create_table("db.splits", schema, partition_by=["p"], options={"write-only": "true"})
        table.write_arrow(pa.table({"p": pa.array(range(count), pa.int32()), "v": pa.array(range(count), pa.int64())}))
        assert len(table.scan().splits()) == count
        found = {"ours": Turn(nothing, lambda: noop(paimon_py.convert_to_spark(table, self.spark)), nothing)}
        if self.java:
            found["java"] = Turn(nothing, lambda: noop(self.of_java(table)), nothing)
        files = [str(path) for path in Path(table.location).rglob("data-*.parquet")]
        found["parquet"] = Turn(nothing, lambda: noop(self.spark.read.parquet(*files)), nothing)
        return found


def noop(df: Any) -> None:
    """Make all rows of a DataFrame, and drop them."""
    df.write.format("noop").mode("overwrite").save()


def of_rows(table: Table) -> tuple[int, int]:
    """The number of rows and the sum of a column."""
    rows = table.refresh().scan(columns=["k", "a"]).to_arrow()
    return rows.num_rows, int(pa.compute.sum(rows["a"]).as_py())


def cpu_of_tree() -> float:
    """CPU seconds of this process and all below, the ended ones too."""
    parents: dict[int, list[tuple[int, float]]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path("/proc", entry, "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            ticks = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
            parents.setdefault(int(fields[1]), []).append((int(entry), ticks))
    own = os.times()
    total, todo = sum(own[:4]), [os.getpid()]
    while todo:
        for child, ticks in parents.get(todo.pop(), []):
            total += ticks
            todo.append(child)
    return total


def measured(step: str, turns: Mapping[str, Turn], rounds: int) -> Line:
    """Rounds in which all peers take their turn; the first does not count."""
    cpu: dict[str, list[float]] = {peer: [] for peer in turns}
    wall: dict[str, list[float]] = {peer: [] for peer in turns}
    for number in range(rounds + 1):
        seen = []
        for peer, turn in turns.items():
            turn.ready()
            busy, start = cpu_of_tree(), time.perf_counter()
            turn.act()
            passed, busy = time.perf_counter() - start, cpu_of_tree() - busy
            if number:
                cpu[peer].append(busy)
                wall[peer].append(passed)
            seen.append(turn.check())
        told = [one for one in seen if one is not None]
        assert all(one == told[0] for one in told), f"{step}: the peers have other rows: {told}"
    ratios = {
        peer: statistics.median(ours / other for ours, other in zip(cpu["ours"], cpu[peer], strict=True))
        for peer in turns
        if peer != "ours"
    }
    return Line(step, *({peer: statistics.median(each) for peer, each in by.items()} for by in (cpu, wall)), ratios)


def session(jar: str | None, warehouse: str, memory: str) -> Any:
    """Spark with two threads, and the connector where there is one."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", memory)
    settings = {
        "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(BUCKETS), "spark.driver.host": "127.0.0.1",
    }  # fmt: skip
    if jar is not None:
        settings |= {
            "spark.jars": jar, "spark.sql.catalog.lake": "org.apache.paimon.spark.SparkCatalog",
            "spark.sql.catalog.lake.warehouse": warehouse,
            "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
        }  # fmt: skip
    for name, text in settings.items():
        builder = builder.config(name, text)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made


def main(arguments: Sequence[str] | None = None) -> list[Line]:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__)
    parser.add_argument("--rows", type=int, default=3_000_000, help="of a table that is read or written")
    parser.add_argument("--merged", type=int, default=10_000_000, help="of the table of the merge")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="part of the names of lines")
    parser.add_argument("--jar", default=os.environ.get("PAIMON_TEST_SPARK_CONNECTOR"))
    parser.add_argument("--memory", default="4g", help="of the JVM")
    given = parser.parse_args(arguments)
    lines = []
    with tempfile.TemporaryDirectory() as directory:
        spark = session(given.jar, f"{directory}/lake", given.memory)
        try:
            print(f"Spark {spark.version}, connector {Path(given.jar).name if given.jar else 'none'}", flush=True)
            bench = Bench(spark, directory, given.rows, java=given.jar is not None)
            large = Bench.__new__(Bench)
            large.__dict__ = {**bench.__dict__, "rows": given.merged, "number": 1000}
            steps: dict[str, Callable[[], dict[str, Turn]]] = {
                "read, append": lambda: bench.read("append"),
                "read, keyed": lambda: bench.read("keyed"),
                "write, append": lambda: bench.write("append"),
                "write, keyed": lambda: bench.write("keyed"),
                "compact": bench.compact,
                "merge": large.merge,
                "splits": bench.splits,
            }
            for step, turns in steps.items():
                if given.only in step:
                    line = measured(step, turns(), given.rounds)
                    said = [f"{peer} {line.cpu[peer]:.2f} s ({line.wall[peer]:.2f} s)" for peer in line.cpu]
                    told = [f"{ratio:.2f}x {peer}" for peer, ratio in line.ratios.items()]
                    print(f"{step:<16}{'; '.join(said)}: {', '.join(told)}", flush=True)
                    lines.append(line)
        finally:
            spark.stop()
    return lines


if __name__ == "__main__":
    main()
