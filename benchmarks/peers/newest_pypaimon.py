"""Steps on tables with data evolution, of pypaimon 2.1."""

import os

import pyarrow as pa
from peers.common import check, prepare  # noqa: F401
from peers.newest_rows import BATCH_ROWS, blob
from pypaimon import CatalogFactory


def _table(settings):
    return CatalogFactory.create({"warehouse": os.path.dirname(os.path.dirname(settings["table"]))}).get_table("db.t")


def _read(builder):
    return builder.new_read().to_arrow(builder.new_scan().plan().splits())


def read_columns(inputs, settings):
    return _read(_table(settings).new_read_builder().with_projection(settings["names"]))


def backfill(inputs, settings):
    table = _table(settings)
    found = _read(table.new_read_builder().with_projection(["c0", "_ROW_ID"]))
    values = pa.compute.multiply(found["c0"], 0.9)
    data = pa.table({"_ROW_ID": found["_ROW_ID"].cast(pa.int64()), "filled": values})
    builder = table.new_batch_write_builder()
    messages = builder.new_update().with_update_type(["filled"]).update_by_arrow_with_row_id(data)
    commit = builder.new_commit()
    commit.commit(messages)
    commit.close()


def lookup(inputs, settings):
    builder = _table(settings).new_read_builder().with_projection([*settings["names"], "_ROW_ID"])
    builder = builder.with_filter(builder.new_predicate_builder().is_in("_ROW_ID", settings["ids"]))
    return _read(builder).drop_columns(["_ROW_ID"])


def write_blobs(inputs, settings):
    builder = _table(settings).new_batch_write_builder()
    writer, commit = builder.new_write(), builder.new_commit()
    schema = pa.schema([("id", pa.int64()), ("image", pa.large_binary())])
    for start in range(0, settings["rows"], BATCH_ROWS):
        span = range(start, min(start + BATCH_ROWS, settings["rows"]))
        arrays = [pa.array(span, pa.int64()), pa.array(map(blob, span), pa.large_binary())]
        writer.write_arrow(pa.table(arrays, schema=schema))
    commit.commit(writer.prepare_commit())
    writer.close()
    commit.close()


def read_blobs(inputs, settings):
    builder = _table(settings).new_read_builder().with_projection(["image"])
    reader = builder.new_read().to_arrow_batch_reader(builder.new_scan().plan().splits())
    rows = size = 0
    for batch in reader:
        rows += batch.num_rows
        size += sum(len(value.as_buffer()) for value in batch.column(0))
    return [rows, size]


def nothing(inputs, settings):
    return "pypaimon"
