"""Converts rows for other libraries, which are imported on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paimon_py.codec.texts import with_valid_text
from paimon_py.errors import UsageError

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars
    import ray.data
    from pyarrow.dataset import Dataset

    from paimon_py.executors.executor import Executor
    from paimon_py.scan.rows import Rows
    from paimon_py.scan.split_rows import SplitRows
    from paimon_py.scan.torch_rows import TorchRows


TypesMapper = Callable[[pa.DataType], "pandas.api.extensions.ExtensionDtype | None"]
"""Maps an Arrow type to a pandas type, None for the usual one; see `pyarrow.Table.to_pandas`."""


def to_pandas(table: pa.Table, types_mapper: TypesMapper | None = None) -> pandas.DataFrame:
    """A table as a pandas DataFrame. Integers with NULL get nullable pandas types, unless a mapper overrides them."""
    with_valid_text(table)
    try:
        if types_mapper is not None:
            if not callable(types_mapper):
                way = "; the get of a mapping is one: types_mapper={…}.get" if isinstance(types_mapper, Mapping) else ""
                raise UsageError(f"types_mapper is a function such as pandas.ArrowDtype, not {types_mapper!r}{way}")
            return table.to_pandas(types_mapper=types_mapper)
        columns = enumerate(table.columns)
        places = [at for at, column in columns if column.null_count and pa.types.is_integer(column.type)]
        if not places:
            return table.to_pandas()
        frame = table.to_pandas(integer_object_nulls=True)
        for at in places:
            frame.isetitem(at, frame.iloc[:, at].astype(f"Int{table.column(at).type.bit_width}"))
        return frame
    except ImportError as error:
        raise _absent("pandas") from error


def to_polars(table: pa.Table) -> polars.DataFrame:
    """A table as a polars DataFrame."""
    try:
        import polars
    except ImportError as error:
        raise _absent("polars") from error
    return polars.from_arrow(with_valid_text(table))


def to_lazy_polars(rows: Rows) -> polars.LazyFrame:
    """Rows as a polars LazyFrame that pushes columns, filters and limits into the scan."""
    try:
        from paimon_py.scan.lazy_polars import lazy_frame
    except ImportError as error:
        raise _absent("polars") from error
    return lazy_frame(rows)


def to_dataset(rows: Rows) -> Dataset:
    """Rows as a pyarrow dataset that pushes columns and filters into the scan."""
    from paimon_py.scan.dataset import ScanDataset

    return ScanDataset(rows)


def to_duckdb(source: Any, connection: duckdb.DuckDBPyConnection, name: str) -> duckdb.DuckDBPyRelation:
    """Register a dataset as a view of a connection."""
    connection.register(name, source)
    return connection.view(name)


def to_torch(
    rows: SplitRows[Any], *, batch_size: int | None, seed: int | None, rank: int | None, world_size: int | None
) -> TorchRows:
    """Rows as a dataset of PyTorch, as `SplitRows.to_torch`. `seed`: None for the order of the plan."""
    try:
        from paimon_py.scan.torch_rows import TorchRows
    except ImportError as error:
        raise _absent_extra("torch") from error
    return TorchRows(rows, batch_size=batch_size, seed=seed, rank=rank, world_size=world_size)


def rows_by_tasks(rows: SplitRows[Any], executor: Executor, *, keeps: bool) -> Iterator[pa.RecordBatch]:
    """See `read_by_tasks`."""
    from paimon_py.scan.read_tasks import read_by_tasks

    return read_by_tasks(rows, executor, keeps=keeps)


def to_ray(rows: SplitRows[Any]) -> ray.data.Dataset:
    """Rows as a dataset of Ray."""
    try:
        from paimon_py.scan.ray_rows import ray_dataset
    except ImportError as error:
        raise _absent_extra("ray") from error
    return ray_dataset(rows)


def _absent(library: str) -> UsageError:
    return UsageError(f"{library} is not installed: pip install {library}")


def _absent_extra(library: str) -> UsageError:
    return UsageError(f"{library} is not installed: pip install 'paimon-py[{library}]'")
