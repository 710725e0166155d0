"""Reads small files together: decoding similar files at once takes a fraction of the time.

If that fails, the files are read one by one, so that the error names the damaged file.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import from_numpy
from paimon_py.errors import PaimonError, StorageError
from paimon_py.files.file_columns import FileColumns, file_columns
from paimon_py.files.variant_parts import cast_array
from paimon_py.formats.base import JoinedFile, ReadSettings, SupportsJoin
from paimon_py.formats.registry import by_extension
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.types import Field
from paimon_py.storage.store import Get

TOGETHER_BYTES = 1 << 20
TOGETHER_ROWS = 65_536
TOGETHER_FILES = 256
"""The most that is decoded together: bytes of files, rows, and files."""

_SMALL_BYTES = 64 << 10
_SMALL_ROWS = 8_192
_DECOMPRESSED_BYTES = 8 << 20
"""The most bytes of pages that are decoded together, once decompressed."""


class Decoded(msgspec.Struct, frozen=True):
    """The rows of some files, one after the other, and where those of each are: the first of them and their number."""

    rows: pa.RecordBatch
    places: dict[str, tuple[int, int]]


class SmallFile(msgspec.Struct, frozen=True):
    """A file to read, its path, and one row with the columns that are constant in it."""

    path: str
    file: DataFile
    known: pa.RecordBatch | None


def is_small(file: DataFile) -> bool:
    """Whether to read a file together with others, so that positions and columns are those of its rows alone."""
    return (
        0 < file.row_count <= _SMALL_ROWS
        and file.size_bytes <= _SMALL_BYTES
        and file.write_columns is None
        and file.name.endswith(".parquet")
    )


def read_small(
    store: Get, files: Sequence[SmallFile], schema: TableSchema, fields: Sequence[Field]
) -> Decoded | None:
    """The rows of small files, by path; files that cannot be read together with the others are missing.

    Shapes: out — all rows of the files in order, with the Arrow schema of `fields`; None if there are no such files.
    Args:
        schema: the table schema that the files were written with.
        fields: as in `FileReader`.
    Cost: 0.1 ms for each file, and two for all of them.
    """
    names = () if files[0].known is None else files[0].known.schema.names
    ids = frozenset(schema.field(name).id for name in names)
    file_format = by_extension(files[0].file.name)
    if not isinstance(file_format, SupportsJoin):
        return None
    try:
        columns = file_columns(schema, None, tuple(fields), ids)
        if columns.evolves or columns.asks_ids or not columns.evolution.sources:
            return None
        found = _present(store, files)
        if len(found) < 2:
            return None
        joined = file_format.join([data for _, data in found], columns.evolution.columns, _DECOMPRESSED_BYTES)
        if joined is None:
            return None
        chosen = [found[place][0] for place in joined.places]
        if joined.row_counts != [one.file.row_count for one in chosen]:
            return None
        rows = _decode(file_format, joined, chosen, schema, columns)
    except PaimonError:
        return None  # a reader of one file says what is wrong
    if rows is None:
        return None
    starts = itertools.accumulate(joined.row_counts, initial=0)
    return Decoded(rows, {one.path: (start, one.file.row_count) for one, start in zip(chosen, starts, strict=False)})


def _present(store: Get, files: Sequence[SmallFile]) -> list[tuple[SmallFile, bytes]]:
    """The files with their bytes, unless they cannot be read or have another size than their entry says."""
    found = []
    for one in files:
        try:
            data = store.get(one.path)
        except StorageError:
            continue
        if len(data) == one.file.size_bytes:
            found.append((one, data))
    return found


def _decode(
    file_format: SupportsJoin, joined: JoinedFile, files: Sequence[SmallFile], schema: TableSchema, columns: FileColumns
) -> pa.RecordBatch | None:
    """All rows of a joined file; None if they do not fit into one batch."""
    needed = columns.columns_for(frozenset())
    row_count = sum(joined.row_counts)
    settings = ReadSettings(
        buffer_size_bytes=0, row_count=row_count, decimals=columns.may_hold_decimals, schema_names=schema.names,
        cast=cast_array, stored=columns.stored, may_lack=needed.may_lack, alike=needed.alike,
    )  # fmt: skip
    path = files[0].path
    opened = file_format.open(pa.BufferReader(joined.data), path, needed.fields, len(joined.data), settings)
    try:
        pieces = opened.positioned_batches(columns.evolution.columns, batch_rows=row_count)
        batches = pa.Table.from_batches([batch for _, batch in pieces]).combine_chunks().to_batches()
    finally:
        opened.close()
    if len(batches) != 1 or batches[0].num_rows != row_count:
        return None
    return columns.evolution.with_known(_constants(files, joined.row_counts, schema)).apply(batches[0])


def _constants(files: Sequence[SmallFile], row_counts: Sequence[int], schema: TableSchema) -> dict[int, pa.Array]:
    """The constant columns of the rows of all files, by field id."""
    if files[0].known is None:
        return {}
    distinct: dict[int, tuple[int, pa.RecordBatch]] = {}
    for one in files:
        assert one.known is not None
        distinct.setdefault(id(one.known), (len(distinct), one.known))
    values = pa.Table.from_batches([known for _, known in distinct.values()]).combine_chunks()
    numbers = np.array([distinct[id(one.known)][0] for one in files])
    rows = values.take(from_numpy(np.repeat(numbers, row_counts), pa.int64())).combine_chunks().to_batches()[0]
    return {schema.field(name).id: rows.column(name) for name in rows.schema.names}

