"""What copies of tables have in common: batches in, a table out, rows counted and compared."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from paimon_py import Catalog

Source = Callable[[str], pa.RecordBatchReader]


def copy(batches: Source) -> None:
    """Copy what the command line names, in memory of a few batches, and compare.

    Raises: SystemExit if the rows differ.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("warehouse")
    parser.add_argument("name", help="database.table, made by this program")
    parser.add_argument("--key", nargs="*", default=[], help="columns of the primary key")
    asked = parser.parse_args()
    catalog = Catalog.open(asked.warehouse)
    catalog.create_database(asked.name.partition(".")[0], exist_ok=True)
    rows = batches(asked.source)
    fields = [field.with_nullable(field.name not in asked.key).remove_metadata() for field in rows.schema]
    table = catalog.create_table(asked.name, pa.schema(fields), primary_key=asked.key)
    print(table.write_arrow(rows))
    there, here = summed(batches(asked.source)), summed(table.scan().to_reader())
    if there != here:
        raise SystemExit(f"the rows differ: {there} there, {here} here")
    print(f"{here['rows']} rows are the same")


def summed(batches: Iterator[pa.RecordBatch]) -> dict[str, int]:
    """How many rows there are, and how many values of each column; sums of whole numbers."""
    found = {"rows": 0}
    for batch in batches:
        found["rows"] += batch.num_rows
        for field, column in zip(batch.schema, batch.columns, strict=True):
            found[f"{field.name} values"] = found.get(f"{field.name} values", 0) + len(column) - column.null_count
            if pa.types.is_integer(field.type):
                total = pc.sum(column).as_py() or 0
                found[f"{field.name} sum"] = found.get(f"{field.name} sum", 0) + total
    return found
