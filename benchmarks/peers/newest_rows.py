"""The rows of tables with data evolution: the same for every peer."""

import numpy as np
import pyarrow as pa

BLOB_BYTES = 1 << 20
BATCH_ROWS = 16
FILES = 8


def tracked():
    """The options of the tables."""
    return {"bucket": "-1", "row-tracking.enabled": "true", "data-evolution.enabled": "true"}


def column_batches(settings):
    """Rows in `FILES` parts: an id, `columns` doubles, and nothing in the column that will be filled."""
    rows = settings["rows"] // FILES
    for part in range(FILES):
        rng = np.random.default_rng(part)
        arrays = [pa.array(np.arange(part * rows, (part + 1) * rows))]
        arrays += [pa.array(np.round(rng.random(rows), 3)) for _ in range(settings["columns"])]
        names = ["id", *(f"c{at}" for at in range(settings["columns"])), "filled"]
        yield pa.table([*arrays, pa.nulls(rows, pa.float64())], names)


def blob(number):
    """A value of 1 MB that no codec makes smaller."""
    return np.random.default_rng(number).bytes(BLOB_BYTES)
