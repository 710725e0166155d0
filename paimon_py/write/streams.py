"""Whatever holds Arrow data → a reader, and batches of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from paimon_py.errors import UsageError

_PIECE_ROWS = 262_144
_PIECE_BYTES = 64 << 20


def open_stream(data: object) -> pa.RecordBatchReader:
    """A reader over anything with an Arrow C stream or array, or a pandas frame; nothing is read yet.

    Raises:
        UsageError: `data` is something else.
    """
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pa.Table):
        return data.to_reader()
    if isinstance(data, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(data.schema, [data])
    try:
        if _is_pandas_frame(data):
            return pa.Table.from_pandas(data, preserve_index=False).to_reader()
        if hasattr(data, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(data)
        if hasattr(data, "__arrow_c_array__"):
            batch = pa.record_batch(data)
            return pa.RecordBatchReader.from_batches(batch.schema, [batch])
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise UsageError(f"{type(data).__name__} does not give an Arrow table: {error}") from error
    raise UsageError(
        f"{_name_of(data)} is not Arrow data: {_way_to_arrow(data)}give a pyarrow Table, RecordBatch or "
        "RecordBatchReader, a pandas or polars frame, or anything else with __arrow_c_stream__; pyarrow.table(…) and "
        "pyarrow.Table.from_pylist(…) make one of columns and of rows"
    )


def pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch in slices of a bounded number of rows and bytes; no copy."""
    rows = batch.num_rows
    if rows == 0:
        return
    step = max(1, min(_PIECE_ROWS, _PIECE_BYTES * rows // max(1, row_bytes(batch))))
    if step >= rows:
        yield batch
        return
    for start in range(0, rows, step):
        yield batch.slice(start, step)


def row_bytes(batch: pa.RecordBatch) -> int:
    """Bytes of the rows; of their whole buffers where Arrow cannot tell, as with string views before Arrow 20."""
    try:
        return int(batch.nbytes)
    except pa.ArrowTypeError:
        return int(batch.get_total_buffer_size())


def _is_pandas_frame(data: object) -> bool:
    kind: Callable[..., object] = type(data)
    return kind.__module__.split(".")[0] == "pandas" and kind.__name__ == "DataFrame"


def _way_to_arrow(data: object) -> str:
    """What makes Arrow data of things that are nearly that."""
    if isinstance(data, Iterator):
        return "make a reader with pyarrow.RecordBatchReader.from_batches(schema, batches), or "
    way = next((name for name in ("collect", "scan") if hasattr(data, name)), None)
    return "" if way is None else f"call {way}() first, or "


def _name_of(data: object) -> str:
    return "None" if data is None else f"a {type(data).__module__}.{type(data).__qualname__}"
