"""Copy the state of an Iceberg table into a Paimon table: `from_pyiceberg.py METADATA WAREHOUSE DB.TABLE --key k`."""

from __future__ import annotations

import pyarrow as pa
from copying import copy
from pyiceberg.table import StaticTable


def batches(source: str) -> pa.RecordBatchReader:
    """The rows of the current snapshot, as they are read."""
    return StaticTable.from_metadata(source).scan().to_arrow_batch_reader()


if __name__ == "__main__":
    copy(batches)
