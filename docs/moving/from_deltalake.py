"""Copy the state of a Delta table into a Paimon table: `from_deltalake.py DIRECTORY WAREHOUSE DB.TABLE --key k`."""

from __future__ import annotations

import pyarrow as pa
from copying import copy
from deltalake import DeltaTable


def batches(source: str) -> pa.RecordBatchReader:
    """The rows of the newest version, as they are read."""
    return DeltaTable(source).to_pyarrow_dataset().scanner().to_reader()


if __name__ == "__main__":
    copy(batches)
