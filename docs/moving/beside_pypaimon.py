"""One table, written and read by pypaimon and paimon_py in turns: `beside_pypaimon.py WAREHOUSE`."""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa
from pypaimon import CatalogFactory, Schema

from paimon_py import Catalog

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("city", pa.string())])


def main(warehouse: str) -> None:
    """Write in turns, read with both, compare."""
    theirs = CatalogFactory.create({"warehouse": warehouse})
    theirs.create_database("beside", True)
    made = Schema.from_pyarrow_schema(SCHEMA, primary_keys=["id"], options={"bucket": "2"})
    theirs.create_table("beside.cities", made, False)
    ours = Catalog.open(warehouse).table("beside.cities")

    write(theirs.get_table("beside.cities"), {"id": [1, 2], "city": ["Ulm", "Bonn"]})
    ours.write_arrow(pa.table({"id": [2, 3], "city": ["Berlin", "Kiel"]}))
    write(theirs.get_table("beside.cities"), {"id": [3, 4], "city": ["Trier", "Jena"]})
    ours.compact(full=True)

    mine = sorted(ours.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    builder = theirs.get_table("beside.cities").new_read_builder()
    other = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    assert mine == sorted(other.to_pylist(), key=lambda row: row["id"])
    assert [row["city"] for row in mine] == ["Ulm", "Berlin", "Trier", "Jena"]
    print(f"{len(mine)} rows are the same for both")


def write(table: Any, columns: dict[str, list[Any]]) -> None:
    """Write with pypaimon."""
    builder = table.new_batch_write_builder()
    writer, commit = builder.new_write(), builder.new_commit()
    writer.write_arrow(pa.table(columns, SCHEMA))
    commit.commit(writer.prepare_commit())
    writer.close()
    commit.close()


if __name__ == "__main__":
    main(sys.argv[1])
