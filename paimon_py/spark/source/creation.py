"""Opens the table of a write, or creates it with the columns of the data and the given options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import types as st

from paimon_py import Catalog
from paimon_py.distributed import ROW_KIND_COLUMN, create_table_at
from paimon_py.errors import TableNotFoundError
from paimon_py.spark.source.opening import write_to
from paimon_py.spark.source.options import SourceOptions, place_of

if TYPE_CHECKING:
    from paimon_py import Table


def open_or_create(asked: SourceOptions, given: st.StructType) -> Table:
    """Open the table to write to; create it if it does not exist.

    Raises: as `write_to`, and as `Catalog.create_table`.
    """
    try:
        return write_to(asked)
    except TableNotFoundError:
        _create(asked, given)
    return write_to(asked)


def _create(asked: SourceOptions, given: st.StructType) -> None:
    columns = st.StructType([field for field in given if field.name.lower() != ROW_KIND_COLUMN])
    warehouse, name = place_of(asked)
    if warehouse is None:
        create_table_at(name, columns, asked.table, asked.store)
        return
    catalog = Catalog.open(warehouse or None, {**asked.store, **asked.catalog}, create=False)
    catalog.create_table(name, columns, options=asked.table, exist_ok=True)
