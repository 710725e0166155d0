"""Converts any source of Arrow data to a reader, and to batches of bounded size."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.row_size import row_bytes
from paimon_py.errors import UsageError
from paimon_py.metadata.open_table import OpenTable
from paimon_py.progress import ProgressCounter, count_batches
from paimon_py.spec.blobs import mentions_blobs
from paimon_py.spec.type_text import contains
from paimon_py.spec.types import Atomic, DataType, Field, Root

if TYPE_CHECKING:
    pass

_WAYS = {
    "non-struct": "; give columns names: pyarrow.table({'a': data})",
    "'_pl": ", a type of polars alone: cast 128-bit integers, such as with pl.col(name).cast(pl.Decimal(38, 0))",
}
"""What to do, by words of Arrow's error."""
_PIECE_ROWS = 262_144
_PIECE_BYTES = 64 << 20


def open_stream(data: object, fields: Sequence[Field] = ()) -> pa.RecordBatchReader:
    """A reader over any source of rows; only the first item of a generator is read immediately.

    Sources: any object with an Arrow C stream or array (pyarrow, polars, DuckDB), a pandas DataFrame, a polars
    LazyFrame, a pyarrow dataset, a list of mappings, and a list or generator of these. All but lists of mappings and
    pandas DataFrames are read in batches, in memory that does not grow with the rows.

    Args:
        fields: columns of the target table, which determine the types of Python values.

    Raises:
        UsageError: `data` is not a supported source.
        SchemaError: values of a column of mappings have incompatible types; or, while a dataset is read, one of its
            files has a column that the dataset lacks.
    """
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pa.Table):
        return _with_untyped_nulls(data, fields).to_reader()
    if isinstance(data, pa.RecordBatch):
        return _with_untyped_nulls(pa.Table.from_batches([data]), fields).to_reader()
    if isinstance(data, (list, tuple)) or (isinstance(data, Iterator) and not hasattr(data, "__arrow_c_stream__")):
        return _open_items(data, fields)
    try:
        return _open_foreign(data, fields)
    except UsageError:
        raise
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        way = next((way for words, way in _WAYS.items() if words in str(error)), "")
        shown = "; ".join(map(str, error.args))
        raise UsageError(f"{type(data).__name__} does not give an Arrow table: {shown}{way}") from error


def with_blob_bytes(table: OpenTable, data: object) -> object:
    """Rows with bytes in place of paths, open files and references in BLOB columns.

    Raises: as `write.blob_sources.bytes_of_sources`.
    """
    if not any(mentions_blobs(field.type) for field in table.schema.fields):
        return data
    from paimon_py.write.blob_sources import bytes_of_sources

    return bytes_of_sources(table, data)


def known_rows(data: object) -> int:
    """The number of rows if it is known without reading them; else 0."""
    if isinstance(data, (list, tuple)):
        rows = [1 if isinstance(item, Mapping) else known_rows(item) for item in data]
        return sum(rows) if all(rows) else 0
    is_frame = type(data).__module__.split(".")[0] in ("pandas", "polars") and type(data).__name__ == "DataFrame"
    found = len(data) if is_frame else getattr(data, "num_rows", 0)  # type: ignore[arg-type]
    return found if isinstance(found, int) else 0


def counted_stream(data: object, fields: Sequence[Field], tally: ProgressCounter) -> pa.RecordBatchReader:
    """The same rows, counted as they are read.

    Raises: as `open_stream`.
    """
    reader = open_stream(data, fields)
    return pa.RecordBatchReader.from_batches(
        reader.schema, count_batches((piece for batch in reader for piece in pieces(batch)), tally)
    )


def _open_items(data: list[object] | tuple[object, ...] | Iterator[object], fields: Sequence[Field]) -> Any:
    from paimon_py.write.listed_rows import open_items, open_list

    if isinstance(data, Iterator):
        return open_items(data, fields, open_stream)
    return open_list(data, fields, open_stream)


def _open_frame(frame: Any, fields: Sequence[Field]) -> pa.RecordBatchReader:
    """The rows of a pandas DataFrame, without the index.

    Raises: UsageError if the index has the name of a table column that the DataFrame lacks.
    """
    names = {field.name for field in fields}
    hidden = [name for name in frame.index.names if name in names and name not in frame.columns]
    if hidden:
        raise UsageError(
            f"{', '.join(map(repr, hidden))} is the index of the frame, and an index is not written: give"
            " frame.reset_index()"
        )
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, OverflowError, TypeError):
        if not fields or not frame.columns.is_unique or not all(isinstance(name, str) for name in frame.columns):
            raise
        from paimon_py.write.listed_rows import columns_of

        table = columns_of({name: _column_of_frame(frame[name]) for name in frame.columns}, fields)
    return _with_python_times(frame, _with_untyped_nulls(table, fields), fields).to_reader()


def _column_of_frame(column: Any) -> Any:
    """A column of a pandas DataFrame: Arrow's, or Python values where Arrow cannot infer a type."""
    try:
        return pa.array(column, from_pandas=True)
    except (pa.ArrowException, OverflowError, TypeError):
        return column.astype(object).where(column.notna(), None).tolist()


def _with_untyped_nulls(table: pa.Table, fields: Sequence[Field]) -> pa.Table:
    """Give columns that contain only NULL, in another type than the table's, the null type: it is arbitrary."""
    for field in fields:
        place = table.schema.get_field_index(field.name)
        if place < 0 or table.column(place).null_count < len(table):
            continue
        if not table.schema.field(place).type.equals(to_arrow_type(field.type)):
            table = table.set_column(place, field.name, pa.nulls(len(table)))
    return table


