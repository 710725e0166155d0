"""Careful plain pyarrow: what the bytes cost without a table format. Files lie in `settings["raw"]`."""

import glob
import os
import uuid

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from peers.common import check, prepare  # noqa: F401

OPTIONS = {"compression": "zstd", "compression_level": 1, "write_page_checksum": True, "store_schema": False}


def _write(data, settings):
    os.makedirs(settings["raw"], exist_ok=True)
    path = os.path.join(settings["raw"], f"{len(os.listdir(settings['raw'])):04}-{uuid.uuid4()}.parquet")
    pq.write_table(data, path, **OPTIONS)
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def write(inputs, settings):
    """Append: write. With a key: sort, add sequence number and kind, write."""
    for data in inputs:
        if not settings.get("keyed"):
            _write(data, settings)
            continue
        keys = np.frombuffer(data["k"].combine_chunks().buffers()[1], np.int64)[: data.num_rows]
        order = pa.array(np.argsort(keys, kind="stable"))
        numbers = pa.array(np.arange(data.num_rows))
        extra = data.add_column(0, "_KEY_k", data["k"])
        extra = extra.add_column(1, "_SEQUENCE_NUMBER", numbers)
        extra = extra.add_column(2, "_VALUE_KIND", pa.array(np.zeros(data.num_rows, np.int8)))
        _write(extra.take(order), settings)
    return len(inputs)


def _files(settings):
    return sorted(glob.glob(os.path.join(settings["raw"], "*.parquet")))


def decode(inputs, settings):
    """Read the same columns of all files, without merging."""
    columns = settings.get("columns") or ["k", "a", "b", "c", "d", "e"]
    tables = [pq.ParquetFile(path).read(columns=columns, use_threads=False) for path in _files(settings)]
    return [sum(table.num_rows for table in tables)]


def read(inputs, settings):
    """Merge: the last row of each key wins."""
    columns = settings.get("columns") or ["k", "a", "b", "c", "d", "e"]
    wanted = list(dict.fromkeys(["k", *columns]))
    filters = None
    if "range" in settings:
        low, high = settings["range"]
        filters = (pc.field("k") >= low) & (pc.field("k") <= high)
    tables = [pq.read_table(path, columns=wanted, filters=filters, use_threads=False) for path in _files(settings)]
    table = pa.concat_tables(tables)
    keys = np.frombuffer(table["k"].combine_chunks().buffers()[1], np.int64)[: table.num_rows]
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    last = np.append(ordered[1:] != ordered[:-1], True)
    return check(table.take(pa.array(order[last])).select(columns))


def nothing(inputs, settings):
    return pa.__version__
