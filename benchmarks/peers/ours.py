"""paimon_py."""

from peers.common import check, prepare  # noqa: F401

import paimon_py
from paimon_py import Table, col


def _scan(settings):
    where = None
    if "range" in settings:
        low, high = settings["range"]
        where = (col("k") >= low) & (col("k") <= high)
    return Table.open(settings["table"]).scan(columns=settings.get("columns"), where=where)


def write(inputs, settings):
    table = Table.open(settings["table"])
    for data in inputs:
        table.write_arrow(data)


def read(inputs, settings):
    return _scan(settings).to_arrow()


def stream(inputs, settings):
    return sum(batch.num_rows for batch in _scan(settings).to_reader())


def plan(inputs, settings):
    return len(_scan(settings).splits())


def nothing(inputs, settings):
    return paimon_py.__version__