def _with_python_times(frame: Any, table: pa.Table, fields: Sequence[Field]) -> pa.Table:
    """Rebuild the columns of a DataFrame with times that are Python objects.

    Arrow truncates their nanoseconds inside lists and mappings, and takes times without a zone among others for UTC.

    Raises: SchemaError with the first value that its column cannot hold.
    """
    for field in fields:
        place = table.schema.get_field_index(field.name)
        if place < 0 or not contains(field.type, _is_time):
            continue
        kind = table.schema.field(place).type
        if pa.types.is_nested(kind) or (pa.types.is_timestamp(kind) and frame[field.name].dtype == object):
            from paimon_py.write.listed_rows import column_of

            table = table.set_column(place, field.name, column_of(field.name, frame[field.name].tolist(), field))
    return table


def _is_time(kind: DataType) -> bool:
    return isinstance(kind, Atomic) and kind.root in (Root.TIMESTAMP, Root.TIMESTAMP_LTZ)


def _open_objects(frame: Any, fields: Sequence[Field]) -> pa.RecordBatchReader:
    """The rows of a polars DataFrame with Python object columns, which polars exports to Arrow as addresses."""
    from paimon_py.write.listed_rows import rows_of

    return rows_of(frame.to_dicts(), fields).to_reader()


def _has_objects(schema: Mapping[str, object]) -> bool:
    return any(str(kind) == "Object" for kind in schema.values())


def _has_empty_columns(frame: Any) -> bool:
    """Whether a polars DataFrame has a column without values."""
    return any(column.null_count() == len(column) for column in frame)


def _open_foreign(data: object, fields: Sequence[Field]) -> pa.RecordBatchReader:
    """A reader over data from another library."""
    if isinstance(data, type):
        raise UsageError(f"{data.__module__}.{data.__qualname__} is a class without rows: pass an instance")
    library = type(data).__module__.split(".")[0]
    if library == "pandas" and type(data).__name__ == "DataFrame":
        return _open_frame(data, fields)
    if library == "polars" and type(data).__name__ == "LazyFrame":
        return _open_lazy(data, fields)
    if library == "polars" and type(data).__name__ == "DataFrame" and _has_objects(data.schema):  # type: ignore[attr-defined]
        return _open_objects(data, fields)
    if library == "polars" and type(data).__name__ == "DataFrame" and fields and _has_empty_columns(data):
        return _with_untyped_nulls(pa.table(data), fields).to_reader()
    if _is_dataset(data):
        from paimon_py.write.datasets import open_dataset

        return open_dataset(data)
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    if hasattr(data, "__arrow_c_array__"):
        batch = pa.record_batch(data)
        return pa.RecordBatchReader.from_batches(batch.schema, [batch])
    raise UsageError(
        f"{_name_of(data)} is not Arrow data: {_way_to_arrow(data)}give a pyarrow Table, RecordBatch, "
        "RecordBatchReader or dataset, a pandas or polars frame, a list of mappings, or anything else with "
        "__arrow_c_stream__; pyarrow.table(…) makes one of columns"
    )


def _open_lazy(frame: Any, fields: Sequence[Field]) -> pa.RecordBatchReader:
    """A polars LazyFrame, computed in batches if polars supports it."""
    if _has_objects(frame.collect_schema()):
        return _open_objects(frame.collect(), fields)
    if not hasattr(frame, "collect_batches"):
        return pa.RecordBatchReader.from_stream(frame.collect())
    schema = frame.collect_schema().to_frame().to_arrow().schema
    batches = (batch for part in frame.collect_batches(maintain_order=True) for batch in part.to_arrow().to_batches())
    return pa.RecordBatchReader.from_batches(schema, batches)


def _is_dataset(data: object) -> bool:
    loaded = sys.modules.get("pyarrow.dataset")
    return loaded is not None and isinstance(data, loaded.Dataset)


def pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Slices of the batch with a bounded number of rows and bytes, without a copy."""
    rows = batch.num_rows
    if rows == 0:
        return
    step = max(1, min(_PIECE_ROWS, _PIECE_BYTES * rows // max(1, row_bytes(batch))))
    if step >= rows:
        yield batch
        return
    for start in range(0, rows, step):
        yield batch.slice(start, step)


class Piece(NamedTuple):
    """A part of a user's rows, and the number of rows before it."""

    first: int
    rows: pa.RecordBatch


def number_pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[Piece]:
    """The pieces of all batches."""
    first = 0
    for batch in batches:
        for piece in pieces(batch):
            yield Piece(first, piece)
            first += piece.num_rows


def _way_to_arrow(data: object) -> str:
    """A hint for objects that can be converted to Arrow data."""
    if isinstance(data, Mapping):
        return "pyarrow.table(data) makes a table of a mapping from names to columns, [data] is one row; or "
    if isinstance(data, (str, bytes, PurePath)):
        return "read the file first, such as with pyarrow.parquet.read_table(path); or "
    if type(data).__module__.startswith("pyspark."):
        return "paimon_py.convert_from_spark(df) makes Arrow data of a DataFrame, write_spark(table, df) writes it; or "
    way = next((name for name in ("collect", "scan") if hasattr(data, name)), None)
    return "" if way is None else f"call {way}() first, or "


def _name_of(data: object) -> str:
    return "None" if data is None else f"a {type(data).__module__}.{type(data).__qualname__}"
