"""Careful plain pyarrow and numpy: the reading that a delete or an update needs, and the writing.

Files are those of `settings["files"]`. What stays is linked into the directory `settings["raw"]`, what is new is
written there.
"""

import os
import uuid

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyroaring import BitMap

OPTIONS = {"compression": "zstd", "compression_level": 1, "write_page_checksum": True, "store_schema": False}
COLUMNS = ["k", "a", "b", "c", "d", "e"]
MARKS = ".dead"


def store(data, directory):
    """Write a Parquet file to the disk."""
    path = os.path.join(directory, f"{len(os.listdir(directory)):04}-{uuid.uuid4()}.parquet")
    pq.write_table(data, path, **OPTIONS)
    _sync(path)
    _sync(directory)


def change(inputs, settings):
    """Delete or update the rows with `low <= column <= high`.

    The column is read of all row groups whose statistics do not exclude a match. Then all columns are read of files
    that are written anew; with `settings["marks"]`, of row groups with rows that are updated, and rows that go are
    marked in a bitmap.
    """
    os.makedirs(settings["raw"])
    column, updated = settings["where"][0], []
    for path in settings["files"]:
        file = pq.ParquetFile(path, page_checksum_verification=True)
        starts, groups = _matching(file, settings)
        masks = [_mask(_read(file, [group], [column])[column], settings) for group in groups]
        found = [(group, mask) for group, mask in zip(groups, masks, strict=True) if pc.any(mask).as_py()]
        kept = os.path.join(settings["raw"], os.path.basename(path))
        if not found or settings["marks"]:
            os.link(path, kept)
        if found and settings["marks"]:
            _mark(f"{kept}{MARKS}", [starts[group] + np.flatnonzero(mask) for group, mask in found])
            if "set" in settings:
                mask = pa.chunked_array([chunk for _, mask in found for chunk in mask.chunks])
                rows = _read(file, [group for group, _ in found], COLUMNS).filter(mask)
                updated.append(_set(rows, None, settings["set"]))
        elif found:
            _rewrite(file, column, settings)
    if updated:
        store(pa.concat_tables(updated), settings["raw"])


def alive(table, settings):
    """The rows of a directory's files that are not marked; `table` has all of them, in the order of their names."""
    paths = sorted(name for name in os.listdir(settings["raw"]) if name.endswith(".parquet"))
    keep, start = np.ones(table.num_rows, np.bool_), 0
    for path in paths:
        marks = os.path.join(settings["raw"], f"{path}{MARKS}")
        if os.path.exists(marks):
            with open(marks, "rb") as source:
                keep[start + np.array(BitMap.deserialize(source.read()))] = False
        start += pq.read_metadata(os.path.join(settings["raw"], path)).num_rows
    return table if keep.all() else table.filter(pa.array(keep))


def _rewrite(file, column, settings):
    rows = _read(file, range(file.num_row_groups), COLUMNS)
    mask = _mask(rows[column], settings)
    rows = _set(rows, mask, settings["set"]) if "set" in settings else rows.filter(pc.invert(mask))
    if rows.num_rows:
        store(rows, settings["raw"])


def _matching(file, settings):
    """The first row of every row group, and the row groups whose statistics do not exclude a match."""
    column, low, high = settings["where"]
    starts, groups, start = [], [], 0
    for number in range(file.num_row_groups):
        group = file.metadata.row_group(number)
        known = group.column(file.schema_arrow.get_field_index(column)).statistics
        if known is None or (known.min <= high and known.max >= low):
            groups.append(number)
        starts.append(start)
        start += group.num_rows
    return starts, groups


def _read(file, groups, columns):
    return file.read_row_groups(list(groups), columns=columns, use_threads=False)


def _mask(values, settings):
    _, low, high = settings["where"]
    return pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))


def _set(rows, mask, values):
    for name, text in values.items():
        place, value = rows.schema.get_field_index(name), pa.scalar(float(text))
        new = pa.repeat(value, rows.num_rows) if mask is None else pc.if_else(mask, value, rows[name])
        rows = rows.set_column(place, name, new)
    return rows


def _mark(path, positions):
    marks = BitMap(np.concatenate(positions).astype(np.uint32))
    with open(path, "wb") as sink:
        sink.write(marks.serialize())
    _sync(path)


def _sync(path):
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
