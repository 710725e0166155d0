"""Careful plain pyarrow and numpy: what the bytes cost without a table format.

Files are written to the directory `settings["raw"]` and read from there, or from `settings["files"]`, oldest first.

It does for the bytes what paimon_py does: zstd 1, statistics, page checksums written and verified, files and directory
on the disk (fsync); in keyed files the rows in key order with the key, sequence and kind columns. It does nothing for
the table: no schema, no checks of the input, no manifests, no commit.
"""

import glob
import importlib
import os

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from peers import common
from peers.common import check  # noqa: F401
from peers.raw_rows import COLUMNS, alive, change, store  # noqa: F401


def prepare(settings):
    """The inputs; filtered reads need pyarrow.dataset, and Python values pandas, whose imports are not counted."""
    if "where" in settings:
        pa.scalar(0)
    if "range" in settings:
        importlib.import_module("pyarrow.dataset")
    return common.prepare(settings)


def _integers(values, kind):
    """Arrow around numpy; pa.array would import pandas, a quarter of a second."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def _keys(table):
    column = pa.concat_arrays(table["k"].chunks)
    return np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column)]


def write(inputs, settings):
    """Append: write. With a key: sort, add sequence number and kind, write."""
    os.makedirs(settings["raw"], exist_ok=True)
    for data in inputs:
        if settings.get("keyed"):
            order = _integers(np.argsort(_keys(data), kind="stable"), pa.int64())
            data = data.take(order)
            data = data.add_column(0, "_KEY_k", data["k"]).add_column(1, "_SEQUENCE_NUMBER", order)
            data = data.add_column(2, "_VALUE_KIND", _integers(np.zeros(data.num_rows, np.int8), pa.int8()))
        store(data, settings["raw"])


def _tables(settings, columns, filters=None):
    """Every file as a table, oldest first."""
    paths = settings.get("files") or sorted(glob.glob(os.path.join(settings["raw"], "*.parquet")))
    how = {"columns": columns, "use_threads": False}
    if filters is None:
        return [pq.ParquetFile(path, page_checksum_verification=True).read(**how) for path in paths]
    return [pq.read_table(path, filters=filters, page_checksum_verification=True, **how) for path in paths]


def decode(inputs, settings):
    """Read the same columns of all files, without merging."""
    return sum(table.num_rows for table in _tables(settings, settings.get("columns") or COLUMNS))


def read(inputs, settings):
    """Merge: the last row of each key wins."""
    columns = settings.get("columns") or COLUMNS
    filters = None
    if "range" in settings:
        low, high = settings["range"]
        filters = (pc.field("k") >= low) & (pc.field("k") <= high)
    table = pa.concat_tables(_tables(settings, columns, filters))
    if not settings.get("keyed", True):
        return alive(table, settings)
    keys = _keys(table)
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    last = np.append(ordered[1:] != ordered[:-1], True)
    return table.take(_integers(order[last], pa.int64()))


def compact(inputs, settings):
    """Merge all files and write the rows in key order, with the key, sequence and kind columns, as one file."""
    os.makedirs(settings["raw"], exist_ok=True)
    table = pa.concat_tables(_tables(settings, ["_SEQUENCE_NUMBER", "_VALUE_KIND", *COLUMNS]))
    keys = _keys(table)
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    merged = table.take(_integers(order[np.append(ordered[1:] != ordered[:-1], True)], pa.int64()))
    store(merged.add_column(0, "_KEY_k", merged["k"]), settings["raw"])


def nothing(inputs, settings):
    return pa.__version__
