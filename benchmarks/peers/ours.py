"""paimon_py."""

from peers.common import check, prepare  # noqa: F401

import paimon_py
from paimon_py import Table, col


def write(inputs, settings):
    table = Table.open(settings["table"])
    for data in inputs:
        table.write_arrow(data)
    return len(inputs)


def read(inputs, settings):
    where = None
    if "range" in settings:
        low, high = settings["range"]
        where = (col("k") >= low) & (col("k") <= high)
    return check(Table.open(settings["table"]).scan(columns=settings.get("columns"), where=where).to_arrow())


def stream(inputs, settings):
    rows = 0
    for batch in Table.open(settings["table"]).scan().to_reader():
        rows += batch.num_rows
    return [rows]


def plan(inputs, settings):
    low, high = settings["range"]
    return len(Table.open(settings["table"]).scan(where=(col("k") >= low) & (col("k") <= high)).splits())


def nothing(inputs, settings):
    return paimon_py.__version__
