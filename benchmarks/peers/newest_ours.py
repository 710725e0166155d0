"""Steps on tables with data evolution, of paimon_py."""

import importlib

import numpy as np
import pyarrow as pa
from peers.common import check, prepare  # noqa: F401
from peers.newest_rows import BATCH_ROWS, blob, column_batches, tracked

from paimon_py import Catalog, Schema, Table, col

for _name in (
    "commit.commit", "files.blob_columns", "files.blob_writer", "formats.parquet.format", "formats.parquet.write",
    "rows.backfill", "rows.column_rows", "rows.verbs", "scan.aligned_rows", "scan.blob_values", "scan.id_read",
    "scan.read", "scan.scan", "table.writing", "write.session",
):  # fmt: skip
    importlib.import_module(f"paimon_py.{_name}")  # pypaimon loads its modules when it is imported


def make(inputs, settings):
    """A table of many columns, and the column that will be filled; `blobs`: one of BLOBs."""
    catalog = Catalog.open(settings["warehouse"])
    catalog.create_database("db", exist_ok=True)
    if settings.get("blobs"):
        catalog.create_table("db.t", Schema({"id": "BIGINT", "image": "BLOB"}), options=tracked())
        return
    names = {f"c{at}": "DOUBLE" for at in range(settings["columns"])}
    table = catalog.create_table("db.t", Schema({"id": "BIGINT", **names, "filled": "DOUBLE"}), options=tracked())
    for batch in column_batches(settings):
        table.write_arrow(batch)


def read_columns(inputs, settings):
    return Table.open(settings["table"]).scan(columns=settings["names"]).to_arrow()


def backfill(inputs, settings):
    Table.open(settings["table"]).backfill({"filled": col("c0") * 0.9})


def lookup(inputs, settings):
    return Table.open(settings["table"]).scan(row_ids=settings["ids"], columns=settings["names"]).to_arrow()


def write_blobs(inputs, settings):
    table = Table.open(settings["table"])
    schema = pa.schema([("id", pa.int64()), ("image", pa.large_binary())])
    numbers = range(0, settings["rows"], BATCH_ROWS)
    spans = [range(start, min(start + BATCH_ROWS, settings["rows"])) for start in numbers]
    batches = (
        pa.record_batch([pa.array(span, pa.int64()), pa.array(map(blob, span), pa.large_binary())], schema)
        for span in spans
    )
    table.write_arrow(pa.RecordBatchReader.from_batches(schema, batches))


def read_blobs(inputs, settings):
    found = np.zeros(2, np.int64)
    for batch in Table.open(settings["table"]).scan(columns=["image"]).to_reader():
        found += (batch.num_rows, sum(len(value.as_buffer()) for value in batch.column(0)))
    return found.tolist()


def nothing(inputs, settings):
    return "paimon_py"
