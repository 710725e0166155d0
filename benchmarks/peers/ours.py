"""paimon_py."""

import data
import numpy as np
import pyarrow as pa
from peers.common import check, prepare  # noqa: F401

import paimon_py
from paimon_py import Table, col


def _scan(settings):
    where = None
    if "range" in settings:
        low, high = settings["range"]
        column = col(settings.get("column", "k"))
        where = (column >= low) & (column <= high)
    if "equals" in settings:
        where = col(settings["column"]) == settings["equals"]
    return Table.open(settings["table"]).scan(
        columns=settings.get("columns"), where=where, limit=settings.get("limit")
    )


def write(inputs, settings):
    table = Table.open(settings["table"])
    for rows in inputs:
        table.write_arrow(rows)


def read(inputs, settings):
    return _scan(settings).to_arrow()


def changes(inputs, settings):
    """The rows that were written after a snapshot, with their kinds."""
    return Table.open(settings["table"]).changes(settings["since"], mode="delta").to_arrow()


def diff(inputs, settings):
    """What became of each key since the first snapshot, as a stream."""
    return sum(batch.num_rows for batch in Table.open(settings["table"]).changes(1, mode="diff").to_reader())


def step(inputs, settings):
    """The first step of a stream."""
    step = Table.open(settings["table"]).stream(from_=settings["from"]).poll()
    return sum(batch.num_rows for batch in step.to_reader())


_OPENED = {}


def lookup(inputs, settings):
    """Rows by key, of a table object that stays open; the keys are made once, as an array, a list
    or mappings: turning these into an array is part of the lookup."""
    path = settings["table"]
    table = _OPENED.setdefault(path, None) or Table.open(path)
    _OPENED[path] = table
    if "keys" in settings:
        if "made" not in _OPENED:
            keys = list(range(*settings["keys"]))
            made = {"array": pa.array(keys), "list": keys, "dicts": [{"k": key} for key in keys]}
            _OPENED["made"] = made[settings["form"]]
        return table.lookup(_OPENED["made"])
    return table.lookup(settings["range"][:1])


def stream(inputs, settings):
    return sum(batch.num_rows for batch in _scan(settings).to_reader())


def load(inputs, settings):
    """Write and commit `rows` wide rows, scattered, made in batches of `batch_rows`."""
    table, rows = Table.open(settings["table"]), settings["rows"]
    with table.writer() as writer:
        for start in range(0, rows, settings["batch_rows"]):
            numbers = np.arange(start, min(start + settings["batch_rows"], rows))
            writer.write_arrow(data.wide(data.scattered(numbers, rows), start))
        return table.commit(writer.changes()).row_count


def moves(inputs, settings):
    """Load `rows` wide rows into four partitions; then a new writer moves every tenth of them to the next partition."""
    table, rows, done = Table.open(settings["table"]), settings["rows"], 0
    for step, share in enumerate((1, 10)):
        with table.writer() as writer:
            for start in range(0, rows // share, settings["batch_rows"]):
                numbers = np.arange(start, min(start + settings["batch_rows"], rows // share))
                batch = data.wide(data.scattered(numbers, rows), start)
                parts = pa.array(np.asarray(batch.column("k")) % 4 + step, pa.int32())
                writer.write_arrow(batch.append_column("p", parts))
            done += table.commit(writer.changes()).row_count
    return done


def compact(inputs, settings):
    """Every bucket into one sorted run."""
    return Table.open(settings["table"]).compact(full=True).row_count


def change(inputs, settings):
    """Delete or update the rows with `low <= column <= high`; how many."""
    column, low, high = settings["where"]
    table, where = Table.open(settings["table"]), (col(column) >= low) & (col(column) <= high)
    if "set" in settings:
        return table.update(where, {name: float(value) for name, value in settings["set"].items()}).updated
    return table.delete(where).deleted


def merge(inputs, settings):
    """Update the rows that have a key of the source by all its columns, and add the others; how many."""
    table = Table.open(settings["table"])
    done = table.merge(inputs[0], ["k"], when_matched_update=True, when_not_matched_insert=True)
    return done.updated + done.inserted


def plan(inputs, settings):
    return len(_scan(settings).splits())


def nothing(inputs, settings):
    return paimon_py.__version__
