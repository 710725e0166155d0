"""deltalake (delta-rs) on a table of its own.

Its files are compressed as ours are, and columns without repeated values have no dictionary: that makes it faster than
its defaults do.
"""

import deltalake
import pyarrow as pa
from deltalake import ColumnProperties, DeltaTable, QueryBuilder, WriterProperties, write_deltalake
from peers.common import check, prepare  # noqa: F401

FILES = WriterProperties(
    compression="ZSTD",
    compression_level=1,
    default_column_properties=ColumnProperties(dictionary_enabled=False),
    column_properties={"c": ColumnProperties(dictionary_enabled=True)},
)


def write(inputs, settings):
    """One commit per input."""
    for rows in inputs:
        write_deltalake(settings["table"], rows, mode="append", writer_properties=FILES)


def merge(inputs, settings):
    """Update the rows that have a key of the source by all its columns, and add the others.

    The source is not streamed: only then does deltalake pass over files by its least and greatest key.
    """
    (
        DeltaTable(settings["table"])
        .merge(
            inputs[0], "t.k = s.k", source_alias="s", target_alias="t", streamed_exec=False, writer_properties=FILES
        )
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )


def change(inputs, settings):
    """Delete or update the rows with `low <= column <= high`."""
    column, low, high = settings["where"]
    where = f"{column} >= {low} AND {column} <= {high}"
    table = DeltaTable(settings["table"])
    if "set" in settings:
        table.update(predicate=where, new_values=settings["set"], writer_properties=FILES)
    else:
        table.delete(where, writer_properties=FILES)


def read(inputs, settings):
    """All rows."""
    found = pa.table(QueryBuilder().register("t", DeltaTable(settings["table"])).execute("select * from t"))
    views = [pa.types.is_string_view(field.type) for field in found.schema]
    kinds = [pa.string() if view else field.type for view, field in zip(views, found.schema, strict=True)]
    return found.cast(pa.schema(list(zip(found.column_names, kinds, strict=True))))


def nothing(inputs, settings):
    return deltalake.__version__
