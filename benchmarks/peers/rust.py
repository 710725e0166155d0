"""pypaimon-rust alone."""

import os

import pyarrow as pa
from peers.common import check, prepare  # noqa: F401
from pypaimon_rust.datafusion import PaimonCatalog


def _table(settings):
    path = settings["table"]
    return PaimonCatalog({"warehouse": os.path.dirname(os.path.dirname(path))}).get_table("db.t")


def write(inputs, settings):
    table = _table(settings)
    for data in inputs:
        builder = table.new_batch_write_builder()
        writer = builder.new_write()
        for batch in data.to_batches():
            writer.write_arrow(batch)
        builder.new_commit().commit(writer.prepare_commit())
        writer.close()


def _builder(settings):
    builder = _table(settings).new_read_builder()
    if "columns" in settings:
        builder = builder.with_projection(settings["columns"])
    if "range" in settings:
        low, high = settings["range"]
        column = settings.get("column", "k")
        builder = builder.with_filter(
            {
                "method": "and",
                "children": [
                    {"method": "greaterOrEqual", "field": column, "literals": [low]},
                    {"method": "lessOrEqual", "field": column, "literals": [high]},
                ],
            }
        )
    if "equals" in settings:
        equal = {"method": "equal", "field": settings["column"], "literals": [settings["equals"]]}
        builder = builder.with_filter(equal)
    return builder


def read(inputs, settings):
    builder = _builder(settings)
    if "limit" in settings:
        return _first(builder.with_limit(settings["limit"]), settings["limit"])
    splits = builder.new_scan().plan().splits()
    return pa.Table.from_batches(builder.new_read().read(splits))


def _first(builder, limit):
    found, rows = [], 0
    for batch in builder.new_read().read_arrow(builder.new_scan().plan().splits()):
        found.append(batch.slice(0, limit - rows))
        rows += found[-1].num_rows
        if rows >= limit:
            break
    return pa.Table.from_batches(found)


def stream(inputs, settings):
    builder = _builder(settings)
    splits = builder.new_scan().plan().splits()
    return sum(batch.num_rows for batch in builder.new_read().read_arrow(splits))


def plan(inputs, settings):
    return len(_builder(settings).new_scan().plan().splits())


def nothing(inputs, settings):
    return "pypaimon-rust"
