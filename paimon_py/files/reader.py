"""Opening one data file as batches of the schema that is read.

Source: format.md §1.1, §3.3, §8; Java `FormatReaderMapping`, `DataFileRecordReader`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyroaring import BitMap

from paimon_py.errors import CorruptionError, SchemaError, UnsupportedError
from paimon_py.expr.predicate import Constant, Predicate
from paimon_py.expr.split import columns_of, translate
from paimon_py.files.evolve import Evolution
from paimon_py.files.physical import readable_fields
from paimon_py.formats.base import OpenFile, ReadSettings, empty_rows
from paimon_py.formats.registry import by_extension
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.types import Field
from paimon_py.storage.store import OpenRead

BATCH_ROWS = 65_536


def read_file(
    store: OpenRead,
    path: str,
    file: DataFile,
    file_schema: TableSchema,
    read_fields: Sequence[Field],
    *,
    batch_rows: int = BATCH_ROWS,
    predicate: Predicate | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a data file, in their order.

    Shapes: out — batches of at most `batch_rows` rows with the Arrow schema of `read_fields`.
    Args:
        path: where the file lies; `file.external_path` comes first if there is one.
        file_schema: the table schema the file was written with (`file.schema_id`).
        read_fields: columns by field id, in the types to be read; `SEQUENCE_FIELD` and `KIND_FIELD` for files of
            primary-key tables.
        predicate: bound to the schema that is read; may leave out parts of the file without a match. Rows are not
            filtered.
    Cost: one open file; only needed columns are read, none at all if the file has none of them.
    Raises:
        FileMissingError: there is no such file.
        CorruptionError: damaged bytes, or another number of rows than the manifest says.
        SchemaError: a stored value has no meaning in the type its column has now.
        UnsupportedError: the format, a type, or a cast that is not handled.
    """
    pieces = read_positions(store, path, file, file_schema, read_fields, batch_rows=batch_rows, predicate=predicate)
    return (batch for _, batch in pieces)


def read_positions(
    store: OpenRead,
    path: str,
    file: DataFile,
    file_schema: TableSchema,
    read_fields: Sequence[Field],
    *,
    batch_rows: int = BATCH_ROWS,
    predicate: Predicate | None = None,
    rows: BitMap | None = None,
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Like `read_file`, each batch with the position in the file of its first row (what deletion vectors count).

    `rows`: positions that are wanted; parts of the file without one may be left out.
    """
    if file.write_columns is not None:
        raise UnsupportedError(
            f"{path} holds only some columns of its rows", feature="data-evolution.enabled", path=path
        )
    file_fields = readable_fields(file_schema)
    evolution = Evolution(file_fields, read_fields)
    if not evolution.sources:
        yield from _nulls(evolution, file.row_count, batch_rows)
        return
    pushed = None if predicate is None else translate(predicate, file_fields)
    pushed = None if isinstance(pushed, Constant) and pushed.value else pushed
    path = file.external_path or path
    opened = _open(store, path, file, _needed(file_fields, evolution, pushed))
    try:
        _check_rows(path, file, opened.row_count)
        found = 0
        for position, batch in opened.positioned_batches(
            evolution.columns, batch_rows=batch_rows, predicate=pushed, rows=rows
        ):
            found += batch.num_rows
            yield position, _evolved(evolution, batch, path)
        if pushed is None and rows is None:
            _check_rows(path, file, found)
    finally:
        opened.close()


def _open(store: OpenRead, path: str, file: DataFile, fields: Sequence[Field]) -> OpenFile:
    file_format = by_extension(file.name)
    settings = ReadSettings(buffer_size_bytes=0) if "://" in path else ReadSettings()
    source = store.open_read(path)
    try:
        return file_format.open(source, path, fields, file.size_bytes, settings)
    except BaseException:
        source.close()
        raise


def _needed(file_fields: Sequence[Field], evolution: Evolution, predicate: Predicate | None) -> list[Field]:
    """Columns that are read or pruned by; the others may have types that are not handled."""
    names = {*evolution.columns, *(columns_of(predicate) if predicate is not None else ())}
    return [field for field in file_fields if field.name in names]


def _evolved(evolution: Evolution, batch: pa.RecordBatch, path: str) -> pa.RecordBatch:
    try:
        return evolution.apply(batch)
    except SchemaError as error:
        error.path = path
        raise


def _check_rows(path: str, file: DataFile, found: int | None) -> None:
    if found is not None and found != file.row_count:
        raise CorruptionError(f"{path} has {found} rows, its manifest entry says {file.row_count}", path=path)


def _nulls(evolution: Evolution, row_count: int, batch_rows: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    for start in range(0, row_count, batch_rows):
        yield start, evolution.apply(empty_rows(min(batch_rows, row_count - start)))
